#!/bin/sh
# agreement.sh FOLDER - explores agreement.pml exhaustively with SPIN, in a
# folder of its own, and expects an error of each variant that breaks a rule.
# Exit status 77: there is no spin here.
set -eu
model=$(cd "$(dirname "$0")" && pwd)/agreement.pml
command -v spin >/dev/null || { echo "spin is not installed: skipped"; exit 77; }
mkdir -p "$1"
cd "$1"
explore() { # macros...; prints "errors states complete"
    rm -f pan pan.*
    spin -a "$@" "$model" >spin.out 2>&1 || { cat spin.out; exit 1; }
    ${CC:-cc} -O2 -w -DSAFETY -DCOLLAPSE -DNOFAIR -o pan pan.c
    ./pan -m200000 >pan.out 2>&1 || true
    errors=$(sed -n 's/.*errors: *\([0-9]*\).*/\1/p' pan.out)
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.out)
    cut=$(grep -c -E 'max search depth too small|out of memory' pan.out || true)
}
wrong=0
for macros in "-DCRASHES=0" "-DCRASHES=1" "-DCRASHES=2" "-DCRASHES=0 -DODD" \
    "-DCRASHES=1 -DODD"; do
    explore $macros
    echo "$macros: $states states, $errors errors, $cut limits met"
    [ "$errors" = 0 ] && [ "$cut" = 0 ] || { wrong=1; cat pan.out; }
done
for macros in "-DBREAK_QUERY" "-DBREAK_COMMIT" "-DBREAK_RELAY" "-DBREAK_COPY" \
    "-DBREAK_FREEZE" "-DBREAK_CONFIRM" "-DBREAK_LAUNCHED" "-DBREAK_ALL" \
    "-DODD -DBREAK_DIGEST"; do
    explore -DCRASHES=1 $macros
    echo "$macros: $errors errors after $states states"
    [ "$errors" != 0 ] || { wrong=1; echo "not found"; }
done
exit $wrong
