#!/bin/sh
# mutants_apply.sh [-t TABLE] [SCRIPT FOLDER]... - each mutation of a list changes
# the file that it names. SCRIPT is one with a list (world/sim/mutants.sh), FOLDER is
# where the files are. TABLE (world/sim/mutants.md) has the mutants of the last list,
# who finds each, tests that are there, the right sums, why the oracle and the model do not both find
# it, and a reason for each survivor. Without arguments: all lists of the tree.
#
# Exit status 1 if one does not apply, or the table is stale; 2 if there is
# nothing to check.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
src=$here/../src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
wrong=0

apply() { # SCRIPT FOLDER
    sed "1,/<<'MUTANTS'/d;/^MUTANTS\$/,\$d" "$1" >"$work/list"
    number=0
    while IFS='|' read -r name file script; do
        number=$((number + 1))
        [ -n "$script" ] && [ -f "$2/$file" ] &&
            sed "$script" "$2/$file" >"$work/mutated" 2>/dev/null &&
            ! cmp -s "$2/$file" "$work/mutated" && continue
        echo "$1: $number $name: the mutation does not apply"
        wrong=1
    done <"$work/list"
    [ "$number" -gt 0 ] || { echo "$1: no mutants"; exit 2; }
    cut -d'|' -f1 "$work/list" | sort >"$work/names"
    uniq -d "$work/names" | sed "s|^|$1: two mutants have the name: |" \
        >"$work/twice"
    cat "$work/twice"
    [ ! -s "$work/twice" ] || wrong=1
    echo "$1: $number mutants"
}

# Rows: | name | found by | oracle | model | unit test | reached by | why |
rows() {
    sed '1,/^<!-- mutants.sh -w/d' "$table" |
        awk -F ' *[|] *' 'NF == 9 && $2 != "mutant" && $2 !~ /^-/'
}

# In the test below unit or world, or in a header that it includes.
has_case() # TEST CASE
{
    source=$here/unit/$1.c
    [ -f "$source" ] || source=$here/world/$1.c
    [ -f "$source" ] || return 1
    sed -n 's/^#include "\([a-z_0-9./]*\.h\)"$/\1/p' "$source" |
        sed "s|^|${source%/*}/|" | xargs grep -qw "$2" "$source" 2>/dev/null
}

up_to_date() {
    rows | awk -F ' *[|] *' '{ print $2 }' | sort >"$work/rows"
    diff "$work/names" "$work/rows" | sed -n \
        's/^< /the table lacks: /p; s/^> /the table has, and the list lacks: /p'
    rows | awk -F ' *[|] *' '{ sum[$3]++ }
        END { for (by in sum) print "| " by " | " sum[by] " |" }' |
        while read -r sum; do
            grep -qxF "$sum" "$table" ||
                echo "the table has another sum than $sum"
        done
    rows | awk -F ' *[|] *' '
        $3 == "untried" { print "nobody has tried this one: " $2 }'
    rows | awk -F ' *[|] *' '$6 { print $6 }' | sort -u |
        while IFS=: read -r test case; do
            has_case "$test" "${case:-main}" ||
                echo "there is no such test: $test${case:+:$case}"
        done
    # A reason is a word that the table explains.
    rows | awk -F ' *[|] *' '$3 != "both" { print ($8 ? $8 : "?") "|" $2 }' |
        while IFS='|' read -r why name; do
            grep -q "^\* \*$why\*: " "$table" ||
                echo "the table does not say why not both find this one: $name"
        done
    rows | awk -F ' *[|] *' '$3 == "none" || $3 == "open" { print $2 }' |
        while read -r name; do
            sed '/^<!-- mutants.sh -w/,$d' "$table" | grep -qF -- "$name" ||
                echo "the table does not say why this one survives: $name"
        done
}

table=
if [ "${1:-}" = -t ]; then
    table=$2
    shift 2
fi
[ -z "$table" ] || [ $# -gt 0 ] || { echo "no list for the table"; exit 2; }
if [ $# -gt 0 ]; then
    while [ $# -gt 0 ]; do
        apply "$1" "$2"
        shift 2
    done
else
    apply "$here/world/litmus/mutants.sh" "$src"
    apply "$here/world/sched/mutants.sh" "$src"
    apply "$here/world/mpi_sim/mutants.sh" "$src/mpi"
    apply "$here/run/server/mutants.sh" "$src"
    apply "$here/world/sim/mutants.sh" "$src"
    table=$here/world/sim/mutants.md
fi
[ -z "$table" ] || up_to_date >"$work/stale"
[ -z "$table" ] || [ ! -s "$work/stale" ] || { cat "$work/stale"; wrong=1; }
exit $wrong
