#!/bin/sh
# mutants.sh [-crsuw] [-k FOLDER] [-l LIST] [-n FIRST[-LAST]] [UNIVERSES [PATTERN]]
# - breaks one rule of the cores at a time and shows that the tests fail: a rule
# is not tested if no test fails without it.
#
# It tells who finds each: the oracle of the simulator (what programs see, and
# that nobody waits for ever), the model (tests/world/model), both, or a unit test
# alone. What has found a mutant before (mutants.md) is tried first; next come
# universes that have failed once, and those that reach the changed line.
#
# Each line below: name | file under src | sed script. The tree is copied; the
# original is never touched. Mutants are numbered from 1 in the order of the
# list; -n 20 begins at the 20th, -n 20-29 takes ten.
# -c tries what mutants.md says, and nothing else: minutes, not hours.
# -r does so, too, and seeks those anew of which the row does not hold any more;
# with -w this is how the whole table is brought up to date.
# -k keeps objects, and what universes reach, for the next slice.
# -l takes another list.
# -s takes only those for which mutants.md has no oracle and no unit test; with 0
# UNIVERSES the unit tests alone look at them.
# -u leaves the unit tests out, and believes what mutants.md says of them.
# -w writes each answer into mutants.md at once; not with -l.
# Exit status 1 if a mutant survives that mutants.md does not name as a survivor,
# or does not compile, and with -c if a row does not hold; 2 if there is nothing to
# do. If one does not apply it is 1 at once, before anything is built.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
table=$here/mutants.md
began=$(date +%s)
first=1 last=999999 units=yes known= seek=yes open_only= keep= list= write=
while getopts ck:l:n:rsuw option; do
    case $option in
    c) known=yes seek= ;;
    k) keep=$OPTARG ;;
    l) list=$(cd "$(dirname "$OPTARG")" && pwd)/$(basename "$OPTARG") ;;
    s) open_only=yes ;;
    u) units= ;;
    w) write=yes ;;
    n)
        first=${OPTARG%%-*}
        case $OPTARG in *-*) last=${OPTARG#*-} ;; esac ;;
    r) known=yes ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ -z "$list" ] || [ -z "$write" ] ||
    { echo "mutants.sh: mutants.md is of another list" >&2; exit 2; }
count=${1:-600}
only=${2:-.}
case $first$last$count in
*[!0-9]*) echo "mutants.sh: a number is none" >&2; exit 2 ;;
esac
if [ -n "$keep" ]; then
    mkdir -p "$keep"
    work=$(cd "$keep" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT INT TERM
fi
end=MUTANTS
if [ -n "$list" ]; then
    cat "$list" >"$work/list"
else
    sed "1,/<<'$end'/d;/^$end\$/,\$d" "$0" >"$work/list"
fi
# The row of a mutant: found by | oracle | model | unit.
row() {
    awk -F ' *[|] *' -v name="$1" '$2 == name && NF > 6 {
        print $3 "|" $4 "|" $5 "|" $6; exit }' "$table"
}

# The words of mutants.md above this line are written by hand.
mark='<!-- mutants.sh -w writes the rest -->'
# What is chosen is checked before anything is built.
awk -F'|' -v first="$first" -v last="$last" 'NR >= first && NR <= last {
    print $1 "|" NR substr($0, length($1) + 1) }' "$work/list" >"$work/sliced"
wrong=0
: >"$work/mutants"
while IFS='|' read -r name number file script; do
    echo "$name" | grep -q -- "$only" || continue
    printf '%s|%s|%s|%s\n' "$number" "$name" "$file" "$script" >>"$work/mutants"
    [ -n "$script" ] && [ -f "$root/src/$file" ] &&
        sed "$script" "$root/src/$file" >"$work/mutated" 2>/dev/null &&
        ! cmp -s "$root/src/$file" "$work/mutated" && continue
    echo "$number $name: the mutation does not apply"
    wrong=1
done <"$work/sliced"
[ -s "$work/mutants" ] ||
    { echo "mutants.sh: no mutant has this name or number"; exit 2; }
[ $wrong -eq 0 ] || exit 1

rm -rf "$work/src" "$work/include" "$work/tests"
cp -r "$root/src" "$root/include" "$work/"
mkdir -p "$work/tests/world" "$work/obj" "$work/sim" "$work/reach"
cp -r "$root/tests/unit" "$work/tests/"
cp -r "$root/tests/world/host" "$root/tests/world/sim" "$root/tests/world/model" \
    "$work/tests/world/"
cd "$work"

. "$here/cores.sh"
# The words of add_library() in a folder's CMakeLists.txt.
sources() { # FOLDER LIBRARY
    sed -n "/add_library($2 STATIC/,/)/p" "$root/tests/world/$1/CMakeLists.txt" |
        grep -o '[a-z_0-9]*\.c' | sed 's/\.c$//'
}
sim="test_sim $(sources sim pccl_sim)"
checker=$(sources model pccl_model)
ccache=$(command -v ccache || true)
compile() { # SOURCE OBJECT [FLAG...]
    from=$1 to=$2
    shift 2
    case $from in
    src/*) cores="-DPCCL_SIMULATED -Dmalloc=core_malloc -Dcalloc=core_calloc
        -Drealloc=core_realloc -Daligned_alloc=core_aligned_alloc
        -Dfree(p)=core_free(p)" ;;
    *) cores= ;;
    esac
    # shellcheck disable=SC2086 # words
    $ccache ${CC:-cc} -std=c11 -D_GNU_SOURCE $cores -w "$@" -c "$from" -o "$to"
}
object() {
    echo "obj/$(echo "$1" | tr / _).o"
}
# The cores are a library, so that programs are linked once.
link_core() {
    ${CC:-cc} -shared -Wl,-Bsymbolic obj/*.o -lm -o libcore.so
}
program() { # NAME OBJECT|FLAG...
    to=$1
    shift
    ${CC:-cc} "$@" -L. -lcore -Wl,-rpath,'$ORIGIN' -lm -o "$to"
}
flags="-O1 -fPIC" # programs, too: no data of the library are copied to them
for name in $core; do compile "src/$name.c" "$(object "$name")" $flags; done
# For the cores, also in unit tests.
for name in rare scarce; do compile tests/world/sim/$name.c obj/$name.o $flags; done
for name in $sim; do compile "tests/world/sim/$name.c" "sim/$name.o" $flags; done
for name in $checker; do compile "tests/world/model/$name.c" "sim/$name.o" $flags; done
link_core
program simulator sim/*.o
./simulator 1 20 >/dev/null || { echo "the original fails"; exit 1; }

# ------------------------------------------------------------------ unit tests

# FOLDER/test_NAME of each test of the cores alone.
core_tests() {
    for folder in base link ring elastic master; do
        tr '\n' ' ' <"$root/tests/unit/$folder/CMakeLists.txt" |
            grep -o 'pccl_core_tests([^)]*)' | tr -s '() ' '\n' |
            sed "/./!d; /^pccl_core/d; s|^|$folder/test_|"
    done
}
# They need cmocka; where it is, each of them must build. Drivers have the rest.
tests=
if [ -n "$units" ] && echo 'int main(void) { return 0; }' | ${CC:-cc} -x c - \
    -lcmocka -o empty 2>/dev/null; then
    # Those that take long come last.
    tests="$(core_tests | sed '/algorithms$/d; /plan$/d') base/test_dtype
        message/test_message message/test_message_cma message/test_message_ends
        reduce/test_quant reduce/test_reduce
        sim/test_stall sim/test_why ring/test_plan ring/test_algorithms"
fi
unit_of() {
    echo "unit_$(echo "$1" | tr / _)"
}
replaced_by() { # TEST
    case $1 in
    ring/test_no_memory) echo pool_take ;;
    master/test_succession) echo malloc ;;
    esac
}
for test in $tests; do
    case $test in sim/*) continue ;; esac
    unit=$(unit_of "$test")
    compile "tests/unit/$test.c" "$unit.o" $flags
    more=
    case $test in message/*) compile tests/unit/message/pair.c pair.o $flags; more=pair.o ;; esac
    # One that replaces a function of the cores is linked when it runs.
    [ -z "$(replaced_by "$test")" ] || continue
    # shellcheck disable=SC2086
    program "$unit" "$unit.o" $more -lcmocka ||
        { echo "$test does not build"; exit 1; }
done
[ -z "$units" ] || {
    compile tests/world/sim/test_stall.c stall.o $flags
    program stall stall.o $(ls sim/*.o | grep -v /test_sim.o)
    compile tests/world/sim/test_why.c why.o $flags
    program why why.o $(ls sim/*.o | grep -v /test_sim.o)
}
# Says which case of a unit test fails.
fails() {
    unit=$(unit_of "$1")
    case $1 in
    sim/test_stall) unit=stall ;;
    sim/test_why) unit=why ;;
    esac
    replaced=$(replaced_by "$1")
    [ -z "$replaced" ] || ${CC:-cc} "$unit.o" obj/*.o "-Wl,--wrap=$replaced" \
        -lcmocka -lm -o "$unit"
    (ulimit -t 60; timeout 300 "./$unit" >unit.out 2>&1) 2>/dev/null && return 1
    said=$(sed -n 's/.*FAILED.*\] \([a-z][a-z_0-9]*\).*/\1/p' unit.out | head -n 1)
    echo "$1${said:+:$said}"
}
# What takes seconds looks at the folders that it is about.
concerns() { # TEST FILE
    case $1=$2 in
    ring/test_algorithms=*|ring/test_plan=*)
        case $2 in master/*|elastic/*|message/*) return 1 ;; esac ;;
    message/*=master/*|message/*=ring/*|message/*=reduce/*) return 1 ;;
    sim/test_stall=ring/*|sim/test_stall=reduce/*|sim/test_stall=message/*)
        return 1 ;;
    esac
}
# Names the first that fails; those that are known come first.
unit_tests() { # FILE [TEST[:CASE]]...
    [ -n "$units" ] || return 0
    mutated=$1
    shift
    for test in "$@"; do fails "${test%%:*}" && return 0; done
    [ -n "$seeking" ] || return 0
    for test in $tests; do
        concerns "$test" "$mutated" && fails "$test" && return 0
    done
    return 0
}

# What is kept of this tree is good.
sources=$(find src include tests -name '*.[ch]' | sort | xargs cat | cksum)
if [ "$(cat passed 2>/dev/null)" != "$sources" ]; then
    said=$(seeking=yes unit_tests original)
    [ -z "$said" ] || { echo "the original fails: $said"; exit 1; }
    [ -z "$units" ] || echo "$sources" >passed
fi

# ------------------------------------------------- what universes reach

. "$here/reach.sh"

# As --judge takes them. Each mutant is tried in the UNIVERSES that are cheapest
# of those that reach its line: a few cost more than all the others.
./simulator --failed >failed
cp failed every
pool=$((count > 200 ? count : 200))
awk -v count="$pool" 'BEGIN {
    n = split("averages disagree doors fast grid lasting masters rare rooted scarce walls",
        kinds, " ")
    for (i = 0; i < count / 2; i++) {
        print 2 * i + 1
        print kinds[1 + i % n] ":" 1 + int(i / n)
    }
}' >>every
find_reached() {
    rm -rf reach
    mkdir reach
    for name in $core; do
        compile "src/$name.c" "reach/$(object "$name" | tr / _)" -Og -g \
            -fno-pie -fsanitize-coverage=trace-pc
    done
    for name in $sim rare scarce $checker; do
        folder=sim
        [ -f "tests/world/sim/$name.c" ] || folder=model
        compile "tests/world/$folder/$name.c" "reach/$name.o" -O1 -fno-pie
    done
    compile tests/world/sim/reached.c reach/reach.o -O1 -fno-pie
    ${CC:-cc} -no-pie reach/*.o -lm -o reached
    while read -r universe; do
        kind=${universe%:*}
        [ "$kind" != "$universe" ] || kind=
        rm -f pcs
        # Those that take long are left out.
        # shellcheck disable=SC2086
        (ulimit -t 8; REACH=pcs ./reached "${universe#*:}" 1 $kind \
            >/dev/null </dev/null) 2>/dev/null || continue
        sed "s/$/ $universe/" pcs
    done <every | tee addresses | reach_index reached
    sed -n 's/^blocks //p' addresses | sort -n | cut -d' ' -f2 >universes
    rm addresses
}
prepare_reach() {
    stamp="$sources $(cksum <every)"
    [ "$(cat stamp 2>/dev/null)" != "$stamp" ] || return 0
    find_reached
    echo "$stamp" >stamp
}

# ------------------------------------------------------------------- the mutants

# The table in the order of the list: answers of now, else those of before. Why
# one is not found by both is written by hand.
write_table() {
    sed "/^$mark/,\$d" "$table"
    echo "$mark"
    awk -F ' *[|] *' -v OFS=' | ' '
        FILENAME == "answers" { new[$1] = $2 OFS $3 OFS $4 OFS $5 OFS $6; next }
        FILENAME != "list" { if (NF > 8) why[$2] = $8
            if (NF > 8) old[$2] = $3 OFS $4 OFS $5 OFS $6 OFS $7
            next }
        { r = $1 in new ? new[$1] : $1 in old ? old[$1] : "untried | | | | "
          split(r, p, " "); sum[p[1]]++
          rows[++n] = "| " $1 " | " r " | " (p[1] == "both" ? "" : why[$1]) " |" }
        END {
            print "\n| found by | mutants |\n|---|---|"
            m = split("both oracle model model+unit unit none open untried", by, " ")
            for (i = 1; i <= m; i++)
                if (sum[by[i]]) print "| " by[i] " | " sum[by[i]] " |"
            print "| all | " n " |\n"
            print "| mutant | found by | oracle | model | unit test | reached by" \
                " | why not both |"
            print "|---|---|---|---|---|---|---|"
            for (i = 1; i <= n; i++) print rows[i] }' answers "$table" list
}
# The file and its object, until restore().
mutate() { # FILE SCRIPT
    sed "$2" "$root/src/$1" >"src/$1"
    unit=$1
    case $1 in reduce/quant_*.h) unit=reduce/quant_base.c ;; esac
    object=$(object "${unit%.c}")
    cp "$object" kept.o
    compile "src/$unit" "$object" $flags 2>/dev/null && link_core
}
restore() { # FILE
    cp kept.o "$object"
    cp "$root/src/$1" "src/$1"
}
# Universes that a search takes: the known ones, those that have failed once, and
# UNIVERSES that reach the line.
choose() { # FILE [UNIVERSE]...
    mutated=$1
    shift
    : >chosen
    # shellcheck disable=SC2046 # numbers
    [ "$count" -eq 0 ] || reach_of "$mutated" universes \
        $(changed_lines "$root/src/$mutated" "src/$mutated") >chosen
    {
        printf '%s\n' "$@"
        grep -xFf chosen failed || true
        head -n "$count" chosen
    } | awk 'NF > 0 && !seen[$1]++'
}
# Sets what finds the mutant that is built: oracle, model, unit_test, by; words.
look() { # FILE TEST [UNIVERSE]...
    mutated=$1 test=$2
    shift 2
    : >out
    [ $# -eq 0 ] || ./simulator --judge "$@" >out 2>&1 || true
    oracle=$(sed -n 's/^oracle \([^ ]*\): .*/\1/p' out)
    model=$(sed -n 's/^model \([^ ]*\): .*/\1/p' out)
    words=$(sed -n 's/^[om][a-z]* [^ ]*: //p' out | cut -c1-60 | paste -sd'~' -)
    unit_test=
    # shellcheck disable=SC2086 # none is no argument
    [ -n "$oracle" ] || unit_test=$(unit_tests "$mutated" $test)
    [ -n "$oracle$units" ] || unit_test=$test
    case ${oracle:+o}${model:+m}${unit_test:+u} in
    om) by=both ;;
    o) by=oracle ;;
    mu) by=model+unit ;;
    m) by=model ;;
    u) by=unit ;;
    # Nobody yet; perhaps the unit tests were not asked.
    *) by=none; [ -n "$units" ] || by=open ;;
    esac
}
# The mutants of a file in the form of the list, each with its number before it.
# Without $seeking only what the table says is tried, and who is not found so is
# appended to the file "stale".
try_all() { # FILE
    while IFS='|' read -r number name file script; do
        known_row=$(row "$name")
        IFS='|' read -r known_by known_oracle known_model known_unit <<ROW
$known_row
ROW
        [ -z "$open_only" ] || [ -z "$known_oracle$known_unit" ] || continue
        if ! mutate "$file" "$script"; then
            restore "$file"
            [ -z "$seeking" ] || [ -z "$known" ] || continue # it was said
            echo "$number $name: the mutation does not compile"
            survived=$((survived + 1))
            continue
        fi
        # shellcheck disable=SC2046,SC2086 # words
        if [ -n "$seeking" ]; then
            choose "$file" "$known_oracle" "$known_model" >tried
            look "$file" "$known_unit" $(cat tried)
            reach=$(wc -l <chosen)
            echo "$name|$by|$oracle|$model|$unit_test|$reach" >>answers
            [ -z "$write" ] || { write_table >table; cat table >"$table"; }
            case $by in
            none|open) [ "$known_by" = none ] || survived=$((survived + 1)) ;;
            esac
        else
            look "$file" "$known_unit" $(printf '%s\n' "$known_oracle" \
                "$known_model" | uniq)
            reach=-
        fi
        was=
        [ "$by" = "$known_by" ] || was="(was ${known_by:-untried})"
        [ -n "$seeking" ] || [ -z "$was" ] ||
            printf '%s|%s|%s|%s\n' "$number" "$name" "$file" "$script" >>stale
        printf '%3d %-34s %-10s %s\n' "$number" "$name" "$by" "$was reached by $reach: \
${oracle:--} ${model:--} ${unit_test:--} $words"
        restore "$file"
        echo "$number $by" >>found
    done <"$1"
}
survived=0
: >answers >found
cp mutants stale
if [ -n "$known" ]; then
    : >stale
    seeking='' try_all mutants
    echo "$(wc -l <mutants) mutants; rows that do not hold: $(wc -l <stale)"
