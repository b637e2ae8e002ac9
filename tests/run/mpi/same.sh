#!/bin/sh
# same.sh MPIEXEC MASTER LIBS RANKS PROGRAM - tests that the program prints the
# same lines under MPICH and under our library.
set -eu
mpiexec=$1 master=$2 libs=$3 ranks=$4 program=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
unset LD_LIBRARY_PATH
"$mpiexec" -n "$ranks" "$program" >"$work/mpich"
LD_LIBRARY_PATH=$libs "$master" -n "$ranks" "$program" >"$work/ours"
test -s "$work/mpich"
diff "$work/mpich" "$work/ours"
