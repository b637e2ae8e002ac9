#!/bin/sh
# rpm.sh [FOLDER] - RPM packages of what is committed in this tree, in FOLDER
# (build-rpm). --nodeps: where rpmbuild runs on a Debian, rpm knows none of the
# packages that the build requires. Then rpmlint, where it is there.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/build-rpm}
version=$(sed -n 's/^Version: *//p' "$root/packaging/rpm/pccl-mpi.spec")
mkdir -p "$folder/SOURCES"
git -C "$root" archive --prefix="pccl-mpi-$version/" HEAD |
    gzip -n >"$folder/SOURCES/pccl-mpi-$version.tar.gz"
rpmbuild -ba --nodeps --define "_topdir $folder" \
    "$root/packaging/rpm/pccl-mpi.spec"
if command -v rpmlint >/dev/null; then
    rpmlint -c "$root/packaging/rpm/rpmlint.toml" "$folder"/RPMS/*/*.rpm \
        "$root/packaging/rpm/pccl-mpi.spec"
fi
ls "$folder"/RPMS/*/*.rpm
