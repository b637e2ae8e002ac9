#!/bin/sh
# hello_loop.sh BIN - members that are given the coordinator's address by hand,
# as a name; wrong addresses are named.
set -eu
bin=$1
work=$(mktemp -d)
jobs=
trap 'for job in $jobs; do kill "$job" 2>/dev/null || :; done; wait
    rm -rf "$work"' EXIT

mkfifo "$work/out"
"$bin/pccl-master" --listen 127.0.0.1:0 --quorum 3 >"$work/out" 2>&1 &
jobs=$!
exec 3<"$work/out"
address=
while [ ! "$address" ] && IFS= read -r line <&3; do
    case $line in
    *'listening on '*) address=${line##*listening on } ;;
    esac
done
cat <&3 >/dev/null &
jobs="$jobs $!"

members=
for i in 1 2 3; do
    "$bin/hello_loop" --steps 40 "localhost:${address##*:}" >"$work/$i" 2>&1 &
    members="$members $!"
done
for member in $members; do
    wait "$member" || { cat "$work"/[123]; exit 1; }
done
for i in 1 2 3; do
    grep -qx 'step 40: 3 members, total 120' "$work/$i" ||
        { cat "$work/$i"; exit 1; }
done

! "$bin/hello_loop" nowhere.invalid 2>"$work/error"
grep -q 'nowhere.invalid: ' "$work/error"
! "$bin/hello_loop" '[::1]:1' 2>"$work/error"
grep -q 'at \[::1\]:1: ' "$work/error"
