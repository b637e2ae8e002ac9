#!/bin/sh
# forgets.sh EXPLORER - what the search forgets after each event (the ends of
# buffers, scratch, the last proposal) has no effect: with and without that, a
# complete search has the same outcomes.
set -eu
outcomes() {
    "$1" $2 --remember | sed -n 's/.* ends with \([0-9]*\) outcomes.*/\1/p'
    "$1" $2 | sed -n 's/.* ends with \([0-9]*\) outcomes.*/\1/p'
}
for scenario in "--ops 2 --crash 1" "--crash 1 --update" "--stop 1"; do
    # shellcheck disable=SC2046
    set -- "$1" $(outcomes "$1" "$scenario")
    [ $# -eq 3 ] || exit 77
    echo "$scenario: $2 outcomes, and $3"
    [ "$2" -gt 0 ] && [ "$2" -eq "$3" ]
done
