#!/bin/sh
# elastic.sh MASTER PROGRAM RANKS CASE - runs a case of mpi_elastic.c. Checks how
# the job ends, and what it says.
set -eu
master=$1 program=$2 ranks=$3 name=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

fail()
{
    echo "$1"
    cat "$work/out"
    exit 1
}

# How often a line with the text is there.
count()
{
    grep -c "$1" "$work/out" || :
}

unset PCCL_LOST_ROOT PCCL_ON_FAILURE
# 75: the program has not opted in.
option=--elastic expected=75 told=2 case=$name
sentence="1 of $ranks ranks was lost in call [0-9]*; results hold what $((
    ranks - 1)) ranks\{0,1\} contributed"
case $name in
bcast_nobody) expected=101 told="any number of" ;;
bcast_promoted)
    case=bcast_nobody
    export PCCL_LOST_ROOT=promote
    ;;
halo) expected=101 told=0 ;;
pending | mix | derived | gather_all | asks) told=0 ;;
halo_ulfm | pccl | mpix | scatter | number) told=0 expected=0 ;;
forced | gather) option=--elastic=force expected=0 ;;
esac
status=0
timeout 300 "$master" "$option" -n "$ranks" "$program" "$case" \
    >"$work/out" 2>&1 || status=$?
[ $status = $expected ] || fail "status $status, not $expected"
[ "$told" = "any number of" ] || [ "$(count "$sentence")" = "$told" ] ||
    fail "not told $told times"
case $name in
bcast_nobody)
    [ "$(count 'PCCL_LOST_ROOT=promote')" -gt 0 ] || fail "no advice"
    ;;
halo)
    [ "$(count 'rank 1 was lost; .*--restart')" -gt 0 ] || fail "no advice"
    [ "$(count 'called MPI_Abort')" = 0 ] || fail "another reason"
    ;;
domain) [ "$(count 'lost in call 11;')" = 2 ] || fail "another call" ;;
esac
[ $status = 101 ] || [ "$(count 'went on')" = $((ranks - 1)) ] ||
    fail "not all survivors went on"
