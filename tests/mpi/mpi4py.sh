#!/bin/sh
# mpi4py.sh MASTER NUMPY_SUM.PY - 77 unless TEST_PYTHON or python3 has mpi4py
# and numpy.
set -eu
python=${TEST_PYTHON:-python3}
"$python" -c 'import mpi4py, numpy' 2>/dev/null || {
    echo "skipped: $python has no mpi4py and numpy"
    exit 77
}
for ranks in 1 2 3; do
    out=$(timeout 300 "$1" -n $ranks "$python" -m mpi4py.run "$2" 2>&1) || {
        echo "$out"
        exit 1
    }
    echo "$out"
    echo "$out" | grep -q "all right with $ranks ranks"
done
