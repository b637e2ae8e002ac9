#!/bin/sh
# man.sh SOURCE PAGES DATE - mandoc and groff have nothing to say about any
# manual page, those by hand and those in PAGES. 77: neither is there.
set -eu
source=$1 pages=$2 date=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# Names without blanks, as all of the source.
# shellcheck disable=SC2046
set -- $(find "$source/src" -name '*.1')
[ $# -ge 4 ]
[ -d "$pages" ] && [ -n "$(ls "$pages")" ] && set -- "$@" "$pages"/*.3
echo "$# pages"
for page; do
    grep -q "^\.TH .* $date " "$page" || echo "$page: not of $date"
done >"$work/said"
some=
if command -v mandoc >/dev/null; then
    some=yes
    mandoc -T lint -W warning "$@" >>"$work/said" 2>&1 || true
fi
if command -v groff >/dev/null; then
    some=yes
    groff -ww -man -Tutf8 "$@" 2>>"$work/said" >"$work/text" ||
        echo "groff failed" >>"$work/said"
    grep -q pcclAllReduce "$work/text" || [ ! -d "$pages" ] ||
        [ -z "$(ls "$pages")" ] || echo "nothing to read" >>"$work/said"
fi
[ -n "$some" ] || {
    echo "skipped: neither mandoc nor groff"
    exit 77
}
cat "$work/said"
[ ! -s "$work/said" ]
