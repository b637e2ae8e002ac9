# deps.sh - to be sourced by POSIX shells: installs what the build lacks.
#
#   deps_missing [tests]           prints the packages that are missing
#   deps_install [PACKAGE...]      installs them, and those of the tests
#   deps_get PACKAGE...            installs these
#   deps_offer PACKAGE...          the same, without a word where it cannot
#
# Looks for the tools and headers themselves, so nothing is asked of the
# network or of a package manager when they are all there. The names are
# Debian's; PACKAGE adds some that the caller has missed on its own. Who may not
# install gets the list to ask for, and the status is 1. No password is asked
# for.

deps_have_header() # NAME
{
    if command -v cc >/dev/null; then
        echo "#include <$1>" | cc -E - >/dev/null 2>&1
    else
        # gcc will find it there.
        [ -e "/usr/include/$1" ]
    fi
}

deps_missing() # [tests]
{
    command -v cmake >/dev/null || echo cmake
    command -v make >/dev/null || command -v ninja >/dev/null || echo make
    command -v cc >/dev/null || echo gcc
    deps_have_header stdio.h || echo libc6-dev
    deps_have_header ev.h || echo libev-dev
    if [ "${1:-}" != tests ]; then return 0; fi
    command -v pkg-config >/dev/null || echo pkg-config
    deps_have_header cmocka.h || echo libcmocka-dev
}

# What a package is for, to find it where Debian's name means nothing.
deps_purpose() # PACKAGE
{
    case $1 in
    gcc) echo "a C compiler, cc" ;;
    libc6-dev) echo "the headers of C" ;;
    libev-dev) echo "libev and ev.h" ;;
    libmicrohttpd-dev) echo "libmicrohttpd, for pccl-master --status-http" ;;
    libssl-dev) echo "OpenSSL 3, for runs with a key" ;;
    libcmocka-dev) echo "cmocka and cmocka.h, for the tests" ;;
    *) echo "$1" ;;
    esac
}

deps_ask() # PACKAGE...
{
    echo "This needs packages that are missing, and this account cannot" \
        "install them:"
    for package in "$@"; do
        printf '    %-16s %s\n' "$package" "$(deps_purpose "$package")"
    done
    echo "Ask the administrator of this host for them. On Debian:"
    echo "    apt-get install $*"
}

deps_get() # PACKAGE...
{
    if deps_offer "$@"; then return 0; fi
    deps_ask "$@" >&2
    return 1
}

deps_offer() # PACKAGE...
{
    if [ $# = 0 ]; then return 0; fi
    command -v apt-get >/dev/null || return 1
    as_root=
    if [ "$(id -u)" != 0 ]; then
        as_root="sudo -n"
        $as_root true >/dev/null 2>&1 || return 1
    fi
    echo "Installing $*"
    if deps_apt "$@" >/dev/null 2>&1; then return 0; fi
    # No package lists yet, or old ones.
    $as_root apt-get update -qq >/dev/null && deps_apt "$@" >/dev/null
}

# Package names are words without blanks, and are meant to be split.
# shellcheck disable=SC2046
deps_install() # PACKAGE...
{
    deps_get $(deps_missing tests) "$@"
}

# shellcheck disable=SC2086 # a command and its arguments, or nothing
deps_apt()
{
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends "$@" </dev/null
}
