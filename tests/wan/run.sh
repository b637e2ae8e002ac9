#!/bin/sh
# run.sh [-b BUILD] [-o FOLDER] [-t SECONDS] [RUN...] - measures over emulated
# networks.
#
#   -b BUILD    the build folder (build below the project's root)
#   -o FOLDER   keep results there (default: a temporary folder, removed at the
#               end). Runs that already succeeded there are skipped, so the same
#               command continues an interrupted measurement
#   -t SECONDS  start no new run after that time, and exit with 75 if runs
#               are left
#   -l          only name the runs
#   -p          only print
#
# Runs: europe america atlantic star two-sites firewall degrade loss vanish
# partition sweep solver codes; all of them without an argument, which takes
# twenty minutes. Parts of one: europe-pool8, sweep-16; see -l. A part takes up
# to 40 seconds, atlantic-auto two minutes. Needs root, /dev/net/tun and an idle
# machine. Prints tables; with -o they are also left as RESULTS.md, and a plot
# as wan.svg. MPICH and Gloo are measured beside it where mpich, libmpich-dev
# and libgloo-dev are installed.
set -eu

source=$(cd "$(dirname "$0")" && pwd)
bin=$source/../../build/bin
results='' seconds=1000000 only=measure

while getopts b:o:t:lp option; do
    case $option in
    b) bin=$(cd "$OPTARG" && pwd)/bin ;;
    o) mkdir -p "$OPTARG"; results=$(cd "$OPTARG" && pwd) ;;
    t) seconds=$OPTARG ;;
    l) only=list ;;
    p) only=print ;;
    *) sed -n '2,21s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
stores=$(mktemp -d)
if [ -z "$results" ]; then mkdir "$stores/results"; results=$stores/results; fi
trap 'rm -rf "$stores"' EXIT
trap 'exit 130' INT TERM HUP
export PCCL_LOG_LEVEL=${PCCL_LOG_LEVEL:-ERR}
# In clear, unless the caller has a key.
if [ -z "${PCCL_TOKEN_FILE-}" ]; then export PCCL_INSECURE=1; fi

# ------------------------------------------------------------------ the runs

# The vectors of a scenario, scaled to the time that they take: one large
# all-reduce, 64 of 64 KiB at once, and a row of 8 KiB one after the other.
loads() # NAME
{
    case $1 in
    europe-pool1 | europe-mpich | europe-gloo) large=4M ;;
    europe-*) large=16M ;;
    america-pool1 | america-mpich | america-gloo) large=2M ;;
    atlantic-pool1 | atlantic-mpich | atlantic-gloo) large=512K ;;
    star-*) large=2M ;;
    degrade-*) large=2M@8 ;;
    loss-*) large=1M ;;
    *) large=8M ;;
    esac
    # A transatlantic connection has 2 Mbit/s.
    case $1 in
    atlantic-pool1 | atlantic-mpich | atlantic-gloo) many=16Kx64 small=8Kx1x4 ;;
    atlantic-* | america-*) many=64Kx64 small=8Kx1x4 ;;
    *) many=64Kx64 small=8Kx1x32 ;;
    esac
    echo "$large,$many,$small"
}

parts() # SCENARIO or a part of one
{
    case $1 in
    europe | america | atlantic | star | two-sites | loss)
        for kind in pool1 pool8 pool64 auto codes mpich gloo; do
            echo "$1-$kind"
        done ;;
    # MPICH and Gloo cannot avoid a pair without a link.
    firewall)
        for kind in pool1 pool8 pool64 auto codes; do echo "$1-$kind"; done ;;
    degrade) echo degrade-auto ;;
    sweep) for n in 4 8 16 24 32; do echo "sweep-$n"; done ;;
    *) echo "$1" ;;
    esac
}

world() # NAME
{
    case $1 in
    two-sites-* | partition) echo "$source/two_sites.wan" ;;
    sweep-*) echo "$results/$1.wan" ;;
    vanish) echo "$source/europe.wan" ;;
    *) echo "$source/${1%-*}.wan" ;;
    esac
}

# pccl NAME CONNECTIONS ARGUMENTS...: the library's peers. With 0 connections
# the library chooses; the capacity of links is then computed for 64.
pccl()
{
    name=$1 pool=$2
    shift 2
    file=$(world "$name")
    peers=$("$bin/wan-emulator" --check "$file" |
        sed -n 's/.*: \([0-9]*\) peers$/\1/p')
    most=$pool
    [ "$most" != 0 ] || most=64
    "$bin/wan-emulator" --log "$results/$name.log" --connections "$most" --master "
        exec $bin/pccl-master --listen \$WAN_MASTER:48148 --quorum $peers \
            >/dev/null 2>$results/$name.master" \
        --peer "exec $bin/wan-peer $* --pool $pool" "$file" \
        >"$results/$name.out"
}

