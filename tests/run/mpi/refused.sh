#!/bin/sh
# refused.sh MASTER NATIVE JOIN - what a coordinator refuses is final, and is said
# once, by NATIVE, a program of pccl.h, and by JOIN, one of MPI: alone, of a list,
# and as a task of srun, which waits for a coordinator that is not there yet.
set -eu
master=$1 native=$2 join=$3
work=$(mktemp -d)
coordinator=
trap 'kill $coordinator 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
unset PCCL_MASTER PCCL_TOKEN_FILE PCCL_INSECURE PCCL_RANK
export PCCL_LOG_LEVEL=info

# Of a step with that number, where the tasks of srun look for it.
port=$((20000 + ($$ % 12000 * 64 + 3) % 12000))
"$master" --make-token "$work/key" >/dev/null
"$master" --listen "127.0.0.1:$port" --token-file "$work/key" >"$work/master" 2>&1 &
coordinator=$!
until grep -q listening "$work/master"; do
    kill -0 $coordinator || { cat "$work/master"; exit 1; }
    sleep 0.05 # for another process
done

refused() # PROGRAM...
{
    status=0
    timeout 300 "$@" >"$work/out" 2>&1 || status=$?
    if [ $status = 0 ] || [ $status = 124 ] ||
        [ "$(grep -c 'INFO: not admitted to the run: this run has a key' "$work/out")" != 1 ]
    then
        echo "$* ended with $status:"
        cat "$work/out"
        exit 1
    fi
}
for list in "127.0.0.1:$port" "127.0.0.1:1,127.0.0.1:$port,127.0.0.1:2"; do
    PCCL_MASTER=$list refused "$native" launched
    PCCL_MASTER=$list refused "$join" 1
    grep -q "cannot join the run at $list: .*this run has a key" "$work/out"
done
export SLURM_JOB_ID=$$ SLURM_STEP_ID=3 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1
export SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=here
refused "$join" 2
unset SLURM_JOB_ID

# A name without a port is an address, and one that is none is said to be none.
PCCL_MASTER=127.0.0.9 "$join" 1 >"$work/out" 2>&1 && exit 1
grep -q 'at 127.0.0.9:48148' "$work/out"
PCCL_MASTER='no address' "$join" 1 >"$work/out" 2>&1 && exit 1
grep -q 'PCCL_MASTER=no address: it is not host:port' "$work/out"
