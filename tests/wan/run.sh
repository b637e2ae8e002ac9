#!/bin/sh
# run.sh [-b BUILD] [-o FOLDER] [SCENARIO...] - measures over emulated networks.
#
#   -b BUILD   the build folder (build below the project's root)
#   -o FOLDER  where results are kept (a temporary one, removed at the end)
#
# Scenarios: europe america atlantic star two-sites firewall degrade loss
# vanish partition sweep; all of them without an argument, which takes a quarter
# of an hour. A part of one is named like its row: europe-pool8, sweep-16. Needs
# root, /dev/net/tun and an idle machine. Prints tables; with -o leaves the plot
# wan.svg and the raw results, which report.py reads. Gloo is measured beside it
# where libgloo-dev is installed.
set -eu

source=$(cd "$(dirname "$0")" && pwd)
bin=$source/../../build/bin
results=''

while getopts b:o: option; do
    case $option in
    b) bin=$(cd "$OPTARG" && pwd)/bin ;;
    o) mkdir -p "$OPTARG"; results=$(cd "$OPTARG" && pwd) ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ -z "$results" ]; then
    results=$(mktemp -d)
    trap 'rm -rf "$results"' EXIT
fi
if [ $# = 0 ]; then
    set -- europe america atlantic star two-sites firewall degrade loss \
        vanish partition sweep
fi
export PCCL_LOG_LEVEL=${PCCL_LOG_LEVEL:-ERR}

# one NAME WORLD CONNECTIONS ARGUMENTS...: a run, its results, its table
one()
{
    name=$1 world=$2 pool=$3
    shift 3
    case $world in */*) ;; *) world=$source/$world.wan ;; esac
    peers=$("$bin/wanbox" --check "$world" |
        sed -n 's/.*: \([0-9]*\) peers$/\1/p')
    # What links could carry with as many connections as the library likes.
    most=$pool
    [ "$most" != 0 ] || most=64
    status=0
    "$bin/wanbox" --log "$results/$name.log" --connections "$most" --master "
        exec $bin/pccl-master --listen \$WAN_MASTER:48148 --quorum $peers \
            >/dev/null 2>$results/$name.master" \
        --peer "exec $bin/wan-peer $* --pool $pool" "$world" \
        >"$results/$name.out" || status=$?
    if [ $status = 77 ]; then exit 77; fi
    if [ $status != 0 ]; then echo "$name: ended with status $status"; fi
    python3 "$source/report.py" "$results/$name"
}

# gloo NAME WORLD SIZE: Gloo's ring all-reduce over the same links
gloo()
{
    [ -x "$results/gloo-peer" ] ||
        c++ -O2 "$source/gloo_peer.cc" -o "$results/gloo-peer" -lgloo \
            -lpthread 2>/dev/null ||
        { echo "$1: skipped, cannot build with libgloo-dev"; return; }
    store=$(mktemp -d)
    "$bin/wanbox" --log "$results/$1.log" --connections 1 --peer "
        exec $results/gloo-peer $store $3" "$source/$2.wan" \
        >"$results/$1.out" || echo "$1: ended with status $?"
    rm -rf "$store"
    python3 "$source/report.py" "$results/$1"
}

# A world of N peers with links of their own; what a full sweep costs.
sweep() # N
{
    {
        echo "title Sweep over $1 peers"
        echo 'limit 120s'
        echo 'congestion cubic'
        echo "peer site $1"
        echo 'master site'
        echo 'rtt site site 20ms'
        echo 'path * <-> * rate 50mbit queue 60ms'
    } >"$results/sweep-$1.wan"
    one "sweep-$1" "$results/sweep-$1.wan" 1 \
        reduce --bytes 64K --repeat 1 --optimize
}

# part NAME: one row of the tables, or two: before and after optimizing.
part()
{
    case $1 in
    europe-*) small=4M large=16M ;;
    america-*) small=2M large=8M ;;
    atlantic-*) small=1M large=8M ;;
    esac
    case $1 in
    *-pool1) one "$1" "${1%-*}" 1 reduce --bytes $small --repeat 2 --optimize ;;
    *-pool8) one "$1" "${1%-*}" 8 reduce --bytes $large --repeat 1 --optimize ;;
    *-pool64) one "$1" "${1%-*}" 64 reduce --bytes $large --repeat 1 --optimize ;;
    *-auto) one "$1" "${1%-*}" 0 reduce --bytes $large --repeat 1 --optimize ;;
    *-large) one "$1" "${1%-*}" 0 reduce --bytes 48M --repeat 1 ;;
    *-small) one "$1" "${1%-*}" 0 reduce --bytes 64K --repeat 1 \
        --concurrent 128 --optimize ;;
    *-codes) one "$1" "${1%-*}" 0 reduce --bytes $large --repeat 1 --quantize \
        --optimize ;;
    *-gloo) gloo "$1" "${1%-*}" $small ;;
    star) one star star 0 reduce --bytes 4M --repeat 1 --optimize ;;
    two-sites) one $1 two_sites 0 reduce --bytes 8M --optimize ;;
    firewall) one firewall firewall 0 reduce --bytes 8M --optimize ;;
    degrade) one degrade degrade 0 reduce --bytes 4M --repeat 6 --optimize ;;
    loss) one loss loss 0 reduce --bytes 1M --repeat 2 ;;
    vanish) one vanish europe 0 vanish --bytes 4M ;;
    partition) one partition two_sites 0 partition --bytes 4M --lose 2,4,6 ;;
    sweep-*) sweep "${1#sweep-}" ;;
    *) echo "run.sh: no scenario '$1'" >&2; exit 2 ;;
    esac
}

python3 "$source/report.py" --head
for scenario; do
    case $scenario in
    europe | america | atlantic)
        # The report's experiments: a large vector over 1, 8, 64 connections
        # and as many as the library likes, many small ones side by side, codes
        # of 8 bits, and Gloo.
        for kind in pool1 pool8 pool64 auto small codes gloo; do
            part "$scenario-$kind"
        done ;;
    sweep) for n in 4 8 16 24 32; do part "sweep-$n"; done ;;
    *) part "$scenario" ;;
    esac
done
python3 "$source/report.py" --plot "$results"
