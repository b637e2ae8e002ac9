#!/bin/sh
# deb.sh [FOLDER [CMAKE OPTIONS]] - Debian packages of this tree, in FOLDER
# (build-deb): an optimized build for /usr with Debian's hardening flags, without
# tests, then CPack, then lintian where it is there. Needs what the library
# needs, and dpkg-dev.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/build-deb}
[ $# = 0 ] || shift
# The hardening and the removal of this machine's paths that builders use.
for name in CFLAGS CPPFLAGS LDFLAGS; do
    value=$(DEB_BUILD_MAINT_OPTIONS=hardening=+bindnow \
        dpkg-buildflags --get $name)
    export $name="$value"
done
cmake -S "$root" -B "$folder" -DCMAKE_INSTALL_PREFIX=/usr \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBUILD_TESTING=OFF \
    -DPCCL_PYTHON_PACKAGE=OFF -DPCCL_CUDA=OFF \
    -DCMAKE_C_FLAGS="$CFLAGS $CPPFLAGS" "$@"
cmake --build "$folder" -j "$(nproc)"
rm -f "$folder"/*.deb
(cd "$folder" && cpack -G DEB)
if command -v lintian >/dev/null; then
    lintian --fail-on error,warning "$folder"/*.deb
fi
ls "$folder"/*.deb
