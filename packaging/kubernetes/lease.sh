#!/bin/sh
# lease.sh LEASE COMMAND... - runs COMMAND while this pod holds that Lease of its
# namespace, and kills it when the Lease was not renewed for half of its length.
#
# POD is a name that no other candidate has, LEASE_SECONDS (30) the length. Several
# run the same command: one has the Lease, the others look whether it changes. Who
# has seen no change for its length, by a clock that goes on in suspend, takes it;
# the API server refuses all but one, because each says which version it has seen.
# Ends with the status of COMMAND; SIGTERM is passed on, and the Lease is given back.
set -u
lease=$1
shift
: "${POD:?a name for this candidate}"
length=${LEASE_SECONDS:-30}
child=
asked=
seen=
since=0
last=0

now() # seconds
{
    cut -d . -f 1 /proc/uptime
}

kube() # ARGUMENTS
{
    timeout $((length / 8)) kubectl "$@" 2>/dev/null
}

# Sets version and holder. False: nobody answers.
look_up()
{
    found=$(kube get lease "$lease" -o \
        'jsonpath={.metadata.resourceVersion} {.spec.holderIdentity}') ||
        return 1
    version=${found%% *}
    holder=${found#* }
}

# False: another one was first, or nobody answers.
put() # HOLDER
{
    kube patch lease "$lease" --type merge -p "{
        \"metadata\": {\"resourceVersion\": \"$version\"},
        \"spec\": {\"holderIdentity\": \"$1\",
                 \"leaseDurationSeconds\": $length,
                 \"renewTime\": \"$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)\"}}" \
        >/dev/null
}

# Whether the Lease may be taken, or renewed.
is_ours()
{
    if [ -n "$child" ]; then
        [ "$holder" = "$POD" ]
    else
        [ -z "$holder" ] || [ $((begun - since)) -gt "$length" ]
    fi
}

turn()
{
    begun=$(now)
    look_up || return
    if [ "$version" != "$seen" ]; then
        seen=$version
        since=$begun
    fi
    if is_ours; then
        if put "$POD"; then last=$((begun + length / 2)); fi
    elif [ -n "$child" ]; then
        last=0
    fi
}

pause()
{
    sleep 1 &
    wait $!
}

is_late()
{
    [ "$(now)" -ge "$last" ]
}

finish() # STATUS
{
    child=
    if look_up && [ "$holder" = "$POD" ]; then put ""; fi
    exit "$1"
}

trap 'asked=yes; if [ -n "$child" ]; then kill -TERM "$child"; fi' TERM INT

printf '{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
    "metadata": {"name": "%s"}, "spec": {"holderIdentity": ""}}' "$lease" |
    kube create -f - >/dev/null || :

while [ -z "$asked" ]; do
    turn
    if [ -z "$child" ] && ! is_late; then
        echo "lease.sh: $POD holds the Lease $lease" >&2
        "$@" &
        child=$!
    elif [ -n "$child" ] && is_late; then
        echo "lease.sh: the Lease was not renewed; the coordinator is killed" >&2
        kill -KILL "$child"
        wait "$child"
        child=
    fi
    pause
    if [ -n "$child" ] && ! kill -0 "$child" 2>/dev/null; then
        wait "$child"
        finish $?
    fi
done
[ -n "$child" ] || exit 0
# It has the time that it has: the Lease is not renewed any more.
while kill -0 "$child" 2>/dev/null && ! is_late; do pause; done
kill -KILL "$child" 2>/dev/null
wait "$child"
finish $?
