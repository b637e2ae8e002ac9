#!/bin/sh
# churn.sh BIN TEXT - tests elastic_train with ten joins and ten kills:
# newcomers receive the state, other members never need it, and all final
# members have the same weights.
set -euf
bin=$1 text=$2 steps=${3:-3000}
work=$(mktemp -d)
jobs=
cleanup()
{
    for job in $jobs; do kill "$job" 2>/dev/null || :; done
    rm -rf "$work"
}
trap cleanup EXIT
mkfifo "$work/out"

launch()
{
    "$bin/pccl-master" "$@" "$bin/elastic_train" --steps "$steps" --batch 8 \
        --hidden 16 "$text" >"$work/out" 2>&1 &
    jobs="$jobs $!"
}

fail()
{
    printf 'churn: %s\n' "$*"
    exit 1
}

exec 3<>"$work/out"
launch -n 3 --elastic --timeout 300
joins=0 kills=0 waits=no next=60 lacked=0 received=0 done=0 pids= weights=
ended=no
while [ "$ended" = no ] && IFS= read -r line <&3; do
    # shellcheck disable=SC2086 # into words
    set -- $line
    case $line in
    'pccl-master: listening on '*) address=$4 ;;
    'rank '*': pid '*) pids="$pids ${4%,}" ;;
    'rank '*': lacked '*) lacked=$((lacked + 1)) ;;
    'rank '*': received 0 '*) ;;
    'rank '*': received '*)
        received=$((received + 1))
        waits=no ;;
    'rank '*': done, '*)
        done=$((done + 1))
        weights="$weights $7"
        if [ "$done" = "${2#*/}" ] || [ "$done:" = "${2#*/}" ]; then
            ended=yes
        fi ;;
    'step '*' ranks '*)
        [ "$waits" = no ] && [ "$2" -ge "$next" ] || continue
        next=$(($2 + 40))
        if [ "$joins" = "$kills" ] && [ "$joins" -lt 10 ]; then
            joins=$((joins + 1))
            waits=yes
            launch --join "$address" -n 1
        elif [ "$kills" -lt "$joins" ]; then
            # shellcheck disable=SC2086 # into words
            set -- $pids
            # The first stays: with its last rank a launcher ends the job.
            kept=$1
            kill -9 "$2"
            shift 2
            pids="$kept $*"
            kills=$((kills + 1))
        fi ;;
    esac
done
[ "$joins" = 10 ] && [ "$kills" = 10 ] || fail "$joins joins, $kills kills"
[ "$received" = 10 ] || fail "$received newcomers received the state"
[ "$lacked" = 0 ] || fail "$lacked times a member lacked some of the state"
[ "$(printf '%s\n' $weights | sort -u | grep -c .)" = 1 ] ||
    fail "weights differ: $weights"
echo "churn: 10 joins, 10 kills, $done ranks ended with equal weights$weights"
