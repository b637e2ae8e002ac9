#!/bin/sh
# repeat.sh BUILD ROUNDS LOAD [CTEST ARGUMENTS...] - runs the tests of a build
# folder that many times in a row, beside LOAD processes that only spin, and
# prints which tests failed how often. Exit status 1 if one failed.
#
# The spinning processes end with this one, however it ends. What ctest says of
# a round that fails is kept in BUILD/repeat.
set -eu

if [ $# -lt 3 ]; then
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
build=$1 rounds=$2 load=$3
shift 3

spin() # PID of the process to end with
{
    while kill -0 "$1" 2>/dev/null; do
        n=0
        while [ $n -lt 50000 ]; do n=$((n + 1)); done
    done
}

spinners=
stop()
{
    # shellcheck disable=SC2086 # process ids
    [ -z "$spinners" ] || kill $spinners 2>/dev/null || :
    spinners=
}
trap stop EXIT
trap 'exit 1' INT TERM HUP

logs=$build/repeat
rm -rf "$logs"
mkdir -p "$logs"
for _ in $(seq "$load"); do
    spin $$ &
    spinners="$spinners $!"
done

failed_list=$build/Testing/Temporary/LastTestsFailed.log
round=1
while [ "$round" -le "$rounds" ]; do
    rm -f "$failed_list"
    start=$(date +%s)
    status=passed
    (cd "$build" && ctest --output-on-failure "$@") >"$logs/round$round" 2>&1 ||
        status=failed
    echo "round $round of $rounds: $status in $(($(date +%s) - start)) s"
    if [ "$status" = failed ]; then
        # A ctest that found no test names none.
        { cat "$failed_list" 2>/dev/null || echo ':ctest'; } |
            cut -d : -f 2 | tee -a "$logs/failed" | sed 's/^/  /'
    else
        rm "$logs/round$round"
    fi
    round=$((round + 1))
done
stop

if [ ! -e "$logs/failed" ]; then
    echo "no test failed in $rounds rounds beside $load spinning processes"
    exit 0
fi
echo "failed in $rounds rounds beside $load spinning processes:"
sort "$logs/failed" | uniq -c | sort -rn
exit 1
