#!/bin/sh
# progress_bar.sh SOURCE [BENCH] - the bar of examples/progress.sh on a terminal, and
# plain lines elsewhere; likewise of pccl-bench churn, where BENCH is that
# program.
set -eu
source=$1 bench=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }

cat >"$work/say" <<'SAY'
set -eu
. "$1/examples/progress.sh"
progress 0 4 begin
progress_line one
progress 3 4 'most of it'
progress 5 4 'more than all'
progress_end
progress_line two
printf '%s\n' '[ 38%] Building' '[  9%] x' 'plain' '[12/48] ninja' |
    progress_build "$2"
SAY

[ "$(TERM=xterm sh "$work/say" "$source" "$work/log")" = 'one
two' ] || fail "lines are not plain in a pipe"
[ "$(wc -l <"$work/log")" = 4 ] || fail "the log lacks lines"

if ! command -v script >/dev/null; then
    echo "no script(1): the bar itself is not looked at"
    exit 77
fi
show() # TERM: what a terminal of this kind gets
{
    TERM=$1 script -qec "sh '$work/say' '$source' '$work/log'" /dev/null \
        </dev/null | tr '\r\033' '\n@'
}
show xterm >"$work/shown"
bar='##############################'
for line in '[..............................]   0 %  begin@[K' 'one' \
    '[######################........]  75 %  most of it@[K' \
    "[$bar] 100 %  more than all@[K" 'two' \
    '[###########...................]  38 %  building@[K' \
    '[#######.......................]  25 %  building@[K'; do
    grep -qFx -e "$line" -e "@[K$line" "$work/shown" ||
        { cat "$work/shown"; fail "no '$line'"; }
done
if show dumb | grep -q '%'; then fail "a bar on a dumb terminal"; fi

if [ -z "$bench" ]; then exit; fi
churn="'$bench' churn --seconds 1 --jobs tcp --faults kill"
TERM=xterm script -qec "$churn" /dev/null </dev/null >"$work/shown"
grep -q '#.* %  0:00:0[01] left, [0-9]* steps, 0 violations' "$work/shown" ||
    { cat "$work/shown"; fail "no bar of churn"; }
if sh -c "$churn" 2>&1 | grep ' left, '; then fail "a bar in a pipe"; fi