fi
if [ -n "$seek" ] && [ -s stale ]; then
    [ "$count" -eq 0 ] || prepare_reach
    seeking=yes try_all stale
fi
awk -v seconds=$(($(date +%s) - began)) '{ by[$1] = $2 }
    END { for (i in by) sum[by[i]]++
        for (b in sum) printf "%s %d, ", b, sum[b]
        print seconds " s" }' found

[ "$survived" -eq 0 ] && { [ -n "$seek" ] || [ ! -s stale ]; }
exit
: <<'MUTANTS'
no FLUSH|master/round.c|s/^    m->out.send(m->out.user, m->links, count, &flush);//
no restore|ring/op_done.c|s/^        input_restore(op);/        (void)op;/
stale epoch accepted|ring/op_frame.c|s/^    if (is_old) return true;/    (void)is_old;/
loss not re-evaluated|master/master.c|s/^    settle(m);$/    if (event->type != MASTER_CLOSED) settle(m);/
wrong AVG divisor, flat|ring/allreduce_flat.c|s/reduce_divide(op->r.dtype, op->r.recvbuf, count, p->r.world)/reduce_divide(op->r.dtype, op->r.recvbuf, count, p->r.world + 1)/
wrong AVG divisor, ring|ring/allreduce_ring.c|s/reduce_divide(op->r.dtype, to, count, op->plan.r.world)/reduce_divide(op->r.dtype, to, count, op->plan.r.world + 1)/
newcomer admitted in mid-operation|master/admission.c|s/bool voted = members > 0 && votes_all(m, VOTE_UPDATE);/bool voted = members > 0 \&\& (waiting > 0 || votes_all(m, VOTE_UPDATE));/
commit though a survivor runs|master/round_ops.c|s/op->commit = op->complete == survivors;/op->commit = op->complete > 0;/
QUERY skipped|master/round_ops.c|s/op->doubt = op->complete + op->running < survivors;/op->doubt = false;/
returned does not commit|master/round_ops.c|s/op->commit = op->returned > 0 || /op->commit = /
donation not relayed|master/round_ops.c|s/m->out.send(m->out.user, m->links, count, msg);//
result dropped too early (D6)|ring/op.c|s/^    op->confirm = must_confirm(e, op);/& op_drop_older(e, op);/
result dropped too early (D7)|ring/result_cache.c|s/if (r->old) drop/drop/
a scope's DONE clears all (D7)|ring/result_cache.c|s/ || !op->whole) return;/) return;/
clean not asked (D7)|ring/op_done.c|s/if (!(f->flags & FLAG_CLEAN)) op->cleared = false;//
notified twice (update forgets)|elastic/session_view.c|s/if (update || s->state == SESSION_JOINING)/if (s->state == SESSION_JOINING)/
traits of one survivor (T4)|master/round.c|s/g->traits |= msg->flushed.traits;/g->traits = msg->flushed.traits;/
traits of the round before (T4)|master/round.c|s/^    g->traits = 0;//
traits of the last loss (T4)|elastic/notified.c|s/traits |= t->losses/traits = t->losses/
a proposal of another epoch is believed (T1)|link/view.c|s/if (msg->epoch != base->epoch || /if (/
new members without an update are believed (T1)|elastic/session_view.c|s/return s->next->added == 0;/return true;/
an update without a vote is believed (T1)|elastic/session_view.c|s/return s->votes\[VOTE_UPDATE\] == VOTE_WAITING;/return true;/
an optimization without a vote is believed (T1)|elastic/session_view.c|s/return s->votes\[VOTE_OPTIMIZE\] == VOTE_WAITING;/return true;/
never notified|elastic/notified.c|s/t->losses\[count\]->epoch <= epoch/t->losses[count]->epoch < epoch/
notified of a loss at once|elastic/session_view.c|s/^        loss = v->epoch;/& notified_advance(\&s->notified, UINT32_MAX);/
READY not awaited|master/round.c|s/return p->group == group \&\& p->proposed \&\& !p->ready;/return false;/
DONE of some is that of all (D4)|ring/op_done.c|s/if (comes \&\& !ep->done)/if (comes \&\& i < 2 \&\& !ep->done)/
sent before it was received|ring/op_send.c|s/return x->after == PLAN_NOTHING/return true/
taken by two connections|ring/op_send.c|s/if (ep->begun) op_bit_set(ep->begun, k);//
transfers behind a late one (D13)|ring/op_send.c|s/end = k + SEND_AHEAD;/end = k + 1;/
taken in an epoch before (D13)|ring/neighbors.c|s/memset(next->begun, 0, sends);//
digest ignored|ring/op.c|s/if (f->digest == (ep ? ep->rx_digest : op->r.digest)) return true;/return true;/
mismatch reported to one only|master/round.c|s/round_force(g, p->rank, \&name, VERDICT_INVALID);/;/
padding omitted|link/conn_send.c|/^void conn_forget/,/^}/s/c->tx_from = NULL;/& c->tx_left = 0;/
padding before all have flushed|ring/flush.c|s/conn_stop_receiving(&e->links, op);/conn_forget(\&e->links, op);/
frames of another epoch's operation|ring/op.c|s/bool same = op->epoch == e->links.view->epoch \&\& /bool same = /
leaver dropped from its proposal|master/round_view.c|s/g->phase == GROUP_PROPOSED ? p->proposed : stays/false ? p->proposed : stays/
verdict before commit|master/round_ops.c|s/uint8_t verdict = op->commit ?/uint8_t verdict = op->commit \&\& !op->forced ?/
a vote that comes twice counts twice (V1)|master/votes.c|s/if ((int32_t)(msg->round - p->call) <= 0) return false;.*//
no report closes the epoch (V4b)|master/master.c|s/deadlock_reported(m, link, msg);/;/
PENDING waits for ever (V4c)|master/deadlock.c|s/p->voted\[VOTE_PENDING\] \&\& voted >= 2 . m->deadline/false/
the lists show no vote (V4c)|master/deadlock.c|s/if (find_voters(m, group, voters)) refuse_voters(t, voters);//
a verdict refuses no vote (F6a)|elastic/session_verdict.c|s/if (s->refuses) refuse_call(s);//
any verdict refuses a vote (F6a)|elastic/session_verdict.c|s/s->refuses |= v->state == VERDICT_USAGE;/s->refuses = true;/
a verdict refuses PENDING (F6a)|elastic/session_verdict.c|s/if (kind == VOTE_PENDING || s->votes/if (s->votes/
a decided synchronization is refused (F6a)|elastic/session_sync.c|s/if (s->sync_waits) refuse_sync(/if (s->sync == SYNC_ASKED) refuse_sync(/
a refused vote waits on at the coordinator (F6a)|master/round.c|s/^    round_ops_refuse(m, group);//
a vote under way is not refused (F6a)|master/votes.c|s/if (!pending \&\& msg->epoch < p->refused) return false;/(void)pending;/
a verdict outlives a vote (F6b)|elastic/session.c|s/if (kind != VOTE_PENDING) session_call_over(s);//
a verdict outlives a synchronization (F6b)|elastic/session_sync.c|s/if (s->sync_waits) session_call_over(s);//
scopes are not reported (F8)|ring/flush.c|s/^    msg->sets = sets;/    msg->set_count = 0;/
one vote is enough (O2)|master/search/optimize.c|s/t->votes\[VOTE_OPTIMIZE\] < t->members/t->votes[VOTE_OPTIMIZE] == 0/
probes wait for ever (O4)|master/master.c|s/optimize_tick(m, m->group_list\[i\]);//
a failed probe is waited for (O4)|master/search/optimize.c|s/^        other->probe = 0;//;s/^    p->probe = 0;$/    if (!failed) p->probe = 0;/
probes begin before the last ones have ended (O4)|master/search/optimize.c|s/    if (probes_due(m, group)) return false;/    if (probes_due(m, group) \&\& false) return false;/
one end alone of a pair probes (O3a)|master/search/optimize.c|s/^        order_probe(m, b, a, x->b_to_a, x->a_to_b);//
ring of another question (O5)|master/search/optimize.c|s/if (x->ticket != ticket) return false;//
ring of a larger world (O5)|master/search/optimize.c|s/if (asked != count) return false;//
ring of other members (O6)|master/search/optimize.c|s/g->wish == 0 || g->wish_count != count/g->wish == 0/;s/if (m->peers\[m->sorted\[i\]\].wish.ticket != g->wish) return false;//
better ring forgotten (O6)|master/admission.c|s/ || optimize_has_better(m, m->group_list\[i\])//
probed links stay (O7)|elastic/session_view.c|s/if (msg->view.optimize) links_close_unwanted(s->links);//
crossed votes are refused amid a round (V5)|master/votes.c|s/!master_all_open(m) || //
more members than descriptors (M1)|master/master.c|s/known >= m->peers_max/known >= PEERS_MAX/
joins what it has no descriptors for (R3j)|elastic/session_view.c|s/if (have < need)/if (have >= need)/
hosts are not kept together (O8)|master/search/optimize.c|s/if (host) behind = \*host;//
networks are not kept together (O8)|master/search/optimize.c|s/if (network \&\& behind == 0) behind = \*network;//
crossed votes wait (V5)|master/master.c|s/^    votes_refuse_crossed(m);//
the scope's survivors are those of the view (F4)|master/round_ops.c|s/set->live += p->state == PEER_MEMBER;/set->live = master_live_links(m, self->group);/
the dead count as survivors (F4)|master/round_ops.c|s/set->live += p->state == PEER_MEMBER;/set->live++;/
verdicts of a scope go to one member (F6)|master/round_ops.c|s/m->out.send(m->out.user, m->links, links, \&msg);/m->out.send(m->out.user, m->links, type == WIRE_VERDICT ? 1 : links, \&msg);/
who votes reports nothing (V4a)|elastic/session.c|s/\&age) \&\& votes;/\&age) \&\& false;/
partners without data are not told (V4a)|ring/blocked.c|s/^        announce_late(e, \&e->ops\[i\]);/        continue;/
one that is slow closes the epoch (V4b)|master/deadlock.c|s/if (!votes \&\& g->blocked < 2) return;//
those that are slow close it again and again (V4b)|master/deadlock.c|s/if (m->now - g->suspected_at < age . 2) return;//
circles of scopes are not found (V4d)|master/deadlock.c|s/if (t->scope_count > 1) find_circles(t);//
the other scope's verdict is kept (V4d)|elastic/session_view.c|s/if (crossed \&\& session_drop_crossed(s, op_name(op).tag))/if (false)/
those that only wait for a circle end, too (V4d)|master/deadlock.c|s/side < SIDES \&\& !s.failed; side++) peel/side < AWAITED \&\& !s.failed; side++) peel/
a circle ends where one member is free (V4d)|master/deadlock.c|s/if (--other->sides\[side\].count == 0 \&\& !other->over)/if (!other->over)/
committed operations are in circles (V4d)|master/deadlock.c|s/return op->commit || op->forced/return op->forced/
operations with a verdict are in circles (V4d)|master/deadlock.c|s/return op->commit || op->forced != VERDICT_ABORT/return op->commit/
a loss leaves what is kept for the whole view (F6b)|elastic/session_launch.c|s/if (out.loss > 0) session_loss_told(s, out.loss);//
a loss ends what came after it (F6b)|elastic/session_verdict.c|s/ \&\& a->epoch < epoch \&\& / \&\& /
a sum in a region is in all queues (D16c)|ring/allreduce_single_copy.c|s/if (sum \&\& \*there == g + 1) return;/if (sum \&\& *there >= 1) return;/
a link of an operation has no more time (R3k)|link/link.c|s/return !l->wanted \&\& n->made_at > time/return false \&\& n->made_at > time/
a link gives others time again and again (R3k)|link/link.c|s/ || l->counted == n->view->epoch//
what a proposal names gives others time (R3k)|link/link.c|s/if (!l->sought || l->wanted || /if (!l->sought || /
the time of a link in line runs (R3l)|link/link.c|s/l->wanted_at = n->now; .. its time has not begun ..//
all dials within a host begin at once (R3l)|link/link.c|s/return making >= NEAR_DIALS_MAX;/return false;/
a dial that ends begins no other (R3l)|link/link.c|s/if (l->sought \&\& l->open == 0) dial/if (false) dial/
a link in the making is closed (R3d)|link/link.c|s/ \&\& is_stale(l))/)/
a silent link is not dialed anew (R3d)|link/link.c|s/c->made != l->attempt \&\&/c->asked != l->attempt \&\&/
scope ignored in sequence numbers (D1)|ring/result_cache.c|s/ || e->tags\[at\].scope != scope//;s/(tag ^ scope)/tag/
scope ignored in pending aborts (F6)|elastic/session_verdict.c|s/bool fits = a->scope == scope ||/bool fits = true ||/
scope ignored in verdicts (F3)|elastic/session_verdict.c|s/wire_same_op(\&name, v)/name.tag == v->tag \&\& name.seq == v->seq/
scope ignored in frames (F3)|ring/op.c|s/ \&\& op->scope_number == scope;/;/
scope ignored in unexpected frames (D2)|ring/op_receive.c|s/return k->complete \&\& k->frame.scope == op->scope_number \&\&/return k->complete \&\&/
a launch meets a verdict before INSTALL (F6)|elastic/session_verdict.c|s/\.fresh = true/.fresh = v->state == VERDICT_CROSSED/
verdict not stored (F6)|elastic/session_verdict.c|s/^        add_pending_abort(s, v);/        (void)v;/
younger verdict first (P1)|elastic/session_verdict.c|s/if (lost \&\& notified_oldest.*/(void)lost; if (false)/
failure forgotten by a flush (D10)|elastic/session_view.c|s/op_fails(op) \&\& !op_is_done(op)/false/
failure reported to one only (D10)|master/round.c|s/round_force(g, p->rank, \&name, VERDICT_FAILED);/;/
unexpected frames lost|link/conn_receive.c|s/c->parked = later && c->state == CONN_OPEN && !c->peer;/c->parked = false;/
stranded member waits for ever|elastic/session_view.c|s/if (s->stranded) session_gone(s, s->reason);//
no heartbeats|elastic/session_waits.c|s/^        session_send(s, \&beat);/        (void)beat;/
past is told as lacking (W3)|elastic/session_waits.c|s/past ? WAIT_PAST : WAIT_LACKS/past ? WAIT_LACKS : WAIT_LACKS/
nobody is asked what it lacks (W3)|master/watch/stall_watch.c|s/^    stall_ask(m, false);//
a silent member lacks nothing (W3)|master/watch/wait_graph.c|s/return wait_is_silent(g->m, link) ? .*;/return WAIT_PART_UNKNOWN;/
any address is announced (N1)|base/wire_member.c|s/if (!wire_addr_is_host(a)) /if (false) /
the seen address is dialed first (N2)|link/link.c|s/(&l->member, l->turn)/(\&l->member, l->turn + 1)/
one address is dialed (N2)|link/link.c|s/    if (l->open == 0) l->turn++;//
a silent address is not left (N2b)|link/link.c|s/^        way_try_other(.*;//
dials that are lost count (N2c)|link/way.c|s/^            conn_forget_dial(n, other);/            (void)other;/
a link forgets its address (N2c)|link/way.c|/^void way_found/,/^}/s/^    l->turn = c->turn;//
anybody is relayed by the master (N12a)|master/search/relays.c|/^bool relays_take/,/^}/s/^    return false;$/    return true;/
the master relays with any key (N12a)|master/search/relays.c|s/if (!m->may_relay || key->word\[0\] != m->key.word\[0\] ||/if (!m->may_relay \|\| false \&\&/
the master relays unasked (N10b)|master/search/relays.c|s/(!m->may_relay || has_failed/(has_failed/
the master never relays (N10b)|master/search/relays.c|s/(!m->may_relay || has_failed/(true || has_failed/
the master reads without limit (N12c)|master/server/master_conn.c|s/return !c->relays || c->in_size/return true || c->in_size/
the master drops the last bytes (N12e)|master/server/switchboard.c|s/bool kept = rest == 0 || (frame.*/bool kept = true;/
the master leaves the other end open (N12e)|master/server/switchboard.c|s/    if (c->relays) part(b, c);/    if (c->partner) c->partner->partner = NULL;/
the master keeps who waits (N12c)|master/server/switchboard.c|s/if (!c->partner \&\& c->linger_at <= now)/if (false)/
anybody is relayed (N12a)|link/relay.c|s/^    return false;$/    return true;/
a relay takes any key (N12a)|link/relay.c|s/if (!ours || c->rx.scope/if (c->rx.scope/
what is ahead of PROPOSE is not relayed (N12a)|link/relay.c|s/hello.to)) return conn_park(c);/hello.to)) return false;/
a relay reads without limit (N12c)|link/relay.c|s/leg->count < n->relay.pipe ? n->relay.pipe - leg->count : 0/RELAY_PIPE - leg->count/
a relay forgets what it could not send (N12c)|link/relay.c|s/from->count -= (uint32_t)size;/from->count = 0;/
all listening connections stay (N12c)|link/relay.c|s/newest->listens ? 1 : RELAY_DIALS_MAX/1000/
the last bytes are lost (N12e)|link/relay.c|s/} else if (leg->count == 0) {/} else {/
the other end stays open (N12e)|link/relay.c|s/        conn_close(n, other->conn->number);/        (void)n;/
what a closed end sent stays (N12e)|link/relay.c|s/    if (!from->conn) conn_close(n, c->number);//
joined connections are silent (N12e)|link/relay.c|s/return !c->leg->other \&\& n->now/return n->now/
relays of an old view go on (N12e)|link/relay.c|s/bool ends = l->conn \&\& !is_named(n, l->from, l->to);/bool ends = false;/
who listens is served once (N11a)|link/way.c|/^void way_served/,/^}/s/listen_at = n->now;/listen_at = PCCL_NEVER;/
a relay is dialed where its dials come from (N11a)|link/way.c|s/ && to->outward;/;/
nobody listens (N11a)|link/way.c|s/if (!l->relayed || n->now < l->listen_at) return;/return;/
the old way stays (N11c)|link/way.c|s/^    link_close(n, l);$//
a direct dial is taken (N11c)|link/way.c|s/return c->listens == 0 \&\& l \&\& l->relayed;/return false;/
relays that have failed are named again (N10d)|master/search/relays.c|s/has_failed(e, id)) continue;/false) continue;/
a relay that reaches one end (N10b)|master/search/relays.c|s/        if ((of_a || of_b) \&\& other < count) out\[other\] = true;//
one relays for all (N10b)|master/search/relays.c|s/    if (best < count) m->loads\[best\]++;//
rings without relays (N10c)|master/search/order.c|s/s.relayed = pass > 0;/s.relayed = false;/
relays where links would do (N10c)|master/search/order.c|s/s.relayed = pass > 0;/s.relayed = true;/
relayed edges are fast (N10c)|master/search/relays.c|s/^    edges_slow(m, group, e->a, e->b);$//
silent links are not told (W1)|link/link_patience.c|s/pairs\[count++\] = c->to;/pairs[count++] = 0;/
all are in each scope (W2)|master/watch/wait_graph.c|s/if (op->whole) return true;/return true;/
the reports of an old view tell of operations (W2)|master/watch/wait_graph.c|s/return report->epoch == .*/return report;/
a report is old (W2)|master/watch/peer_report.c|s/report->current = take_sets/report->current = !take_sets/
operations do not block (W1)|ring/op_waits.c|s/.blocks = op->awaited,/.blocks = false,/
data are never slow (W4)|master/watch/stall.c|s/s->rate < s->best \/ SLOW/false/
two reports at once are a rate (W4)|master/watch/peer_report.c|s/close = took < beat \/ 2/close = false/
a synchronization is over at once (W4)|master/watch/stall.c|s/return p->sync.voted || .*;/return p->sync.voted;/
silence is no loss|master/watch/silence.c|s/^    drop(m, link);$/    return false;\n&/
a whole deadline of silence (M8)|master/watch/silence.c|s/ >= PCCL_TIME_TO_LOSE(m->deadline);/ >= m->deadline;/
a round that never comes is waited for (M9)|elastic/session.c|s/^    waiting |= s->fault_epoch == .*//
who gets no CPU time is lost (M10)|master/watch/silence.c|s/e == EVIDENCE_RUNNABLE ||/false ||/
silent FLUSHED is waited for (R8)|master/watch/limits.c|s/p->answer < ANSWER_FLUSHED ? "FLUSH"/false ? "FLUSH"/
silent REPLY is waited for (R8)|master/watch/limits.c|s/p->answer < ANSWER_TOLD ? "QUERY"/false ? "QUERY"/
silent RESULT is waited for (R8)|master/watch/limits.c|s/results\[link\] ? "DONATE"/false ? "DONATE"/
silent READY is waited for (R8)|master/watch/limits.c|s/p->proposed \&\& !p->ready ? "PROPOSE"/false ? "PROPOSE"/
no CPU time, and no answer (R8a)|master/watch/limits.c|s/silence_is_excused(m, link) || //
stopped for a while, and no answer (R8a)|master/watch/limits.c|s/(d->silent ? 2 : 1)/1/
links to the silent are owed (R8b)|master/watch/limits.c|s/ || (delayed \&\& !silent)//
answers not read while it slept (R8a)|master/watch/silence.c|s/limits_extend(m, i, \*since);//
newcomers while an update runs (M3a)|master/round_view.c|s/p->info.id <= g->admitted :/true :/
an update of many newcomers (M3b)|master/round.c|s/>= 2 \* m->deadline) g->admitted = 0/>= 2 * m->deadline) g->admitted += 0/
who was stopped is waited for (M10)|master/watch/silence.c|s/e == EVIDENCE_TRACED)/e != EVIDENCE_NONE)/
evidence for ever (M10)|master/watch/silence.c|s/m->now - p->silence.seen_at < m->deadline/true/
evidence of another silence (M10)|master/watch/silence.c|s/p->silence = (struct master_silence){.since = m->now};/p->silence.since = m->now;/
the silent are not told (M10)|master/watch/silence.c|s/if (silence_is_suspect(m, i)) m->ids/if (false) m->ids/
links of the silent are judged (M10)|elastic/session.c|s/links_excuse(s->links, msg->ids, msg->id_count);//
dials to the silent are judged (M10)|link/link_patience.c|s/if (l) l->wanted_at = n->now;//
an attempt to link the silent counts (M10)|master/search/edges.c|s/if (silence_is_suspect(m, x) .*//
a deaf master judges (M11)|master/watch/silence.c|s/return m->now - m->heard_at >= .*;/return false;/
no time after an outage (M11)|master/watch/silence.c|s/\*since = m->now + grace;/*since = m->now;/
its own sleep counts (M15)|master/server/own_clock.c|s/^ *c->slept += gap;//
its clock goes back (M15)|master/server/own_clock.c|s/c->due > c->last/true/
no fresh deadline after its sleep (M15)|master/watch/silence.c|/^void silence_slept/,/^}/s/give_time(m, gap);/(void)gap;/
strangers pay for its sleep (M15)|master/watch/silence.c|s/m->peers\[i\].last_recv = m->now;/(void)0;/
a view that is not kept (J1)|master/round.c|/may_install(m, group) ||/,/!memory_keep(m))/s/!memory_keep(m)/false/
shared state that is not kept (J1)|master/state/state_vote.c|s/^    if (!memory_keep(m)) return;.*//
rounds once more after a restart (J4)|master/succession/remember.c|s/^    memory->round += MEMORY_ROUNDS_SKIPPED;//
peers once more after a restart (J4)|master/succession/remember.c|s/^    memory->id += MEMORY_IDS_SKIPPED;//
a sleeper judges (M12)|link/link_patience.c|s/^    if (slept <= tick).*/    return;/
codes: rounding down|reduce/quant_real.h|s/((distance + QROUND) - QROUND)/((distance - 0.49f + QROUND) - QROUND)/
codes: steps too short|reduce/quant_real.h|s/if (step \* top < range)/if (false)/
codes: overflowing range|reduce/quant_real.h|s/if (!(s.most - s.least <= QMAX))/if (false)/
codes: AVG not divided|ring/allreduce_ring.c|s/divisor = op->plan.r.world;/divisor = 1;/
codes: owner takes its exact sum|ring/allreduce_ring.c|s/^    quant_decode(q, to, s->/    if (x->action == ACTION_DIVIDE) { quant_decode(q, to, body, count); reduce_apply(op->r.dtype, op->r.redop, to, to, (const uint8_t *)op->r.sendbuf + y.offset, count); return; }\n&/
codes: no restore of a ring|ring/allreduce_ring.c|s/^    input_overwrite(op, to, y.size);//
a small result replaces the input (C2)|ring/op_input.c|s/if (aside .. in->size < e->input_large) return put_aside(e, op, 0);/if (in->size < e->input_large) return aside ? put_aside(e, op, 0) : true;/
codes: own part left out|ring/allreduce_ring.c|s/s->codes + x->offset, body,/s->codes + x->offset, s->codes + x->offset,/
broken link not reported|ring/op_frame.c|s/^    e->out.fault(e->out.user, alone.*/    (void)alone; if (false)\n&/
departed peers vote (S1)|master/state/state_vote.c|s/return p->state == PEER_MEMBER \&\& p->group == group;/return (p->state == PEER_MEMBER || p->state == PEER_DEAD) \&\& p->group == group;/
decided without the late (S1)|master/state/state_vote.c|s/master_finds(m, &g->hints.syncs, is_free, group, 0))/g->restart)/; s/if (voters + optimizers == 0) return;/if (voters < 2) return;/; s/if (voters == members)/if (voters > 1)/
strategies mix (S2a)|master/state/state_vote.c|s/is_popular(p) == popular) continue;/true) continue;/
newcomers choose the strategy (S2a)|master/state/state_vote.c|s/was_in_last(p, r) ? PEERS_MAX : 1/1/
the lowest rank does not break the tie of strategies (S2a)|master/state/state_vote.c|s/return lowest \&\& is_popular(lowest);/return false;/
receive-only is elected (S2)|master/state/state_vote.c|s/if (!votes(m, link, group) || s->strategy == SYNC_RECEIVE_ONLY)/if (!votes(m, link, group))/
receive-only serves (S2)|master/state/state_vote.c|s/s->part = s->strategy == SYNC_RECEIVE_ONLY ? PART_HAS : PART_SERVES;/s->part = PART_SERVES;/
receiver becomes a holder (S8)|master/state/state_vote.c|s/p->sync.strategy == SYNC_RECEIVE_ONLY ? PART_HAS : PART_SERVES;/PART_SERVES;/
revision stands still (S3)|master/state/state_vote.c|s/e.resume ? r->revision : r->revision + 1/r->revision/
ahead is welcome (S3)|master/state/state_vote.c|s/if (s->revision > e->expected) {/if (s->revision > e->expected + 1) {/
any checkpoint resumes (S4)|master/state/state_vote.c|s/answer(m, i, SYNC_FOREIGN, e->expected);/e->current = true;/
the run is forgotten (S4)|master/state/state_vote.c|s/if (was_in_last(.*)) e.resume = false;/e.resume = false;/
those behind are candidates (S5)|master/state/state_vote.c|s/return s->revision == e->expected || .*;/return true;/
least popular wins (S5)|master/state/state_vote.c|s/if (end - i < best) continue;/if (best > 0 \&\& end - i > best) continue;/
tie by link (S5)|master/state/state_vote.c|s/if (end - i == best .. first->rank > .*/if (end - i == best) continue;/
outvoted sender receives (S5)|master/state/state_vote.c|s/if (!same \&\& s->strategy == SYNC_SEND_ONLY) {/if (false) {/
other tensors as receivers (S6)|master/state/state_vote.c|s/s->structure == winner.structure ? PART_LACKS : PART_DIFFERS/PART_LACKS/
leaver is listed (S6)|master/state/state_vote.c|s/if (!in_group(p, group) || p->leaving || p->sync.part != part) continue;/if (!in_group(p, group) || p->sync.part != part) continue;/
complete though one receives (S8)|master/state/state_vote.c|s/if (open == 0 || /if (open <= 1 || /
lists not sent again (S8)|master/members.c|s/if (p->sync.part != PART_NONE) g->sync_changed = true;//
block not checked (S7)|elastic/state_plan.c|s/if (t->blocks > 1) return hash == .*;/if (t->blocks > 1) return true;/
late answer taken (S7)|elastic/state.c|s/ \&\&$/ \&\&/;s/(x->piece.kind == STATE_NAMES || x->piece.size == f->index)/true/
a second size of the structure (S7d)|elastic/state_plan.c|s/(total != all || all > STATE_NAMES_MAX)/(all > STATE_NAMES_MAX)/
who has no memory is suspect (S7b)|elastic/state.c|s/bool right = f->size == 0 || /bool right = /
no fellow tells hashes (S7e)|elastic/state_plan.c|s/bool gives_hashes = p->holder || .*/bool gives_hashes = p->holder;/
names begun by one, ended by another (S7d)|elastic/state_plan.c|s/if (s->names_from != p->id) s->names_got = 0;//;s/^        s->names_got = 0;$//
a question of more than a frame (S7d)|elastic/state.c|s/ || p->size > FRAME_BODY_MAX)/)/
receive-only passes on (S7)|elastic/session_sync.c|s/strategy == SYNC_ENFORCE_POPULAR);/true);/
retries counted twice (S8)|elastic/state_plan.c|s/^    s->taken\[i + 1\] += size;/    s->taken[i + 1] += 2 * size;/
credit to the wrong one (S8)|master/state/state_vote.c|s/msg->ids\[k\]);/msg->ids[k] + 1);/
another call is waited for (S9)|master/state/state_vote.c|s/refuse_crossed(m, group);/;/
a busy member serves guests (S10d)|elastic/session_offer.c|s/           engine_has_work(s->engine);/           false;/
guests are served in a flush (S10d)|elastic/session_offer.c|s/links_is_frozen(s->links) ||/false ||/
the rate of an offer is not kept (S10d)|elastic/offer.c|s/^    return o->tokens > 0;/    return true;/
guests are served all round (S10d)|elastic/offer.c|s/if (o->terms.share >= 1000 || o->round == 0) return true;/return true;/
what a guest has is sent anyway (S10d)|elastic/offer.c|s/if (bytes \&\& hash == q.hash)/if (false)/
any question is answered (S10d)|elastic/offer.c|s/    if (f->seq >= l->count || .*/    if (f->seq >= l->count) return false;/
any number of questions (S10d)|elastic/offer.c|s/g->count == OFFER_WINDOW || //
a guest needs no key (S10c)|link/conn.c|s/    if (!ours || hello.to != n->self/    if ((!ours \&\& !(c->rx.flags \& FLAG_GUEST)) || hello.to != n->self/
guests without an offer (S10c)|elastic/offer.c|s/^    if (!o->list) return false;/    if (false) return false;/
guests keep their connection after the offer (S10c)|elastic/offer.c|s/^    o->round = 0;$/    return;/
other tensors go to former guests (S10c)|elastic/offer.c|s/if (o->list \&\& o->structure != list->structure) close_guests(o);//
a silent guest keeps its place (S10c)|link/links.c|s/if (c->state == CONN_OPEN \&\& c->link \&\& !is_used(n, c->link)) return;/if (c->state == CONN_OPEN \&\& (!c->link || !is_used(n, c->link)) \&\& !c->peer) return;/
the highest revision counts (S10e)|master/state/offers.c|s/m->ids\[count \/ 2\]/m->ids[count - 1]/
the lowest revision counts (S10e)|master/state/offers.c|s/m->ids\[count \/ 2\]/m->ids[0]/
old newcomers wait on (S10f)|master/state/offers.c|s/    if (!current(m, group, \&revision)) return;/    return;/
a proposed newcomer is too old (S10f)|master/state/offers.c|s/p->group != group || p->proposed ||/p->group != group ||/
max_stale is not allowed (S10f)|master/state/offers.c|s/revision - o->revision <= o->max_stale)/false)/
blocks that are too old will do (S10f)|elastic/prefetch.c|s/return got > least;/return got > 0;/
a guest stays with a silent member (S10g)|elastic/prefetch.c|s/if (connects \&\& now - p->since >= p->deadline)/if (false)/
a guest takes what it did not ask for (S10d)|elastic/prefetch.c|s/    if (f->size != q->size) return false;//
a connection that was closed stays of its link|link/conn.c|s/^    link_leave(c);$/    c->link = NULL;/
old generations stay open (R3)|link/conn.c|s/if (other->generation == l->generation) continue;/continue;/
idle blocks stay|base/pool.c|s/free_some(p, i, p->lists\[i\].idle);/;/
blocks in use are idle|base/pool.c|s/if (list->idle > list->count) list->idle = list->count;//
a job that has ended begins anew (M2b)|master/admission.c|s/if (m->job \&\& m->founded \&\& members == 0) admission_refuse(m);//
a job that has died begins anew (M2b)|master/admission.c|s/if (m->job \&\& m->founded \&\& members == 0)/if (m->job \&\& m->left \&\& members == 0)/
nobody founds the run of a coordinator alone (M2d)|master/master.c|s/msg->hello.join \&\& (m->founded || !m->alone);/msg->hello.join;/
a run without a job has ended for newcomers (M2b)|master/admission.c|s/if (m->job \&\& m->founded \&\& members == 0)/if (m->founded \&\& members == 0)/
a newcomer aborts the run (M3)|master/master.c|s/if (m->peers.link..state == PEER_REGISTERED \&\& m->peers.link..join) {/if (false) {/
the higher id never dials (R3)|link/link.c|s/l->dial_at = n->now + (first ? 0 : time_to_link(n, l) . 4);/l->dial_at = first ? n->now : PCCL_NEVER;/
link that is open counts unseen (R3)|link/link.c|s/if (c->state == CONN_OPEN \&\& c->alive != l->attempt) return false;//
dial ahead of its PROPOSE (R3)|link/conn.c|s/return from < n->self \&\& n->view->size > 0 ? false : park_ahead(c);/return false;/
crossing dials are both taken (R3)|link/conn.c|s/if (mine \&\& link_greets(l)) return conn_park(c);//
restart at the first failure (R4)|master/round.c|s/if (g->unlinked \&\& !g->decided \&\& all_ready(m, group)) {/if (g->unlinked \&\& !g->decided) {/
one lost, the others stay (R6)|link/conn.c|s/^        close_rest(n, l);//
a small HELLO is enough (R3)|link/links.c|s/c->rx.size >= n->fill_size/true/
a failed link is sought for ever (R3)|link/link.c|s/^    l->sought = false;$/    return;/
the smaller set goes on (R4)|master/search/order.c|s/if (size != other) return size > other;/if (size != other) return size < other;/
of two halves the last one (R4)|master/search/order.c|s/(set \& (differ/(than \& (differ/
members that stay are evicted (R4)|master/search/partition.c|s/if (m->peers\[m->sorted\[i\]\].stays) return false;//
useless links are made for ever (R4)|master/search/edges.c|s/if (e->breaks <= MASTER_BREAKS_MAX) return;/return;/
what a bad pair hides is not surveyed (R4d)|master/round.c|s/g->survey = !g->survey;/g->survey = false;/
a survey waits for relays (R4d)|elastic/session_view.c|s/is_relayed(v, i)) want/is_relayed(v, v->rank)) want/
who is tried ahead of its PROPOSE (R4f)|elastic/session_view.c|s/links_missed(s->links) ||//
a small world is not surveyed (R4d)|master/round.c|s/!g->surveyed \&\& !g->mesh;/!g->surveyed \&\& !g->small;/
an unreachable pair is not surveyed (R4d)|master/round.c|s/g->survey |= !known;/(void)known;/
a known bad pair is surveyed (R4d)|master/round.c|s/g->survey |= !known;/g->survey |= known || !known;/
a small world surveys few pairs (R4d)|elastic/session_view.c|s/bool all = v->mesh || (v->survey .*/bool all = v->mesh;/
a survey is not asked (R4)|master/search/order.c|s/if (m->groups\[group\].surveyed) {/if (false) {/
a lost link takes old dials (R6)|link/conn.c|s/l->generation++; .*//
late dial is accepted (R3)|link/conn.c|s/if (c->generation < l->generation) return false;//
DONE before that of all (D17)|ring/op_done.c|s/ : all_done(op);/ : true;/
DONE before that of those below (D17)|ring/op_done.c|s/? all_below_done(op)/? true/
a request for DONE ends at its receiver (D17)|ring/op_receive.c|s/op->plan.done == DONE_TREE || //
a sum that lacks a child (D17)|ring/small_tree.c|s/if (--s->missing > 0) return;/s->missing = 0;/
result before that of the parent (D17)|ring/small_tree.c|s/s->has_result = plan_is_root(p);/s->has_result = true;/
some members know a star and others a tree (D17)|ring/geometry.c|s/width = r->world - 1;/width = r->rank % 2 == 0 ? r->world - 1 : 2;/
sum sent before the children's (D17)|ring/small_tree.c|s/else if (p->tree.children > 0)$/else if (p->tree.children > 0 \&\& is_all_to_all(p))/
average divided at each member (D17)|ring/small_tree.c|s/if (plan_is_root(p) \&\& op->r.redop/if (op->r.redop/
blocks in the order of the ring (D17)|ring/small_tree.c|s/: rank \* size;/: i * size;/
data of the sender stay below (D17)|ring/small_tree.c|s/return holds_root(p, part) == down ? 0 : size;/return down \&\& !holds_root(p, part) ? size : 0;/
blocks go up before the children's (D26)|ring/small_tree.c|s/else if (p->tree.children > 0)$/else if (p->tree.children > 0 \&\& !is_all_to_all(p))/
blocks go down before the parent's have all come (D26)|ring/small_tree.c|s/s->has_result = ep->received == ep->recvs;/s->has_result = true;/
the table is not turned (D26)|ring/small_tree.c|s/if (is_all_to_all(p) .. plan_is_root(p)) turn(op);//
blocks of a tree in the order of the ring (D26)|ring/small_tree.c|s/recv_displs\[rank\]/recv_displs[i]/
an all-to-all over a tree is not confirmed (D26)|ring/small_tree.c|s/\.awaits_all = true,/.awaits_all = true, .defers = true,/
a sender keeps its name in the slot of a pull (D27c)|ring/single_copy.c|s/ release(e, slot - 1);/ e->single_copy.users[slot - 1] = NULL;/
a slot keeps its name in a new view (D27c)|ring/single_copy.c|s/ release(e, i);/ e->single_copy.users[i] = NULL;/
a failed pull is not told to the sender (D27d)|link/region.c|s/c->region.unreadable = c->region.answers = true;//
a failed pull breaks nothing (D27d)|ring/pull.c|s/if (!copied)$/if (false)/
where a block for another one begins (D27)|ring/pull.c|s/there->of\[p->rank\]/there->of[0]/
silence through memory ends a link (R7b)|link/links.c|s/ || conn_has_no_path(c)) continue;/) continue;/
a proposal asks what is in memory for a sign of life (R7b)|link/link.c|s/if (conn_has_no_path(c)) {/if (false) {/
a silent member of the host is reported by others (R7b)|link/link_patience.c|s/ || conn_has_no_path(c))/)/
a link within the host has the time of one to another (R3k)|link/link.c|s/more ? PCCL_TIME_TO_DETECT/false ? PCCL_TIME_TO_DETECT/
a sum beyond the credit is not announced (D17)|ring/small_tree.c|s/if (!plan_is_root(p)) op_announce(.*//
links of the tree although a pair is bad (D17)|master/search/link_shape.c|s/ \&\& !has_bad_pair(m, g, count, false)//
links of the grid although a pair is bad (D20)|master/search/link_shape.c|s/ \&\& !has_bad_pair(m, g, count, true)//
no links of the grid are made (D20)|elastic/session_view.c|s/if (v->grid) want_grid(s, at);//
a sum that lacks one of its row (D20)|ring/small_grid.c|s/ || --s->row_missing > 0) return;/) return; s->row_missing = 0;/
sums of a row sent before its data (D20)|ring/small_grid.c|s/if (row) x->after = AFTER_ROW;//
a row announces nothing beyond its credit (D20)|ring/small_grid.c|s/op_announce(e, op, .*);//
DONE to other rows before that of the row (D20)|ring/op_done.c|s/ep->sends > 0 \&\& row_done(op)/ep->sends > 0/
a request for DONE ends at its receiver (D20)|ring/op_receive.c|s/ || op->plan.done == DONE_GRID;/;/
blocks of a grid in the order of the ring (D20)|ring/small_grid.c|s/plan_at(p, i) \* size/i * size/
a sum that lacks one of its row (D22)|ring/grid_bands.c|s/part->turns = g->size - 1;/part->turns = g->size - 2;/
a result that lacks a row (D22)|ring/grid_bands.c|s/part->turns += g->rows - 1;/part->turns += g->rows - 2;/
sums of a row sent before its parts (D22)|ring/grid_bands.c|s/x->after = piece;/if (kind == KIND_SUM) return; &/
results sent before all rows (D22)|ring/grid_bands.c|s/if (kind == KIND_RESULT \&\& !first) .*;//
launches are not told at once (D22)|ring/grid_bands.c|/allreduce_grid = {/,/^}/s/    .tells_launch = true,//
an average is not divided (D22)|ring/grid_bands.c|s/return kind == KIND_PART || kind == KIND_SUM;/part->all = false; &/
a body over an input that is not saved (C2)|ring/op_receive.c|s/^        input_overwrite(op, place, x.size);//
parts from the first member of the row on (D22)|ring/grid_bands.c|s/uint32_t column = .*;/uint32_t column = other.column + (other.column < g->column);/
a segment sent before it is here (D24)|ring/grid_bands.c|s/if (!reduces(p) \&\& p->r.rank == p->r.root) return;/if (!reduces(p)) return;/
launches are not told at once (D24)|ring/grid_bands.c|/broadcast_grid = {/,/^}/s/    .tells_launch = true,//
the root owns a band (D24)|ring/grid_bands.c|s/ - (root.column < node->column);/;/; s/columns(p) \&\& node->column != root.column;/columns(p);/; s/ - (root.column < plan_grid_columns(p));/;/
segments are not passed on (D24)|ring/grid_bands.c|s/pieces_mark(e, op, \(.*\));/op_bit_set(((struct pieces *)op->state)->ready, \1);/
the next column's band (D24)|ring/grid_bands.c|s/from->column == to->column;/from->column == to->column + 1;/
no links of the tree are made (D17)|elastic/session_view.c|s/if (v->tree) want_tree(s, at);//
a term that is taken is claimed (H13)|master/succession/replicas_collect.c|s/ || msg->resume.term == k->claim//
a launch takes large data (D2)|ring/op_frame.c|s/f->size > LAUNCH_MAX/false/
launched, frame left (D2)|ring/op_frame.c|s/!engine_is_past(e, f->scope, f->tag, f->seq));/true);/
frame left by a waiting one (D2)|ring/op_frame.c|s/if (!leaves \&\& !e->defers) return false;//
a wait for one operation reads on (D2)|ring/op_frame.c|s/e->goal \&\& e->goal->phase == PHASE_DONE/false/
half a frame is left (D2)|link/conn_receive.c|s/c->state != CONN_OPEN || c->peer || c->rx_state != RX_HEADER ||$/c->state != CONN_OPEN || c->peer ||/
many in a row are cached (D4)|ring/op.c|s/ || e->in_a_row > e->many//
no READY without credit (D2)|ring/op.c|s/ep->reserved = ep->ready || op_eager_fits(ep, x.size);/ep->reserved = true;/;s/if (!ep->reserved) {/if (ep->sends == 0) {/
credit of an announcement not reserved (D2)|ring/op.c|s/^        ep->link->eager_bytes += x.size;//;s/^        ep->eager = x.size;//
root clean, a member not (D17)|ring/op_done.c|s/op->cleared \&\& idle_but(e, op)/idle_but(e, op)/
frames sent count after a flush (F1)|ring/op_done.c|s/if (e->links.frozen) return; .. the report in FLUSHED stands.*//
root sends no READY (D17)|ring/op_receive.c|s/^    if (op->phase == PHASE_RUNNING) op_announce(e, op, ep);//
broadcasts need no READY (D2)|ring/op.c|s/if (ep->announced || /if (ep->recvs == 0 || ep->announced || /
complete though one disagrees (D2)|ring/op_done.c|s/ || !ep->ready)/)/;s/ ep->received < ep->recvs || !ep->ready)/ ep->received < ep->recvs)/
other plans not compared (D2)|ring/op.c|s/^    check_others(e, op);//
sizes of a pair not compared (D2)|ring/op.c|s/if (p->coll != COLL_ALLTOALLV) return;/return;/
out of turn (D3)|ring/pieces.c|s/s->added\[part.piece\] + 1u == part.turn ? NULL/true ? NULL/
sum of some (D12)|ring/pieces.c|s/if (\*where == CAME_NOT) return;/if (*where == CAME_NOT) break;/
wish for DONE not passed on (D15)|ring/op_send.c|s/op->confirm .. op->tells_all ?/op->confirm ?/
DONE only to direct askers (D15)|ring/op_done.c|s/return op->tells_all .. /return /
sum sent before received (D15)|ring/allreduce_direct.c|s/if (!part \&\& chunk != p->r.rank) x->after += .*//
site's sum sent without the others (D15)|ring/allreduce_direct.c|s/if (part \&\& turns_of(p, chunk) == 0) return;/if (part) return;/
members see other sites (D15)|ring/engine.c|s/e->has_hierarchy = view->sites \&\& /e->has_hierarchy = view->sites \&\& view->rank % 2 == 0 \&\& /
average by a site (D15)|ring/allreduce_direct.c|s/part->all = chunk == p->r.rank;/part->all = true;/
single copy out of turn (D3)|ring/pieces.c|s/if (\*where == CAME_NOT) return;/if (*where == CAME_NOT) { ++*added; continue; }/
next input before all sums (D16)|ring/allreduce_single_copy.c|s/x->after = pieces_count(p) + .*;/x->after = PLAN_NOTHING;/
sums of some are all (D16)|ring/allreduce_single_copy.c|s/if (++s->sums\[g\] + 1u == p->r.world)/++s->sums[g];/
no restore of a single copy|ring/single_copy.c|s/^    input_overwrite(op, to, x->size);//
read by an excluded member (L8)|ring/pieces.c|s/return single_copy_is_valid(op, region, slot);/return true;/
a slot of two operations (L8)|ring/single_copy.c|s/if (e->single_copy.users\[slot\]) continue;//
a slot is not signed (L8)|ring/single_copy.c|s/^        sign(e, slot, name_of(op));//
region used before opened (L7)|ring/op_send.c|s/return c->region.taken \&\& x->size > 0;/return x->size > 0;/
a place before all have taken it (D19)|ring/spread_single_copy.c|s/x->after = k - LAG;/x->after = PLAN_NOTHING;/
the word before the segment (D19)|ring/spread_single_copy.c|s/        x->after = k;/        x->after = PLAN_NOTHING;/
a segment of some is one of all (D19)|ring/spread_single_copy.c|s/return s->came\[after\] == s->senders;/return s->came[after] > 0;/
the wait is as long as the slot (D19)|ring/spread_single_copy.c|s/LAG = PLACES . 2,/LAG = PLACES,/
a place has its first segment for ever (D19)|ring/spread_single_copy.c|s/if (\*there == k + 1) return;/if (*there > 0) return;/
spread read by an excluded member (L8)|ring/single_copy.c|s/return single_copy_is_valid(op, region, slot);/return true;/
a word before the inputs are added (D21)|ring/allreduce_single_copy.c|s/x->after = piece_of(p, p->r.rank, g);/x->after = PLAN_NOTHING;/
a block is made in the caller's memory (D21d)|ring/op_input.c|s/op->plan.r.coll == COLL_REDUCE_SCATTER/op->plan.r.coll == COLL_COUNT/
a block is deferred (D21c)|ring/allreduce_direct.c|s/    .colls = BIT(COLL_REDUCE_SCATTER),/&\n    .defers = true,/
a block of single copy is deferred (D21c)|ring/allreduce_single_copy.c|s/    .colls = BIT(COLL_REDUCE_SCATTER),/&\n    .defers = true,/
parts of a block by sites (D21)|ring/op.c|s/if (e->has_hierarchy \&\& p->coll != COLL_REDUCE_SCATTER)/if (e->has_hierarchy)/
each decides alone (D16)|ring/op.c|s/p->single_copy_world = e->single_copy_on ? e->single_copy_world : 0;/p->single_copy_world = e->single_copy_on \&\& e->links.region ? e->single_copy_world : 0;/
no restore of a direct one|ring/pieces.c|s/^    input_overwrite(op, to, size);//
passed on before received (D14)|ring/allreduce_ring.c|s/PLAN_NOTHING : ring_index(p, step - 1, g);/PLAN_NOTHING : ring_index(p, step - 1, 0);/
interleaving differs (D14)|ring/plan.c|s/p->uncached && p->r.one_host/p->r.rank % 2 == 0 \&\& p->r.one_host/
block of a ring not saved (C2)|ring/allreduce_ring.c|s/^    input_overwrite(op, to, size);//
root's broadcast not copied (D12)|ring/fast_path.c|s/if (ep->recvs > 0) memcpy(q->r->call.recvbuf.*//
others' words are the root's (D12)|ring/all_pairs.c|s/if (from == p->root) x->size = /x->size = /
never asks for a dial (P2P-10)|message/message.c|s/bool asks = (l->asks ||/bool asks = false \&\& (l->asks ||/
asks and dials at once (P2P-10)|message/message.c|s/    l->retry_at = m->links->now + m->links->deadline . 2;//
a garbled header is taken|link/frame.c|s/ || reserved != 0)/)/
any number of strangers at a member (R3i)|link/conn.c|s/if (count >= LINK_STRANGERS_MAX)/if (count > CONNS_MAX)/
the newest stranger makes room (R3i)|link/conn.c|s/c->last_recv < oldest->last_recv/c->last_recv > oldest->last_recv/
a stranger keeps a connection|link/links.c|s/if (c->state == CONN_DIALED \&\& c->link) return;/if (c->state != CONN_OPEN) return;/
CMA that was not announced (P2P-9)|message/message_receive.c|s/return !b || b->uses_cma;.*/return true;/
an old DIAL_REQUEST (P2P-10)|message/message.c|s/if ((int32_t)(l->peer_dials - dials) > 0) return;//
DIAL_REQUEST ends no conn (P2P-10)|message/message.c|s/^        hang_up(m, l);/        return;/
an overtaken dial stands (P2P-3)|message/message.c|s/if ((int32_t)(dials - l->peer_dials) <= 0) return false;//
lost before its last words (P2P-7)|message/message.c|s/    else if (l->conn == NO_CONN)/    else/
a lost member's connection stays (P2P-7)|link/conn_receive.c|s/if (c \&\& c->peer \&\& n->p2p.ended(c->peer)) (void)conn_reject(n, number);//
DIAL_REQUEST not relayed (P2P-10)|master/master.c|s/^    master_send(m, to, \&call);/    (void)call;/
items are not sent again (P2P-4)|message/message.c|s/^    l->sent = 0;$//
dial ahead of WELCOME refused (R3)|link/conn.c|s/if (n->self == 0) return park_ahead(c);.*/if (false) return conn_park(c);/
slot of the last result taken twice|ring/result_cache.c|s/e->reserved += !before;//
number before the buffers (D1)|ring/op.c|s/op->seq = op_next_sequence(e, op);/& if (!op_take_sequence(e, op)) return false;/;s/^    if (!op_take_sequence(e, op)) return false;//
frames to one that cannot start (D1)|ring/op_frame.c|s/if (!ep) return op->fails;/if (!ep) return false;/
a transfer counts twice (D2)|ring/op_receive.c|s/^    if (op_bit_get(ep->came, f->index)) return false;//
no argument is asked for (F9)|master/round.c|s/^    dispute_ask(g, &flush);//
sizes of a member to itself are not compared (D2f)|ring/op.c|s/if (p->recv_bytes\[p->rank\] != size) {/if (false) {/
a member that disagrees with itself is complete (D2f)|ring/op.c|s/^            op->eps_left++;//
sizes of a pair exchanged (F9)|master/dispute_text.c|s/from->args.sends == to->args.recvs) return false;/from->args.sends == to->args.sends) return false;/
believes what is not listed (F9)|master/dispute.c|s/if (!lists || /if (/
answers to an earlier flush stay (F9)|master/dispute.c|s/^    forget(&g->dispute);//
only the caller of the first report names values (F9b)|master/dispute_text.c|s/^    for (int i = 0; i < 2; i++) {$/for (int i = 0; i < 0; i++) {/
ranks of the view (F9b)|master/dispute_text.c|s/clash ? m->peers\[r->link\].rank : r->args.rank/m->peers[r->link].rank/
ranks of a scope that clash (F9b)|master/dispute_text.c|s/^            clash |= .*//
lists of arguments are not checked (F9a)|base/wire.c|s/!arguments_valid(a->named, a->named_size)/false/
the end of an array is forgotten (F9a)|base/arguments.c|s/: fnv_words(FNV_BEGIN, values + whole, count - whole)/: 0/
runners of other operations (F9b)|master/dispute_text.c|s/if (t->listings\[i\].op == op) runs/runs/
late members are not excused (R4f)|master/round.c|s/return (!both || a->late || b->late)/return (!both)/
a pair that one end misses is bad (R4f)|master/round.c|s/return (!both || a->late/return (a->late/
a group installs while another restarts (R5)|master/round.c|s/if (g->restart .. g->unlinked .. g->phase != GROUP_PROPOSED ../if (g->phase == GROUP_PROPOSED \&\&/
fast path takes scoped operations (D9)|ring/fast_path.c|s/ || r->call.members) return false;/) return false;/
fast path compares 16 bytes (D9)|ring/fast_path.c|s/memcmp(from, head, FRAME_SIZE)/memcmp(from, head, 16)/
fast path knows one way for all sizes (D9c)|ring/fast_path.c|s/        if (bytes <= c.i..most) return c.i..fast;/        return c[i].fast;/
fast path in place at rank 2 (D9)|ring/fast_path.c|s/fast_sum(e, q, q->cached->bytes, 0, q->size);/fast_sum(e, q, q->r->call.recvbuf, 0, q->size); memcpy(q->cached->bytes, q->r->call.recvbuf, q->size);/
a loss is not that of its operation (T2)|elastic/session_view.c|s/op_set_loss(op, whole .. lost ? loss : 0);/op_set_loss(op, whole \&\& lost ? UINT32_MAX : 0);/
a queued launch ends before INSTALL (F6)|elastic/session_verdict.c|/if (queued)/{n;s/op_set_verdict.*/engine_finish(s->engine, op, session_forced((enum op_verdict)v->state));/}
an update tries the pair that it waits for (R3h)|master/search/edges.c|s/if (!g->edges\[i\].bad .. g->edges\[i\].bad_at <= since) drop(g, i);/drop(g, i);/
copies outlive their epoch (D7)|ring/engine.c|s/^    op_drop_results(e);//
fast path in a closed epoch (D9)|ring/fast_path.c|s/ \&\& !e->links.frozen \&\&/ \&\&/
fast path beside operations (D9)|ring/fast_path.c|s/if (!ready .. e->op_end > 0 .. r->call.members)/if (!ready || r->call.members)/
fast path without the copy of the last (D9)|ring/fast_path.c|s/    if (!q->pairs .. !q->cached) return false;/    if (!q->pairs \&\& !q->cached) q->cached = \&e->results[0];/
fast path with half a header sent (D9)|ring/fast_path.c|s/return conn_is_idle(c) \&\& /return /
fast path reads before all have sent (D9)|ring/fast_path.c|s/    if (q->left > 0 .. !q->sums) return LOOK_IDLE;/    if (q->left > 1 \&\& !q->sums) return LOOK_IDLE;/
fast path takes half a body (D9)|ring/fast_path.c|s/    if (size < FRAME_SIZE + ep->recvs) return LOOK_IDLE;//
fast path keeps no copy (D9)|ring/fast_path.c|/^static void keep/,/^}/s/        memcpy(q->cached->bytes, .*/        (void)0;/
fast pairs send DONE before all is here (D9d)|ring/fast_pairs.c|s/    if (q->left > 0) return LOOK_IDLE;/    if (q->left > 1) return LOOK_IDLE;/
fast pairs write into the vector (D21d)|ring/fast_pairs.c|s/q->own/((uint8_t *)q->r->call.recvbuf)/
fast pairs that turn into one forget what they took (D9d)|ring/fast_pairs.c|s/    if (!q->holds) return;/    return;/
fast pairs that turn into one lose the sum (D9d)|ring/fast_pairs.c|s/^        memcpy(op->r.recvbuf, q->own, .*/        (void)0;/
fast pairs compare 16 bytes (D9d)|ring/fast_pairs.c|s/memcmp(from, head, FRAME_SIZE)/memcmp(from, head, 16)/
fast pairs read early data from the queue as well (D9d)|ring/fast_pairs.c|s/^        if (ep->early)$/        if (ep->early \&\& q->holds)/
fast pairs that turn into one wait for early data (D9d)|ring/fast_path.c|s/i < op->ep_count .. !q->tree .. !holds/i < 0/
a post is not marked as newer than bytes (L11b)|link/channel.h|/^static inline bool channel_mark_post/,/^}/s/    return true;/    return false;/
marks are not heeded (L11b)|link/channel.h|s/uint64_t before = next.marked ? channel_before_post(c) : 0;/uint64_t before = 0;/
a slot is used again before all have copied it (L11b)|link/channel.h|s/return posts - taken < BOARD_SLOTS;/return true;/
a hint is taken as data (L11e)|link/channel.h|s/if (!next.bytes || !next.hint || c->broken) break;/break;/
a hint is sought one post further (L11e)|link/channel.h|s/c->taken + 1 + behind/c->taken + 2 + behind/
no second look at posts (L11c)|link/channel.h|s/holds &= board_holds(c->board, c->taken + i);/holds \&= c->board != NULL;/
no second look at a copied post (L11c)|link/channel.h|s/c->broken = !board_holds(c->board, c->taken + 1);/c->broken = false;/
the place on a board is not taken (L11d)|link/region.c|s/c->region.post, f->scope);/c->region.post, 0);/
a board is not offered again (L11d)|link/region.c|s/c->region.taken = false;//
early data that are to be confirmed are taken (D9a)|ring/fast_path.c|s/(q->eps.i..early && q->eps.i..early->frame.flags != 0)/false/
early data stay at the end (D9a)|ring/fast_path.c|/^void fast_drop_early/,/^}/s/    link_remove_unexpected(.*//;/^void fast_drop_early/,/^}/s/    pool_give(.*//
early data are not looked at again (D9a)|ring/fast_path.c|s/^        op_check_endpoint(e, op, &op->eps.i.);/        continue;/
a part is added in the input (D9f)|ring/fast_sums.c|s/fast_sum(e, q, q->cached->bytes + at, at, part_size(e, q, rank));/fast_sum(e, q, (uint8_t *)q->r->call.recvbuf + at, at, part_size(e, q, rank)); memcpy(q->cached->bytes + at, (uint8_t *)q->r->call.recvbuf + at, part_size(e, q, rank));/
a sum of posts that do not hold is shown (D9f)|ring/fast_sums.c|/^static bool post_sum/,/^}/s/if (!fast_posts_hold(q)) return false;//
posts of a sum are not looked at again (D9f)|ring/fast_sums.c|/^bool fast_take_sum/,/^}/s/if (!fast_posts_hold(q)) return false;//
the own part comes from the wrong place (D9f)|ring/fast_sums.c|s/q->own_sum, part_at(e, q, e->links.view->rank), size)/q->own_sum, 0, size)/
parts of a sum in another order (D9f)|ring/fast_sums.c|/^void fast_sum(/,/^}/{s/e->links.view->rank == 0 ? own + at : q->eps.ep++..body + at/own + at/;s/(i == e->links.view->rank ? own : q->eps.ep++..body)/q->eps[ep++].body/}
words of a gather sent before all blocks (D23)|ring/star.c|s/return s->missing == 0;/return s->missing <= !is_sum(\&op->plan);/
a scatter is not confirmed (D23)|ring/star.c|s/^    .unfit = unfit_scatter,/&\n    .defers = true,/
root of a gather tells nobody of its launch (D23c)|ring/op.c|s/if (plan_is_root(.op->plan) .. ep->rank == plan_at(.op->plan, 0))/if (false)/
root of a gather takes a donation for its blocks (D23d)|ring/op_done.c|s/    if (alone && !a->has(op, op->plan.segments)) return;.*//
root of a gather takes no commitment (D23d)|ring/op_done.c|s/if (alone && !a->has(op, op->plan.segments)) return;/if (alone) return;/
root of a gather that waits for itself sends words (D2f)|ring/star.c|s/s->missing = op->ep_count + odd;/s->missing = op->ep_count;/
launches of a large broadcast are not told at once (D19e)|ring/spread_single_copy.c|s/^    .tells_launch = true,//
word of a sum before all parts (D25c)|ring/star.c|s/return s->missing == 0;/return s->missing <= is_sum(\&op->plan);/
segment of a sum waits for no word (D25c)|ring/star.c|s/if (k >= AHEAD) x->after = k - AHEAD;//
the last block is not put back (C2)|ring/op_input.c|s/in->saved && at < in->size;/in->saved \&\& at + in->each < in->size;/
donation over an input that is not saved (C2)|ring/op_done.c|s/^    input_overwrite(op, op->r.recvbuf, size);//
not restored before it goes on (C2)|ring/op.c|s/^    input_restore(op);//
result of a failed operation (C2)|ring/op_done.c|s/^    if (result == pcclSuccess)$/    if (result >= 0)/
a sum for a root has copies (D25c)|ring/star.c|/star_sum = {/,/^}/s/^    .at_root = true,//
no place for a sum that all have (D25)|ring/op_input.c|s/ .. lacks_place(op);/;/
fast sum of all but one (D9e)|ring/fast_star.c|/static void take_sum/,/^}/s/i < q->star.count/i + 1 < q->star.count/
fast star: words before all blocks (D9e)|ring/fast_star.c|s/if (q->left > 0 .. !turn(e, q))/if (q->left > 1 || !turn(e, q))/
fast star: a scatter returns before DONE (D9e)|ring/fast_star.c|s/    if (root .. q->holds) return true;/    return true;/
fast star that turns into one forgets what it took (D9e)|ring/fast_star.c|s/if (!q->holds) continue;/continue;/;s/i < op->ep_count && q->holds/i < 0/
fast star compares 16 bytes (D9e)|ring/fast_star.c|s/memcmp(from, head, FRAME_SIZE)/memcmp(from, head, 16)/
fast star's copy has the old number (D9e)|ring/fast_star.c|s/q->cached->seq = q->frame.seq;//
fast star without the copy of the last (D9e)|ring/fast_star.c|s/    if (!q->tag .. (gather \&\& !q->cached)) return false;/    if (!q->tag) return false;\n    if (gather \&\& !q->cached) q->cached = \&e->results[0];/
fast star: a converted gather asks for DONE (D9e)|ring/fast_star.c|s/if (gather) op->confirm = false;.*//
fast star: root tells nobody of its launch (D9e)|ring/fast_star.c|s/if (rank_of(e, i) == witness(e))/if (false)/
fast tree sends before its children (D9)|ring/fast_tree.c|s/    if (q->left > 0) return LOOK_IDLE;/    if (q->left > 1) return LOOK_IDLE;/
fast sum folded again over the result (D9)|ring/small_tree.c|s/if (!sum_is_sent(op)) {/{/
fast blocks sent down before they are here (D9)|ring/small_tree.c|s/return s->missing == 0 .. (after == AFTER_CHILDREN .. s->has_result);/return after == AFTER_CHILDREN ? s->missing == 0 : s->has_result;/
fast path leaves a block out (D9)|ring/fast_path.c|s/        if (from != to) memmove(to, from, q->size);/        if (i == e->rank) memmove(to, from, q->size);/
fast path's copy has the old number (D9)|ring/fast_path.c|s/^    q->cached->seq = q->frame.seq;//
converted under the next number (D9)|ring/fast_path.c|s/    q->tag->next = q->frame.seq;//
converted asks for DONE (D9)|ring/fast_path.c|s/^    if (!q->pairs) op->confirm = false;//
a launch without memory takes the verdict (F6)|elastic/session_launch.c|s/^    struct op .op = engine_launch(s->engine, r, true);/    if (end->has_verdict) session_take_verdict(s, r); &/;s/^    if (end->has_verdict) session_take_verdict(s, r);$//
converted counts no sent frame (D9)|ring/fast_path.c|s/ep->send_next = ep->sent = ep->sends;/ep->send_next = ep->sends;/
fast endpoints of closed connections (D9)|ring/op_frame.c|s/    e->fast.known = false;//
view_epoch ignored at launch|elastic/session_launch.c|s/    if (!r->call.members && view_epoch != 0 .*/    if (false)/
view_epoch ignored on the fast path|elastic/session_launch.c|s/if (view_epoch != 0 .* return false;//
a donation over a half-sent buffer (F5)|ring/op_done.c|s/^    conn_cut_sending(&e->links, op);//
a slow reader stays connected|master/server/switchboard.c|s/switchboard_lose(b, c, "reads too slowly");/(void)c;/
registered peers make room (M1)|master/server/switchboard.c|s/ && p->state == PEER_CONNECTED;/;/
a stranger announces what it likes|master/server/switchboard.c|s/stranger ? CONN_IN_START : WIRE_FRAME_MAX/WIRE_FRAME_MAX/
who lingers stays|master/server/switchboard.c|s/switchboard_lose(b, c, "lingered for too long");/(void)c;/
half a message is thrown away|master/server/master_conn.c|s/^    memmove(c->in, c->in + c->in_done, left);//
a full switchboard accepts|master/server/switchboard.c|s/return b->conn_count >= b->limits.conns_max ||/return/
who is lost is no event|master/server/switchboard.c|/^static void end(/,/^}/s/    b->out.step(.*//
a report is added to the one before (G1)|master/coverage/step_samples.c|s/^    if (again) g->sum -= old->count;//
the dead count on (G2)|master/coverage/step_samples.c|/^void samples_settle/,/^}/s/add_all(m, group);/(void)group;/
leavers count (G2)|master/master.c|s/^    g->samples.stale = true;//
lower steps count (G2)|master/coverage/step_samples.c|s/^            g->sum = g->target = g->members = 0;//
a report of a step that is over counts (G2)|master/coverage/step_samples.c|s/^    if (!counted .. g->members > 0 .. p->step < g->step) {/    if (false) {/;s/p->step == g->step .. !lowered/p->step <= g->step \&\& !lowered/
too many samples are taken (G1)|master/coverage/step_samples.c|s/if (msg->samples.count > WIRE_SAMPLES_MAX) {/if (false) {/
the last target counts (G3)|master/coverage/step_samples.c|s/^    if (p->target > g->target) g->target = p->target;/    g->target = p->target;/
a reached step is forgotten (G3)|master/coverage/step_samples.c|s/^    g->changed = g->urgent = false;/    g->changed = g->urgent = g->reached = false;/
a step that comes again is reached (G2)|master/coverage/step_samples.c|s/^    if (counted .. g->members == 1 .. p->step < g->step) forget(m, group);//
a step is over while others are in a higher one (G3)|master/coverage/step_samples.c|s/(g->reached || p->samples.step < g->step)/g->reached/
a step is reached by its sum alone (G3)|master/coverage/step_samples.c|s/^        g->reached |= p->samples.over;//
a step begins anew for who comes to it (G3)|master/coverage/step_samples.c|s/^    p->over |= g->reached;//
a step is not over for who reports it late (G3)|master/coverage/step_samples.c|s/^        p->over = true;$//
a target is never lowered (G3)|master/coverage/step_samples.c|s/bool lowered = .*;/bool lowered = false;/
the step of the dead stays (G2)|master/coverage/step_samples.c|s/^    if (g->step > before .. !there) g->urgent = true;/    if (g->members == 0) g->step = before;\n&/
one that goes back takes all along (G2)|master/coverage/step_samples.c|s/counted .. g->members == 1 .. p->step/counted \&\& p->step/
a reached step is told at the tick (G4)|master/coverage/step_samples.c|s/^    g->reached = g->urgent = true;/    g->reached = true;/
a step that is over is told at the tick (G4)|master/coverage/step_samples.c|s/^    if (g->step > before .. !there) g->urgent = true;//
a newcomer is not told (G4)|master/coverage/step_samples.c|s/^        g->changed = g->urgent = true;//
a sum is told once (G4)|master/coverage/step_samples.c|s/^    g->used = g->changed = true;/    g->changed = !g->used; g->used = true;/
a lower step is not over (G3)|elastic/session_samples.c|s/bool over = c->own.step < c->told.step;/bool over = false;/
another step is reached (G3)|elastic/session_samples.c|s/c->told.reached .. c->own.step == c->told.step/c->told.reached/
a step is reached for ever (G3)|elastic/session_samples.c|s/c->reached = c->hurried = false;/c->hurried = false;/
the last report stays here (G5)|elastic/session.c|s/^    session_samples_send(s);//
reports have no rate (G5)|elastic/session_samples.c|s/return !b->used || now - c->sent_at >= c->interval || hurries(c);/return true;/
nothing hurries (G5)|elastic/session_samples.c|s/c->interval || hurries(c);/c->interval;/
own samples count twice (G5)|elastic/session_samples.c|s/^        others -= c->sent.count < others ? c->sent.count : others;/        (void)others;/
hurries more than once in a step (G5)|elastic/session_samples.c|s/ .. !c->hurried \&\&/ \&\&/
too few are enough for an update (M14a)|master/admission.c|s/^    if (voted .. admission_lacks(m, .quorum)) return;.*//
too few are not pending (M14a)|master/master.c|s/yes || admission_lacks(m, .have)/yes/
leavers make up the minimum (M14a)|master/admission.c|s/have = m->tally.members/have = m->in_state[PEER_MEMBER]/
newcomers do not count (M14a)|master/admission.c|s/m->tally.members + m->in_state\[PEER_REGISTERED\]/m->tally.members/
collectives of too few (M14b)|elastic/session_launch.c|s/s->notified.view->world < s->minimum/false/
too few by the view in force (M14b)|elastic/session_launch.c|s/s->notified.view->world < s->minimum/s->view->world < s->minimum/
founders are fewer than the minimum (M14c)|master/master.c|s/^    if (m->alone .. m->minimum > m->quorum) m->quorum = m->minimum;//
who waits is told again and again (M14d)|master/admission.c|s/^    m->waits = true;//
who leaves is waited for (A1)|master/coverage/coverage.c|/^static bool stays/,/^}/s/ \&\& !p->leaving;$/;/
a part of one holder is committed (A7)|master/coverage/coverage.c|s/holders > 0 && 2 . holders >= waiting/holders > 0/
END without all parts (A8)|master/coverage/coverage.c|s/if (coverage_has(complete, i)) {/if (true) {/
late callers open a round (A2)|master/coverage/coverage_call.c|s/^        if (c && !c->called && !c->out) return r;//
the lapsed are not told (A9)|master/coverage/coverage.c|s/^            if (later) later->lapsed = true;//
the lapsed keep their rounds (A13)|master/coverage/coverage_call.c|s/^        coverage_missed(m, tag, link);//
the refused keep their rounds (A13)|master/coverage/coverage.c|/^static void refuse_late/,/^}/s/^    coverage_missed.*//
the failed keep their rounds (A13)|master/coverage/coverage.c|/^static void on_failed/,/^}/s/^        coverage_missed.*;$//
who disagrees alone keeps its rounds (A13)|master/coverage/coverage_call.c|s/if (r->state == COVERAGE_DECIDED) coverage_missed/if (false) coverage_missed/
the round that is undecided waits for the lapsed (A13)|master/coverage/coverage.c|s/all &= c->called .. c->out ../all \&= c->called ||/
what a state has comes once more (A14)|master/coverage/coverage_state.c|s/c->out = in .. missed;/c->out = false;/
what is not taken is in the state (A14)|master/coverage/coverage_state.c|s/c->untaken = c->called .. lists(msg, r->tag);/c->untaken = false;/
what is called for after SYNC is in the state (A14)|master/coverage/coverage_call.c|s/^    c->untaken = p->sync.voted;//
a call under way gets what the state has (A14)|master/coverage/coverage_state.c|s/else if (in .. coverage_waits(m, c)) {/else if (!r) {/
lost parts are not given up (A8)|master/coverage/coverage.c|/^static void give_up/,/^}/s/^        p->committed = false;//
members may disagree (A3)|master/coverage/coverage_call.c|s/if (fields.i..a == fields.i..b) continue;/continue;/
a CALL that comes twice counts (A2)|master/coverage/coverage_call.c|s/^    if (msg->partial.version <= p->average_calls) return;//
anybody folds (A11)|master/coverage/coverage.c|s/if (p->owner != self .. p->folded) return;/if (p->folded) return;/
a part is folded twice (A11)|master/coverage/coverage.c|s/if (p->owner != self .. p->folded) return;/if (p->owner != self) return;/
who has not called contributes (A11)|master/coverage/coverage.c|s/ .. !r->members.i..called) return;/) return;/
wrong bytes count (A11)|master/coverage/coverage.c|s/if (p->folded && p->hash == hash) /if (p->folded) /
gathers for ever (A4)|master/coverage/coverage.c|s/if (!all && m->now < gathered_at(r)) return;/if (!all) return;/
FOLD never comes (A6)|master/coverage/coverage.c|s/^        coverage_send_all(m, r, PARTIAL_FOLD);//
REPORT never comes (A7)|master/coverage/coverage.c|s/^        coverage_send_all(m, r, PARTIAL_REPORT);//
the deadline decides nothing (A7)|master/coverage/coverage.c|s/ .. m->now >= after(r, 8) / /
released while somebody waits (A9)|master/coverage/coverage.c|s/^    if (!is_over(m, r)) return;//
fetches for ever (A9)|master/coverage/coverage.c|s/else if (m->now >= lapses_at(r, c))/else if (false)/
a round without parts counts (A10)|master/coverage/coverage.c|s/c->absences = any;/c->absences = 1;/
absences are not in a row (A10)|master/coverage/coverage.c|s/if (c->contributed) c->absences = 0;/if (c->contributed) c->absences--;/
whose call has failed is not absent (A10)|master/coverage/coverage.c|/^static void evict_absent/,/^}/s/!stays(m, c)/!coverage_lives(m, c)/
who a round evicts is gone later (A4)|master/master.c|s/} while (master_count(m, PEER_MEMBER) < members);/} while (false);/
rounds of the dead stay (A1)|master/coverage/coverage.c|s/bool dead = .*/bool dead = false;/
who calls amid gets no PLAN (A4)|master/coverage/coverage_call.c|s/r->changed .= r->state == COVERAGE_MOVING;/r->changed |= false;/
parts ignore rates (A4)|master/coverage/coverage_parts.c|s/^    if (!known) return;/    return;/
contributions wait for results (A5)|elastic/partial_move.c|s/bool input = i == 0;/bool input = i == c->part_count;/;s/c->own : i - 1;/c->own : i;/;s/m->asked.kind. == PARTIAL_WINDOW/m->asked[0] + m->asked[1] >= PARTIAL_WINDOW/
more chunks are asked for at a time (A5)|elastic/partial_move.c|s/m->asked\[kind\] == PARTIAL_WINDOW/m->asked[kind] == 2 * PARTIAL_WINDOW/
half a contribution is folded (A6)|elastic/partial.c|s/m->input.here == m->input.count;/m->input.here > 0;/
weights are ignored (A6)|elastic/partial.c|s/weights.n... = m->weight;/weights[n++] = 1;/
who is not heard waits (R7a)|link/links.c|s/^    if (is_unheard(user, c)) return false;//
a failed call is waited for (A12)|master/coverage/coverage.c|s/^    return !c->failed \&\& stays(m, c);/    return stays(m, c);/
who has failed may not call (A12)|master/coverage/coverage_call.c|s/^    if (c && c->failed) {/    if (false) {/
a failed call tells nobody (A12)|elastic/partial.c|s/^    c->phase = PARTIAL_FAILING;/    partial_finish(p, c, PARTIAL_BROKEN, text); return;/
missing parts are written (A7)|elastic/partial.c|/^static void on_end/,/^}/s/if (c->parts.i..contributors > 0)/if (true)/
who waits for the hook makes room (K16)|master/server/switchboard.c|s/return !c->lost \&\& !c->held \&\&/return !c->lost \&\&/
a token joins without the right (K13)|master/grants.c|/case WIRE_HELLO:/,/return GRANT_JOIN;/s/return GRANT_JOIN;/return 0;/
a token downloads without the right (K13)|master/grants.c|s/^    case WIRE_OFFERS_GET:$//
anybody observes (K13)|master/grants.c|s/return GRANT_OBSERVE;/return 0;/
anybody is relayed (K13)|master/grants.c|s/return GRANT_RELAY;/return 0;/
a token is of any group (K13)|master/grants.c|s/if (group == g->group) return true;/if (group <= UINT32_MAX) return true;/
without a token all is granted (K10)|master/grants.c|s/if (!m->tokens || right == 0)/if (g->rights == 0 || right == 0)/
who is expelled stays (K15)|master/master.c|s/^        master_drop(m, event->link, event->reason);$//
a question counts as silence (K16)|master/master.c|/case MASTER_GRANTED:/,/return;/s/^.*last_recv = event->now;$//
a restart amid a decided view (J5)|master/round.c|s/if (g->restart \&\& !g->decided) {/if (g->restart) {/
a member forgets which synchronization is over (H6)|elastic/session_sync.c|s/^    if (over) session_sync_raise(&s->sync_over, msg->sync.id);//
an INSTALL sets numbers back (H6)|elastic/session_view.c|s/if (s->answered\[i\] >= msg->view.answered\[i\]) continue;//
a view that a disk refuses is not decided (J5)|master/round.c|s/g->decided = m->succession.grace > 0;/g->decided = m->replicas.phase == REPLICAS_SERVES;/
who is lost amid a decided view is forgotten (J5)|master/members.c|s/bool decided = p->proposed \&\& g->decided;/bool decided = false;/
a record counts at once (H11)|master/succession/replicas.c|s/if (2 . count >= k->voters.count) return true;/return true;/
an older record is kept (H10)|elastic/session_keep.c|s/if (!wire_record_above(msg->keep.name, s->kept.name)) return;//
the smaller part goes on (H12)|master/succession/replicas.c|s/return !k->fenced \&\& by_all;/return by_all;/
fewer than half take over (H13)|master/succession/replicas_collect.c|s/members > k->next.count \/ 2;/members > 0;/
voters are not asked (H13)|master/succession/replicas_collect.c|s/return (k->voters.count == 0 || voters > k->voters.count \/ 2) \&\&/return/
nobody is claimed (H13)|master/succession/replicas_collect.c|s/most(m, is_claimed)/most(m, is_here)/
nobody keeps what is claimed (H13)|master/succession/replicas_collect.c|s/most(m, keeps_it)/most(m, is_here)/
a term is confirmed twice (H13)|elastic/session_keep.c|s/if (term <= s->claimed) return;/if (term < s->claimed) return;/
a claim is obeyed by nobody (H13)|elastic/session_keep.c|s/ \&\& msg->keep.name.term >= s->claimed)/)/
a record claims nobody (H13)|elastic/session_keep.c|s/^    s->claimed = s->kept.name.term;//
a later record is not seen (H13)|master/succession/replicas_collect.c|s/wire_record_above(msg->resume.kept, k->found);/false;/
the claim of another one is not seen (H13)|master/succession/replicas_collect.c|s/bool over = k->term > k->claim;/bool over = false;/
who cannot confirm is waited for (H13)|master/succession/replicas_collect.c|s/over |= claimed == k->claim ||/over |=/
a claim is not named (H13)|master/succession/replicas_collect.c|s/if (claimed > k->term) k->term = claimed;//
a round is named twice (H13)|master/succession/replicas_collect.c|s/^    (void)memory_skip(&memory);.*//
a member counts twice (H13)|master/succession/replicas_collect.c|s/^    drop_former(m, link);//
any record will do (H13)|master/succession/replicas_collect.c|s/bool current = !wire_record_above(name, k->found);/bool current = k->found.seq > 0;/
a claim is forgotten (H13)|elastic/session_resume.c|s/ term < s->claimed ||//
an old master is obeyed (H1)|elastic/session_resume.c|s/term <= s->term ||/false ||/
an old journal takes over (H1)|master/succession/succession.c|s/if (s->grace > 0 && later) {/if (false) {/
no will before INSTALL (H3)|master/round.c|s/ || !succession_will(m, group)) return false;/) return false;/
an update leaves one will (H3)|master/succession/succession.c|s/(m->groups\[first\].update && m->groups\[group\].update);/(m->groups[first].update \&\& group == first);/
any secret is right (H4)|master/succession/succession.c|s/memcmp(&secret, &msg->resume.secret, sizeof secret) != 0/false/
heirs are not waited for (H5)|master/succession/succession.c|s/if (!all && m->now < s->until) return true;/(void)all;/
who does not come is forgotten (H5)|master/succession/succession.c|s/if (!s->heirs\[i\].resumed) bury(m, &s->heirs\[i\]);/continue;/
decides before all have spoken (H6)|master/succession/succession.c|s/missing == 0 && all_have_spoken(m)/missing == 0/
no answer is repeated (H6)|master/succession/succession.c|s/^    repeat_answers(m);//
a refusal is the end for all (H6)|elastic/session_sync.c|s/bool over = role == SYNC_COMPLETE .*/bool over = ends;/
who gives cannot be refused (S9)|elastic/session_sync.c|s/if (stale \&\& role != SYNC_CROSSED) return;/if (stale) return;/
the INSTALL of a will answers a vote (H6)|elastic/session_view.c|s/if (s->votes\[i\] == VOTE_WAITING) continue;//
the end of a synchronization is not repeated (H6)|master/state/state_vote.c|s/^    repeat_end(m, group);//
who receives asks at once (H6)|elastic/session_sync.c|s/s->sync_unspoken = moves \&\& t->outcome == STATE_OPEN;/s->sync_unspoken = false;/
a vote is not asked again (H6)|elastic/session_resume.c|s/if (s->votes\[i\] != VOTE_WAITING || s->vote_calls\[i\] <= last)/if (true)/
letters are not sent (H7)|master/succession/succession.c|s/if (back.resume.installs) send_letters(m, link, h->group);//
a VERDICT counts twice (H7)|elastic/session_resume.c|s/s->verdicts_again = s->verdicts;//
no round follows (H7)|master/succession/succession.c|s/^        g->restart = true;//
a lost round is not told (H8)|elastic/partial.c|s/p->tags\[i\].missed = .*/p->tags[i].missed = false;/;/partial_is_under_way(p, p->tags\[i\].tag);/d
calls of averages are not sent again (H8)|elastic/session_resume.c|s/^        partial_call_again(&s->partial);//
MUTANTS
