#!/bin/sh
# symbols.sh LIBRARY LIST [VERSION]: tests that the library exports exactly the
# symbols of the list, with its version (PCCL_1) or the one that the list names.
# Exits with 77 without nm.
command -v nm >/dev/null || {
    echo "skipped: no nm"
    exit 77
}
scratch=$(mktemp) || exit 1
trap 'rm -f "$scratch"' EXIT
# Versions themselves are absolute symbols.
nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' |
    LC_ALL=C sort >"$scratch"
sed "/@@/!s/\$/@@${3:-PCCL_1}/" "$2" | diff - "$scratch" && echo "$(wc -l <"$2") symbols"
