#!/bin/sh
# mutants.sh [-n FIRST[-LAST]] [PATTERN] - which mutants of tests/sim/mutants.sh
# the exhaustive search finds: each breaks one rule, and a short search of each
# scenario below looks for a violation.
#
# Prints number, verdict, scenario and name of each mutant. Many rules are of
# parts that the search does not have (shared memory, messages, shared state,
# large vectors): a mutant that survives here is found by the simulator. Exit
# status 1 if the original fails, or if nothing is found at all.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
first=1 last=999999
while getopts n: option; do
    case $option in
    n)
        first=${OPTARG%%-*}
        case $OPTARG in *-*) last=${OPTARG#*-} ;; esac ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
only=${1:-([VRDFM]}
list=$root/tests/sim/mutants.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cp -r "$root/src" "$root/include" "$work/"
mkdir -p "$work/tests" "$work/obj"
cp -r "$root/tests/explore" "$work/tests/"
cd "$work"

core=$(sed -n '/^core="/,/"$/p' "$list" | tr -d '"' | sed 's/^core=//' |
    sed 's/base\/pool//; s/link\/shared_memory//')
explorer="explorer exhaust universe universe_step party party_member party_master
arena intern pool_exact"
wraps="-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
-Wl,--wrap=aligned_alloc -Wl,--wrap=free"
names=" $(echo "$core" | tr '\n' ' ') "
compile() {
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -O1 -w -c "$1" -o "$2"
}
object() {
    echo "obj/$(echo "$1" | tr / _).o"
}
for name in $core; do compile "src/$name.c" "$(object "$name")"; done
for name in $explorer; do
    compile "tests/explore/$name.c" "obj/explore_$name.o"
done

# Without timeouts nothing waits, so patience is short.
scenarios="--members 3 --patience 1 --one-end
--ops 2 --crash 1 --patience 1
--ops 2 --crash 1 --concurrent --patience 1
--ops 2 --crash 1 --algorithm ring --patience 1
--crash 1 --update --patience 1
--crash 1 --leave --patience 1
--odd --ops 2 --crash 1 --patience 12
--stop 1
--cut-master 1 --update
--members 3 --stop 1 --states 100000
--members 3 --crash 1 --patience 1 --states 150000
--members 3 --crash 1 --leave --patience 1 --states 60000
--cut 1 --states 100000
--join --crash 1 --states 100000"
# The first scenario that has a violation, in `found`.
hunt() {
    found=
    while read -r scenario; do
        # shellcheck disable=SC2086
        timeout 300 "$1" $scenario >out 2>&1 && continue
        # A machine that is too slow has found nothing.
        grep -q '^violation' out || continue
        found=$scenario
        return 0
    done <<SCENARIOS
$scenarios
SCENARIOS
}
# shellcheck disable=SC2086
${CC:-cc} obj/*.o $wraps -o original
hunt ./original
[ -z "$found" ] || { cat out; echo "the original fails: $found"; exit 1; }

sed "1,/<<'MUTANTS'/d" "$list" | sed '/^MUTANTS$/,$d' >mutants
number=0 caught=0 total=0
while IFS='|' read -r name file script; do
    number=$((number + 1))
    [ "$number" -ge "$first" ] && [ "$number" -le "$last" ] || continue
    echo "$name" | grep -q "$only" || continue
    case $names in *" ${file%.c} "*) ;; *) continue ;; esac
    total=$((total + 1))
    cp "src/$file" keep
    sed "$script" keep >"src/$file"
    if cmp -s keep "src/$file"; then
        echo "$number unchanged - $name"
    elif ! compile "src/$file" mutant.o 2>/dev/null; then
        echo "$number invalid - $name"
    else
        objects=$(ls obj/*.o | grep -v "^$(object "${file%.c}")\$")
        # shellcheck disable=SC2086
        ${CC:-cc} $objects mutant.o $wraps -o mutant
        hunt ./mutant
        verdict=survives
        if [ -n "$found" ]; then
            verdict=found caught=$((caught + 1))
        fi
        echo "$number $verdict [$found] $name: $(grep -m1 violation out || true)"
    fi
    cp keep "src/$file"
done <mutants
echo "$caught of $total found"
[ "$total" -eq 0 ] || [ "$caught" -gt 0 ]
