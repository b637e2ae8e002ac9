#!/bin/sh
# deb.sh BUILD LIB CONTAINERFILE [lintian] - the Debian packages of this build:
# they depend on each other and on what they use (so does the image), no file is
# in two of them, what is in them runs, and lintian accepts them. 77: the tools
# are missing.
set -eu
build=$1 lib=$2 container=$3 lintian=${4:-}
for tool in cpack dpkg-deb dpkg-shlibdeps readelf gzip; do
    command -v $tool >/dev/null || {
        echo "skipped: no $tool"
        exit 77
    }
done
work=$(mktemp -d "$build/deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# With this generator CPack installs what is there and builds nothing.
if ! (cd "$build" && cpack -G DEB -D CPACK_CMAKE_GENERATOR=Ninja -B "$work") \
    >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
fi
set -- "$work"/*.deb
[ $# = 4 ]
root=$work/root
for package in "$work"/*.deb; do
    dpkg-deb -x "$package" "$root"
    dpkg-deb -c "$package" | awk '/^[-l]/ { print $6 }'
done | sort | uniq -d >"$work/twice"
[ ! -s "$work/twice" ] || {
    echo "in two packages: $(cat "$work/twice")"
    exit 1
}

depends() # PACKAGE ON...
{
    package=$1
    shift
    found=$(dpkg-deb -f "$work/$package"_*.deb Depends)
    for word; do
        case $found in
        *"$word"*) ;;
        *)
            echo "$package depends on $found, and not on $word"
            exit 1 ;;
        esac
    done
}
depends libpccl0 libc6 libev4
depends libmpi-pccl0 libc6 "libpccl0 (="
depends pccl-tools libev4 "libpccl0 (=" "libmpi-pccl0 (="
depends libpccl-dev "libpccl0 (=" "libmpi-pccl0 (="

# The container's image of the same Debian has the libraries that they need. apt
# itself needs those of the compiler, which come in with CUDA.
case $(cat /etc/debian_version 2>/dev/null) in
12*)
    for package in libpccl0 pccl-tools; do
        dpkg-deb -f "$work/$package"_*.deb Depends
    done | tr ',' '\n' | sed 's/^ *\([^ ]*\).*/\1/' |
        grep -v -e pccl -e '^libc6$' -e '^libgcc-s1$' -e '^libstdc++6$' |
        sort -u | while read -r package; do
        grep -q "^        .*$package\b" "$container" ||
            echo "the container lacks $package"
    done >"$work/lacks"
    cat "$work/lacks"
    [ ! -s "$work/lacks" ] ;;
esac

echo "run what is in them"
"$root/usr/bin/pccl-master" --timeout 300 -n 2 "$root/usr/bin/pccl-bench" \
    --sizes 1000 --seconds 0.01 >"$work/out"
grep -q ' 1000 ' "$work/out"
zcat "$root/usr/share/man/man1/pccl-master.1.gz" | grep -q '^.TH PCCL-MASTER'
if readelf -d "$root/usr/bin/pccl-bench" | grep -E 'RUNPATH|RPATH'; then
    exit 1
fi

[ -n "$lintian" ] || exit 0
command -v lintian >/dev/null || {
    echo "no lintian"
    exit 0
}
# A build for /usr puts them into the folder of the architecture (deb.sh).
tags=
case $lib in
lib/*) ;;
*) tags=pkg-config-unavailable-for-cross-compilation ;;
esac
echo lintian
lintian --allow-root --fail-on error,warning ${tags:+--suppress-tags $tags} \
    "$work"/*.deb
