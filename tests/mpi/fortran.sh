#!/bin/sh
# fortran.sh MASTER SUM.f90 - builds a Fortran program with MPICH's wrapper and
# runs it with this library; 77 without the wrapper.
set -eu
command -v mpif90.mpich >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
# The wrapper's library path must not be ours while it compiles.
mpif90.mpich -J "$work" -o "$work/sum" "$2" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 77
}
# The same with mpif.h; its line length and form are those of old Fortran.
sed 's/^    use mpi$//; s/^    implicit none$/    implicit none\
    include "mpif.h"/' "$2" >"$work/old.f90"
mpif90.mpich -o "$work/old" "$work/old.f90" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
for program in sum old; do
    for ranks in 1 2 4; do
        out=$(timeout 60 "$1" -n $ranks "$work/$program" 2>&1) || {
            echo "$program: $out"
            exit 1
        }
        echo "$out" | grep -q "all right with $ranks ranks"
    done
done
