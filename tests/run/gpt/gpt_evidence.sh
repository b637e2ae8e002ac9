#!/bin/sh
# gpt_evidence.sh PYTHON SOURCE BIN - examples/gpt/evidence.py with a tiny model:
# every way of training is in the table and the files, its loss falls, kills and
# joins are in them; files that are there are not made anew.
set -eu
python=$1 source=$2 bin=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
evidence()
{
    "$python" -B "$source/examples/gpt/evidence.py" --bin "$bin" --small \
        --steps 24 --every 4 --out "$work" "$@" >"$work/table" 2>"$work/log" ||
        { cat "$work/table" "$work/log"; exit 1; }
}

evidence
awk -F, '$7 != "" { event[$1, $7]++ }
    $6 ~ /[0-9]/ { if (!($1 in first)) { first[$1] = $6; n++ } last[$1] = $6 }
    END {
        for (run in first)
            if (last[run] > first[run] - 0.2) {
                print run ": " first[run] " -> " last[run]; exit 1
            }
        if (n != 8 && n != 13) { print n " runs"; exit 1 }
        if (event["churn", "lost"] != 2 || !event["churn", "joined"]) {
            print "kills and joins are missing"; exit 1
        }
    }' "$work/evidence.csv" || { cat "$work/evidence.csv"; exit 1; }
[ "$(grep -c '^| .* | [0-9.]* | [0-9.]* |' "$work/table")" -ge 8 ]
cp "$work/evidence.csv" "$work/before"
evidence --only ddp,async
cmp "$work/before" "$work/evidence.csv"
