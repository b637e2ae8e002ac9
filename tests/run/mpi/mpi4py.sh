#!/bin/sh
# mpi4py.sh MASTER NUMPY_SUM.PY WORK [MPICC] - mpi4py on our libraries. By
# TEST_PYTHON or python3, if that has mpi4py and numpy; else an environment in
# WORK gets them from PyPI: the wheel for MPICH, or built by MPICC. 77 where they
# cannot be fetched.
set -eu
work=$3 mpicc=${4:-}
python=${TEST_PYTHON:-python3}
has() {
    "$python" -c 'import mpi4py, numpy' 2>/dev/null
}
fetch() {
    rm -rf "$work"
    python3 -m venv "$work" || return
    set -- install --quiet --disable-pip-version-check --retries 0 numpy mpi4py
    if [ -n "$mpicc" ]; then
        # No optimization: it compiles one very large file.
        export MPI4PY_BUILD_MPICC="$mpicc" CFLAGS=-O0
        set -- "$@" --no-binary mpi4py --no-cache-dir
    fi
    timeout 1200 "$work/bin/pip" "$@" && touch "$work/ready"
}
if [ -n "$mpicc" ] && [ -z "${TEST_PYTHON:-}" ] || ! has; then
    [ -e "$work/ready" ] || fetch >"$work.log" 2>&1 || {
        echo "skipped: $python has no mpi4py and numpy for this library, and" \
            "PyPI gives none: $(tail -n 1 "$work.log")"
        exit 77
    }
    python=$work/bin/python
fi
[ -n "$mpicc" ] || export MPI4PY_MPIABI="${MPI4PY_MPIABI:-mpich}"
for ranks in 1 2 3; do
    out=$(timeout 300 "$1" -n $ranks "$python" -m mpi4py.run "$2" 2>&1) || {
        echo "$out"
        exit 1
    }
    echo "$out"
    echo "$out" | grep -q "all right with $ranks ranks"
done
