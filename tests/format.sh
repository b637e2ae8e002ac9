#!/bin/sh
# format.sh ROOT - the C files are formatted as clang-format 14 does it (that of
# Debian 12) with .clang-format. Another version formats otherwise: 77 then, and
# where there is none.
set -eu
cd "$1"
version=14

have=$(clang-format --version 2>/dev/null |
    sed -n 's/.*version \([0-9]*\)\..*/\1/p')
if [ "$have" != "$version" ]; then
    echo "skipped: clang-format ${have:-missing}, the format is of $version"
    exit 77
fi
# generate.py writes the headers of MPI.
find include src kernels tests examples python \
    -name mpi.h -o \( -name '*.[ch]' -o -name '*.cu' \) -print0 |
    xargs -0 clang-format --dry-run -Werror
