#!/bin/sh
# train.sh BIN PROGRAM TEXT - a training of 3 ranks of which one dies: both
# survivors end, with equal weights, and the same number of steps as asked for.
# The last one of two, which nobody can join, discards its step and ends with an
# error.
set -eu
bin=$1 program=$2 text=$3

fail()
{
    printf '%s\n' "$program: $*" "$output"
    exit 1
}

output=
[ -r "$text" ] || fail "no text"
status=0
output=$("$bin/pccl-master" -n 3 --elastic=force --timeout 300 "$bin/$program" \
    --steps 40 --batch 48 --hidden 16 --die 1:17 "$text" 2>&1) || status=$?
[ "$status" = 0 ] || fail "exit status $status"
ends=$(printf '%s\n' "$output" | grep -c '^rank ./2: done, ') || :
[ "$ends" = 2 ] || fail "$ends of 2 ranks ended"
weights=$(printf '%s\n' "$output" | sed -n 's/.*weights \([0-9a-f]*\)$/\1/p')
[ "$(printf '%s\n' "$weights" | sort -u | wc -l)" = 1 ] || fail "weights differ"
# The operation of the step before may have died with its only holder.
printf '%s\n' "$output" | grep -q '^step   1[78]  2 ranks ' ||
    fail "rank 0 did not see the loss in step 17 or 18"

status=0
output=$("$bin/pccl-master" -n 2 --elastic --timeout 300 "$bin/$program" \
    --steps 40 --batch 48 --hidden 16 --die 0:17 "$text" 2>&1) || status=$?
[ "$status" != 0 ] || fail "a training that ended early has status 0"
printf '%s\n' "$output" | grep -q 'alone in step 1[67], which it discards' ||
    fail "the survivor did not say that it is alone"
! printf '%s\n' "$output" | grep '^step .* 1 ranks ' || fail "a step of one rank"
