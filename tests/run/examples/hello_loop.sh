#!/bin/sh
# hello_loop.sh BIN - members that are given the coordinator's address by hand,
# as a name; wrong addresses are named. A lone survivor makes no step until
# another member has come.
set -eu
bin=$1
work=$(mktemp -d)
jobs=
trap 'for job in $jobs; do kill "$job" 2>/dev/null || :; done; wait
    rm -rf "$work"' EXIT

mkfifo "$work/out" "$work/survivor"
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

# Without an end; who is killed, and who comes next, follows from the output.
forever()
{
    "$bin/hello_loop" --steps 1000000000 "localhost:${address##*:}" >"$1" 2>&1 &
    jobs="$jobs $!" last=$!
}
forever "$work/survivor"
exec 4<"$work/survivor"
forever /dev/null
lost=$last phase=together steps=0
while [ $phase != done ] && IFS= read -r line <&4; do
    case $phase:$line in
    together:*' 2 members'*)
        phase=loss
        kill -9 "$lost" ;;
    loss:'alone after step '*)
        phase=alone
        forever /dev/null ;;
    alone:*' 2 members'*)
        steps=$((steps + 1))
        [ $steps -lt 5 ] || phase=done ;;
    loss:*' 1 members'* | alone:*)
        echo "$phase: $line"
        exit 1 ;;
    esac
done
[ $phase = done ]

! "$bin/hello_loop" nowhere.invalid 2>"$work/error"
grep -q 'nowhere.invalid: ' "$work/error"
! "$bin/hello_loop" '[::1]:1' 2>"$work/error"
grep -q 'at \[::1\]:1: ' "$work/error"
