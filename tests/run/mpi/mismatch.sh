#!/bin/sh
# mismatch.sh MASTER MISMATCH BORDERS RANKS auto|tcp - runs MISMATCH with the
# sizes at which the library chooses another algorithm.
set -eu
master=$1 program=$2 borders=$3 ranks=$4 transport=$5
place=memory
if [ "$transport" = tcp ]; then place=tcp; fi
export PCCL_TRANSPORT="$transport"
# shellcheck disable=SC2046 # words and numbers
exec "$master" -n "$ranks" "$program" "${SECONDS_MOST:-300}" \
    "${FIRST_CASE:-0}" \
    $("$borders" "$place" "$ranks")
