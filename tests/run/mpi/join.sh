#!/bin/sh
# join.sh MASTER JOIN - tests that three ranks join two running ones.
set -eu
master=$1 join=$2
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

: >"$work/out"
timeout 300 "$master" -v --elastic -n 2 "$join" 5 >"$work/out" 2>&1 &
pid=$!
tries=0
until grep -q 'first view' "$work/out" || [ $tries = 30000 ]; do
    tries=$((tries + 1))
    sleep 0.01 # for a line of another process
done
port=$(sed -n 's/.*listening on //p' "$work/out")
status=0
timeout 300 "$master" --join "$port" -n 3 "$join" 5 >"$work/newcomers" 2>&1 ||
    status=$?
wait $pid || status=$?
pid=
grep -q '^5 ranks, 3 of them newcomers' "$work/out" || status=1
[ $status = 0 ] || cat "$work"/*
exit $status
