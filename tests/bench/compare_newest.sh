#!/bin/sh
# compare_newest.sh - PCCL/MPI beside the newest MPICH, Open MPI and Intel MPI.
#
# Takes the three from PyPI into virtual environments that are thrown away
# afterwards, builds bench_mpi_ranks.c and bench_mpi_p2p.c with each, and runs
# the same cases in turn, several rounds: collectives with inputs as the last
# call left them and with inputs that are written before each call ("dirty"),
# and point to point. Prints medians, and ours by the best of the others. Not
# part of the test suite: its figures are worth something only on a machine that
# does nothing else. What cannot be had is left out, with a word.
set -eu

usage() {
    cat <<'END'
usage: sh tests/bench/compare_newest.sh [options]
  --ranks LIST       2,4,8
  --sizes LIST       bytes of a vector or block (8,1024,65536,1048576)
  --transport LIST   shm,tcp
  --peers LIST       mpich,openmpi,intel
  --rounds N         rounds (5)
  --limit S          seconds after which one program is given up (60)
  --bind             binds our ranks to a core each, as Intel MPI and Open MPI
                     bind theirs
  --minutes M        begin nothing new after that time (30)
  --data FILE        append the raw figures there, and print all that are in it
  --print-only       measure nothing: print what --data has
  --build DIR        build folder (build)
END
}

root=$(cd "$(dirname "$0")/../.." && pwd)
source=$root/tests/bench
build=$root/build
ranks=2,4,8 sizes=8,1024,65536,1048576 transports=shm,tcp
peers=mpich,openmpi,intel
rounds=5 limit=60 minutes=30 data='' measure=yes bind=''
while [ $# -gt 0 ]; do
    option=$1
    shift
    case $option in
    --print-only) measure=no ; continue ;;
    --bind) bind='--bind-to core' ; continue ;;
    --help) usage ; exit 0 ;;
    --ranks | --sizes | --transport | --peers | --rounds | --limit | \
    --minutes | --data | --build)
        [ $# -gt 0 ] ||
            { echo "compare_newest.sh: $option needs a value" >&2; exit 2; }
        ;;
    *) echo "compare_newest.sh: unknown option $option; see --help" >&2
        exit 2 ;;
    esac
    case $option in
    --ranks) ranks=$1 ;;
    --sizes) sizes=$1 ;;
    --transport) transports=$1 ;;
    --peers) peers=$1 ;;
    --rounds) rounds=$1 ;;
    --limit) limit=$1 ;;
    --minutes) minutes=$1 ;;
    --data) data=$1 ;;
    --build) build=$1 ;;
    esac
    shift
done
words() { echo "$1" | tr , ' '; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
[ -n "$data" ] || data=$work/data
: >>"$data"

skip() { echo "# no $1: $2" >&2; }

programs() { # LIBRARY COMPILER
    for name in ranks p2p; do
        "$2" -O2 "$source/bench_mpi_$name.c" -o "$work/$1-$name" \
            2>"$work/log" || { skip "$1" "cannot build with $2"; return 1; }
    done
}

# The package of a library into an environment of its own. Without a network:
# what is installed here, if anything.
fetch() { # LIBRARY PACKAGE
    python3 -m venv "$work/$1" 2>"$work/log" &&
        "$work/$1/bin/pip" install -q "$2" >>"$work/log" 2>&1 && return
    echo "# $2 cannot be installed from PyPI: $(tail -1 "$work/log")" >&2
    return 1
}

prepare_mpich() {
    mpich=$work/mpich/bin
    fetch mpich mpich || mpich=''
    compiler=${mpich:+$mpich/mpicc}
    programs mpich "${compiler:-mpicc.mpich}" || return 1
    mpich=${mpich:+$mpich/mpiexec}
    mpich=${mpich:-mpiexec.mpich}
}
prepare_openmpi() {
    openmpi=$work/openmpi/bin
    fetch openmpi openmpi || openmpi=''
    compiler=${openmpi:+$openmpi/mpicc}
    programs openmpi "${compiler:-mpicc.openmpi}" || return 1
    openmpi=${openmpi:+$openmpi/mpiexec}
    openmpi=${openmpi:-mpiexec.openmpi}
}
# Its interface is that of MPICH, whose programs it runs.
prepare_intel() {
    [ -x "$work/mpich-ranks" ] || { skip intel "mpich builds for it"; return 1; }
    fetch intel impi-rt || { skip intel "there is no other source"; return 1; }
    mkdir "$work/intel-libs"
    for name in libmpi.so.12 libmpich.so.12; do
        ln -s "$work/intel/lib/libmpi.so.12" "$work/intel-libs/$name"
    done
}

prepare() {
    cmake -B "$build" "$root" >/dev/null
    cmake --build "$build" --target pccl-master mpi_pccl mpi_ranks mpi_p2p \
        >/dev/null
    have=''
    for peer in $(words "$peers"); do
        case $peer in
        mpich | openmpi | intel) prepare_$peer && have="$have $peer" ;;
        *) echo "compare_newest.sh: no peer $peer" >&2 ; exit 2 ;;
        esac
    done
}

