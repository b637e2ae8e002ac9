#!/bin/sh
# mutants_refuse.sh - the check of the mutation lists is one: a list of which a
# mutation applies to nothing, or that is empty, does not pass.
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
