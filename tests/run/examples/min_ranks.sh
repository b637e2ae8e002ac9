#!/bin/sh
# min_ranks.sh BIN PROGRAM ARGUMENT... - two ranks train with --min-ranks 2; one
# dies. The other one discards its step and waits; a newcomer comes, and both
# make the rest. No step is that of one rank, and both end with the same
# weights.
set -eu
bin=$1 program=$2
shift 2
work=$(mktemp -d)
jobs= output=
trap 'for job in $jobs; do kill "$job" 2>/dev/null || :; done; wait
    rm -rf "$work"' EXIT

fail()
{
    printf '%s\n' "$program: $*" "$output"
    exit 1
}

mkfifo "$work/out"
"$bin/pccl-master" --timeout 300 -n 2 --min-ranks 2 "$bin/$program" --die 1:7 \
    "$@" >"$work/out" 2>&1 &
jobs=$!
exec 3<"$work/out"
address='' joined=
while IFS= read -r line <&3; do
    output="$output$line
"
    case $line in
    'pccl-master: listening on '*) [ "$address" ] || address=${line##* } ;;
    *': the training waits for newcomers')
        [ ! "$joined" ] || fail "the operator was told twice"
        "$bin/pccl-master" --status "$address" >"$work/status" ||
            fail "no status"
        grep -q 'waits for newcomers: 1 of 2 are there' "$work/status" ||
            fail "the status does not say so: $(cat "$work/status")"
        "$bin/pccl-master" --timeout 300 --join "$address" -n 1 \
            "$bin/$program" "$@" >"$work/joined" 2>&1 &
        jobs="$jobs $!"
        joined=1 ;;
    esac
done
for job in $jobs; do wait "$job" || fail "a launcher failed"; done
jobs=
output="$output$(cat "$work/joined")"
[ "$joined" ] || fail "the operator was not told"
printf '%s\n' "$output" | grep '^step ' >"$work/steps"
grep -q . "$work/steps" || fail "no steps"
! grep -Ev ' 2 (ranks|members) ' "$work/steps" || fail "a step of one rank"
printf '%s\n' "$output" | sed -n 's/.*weights \([0-9a-f]*\)$/\1/p
    s/^launched as .*; \(y = .*\)/\1/p' >"$work/weights"
[ "$(wc -l <"$work/weights")" = 2 ] || fail "not both ranks ended"
[ "$(sort -u "$work/weights" | wc -l)" = 1 ] || fail "weights differ"
