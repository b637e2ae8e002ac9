#!/bin/sh
# mutants.sh [-n FIRST[-LAST]] [PATTERN] - which mutants of tests/world/sim/mutants.sh
# the exhaustive search finds: each breaks one rule, and a short search of each
# scenario below that reaches the changed line looks for a violation.
#
# Prints number, verdict, scenario and name of each mutant. "unreached": no
# scenario executes that line. Many rules are of parts that the search does not
# have (shared memory, messages, shared state, large vectors): a mutant that
# survives here is found by the simulator. Exit status 1 if the original fails,
# if nothing is found, or if one does not apply; 2 if there is nothing to do.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
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
list=$root/tests/world/sim/mutants.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cp -r "$root/src" "$root/include" "$work/"
mkdir -p "$work/tests/world" "$work/obj"
cp -r "$root/tests/world/host" "$root/tests/world/explore" "$work/tests/world/"
. "$root/tests/world/sim/reach.sh"
cd "$work"

. "$root/tests/world/sim/cores.sh"
core=$(echo "$core" | sed 's/base\/pool//; s/link\/shared_memory//')
explorer="explorer exhaust universe universe_step party party_member party_master
arena intern pool_exact"
wraps="-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
-Wl,--wrap=aligned_alloc -Wl,--wrap=free"
names=" $(echo "$core" | tr '\n' ' ') "
ccache=$(command -v ccache || true)
compile() { # SOURCE OBJECT [FLAG...]
    from=$1 to=$2
    shift 2
    $ccache ${CC:-cc} -std=c11 -D_GNU_SOURCE -O1 -w "$@" -c "$from" -o "$to"
}
object() {
    echo "obj/$(echo "$1" | tr / _).o"
}
for name in $core; do compile "src/$name.c" "$(object "$name")"; done
for name in $explorer; do
    compile "tests/world/explore/$name.c" "obj/explore_$name.o"
done

# Without timeouts nothing waits, so patience is short.
scenarios="--members 3 --patience 1 --one-end
--ops 2 --crash 1 --patience 1
--ops 2 --crash 1 --concurrent --patience 1
--ops 2 --crash 1 --algorithm ring --patience 1
--crash 1 --update --patience 1
--crash 1 --leave --patience 1
--crash 1 --update --leave --patience 1
--odd --ops 2 --crash 1 --patience 12
--stop 1
--stall 5
--cut-master 1 --update
--cut-master 1 --ops 2
--members 3 --odd --ops 2 --patience 12
--members 3 --odd --ops 2 --crash 1 --patience 12 --states 100000
--members 3 --stop 1 --states 100000
--members 3 --stop 1 --ops 2 --states 100000
--members 3 --crash 1 --patience 1 --states 150000
--members 3 --crash 2 --patience 1 --states 100000
--members 3 --crash 1 --leave --patience 1 --states 60000
--members 3 --crash 1 --update --patience 1 --states 100000
--members 3 --crash 1 --algorithm direct --patience 1 --states 100000
--members 3 --crash 1 --algorithm ring --patience 1 --states 100000
--members 3 --crash 1 --algorithm tree --patience 1 --states 100000
--members 3 --ops 2 --crash 1 --concurrent --patience 1 --states 200000
--members 3 --cut 1 --states 60000
--cut 1 --states 100000
--join --crash 1 --states 100000"
echo "$scenarios" | grep -n . | cut -d: -f1 >numbers
# The first scenario of these numbers that has a violation, in `found`.
hunt() { # PROGRAM NUMBER...
    found=
    program=$1
    shift
    for at in "$@"; do
        scenario=$(echo "$scenarios" | sed -n "${at}p")
        # shellcheck disable=SC2086
        timeout 300 "$program" $scenario >out 2>&1 && continue
        # A machine that is too slow has found nothing.
        grep -q '^violation' out || continue
        found=$scenario
        return 0
    done
}
# The original: no violation; and what each scenario reaches.
export REACH=pcs
mkdir reach
for name in $core; do
    compile "src/$name.c" "reach/$(echo "$name" | tr / _).o" -Og -g -fno-pie \
        -fsanitize-coverage=trace-pc
done
for name in $explorer; do
    compile "tests/world/explore/$name.c" "reach/$name.o" -fno-pie
done
compile "$root/tests/world/sim/reached.c" reach/reach.o -fno-pie
# shellcheck disable=SC2086
${CC:-cc} -no-pie reach/*.o $wraps -o original
while read -r at; do
    hunt ./original "$at"
    [ -z "$found" ] || { cat out; echo "the original fails: $found"; exit 1; }
    sed "s/$/ $at/" pcs >>reached
done <numbers
reach_index original <reached

sed "1,/<<'MUTANTS'/d" "$list" | sed '/^MUTANTS$/,$d' >mutants
number=0 caught=0 total=0 unreached=0 wrong=0
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
        wrong=1
    elif ! compile "src/$file" mutant.o 2>/dev/null; then
        echo "$number invalid - $name"
        wrong=1
    else
        # shellcheck disable=SC2046
        reach_of "$file" numbers $(changed_lines keep "src/$file") >chosen
        objects=$(ls obj/*.o | grep -v "^$(object "${file%.c}")\$")
        # shellcheck disable=SC2086
        ${CC:-cc} $objects mutant.o $wraps -o mutant
        # shellcheck disable=SC2046
        hunt ./mutant $(cat chosen)
        verdict=survives
        [ -s chosen ] || verdict=unreached unreached=$((unreached + 1))
        if [ -n "$found" ]; then
            verdict=found caught=$((caught + 1))
        fi
        echo "$number $verdict [$found] $name: $(grep -m1 violation out || true)"
    fi
    cp keep "src/$file"
done <mutants
echo "$caught of $total found, $unreached not reached by any scenario"
[ "$total" -gt 0 ] || { echo "mutants.sh: no mutant has this name"; exit 2; }
[ "$caught" -gt 0 ] && [ "$wrong" -eq 0 ]
