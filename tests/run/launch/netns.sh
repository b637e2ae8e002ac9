#!/bin/sh
# netns.sh MASTER PROGRAM - ranks in two network namespaces, joined by a
# virtual cable, communicate with each other and with the coordinator.
set -eu
master=$1 program=$2

skip() # WHY
{
    echo "skipped: $*"
    exit 77
}

[ "$(id -u)" = 0 ] || skip "not root"
[ -x "$program" ] || skip "no $program, which mpicc.mpich makes"
for tool in unshare nsenter ip; do
    command -v $tool >/dev/null || skip "no $tool"
done
if [ -z "${NETNS_INSIDE-}" ]; then
    unshare --net true 2>/dev/null || skip "no network namespaces"
    NETNS_INSIDE=1 exec unshare --net --pid --fork --kill-child --mount-proc \
        sh "$0" "$@"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
unshare --net sleep 1000 &
far=$!
tries=0
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
    tries=$((tries + 1))
    [ $tries != 30000 ] || exit 1
    sleep 0.01 # for a step of another process
done
ip link set lo up
ip link add near0 type veth peer name far0 netns $far || skip "no veth"
ip addr add 10.77.0.1/24 dev near0
ip link set near0 up
nsenter --net --target $far ip addr add 10.77.0.2/24 dev far0
nsenter --net --target $far ip link set far0 up
nsenter --net --target $far ip link set lo up
cat >"$work/ssh" <<END
#!/bin/sh
exec nsenter --net --target $far sh -c "\$2"
END
chmod +x "$work/ssh"

status=0
timeout 300 "$master" -l --launcher-exec "$work/ssh" -hosts localhost:2,far:2 \
    sh -c 'echo at $PCCL_MASTER; exec "$0"' "$program" >"$work/out" 2>&1 ||
    status=$?
for rank in 0 1 2 3; do
    grep -q "^\[$rank\] at 10.77.0.1:" "$work/out" || status=1
done
[ $status = 0 ] || cat "$work/out"
exit $status
