#!/bin/sh
# run.sh [-b BUILD] [-o FOLDER] [SCENARIO...] - measures over emulated networks.
#
#   -b BUILD   the build folder (build below the project's root)
#   -o FOLDER  where results are kept (a temporary one, removed at the end)
#
# Scenarios: europe america atlantic star two-sites firewall degrade loss
# vanish partition; all of them without an argument, which takes a quarter of
# an hour. Needs root, /dev/net/tun and an idle machine. Prints tables; with -o
# leaves the plot wan.svg and the raw results, which report.py reads.
set -eu

source=$(cd "$(dirname "$0")" && pwd)
bin=$source/../../build/bin
results=''

while getopts b:o: option; do
    case $option in
    b) bin=$(cd "$OPTARG" && pwd)/bin ;;
    o) mkdir -p "$OPTARG"; results=$(cd "$OPTARG" && pwd) ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ -z "$results" ]; then
    results=$(mktemp -d)
    trap 'rm -rf "$results"' EXIT
fi
if [ $# = 0 ]; then
    set -- europe america atlantic star two-sites firewall degrade loss \
        vanish partition
fi

# one NAME WORLD CONNECTIONS ARGUMENTS...: a run, its results, its table
one()
{
    name=$1 world=$source/$2.wan pool=$3
    shift 3
    peers=$("$bin/wanbox" --check "$world" |
        sed -n 's/.*: \([0-9]*\) peers$/\1/p')
    status=0
    "$bin/wanbox" --log "$results/$name.log" --connections "$pool" --master "
        exec $bin/pccl-master --listen \$WAN_MASTER:48148 --quorum $peers \
            >/dev/null 2>$results/$name.master" \
        --peer "exec $bin/wan-peer $* --pool $pool" "$world" \
        >"$results/$name.out" || status=$?
    if [ $status = 77 ]; then exit 77; fi
    if [ $status != 0 ]; then echo "$name: ended with status $status"; fi
    python3 "$source/report.py" "$results/$name"
}

# The report's experiments: a large vector over 1, 8 and 64 connections, then
# many small ones side by side.
experiment() # WORLD BYTES
{
    one "$1-pool1" "$1" 1 reduce --bytes "$2" --repeat 2 --optimize
    one "$1-pool8" "$1" 8 reduce --bytes "$3" --optimize
    one "$1-pool64" "$1" 64 reduce --bytes "$3" --optimize
    one "$1-small" "$1" 8 reduce --bytes 64K --concurrent 128 --optimize
}

python3 "$source/report.py" --head
for scenario; do
    case $scenario in
    europe) experiment europe 4M 16M ;;
    america) experiment america 2M 8M ;;
    atlantic) experiment atlantic 1M 8M ;;
    star) one star star 1 reduce --bytes 4M --optimize ;;
    two-sites) one two-sites two_sites 1 reduce --bytes 8M --optimize ;;
    firewall) one firewall firewall 1 reduce --bytes 8M --optimize ;;
    degrade) one degrade degrade 1 reduce --bytes 8M --repeat 8 --optimize ;;
    loss) one loss loss 1 reduce --bytes 1M ;;
    vanish) one vanish europe 1 vanish --bytes 4M ;;
    partition) one partition two_sites 1 partition --bytes 4M --lose 2,4,6 ;;
    *) echo "run.sh: no scenario '$scenario'" >&2; exit 2 ;;
    esac
done
python3 "$source/report.py" --plot "$results"
