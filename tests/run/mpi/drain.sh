#!/bin/sh
# drain.sh MASTER UNTIL - ranks that are asked to leave do so at their next
# update: one rank, all of a host, by the operator and by a signal. The others
# go on, and nothing replaces who has left. So do ranks of a program that asks
# whether an update is needed.
set -eu
master=$1 until=$2
work=$(mktemp -d)
job= mode=update
trap '[ -z "$job" ] || kill $job 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

fail() # WHAT
{
    echo "$1"
    tail -n 50 "$work"/*
    exit 1
}

await() # PATTERN FILE COUNT
{
    tries=0
    until [ "$(grep -c -- "$1" "$2")" -ge "$3" ]; do
        tries=$((tries + 1))
        [ $tries != 30000 ] || fail "no '$1'"
        sleep 0.01 # for a line of another process
    done
}

begin() # RANKS OPTIONS
{
    ranks=$1
    shift
    rm -f "$work/over"
    : >"$work/out"
    timeout 300 "$master" "$@" -n "$ranks" "$until" "$work/over" $mode \
        >"$work/out" 2>&1 &
    job=$!
    await "rank . of $ranks" "$work/out" "$ranks"
    # timeout is between us and the launcher
    launcher=$(cat "/proc/$job/task/$job/children")
    launcher=${launcher% }
}

finish() # RANKS: that many are left
{
    : >"$work/over"
    status=0
    wait $job || status=$?
    job=
    [ $status = 0 ] || fail "status $status"
    grep -q "over with $1 ranks" "$work/out" || fail "not $1 ranks"
}

begin 4 --elastic --respawn
"$master" --drain 2 --pid "$launcher" >"$work/answer" 2>&1 || fail "--drain 2"
grep -q '1 rank will leave at the next update' "$work/answer" || fail answer
await 'rank 2 has left; 3 left' "$work/out" 1
if "$master" --drain 9 --pid "$launcher" >"$work/answer" 2>&1; then
    fail "--drain 9"
fi
grep -q '9 is no rank and no host' "$work/answer" || fail "refusal of 9"
finish 3
if grep -q 'a new one starts\|joined' "$work/out"; then fail "it came again"; fi

mode=ask
begin 3 --elastic
"$master" --drain 1 --pid "$launcher" >"$work/answer" 2>&1 || fail "ask"
await 'rank 1 has left; 2 left' "$work/out" 1
finish 2
mode=update

begin 4 --elastic --launcher fork -hosts localhost:2,far:2
"$master" --drain far --pid "$launcher" >"$work/answer" 2>&1 || fail "far"
await 'has left' "$work/out" 2
finish 2

# the signal of a batch system, to one rank and to a launcher of --join
export PCCL_DRAIN_SIGNAL=USR2
begin 2 --elastic -v
address=$(sed -n 's/.*listening on //p' "$work/out")
timeout 300 "$master" --join "$address" -n 2 "$until" "$work/over" update \
    >"$work/join" 2>&1 &
join=$!
await 'rank . of [34], pid' "$work/join" 2
second=$(cat "/proc/$join/task/$join/children")
kill -USR2 $second
wait $join || fail "the launcher of --join: $?"
await 'has left' "$work/join" 2
finish 2
unset PCCL_DRAIN_SIGNAL

begin 2
if "$master" --drain 1 --pid "$launcher" >"$work/answer" 2>&1; then
    fail "a job that is not elastic"
fi
grep -q 'not elastic' "$work/answer" || fail "refusal"
finish 2
