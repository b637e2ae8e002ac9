#!/bin/sh
# deps_lists.sh SOURCE - what cmake/deps.sh misses, installs and asks for, on hosts
# that lack something. The hosts are folders of stubs, in place of PATH.
set -eu
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shell=$(command -v sh)

fail() { echo "$*" >&2; exit 1; }

stub() # NAME BODY
{
    printf '#!%s\n%s\n' "$shell" "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# A host that has everything, where this account is root; apt-get notes what it
# is asked for. $headers lists the headers that are there.
host()
{
    rm -rf "${work:?}/bin"
    mkdir "$work/bin"
    : >"$work/log"
    for name in cmake make pkg-config; do stub "$name" :; done
    stub id 'echo 0'
    # shellcheck disable=SC2016 # the stub's own
    stub env 'while case $1 in *=*) ;; *) false ;; esac; do shift; done
"$@"'
    stub apt-get "echo \"\$*\" >>'$work/log'"
    printf '%s\n' stdio.h ev.h cmocka.h >"$work/headers"
    # Asked as: echo "#include <ev.h>" | cc -E -
    stub cc "read -r line; line=\${line#*<}; line=\${line%>}
while read -r header; do
    [ \"\$header\" = \"\$line\" ] && exit
done <'$work/headers'
exit 1"
}

without() # NAME...: programs or headers
{
    for name in "$@"; do
        rm -f "$work/bin/$name"
        sed -i "/^$name\$/d" "$work/headers"
    done
}

# An account that may not install, with the sudo of this kind.
unprivileged() # none|refuses|allows
{
    stub id 'echo 1000'
    case $1 in
    refuses) stub sudo 'exit 1' ;;
    allows) stub sudo "echo sudo >>'$work/log'; shift; \"\$@\"" ;;
    esac
}

# Calls a function of deps.sh on the host; its output is in $said.
ask() # STATUS FUNCTION [ARGUMENTS]
{
    wanted=$1 status=0
    shift
    # shellcheck disable=SC2016 # the other shell's own
    said=$(PATH=$work/bin "$shell" -c \
        'set -eu; . "$0/cmake/deps.sh"; "$@"' "$source" "$@" 2>&1) || status=$?
    [ "$status" = "$wanted" ] || fail "$*: status $status, not $wanted: $said"
}

same() # WANTED GOT
{
    # shellcheck disable=SC2086,SC2116 # words
    got=$(echo $2)
    [ "$got" = "$1" ] || fail "'$got' instead of '$1'"
}

holds() # TEXT
{
    case $said in *"$1"*) ;; *) fail "no '$1' in: $said" ;; esac
}

host
ask 0 deps_missing
same '' "$said"
ask 0 deps_install
same '' "$said$(cat "$work/log")"

# One at a time, and what only the tests need.
for pair in cmake:cmake make:make stdio.h:libc6-dev ev.h:libev-dev; do
    host
    without "${pair%:*}"
    ask 0 deps_missing
    same "${pair#*:}" "$said"
done
for pair in cmocka.h:libcmocka-dev pkg-config:pkg-config; do
    host
    without "${pair%:*}"
    ask 0 deps_missing
    same '' "$said"
    ask 0 deps_missing tests
    same "${pair#*:}" "$said"
done
host
without make
stub ninja :
ask 0 deps_missing
same '' "$said"
host
without cc
ask 0 deps_missing
holds gcc

# Root installs, exactly that.
host
without ev.h cmocka.h
ask 0 deps_install spin
holds 'Installing libev-dev libcmocka-dev spin'
same 'install -y -qq --no-install-recommends libev-dev libcmocka-dev spin' \
    "$(cat "$work/log")"

# sudo that asks no password will do.
host
without ev.h
unprivileged allows
ask 0 deps_install
grep -q 'no-install-recommends libev-dev$' "$work/log" || fail "sudo: $said"

# Otherwise the list is printed, and nothing is tried.
for sudo in none refuses; do
    host
    without cmake ev.h cmocka.h
    unprivileged "$sudo"
    ask 1 deps_install
    same '' "$(cat "$work/log")"
    holds 'this account cannot install'
    holds 'libev and ev.h'
    holds 'apt-get install cmake libev-dev libcmocka-dev'
    ask 1 deps_offer spin
    same '' "$said"
done

# So it is where there is no apt-get, or where it fails.
host
without ev.h apt-get
ask 1 deps_install
holds 'apt-get install libev-dev'
host
without ev.h
stub apt-get 'exit 100'
ask 1 deps_install
holds 'apt-get install libev-dev'
