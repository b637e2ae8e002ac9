#!/bin/sh
# every_algorithm.sh MASTER BENCH COLLECTIVE:NAME... - runs the collectives of
# pccl-bench with each algorithm forced, on 3 processes; results are checked.
set -eu
master=$1 bench=$2
shift 2
for forced in "$@"; do
    case $forced in
    allreduce:*) op=allreduce ;;
    broadcast:*) op=bcast ;;
    allgather:*) op=allgather ;;
    alltoallv:*) op=alltoall ;;
    esac
    echo "PCCL_ALGORITHM=$forced"
    PCCL_ALGORITHM=$forced "$master" -n 3 "$bench" --op "$op" \
        --sizes 24,12K,96K,300K --seconds 0.02
done
