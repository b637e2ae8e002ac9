#!/bin/sh
# test_quick.sh BIN SOURCE CASE - one small run over the emulated network, with
# a key if WAN_TLS is ON.
#
# No check depends on a duration. Skips (77) where network
# namespaces cannot be made.
set -u
bin=$1 source=$2 case=$3 options='' quorum=''
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export PCCL_DEADLINE=2 PCCL_LOG_LEVEL=ERR
# The nodes are hosts of their own, so the run has a key (rule K1).
if [ "${WAN_TLS:-OFF}" = ON ]; then
    "$bin/pccl-master" --make-token "$dir/key" || exit 1
    export PCCL_TOKEN_FILE="$dir/key"
else
    export PCCL_INSECURE=1
fi

run() # WORLD ARGUMENTS OF THE PEERS...
{
    world=$1
    shift
    peers=$("$bin/wan-emulator" --check "$world" | sed -n 's/.*: \([0-9]*\) peers$/\1/p')
    "$bin/wan-emulator" --log "$dir/log" --peer "exec $bin/wan-peer $*" --master "
        exec $bin/pccl-master $options --listen \$WAN_MASTER:48148 \
            --quorum ${quorum:-$peers} \
            >/dev/null 2>$dir/master" "$world" >"$dir/out"
    status=$?
    if [ $status != 0 ]; then
        cat "$dir/out" "$dir/log" "$dir/master"
        exit $status
    fi
}

need() # PATTERN FILE
{
    if grep -q "$1" "$dir/$2"; then return; fi
    cat "$dir/out" "$dir/log"
    echo "FAILED: no '$1' in $2"
    exit 1
}

# Links pass three processes, on a busy machine too, and no case waits for this.
relay_patiently()
{
    export PCCL_DEADLINE=8
}

# Three members and, in the middle, a newcomer and a synchronization, while
# something happens to the network (README.md, "The network of real life").
through() # LINES-OF-THE-WORLD ARGUMENTS...
{
    export PCCL_DEADLINE=3 PCCL_MASTER_PATIENCE=3600
    (sed 's/^limit .*/limit 240s/' "$source/quick.wan"
     echo 'path 4 <-> master block'
     echo "$1") >"$dir/through.wan"
    shift
    quorum=3
    options=-v
    run "$dir/through.wan" through --load 64K,512Kx2 "$@"
    need '"mark":"through"' log
}

# Peer 2 is evicted, and told why; afterwards all are members.
and_back() # REASON
{
    need "\"through\":\"evicted\",\"peer\":2,\"why\":\"$1" out
}

case $case in
ring)
    # The byte counts of the links show a ring through all four peers.
    run "$source/quick.wan" reduce --load 2M --repeat 2
    need '"phase":"before","peers":4' out
    need '"mark":"before 2M",.*"ring":\[1,2,3,4\]' log ;;
many)
    run "$source/quick.wan" reduce --load 64Kx16,8Kx1x4 --repeat 2 --pool 4
    need '"concurrent":16,"row":1,"pool":4' out
    need '"concurrent":1,"row":4,"pool":4' out ;;
loss)
    sed 's/^offload off$/path * <-> * loss 5%/' "$source/quick.wan" |
        awk '/^path \* <-> \* loss/ {late = $0; next} {print}
             END {print late}' >"$dir/loss.wan"
    run "$dir/loss.wan" reduce --load 128K --repeat 2
    need '"mark":"before 128K",.*"lost":[1-9]' log ;;
firewall)
    # No peer may connect to 2, and 1 and 3 have no link: a ring still exists.
    (cat "$source/quick.wan"
     echo 'path * -> 2 wall'
     echo 'path 1 <-> 3 block') >"$dir/firewall.wan"
    run "$dir/firewall.wan" reduce --load 2M --repeat 2 --optimize
    need '"phase":"after","peers":4' out
    need '"optimize":0' out
    need '"mark":"before 2M",.*"ring":\[1,[24],.*\]' log
    need '"mark":"after 2M",.*"ring":\[1,[24],.*\]' log ;;
