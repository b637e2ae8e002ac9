#!/bin/sh
# gpt_ways.sh BIN TEXT CASE - the example `gpt` in its ways of training.
#
# same    sums of gradients are what one process computes; DiLoCo with one
#         inner step of SGD, and outer steps of rate 1, is that sum too
# losses  in every way one of three ranks dies and another one joins: all that
#         are left end with the same loss, which has fallen
set -eu
bin=$1 text=$2 case=$3
work=$(mktemp -d)
jobs=
trap 'for job in $jobs; do kill "$job" 2>/dev/null || :; done; wait
    rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1

fail()
{
    echo "FAILED: $*"
    cat "$work"/*.out
    exit 1
}

options()
{
    echo --layers 2 --heads 2 --width 32 --context 24 --batch 6 --steps 20 \
        --every 10 --held 4
}

# train NAME RANKS WAY...: into NAME.out. The time limit is for bugs only.
train()
{
    name=$1 ranks=$2
    shift 2
    # shellcheck disable=SC2046 # into words
    "$bin/pccl-master" --timeout 300 -n "$ranks" "$bin/gpt" "$@" \
        $(options) "$text" >"$work/$name.out" 2>&1 || fail "$name ended with $?"
}

# Losses and held-out losses of two runs: at most 0.0001 apart in every step.
equal() # NAME NAME
{
    awk '$1 != "step" && $1 != "held" { next }
        { loss = $1 == "step" ? $6 : $4; key = $1 " " $2 }
        NR == FNR { first[key] = loss; next }
        !(key in first) { print key " is new"; bad = 1; next }
        { n++; d = loss - first[key]; if (d > 1e-4 || d < -1e-4) {
            print key ": " first[key] " and " loss; bad = 1 } }
        END { exit bad || n != 22 }' "$work/$1.out" "$work/$2.out" ||
        fail "$1 and $2 differ"
}

# churn NAME WAY...: rank 1 dies in step 5; from step 8 on the others wait for
# a third one, which joins.
churn()
{
    name=$1
    shift
    mkfifo "$work/pipe"
    # shellcheck disable=SC2046 # into words
    "$bin/pccl-master" --timeout 300 -n 3 --elastic "$bin/gpt" "$@" \
        --die 1:5 --min 3:8 $(options) "$text" >"$work/pipe" 2>&1 3<&- &
    jobs="$jobs $!"
    exec 3<"$work/pipe"
    address=
    while IFS= read -r line <&3; do
        echo "$line" >>"$work/$name.out"
        case $line in
        'pccl-master: listening on '*) [ "$address" ] || address=${line##* } ;;
        'step 8 members 2 '*)
            # shellcheck disable=SC2046 # into words
            "$bin/pccl-master" --timeout 300 --join "$address" -n 1 \
                "$bin/gpt" "$@" $(options) "$text" >"$work/pipe" 2>&1 3<&- &
            jobs="$jobs $!" ;;
        esac
    done
    exec 3<&-
    for job in $jobs; do wait "$job" || fail "$name: a launcher failed"; done
    jobs=
    rm "$work/pipe"
    [ "$(grep -c '^rank ./[123]: done, ' "$work/$name.out")" = 3 ] ||
        fail "$name: not all ended"
    [ "$(sed -n 's/^rank .*: done, //p' "$work/$name.out" | sort -u |
        wc -l)" = 1 ] || fail "$name: the last losses differ"
    grep -q '^step 20 members 3 ' "$work/$name.out" ||
        fail "$name: the newcomer took no part in the last step"
    awk '$1 == "held" { last = $4 } END { exit !(last < 5) }' \
        "$work/$name.out" || fail "$name: the loss did not fall"
}

case $case in
same)
    train alone 1 ddp
    train ddp 3 ddp
    equal alone ddp
    train sgd 3 ddp --sgd --rate 0.1
    train outer 3 diloco --sgd --rate 0.1 --inner 1 --outer-rate 1 \
        --outer-momentum 0
    equal sgd outer ;;
losses)
    churn ddp ddp
    churn powersgd powersgd --power-rank 4
    churn stack stack --power-rank 4
    churn diloco diloco --inner 4
    churn codes diloco --inner 4 --codes
    churn async async --inner 4 ;;
*)
    echo "unknown case $case"
    exit 2 ;;
esac
