#!/bin/sh
# unequal.sh BIN - examples/unequal: each step has the samples that it is to
# have, made by all three, and all end with the same weights. No times.
set -eu
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
fail()
{
    echo "unequal.sh: $1"
    cat "$work/out"
    exit 1
}
timeout 300 "$bin/pccl-master" -n 3 "$bin/unequal" --speeds 1,1,8 --target 40 \
    --steps 8 --unit 4000 >"$work/out" 2>&1 || fail "the job failed"
grep '^step ' "$work/out" | awk '
    $2 != n++ ":" || $3 < 40 || $6 != 3 { bad = 1 }
    END { exit bad || n != 8 }' || fail "a step is not as it should be"
grep '^launched as' "$work/out" | sed 's/.*; //' | sort | uniq -c |
    awk '{ n = $1 } END { exit NR != 1 || n != 3 }' ||
    fail "the members have different weights"
# The samples of all steps are those that the members made.
awk '/^step / { steps += $3 } /^launched as/ { made += $4 }
    END { exit steps != made }' "$work/out" || fail "samples are lost"
