#!/bin/sh
# install.sh CMAKE BUILD SOURCE CC - installs into a folder of its own, builds
# the examples against that with pkg-config and with CMake, and runs them.
set -eu
cmake=$1 build=$2 source=$3 cc=$4
work=$(mktemp -d "$build/install-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

command -v pkg-config >/dev/null || {
    echo "skipped: no pkg-config"
    exit 77
}
prefix=$work/prefix
"$cmake" --install "$build" --prefix "$prefix" >/dev/null
config=$(find "$prefix" -name pccl.pc)
if [ -z "$config" ]; then
    echo "pccl.pc was not installed"
    exit 1
fi
lib=${config%/pkgconfig/pccl.pc}

# The files find their prefix from where they lie.
pc()
{
    PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs "$@"
}

echo "pkg-config, and no rpath: pccl-master tells where the libraries are"
examples=$source/examples
# shellcheck disable=SC2016 # the program between ```c and ```
sed -n '/^```c$/,/^```$/{/^```/!p;}' "$source/README.md" >"$work/readme.c"

build() # PACKAGE OUTPUT ARGUMENTS...: what pkg-config prints is for a shell
{
    # shellcheck disable=SC2034 # used by what eval reads
    package=$1 output=$2
    shift 2
    eval "\$cc -o \"\$output\" \"\$@\" $(pc "$package") -lm"
}

build mpi_pccl "$work/readme" "$work/readme.c"
build pccl "$work/native" "$examples/all_reduce.c"
build mpi_pccl "$work/mpi" "$examples/elastic_train.c" \
    "$examples/train_args.c" "$examples/text_model.c"
master() { "$prefix/bin/pccl-master" --timeout 300 "$@"; }
master -n 3 "$work/readme" >"$work/out"
[ "$(grep -c 'mean 1 of 3 ranks' "$work/out")" = 10 ]

echo "find_package"
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(Pccl 0.1 REQUIRED)
add_executable(native "$examples/all_reduce.c")
target_link_libraries(native Pccl::pccl)
add_executable(mpi "$examples/elastic_train.c" "$examples/train_args.c"
    "$examples/text_model.c")
target_link_libraries(mpi Pccl::mpi_pccl m)
END
if ! { "$cmake" -S "$work/user" -B "$work/user/build" \
        -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" &&
        "$cmake" --build "$work/user/build"
    } >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
fi

for folder in "$work" "$work/user/build"; do
    master -n 2 "$folder/native" >"$work/out"
    [ "$(grep -c '^2 4, sum of 2 peers$' "$work/out")" = 2 ]
    master -n 2 "$folder/mpi" --steps 2 --hidden 4 "$examples/demo.sh" \
        >"$work/out"
    [ "$(grep -c '^rank ./2: done' "$work/out")" = 2 ]
done

# A program that was built for MPICH finds our library under MPICH's name.
if command -v mpicc.mpich >/dev/null; then
    echo "built for MPICH"
    mpicc.mpich -o "$work/foreign" "$examples/train_text.c" \
        "$examples/train_args.c" "$examples/text_model.c" -lm
    master -n 2 "$work/foreign" --steps 2 --hidden 4 "$examples/demo.sh" \
        >"$work/out"
    [ "$(grep -c '^rank ./2: done' "$work/out")" = 2 ]
fi
