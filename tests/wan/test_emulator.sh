#!/bin/sh
# test_emulator.sh EMULATOR - tests that the emulator starts, ends and cleans
# up.
#
# Skips (77) where network namespaces cannot be made.
set -u
emulator=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
token=$$.31415 # in the command line of everything that must not survive
echo "$token" >"$dir/token"

die()
{
    echo "FAILED: $*"
    exit 1
}

# Processes that carry the token, including wan-emulator itself.
left()
{
    grep -lasFf "$dir/token" /proc/[0-9]*/cmdline
}

# The kernel ends a PID namespace after its first process has gone.
await_nothing()
{
    tries=0
    while [ -n "$(left)" ]; do
        tries=$((tries + 1))
        if [ $tries = 3000 ]; then die "$1: still there: $(left)"; fi
        sleep 0.1
    done
}

expect() # STATUS ARGUMENTS...
{
    want=$1
    shift
    "$emulator" "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    if [ $got = 77 ]; then
        cat "$dir/err"
        exit 77
    fi
    if [ $got != "$want" ]; then
        cat "$dir/out" "$dir/err"
        die "status $got, not $want: $*"
    fi
}

printf 'peer here 3\nlimit 600s\n' >"$dir/plain.wan"
printf 'peer here 2\nlimit 300ms\n' >"$dir/short.wan"
printf 'peer here 2\nrtt here there 1ms\n' >"$dir/wrong.wan"

expect 0 --peer 'exit 0' "$dir/plain.wan"
expect 2 --peer 'exit 0' "$dir/wrong.wan"
grep -q "wrong.wan:2: there is no region 'there'" "$dir/err" ||
    die "the error does not name line and cause: $(cat "$dir/err")"
expect 2 "$dir/plain.wan"
expect 2 --peer true "$dir/missing.wan"
grep -q 'missing.wan: No such file' "$dir/err" || die 'missing file'

# Every node has its own network and environment. A shell need not know
# descriptors of two digits.
# shellcheck disable=SC2016 # for the shells of the nodes
expect 0 --log "$dir/log" --master 'exec sleep 50' --peer '
    test "$WAN_PEERS" = 3 && test "$WAN_ADDRESS" = "10.99.0.$((WAN_PEER + 1))" &&
    test "$WAN_MASTER" = 10.99.0.1 && test "$WAN_REGION" = here &&
    grep -q wan: /proc/net/dev && test "$(grep -c : /proc/net/dev)" = 2 &&
    echo "mark from-$WAN_PEER" >"/proc/self/fd/$WAN_CONTROL"' "$dir/plain.wan"
for i in 1 2 3; do
    grep -q "\"mark\":\"from-$i\"" "$dir/log" || die "no mark of peer $i"
    grep -q "\"peer\":$i,\"status\":0" "$dir/log" || die "no end of peer $i"
done

# The log has the status of a program that fails.
# shellcheck disable=SC2016
expect 1 --log "$dir/log" --peer 'test "$WAN_PEER" != 2' "$dir/plain.wan"
grep -q '"peer":2,"status":1' "$dir/log" || die 'status of peer 2'

# The time limit also ends programs that left their process group.
expect 124 --peer "setsid sleep $token & sleep $token" "$dir/short.wan"
await_nothing 'time limit'

# The run ends with the last peer: so do its children and the master.
expect 0 --master "trap '' TERM; sleep $token" \
    --peer "setsid sleep $token & exit 0" "$dir/plain.wan"
await_nothing 'end of the peers'

# Signals to the program (KILL too) and to the emulator in the PID namespace.
mkfifo "$dir/up"
for signal in TERM INT KILL inner; do
    "$emulator" --peer "echo \$WAN_PEER >$dir/up; setsid sleep $token &
        sleep $token" "$dir/plain.wan" 2>/dev/null &
    pid=$!
    exec 3<>"$dir/up"
    for i in 1 2 3; do read -r who <&3; done
    exec 3>&-
    : "$who"
    [ "$(left | wc -l)" -ge 3 ] || die "$signal: nothing runs"
    if [ $signal = inner ]; then
        read -r inner _ <"/proc/$pid/task/$pid/children"
        kill -KILL "$inner"
    else
        kill -$signal $pid
    fi
    wait $pid
    status=$?
    [ $status != 0 ] || die "$signal: status 0"
    await_nothing $signal
done
echo passed
