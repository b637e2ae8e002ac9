#!/bin/sh
# limits_sweep.sh PCCL_MASTER PROGRAM - a job of four under limits of memory,
# data, locked memory and processes, of its ranks, its launcher or its user, from
# tiny ones upwards: it runs, or ends with a sentence that names the limit and with no
# other one. Coarse steps; PCCL_SOAK=1: fine ones.
set -u
master=$1 program=$2
soak=${PCCL_SOAK:-}
unset PCCL_SOAK
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
wrong=0

fail() # WHAT
{
    echo "ulimit $option $limit of the $whose: $1"
    cat "$work/err"
    wrong=1
}

judge()
{
    # The loader, and libgomp when it is loaded, end a program in their own
    # words.
    ! grep -qE 'error while loading shared|^libgomp: Out of|sh: .*[Cc]annot' \
        "$work/err" || return 0
    [ $status != 0 ] || return 0
    [ $status != 124 ] || fail "it hangs"
    grep -q "(ulimit $option" "$work/err" ||
        fail "status $status, and no sentence"
    ! grep -E 'Fatal error|cannot listen' "$work/err" |
        grep -qv "(ulimit $option" ||
        fail "status $status, and another sentence, too"
    ! grep -qiE 'firewall|evicted|silent|which user|cannot exchange' \
        "$work/err" || fail "a wrong reason"
}

try() # with $whose, $option and $limit
{
    status=0
    if [ "$whose" = ranks ]; then
        timeout 300 "$master" -n 4 sh -c \
            "ulimit $option $limit; exec '$program'" \
            >"$work/out" 2>"$work/err" </dev/null || status=$?
    elif [ "$whose" = user ]; then
        timeout 300 setpriv --reuid="$user" --clear-groups \
            prlimit --nproc="$limit" "$master" -n 4 "$program" \
            >"$work/out" 2>"$work/err" </dev/null || status=$?
    else
        timeout 300 sh -c \
            "ulimit $option $limit; exec '$master' -n 4 '$program'" \
            >"$work/out" 2>"$work/err" </dev/null || status=$?
    fi
    judge
}

sweep() # WHOSE OPTION FROM STEP TO ENOUGH
{
    whose=$1 option=$2 limit=$3 step=$4
    [ -z "$soak" ] || step=$((step / 16 + 1))
    while [ "$limit" -le "$5" ]; do
        try
        limit=$((limit + step))
    done
    limit=$6
    try
    [ $status = 0 ] || fail "it does not run"
}

# Coarse steps end below the room that the links take, which differs by host.
v=36000 d=28500 l=64000
[ -z "$soak" ] || v=64000 d=50000 l=100000
sweep ranks -v 4000 4000 $v 4000000
sweep ranks -d 500 4000 $d 4000000
sweep launcher -v 12000 4000 28000 4000000
sweep launcher -v 32000 16000 $l 4000000
sweep ranks -l 0 64 64 0
# A user who has no other processes, whom only root can become.
user=$((64000 + $$ % 1000))
if [ "$(id -u)" = 0 ] && setpriv --reuid=$user --clear-groups \
    test -x "$master" -a -x "$program"; then
    sweep user -u 1 1 12 64
fi
exit $wrong
