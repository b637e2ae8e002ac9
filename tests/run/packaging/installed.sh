#!/bin/sh
# installed.sh CMAKE BUILD SOURCE CC LIB PYTHON - installs with DESTDIR, as the
# makers of packages do, compares the files, runs installed programs, and builds
# programs with the installed wrapper; and with pkg-config and CMake against the
# build, which was not installed.
set -eu
cmake=$1 build=$2 source=$3 cc=$4 lib=$5 python=$6
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "$build/installed.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

DESTDIR=$work "$cmake" --install "$build" --prefix /usr >/dev/null
[ "$(ls "$work")" = usr ]
sh "$here/files.sh" "$work/usr" "$lib" "$python"

echo "installed programs"
"$work/usr/bin/pccl-master" --version
"$work/usr/bin/pccl-bench" --ranks 2 --sizes 1000 --seconds 0.01 >"$work/out"
grep -q ' 1000 ' "$work/out"
"$work/usr/bin/pccl-master" -n 1 "$work/usr/lib/pccl/churn-mpi" \
    >"$work/out" 2>&1 || grep -q 'is started by pccl-bench' "$work/out"

runs() # LAUNCHER PROGRAM
{
    "$1" --timeout 300 -n 2 "$2" >"$work/out"
    [ "$(grep -c '^2 4, sum of 2 peers$' "$work/out")" = 2 ]
}

echo "the installed mpicc"
PATH=$work/usr/lib/pccl/bin:$PATH
cat >"$work/ranks.c" <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int size, one = 1;
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&one, &size, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d ranks\n", size);
    return MPI_Finalize();
}
END
for name in mpicc mpicc_abi; do
    $name -cc="$cc" "$work/ranks.c" -o "$work/ranks"
    mpiexec --timeout 300 -n 2 "$work/ranks" >"$work/out"
    [ "$(grep -c '^2 ranks$' "$work/out")" = 2 ]
done

if command -v pkg-config >/dev/null; then
    echo "pkg-config, not installed"
    for package in pccl pccl_train mpi_pccl mpi_abi; do
        [ "$(PKG_CONFIG_PATH=$build pkg-config --modversion $package)" = \
            "$("$work/usr/bin/pccl-master" --version | sed 's/.* //')" ]
    done
    flags=$(PKG_CONFIG_PATH=$build pkg-config --cflags --libs pccl)
    eval "\$cc -o \"\$work/native\" \"\$source/examples/all_reduce.c\" $flags"
    runs "$build/bin/pccl-master" "$work/native"
    flags=$(PKG_CONFIG_PATH=$build pkg-config --cflags --libs mpi_pccl)
    eval "\$cc -o \"\$work/ranks\" \"\$work/ranks.c\" $flags"
    "$build/bin/pccl-master" --timeout 300 -n 2 "$work/ranks" >"$work/out"
    [ "$(grep -c '^2 ranks$' "$work/out")" = 2 ]
fi

echo "find_package, not installed"
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(Pccl REQUIRED PATHS "$build" NO_DEFAULT_PATH)
add_executable(native "$source/examples/all_reduce.c")
target_link_libraries(native Pccl::pccl)
add_executable(ranks "$work/ranks.c")
target_link_libraries(ranks Pccl::mpi_pccl)
END
if ! { "$cmake" -S "$work/user" -B "$work/user/build" \
        -DCMAKE_C_COMPILER="$cc" && "$cmake" --build "$work/user/build"
    } >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
fi
runs "$build/bin/pccl-master" "$work/user/build/native"
