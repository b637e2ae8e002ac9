#!/bin/sh
# diloco.sh BIN PROGRAM NEWCOMERS TEXT - 3 ranks train; one dies in outer step
# 3; after step 6 the other two wait for newcomers, who come all in one step.
# Every outer step has the same hash on all ranks that took part in it, each
# newcomer received the state, all end, and the loss fell.
set -eu
bin=$1 program=$2 newcomers=$3 text=$4
world=$((newcomers + 2)) steps=16
work=$(mktemp -d)
jobs= output=
trap 'for job in $jobs; do kill "$job" 2>/dev/null || :; done; wait
    rm -rf "$work"' EXIT

fail()
{
    printf '%s\n' "$program: $*" "$output"
    exit 1
}

# The time limit is for bugs only.
launch() # pccl-master arguments, -- program's arguments
{
    "$bin/pccl-master" --timeout 300 "$@" --outer $steps --inner 8 --batch 16 \
        --hidden 16 --hashes "$text" >"$work/out" 2>&1 3<&- &
    jobs="$jobs $!"
}

mkfifo "$work/out"
launch -n 3 --elastic "$bin/$program" --die 1:3 --min $world:6
exec 3<"$work/out"
address='' joined=
while IFS= read -r line <&3; do
    output="$output$line
"
    case $line in
    'pccl-master: listening on '*) [ "$address" ] || address=${line##* } ;;
    'outer 6 members 2 '*)
        [ "$joined" ] || launch --join "$address" -n "$newcomers" \
            "$bin/$program" --min $world
        joined=1 ;;
    esac
done
for job in $jobs; do wait "$job" || fail "a launcher failed"; done
jobs=

lines() { printf '%s' "$output" | grep -E -c "$1" || :; }
[ "$(lines "^rank ./[1-9]: done, ")" = $world ] || fail "not all ranks ended"
[ "$(lines '^rank .: received [0-9]+ bytes for step [67]$')" -ge \
    "$newcomers" ] || fail "a newcomer did not receive the state"
[ "$(lines "^outer 3 members 3 ")" = 3 ] || fail "step 3 lacks a rank"
[ "$(lines "^outer 6 members 2 ")" = 2 ] || fail "step 6 not by two ranks"
[ "$(lines "^outer $steps members $world ")" = $world ] ||
    fail "the last step lacks a rank"
printf '%s' "$output" | awk -v steps=$steps '
    $1 != "outer" { next }
    ($2 in hash) && hash[$2] != $6 { print "hashes differ in step " $2; bad = 1 }
    { hash[$2] = $6; loss[$2] = $8 }
    END {
        for (k = 1; k <= steps; k++)
            if (!(k in hash)) { print "no step " k; bad = 1 }
        if (loss[steps] > loss[1] - 0.3) {
            print "loss " loss[1] " -> " loss[steps]; bad = 1
        }
        exit bad
    }' || fail "see above"
