#!/bin/sh
# spare.sh MASTER JOIN - tests two ranks and two spares. One rank dies before it
# connects: exactly one spare joins the other rank.
set -eu
master=$1 join=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

status=0
timeout 300 "$master" --spares 2 -n 2 sh -c \
    '[ "${RANK-}" != 1 ] || kill -9 $$; exec "$0" 2' "$join" \
    >"$work/out" 2>&1 || status=$?
grep -q '^2 ranks, 1 of them newcomers' "$work/out" || status=1
grep -q 'spare 2 takes part' "$work/out" || status=1
[ $status = 0 ] || cat "$work/out"
exit $status
