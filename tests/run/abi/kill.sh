#!/bin/sh
# kill.sh MASTER PROGRAM RANKS - the program of kill.c loses a rank of RANKS.
set -eu
out=$(timeout 300 "$1" --elastic=force -n "$3" "$2" 2>&1) || {
    echo "$out"
    exit 1
}
echo "$out"
left=$(($3 > 1 ? $3 - 1 : 1))
echo "$out" | grep -q "$left of $3 ranks left, 0 faults"
