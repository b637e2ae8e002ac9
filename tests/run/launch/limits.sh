#!/bin/sh
# limits.sh PCCL_MASTER PROGRAM - a job of four whose ranks have few descriptors:
# with each limit from 8 upwards it runs, or ends with one sentence that names
# the limit, in each rank that says anything.
set -u
master=$1 program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
wrong=0

fail() # LIMIT WHAT
{
    echo "$1 descriptors: $2"
    cat "$work/err"
    wrong=1
}

runs=0
limit=8
while [ $limit -le 32 ]; do
    status=0
    timeout 300 "$master" -n 4 sh -c "ulimit -n $limit; exec '$program'" \
        >"$work/out" 2>"$work/err" || status=$?
    if [ $status = 0 ]; then
        runs=$((runs + 1))
    else
        [ $runs = 0 ] || fail $limit "less than this is enough"
        grep -q '^Fatal error.*(ulimit -n)' "$work/err" ||
            fail $limit "status $status, and no sentence"
        ! grep '^Fatal error' "$work/err" | grep -qv '(ulimit -n)' ||
            fail $limit "status $status, and another sentence, too"
        ! grep -qiE 'firewall|evicted|which user|cannot exchange' \
            "$work/err" || fail $limit "a wrong reason"
    fi
    limit=$((limit + 1))
done
[ $runs -gt 0 ] || fail $limit "it never runs"
exit $wrong
