#!/bin/sh
# join.sh [-b BUILD] MIB SECONDS [ROUNDS] - how long members stand still while a
# newcomer joins that lacks a state of MIB, over an emulated network of 80 Mbit/s
# (join.wan). A round has SECONDS of computing.
#
# Prints what wan-join prints: without a newcomer, with one that gets the state
# in the synchronization, and with one that downloads it before. Needs root and
# /dev/net/tun.
set -eu
if [ -z "${PCCL_TOKEN_FILE-}" ]; then export PCCL_INSECURE=1; fi
source=$(cd "$(dirname "$0")" && pwd)
bin=$source/../../build/bin
[ "${1:-}" != -b ] || { bin=$(cd "$2" && pwd)/bin; shift 2; }
[ $# -ge 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
export PCCL_LOG_LEVEL=${PCCL_LOG_LEVEL:-ERR}
rounds=${3:-5}
for mode in ${MODES:-none sync prefetch}; do
    set -- "$1" "$2" "$rounds"
    echo "# wan-join $mode $*"
    "$bin/wan-emulator" --peer "exec $bin/wan-join $mode $*" --master "
        exec $bin/pccl-master --listen \$WAN_MASTER:48148 --quorum 2 \
            >/dev/null 2>&1" "$source/join.wan"
done
