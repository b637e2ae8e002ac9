#!/bin/sh
# demo.sh [TEXT [BIN]] - trains a model, kills a rank, admits new ones.
#
# 1. train_text, a plain MPI program, with 4 ranks; one is killed with kill -9.
# 2. elastic_train, 4 ranks; one is killed, two join while it runs.
#
# Builds into build/ first, unless BIN names a folder with the programs. What
# the build lacks is installed where this account may do that (Debian: by root,
# or by sudo without a password); elsewhere the list of packages is printed, and
# the status is 1. Everything else needs no privileges, and nothing is written
# outside of build/. With a terminal, a bar shows how far the training is.
# Exits 0 if all checks pass.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
bin=${2:-$root/build/bin}
work=$bin/../demo.$$
text=${1:-/usr/share/common-licenses/GPL-3}
if [ $# = 0 ] && [ ! -r "$text" ]; then text=$root/include/pccl.h; fi
jobs= # process ids of running launchers

# shellcheck source=progress.sh
. "$root/examples/progress.sh"

cleanup()
{
    trap '' INT TERM HUP
    progress_end
    for job in $jobs; do kill "$job" 2>/dev/null || :; done
    wait
    rm -rf "$work"
}

build()
{
    # shellcheck source=../cmake/deps.sh
    . "$root/cmake/deps.sh"
    # shellcheck disable=SC2046 # package names
    deps_get $(deps_missing) || exit 1
    # For --status-http, where it can be had.
    deps_have_header microhttpd.h || deps_offer libmicrohttpd-dev || :
    # For runs with a key.
    deps_have_header openssl/ssl.h || deps_offer libssl-dev || :
    tests=ON
    deps_have_header cmocka.h || tests=OFF
    echo "Building into $root/build"
    {
        cmake -S "$root" -B "$root/build" -DBUILD_TESTING=$tests &&
            cmake --build "$root/build" -j "$(nproc)" \
                --target pccl-master train_text elastic_train &&
            : >"$work/built"
    } 2>&1 | progress_build "$work/log"
    if [ ! -e "$work/built" ]; then
        cat "$work/log"
        exit 1
    fi
}

# Starts a launcher that writes to the pipe of `play`. The time limit only
# guards against bugs. Its process id is in $!.
launch() # pccl-master arguments
{
    timeout 300 "$bin/pccl-master" "$@" >"$work/out" 2>&1 3<&- &
    jobs="$jobs $!"
}

say() { progress_line ">>> $*"; }

# Runs a program with 4 ranks and reacts to its output: kills rank 2 at step
# kill_at, starts two more ranks at step join_at (0: never).
play() # program steps kill_at join_at
{
    program=$1 steps=$2 kill_at=$3 join_at=$4
    address='' victim='' first='' last='' hashes='' started=0 done=0
    : >"$work/steps"
    mkfifo "$work/out"
    launch -n 4 --elastic=force --verbose "$bin/$program" --steps "$steps" "$text"
    exec 3<"$work/out"
    while IFS= read -r line <&3; do
        progress_line "    $line"
        # shellcheck disable=SC2086 # into words
        set -- $line
        case $line in
        'pccl-master: listening on '*)
            address=$4 ;;
        'rank '*': pid '*)
            started=$((started + 1))
            if [ "$2" = 2/4: ]; then victim=${4%,}; fi ;;
        'step '*' ranks '*)
            last=$6
            printf '%s\n' "$line" >>"$work/steps"
            first=${first:-$last}
            progress "$2" "$steps" "$program: $3 ranks, loss $last"
            if [ "$kill_at" != 0 ] && [ "$2" -ge "$kill_at" ]; then
                kill_at=0
                say "kill -9 $victim"
                kill -9 "$victim"
            fi
            if [ "$join_at" != 0 ] && [ "$2" -ge "$join_at" ]; then
                join_at=0
                say "pccl-master --join $address -n 2 $program"
                launch --join "$address" -n 2 \
                    "$bin/$program" --steps "$steps" "$text"
            fi ;;
        'rank '*': done, '*)
            done=$((done + 1))
            hashes="$hashes $7" ;;
        esac
    done
    exec 3<&-
    progress_end
    rm "$work/out"
    status=0
    for job in $jobs; do wait "$job" || status=$?; done
    jobs=
}

# Checks the output that `play` has recorded, and draws its losses.
verdict() # started done
{
    fault=
    # shellcheck disable=SC2086 # one per line
    distinct=$(printf '%s\n' $hashes | sort -u | wc -l)
    if [ "$status" != 0 ]; then fault="a launcher's exit status is $status"
    elif [ "$started" != "$1" ]; then fault="$started ranks began, not $1"
    elif [ "$done" != "$2" ]; then fault="$done ranks ended, not $2"
    elif [ "$distinct" != 1 ]; then fault="the ranks' weights differ"
    elif ! awk "BEGIN { exit !($last < $first - 1) }"; then
        fault="the loss did not fall: $first -> $last"
    fi
    if [ -n "$fault" ]; then
        say "FAILED: $program: $fault"
        exit 1
    fi
    say "$program: $((started - done)) lost, $((started - 4)) joined;" \
        "$done ranks ended with equal weights$(printf '%.17s' "$hashes");" \
        "loss $first -> $last"
    awk -f "$root/examples/loss_picture.awk" "$work/steps"
}

trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
trap cleanup EXIT
if [ ! -r "$text" ]; then
    echo "$0: cannot read $text" >&2
    exit 2
fi
mkdir -p "$work"
if [ $# -lt 2 ]; then build; fi

set -f # lines of output are split into words, and never are file names
say "1. A plain MPI program, 4 ranks; one of them will be killed"
play train_text 300 100 0
verdict 4 3

say "2. An elastic program, 4 ranks; one will be killed, two will join"
play elastic_train 600 80 160
verdict 6 5

say "PASSED: both trainings survived, all survivors agree to the last bit"
