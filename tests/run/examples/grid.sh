#!/bin/sh
# grid.sh BIN - two shards in three replicas each; one member dies. Its shard
# goes on with two, the other one does not notice, and the replicas of a shard
# end with the same weights, of 8-bit codes or of floats.
set -eu
bin=$1
work=$(mktemp)
trap 'rm -f "$work"' EXIT

for codes in "" --quantize; do
    # shellcheck disable=SC2086 # none or one
    output=$("$bin/pccl-master" --timeout 300 -n 6 --elastic "$bin/grid" \
        --shards 2 --steps 60 --die 3:31 $codes 2>&1) ||
        { printf '%s\n' "$output"; exit 1; }
    printf '%s\n' "$output"
    for shard in 0 1; do
        steps=$(printf '%s\n' "$output" | grep "^shard $shard: step" |
            cut -d' ' -f4-5 | tr '\n' ' ')
        ends=$(printf '%s\n' "$output" | grep "^launched as .: shard $shard,")
        [ "$steps" = "20, 3 40, $((3 - shard)) 60, $((3 - shard)) " ]
        [ "$(printf '%s\n' "$ends" | wc -l)" = $((3 - shard)) ]
        [ "$(printf '%s\n' "$ends" | sed 's/.* w = //' | sort -u | wc -l)" = 1 ]
    done
    printf '%s\n' "$output" | grep -q 'killed by signal 9'
done

# What the program does not understand it says.
for words in '--shards 2 --shard 2' '--die 3'; do
    # shellcheck disable=SC2086 # into words
    if "$bin/grid" $words 2>"$work"; then exit 1; fi
    grep -q '^usage: grid' "$work"
done
