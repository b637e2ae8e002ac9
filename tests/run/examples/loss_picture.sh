#!/bin/sh
# loss_picture.sh AWK PICTURE - the picture of a training, character by
# character: where its marks stand, and what it says of an output without losses.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/output" <<'END'
pccl-master: listening on 127.0.0.1:4000
step    1  4 ranks  loss 4.0000  0.00 s
step   20  4 ranks  loss 3.0000  0.07 s
rank 0/2: done, loss 3.0718, weights 811334aaa8d90642
step   40  3 ranks  loss 2.0000  0.10 s
step   60  5 ranks  loss 1.0000  0.20 s
step words ranks loss 9
END
"$1" -f "$2" "$work/output" >"$work/picture"
cat "$work/picture"
[ "$(wc -l <"$work/picture")" = 13 ]
[ "$(grep -c '^ *[0-9.]* |.*\*' "$work/picture")" = 10 ]
grep -q '^  4.00 |\*\*\*\*$' "$work/picture"
grep -q '^  1.00 | *\*\*\*\*$' "$work/picture"
grep -q '^  loss +---------------------------------------x-------------------+$' \
    "$work/picture"
grep -q '^ *x lost by step 40: 4 -> 3 ranks  + joined by step 60: 3 -> 5 ranks$' \
    "$work/picture"
grep -q '^ *step 1  *60$' "$work/picture"

# The other examples say it in other words.
for words in 'step \1 members \2 loss \3 sent 9' \
    'outer \1 members \2 hash 0123456789abcdef loss \3'; do
    sed "s/^step *\([0-9]*\)  \(.\) ranks  loss \([^ ]*\) .*/$words/" \
        "$work/output" >"$work/same"
    "$1" -f "$2" "$work/same" | cmp - "$work/picture"
done

# A loss that does not change is a line; one step is no picture.
sed 's/loss [0-9.]*/loss 2.5/' "$work/output" | "$1" -f "$2" >"$work/picture"
[ "$(grep -c '\*' "$work/picture")" = 1 ]
sed 3,6d "$work/output" >"$work/one"
if "$1" -f "$2" "$work/one" 2>"$work/error"; then exit 1; fi
grep -q 'fewer than two steps' "$work/error"
