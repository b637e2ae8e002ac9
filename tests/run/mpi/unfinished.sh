#!/bin/sh
# unfinished.sh MASTER SURVIVE - tests that a rank that ends without MPI_Finalize
# is no success, however it ends; and that a loss that no call meets is told at
# once and at the end, and makes the status 75 under a program that has not opted
# in.
set -eu
master=$1 survive=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

run() # STATUS OPTIONS HOW: whether the job ends with that status
{
    expected=$1 options=$2 how=$3 status=0
    # shellcheck disable=SC2086 # words
    timeout 300 "$master" -n 3 $options "$survive" unfinished "$how" \
        >"$work/out" 2>&1 </dev/null || status=$?
    [ $status = "$expected" ] || {
        echo "$options $how: status $status, not $expected"
        cat "$work/out"
        exit 1
    }
}

says() # TEXT
{
    grep -q "$1" "$work/out" && return
    echo "$options $how: '$1' is not in"
    cat "$work/out"
    exit 1
}

for how in exit _exit exec fork; do
    run 1 '' $how
    says 'rank 1 .* exited with status 0, but without MPI_Finalize; ending'
    run 1 --elastic $how
    says 'rank 1 .* exited with status 0, but without MPI_Finalize; 2 left'
    says 'the job has ended; 1 of its ranks was lost on the way'
    if grep -q 'status 75' "$work/out"; then cat "$work/out"; exit 1; fi
done
# A shell is a rank, and its child takes part.
status=0
timeout 300 "$master" -n 3 sh -c '"$0" unfinished exit; :' "$survive" \
    >"$work/out" 2>&1 </dev/null || status=$?
[ $status = 1 ] || { echo "a child: status $status"; cat "$work/out"; exit 1; }

# Nobody knows what the rank had to do, unless the program or its user does.
run 75 --elastic killed
says 'rank 1 .* was killed by signal 9 (Killed); 2 left, going on'
says 'the job has ended; 1 of its ranks was lost on the way'
says 'status 75: the result may lack their part'
for options in '--elastic=force killed' '--elastic opted'; do
    run 0 "${options% *}" "${options#* }"
    says 'the job has ended; 1 of its ranks was lost on the way'
    if grep -q 'status 75' "$work/out"; then cat "$work/out"; exit 1; fi
done
run 137 '' killed
run 0 '' well
if grep -q lost "$work/out"; then cat "$work/out"; exit 1; fi
