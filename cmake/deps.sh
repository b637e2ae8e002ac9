# deps.sh - to be sourced by POSIX shells: installs what the build lacks.
#
#   deps_install [PACKAGE...]
#
# Looks for the tools and headers themselves, so nothing is asked of the
# network or of a package manager when they are all there. The names are
# Debian's; PACKAGE adds some that the caller has missed on its own.

deps_have_header() # NAME [DIRECTORY...]
{
    name=$1
    shift
    for dir in "$@"; do
        if [ -e "$dir/$name" ]; then return 0; fi
    done
    echo "#include <$name>" | cc -E - >/dev/null 2>&1
}

deps_missing()
{
    command -v cmake >/dev/null || echo cmake
    command -v make >/dev/null || command -v ninja >/dev/null || echo make
    command -v pkg-config >/dev/null || echo pkg-config
    command -v cc >/dev/null || echo gcc
    deps_have_header stdio.h || echo libc6-dev
    deps_have_header ev.h || echo libev-dev
    deps_have_header cmocka.h || echo libcmocka-dev
}

# Package names are words without blanks, and are meant to be split.
# shellcheck disable=SC2086,SC2116
deps_install()
{
    deps=$(deps_missing)
    deps=$(echo $deps "$@")
    if [ -z "$deps" ]; then return 0; fi
    if ! command -v apt-get >/dev/null; then
        echo "Please install what Debian calls: $deps" >&2
        return 1
    fi
    if [ "$(id -u)" = 0 ]; then as_root=
    elif [ -t 0 ]; then as_root=sudo
    else as_root="sudo -n"
    fi
    echo "Installing $deps"
    if ! deps_apt $deps >/dev/null 2>&1; then
        # No package lists yet, or old ones.
        $as_root apt-get update -qq >/dev/null || return 1
        deps_apt $deps >/dev/null || return 1
    fi
}

deps_apt()
{
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends "$@" </dev/null
}
