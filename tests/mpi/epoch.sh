#!/bin/sh
# epoch.sh MASTER MANY - that many operations are done in the epoch that the
# job began with: no table of the library fills up.
set -eu
out=$("$1" -v -n 2 "$2" 200000 2>&1) || { echo "$out"; exit 1; }
echo "$out"
first=$(echo "$out" | sed -n 's/.*first view: epoch \([0-9]*\),.*/\1/p')
last=$(echo "$out" | sed -n 's/.* left, epoch \([0-9]*\) .*/\1/p' | head -n 1)
[ -n "$first" ] && [ "$first" = "$last" ]
