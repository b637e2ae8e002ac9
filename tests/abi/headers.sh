#!/bin/sh
# headers.sh CC CXX INCLUDE [MPI_INCLUDE] - each public header compiles by
# itself, after the other one and twice, as C99 and as C++11, without a warning.
# CXX may be empty; without MPI_INCLUDE it is pccl.h only.
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
    if [ -z "$mpi" ]; then continue; fi
    compile "$compiler" mpi_pccl.h
    compile "$compiler" pccl.h mpi_pccl.h
    compile "$compiler" mpi_pccl.h pccl.h mpi_pccl.h
done
exit $((faults != 0))
