#!/bin/sh
# compare.sh - PCCL/MPI beside MPICH, Open MPI and Gloo on this machine.
#
# Runs the same program and cases against all of them, alternating, several
# rounds, and prints one table of medians and ratios: ours, best peer, floor
# (what the machine allows without fault tolerance, floor_*.c; floor-private: if
# besides the vectors are private). Not part of the test suite: it takes minutes,
# and its figures are worth something only on a machine that does nothing else.
set -eu

usage() {
    cat <<'END'
usage: sh tests/bench/compare.sh [options]
  --quick            2 rounds, short, up to 16 MiB: two or three minutes
  --ranks LIST       2,4,8
  --sizes LIST       cases: BYTES[xK][i], K operations at once, i: in place
                     (8,1024,65536,1048576,16777216,268435456 and, with 2
                     ranks, 16777216i,268435456i,1048576x8,65536x64)
  --transport LIST   shm,tcp
  --peers LIST       mpich,openmpi,gloo (those that can be had)
  --rounds N         rounds (3)
  --seconds S        per case, library and round (0.1)
  --limit S          seconds after which one program is given up (20)
  --minutes M        begin nothing new after that time (12)
  --data FILE        append the raw figures, and print all that are in it;
                     parts that it has are not measured again, so the same
                     command goes on where the last one ended
  --print-only       measure nothing: print what --data has
  --svg FILE         draw it
  --build DIR        build folder (build)
END
}

root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build
ranks=2,4,8 sizes='' transports=shm,tcp peers=mpich,openmpi,gloo
rounds=3 seconds=0.1 limit=20 minutes=12 data='' svg='' measure=yes
large=,268435456
while [ $# -gt 0 ]; do
    option=$1
    shift
    case $option in
    --quick) rounds=2 seconds=0.05 large='' ; continue ;;
    --print-only) measure=no ; continue ;;
    --help) usage ; exit 0 ;;
    --ranks | --sizes | --transport | --peers | --rounds | --seconds | \
    --limit | --minutes | --data | --svg | --build)
        [ $# -gt 0 ] || { echo "compare.sh: $option needs a value" >&2; exit 2; }
        ;;
    *) echo "compare.sh: unknown option $option; see --help" >&2 ; exit 2 ;;
    esac
    case $option in
    --ranks) ranks=$1 ;;
    --sizes) sizes=$1 ;;
    --transport) transports=$1 ;;
    --peers) peers=$1 ;;
    --rounds) rounds=$1 ;;
    --seconds) seconds=$1 ;;
    --limit) limit=$1 ;;
    --minutes) minutes=$1 ;;
    --data) data=$1 ;;
    --svg) svg=$1 ;;
    --build) build=$1 ;;
    esac
    shift
done
words() { echo "$1" | tr , ' '; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
[ -n "$data" ] || data=$work/data
: >>"$data"

# What cannot be had is left out, with a word.
install() { # PACKAGES...
    [ "$(id -u)" = 0 ] || return 1
    command -v apt-get >/dev/null || return 1
    apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1 || {
        apt-get update >/dev/null 2>&1 || true
        apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1
    }
}

skip() { echo "# no $1: $2" >&2; }

source=$root/tests/bench
prepare_mpich() {
    command -v mpicc.mpich >/dev/null && command -v mpiexec.mpich >/dev/null ||
        install mpich libmpich-dev || true
    mpicc.mpich -O2 "$source/bench_mpi_allreduce.c" -o "$work/mpich" 2>"$work/log" ||
        { skip mpich "cannot build with mpicc.mpich"; return 1; }
}
prepare_openmpi() {
    command -v mpicc.openmpi >/dev/null &&
        command -v mpiexec.openmpi >/dev/null ||
        install openmpi-bin libopenmpi-dev || true
    mpicc.openmpi -O2 "$source/bench_mpi_allreduce.c" -o "$work/openmpi" \
        2>"$work/log" ||
        { skip openmpi "cannot build with mpicc.openmpi"; return 1; }
}
prepare_gloo() {
    compile="c++ -O2 $source/gloo_allreduce.cc -o $work/gloo -lgloo -lpthread"
    $compile 2>"$work/log" || { install libgloo-dev && $compile 2>"$work/log"; } ||
        { skip gloo "cannot build with libgloo-dev"; return 1; }
}

prepare() {
    cmake -B "$build" "$root" >/dev/null
    cmake --build "$build" --target pccl-master mpi_pccl mpi_allreduce \
        >/dev/null
    for name in tcp shm private; do
        ${CC:-cc} -std=c11 -D_GNU_SOURCE -O3 -march=native \
            "$source/floor_$name.c" -o "$work/floor_$name"
    done
    have=''
    for peer in $(words "$peers"); do
        case $peer in
        mpich | openmpi | gloo) ;;
        *) echo "compare.sh: no peer $peer" >&2 ; exit 2 ;;
        esac
        prepare_$peer && have="$have $peer"
    done
    case " $have " in *' openmpi '*) have="$have openmpi-tuned" ;; esac
    case " $have " in *' mpich '*) have="$have mpich-tuned" ;; esac
}

