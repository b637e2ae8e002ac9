#!/bin/sh
# find_mpi.sh CMAKE BUILD CC [install] - tests the compiler wrappers of the
# build, or of an installation: their options, and CMake's find_package(MPI).
set -eu
cmake=$1 bin=$2/bin cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
if [ $# -gt 3 ]; then
    "$cmake" --install "$2" --prefix "$work/prefix" >/dev/null
    bin=$work/prefix/lib/pccl/bin
fi

expect() # PATTERN COMMAND...: the output has the pattern
{
    pattern=$1
    shift
    "$@" >"$work/out" 2>&1 || :
    grep -q -e "$pattern" "$work/out" && return
    echo "$*: no '$pattern' in:"
    cat "$work/out"
    exit 1
}

refuse() # PATTERN COMMAND...: it fails, or the output does not have it
{
    pattern=$1
    shift
    "$@" >"$work/out" 2>&1 || return 0
    grep -q -e "$pattern" "$work/out" || return 0
    echo "$*: '$pattern' in:"
    cat "$work/out"
    exit 1
}

mpicc=$bin/mpicc
expect '-lmpi_pccl' "$mpicc" -show x.c
expect '-I.*-lmpi_pccl' "$mpicc" -link-info
expect '-I' "$mpicc" -compile-info
expect 'not Open MPI' "$mpicc" -showme:compile
refuse '' "$mpicc" -showme:compile
refuse lmpi_pccl "$mpicc" -show -c x.c
refuse lmpi_pccl "$mpicc" -compile-info
expect '^other ' "$mpicc" -cc=other -show x.c
expect '^other ' env MPICH_CC=other "$mpicc" -show x.c
expect '-lspy -L' "$mpicc" -profile=spy -show x.c
expect 'cannot read' "$mpicc" -config=none -show x.c
expect 'usage' "$mpicc" -help
expect 'PCCL/MPI' "$mpicc" -v

cat >"$work/ring.c" <<'END'
#include <mpi.h>
#include <mpi_pccl.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, sum %d, \"%s\"\n", size, sum, TEXT);
    MPI_Finalize();
    return 0;
}
END
"$mpicc" "-DTEXT=\"two words\"" -o "$work/ring" "$work/ring.c"
expect '1 ranks, sum 0, "two words"' "$work/ring"
expect '3 ranks, sum 3' "$bin/mpirun" -n 3 "$work/ring"

if [ -x "$bin/mpicxx" ]; then
    cp "$work/ring.c" "$work/ring.cc"
    "$bin/mpicxx" "-DTEXT=\"C++\"" -o "$work/ringxx" "$work/ring.cc"
    expect '2 ranks, sum 1, "C++"' "$bin/mpiexec" -n 2 "$work/ringxx"
fi

languages=C
[ -x "$bin/mpicxx" ] && languages="$languages CXX"
[ -x "$bin/mpifort" ] && languages="$languages Fortran"
cat >"$work/sum.f90" <<'END'
program sum
    use mpi
    implicit none
    integer :: rank, total, ierr
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, &
                       MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(a,i0)', 'Fortran, sum ', total
    call MPI_Finalize(ierr)
end program
END
[ -e "$work/ring.cc" ] || cp "$work/ring.c" "$work/ring.cc"
cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.10)
project(ring $languages)
find_package(MPI REQUIRED COMPONENTS $languages)
add_executable(found ring.c)
target_compile_definitions(found PRIVATE "TEXT=\"found\"")
target_link_libraries(found MPI::MPI_C)
if(MPI_CXX_FOUND)
    add_executable(found_cxx ring.cc)
    target_compile_definitions(found_cxx PRIVATE "TEXT=\"C++\"")
    target_link_libraries(found_cxx MPI::MPI_CXX)
endif()
if(MPI_Fortran_FOUND)
    add_executable(found_fortran sum.f90)
    target_link_libraries(found_fortran MPI::MPI_Fortran)
endif()
set(run "'\${MPIEXEC_EXECUTABLE}' \${MPIEXEC_NUMPROC_FLAG} 2")
file(WRITE \${CMAKE_BINARY_DIR}/run "\${run} \${CMAKE_BINARY_DIR}/found\n")
file(WRITE \${CMAKE_BINARY_DIR}/run_cxx
    "\${run} \${CMAKE_BINARY_DIR}/found_cxx\n")
file(WRITE \${CMAKE_BINARY_DIR}/run_fortran
    "\${run} \${CMAKE_BINARY_DIR}/found_fortran\n")
END
if ! { "$cmake" -S "$work" -B "$work/b" -DMPI_HOME="$bin/.." \
        -DCMAKE_C_COMPILER="$cc" && "$cmake" --build "$work/b"
    } >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
fi
expect 'mpiexec' cat "$work/b/run"
expect "$(cd "$bin" && pwd)/mpiexec\|$bin/../bin/mpiexec" cat "$work/b/run"
expect '2 ranks, sum 1, "found"' sh "$work/b/run"
case $languages in *CXX*)
    expect '2 ranks, sum 1, "C++"' sh "$work/b/run_cxx" ;;
esac
case $languages in *Fortran*)
    expect 'Fortran, sum 1' sh "$work/b/run_fortran" ;;
esac