stranded)
    # Peer 1 reaches the master alone, so there is no ring; every peer gets the
    # cause, and stays.
    run "$source/quick.wan" stranded --stay --load 1M
    need '"stranded":true,"peers":4' out ;;
split)
    # As above, but the largest set that can goes on.
    run "$source/quick.wan" split --load 1M
    need '"split":true,"peers":3' out ;;
relayed)
    options=-v
    # Nobody can connect to 2, 3 and 4: 1 relays.
    relay_patiently
    (cat "$source/quick.wan"
     echo 'path * -> 2,3,4 wall') >"$dir/walls.wan"
    run "$dir/walls.wan" reduce --load 2M --repeat 2 --relay
    need '"phase":"before","peers":4' out
    need 'relays between' master
    # Peer 1 may leave before the others.
    options='-v --relay'
    run "$dir/walls.wan" messages --lose 2
    need '"messages":.*"peers":4' out ;;
coordinator)
    # Nobody can connect to anybody but the coordinator.
    relay_patiently
    options='-v --relay'
    (cat "$source/quick.wan"
     echo 'path * -> 1,2,3,4 wall') >"$dir/walls.wan"
    run "$dir/walls.wan" reduce --load 2M --repeat 2
    need '"phase":"before","peers":4' out
    need 'are linked over this coordinator' master
    run "$dir/walls.wan" messages --lose 2
    need '"messages":.*"peers":4' out ;;
messages)
    # No peer may connect to 2. In the small world all pairs are linked; in the
    # large one most members have no link from which they know its direction.
    (cat "$source/quick.wan"
     echo 'path * -> 2 wall') >"$dir/few.wan"
    run "$dir/few.wan" messages --lose 2
    need '"messages":.*"peers":4' out
    sed 's/^peer east/peer east 4/' "$dir/few.wan" >"$dir/many.wan"
    run "$dir/many.wan" messages --lose 2
    need '"messages":.*"peers":10' out ;;
vanish)
    run "$source/quick.wan" vanish --load 1M
    need '"recovered":.*"peers":3' out ;;
partition)
    run "$source/quick.wan" partition --load 1M --lose 2,4
    need '"recovered":.*"peers":2' out
    need '"gathered":.*"peers":4' out ;;
outage)
    run "$source/quick.wan" outage --load 64K
    need '"outlasted":.*"peers":4' out ;;
forgotten)
    # Half of the middleboxes say nothing, half answer with RST: no packet meets
    # either, because heartbeats and pings keep every connection.
    through 'path * <-> * forget 5s
path 2,3 <-> 3,4,master reset 5s' --idle 8
    need '"mark":"through",.*"stopped":0}' log ;;
pair_silent) through '' --say "'path 1 <-> 2 forget 60s'" ;;
pair_reset) through '' --say "'path 1 <-> 2 reset 60s'" ;;
master_silent)
    through '' --say "'path 2 <-> master forget 60s'" --lose 2
    and_back 'the master can be reached, but nothing passes' ;;
master_reset)
    through '' --say "'path 2 <-> master reset 60s'" --lose 2
    and_back 'the master closed the connection' ;;
moved)
    through '' --move --lose 2
    and_back 'the master can be reached, but nothing passes' ;;
pair_small)
    # Full packets vanish between two members: another one relays.
    through '' --say "'path 2 <-> 3 mtu 1000'"
    need 'it passes small packets only' master
    need 'relays between' master ;;
pair_first)
    # So does all that follows the first bytes of each connection.
    through '' --say "'path 2 <-> 3 first 20kB'"
    need 'relays between' master ;;
small)
    through '' --say "'path 2 <-> 1,3,4 mtu 1000'" \
        --after "'path 2 <-> 1,3,4 mtu 0'" --lose 2
    and_back 'cannot exchange data with rank' ;;
disorder) through 'path * <-> * reorder 5% duplicate 3% jitter 8ms' ;;
*)
    echo "unknown case $case"
    exit 2 ;;
esac
