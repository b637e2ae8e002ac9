#!/bin/sh
# scripts.sh SOURCE - shellcheck accepts the scripts of packaging/ and of its
# tests. 77: no shellcheck.
set -eu
command -v shellcheck >/dev/null || {
    echo "skipped: no shellcheck"
    exit 77
}
cd "$1"
shellcheck packaging/*.sh packaging/slurm/*.sbatch tests/run/packaging/*.sh
