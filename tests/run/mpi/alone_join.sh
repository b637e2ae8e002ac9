#!/bin/sh
# alone_join.sh MASTER UNTIL - a coordinator alone, and launchers on other hosts
# that join: they found the run when as many as its quorum are there; a later
# one waits for the members' update.
set -eu
master=$1 until=$2
work=$(mktemp -d)
jobs=
trap 'for job in $jobs; do kill $job 2>/dev/null || :; done; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

await() # PATTERN FILE COUNT
{
    tries=0
    until [ "$(grep -c -- "$1" "$2")" -ge "$3" ]; do
        tries=$((tries + 1))
        if [ $tries = 30000 ]; then
            echo "no '$1'"
            tail -n 50 "$work"/*
            exit 1
        fi
        sleep 0.01 # for a line of another process
    done
}

timeout 300 "$master" --listen 127.0.0.1:0 --quorum 3 --until-done -v \
    >"$work/alone" 2>&1 &
jobs=$!
await 'listening on' "$work/alone" 1
address=$(sed -n 's/.*listening on //p' "$work/alone")

join() # NAME RANKS
{
    timeout 300 "$master" --join "$address" -n "$2" --elastic \
        "$until" "$work/over" update >"$work/$1" 2>&1 &
    jobs="$jobs $!"
}

join one 1
join two 2
await 'rank . of 3' "$work/one" 1
await 'rank . of 3' "$work/two" 2
join three 1
await 'rank 3 of 4' "$work/three" 1
: >"$work/over"
for job in $jobs; do
    status=0
    wait "$job" || status=$?
    [ $status = 0 ] || { tail -n 50 "$work"/*; exit 1; }
done
grep -q 'first view: epoch 1, 3 ranks' "$work/alone"
