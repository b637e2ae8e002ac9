#!/bin/sh
# tls.sh BIN [ROUNDS] - the cost of a key: all-reduces of two ranks over TCP, in
# clear and with a key in turn, so that both meet the same machine. Prints the
# median of each round, and the ratio of the medians of all rounds.
#
#   sh tests/bench/tls.sh build/bin 5
set -eu
bin=$1 rounds=${2:-5}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$bin/pccl-master" --make-token "$dir/key"
for size in 8 64K 16M 256M; do
    : >"$dir/clear"
    : >"$dir/key.us"
    round=0
    while [ $round -lt "$rounds" ]; do
        for kind in clear key.us; do
            option=
            if [ $kind = key.us ]; then option="--token-file $dir/key"; fi
            # shellcheck disable=SC2086 # an option and its value, or nothing
            "$bin/pccl-master" $option -n 2 "$bin/pccl-bench" \
                --transport tcp --sizes $size --seconds 1 2>/dev/null |
                awk '/^allreduce/ {print $7}' >>"$dir/$kind"
        done
        round=$((round + 1))
    done
    for kind in clear key.us; do sort -n "$dir/$kind" >"$dir/sorted.$kind"; done
    middle=$(((rounds + 1) / 2))
    a=$(sed -n "${middle}p" "$dir/sorted.clear")
    b=$(sed -n "${middle}p" "$dir/sorted.key.us")
    least=$(sed -n 1p "$dir/sorted.clear")
    most=$(sed -n 1p "$dir/sorted.key.us")
    echo "$size $a $b $least $most" | awk '{printf \
        "%6s: median in clear %12.2f us, with a key %12.2f us: %.2f; " \
        "best rounds %12.2f, %12.2f: %.2f\n", $1, $2, $3, $3 / $2, $4, $5,
        $5 / $4}'
done
