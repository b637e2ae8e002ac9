#!/bin/sh
# pypi.sh MASTER SOURCE WORK - programs built by the mpicc and the mpicc_abi of
# PyPI's mpich 5 run under our libraries as they are, one survives a kill, and
# its headers have the values of our table. 77 where it cannot be fetched.
set -eu
export PIP_DEFAULT_TIMEOUT=10
master=$1 source=$2 work=$3
mkdir -p "$work"
mpich=$work/mpich-5.0.2
if [ ! -x "$mpich/bin/mpicc_abi" ]; then
    rm -rf "$mpich"
    python3 -m venv "$mpich" >/dev/null 2>&1 &&
        timeout 300 "$mpich/bin/pip" -q --disable-pip-version-check install \
            --retries 0 mpich==5.0.2 >/dev/null 2>&1 || {
        rm -rf "$mpich"
        echo "skipped: mpich 5.0.2 cannot be fetched from PyPI"
        exit 77
    }
fi
"$mpich/bin/mpicc" --version >/dev/null 2>&1 || {
    echo "skipped: mpich of PyPI does not run here"
    exit 77
}
for pair in mpicc:mpich mpicc_abi:abi; do
    cc=$mpich/bin/${pair%:*}
    python3 "$source/tests/run/abi/constants.py" \
        "$source/src/mpi/table/constants.txt" "${pair#*:}" >"$work/values.c"
    "$cc" -fsyntax-only "$work/values.c"
    for name in coll p2p types requests objects; do
        "$cc" -std=gnu99 -O1 -w -o "$work/$name" \
            "$source/tests/run/mpi/mpi_$name.c" -lm
        for ranks in 1 3; do
            timeout 300 "$master" -n $ranks "$work/$name"
            echo "${pair%:*} $name $ranks: passed"
        done
    done
    "$cc" -std=gnu99 -O1 -o "$work/kill" "$source/tests/run/abi/kill.c"
    sh "$source/tests/run/abi/kill.sh" "$master" "$work/kill" 3
done