# run LIBRARY TRANSPORT RANKS CASES...: lines "CASE MEDIAN MIN". What has come
# within the limit counts: MPICH, which never yields, may take minutes with more
# ranks than processors.
run() {
    library=$1 transport=$2 n=$3
    shift 3
    open="mpiexec.openmpi --allow-run-as-root --oversubscribe -n $n"
    ucx=''
    if [ "$transport" = tcp ]; then
        open="$open --mca pml ob1 --mca btl tcp,self"
        open="$open --mca btl_tcp_if_include lo"
        # One device: UCX else cuts messages over all interfaces of the host,
        # which lead through the same loopback.
        ucx='UCX_TLS=tcp,self UCX_NET_DEVICES=lo MPIR_CVAR_NOLOCAL=1'
    fi
    case $library in
    pccl)
        PCCL_TRANSPORT=$transport timeout "$limit" "$build/bin/pccl-master" \
            -n "$n" "$build/bin/mpi_allreduce" "$@" ;;
    floor) timeout "$limit" "$work/floor_$transport" "$n" "$@" ;;
    floor-private)
        [ "$transport" = tcp ] ||
            timeout "$limit" "$work/floor_private" "$n" "$@" ;;
    mpich)
        env $ucx timeout "$limit" mpiexec.mpich -n "$n" "$work/mpich" "$@" ;;
    mpich-tuned)
        # Half the time at 64 KiB, more at 1 MiB.
        [ "$transport" = shm ] || env $ucx UCX_TCP_PUT_ENABLE=n timeout \
            "$limit" mpiexec.mpich -n "$n" "$work/mpich" "$@" ;;
    openmpi) timeout "$limit" $open "$work/openmpi" "$@" ;;
    openmpi-tuned)
        # malloc keeps its memory: no page faults in every call.
        timeout "$limit" $open -x MALLOC_TRIM_THRESHOLD_=-1 \
            -x MALLOC_MMAP_MAX_=0 "$work/openmpi" "$@" ;;
    gloo) [ "$transport" = shm ] || timeout "$limit" "$work/gloo" "$n" "$@" ;;
    esac
}

cases() { # RANKS
    if [ -n "$sizes" ]; then
        words "$sizes"
    elif [ "$1" = 2 ]; then
        words "8,1024,65536,1048576,16777216$large,16777216i${large:+${large}i}"
        echo 1048576x8 65536x64
    else
        words "8,1024,65536,1048576,16777216$large"
    fi
}

# One library's figures of one round, unless they are there already.
part() { # ROUND RANKS TRANSPORT LIBRARY
    grep -qx "# done $*" "$data" && return
    if [ $(($(date +%s) - begun)) -ge $((minutes * 60)) ]; then
        left=$((left + 1))
        return
    fi
    # One that hangs or dies leaves a gap, not an end.
    run "$4" "$3" "$2" $(cases "$2") >"$work/lines" 2>"$work/log" </dev/null ||
        echo "# $4 $3 $2: not all: $(tail -1 "$work/log")" >&2
    # A launcher that ends its ranks says so between the figures.
    while read -r name median least; do
        case $name in
        [0-9]*) echo "$2 $3 $name $4 $median $least" ;;
        esac
    done <"$work/lines" >>"$data"
    echo "# done $*" >>"$data"
}

if [ "$measure" = yes ]; then
    prepare
    export SAMPLE_SECONDS="$seconds" TMPDIR="$work"
    begun=$(date +%s)
    left=0
    round=1
    while [ "$round" -le "$rounds" ]; do
        for n in $(words "$ranks"); do
            for transport in $(words "$transports"); do
                for library in pccl $have floor floor-private; do
                    part "$round" "$n" "$transport" "$library"
                done
            done
        done
        round=$((round + 1))
    done
    [ "$left" = 0 ] || echo "# $left parts are left: the time is over. The \
same command with --data measures them." >&2
fi
if [ -n "$svg" ]; then
    python3 "$source/compare.py" "$data" --svg "$svg"
else
    python3 "$source/compare.py" "$data"
fi
