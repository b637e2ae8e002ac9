#!/bin/sh
# german.sh PROGRAM - test_german in a German locale that is made here. Skipped
# (77), with a word, where none can be made.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v localedef >/dev/null; then
    echo "skipped: no localedef"
    exit 77
fi
if ! localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" 2>"$work/error"; then
    echo "skipped: localedef makes no German locale: $(cat "$work/error")"
    exit 77
fi
export LOCPATH="$work" LC_ALL=de_DE.UTF-8 PCCL_LOG_FILE="$work/log"

# It fails with a comma, and says so.
! PCCL_DEADLINE=2,5 "$1" >"$work/out" 2>&1
grep -q "'2,5' is not understood" "$work/out"
[ "$(grep -c 'PCCL_DEADLINE=2,5 is not a number' "$work/log")" = 2 ]
rm "$work/log"

PCCL_DEADLINE=2.5 "$1"
! grep PCCL_DEADLINE "$work/log"
