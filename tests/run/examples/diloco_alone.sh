#!/bin/sh
# diloco_alone.sh BIN PROGRAM TEXT - one of 2 ranks dies in outer step 4. The
# other one drops its step, and goes on when a new rank is there: no outer step
# is that of one member, and all ranks have the same hash in each.
set -eu
bin=$1 program=$2 text=$3
output=$("$bin/pccl-master" -n 2 --elastic --respawn --timeout 300 \
    "$bin/$program" --outer 8 --inner 3 --batch 16 --hidden 16 --die 0:4 \
    --hashes "$text" 2>&1) || { printf '%s\n' "$output"; exit 1; }
printf '%s\n' "$output" | awk '
    /alone: a step is dropped/ { alone++ }
    /^outer/ { if ($4 != 2 || $2 in hash && hash[$2] != $6) wrong = $0
        hash[$2] = $6; said[$2]++ }
    END { if (!alone) wrong = "nobody was alone"
        for (i = 1; i <= 8; i++)
            if (said[i] < 1 || said[i] > 2) wrong = "outer step " i " is missing"
        if (said[8] != 2) wrong = "not all have ended"
        if (wrong) { print wrong; exit 1 } }' ||
    { printf '%s\n' "$output"; exit 1; }
