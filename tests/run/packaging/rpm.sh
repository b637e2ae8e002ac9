#!/bin/sh
# rpm.sh SOURCE BUILD LIB - rpm packs this build by the spec: every file is in
# one of the packages, they require each other, and rpmlint accepts spec and
# packages. 77: no rpmbuild.
set -eu
source=$1 build=$2 lib=$3
command -v rpmbuild >/dev/null || {
    echo "skipped: no rpmbuild"
    exit 77
}
work=$(mktemp -d "$build/rpm.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

version=$(sed -n 's/^Version: *//p' "$source/packaging/rpm/pccl-mpi.spec")
grep -q "VERSION_STRING \"$version\"" "$source/include/pccl.h"
# What is built, so nothing is checked of the machine that would build it. A
# file that no package has fails it.
if ! rpmbuild -bb --nodeps --define "_topdir $work" \
    --define "_tmppath $work" --define "prebuilt $build" \
    --define "_libdir /usr/$lib" --define "_binary_payload w1.gzdio" \
    "$source/packaging/rpm/pccl-mpi.spec" >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
fi
set -- "$work"/RPMS/*/*.rpm
[ $# = 4 ]
requires() # PACKAGE WHAT
{
    rpm -qpR "$work"/RPMS/*/"$1"-[0-9]*.rpm >"$work/requires"
    grep -q "^$2" "$work/requires" || {
        echo "$1 does not require $2"
        exit 1
    }
}
requires libpccl0 'libev.so'
requires libmpi_pccl0 'libpccl0.* = '
requires pccl-mpi-tools 'libpccl.so.0'
requires pccl-mpi-devel 'libmpi_pccl0.* = '

command -v rpmlint >/dev/null || exit 0
# This build has paths to its libraries; one by rpm.sh has none.
rpmlint -c "$source/packaging/rpm/rpmlint.toml" "$@" \
    "$source/packaging/rpm/pccl-mpi.spec" >"$work/said" 2>&1 || true
if grep -E ': [EW]: ' "$work/said" | grep -v defines-rpath; then exit 1; fi
grep 'packages and 1 specfiles checked' "$work/said"
