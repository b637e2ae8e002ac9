#!/bin/sh
# measure.sh BIN TEXT [RATE...] - tokens a second over emulated links, with
# activations as they are and in a subspace of a hundredth. Three stages with a
# worker each, and a trainer, behind links of RATE (80mbit, 20mbit, 5mbit) with
# round trips of 20 ms. Needs root and /dev/net/tun. MODEL (environment) are
# options of the program.
set -eu
[ $# -ge 2 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
bin=$1 text=$2
shift 2
[ $# -gt 0 ] || set -- 80mbit 20mbit 5mbit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: "${MODEL:=--layers 3 --heads 4 --width 200 --context 64 --batch 16 --micro 2}"
export OMP_NUM_THREADS=1 PCCL_INSECURE=1

# tokens RATE SUBSPACE: a second, and bytes that travelled for one
tokens()
{
    cat >"$work/world" <<END
title A trainer and three stages at home
limit 3600s
congestion cubic
peer site 4
master site
rtt site site 20ms
up * rate $1 queue 100ms
down * rate $1 queue 100ms
END
    "$bin/wan-emulator" --log "$work/log" --master "
        exec '$bin/pccl-master' --listen \$WAN_MASTER:48148 --quorum 4 \
            >/dev/null 2>&1" --peer "
        PCCL_MASTER=\$WAN_MASTER:48148 PCCL_RANK=\$((WAN_PEER - 1)) \
            exec '$bin/stages' $MODEL --stages 3 --subspace $2 --steps 12 \
            --held 0 --every 100 --patience 60 '$text'" "$work/world" \
        >"$work/out" || { status=$?; cat "$work/out"; exit $status; }
    # The first two steps open links and windows.
    awk -v "model=$MODEL" 'BEGIN { n = split(model, word, " ")
            for (i = 1; i < n; i++) {
                if (word[i] == "--batch") batch = word[i + 1]
                if (word[i] == "--context") context = word[i + 1] } }
        $1 == "step" && $2 == 2 { begin = $12; moved = $14 }
        $1 == "step" { end = $12; last = $14; step = $2 }
        END { tokens = (step - 2) * batch * context
            printf "%.0f %.0f\n", tokens / (end - begin),
                (last - moved) / tokens }' "$work/out"
}

width=$(echo "$MODEL" | sed 's/.*--width \([0-9]*\).*/\1/')
echo "| links | activations | tokens/s | bytes for a token |"
echo "|---|---|---|---|"
for rate; do
    for subspace in 0 $((width / 100)); do
        # shellcheck disable=SC2046 # two numbers
        set -- $(tokens "$rate" "$subspace")
        what="of width $width"
        [ "$subspace" = 0 ] || what="in a subspace of $subspace"
        echo "| $rate | $what | $1 | $2 |"
    done
done
