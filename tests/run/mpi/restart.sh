#!/bin/sh
# restart.sh MASTER PROGRAM - tests --restart with an MPI program that has
# checkpoints, and --respawn when the other ranks end before the new one joins.
set -eu
master=$1 program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

fail()
{
    echo "$1"
    cat "$work/out"
    exit 1
}

# OPTIONS... VICTIM: 3 ranks and 10 steps; each adds 0 + 1 + 2.
restart()
{
    status=0
    rm -f "$work"/checkpoint*
    eval "victim=\${$#}"
    timeout 300 "$master" --restart 2,0 -n 3 $1 "$program" "$work" 10 \
        "$victim" >"$work/out" 2>&1 || status=$?
    [ $status = 0 ] || fail "$*: status $status"
    grep -q '^start 0 from step 0$' "$work/out" || fail "$*: no first start"
    grep -q '^start 1 from step 5$' "$work/out" || fail "$*: no second start"
    grep -q '^sum 30$' "$work/out" || fail "$*: wrong sum"
    [ "$(grep -c 'restart [0-9] of 2$' "$work/out")" = 1 ] ||
        fail "$*: not one restart"
}

restart '' 1
restart '' 0 # the rank that writes the checkpoints
restart '--elastic 3' 2

status=0
rm -f "$work/replaced"
timeout 300 "$master" --respawn --elastic=force -n 3 "$program" "$work" 0 >"$work/out" 2>&1 ||
    status=$?
[ $status = 0 ] || fail "respawn: status $status"
[ "$(grep -c '^run$' "$work/out")" = 3 ] ||
    fail "respawn: the program did not run once on 3 ranks"
