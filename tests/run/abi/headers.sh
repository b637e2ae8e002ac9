#!/bin/sh
# headers.sh CC CXX INCLUDE [MPI_INCLUDE] - each public header compiles by
# itself, after the other one and twice, as C99 and as C++11, without a warning;
# and so does code made for PCCL 1.0's headers. CXX may be empty; without
# MPI_INCLUDE it is the native headers only.
set -eu
cc=$1 cxx=$2 include=$3 mpi=${4:-}
warnings='-Wall -Wextra -Wpedantic -Wundef -Wshadow -Werror'
faults=0

compile() # "COMPILER STANDARD LANGUAGE" HEADER...
{
    compiler=$1
    shift
    # shellcheck disable=SC2086 # several words
    for header in "$@"; do echo "#include <$header>"; done |
        $compiler $warnings -I"$include" ${mpi:+-isystem "$mpi"} \
            -fsyntax-only - || {
        echo "$compiler: $*"
        faults=$((faults + 1))
    }
}

for compiler in "$cc -std=c99 -Wstrict-prototypes -x c" \
        ${cxx:+"$cxx -std=c++11 -x c++"}; do
    compile "$compiler" pccl.h
    compile "$compiler" pccl.h pccl.h
    compile "$compiler" ccoip.h ccoip_inet.h pccl.h
    compile "$compiler" pccl_loop.h
    compile "$compiler" pccl_train.h
    $compiler $warnings -I"$include" -fsyntax-only "$(dirname "$0")/pccl_1_0.c" ||
        faults=$((faults + 1))
    if [ -z "$mpi" ]; then continue; fi
    compile "$compiler" mpi_pccl.h
    compile "$compiler" pccl.h mpi_pccl.h
    compile "$compiler" mpi_pccl.h pccl.h mpi_pccl.h
    compile "$compiler" mpi.h mpi.h
    compile "$compiler" mpi-ext.h mpi_pccl.h mpi-ext.h
done
exit $((faults != 0))
