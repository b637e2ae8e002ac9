#!/bin/sh
# stages.sh BIN TEXT CASE - the example `stages`.
#
# same    losses are those of one process, which computes the model as a whole;
#         with a subspace those of one process that has the same stages
# lost    the same losses while a worker of each stage dies, in mid-step and at
#         its end, a trainer dies, and a worker joins
# inside  with PowerSGD and SPARTA among the workers of a stage one dies: the
#         others end with the same weights, and the loss falls
# bytes   a subspace of a hundredth moves a hundredth
# refuse  a stage without workers, wrong options
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

model='--layers 3 --heads 2 --width 24 --context 16 --batch 8 --micro 2
    --steps 12 --every 6 --held 4'

# train NAME RANKS OPTIONS...: into NAME.out. The time limit is for bugs only.
train()
{
    name=$1 ranks=$2
    shift 2
    # shellcheck disable=SC2086 # into words
    "$bin/pccl-master" --timeout 300 -n "$ranks" --elastic "$bin/stages" \
        $model "$@" "$text" >"$work/$name.out" 2>&1 || fail "$name ended with $?"
}

alone() # NAME OPTIONS...
{
    name=$1
    shift
    # shellcheck disable=SC2086 # into words
    "$bin/stages" --alone $model "$@" "$text" >"$work/$name.out" ||
        fail "$name ended with $?"
}

# Losses of all 12 steps and two held-out ones: at most 0.0001 apart.
equal() # NAME NAME
{
    awk '$1 != "step" && $1 != "held" { next }
        { loss = ""; for (i = 2; i < NF; i++) if ($i == "loss") loss = $(i + 1)
          key = $1 " " $2 }
        NR == FNR { first[key] = loss; next }
        !(key in first) { print key " is new"; bad = 1; next }
        { n++; d = loss - first[key]; if (d > 1e-4 || d < -1e-4) {
            print key ": " first[key] " and " loss; bad = 1 } }
        END { exit bad || n != 14 }' "$work/$1.out" "$work/$2.out" ||
        fail "$1 and $2 differ"
}

# The workers of each stage end with the same weights.
agree() # NAME WORKERS
{
    [ "$(grep -c '^worker of stage .*: done, step 12, ' "$work/$1.out")" = \
        "$2" ] || fail "$1: not $2 workers ended"
    for stage in 0 1; do
        [ "$(sed -n "s/^worker of stage $stage: done, step 12, //p" \
            "$work/$1.out" | sort -u | wc -l)" = 1 ] ||
            fail "$1: workers of stage $stage differ"
    done
}

# A worker of each stage dies; from step 8 on the others wait for a third one,
# which joins.
churn()
{
    mkfifo "$work/pipe"
    # shellcheck disable=SC2086 # into words
    "$bin/pccl-master" --timeout 300 -n 5 --elastic "$bin/stages" $model \
        --die 1:3 --die-at-end 4:5 --min 3:8 "$text" >"$work/pipe" 2>&1 3<&- &
    jobs="$jobs $!"
    exec 3<"$work/pipe"
    address=
    while IFS= read -r line <&3; do
        echo "$line" >>"$work/churn.out"
        case $line in
        'pccl-master: listening on '*) [ "$address" ] || address=${line##* } ;;
        'step 8 members 3 workers 2 '*)
            # shellcheck disable=SC2086 # into words
            "$bin/pccl-master" --timeout 300 --join "$address" -n 1 \
                "$bin/stages" $model --min 3:8 "$text" \
                >"$work/pipe" 2>&1 3<&- &
            jobs="$jobs $!" ;;
        esac
    done
    exec 3<&-
    for job in $jobs; do wait "$job" || fail "a launcher failed"; done
    jobs=
    grep -q '^step 12 members 4 workers 3 ' "$work/churn.out" ||
        fail "the newcomer took no part in the last step"
}

refused() # TEXT OPTIONS...
{
    wanted=$1
    shift
    status=0
    "$bin/stages" "$@" >"$work/refused.out" 2>&1 || status=$?
    [ $status = 2 ] || fail "$* ended with $status"
    grep -q -- "$wanted" "$work/refused.out" || fail "$*: no '$wanted'"
}

case $case in
same)
    alone alone --stages 3
    train three 4 --stages 3
    equal alone three
    train two 6 --stages 2 --trainers 2
    agree two 4
    alone alone2 --stages 2
    equal alone2 two
    alone few --stages 3 --subspace 3
    train pieces 7 --stages 3 --subspace 3
    equal few pieces ;;
lost)
    alone alone --stages 2
    churn
    equal alone churn
    agree churn 3
    train trainer 5 --stages 2 --trainers 2 --die 1:4
    equal alone trainer
    grep -q '^step 5 members 4 workers 3 trainers 1 ' "$work/trainer.out" ||
        fail "the trainer did not die" ;;
inside)
    train inside 5 --stages 2 --power-rank 2 --sparta 3 --die 1:4
    agree inside 3
    awk '$1 == "held" { if (!first) first = $4; last = $4 }
        $1 == "step" && $2 == 1 { begin = $10 } $1 == "step" { end = $10 }
        END { exit !(end < begin - 0.2) }' "$work/inside.out" ||
        fail "the loss did not fall" ;;
bytes)
    model='--layers 2 --heads 4 --width 400 --context 4 --batch 2 --micro 1
        --steps 1 --every 1 --held 0'
    train whole 3
    train pieces 3 --subspace 4
    awk '$1 == "step" { bytes[FILENAME] = $14; tokens[FILENAME] = $16 }
        END { for (f in bytes) print f, bytes[f], tokens[f]
            whole = bytes[ARGV[1]]; few = bytes[ARGV[2]]
            exit !(whole == 1600 * tokens[ARGV[1]] && few * 100 == whole) }' \
        "$work/whole.out" "$work/pieces.out" || fail "the bytes are wrong" ;;
refuse)
    refused 'fewer layers than stages' --stages 4 --layers 3 "$text"
    refused 'no such stage' --stages 2 --stage 2 "$text"
    refused 'wider than the activations' --subspace 129 "$text"
    refused '--micro 99 is out of its range' --micro 99 "$text"
    refused '--die 3 is out of its range' --die 3 "$text"
    refused 'does not fit into a message' --micro 16 --context 4095 "$text"
    # shellcheck disable=SC2086 # into words
    if "$bin/pccl-master" --timeout 300 -n 3 --elastic "$bin/stages" $model \
        --die 1:2 "$text" >"$work/bare.out" 2>&1; then
        fail "a stage without workers went on"
    fi
    grep -q 'stage 0 has no worker left: its weights are gone' \
        "$work/bare.out" || fail "no word about stage 0" ;;
*)
    echo "unknown case $case"
    exit 2 ;;
esac
