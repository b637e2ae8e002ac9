#!/bin/sh
# sshd.sh MASTER PROGRAM - ranks on other hosts through a real ssh and sshd, one
# sshd per connection and without a port.
set -eu
master=$1 program=$2
sshd=$(command -v sshd || ls /usr/sbin/sshd 2>/dev/null) || {
    echo "skipped: no sshd"
    exit 77
}
for tool in ssh ssh-keygen; do
    command -v $tool >/dev/null || {
        echo "skipped: no $tool"
        exit 77
    }
done
[ -x "$program" ] || {
    echo "skipped: no $program, which mpicc.mpich makes"
    exit 77
}
work=$(mktemp -d)
made= # what sshd wants to be there for root
trap 'rm -rf "$work"; [ -z "$made" ] || rmdir "$made"' EXIT
trap 'exit 1' INT TERM HUP
if [ "$(id -u)" = 0 ] && mkdir /run/sshd 2>/dev/null; then made=/run/sshd; fi

ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/user"
cp "$work/user.pub" "$work/keys"
chmod 700 "$work"
cat >"$work/sshd.conf" <<END
HostKey $work/host
AuthorizedKeysFile $work/keys
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PidFile none
END
cat >"$work/ssh.conf" <<END
Host *
    ProxyCommand $sshd -i -f $work/sshd.conf
    IdentityFile $work/user
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    BatchMode yes
END
if ! timeout 300 ssh -F "$work/ssh.conf" far true 2>"$work/error"; then
    cat "$work/error"
    echo "skipped: ssh to this machine does not work"
    exit 77 # no login here, for reasons of this machine
fi

fail()
{
    echo "$1"
    cat "$work/out" "$work/error"
    exit 1
}

run()
{
    status=0
    timeout 300 "$master" --launcher-exec "ssh -F $work/ssh.conf" "$@" \
        >"$work/out" 2>"$work/error" || status=$?
}

run -l -hosts far:2,localhost,near -genv WORD 'two words' -n 4 \
    sh -c 'echo $RANK $LOCAL_RANK $WORD; exit 0'
[ $status = 0 ] || fail "status $status"
for line in '\[0\] 0 0' '\[1\] 1 1' '\[2\] 2 0' '\[3\] 3 0'; do
    grep -q "^$line two words$" "$work/out" || fail "no $line"
done
run -hosts far,near "$program"
[ $status = 0 ] || fail "status $status of $program"
run -hosts far,near sh -c '[ $RANK = 1 ] && kill -9 $$; exec sleep 100'
[ $status = 137 ] || fail "status $status, not 137"
echo one line | {
    run -hosts far,near cat
    [ $status = 0 ] || fail "status $status of cat"
    [ "$(cat "$work/out")" = 'one line' ] || fail 'no input'
}
