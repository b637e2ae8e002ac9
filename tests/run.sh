#!/bin/sh
# run.sh [OPTIONS] [CTEST ARGUMENTS...] - builds the tree and runs its tests.
#
#   --sanitize LIST  with these sanitizers: address,undefined or thread
#   --clang          with clang instead of the default compiler
#   --fast           without the tests that are labelled slow
#   --soak           with PCCL_SOAK=1: the long version of every random test
#   --werror         a warning of the compiler is an error
#   --rounds N       runs them N times and counts who fails (tests/repeat.sh),
#   --load L         ... beside L processes that only spin
#
# Every combination has a build folder of its own: build, build-asan,
# build-tsan, each also with -clang. What the build lacks is installed first
# (cmake/deps.sh). Tests run at once: one and a half times as many as there are
# processors, since many of them wait. Ends with the summary of ctest and its
# exit status.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
sanitize='' clang='' fast='' werror=OFF build=$root/build rounds='' load=''

usage()
{
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

while [ $# != 0 ]; do
    case $1 in
    --sanitize)
        if [ $# -lt 2 ]; then usage; fi
        sanitize=$2
        shift ;;
    --clang) clang=1 ;;
    --fast) fast=1 ;;
    --soak) export PCCL_SOAK=1 ;;
    --werror) werror=ON ;;
    --rounds | --load)
        if [ $# -lt 2 ]; then usage; fi
        if [ "$1" = --load ]; then load=$2; else rounds=$2; fi
        shift ;;
    -h | --help) usage ;;
    --) shift; break ;;
    *) break ;;
    esac
    shift
done
case $sanitize in
'') ;;
address*) build=$build-asan ;;
thread) build=$build-tsan ;;
*) usage ;;
esac
if [ -n "$clang" ]; then build=$build-clang; fi

# shellcheck source=../cmake/deps.sh
. "$root/cmake/deps.sh"
more=
command -v python3 >/dev/null || more=python3
if [ -n "$clang" ]; then command -v clang >/dev/null || more="$more clang"; fi
# shellcheck disable=SC2086 # package names
deps_install $more
# Their tests are skipped without them.
more=
command -v spin >/dev/null || more=spin
python3 "$root/docs/make_site.py" --can-build ||
    more="$more python3-myst-parser"
deps_have_header microhttpd.h || more="$more libmicrohttpd-dev"
deps_have_header openssl/ssl.h || more="$more libssl-dev"
command -v etcd >/dev/null || more="$more etcd-server"
command -v etcdctl >/dev/null || more="$more etcd-client"
# shellcheck disable=SC2086 # package names
deps_offer $more || :

# The address space of a randomized process can be where ThreadSanitizer of
# gcc 12 wants its shadow; then no program starts.
fixed=
if [ "$sanitize" = thread ] && setarch -R true 2>/dev/null; then
    fixed='setarch -R'
fi
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1}"

if [ -n "$clang" ]; then export CC=clang; fi
cmake -S "$root" -B "$build" -DPCCL_SANITIZE="$sanitize" -DBUILD_TESTING=ON \
    -DPCCL_WERROR="$werror"
$fixed cmake --build "$build" -j "$(nproc)"
if [ -n "$rounds$load" ]; then
    # shellcheck disable=SC2086 # a command and its arguments, or nothing
    exec $fixed sh "$root/tests/repeat.sh" "$build" "${rounds:-1}" "${load:-0}" \
        ${fast:+-LE slow} "$@"
fi
cd "$build"
# One line that says how far it is; failures are printed whole.
if [ -t 1 ]; then export CTEST_PROGRESS_OUTPUT="${CTEST_PROGRESS_OUTPUT:-1}"; fi
# shellcheck disable=SC2086 # a command and its arguments, or nothing
$fixed ctest -j $(($(nproc) * 3 / 2)) --output-on-failure ${fast:+-LE slow} "$@"
