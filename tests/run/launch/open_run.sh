#!/bin/sh
# open_run.sh MASTER RANK - a run that takes tokens: who joins, who is refused
# with which sentence, who is revoked while it runs, and what a hook is told
# (rules K10 to K16).
set -eu
master=$1 rank=$2
unset PCCL_TOKEN_FILE PCCL_INSECURE PCCL_MASTER
export PCCL_TRANSPORT=tcp
work=$(mktemp -d)
pids=
cleanup()
{
    for pid in $pids; do kill -9 "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP
cd "$work"

fail()
{
    echo "FAILED: $*"
    for file in *.out *.err hook.log; do
        [ -f "$file" ] && sed "s/^/$file: /" "$file"
    done
    exit 1
}

# For a step of another process.
until_in() # TEXT FILE
{
    tries=0
    until grep -q -e "$1" "$2" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt $((40 * ${PATIENCE:-300})) ] || fail "no '$1' in $2"
        sleep 0.025
    done
}

issue() # NAME OPTIONS
{
    name=$1
    shift
    "$master" --issue "$name" --issuer issuer --token-file run.key "$@" \
        >"$name.token"
}

join() # NAME: in the background
{
    PCCL_MASTER=$at PCCL_TOKEN_FILE=$1.token "$rank" "$work/done" \
        >"$1.out" 2>&1 &
    pids="$pids $!"
}

refused() # FILE TEXT
{
    status=0
    PCCL_MASTER=$at PCCL_TOKEN_FILE=$1 timeout "${PATIENCE:-300}" "$rank" \
        "$work/done" >refused.out 2>&1 || status=$?
    [ $status = 3 ] || fail "$1 was not refused"
    grep -q -e "$2" refused.out || fail "$1: not '$2'"
}

cat >hook <<'END'
#!/bin/sh
cd "${0%/*}"
echo "$1 $HOOK_NAME $HOOK_GROUP $HOOK_EVENT" >>hook.log
env >>hook.env
[ "$1 $HOOK_NAME" != "ask slow" ] || exec sleep 1000
[ "$1 $HOOK_NAME" != "ask carol" ] || { echo "carol is on leave"; exit 1; }
END
chmod +x hook
"$master" --make-token run.key
"$master" --make-token other.key
"$master" --make-issuer issuer
"$master" --make-issuer stranger
echo "# nobody yet" >revoked

issue ann --rights join,observe
issue bob --expires 1h
issue carol
issue slow
issue dave --group 7
issue olga --rights observe
[ "$(stat -c %a ann.token)" = 600 ] || fail "a token that others can read"
"$master" --issue eve --issuer stranger --token-file run.key >eve.token
"$master" --issue ann --issuer issuer --token-file other.key >foreign.token
sed 's/1$/2/; t; s/.$/1/' ann.token >tampered.token
chmod 600 tampered.token

# What is wrong is said before anything runs.
wrong() # TEXT OPTIONS
{
    text=$1
    shift
    if "$master" "$@" >wrong.out 2>&1; then fail "$* is taken"; fi
    grep -q -e "$text" wrong.out || fail "$*: not '$text'"
}
wrong "others may read\|chmod 600\|issuer's public key" --issue x \
    --issuer issuer.pub --token-file run.key
wrong "the issuer's private key" --listen 0 --issuer issuer \
    --token-file run.key
wrong "a participant's" --listen 0 --token-file ann.token
wrong "not the key of the run" --issue x --issuer issuer --token-file ann.token
wrong "needs the key of the run" --listen 0 --issuer issuer.pub
wrong "No such file" --listen 0 --issuer issuer.pub --token-file run.key \
    --revoked nowhere
wrong "No such file" --listen 0 --issuer issuer.pub --token-file run.key \
    --hook ./nowhere
wrong "is no name" --issue "a b" --issuer issuer --token-file run.key
wrong "is no right" --issue x --issuer issuer --rights all
wrong "is no time" --issue x --issuer issuer --expires soon
wrong "belong to --issue" --listen 0 --group 3

"$master" --listen 127.0.0.1:0 --quorum 2 --deadline 20 --token-file run.key \
    --issuer issuer.pub --revoked revoked --hook ./hook >master.out \
    2>master.err &
coordinator=$!
pids=$coordinator
until_in "listening on" master.out
at=$(sed -n 's/.*listening on //p' master.out)

join ann
join bob
until_in summed ann.out
until_in summed bob.out

refused carol.token "the operator's hook refuses: carol is on leave"
refused dave.token "the token of dave is for peer group 7"
refused eve.token "another issuer"
refused olga.token "the token of olga gives no right to join"
refused run.key "takes tokens of participants, and not its key"
refused foreign.token "the keys differ"
refused tampered.token "the keys differ"
refused slow.token "the operator's hook refuses: it gave no answer in 5.0 s"

"$master" --status "$at" --token-file olga.token >status.out 2>&1 ||
    fail "olga sees no status"
grep -q "by the token of ann" status.out || fail "ann is not in the status"
"$master" --status "$at" --token-file olga.token --json >status.json
grep -q '"name":"bob"' status.json || fail "bob is not in the JSON"
wrong "gives no right to observe" --status "$at" --token-file bob.token

# A list that cannot be read changes nothing; one that can ends bob.
echo "no name" >revoked
kill -HUP $coordinator
until_in "the list is as before" master.err
echo "bob # was not nice" >revoked
kill -HUP $coordinator
until_in "the token of bob is revoked" bob.out
refused bob.token "the token of bob is revoked"
until_in "^lost bob" hook.log

# ann goes on, and somebody new joins, with the launcher.
issue fred
"$master" --join "$at" --token-file fred.token -n 1 "$rank" "$work/done" \
    >fred.out 2>&1 &
pids="$pids $!"
until_in summed fred.out
: >done
until_in left ann.out
until_in left fred.out
until_in "^left fred" hook.log

# What the hook was told, and what it never sees.
for line in "ask ann 0 ask" "joined ann 0 joined" "joined bob 0 joined" \
    "ask carol 0 ask" "left ann 0 left"; do
    until_in "^$line" hook.log
done
! grep -q "ask dave\|ask olga\|ask eve\|joined carol" hook.log ||
    fail "the hook was asked about somebody that a rule refuses"
secret=$(cut -d ' ' -f 3 run.key)
! grep -q "$secret\|TOKEN" hook.env || fail "the hook has seen a key"
for file in master.out master.err status.out status.json; do
    for token in ann bob; do
        ! grep -q "$(cut -d ' ' -f 4 $token.token)" $file ||
            fail "a secret is in $file"
    done
done
kill $coordinator
wait $coordinator || fail "the coordinator"
echo done
