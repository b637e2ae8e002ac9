#!/bin/sh
# slurm.sh JOIN - tests three tasks started like srun's: they connect without
# an explicit pccl-master, and its process ends with them.
set -eu
join=$1
work=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
unset PCCL_MASTER

export SLURM_JOB_ID=$$ SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=3
export SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST='node[07-09]'
# On several hosts, without a key: each ends at once, with one sentence.
for rank in 1 0; do
    unset PCCL_TOKEN_FILE PCCL_INSECURE
    status=0
    SLURM_STEP_NUM_NODES=2 SLURM_PROCID=$rank timeout 300 "$join" 3 \
        >"$work/refused" 2>&1 || status=$?
    if [ $status = 0 ] || [ $status = 124 ] ||
        [ "$(grep -c 'this run has no key' "$work/refused")" != 1 ]; then
        cat "$work/refused"
        exit 1
    fi
done

status=0
for rank in 2 1 0; do
    SLURM_PROCID=$rank timeout 300 "$join" 3 >"$work/$rank" 2>&1 &
    pids="$pids $!"
done
for pid in $pids; do wait $pid || status=$?; done
pids=
grep -q '^3 ranks, 0 of them newcomers' "$work/0" || status=1
# its port is free again
port=$(printf ':%04X ' $((20000 + ($$ % 12000 * 64 + 1) % 12000)))
tries=0
while cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q "$port.* 0A "; do
    tries=$((tries + 1))
    if [ $tries = 6000 ]; then
        echo "the coordinator is still there"
        status=1
        break
    fi
    sleep 0.05 # for the end of another process
done
[ $status = 0 ] || cat "$work"/*
exit $status
