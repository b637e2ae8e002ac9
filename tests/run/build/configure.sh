#!/bin/sh
# configure.sh CMAKE SOURCE CC - what a configure says where something that the
# build needs is not there: each case hides it and configures a folder of its
# own, without CUDA unless it is about CUDA.
set -eu
cmake=$1 source=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
faults=0

# A path that is OFF is not looked for, and not there.
no_libev='-DEV_INCLUDE_DIR=OFF -DEV_LIBRARY=OFF'
no_cmocka='-DCMOCKA_INCLUDE_DIR=OFF -DCMOCKA_LIBRARY=OFF'
no_nvcc='-DCMAKE_CUDA_COMPILER=NOTFOUND'

configure() # STATUS CMAKE ARGUMENTS...: what it prints is one line in $work/out
{
    expected=$1
    shift
    what=$*
    rm -rf "$work/build"
    status=0
    "$cmake" -S "$source" -B "$work/build" -DCMAKE_C_COMPILER="$cc" \
        --no-warn-unused-cli -DPCCL_CUDA=OFF "$@" >"$work/log" 2>&1 || status=1
    tr -s ' \n' '  ' <"$work/log" >"$work/out" # CMake breaks lines
    if [ "$status" != "$expected" ]; then fail "exit status $status"; fi
}

fail()
{
    echo "cmake $what: $*"
    cat "$work/log"
    faults=$((faults + 1))
}

says() # TEXT
{
    grep -qF -e "$1" "$work/out" || fail "does not say '$1'"
}

hushes() # TEXT
{
    if grep -qF -e "$1" "$work/out"; then fail "says '$1'"; fi
}

# The names of all targets, one a line, as make or ninja prints them.
targets()
{
    "$cmake" --build "$work/build" --target help |
        sed 's/^\.\.\. //; s/[: ].*//' >"$work/targets"
}

makes() # TARGET...
{
    targets
    for target in "$@"; do
        grep -qxF -e "$target" "$work/targets" || fail "no target $target"
    done
}

leaves_out() # TARGET...
{
    targets
    for target in "$@"; do
        if grep -qxF -e "$target" "$work/targets"; then
            fail "has the target $target"
        fi
    done
}

# shellcheck disable=SC2086 # the variables hold two arguments
{
    configure 1 $no_libev
    says 'not found: libev (Debian package libev-dev,'
    hushes libcmocka-dev

    configure 1 $no_cmocka
    says 'not found: cmocka (Debian package libcmocka-dev,'
    configure 1 $no_libev $no_cmocka
    says 'libev-dev,'
    says 'libcmocka-dev,'

    configure 0 $no_libev -DPCCL_CORES_ONLY=ON
    hushes Warning
    makes pccl_core test_sim test_wire
    leaves_out pccl pccl-master mpi_pccl

    configure 0 $no_cmocka -DBUILD_TESTING=OFF
    hushes Warning
    makes pccl pccl-master diloco mpi_pccl mpi_abi train_text
    leaves_out test_wire
    configure 0 -DPCCL_MPI=OFF
    hushes Warning
    makes pccl test_api
    leaves_out mpi_pccl mpi_abi

    configure 1 $no_nvcc -DPCCL_CUDA=ON
    says 'the CUDA toolkit with nvcc (Debian package nvidia-cuda-toolkit,'
    configure 0 $no_nvcc -DPCCL_CUDA=AUTO -DPCCL_MPI=OFF -DBUILD_TESTING=OFF
    says 'GPU memory: OFF'
    configure 0 -DPCCL_CUDA=OFF -DPCCL_MPI=OFF -DBUILD_TESTING=OFF
    says 'GPU memory: OFF'
    leaves_out pccl_hash_kernel

    configure 1 -DPCCL_CUDA=perhaps
    says 'PCCL_CUDA is ON, OFF or AUTO'
}
exit $((faults != 0))
