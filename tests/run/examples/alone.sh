#!/bin/sh
# alone.sh BIN PROGRAM ARGUMENT... - one of 2 ranks dies; another one starts in
# its place. The survivor discards what it did alone: no step is that of one
# member, and both end with the same weights.
set -eu
bin=$1 program=$2
shift 2
output=$("$bin/pccl-master" -n 2 --elastic --respawn --timeout 300 \
    "$bin/$program" "$@" 2>&1) || { printf '%s\n' "$output"; exit 1; }
fail()
{
    printf '%s\n' "$program: $*" "$output"
    exit 1
}
said() { printf '%s\n' "$output" | grep -Eq "$1"; }

said 'killed by signal 9' || fail "nobody was killed"
said '[^0-9]2 (ranks|replicas)|members 2 |of 2 members' || fail "no steps"
! said '^(step|shard).*([^0-9]1 (ranks|replicas)|members 1 |of 1 members)' ||
    fail "a step of one member"
ends=$(printf '%s\n' "$output" |
    sed -n 's/^rank .*: done, .* //p; s/^launched as .*[;,] //p')
[ "$(printf '%s\n' "$ends" | wc -l)" = 2 ] || fail "not both ended"
[ "$(printf '%s\n' "$ends" | sort -u | wc -l)" = 1 ] || fail "weights differ"
