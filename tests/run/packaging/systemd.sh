#!/bin/sh
# systemd.sh UNIT MASTER - systemd-analyze accepts the unit, finds it little
# exposed, and by its command lines who has the key is served, and nobody else.
# 77: no systemd.
set -eu
unit=$1 master=$2
command -v systemd-analyze >/dev/null || {
    echo "skipped: no systemd-analyze"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
# The unit finds its program in systemd's path, where it is not yet; and its
# manual page where man looks.
sed -e "s,^ExecStart=pccl-master,ExecStart=$master," -e /^Documentation/d \
    "$unit" >"$work/pccl-master.service"
grep -q "^ExecStart=$master " "$work/pccl-master.service"
systemd-analyze verify "$work/pccl-master.service" >"$work/said" 2>&1 || true
# It verifies what the unit pulls in, too; that is this machine's.
if grep pccl "$work/said"; then exit 1; fi
if systemd-analyze --help | grep -q -- --offline; then
    systemd-analyze security --offline=yes --threshold=25 --no-pager \
        "$work/pccl-master.service" >"$work/said" || {
        cat "$work/said"
        exit 1
    }
    tail -n 1 "$work/said"
fi

# Its commands, as systemd would call them, at a free port.
before=$(sed -n 's/^ExecStartPre=//p' "$work/pccl-master.service")
command=$(sed -n 's/^ExecStart=//p' "$work/pccl-master.service")
eval "$(sed -n 's/^Environment=/export /p' "$work/pccl-master.service")"
export LISTEN=127.0.0.1:0 CREDENTIALS_DIRECTORY="$work/credentials" \
    RUNTIME_DIRECTORY="$work/run" OPTIONS="--journal $work/journal"
unset PCCL_TOKEN_FILE PCCL_INSECURE
mkdir "$work/credentials" "$work/run"
"$master" --make-token "$work/credentials/key"
chmod 640 "$work/credentials/key"
eval "$before"
mkfifo "$work/out"
eval "exec $command" >"$work/out" 2>&1 &
pid=$!
exec 3<"$work/out"
read -r line <&3
at=${line##* }
served=
"$master" --status "$at" --token-file "$work/run/key" >/dev/null && served=yes
if "$master" --status "$at" >"$work/said" 2>&1; then served=all; fi
kill "$pid"
wait "$pid" || true
exec 3<&-
[ "$served" = yes ] || { echo "served: $served"; cat "$work/said"; exit 1; }
[ -s "$work/journal" ] || { echo "no journal"; exit 1; }
case $line in
*"listening on 127.0.0.1:"*) ;;
*)
    echo "it says: $line"
    exit 1 ;;
esac
