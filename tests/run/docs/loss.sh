#!/bin/sh
# loss.sh PYTHON SOURCE - docs/loss_svg.py draws a run of the demo, and refuses
# what is none.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
draw() { "$1" -B "$2/docs/loss_svg.py" "$work/out.svg" >"$work/shown"; }
cat >"$work/run" <<'RUN'
>>> 1. A plain MPI program
    step    1  4 ranks  loss 9.0000  0.01 s
>>> 2. An elastic program
    step    1  4 ranks  loss 4.5000  0.01 s
    step   20  4 ranks  loss 3.0000  0.17 s
>>> kill -9 77
    step   21  3 ranks  loss 2.9000  0.60 s
    pccl-master: 2 ranks joined, epoch 3, 5 ranks
    step   22  5 ranks  loss 2.0000  1.24 s
>>> PASSED: both trainings survived
RUN
draw "$1" "$2" <"$work/run"
cmp "$work/run" "$work/shown"
"$1" -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$work/out.svg"
[ "$(grep -c '<circle' "$work/out.svg")" = 4 ]
grep -q 'kill -9 of a rank' "$work/out.svg"
sed -i '/joined/d' "$work/run"
if draw "$1" "$2" <"$work/run" 2>"$work/why"; then exit 1; fi
grep -q 'no whole run' "$work/why"
