#!/bin/sh
# trace.sh - traces ranks of an MPI program, one of which is killed; the merged
# trace has their messages with partners, collectives by the names of MPI, the
# wait for a rank that is late, and the end of the killed one. The log has every
# operation.
# usage: trace.sh PCCL_MASTER PCCL_TRACE PROGRAM
set -eu
master=$1 merge=$2 program=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "trace.sh: $*" >&2; exit 1; }

PCCL_TRACE="$folder/of" PCCL_LOG_LEVEL=TRACE \
    "$master" --elastic=force --log-file "$folder/log.%r" --log-json \
    -n 3 "$program" > "$folder/out" 2>&1 || {
        cat "$folder/out" >&2
        fail "the program failed"
    }
"$merge" -o "$folder/all" "$folder"/of.* 2> "$folder/report"
grep -q 'of.2: rank 2 .*ends without an end' "$folder/report" ||
    fail "rank 2 was killed: $(cat "$folder/report")"

# has PID PATTERN: the merged trace has such an event of that file
has() {
    grep -q "\"pid\":$1,.*$2" "$folder/all" || fail "rank $(($1 - 1)): no $2"
}
for pid in 1 2 3; do
    has $pid '"name":"MPI_Allreduce".*"result":"success","members":3'
    has $pid '"name":"MPI_Barrier"'
done
has 1 '"cat":"call","name":"MPI_Send","args":{"partner":1,"bytes":4000}'
has 2 '"cat":"call","name":"MPI_Recv","args":{"partner":0,"bytes":4000}'
has 2 '"cat":"wait","name":"MPI_Recv waits","args":{"partner":0,'
has 3 '"name":"the trace ends here"'
for pid in 1 2; do
    has $pid '"name":"MPI_Allreduce".*"result":"a member was lost"'
    has $pid '"name":"change of the view".*"members":2,"lost":1'
done
# Every operation that ended is in the log, too.
for rank in 0 1; do
    traced=$(grep -c "\"cat\":\"operation\".*\"result\"" "$folder/of.$rank")
    logged=$(grep -c '"level":"TRACE","text":"[A-Za-z_-]*, tag ' \
        "$folder/log.$rank")
    [ "$traced" -gt 20 ] && [ "$traced" -eq "$logged" ] ||
        fail "rank $rank: $traced operations traced, $logged logged"
    grep -q 'MPI_Barrier, tag .*success.*, by flat (one message deep' \
        "$folder/log.$rank" || fail "the log of rank $rank has no algorithm"
    grep -q "\"rank\":$rank,\"epoch\":[1-9]" "$folder/log.$rank" ||
        fail "the log of rank $rank has no rank and epoch"
done
grep -q '"level":"INFO","text":"master: ' "$folder/log.none" ||
    fail "the coordinator's log lacks what it says"

# The same with a rank whose host has another clock, two seconds ahead: the
# operations tell that, within what they take.
awk '{
    gsub(/"clock":"[^"]*"/, "\"clock\":\"another\"")
    for (at = 1; at <= 2; at++) {
        key = at == 1 ? "\"ts\":" : "\"began\":"
        if (!match($0, key "[1-9][0-9.]*")) continue
        from = RSTART + length(key); size = RLENGTH - length(key)
        time = sprintf("%.3f", substr($0, from, size) + 2000000)
        $0 = substr($0, 1, from - 1) time substr($0, from + size)
    }
    print
}' "$folder/of.1" > "$folder/far.1"
"$merge" -o "$folder/far" "$folder/of.0" "$folder/far.1" 2> "$folder/report"
moved=$(sed -n 's/.*moved by \(-[0-9]*\)\.[0-9]* ms, within.*/\1/p' \
    "$folder/report")
[ -n "$moved" ] && [ "$moved" -le -1500 ] && [ "$moved" -ge -2500 ] ||
    fail "two seconds are not $moved ms: $(cat "$folder/report")"
