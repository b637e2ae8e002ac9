#!/bin/sh
# mutants_refuse.sh - the check of the mutation lists is one: a list of which a
# mutation applies to nothing, or that is empty, does not pass, and neither does
# a table that is not that of its list.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
echo 'int a(void) { return 1; }' >"$work/a.c"
try() { # STATUS TEXT, and the list on standard input
    { echo '#!/bin/sh'; echo ": <<'MUTANTS'"; cat; echo MUTANTS; } >"$work/list.sh"
    sh "$here/refuses.sh" "$1" "$2" \
        sh "$here/mutants_apply.sh" "$work/list.sh" "$work"
}
try 0 "2 mutants" <<'LIST'
two|a.c|s/1/2/
three|a.c|s/1/3/
LIST
try 1 "2 other: the mutation does not apply" <<'LIST'
two|a.c|s/1/2/
other|a.c|s/7/2/
LIST
try 1 "1 no file: the mutation does not apply" <<'LIST'
no file|b.c|s/1/2/
LIST
try 1 "1 no script: the mutation does not apply" <<'LIST'
no script|a.c
LIST
try 1 "1 bad script: the mutation does not apply" <<'LIST'
bad script|a.c|s/1/2
LIST
try 1 "two mutants have the name: two" <<'LIST'
two|a.c|s/1/2/
two|a.c|s/1/3/
LIST
try 2 "no mutants" </dev/null

# What mutants.sh runs is checked before hours are spent on it.
run() { # TEXT, and the list on standard input
    cat >"$work/list"
    sh "$here/refuses.sh" 1 "$1" sh "$here/world/sim/mutants.sh" -l "$work/list" 1
}
run "2 other: the mutation does not apply" <<'LIST'
one|base/wire.c|s/#include/#include /
other|base/wire.c|s/there is no such line//
LIST
run "1 no file: the mutation does not apply" <<'LIST'
no file|base/nothing.c|s/a/b/
LIST
run "1 bad script: the mutation does not apply" <<'LIST'
bad script|base/wire.c|s/a/b
LIST
run "1 no script: the mutation does not apply" <<'LIST'
no script|base/wire.c
LIST

# STATUS TEXT SUM ROW..., of a list with mutants two and three. Survivors are
# named in the words of the table: three is.
table() {
    status=$1 text=$2 sum=$3
    shift 3
    cat >"$work/list.sh" <<'LIST'
#!/bin/sh
: <<'MUTANTS'
two|a.c|s/1/2/
three|a.c|s/1/3/
MUTANTS
LIST
    {
        echo "three is equal to the original"
        echo "* *bytes*: the model has none"
        echo "<!-- mutants.sh -w writes the rest -->"
        printf '%s\n' "$sum" "$@"
    } >"$work/table.md"
    sh "$here/refuses.sh" "$status" "$text" sh "$here/mutants_apply.sh" \
        -t "$work/table.md" "$work/list.sh" "$work"
}
two="| two | both | 1 | 1 |  | 7 |  |"
three="| three | both | 1 | 1 |  | 7 |  |"
table 0 "2 mutants" "| both | 2 |" "$two" "$three"
table 1 "the table lacks: three" "| both | 1 |" "$two"
table 1 "the list lacks: four" "| both | 2 |" "$two" \
    "| four | both | 1 | 1 |  | 7 |  |"
table 1 "another sum than | both | 2 |" "| both | 3 |" "$two" "$three"
table 1 "nobody has tried this one: three" "| both | 1 |
| untried | 1 |" "$two" "| three | untried |  |  |  |  |  |"
one_finds="| both | 1 |
| oracle | 1 |"
table 0 "2 mutants" "$one_finds" "$two" "| three | oracle | 1 |  |  | 7 | bytes |"
table 1 "why not both find this one: three" "$one_finds" "$two" \
    "| three | oracle | 1 |  |  | 7 |  |"
table 1 "why not both find this one: three" "$one_finds" "$two" \
    "| three | oracle | 1 |  |  | 7 | no reason |"
table 1 "there is no such test: elastic/test_view:test_nothing" "| both | 1 |
| unit | 1 |" "$two" \
    "| three | unit |  |  | elastic/test_view:test_nothing | 7 | bytes |"
table 0 "2 mutants" "| both | 1 |
| unit | 1 |" "$two" \
    "| three | unit |  |  | elastic/test_view:test_impossible_proposals | 7 | bytes |"
nobody_finds="| both | 1 |
| none | 1 |"
table 0 "2 mutants" "$nobody_finds" "$two" "| three | none |  |  |  | 7 | bytes |"
table 1 "does not say why this one survives: two" "$nobody_finds" \
    "| two | none |  |  |  | 7 | bytes |" "$three"
table 1 "does not say why this one survives: two" "| both | 1 |
| open | 1 |" "| two | open |  |  |  | 7 | bytes |" "$three"
sh "$here/refuses.sh" 2 "no list for the table" sh "$here/mutants_apply.sh" \
    -t "$work/table.md"
