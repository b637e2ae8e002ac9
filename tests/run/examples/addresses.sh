#!/bin/sh
# addresses.sh BIN TEXT - the examples with the coordinator's address in
# PCCL_MASTER, as a name and as an IPv6 address. Two members of each start by
# hand, and end well. What the host has no IPv6 for the test leaves out, with a
# word; where it has no name for ::1 the test gives it one, for itself.
set -eu
bin=$1 text=$2
work=$(mktemp -d)
jobs= ran=
trap 'for job in $jobs; do kill "$job" 2>/dev/null || :; done; wait
    rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1

named() { getent ahosts "$1" >/dev/null; }

if [ $# = 2 ] && ! named ip6-localhost &&
    unshare -rm mount --bind /etc/hosts /etc/hosts 2>/dev/null; then
    { cat /etc/hosts; echo '::1 ip6-localhost'; } >"$work/hosts"
    # shellcheck disable=SC2016 # of the inner shell
    unshare -rm sh -ec 'mount --bind "$1" /etc/hosts; shift; sh "$@" named' \
        - "$work/hosts" "$0" "$@"
    exit
fi

fail()
{
    echo "FAILED: $*"
    cat "$work"/[12] "$work/master"
    exit 1
}

# IPv6 can be off though it has names.
reachable() # HOST
{
    case $1 in
    localhost) ;;
    *) grep -q '^0*1 .* lo$' /proc/net/if_inet6 2>/dev/null || return 1 ;;
    esac
    case $1 in
    '['*) ;;
    *) named "$1" ;;
    esac
}

# Starts a coordinator that listens on HOST; its port is in $port.
coordinate() # HOST
{
    mkfifo "$work/pipe"
    for file in 1 2 master; do : >"$work/$file"; done
    "$bin/pccl-master" --listen "$1:0" --quorum 2 \
        >"$work/pipe" 2>&1 &
    jobs=$!
    exec 3<"$work/pipe"
    port=
    while [ ! "$port" ] && IFS= read -r line <&3; do
        echo "$line" >>"$work/master"
        case $line in *'listening on '*) port=${line##*:} ;; esac
    done
    [ "$port" ] || fail "no coordinator on $1"
    cat <&3 >>"$work/master" &
    jobs="$jobs $!"
    exec 3<&-
}

# Both members' exit status, and what one of them prints.
pair() # HOST EXPECTED PROGRAM ARGUMENT...
{
    host=$1 expected=$2 program=$3
    shift 3
    case $program in
    train_text | elastic_train) # a build may be without MPI
        [ -x "$bin/$program" ] || return 0 ;;
    esac
    coordinate "$host"
    members=
    for member in 1 2; do
        PCCL_MASTER="$host:$port" "$bin/$program" "$@" >"$work/$member" 2>&1 &
        members="$members $!"
        jobs="$jobs $!"
    done
    for member in $members; do
        wait "$member" || fail "$program at $host ends with $?"
    done
    grep -q "$expected" "$work/1" "$work/2" ||
        fail "$program at $host does not say $expected"
    for job in $jobs; do kill "$job" 2>/dev/null || :; done
    wait
    jobs= ran="$ran $program"
    rm "$work/pipe"
}

small='--batch 16 --hidden 16'
tiny='--layers 1 --heads 1 --width 8 --context 8 --batch 4 --held 1 --every 9'
# shellcheck disable=SC2086 # into words
for host in localhost '[::1]' ip6-localhost; do
    if ! reachable "$host"; then
        echo "this host has no $host"
        continue
    fi
    pair "$host" 'sum of 2 peers' all_reduce
    pair "$host" '2 members, total 6$' hello_loop --steps 3
    pair "$host" '2 replicas' grid --shards 1 --steps 20
    pair "$host" 'of 2 members' unequal --steps 2 --target 4 --unit 1000
    pair "$host" '^2,2,100.0' partial_rounds --rounds 2 --deadline 20000 \
        --elements 1000
    pair "$host" 'outer 2 members 2 ' diloco --outer 2 --inner 2 $small "$text"
    pair "$host" 'outer 2 members 2 ' async_diloco --outer 2 --inner 2 $small \
        "$text"
    pair "$host" 'step 2 members 2 ' gpt ddp --steps 2 $tiny "$text"
    pair "$host" '2 ranks' train_text --steps 2 $small "$text"
    pair "$host" '2 ranks' elastic_train --steps 2 $small "$text"
done
echo "ran:$ran"
