#!/bin/sh
# resume.sh BIN TEXT - tests that an MPI job whose ranks have all died goes on
# from its checkpoint, with the weights of a job that nothing interrupted, bit
# for bit; and that an edited checkpoint is refused by name.
set -euf
bin=$1 text=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

fail()
{
    printf 'resume: %s\n' "$*"
    cat "$work/out"
    exit 1
}

# DIRECTORY LAUNCHER-OPTIONS -- OPTIONS: 60 steps, a checkpoint every 10.
job()
{
    to=$1 options=
    shift
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    mkdir -p "$work/$to"
    status=0
    # shellcheck disable=SC2086 # into words
    timeout 300 "$bin/pccl-master" -n 3 $options "$bin/elastic_train" \
        --steps 60 --batch 8 --hidden 16 --checkpoint "$work/$to" \
        --save-every 10 "$@" "$text" >"$work/out" 2>&1 || status=$?
    weights=$(sed -n 's/^rank .*: done, .* weights //p' "$work/out" | sort -u)
}

# What all ranks loaded after the step where they died.
resumed()
{
    steps=$(sed -n 's/^rank .*: resumes after step //p' "$work/out" | sort -u)
    case $steps in
    20 | 30) ;; # the last one may not have been complete
    *) fail "$1: resumed after step '$steps'" ;;
    esac
    [ "$status" = 0 ] || fail "$1: status $status"
    [ "$weights" = "$expected" ] || fail "$1: $weights, not $expected"
}

job whole --
[ "$status" = 0 ] || fail "status $status"
expected=$weights
[ -n "$expected" ] || fail "no weights"
set +f
set -- "$work"/whole/*
[ $# = 4 ] || fail "not two checkpoints"
set -f

job one --restart 1,0 -- --die 1:35
resumed "a rank dies, and the job with it"

job writer --restart 1,0 -- --die 0:35
resumed "the rank that writes dies"

job all --elastic --restart 1,0 -- --die all:35
resumed "all ranks die"

job hand --elastic -- --die all:35
[ "$status" != 0 ] || fail "the job succeeded"
job hand --elastic --
resumed "started again by hand"

# One bit of the last checkpoint.
set +f
for last in "$work"/hand/*.safetensors; do :; done
set -f
size=$(wc -c <"$last")
printf '\377' | dd of="$last" bs=1 seek=$((size - 1)) conv=notrunc 2>"$work/dd"
job hand --
[ "$status" != 0 ] || fail "an edited checkpoint was loaded"
grep -q 'tensor ".*" of revision .* does not have its digest' "$work/out" ||
    fail "the tensor is not named"

# A directory that is not there ends nothing but the load.
rm -rf "$work/hand"
job gone --
rm -rf "$work/gone"
timeout 300 "$bin/pccl-master" -n 2 "$bin/elastic_train" --steps 3 \
    --checkpoint "$work/gone" "$text" >"$work/out" 2>&1 &&
    fail "a missing directory was loaded from"
grep -q 'No such file or directory' "$work/out" || fail "no reason is given"
# Where nothing can be written, the training goes on, and says so.
timeout 300 "$bin/pccl-master" -n 2 "$bin/elastic_train" --steps 6 \
    --hidden 16 --save-every 2 --checkpoint /proc "$text" >"$work/out" 2>&1 ||
    fail "a save that failed ended the job"
grep -q 'checkpoint: cannot save revision 2: .*(directory /proc)' \
    "$work/out" || fail "no reason is given"

# Without a launcher.
mkdir "$work/alone"
for steps in 20 30; do
    timeout 300 "$bin/elastic_train" --steps $steps --batch 8 --hidden 16 \
        --save-every 10 --checkpoint "$work/alone" "$text" \
        >"$work/out" 2>&1 || fail "alone: it failed"
done
grep -q '^rank 0: resumes after step 20$' "$work/out" ||
    fail "alone: it did not resume"
echo "resume: weights $expected in every case"
