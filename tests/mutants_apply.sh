#!/bin/sh
# mutants_apply.sh [SCRIPT FOLDER]... - each mutation of a list changes the file
# that it names. SCRIPT is one with a list (sim/mutants.sh), FOLDER is where the
# files are. Without arguments: all lists of the tree, and whether
# sim/mutants.md has the mutants of its list, the right sums, and a reason for
# each survivor.
#
# Exit status 1 if one does not apply, or mutants.md is stale; 2 if there is
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

# Rows: | name | found by | oracle | model | unit test | reached by |
rows() {
    sed '1,/^<!-- mutants.sh -w/d' "$here/sim/mutants.md" |
        awk -F ' *[|] *' 'NF == 8 && $2 != "mutant" && $2 !~ /^-/'
}

up_to_date() {
    rows | awk -F ' *[|] *' '{ print $2 }' | sort >"$work/rows"
    diff "$work/names" "$work/rows" | sed -n \
        's/^< /mutants.md lacks: /p; s/^> /mutants.md has, and the list lacks: /p'
    rows | awk -F ' *[|] *' '{ sum[$3]++ }
        END { for (by in sum) print "| " by " | " sum[by] " |" }' |
        while read -r sum; do
            grep -qxF "$sum" "$here/sim/mutants.md" ||
                echo "mutants.md has another sum than $sum"
        done
    rows | awk -F ' *[|] *' '$3 == "none" { print $2 }' |
        while read -r name; do
            sed '/^<!-- mutants.sh -w/,$d' "$here/sim/mutants.md" |
                grep -qF -- "$name" ||
                echo "mutants.md does not say why this one survives: $name"
        done
}

if [ $# -gt 0 ]; then
    while [ $# -gt 0 ]; do
        apply "$1" "$2"
        shift 2
    done
    exit $wrong
fi
apply "$here/litmus/mutants.sh" "$src"
apply "$here/sched/mutants.sh" "$src"
apply "$here/mpi_sim/mutants.sh" "$src/mpi"
apply "$here/sim/mutants.sh" "$src"
up_to_date >"$work/stale"
[ ! -s "$work/stale" ] || { cat "$work/stale"; wrong=1; }
exit $wrong
