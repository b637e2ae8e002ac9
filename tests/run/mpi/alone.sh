#!/bin/sh
# alone.sh COLL - a process without a coordinator is a world of one. It warns of
# variables that nobody knows, and when another launcher has started several; a
# warning that nobody reads is none.
set -eu
coll=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
unset PCCL_MASTER PCCL_DEADLINE

fail() # WHAT
{
    echo "$1"
    cat "$work/err"
    exit 1
}

run() # VARIABLES: of a process that ends well
{
    timeout 300 env "$@" "$coll" >"$work/out" 2>"$work/err" || fail "$*: $?"
}

run A=1
[ ! -s "$work/err" ] || fail "a plain world of one says something"
run PCCL_DEADLIN=3
grep -q 'PCCL_DEADLIN ' "$work/err" || fail "an unknown variable"
for names in SLURM_PROCID:SLURM_STEP_NUM_TASKS PMI_RANK:PMI_SIZE \
    OMPI_COMM_WORLD_RANK:OMPI_COMM_WORLD_SIZE FLUX_TASK_RANK:FLUX_JOB_SIZE; do
    rank=${names%:*} size=${names#*:}
    run $rank=0 $size=4
    grep -q 'started 4 processes, and each of them is a world of one' \
        "$work/err" || fail "$names: no warning"
    run $rank=3 $size=4
    [ ! -s "$work/err" ] || fail "$names: each of them warns"
    run $rank=0 $size=1
    [ ! -s "$work/err" ] || fail "$names: one task"
done
# Contract C7: nobody reads what the library says, and the program goes on.
{
    {
        sleep 1
        env PCCL_ON_FAILURE=wrong "$coll" >"$work/out" && echo well >"$work/end"
    } 2>&1 | :
} || :
grep -q well "$work/end" || fail "killed by what it says"
