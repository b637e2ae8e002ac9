#!/bin/sh
# refuses.sh STATUS TEXT COMMAND... - a check that must fail does so, with this
# exit status, and says TEXT: a crash, or another reason, is no refusal. What it
# keeps for a reader, as histories, goes with the test.
status=$1 text=$2
shift 2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
said=$(TMPDIR=$work "$@" 2>&1)
got=$?
echo "$said"
[ "$got" -eq "$status" ] || { echo "exit status $got, not $status"; exit 1; }
case $said in *"$text"*) exit 0 ;; esac
echo "nothing is said of: $text"
exit 1
