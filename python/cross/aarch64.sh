#!/bin/sh
# aarch64.sh FOLDER: the wheel for aarch64, made on Debian for x86_64, and a run
# of its programs by qemu.
#
# Needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user, and a Python of
# 3.11 or later (PYTHON, default python3) with its headers, scikit-build-core,
# cmake, ninja and wheel. libev for arm64 is fetched from Debian into FOLDER;
# neither that nor anything else needs root.
set -e
mkdir -p "$1"
folder=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
AARCH64_SYSROOT=$folder/sysroot
export AARCH64_SYSROOT

# Another system's packages, beside apt's own state.
apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$AARCH64_SYSROOT"
: > "$apt/status"
arm() {
    apt-get -q -o Dir::State="$apt" -o Dir::State::Lists="$apt/lists" \
        -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 "$@"
}
(cd "$folder" && arm update && arm download libev4 libev-dev)
for package in "$folder"/libev*_arm64.deb; do
    dpkg -x "$package" "$AARCH64_SYSROOT"
done

# The headers of the limited API are the same for all processors.
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
rm -f "$folder"/pccl_mpi-*.whl
"$python" -m pip wheel --no-deps --no-build-isolation -w "$folder" \
    -C cmake.define.CMAKE_TOOLCHAIN_FILE="$here/aarch64.cmake" \
    -C cmake.define.CMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON \
    -C cmake.define.PCCL_CUDA=OFF \
    -C cmake.define.Python_INCLUDE_DIR="$include" \
    -C cmake.define.Python_EXECUTABLE="$(command -v "$python")" "$here/.."

# libev comes along, as auditwheel does it on a machine of that kind, and the
# tag says what the binaries are.
rm -rf "$folder/tree"
"$python" -m wheel unpack -d "$folder/tree" "$folder"/pccl_mpi-*.whl
root=$(echo "$folder"/tree/*)
libraries=$root/pccl/_prefix/lib/mpich-abi
cp -L "$AARCH64_SYSROOT/usr/lib/aarch64-linux-gnu/libev.so.4" "$libraries"
rm "$folder"/pccl_mpi-*.whl
"$python" -m wheel pack -d "$folder" "$root"
"$python" -m wheel tags --remove --platform-tag manylinux_2_34_aarch64 \
    "$folder"/pccl_mpi-*.whl

# The newest symbol of glibc has to be that of the tag or an older one.
newest=$(aarch64-linux-gnu-objdump -T "$libraries"/*.so* "$root"/pccl/*.so \
    "$root"/pccl/_prefix/bin/* | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -1)
echo "newest symbols: $newest"
case $newest in
GLIBC_2.[0-9] | GLIBC_2.[12][0-9] | GLIBC_2.3[0-4]) ;;
*) exit 1 ;;
esac

# The programs start, and two members reduce, in one process: an emulated
# program cannot start another one.
run="qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=$libraries"
chmod +x "$root"/pccl/_prefix/bin/*
$run "$root/pccl/_prefix/bin/pccl-master" --version
$run "$root/pccl/_prefix/bin/pccl-bench" --algorithms > "$folder/table"
test -s "$folder/table"
aarch64-linux-gnu-gcc -I "$here/../../include" "$here/smoke.c" \
    "$libraries/libpccl.so.0" -Wl,--allow-shlib-undefined -lpthread \
    -o "$folder/smoke"
for transport in auto tcp; do
    $run -E PCCL_TRANSPORT=$transport "$folder/smoke"
done
ls -l "$folder"/*.whl
