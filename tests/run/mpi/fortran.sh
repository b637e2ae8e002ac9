#!/bin/sh
# fortran.sh MASTER SOURCES - builds the Fortran programs with MPICH's wrapper
# and runs the same binaries under MPICH and with this library; then builds them
# with our wrapper. Exits with 77 without MPICH's wrapper.
set -eu
master=$1 sources=$2
command -v mpif90.mpich >/dev/null || {
    echo "skipped: no mpif90.mpich"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

run() # NAME COMMAND...: it says that all is right
{
    name=$1
    shift
    out=$(timeout 300 "$@" 2>&1) || {
        echo "$name: $*: $out"
        exit 1
    }
    echo "$out" | grep -q "all right with" || {
        echo "$name: $*: $out"
        exit 1
    }
}

# The wrapper's library path must not be ours while it compiles.
mpif90.mpich -J "$work" -o "$work/sum" "$sources/sum.f90" \
    >"$work/log" 2>&1 || {
    cat "$work/log"
    echo "skipped: mpif90.mpich does not work here"
    exit 77
}
# The same with mpif.h, in fixed source form.
sed 's/^    use mpi$//; s/^    implicit none$/    implicit none\
    include "mpif.h"/' "$sources/sum.f90" >"$work/include.f90"

build() # WRAPPER: all of them into $work
{
    for file in "$sources/sum.f90" "$work/include.f90" "$sources/kinds.f90" \
        "$sources/modern.f90" "$sources/old.f"; do
        program=$(basename "${file%.*}")
        "$1" -w -J "$work" -o "$work/$program" "$file" >"$work/log" 2>&1 || {
            echo "$1 $file:"
            cat "$work/log"
            exit 1
        }
    done
}

programs="sum include kinds modern old"
build mpif90.mpich
for program in $programs; do
    for ranks in 1 2 3 4; do
        run "$program" "$master" -n $ranks "$work/$program"
    done
    # MPICH spins while it waits: never more ranks than cores.
    command -v mpiexec.mpich >/dev/null || continue
    LD_LIBRARY_PATH='' run "$program" mpiexec.mpich -n 2 "$work/$program"
done

# Ours finds this library without any environment.
wrapper=$(dirname "$master")/mpifort
[ -x "$wrapper" ] || exit 0
build "$wrapper"
for program in $programs; do
    run "$program" env -u LD_LIBRARY_PATH "$work/$program"
    run "$program" "$master" -n 2 "$work/$program"
done
cat >"$work/version.f90" <<'END'
program version
    use mpi
    implicit none
    character(MPI_MAX_LIBRARY_VERSION_STRING) :: text
    integer :: length, ierr
    call MPI_Get_library_version(text, length, ierr)
    if (text(:4) == 'PCCL') print '(a)', 'all right with our library'
end program
END
"$wrapper" -o "$work/version" "$work/version.f90"
run version env -u LD_LIBRARY_PATH "$work/version"
