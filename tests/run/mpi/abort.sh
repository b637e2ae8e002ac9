#!/bin/sh
# abort.sh MASTER SURVIVE - tests the default reaction to a killed rank: under
# the launcher's supervision, and with ranks started by hand; and that a rank
# that ends the run evicts nobody.
set -eu
master=$1 survive=$2
work=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

fail()
{
    echo "$1"
    cat "$work"/*
    exit 1
}

status=0
timeout 300 "$master" -n 3 "$survive" abort >"$work/out" 2>&1 || status=$?
[ $status = 137 ] || fail "status $status, not 137"
grep -q 'rank 1 .*killed by signal 9\|process lost: rank 1' "$work/out" ||
    fail "rank 1 is not named"

# The coordinator drops all members of a run that one ends; that evicts nobody.
status=0
timeout 300 "$master" -n 3 -print-all-exitcodes "$survive" ends_all \
    >"$work/out" 2>&1 || status=$?
[ $status = 7 ] || fail "status $status, not 7"
if grep -q evicted "$work/out"; then fail "a rank counts as evicted"; fi

: >"$work/master"
"$master" --listen 127.0.0.1:0 --quorum 3 >"$work/master" 2>&1 &
pids=$!
tries=0
until grep -q listening "$work/master" || [ $tries = 30000 ]; do
    tries=$((tries + 1))
    sleep 0.01 # for a line of another process
done
port=$(sed -n 's/.*listening on //p' "$work/master")
for rank in 0 1 2; do
    PCCL_MASTER=$port PCCL_RANK=$rank timeout 300 "$survive" abort \
        >"$work/rank$rank" 2>&1 &
    eval "pid$rank=$!"
    pids="$pids $!"
done
for rank in 0 1 2; do
    status=0
    eval "wait \$pid$rank" || status=$?
    [ $rank = 1 ] && expected=137 || expected=101
    [ $status = "$expected" ] ||
        fail "rank $rank ended with $status instead of $expected"
    [ $rank = 1 ] || grep -q 'Abort(101).*PCCL_ON_FAILURE' "$work/rank$rank" ||
        fail "rank $rank does not say why it ends"
done
# The first rank that notices the loss ends the run; others may notice that end
# before the loss.
grep -q 'process lost: rank 1' "$work/rank0" "$work/rank2" ||
    fail "nobody says who was lost"
