#!/bin/sh
# epoch.sh MASTER MANY - tests that many operations complete within the job's
# first epoch: no table of the library fills up.
set -eu
out=$("$1" -v -n 2 "$2" 200000 2>&1) || { echo "$out"; exit 1; }
echo "$out"
first=$(echo "$out" | sed -n 's/.*first view: epoch \([0-9]*\),.*/\1/p')
last=$(echo "$out" | sed -n 's/.* left, epoch \([0-9]*\) .*/\1/p' | head -n 1)
[ -n "$first" ] && [ "$first" = "$last" ]