reduce() # NAME CONNECTIONS ARGUMENTS...
{
    name=$1 pool=$2
    shift 2
    # The longest optimization is measured once.
    case $name in
    america-pool* | atlantic-pool* | atlantic-codes) ;;
    *) set -- --optimize "$@" ;;
    esac
    pccl "$name" "$pool" reduce --load "$(loads "$name")" --repeat 1 "$@"
}

# gloo NAME: Gloo's ring all-reduce over the same links
gloo()
{
    [ -x "$stores/gloo-peer" ] ||
        c++ -O2 "$source/gloo_peer.cc" -o "$stores/gloo-peer" -lgloo \
            -lpthread 2>/dev/null || return 77
    mkdir "$stores/$1"
    "$bin/wan-emulator" --log "$results/$1.log" --connections 1 --peer "
        exec $stores/gloo-peer $stores/$1 $(loads "$1")" "$(world "$1")" \
        >"$results/$1.out"
}

# mpich NAME: MPICH over the same links. Its mpiexec is the master's program and
# prints the command of each host; UCX finds the device in a /sys of its node.
mpich()
{
    [ -x "$stores/mpich-peer" ] ||
        mpicc.mpich -O2 "$source/mpich_peer.c" -o "$stores/mpich-peer" \
            2>/dev/null || return 77
    peers=$("$bin/wan-emulator" --check "$(world "$1")" |
        sed -n 's/.*: \([0-9]*\) peers$/\1/p')
    hosts='' i=1
    while [ $i -le "$peers" ]; do
        i=$((i + 1))
        hosts=$hosts,10.99.0.$i
    done
    launch=$stores/launch
    rm -f "$launch"
    # shellcheck disable=SC2016 # for the shells of the nodes
    echo 'mount -t sysfs none /sys || exit 77
        while ! grep -q LAUNCH_END "$1" 2>/dev/null; do sleep 0.1; done
        exec $(sed -n "s/^HYDRA_LAUNCH: //p" "$1" | sed -n "${WAN_PEER}p")' \
        >"$stores/node.sh"
    "$bin/wan-emulator" --log "$results/$1.log" --connections 1 --master "
        exec mpiexec.mpich -launcher manual -localhost \$WAN_MASTER \
            -disable-auto-cleanup -hosts ${hosts#,} -ppn 1 -n $peers \
            -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES wan \
            $stores/mpich-peer $(loads "$1") </dev/null >$launch \
            2>$results/$1.master" \
        --peer "exec unshare -m sh $stores/node.sh $launch" "$(world "$1")" \
        >"$results/$1.launcher"
    grep '^{' "$launch" >"$results/$1.out"
}

# The cost of a full sweep in a world of N peers with separate links.
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
    pccl "sweep-$1" 1 reduce --load 64K --repeat 1 --optimize
}

measure() # NAME
{
    case $1 in
    vanish) pccl vanish 0 vanish --load 4M ;;
    partition) pccl partition 0 partition --load 4M --lose 2,4,6 ;;
    sweep-*) sweep "${1#sweep-}" ;;
    solver) "$bin/bench_topology" >"$results/solver.out" ;;
    codes) "$bin/bench_quant" >"$results/codes.out" ;;
    *-pool1) reduce "$1" 1 ;;
    *-pool8) reduce "$1" 8 ;;
    *-pool64) reduce "$1" 64 ;;
    *-auto) reduce "$1" 0 ;;
    *-codes) reduce "$1" 0 --quantize ;;
    *-gloo) gloo "$1" ;;
    *-mpich) mpich "$1" ;;
    *) echo "run.sh: no run '$1'" >&2; exit 2 ;;
    esac
}

# ---------------------------------------------------------------- all of them

[ $# -gt 0 ] || set -- europe america atlantic star two-sites firewall degrade \
    loss vanish partition sweep solver codes
names=$(for scenario; do parts "$scenario"; done)
if [ $only = list ]; then
    echo "$names"
    exit
fi
if [ $only = print ]; then
    names=''
elif [ ! -x "$bin/wan-emulator" ] || [ ! -x "$bin/wan-peer" ]; then
    echo "run.sh: no wan-emulator and wan-peer in $bin: build them first" >&2
    exit 2
fi
begin=$(date +%s)
left=0 bad=0
for name in $names; do
    if [ -e "$results/$name.done" ]; then continue; fi
    now=$(date +%s)
    if [ $((now - begin)) -ge "$seconds" ]; then
        left=$((left + 1))
        continue
    fi
    status=0
    measure "$name" || status=$?
    case $status in
    0) : >"$results/$name.done" ;;
    2) exit 2 ;;
    77)
        case $name in *-gloo | *-mpich) ;; *) exit 77 ;; esac
        echo "$name: skipped, cannot be built or started here" ;;
    *)
        bad=$((bad + 1))
        echo "$name: ended with status $status" ;;
    esac
    echo "$name: $(($(date +%s) - now)) s" >&2
done
if [ $left -gt 0 ]; then
    echo "run.sh: $left runs left: the same command goes on" >&2
    exit 75
fi
python3 "$source/report.py" "$results"
[ $bad = 0 ]