run() { # LIBRARY TRANSPORT RANKS ranks|p2p ARGUMENTS...
    library=$1 transport=$2 n=$3 program=$4
    shift 4
    tcp=''
    case $library-$transport in
    mpich-tcp) tcp='UCX_TLS=tcp,self MPIR_CVAR_NOLOCAL=1' ;;
    intel-tcp) tcp='I_MPI_FABRICS=ofi FI_PROVIDER=tcp' ;;
    openmpi-tcp) tcp='OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self
        OMPI_MCA_btl_tcp_if_include=lo' ;;
    esac
    case $library in
    pccl)
        PCCL_TRANSPORT=$transport timeout "$limit" "$build/bin/pccl-master" \
            $bind -n "$n" "$build/bin/mpi_$program" "$@" ;;
    mpich)
        env $tcp timeout "$limit" "$mpich" -n "$n" "$work/mpich-$program" "$@" ;;
    openmpi)
        env $tcp timeout "$limit" "$openmpi" --allow-run-as-root \
            --oversubscribe -n "$n" "$work/openmpi-$program" "$@" ;;
    intel)
        env $tcp LD_LIBRARY_PATH="$work/intel-libs:$work/intel/lib" \
            I_MPI_ROOT="$work/intel" FI_PROVIDER_PATH="$work/intel/lib" \
            timeout "$limit" "$work/intel/bin/mpiexec.hydra" -n "$n" \
            "$work/mpich-$program" "$@" ;;
    esac
}

# One library's figures of one round. Lines of all programs become
# "RANKS TRANSPORT CASE LIBRARY MICROSECONDS".
part() { # RANKS TRANSPORT LIBRARY
    [ $(($(date +%s) - begun)) -lt $((minutes * 60)) ] ||
        { left=$((left + 1)); return 0; }
    for dirty in 0 1; do
        SAMPLE_DIRTY=$dirty run "$3" "$2" "$1" ranks $(words "$sizes") \
            >"$work/lines" 2>"$work/log" </dev/null ||
            echo "# $3 $2 $1: not all: $(tail -1 "$work/log")" >&2
        awk -v p="$1 $2" -v l="$3" -v d="$dirty" 'NF == 3 && $3 + 0 > 0 {
            print p, $1 ":" $2 (d ? ":dirty" : ""), l, $3 }' \
            "$work/lines" >>"$data"
    done
    set -- "$1" "$2" "$3" pp $(words "$sizes") mr $(words "$sizes")
    n=$1 transport=$2 library=$3
    shift 3
    run "$library" "$transport" "$n" p2p "$@" >"$work/lines" 2>"$work/log" \
        </dev/null ||
        echo "# $library $transport $n: not all: $(tail -1 "$work/log")" >&2
    # A rate becomes the time of one message.
    awk -v p="$n $transport" -v l="$library" '
        $1 == "pp" { print p, "latency:" $2, l, $3 }
        $1 == "mr" && $3 > 0 { print p, "rate:" $2, l, 1e6 / $3 }' \
        "$work/lines" >>"$data"
}

if [ "$measure" = yes ]; then
    prepare
    export SAMPLE_SECONDS=0.05 TMPDIR="$work"
    begun=$(date +%s)
    left=0
    round=1
    while [ "$round" -le "$rounds" ]; do
        for n in $(words "$ranks"); do
            for transport in $(words "$transports"); do
                for library in pccl $have; do
                    part "$n" "$transport" "$library"
                done
            done
        done
        round=$((round + 1))
    done
    [ "$left" = 0 ] || echo "# $left parts are left: the time is over" >&2
fi
python3 "$source/compare_newest.py" "$data"
