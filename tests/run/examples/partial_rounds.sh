#!/bin/sh
# partial_rounds.sh BIN - examples/partial_rounds without faults: every round has the whole
# vector. Who contributed depends on how busy the machine is.
set -eu
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
timeout 300 "$bin/pccl-master" -n 3 "$bin/partial_rounds" --rounds 8 \
    --deadline 20000 >"$work/out" 2>"$work/err" && awk -F, '
    NF != 5 || $2 != 3 || $3 != 100 || $4 < 1 || $4 > 3 { bad = 1 }
    END { exit bad || NR != 8 }' "$work/out" ||
    { echo "partial_rounds.sh: not what it should print"; cat "$work"/*; exit 1; }
