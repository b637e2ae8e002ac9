#!/bin/sh
# mutants.sh [-u] [-n FIRST[-LAST]] [SEEDS [PATTERN]] - breaks one rule of the cores
# at a time and shows that the simulator fails: a rule is not tested if no test
# fails without it.
#
# It tells who finds each: the oracle of the simulator (what programs see, and
# that nobody waits for ever), the model (tests/model), both, or a unit test
# alone.
#
# Each line below: name | file under src | sed script. The tree is copied; the
# original is never touched. Mutants are numbered from 1 in the order of the
# list; -n 20 begins at the 20th, -n 20-29 takes ten: all of them take an hour.
# -u leaves the unit tests out.
# Exit status 1 if a mutant survives.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
first=1 last=999999 with_units=yes
while getopts n:u option; do
    case $option in
    u) with_units= ;;
    n)
        first=${OPTARG%%-*}
        case $OPTARG in *-*) last=${OPTARG#*-} ;; esac ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
case $first$last in
*[!0-9]*) echo "mutants.sh: -n takes FIRST or FIRST-LAST" >&2; exit 2 ;;
esac
seeds=${1:-3000}
only=${2:-.}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cp -r "$root/src" "$root/include" "$work/"
mkdir -p "$work/tests" "$work/obj"
cp -r "$root/tests/sim" "$root/tests/core" "$root/tests/reduce" \
    "$root/tests/message" "$root/tests/model" "$work/tests/"
cd "$work"

core="base/arguments base/wire base/pool base/dtype
link/frame link/conn link/conn_receive link/conn_send link/link link/link_patience link/links link/links_face
link/probe link/region link/unexpected link/shared_memory
ring/algorithm_table ring/allgather_linear ring/allgather_ring
ring/allreduce_centralized ring/allreduce_direct ring/allreduce_flat
ring/allreduce_ring ring/allreduce_single_copy ring/alltoallv_pairwise
ring/backup ring/blocked_tags ring/broadcast_chain ring/broadcast_confirmed
ring/broadcast_linear ring/engine ring/engine_io ring/fast_path ring/flush
ring/fold ring/geometry ring/hierarchy ring/local ring/neighbors ring/op
ring/op_done ring/op_frame ring/op_queue ring/op_receive ring/op_send
ring/pieces ring/plan ring/quantized ring/result_cache ring/op_describe ring/ring_face
ring/single_copy
message/message message/message_receive message/message_rndv
message/message_send
elastic/session elastic/session_launch elastic/session_view
elastic/session_sync elastic/session_verdict
elastic/session_optimize elastic/view elastic/state elastic/state_list
elastic/state_plan
master/master master/round master/round_ops master/round_view master/order master/partition master/sites
master/blocked master/crossed master/deadlock master/dispute master/dispute_text master/limits master/silence
master/edges master/optimize master/bandwidth master/bandwidth_plan
master/topology master/topology_dp master/topology_local
master/topology_climb master/topology_branch master/state_vote
master/master_conn master/switchboard
reduce/isa reduce/reduce reduce/reduce_base reduce/quant reduce/quant_base
hash/hash hash/hash_simd hash/hash_omp"
sim="test_sim sim sim_master util faults program program_op program_fast oracle shared election
memory search fail letters net lasting strange life witness judge"
model="model model_calls model_round model_master model_member"
ccache=$(command -v ccache || true)
compile() {
    case $1 in src/*) cores="-DPCCL_SIMULATED -Dmalloc=core_malloc
        -Dcalloc=core_calloc -Drealloc=core_realloc
        -Daligned_alloc=core_aligned_alloc" ;;
    *) cores= ;; esac
    $ccache ${CC:-cc} -std=c11 -D_GNU_SOURCE $cores -O1 -w -c "$1" -o "$2"
}
object() {
    echo "obj/$(echo "$1" | tr / _).o"
}
for name in $core; do compile "src/$name.c" "$(object "$name")"; done
# For the cores, also in unit tests.
for name in rare scarce; do compile tests/sim/$name.c obj/$name.o; done
for name in $sim; do compile "tests/sim/$name.c" "obj/sim_$name.o"; done
for name in $model; do compile "tests/model/$name.c" "obj/sim_$name.o"; done
# The stalls have a program of their own: test_stall with the other objects.
compile tests/sim/test_stall.c stall.o
link_stall() {
    ${CC:-cc} stall.o $(ls obj/*.o | grep -v obj/sim_test_sim) -o stall
}
${CC:-cc} obj/*.o -o original
./original 1 20 >/dev/null || { echo "the original fails"; exit 1; }

# Unit tests need cmocka; where it is, each of them must build.
units="core/test_result_cache core/test_eager core/test_striped core/test_centralized core/test_flush core/test_master core/test_master_job core/test_master_ops core/test_silence core/test_link_patience core/test_view
core/test_plan core/test_limits
core/test_order core/test_disagree core/test_dispute core/test_scope
core/test_wire core/test_frame reduce/test_quant core/test_quant_op
core/test_generation core/test_links core/test_probes core/test_session core/test_state core/test_single_copy core/test_algorithms core/test_hierarchy message/test_message core/test_pool
core/test_no_memory
message/test_message_ends"
build_unit() {
    more=
    [ "$1" != message/test_message ] || more=tests/message/pair.c
    [ "$1" != core/test_no_memory ] || more=-Wl,--wrap=pool_take
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -w "tests/$1.c" $more \
        $(ls obj/*.o | grep -v obj/sim_) -lcmocka -lm -o unit
}
if [ -n "$with_units" ] && echo 'int main(void) { return 0; }' | ${CC:-cc} -x c - -lcmocka \
    -o unit 2>/dev/null; then
    for test in $units; do
        build_unit $test || { echo "$test does not build"; exit 1; }
    done
else
    units=
fi

# Names the first unit test that fails.
unit_tests() {
    [ -n "$with_units" ] || return 0
    link_stall && { timeout --foreground 120 ./stall >unit.out 2>&1 ||
        echo "test_stall"; }
    for test in $units; do
        build_unit $test 2>/dev/null || continue
        ./unit >unit.out 2>&1 && continue
        sed -n 's/.*\(FAILED.*\] [a-z].*\)/\1/p' unit.out | head -1
        grep -ao 'Assertion.*failed' unit.out | head -1
    done | head -1
}

survived=0 number=0
printf '%3s %-34s %-10s %s\n' "" "mutant" "found by" "seed and words"
while IFS='|' read -r name file script; do
    number=$((number + 1))
    [ $number -ge "$first" ] && [ $number -le "$last" ] || continue
    echo "$name" | grep -q "$only" || continue
    printf '%3d ' $number
    sed "$script" "$root/src/$file" >"src/$file"
    if cmp -s "$root/src/$file" "src/$file"; then
        echo "$name: the mutation does not apply"
        survived=$((survived + 1))
        continue
    fi
    unit=$file
    case $file in reduce/quant_*.h) unit=reduce/quant_base.c ;; esac
    object=$(object "${unit%.c}")
    cp "$object" kept.o
    if ! compile "src/$unit" "$object" 2>/dev/null; then
        echo "$name: the mutation does not compile"
        survived=$((survived + 1))
        cp kept.o "$object"
        cp "$root/src/$file" "src/$file"
        continue
    fi
    ${CC:-cc} obj/*.o -o mutant
    ./mutant --judge 1 "$seeds" >out 2>&1 || true
    oracle=$(sed -n 's/^oracle //p' out | cut -c1-60)
    refusal=$(sed -n 's/^model //p' out | cut -c1-60)
    unit_test=
    [ -n "$oracle" ] || unit_test=$(unit_tests)
    case ${oracle:+o}${refusal:+m}${unit_test:+u} in
    om) by=both why="$oracle | $refusal" ;;
    o) by=oracle why=$oracle ;;
    mu) by=model+unit why="$refusal | $unit_test" ;;
    m) by=model why=$refusal ;;
    u) by=unit why=$unit_test ;;
    *) by=none why="SURVIVED $seeds seeds" survived=$((survived + 1)) ;;
    esac
    printf '%-34s %-10s %s\n' "$name" "$by" "$why"
    cp kept.o "$object"
    cp "$root/src/$file" "src/$file"
done <<'MUTANTS'
no FLUSH|master/round.c|s/^    m->out.send(m->out.user, m->links, count, &flush);//
no restore|elastic/session_view.c|s/if (!queued) engine_restore(e, op);//
stale epoch accepted|ring/op_frame.c|s/^    bool is_old = .*/    bool is_old = false;/
loss not re-evaluated|master/master.c|s/^    settle(m);$/    if (event->type != MASTER_CLOSED) settle(m);/
wrong AVG divisor, flat|ring/fold.c|s/reduce_divide(op->r.dtype, op->r.recvbuf, count, p->r.world)/reduce_divide(op->r.dtype, op->r.recvbuf, count, p->r.world + 1)/
wrong AVG divisor, ring|ring/allreduce_ring.c|s/reduce_divide(op->r.dtype, to, count, op->plan.r.world)/reduce_divide(op->r.dtype, to, count, op->plan.r.world + 1)/
newcomer admitted in mid-operation|master/master.c|s/bool voted = members > 0 && master_all_voted(m, VOTE_UPDATE);/bool voted = members > 0 \&\& (waiting > 0 || master_all_voted(m, VOTE_UPDATE));/
commit though a survivor runs|master/round_ops.c|s/op->commit = op->complete == survivors;/op->commit = op->complete > 0;/
QUERY skipped|master/round_ops.c|s/op->doubt = op->complete + op->running < survivors;/op->doubt = false;/
returned does not commit|master/round_ops.c|s/op->commit = op->returned > 0 || /op->commit = /
donation not relayed|master/round_ops.c|s/m->out.send(m->out.user, m->links, count, msg);//
result dropped too early (D6)|ring/result_cache.c|s/if (r \&\& r->seq < op->seq) drop/if (r) drop/
result dropped too early (D7)|ring/result_cache.c|s/if (r->old) drop/drop/
a scope's DONE clears all (D7)|ring/result_cache.c|s/ || !op->whole) return;/) return;/
clean not asked (D7)|ring/op_done.c|s/if (!(f->flags & FLAG_CLEAN)) op->cleared = false;//
notified twice (update forgets)|elastic/session_view.c|s/if (update || s->state == SESSION_JOINING)/if (s->state == SESSION_JOINING)/
traits of one survivor (T4)|master/round.c|s/g->traits |= msg->flushed.traits;/g->traits = msg->flushed.traits;/
traits of the round before (T4)|master/round.c|s/^    g->traits = 0;//
traits of the last loss (T4)|elastic/view.c|s/t->traits |= l->traits;/t->traits = l->traits;/
never notified|elastic/view.c|s/t->loss_first <= loss/t->loss_first < loss/
notified of a loss at once|elastic/session_view.c|s/^        loss = s->notified.loss_first + .*/& notified_advance(\&s->notified, UINT32_MAX, s->id);/
READY not awaited|master/round.c|s/if (p->group == group && p->proposed && !p->ready) return false;//
DONE of some is that of all (D4)|ring/op_done.c|s/if (!op->eps\[i\].done) return false;/if (i < 2 \&\& !op->eps[i].done) return false;/
sent before it was received|ring/op_send.c|s/return x->after == PLAN_NOTHING/return true/
taken by two connections|ring/op_send.c|s/if (ep->begun) op_bit_set(ep->begun, k);//
transfers behind a late one (D13)|ring/op_send.c|s/end = k + SEND_AHEAD;/end = k + 1;/
taken in an epoch before (D13)|ring/neighbors.c|s/memset(next->begun, 0, sends);//
digest ignored|ring/op.c|s/if (f->digest == (ep ? ep->rx_digest : op->r.digest)) return true;/return true;/
mismatch reported to one only|master/round.c|s/round_force(g, p->rank, p->rank, \&name, VERDICT_INVALID);/;/
padding omitted|link/conn_send.c|s/^        c->tx_from = NULL;/        c->tx_from = NULL; c->tx_left = 0;/
padding before all have flushed|ring/flush.c|s/conn_stop_receiving(&e->links, op, NULL);/conn_forget(\&e->links, op);/
frames of another epoch's operation|ring/op.c|s/bool same = op->epoch == e->links.epoch \&\& /bool same = /
leaver dropped from its proposal|master/round_view.c|s/g->phase == GROUP_PROPOSED ? p->proposed : stays/false ? p->proposed : stays/
verdict before commit|master/round_ops.c|s/uint8_t verdict = op->commit ?/uint8_t verdict = op->commit \&\& !op->forced ?/
no deadlock detection (V4)|master/master.c|s/deadlock_probe(m, m->group_list\[i\]);//
PENDING waits for ever (V4)|master/deadlock.c|s/p->voted\[VOTE_PENDING\] \&\& since >= 2 . m->deadline/false/
votes are not refused (V4)|master/deadlock.c|s/if (g->restart) refuse_waiting(m, p->group);//
scopes are not reported (V4)|ring/flush.c|s/^    msg->sets = sets;/    msg->set_count = 0;/
one vote is enough (O2)|master/optimize.c|s/if (!p->voted\[VOTE_OPTIMIZE\]) return false;//
probes wait for ever (O4)|master/master.c|s/optimize_tick(m, m->group_list\[i\]);//
a failed probe is waited for (O4)|master/optimize.c|s/^        other->probe = 0;//;s/^    p->probe = 0;$/    if (!failed) p->probe = 0;/
ring of another question (O5)|master/optimize.c|s/if (x->ticket != ticket) return false;//
ring of a larger world (O5)|master/optimize.c|s/if (asked != count) return false;//
ring of other members (O6)|master/optimize.c|s/g->wish == 0 || g->wish_count != count/g->wish == 0/;s/if (m->peers\[m->sorted\[i\]\].wish.ticket != g->wish) return false;//
better ring forgotten (O6)|master/master.c|s/ || optimize_has_better(m, m->group_list\[i\])//
probed links stay (O7)|elastic/session_view.c|s/if (msg->view.optimize) links_close_unwanted(s->links);//
hosts are not kept together (O8)|master/optimize.c|s/if (a->host != 0 .. a->host == b->host) return 2;//
networks are not kept together (O8)|master/optimize.c|s/if (a->addr.ip\[i\] != b->addr.ip\[i\]) return 0;/return 0;/
crossed votes wait (V5)|master/master.c|s/^    refuse_crossed_votes(m);//
the scope's survivors are those of the view (F4)|master/round_ops.c|s/set->live += p->state == PEER_MEMBER;/set->live = round_live_links(m, self->group);/
the dead count as survivors (F4)|master/round_ops.c|s/set->live += p->state == PEER_MEMBER;/set->live++;/
verdicts of a scope go to one member (F6)|master/round_ops.c|s/m->out.send(m->out.user, m->links, links, \&msg);/m->out.send(m->out.user, m->links, type == WIRE_VERDICT ? 1 : links, \&msg);/
circles of scopes are not found (V6)|master/blocked.c|s/ || !finds_circle(g, i)/ || true/
partners without data are not told (V6)|ring/blocked_tags.c|s/^        announce_late(e, \&e->ops\[i\]);/        continue;/
the other scope's verdict is kept (V6e)|elastic/session_view.c|s/if (crossed \&\& session_drop_crossed(s, op_name(op).tag))/if (false)/
those that only wait for a circle end, too (V6b)|master/crossed.c|s/bool several = s->top != op;/bool several = s->visits > 1;/
a circle of three is none (V6b)|master/crossed.c|s/^            if (from != MASTER_NO_OP \&\& n->low < /            if (false \&\& n->low < /
circles are sought when reported only (V6b)|master/round_ops.c|s/^    crossed_judge(t);/    if (g->wait_count > 0) crossed_judge(t);/
committed operations are in circles (V6b)|master/crossed.c|s/!s->t->ops\[op\].commit \&\& //;s/if (!s->t->ops\[list\[i\].op\].commit) //
operations before a loss are not reported (V6f)|ring/blocked_tags.c|s/if (op->told >= e->links.epoch || /if (true || /
those that know the loss wait for it, too (V6f)|master/blocked.c|s/runs->tag == lacks->tag \&\& runs->seq > lacks->seq/runs->tag == lacks->tag/
anybody ends what a scope runs (V6f)|master/round_ops.c|s/round_ops_has_rank(\&g->table, op->scope, f->other)/true/
a tag is not used again (V6f)|elastic/session_launch.c|s/^    engine_used(s->engine, r->tag);//
the verdict is kept for a launch (V6f)|elastic/session_verdict.c|s/^    if (v->state == VERDICT_MISPLACED) return;.*//
a sum in a region is in all queues (D16c)|ring/allreduce_single_copy.c|s/if (sum \&\& \*there == g + 1) return;/if (sum \&\& *there >= 1) return;/
a link in the making is closed (R3d)|link/link.c|s/ \&\& is_stale(n, l))/)/
scope ignored in sequence numbers (D1)|ring/result_cache.c|s/ || e->tags\[at\].scope != scope//;s/(tag ^ scope)/tag/
scope ignored in pending aborts (F6)|elastic/session_verdict.c|s/s->pending_aborts\[i\].scope != scope/false/
scope ignored in verdicts (F3)|elastic/session_verdict.c|s/wire_same_op(\&name, v)/name.tag == v->tag \&\& name.seq == v->seq/
scope ignored in frames (F3)|ring/op.c|s/ \&\& op->scope_number == scope;/;/
scope ignored in unexpected frames (D2)|ring/op_receive.c|s/return k->complete \&\& k->frame.scope == op->scope_number \&\&/return k->complete \&\&/
verdict not stored (F6)|elastic/session_verdict.c|s/add_pending_abort(s, v, result);/(void)result;/
younger verdict first (P1)|elastic/session_verdict.c|s/if (lost \&\& s->notified.loss_first < s->pending_aborts\[i\].loss)/(void)lost; if (false)/
failure forgotten by a flush (D10)|elastic/session_view.c|s/op_fails(op) \&\& !op_is_done(op)/false/
failure reported to one only (D10)|master/round.c|s/round_force(g, p->rank, p->rank, \&name, VERDICT_FAILED);/;/
unexpected frames lost|link/conn_receive.c|s/c->parked = later && c->state == CONN_OPEN && !c->peer;/c->parked = false;/
stranded member waits for ever|elastic/session_view.c|s/if (s->stranded) session_gone(s, s->reason);//
no heartbeats|elastic/session.c|s/^        session_send(s, \&beat);//
silence is no loss|master/silence.c|s/^    drop(m, link);$/    return false;\n&/
a whole deadline of silence (M8)|master/silence.c|s/ >= PCCL_TIME_TO_LOSE(m->deadline);/ >= m->deadline;/
who gets no CPU time is lost (M10)|master/silence.c|s/e == EVIDENCE_RUNNABLE ||/false ||/
silent FLUSHED is waited for (R8)|master/limits.c|s/p->answer < ANSWER_FLUSHED ? "FLUSH"/false ? "FLUSH"/
silent REPLY is waited for (R8)|master/limits.c|s/p->answer < ANSWER_TOLD ? "QUERY"/false ? "QUERY"/
silent RESULT is waited for (R8)|master/limits.c|s/round_ops_owes(g, link) ? "DONATE"/false ? "DONATE"/
silent READY is waited for (R8)|master/limits.c|s/p->proposed \&\& !p->ready ? "PROPOSE"/false ? "PROPOSE"/
no CPU time, and no answer (R8a)|master/limits.c|s/silence_is_excused(m, link) || //
stopped for a while, and no answer (R8a)|master/limits.c|s/(d->silent ? 2 : 1)/1/
links to the silent are owed (R8b)|master/limits.c|s/ || (delayed \&\& !silent)//
answers not read while it slept (R8a)|master/silence.c|s/limits_extend(m, i, \*since);//
newcomers while an update runs (M3a)|master/round_view.c|s/p->info.id <= g->admitted :/true :/
an update of many newcomers (M3b)|master/round.c|s/>= 2 \* m->deadline) g->admitted = 0/>= 2 * m->deadline) g->admitted += 0/
who was stopped is waited for (M10)|master/silence.c|s/e == EVIDENCE_TRACED)/e != EVIDENCE_NONE)/
evidence for ever (M10)|master/silence.c|s/m->now - p->silence.seen_at < m->deadline/true/
evidence of another silence (M10)|master/silence.c|s/p->silence = (struct master_silence){.since = m->now};/p->silence.since = m->now;/
the silent are not told (M10)|master/silence.c|s/if (silence_is_suspect(m, i)) m->ids/if (false) m->ids/
links of the silent are judged (M10)|elastic/session.c|s/links_excuse(s->links, msg->ids, msg->id_count);//
dials to the silent are judged (M10)|link/link_patience.c|s/if (l) l->wanted_at = n->now;//
an attempt to link the silent counts (M10)|master/edges.c|s/if (silence_is_suspect(m, x) .*//
a deaf master judges (M11)|master/silence.c|s/return m->now - m->heard_at >= .*;/return false;/
no time after an outage (M11)|master/silence.c|s/\*since = m->now + grace;/*since = m->now;/
a sleeper judges (M12)|link/link_patience.c|s/^    if (slept <= tick).*/    return;/
codes: rounding down|reduce/quant_real.h|s/((distance + QROUND) - QROUND)/((distance - 0.49f + QROUND) - QROUND)/
codes: steps too short|reduce/quant_real.h|s/if (step \* top < range)/if (false)/
codes: overflowing range|reduce/quant_real.h|s/if (!(s.most - s.least <= QMAX))/if (false)/
codes: AVG not divided|ring/allreduce_ring.c|s/divisor = op->plan.r.world;/divisor = 1;/
codes: owner takes its exact sum|ring/allreduce_ring.c|s/^    quant_decode(q, (uint8_t/    if (x->action == ACTION_DIVIDE) { uint8_t *to = (uint8_t *)op->r.recvbuf + y.offset; quant_decode(q, to, body, count); reduce_apply(op->r.dtype, op->r.redop, to, to, (const uint8_t *)op->r.sendbuf + y.offset, count); return; }\n&/
codes: no restore of a ring|ring/allreduce_ring.c|s/^    backup_save(op, &s->backup, k, x);//
codes: no restore of a flat one|ring/allreduce_flat.c|s/^    keep_input_codes(op);/    ((struct allreduce_flat_state *)op->state)->folded = true;/
codes: own part left out|ring/allreduce_ring.c|s/s->codes + x->offset, body,/s->codes + x->offset, s->codes + x->offset,/
broken link not reported|ring/op_frame.c|s/^    e->out.fault(e->out.user, alone.*/    (void)alone; if (false)\n&/
departed peers vote (S1)|master/state_vote.c|s/return p->state == PEER_MEMBER \&\& p->group == group;/return (p->state == PEER_MEMBER || p->state == PEER_DEAD) \&\& p->group == group;/
decided without the late (S1)|master/state_vote.c|s/if (!master_waits(p) \&\& !p->voted\[VOTE_PENDING\]) return;/if (!master_waits(p) \&\& !p->voted[VOTE_PENDING]) { if (voters > 1) { members = voters; break; } return; }/
strategies mix (S2a)|master/state_vote.c|s/is_popular(p) == popular) continue;/true) continue;/
newcomers choose the strategy (S2a)|master/state_vote.c|s/p->sync.synced ? PEERS_MAX : 1/1/
the lowest rank does not break the tie of strategies (S2a)|master/state_vote.c|s/return lowest \&\& is_popular(lowest);/return false;/
receive-only is elected (S2)|master/state_vote.c|s/if (!votes(m, link, group) || s->strategy == SYNC_RECEIVE_ONLY)/if (!votes(m, link, group))/
receive-only serves (S2)|master/state_vote.c|s/s->part = s->strategy == SYNC_RECEIVE_ONLY ? PART_HAS : PART_SERVES;/s->part = PART_SERVES;/
receiver becomes a holder (S8)|master/state_vote.c|s/p->sync.strategy == SYNC_RECEIVE_ONLY ? PART_HAS : PART_SERVES;/PART_SERVES;/
revision stands still (S3)|master/state_vote.c|s/e.resume ? r->revision : r->revision + 1/r->revision/
ahead is welcome (S3)|master/state_vote.c|s/if (s->revision > e->expected) {/if (s->revision > e->expected + 1) {/
any checkpoint resumes (S4)|master/state_vote.c|s/answer(m, i, SYNC_FOREIGN, e->expected);/e->current = true;/
the run is forgotten (S4)|master/state_vote.c|s/if (s->synced) e.resume = false;/e.resume = false;/
those behind are candidates (S5)|master/state_vote.c|s/return s->revision == e->expected || .*;/return true;/
least popular wins (S5)|master/state_vote.c|s/count < best_votes ||/count > best_votes ||/
tie by link (S5)|master/state_vote.c|s/rank > best_rank)/false)/
outvoted sender receives (S5)|master/state_vote.c|s/if (!same \&\& s->strategy == SYNC_SEND_ONLY) {/if (false) {/
other tensors as receivers (S6)|master/state_vote.c|s/s->structure == winner.structure ? PART_LACKS : PART_DIFFERS/PART_LACKS/
leaver is listed (S6)|master/state_vote.c|s/if (!in_group(p, group) || p->leaving || p->sync.part != part) continue;/if (!in_group(p, group) || p->sync.part != part) continue;/
complete though one receives (S8)|master/state_vote.c|s/if (open == 0 || /if (open <= 1 || /
lists not sent again (S8)|master/master.c|s/if (p->sync.part != PART_NONE) g->sync_changed = true;//
block not checked (S7)|elastic/state_plan.c|s/if (t->blocks > 1) return hash == .*;/if (t->blocks > 1) return true;/
late answer taken (S7)|elastic/state.c|s/ \&\&$/ \&\&/;s/(x->piece.kind == STATE_NAMES || x->piece.size == f->index)/true/
a second size of the structure (S7d)|elastic/state_plan.c|s/ \&\& !first \&\& total != s->names_size)/ \&\& false)/
names begun by one, ended by another (S7d)|elastic/state_plan.c|s/if (s->names_from != p->id) s->names_got = 0;//;s/^        s->names_got = 0;$//
a question of more than a frame (S7d)|elastic/state.c|s/ || p->size > FRAME_BODY_MAX)/)/
receive-only passes on (S7)|elastic/session_sync.c|s/strategy == SYNC_ENFORCE_POPULAR);/true);/
retries counted twice (S8)|elastic/state_plan.c|s/^    s->taken\[i + 1\] += size;/    s->taken[i + 1] += 2 * size;/
credit to the wrong one (S8)|master/state_vote.c|s/p->info.id == msg->ids\[k\]/p->info.id == msg->ids[k] + 1/
another call is waited for (S9)|master/state_vote.c|s/refuse_crossed(m, group);/;/
old generations stay open (R3)|link/conn.c|s/if (other == c || other->generation == l->generation) continue;/continue;/
idle blocks stay|base/pool.c|s/free_some(p, i, p->lists\[i\].idle);/;/
blocks in use are idle|base/pool.c|s/if (list->idle > list->count) list->idle = list->count;//
a job that has ended begins anew (M2b)|master/master.c|s/if (m->job \&\& m->founded \&\& members == 0) refuse_latecomers(m);//
a job that has died begins anew (M2c)|master/master.c|s/if (m->job \&\& m->founded \&\& members == 0)/if (m->job \&\& m->left \&\& members == 0)/
a run without a job has ended for newcomers (M2b)|master/master.c|s/if (m->job \&\& m->founded \&\& members == 0)/if (m->founded \&\& members == 0)/
a newcomer aborts the run (M3c)|master/master.c|s/if (m->peers.link..state == PEER_REGISTERED \&\& m->peers.link..join) {/if (false) {/
the higher id never dials (R3)|link/link.c|s/l->dial_at = n->now + (first ? 0 : time_to_link(n, l) . 4);/l->dial_at = first ? n->now : PCCL_NEVER;/
link that is open counts unseen (R3)|link/link.c|s/if (open \&\& c->alive != l->attempt) return false;//
dial ahead of its PROPOSE (R3)|link/conn.c|s/return from < n->self \&\& n->world > 0 ? false : park(c);/return false;/
crossing dials are both taken (R3)|link/conn.c|s/if (mine \&\& link_greets(n, l)) return park(c);//
restart at the first failure (R4)|master/round.c|s/if (g->unlinked \&\& all_ready(m, group)) {/if (g->unlinked) {/
one lost, the others stay (R6)|link/conn.c|s/^        close_rest(n, l);//
a small HELLO is enough (R3)|link/links.c|s/c->rx.size >= n->fill_size/true/
a failed link is sought for ever (R3)|link/link.c|s/^    l->sought = false;$/    return;/
the smaller set goes on (R4)|master/order.c|s/if (size != other) return size > other;/if (size != other) return size < other;/
of two halves the last one (R4)|master/order.c|s/(set \& (differ/(than \& (differ/
members that stay are evicted (R4)|master/partition.c|s/if (m->peers\[m->sorted\[i\]\].stays) return false;//
useless links are made for ever (R4)|master/edges.c|s/if (e->breaks > MASTER_BREAKS_MAX) fail(m, g, x, y, e);//
a small world is not surveyed (R4d)|master/round.c|s/!g->surveyed \&\& !g->mesh;/!g->surveyed \&\& !g->small;/
a survey is not asked (R4)|master/order.c|s/if (m->groups\[group\].surveyed) {/if (false) {/
a lost link takes old dials (R6)|link/conn.c|s/l->generation++; .*//
late dial is accepted (R3)|link/conn.c|s/if (c->generation < l->generation) return false;//
DONE before that of all (D11)|ring/op_done.c|s/if (plan_is_root(&op->plan) \&\& !all_done(op)) return;//
root does not ask all (D11)|ring/allreduce_centralized.c|s/if (op->eps\[i\].wants_done) op->confirm = true;//
result of a centralized one over the input|ring/allreduce_centralized.c|s/memcpy(kept_input(op), op->r.recvbuf, fold_size(op));/(void)0;/
launched, frame left (D2)|ring/op_frame.c|s/!engine_is_past(e, f->scope, f->tag, f->seq);/true;/
frame left by a waiting one (D2)|ring/op_frame.c|s/return e->defers \&\& f->type/return f->type/
half a frame is left (D2)|link/conn_receive.c|s/c->state != CONN_OPEN || c->peer || c->rx_state != RX_HEADER ||$/c->state != CONN_OPEN || c->peer ||/
many in a row are cached (D4)|ring/op.c|s/ || e->in_a_row > e->many//
no READY without credit (D2)|ring/op.c|s/ep->reserved = ep->ready || op_eager_fits(ep, x.size);/ep->reserved = true;/;s/if (!ep->reserved) {/if (ep->sends == 0) {/
credit of an announcement not reserved (D2)|ring/op.c|s/^        ep->link->eager_bytes += x.size;//;s/^        ep->eager = x.size;//
root clean, a member not (D11)|ring/op_done.c|s/uint8_t clean = op->cleared \&\& idle_but/uint8_t clean = idle_but/
frames sent count after a flush (F1)|ring/op_done.c|s/if (e->links.frozen) return; .. the report in FLUSHED stands.*//
root sends no READY (D11)|ring/op_receive.c|s/^    if (op->phase == PHASE_RUNNING) op_announce(e, op, ep);//
broadcasts need no READY (D2)|ring/op.c|s/if (ep->announced || /if (ep->recvs == 0 || ep->announced || /
complete though one disagrees (D2)|ring/op_done.c|s/ || !ep->ready)/)/;s/ ep->received < ep->recvs || !ep->ready)/ ep->received < ep->recvs)/
other plans not compared (D2)|ring/op.c|s/^    check_others(e, op);//
sizes of a pair not compared (D2)|ring/op.c|s/if (p->coll != COLL_ALLTOALLV) return;/return;/
out of turn (D3)|ring/allreduce_direct.c|s/s->turns\[piece\] + 1u == turn ? NULL/true ? NULL/
sum of some (D12)|ring/allreduce_direct.c|s/if (turn > direct_turns(p, piece)) mark/mark/
wish for DONE not passed on (D15)|ring/op_send.c|s/op->confirm .. op->tells_all ?/op->confirm ?/
DONE only to direct askers (D15)|ring/op_done.c|s/bool tells = op->tells_all .. /bool tells = /
sum sent before received (D15)|ring/allreduce_direct.c|s/if (!part \&\& chunk != p->r.rank) x->after += .*//
site's sum sent without the others (D15)|ring/allreduce_direct.c|s/if (part \&\& direct_turns(p, piece) == 0) return;/if (part) return;/
members see other sites (D15)|ring/engine.c|s/e->has_hierarchy = view->sites \&\& /e->has_hierarchy = view->sites \&\& view->rank % 2 == 0 \&\& /
average by a site (D15)|ring/allreduce_direct.c|s/piece . p->segments == p->r.rank \&\& turn/turn/
single copy out of turn (D3)|ring/allreduce_single_copy.c|s/if (\*where == CAME_NOT) return false;/if (*where == CAME_NOT) { s->turns[g]++; continue; }/
slot before its turn (D3)|ring/allreduce_single_copy.c|s/s->turns\[g\] + 1u == turn ? NULL/true ? NULL/
next input before all sums (D16)|ring/allreduce_single_copy.c|s/x->after = p->segments + g - 2;/x->after = PLAN_NOTHING;/
sums of some are all (D16)|ring/allreduce_single_copy.c|s/if (++sums\[g\] + 1u == op->plan.r.world)/++sums[g];/
no restore of a single copy|ring/allreduce_single_copy.c|s/^    pieces_save(op, &s->backup, ep->rank \* op->plan.segments + g);//
read by an excluded member (L8)|ring/allreduce_single_copy.c|s/return single_copy_is_valid(op, region, slot);/return true;/
a slot of two operations (L8)|ring/allreduce_single_copy.c|s/if (e->single_copy.users\[slot\]) continue;//
a slot is not signed (L8)|ring/allreduce_single_copy.c|s/^        sign(e, op, slot);//
region used before opened (L7)|ring/allreduce_single_copy.c|s/s->slot > 0 \&\& c->region.taken/s->slot > 0/
each decides alone (D16)|ring/op.c|s/p->single_copy_world = e->single_copy_on ? e->single_copy_world : 0;/p->single_copy_world = e->single_copy_on \&\& e->links.region ? e->single_copy_world : 0;/
no restore of a direct one|ring/pieces.c|s/if (!b->bytes .. backup_has(b, piece)) return;/return;/
passed on before received (D14)|ring/allreduce_ring.c|s/PLAN_NOTHING : ring_index(p, step - 1, g);/PLAN_NOTHING : ring_index(p, step - 1, 0);/
first writes by number (D14)|ring/allreduce_ring.c|s/return ring_step(p, k, \&g) < p->r.world;/return k \/ p->segments < p->r.world;/
interleaving differs (D14)|ring/plan.c|s/plan_vector_size(p) \* p->r.world >= p->r.cached/p->r.rank % 2 == 0/
root's broadcast not copied (D12)|ring/fast_path.c|s/if (ep->recvs > 0) memcpy(q->r->recvbuf.*//
others' words are the root's (D12)|ring/broadcast_confirmed.c|s/if (from == p->root) x->size = /x->size = /
never asks for a dial (P2P-10)|message/message.c|s/bool asks = (l->asks ||/bool asks = false \&\& (l->asks ||/
asks and dials at once (P2P-10)|message/message.c|s/    l->retry_at = m->links->now + m->links->deadline . 2;//
a garbled header is taken|link/frame.c|s/ || reserved != 0)/)/
a stranger keeps a connection|link/links.c|s/if (c->state == CONN_DIALED \&\& c->link) return;/if (c->state != CONN_OPEN) return;/
an old DIAL_REQUEST (P2P-10)|message/message.c|s/if ((int32_t)(l->peer_dials - dials) > 0) return;//
DIAL_REQUEST ends no conn (P2P-10)|message/message.c|s/^        hang_up(m, l);/        return;/
an overtaken dial stands (P2P-3)|message/message.c|s/if ((int32_t)(dials - l->peer_dials) <= 0) return false;//
lost before its last words (P2P-7)|message/message.c|s/    else if (l->conn == NO_CONN)/    else/
a lost member's connection stays (P2P-7)|link/conn_receive.c|s/if (c \&\& c->peer \&\& n->p2p.ended(c->peer)) (void)conn_reject(n, number);//
DIAL_REQUEST not relayed (P2P-10)|master/master.c|s/^    master_send(m, to, \&call);/    (void)call;/
items are not sent again (P2P-4)|message/message.c|s/^    l->sent = 0;$//
dial ahead of WELCOME refused (R3)|link/conn.c|s/if (n->self == 0) return park(c);/if (false) return park(c);/
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
ranks of the view (F9c)|master/dispute_text.c|s/clash ? m->peers\[r->link\].rank : r->args.rank/m->peers[r->link].rank/
ranks of a scope that clash (F9c)|master/dispute_text.c|s/^            clash |= .*//
lists of arguments are not checked (F9a)|base/wire.c|s/!arguments_valid(a->named, a->named_size)/false/
the end of an array is forgotten (F9a)|base/arguments.c|s/: digest_of(values + whole, count - whole)/: 0/
runners of other operations (F9d)|master/dispute_text.c|s/if (t->listings\[i\].op == op) runs/runs/
late members are not excused (R4f)|master/round.c|s/return (!both || a->late || b->late)/return (!both)/
a pair that one end misses is bad (R4f)|master/round.c|s/return (!both || a->late/return (a->late/
a group installs while another restarts (R5)|master/round.c|s/if (g->restart .. g->unlinked .. g->phase != GROUP_PROPOSED ../if (g->phase == GROUP_PROPOSED \&\&/
fast path takes scoped operations (D9)|ring/fast_path.c|s/ || r->members) return false;/) return false;/
fast path compares 16 bytes (D9)|ring/fast_path.c|s/memcmp(from, head, FRAME_SIZE)/memcmp(from, head, 16)/
fast path in place at rank 2 (D9)|ring/fast_path.c|s/if (r->sendbuf == r->recvbuf .. e->rank > 1) {/if (false) {/
a loss is not that of its operation (T2)|elastic/session_view.c|s/op_set_loss(op, whole .. lost ? loss : 0);/op_set_loss(op, whole \&\& lost ? UINT32_MAX : 0);/
a queued launch ends before INSTALL (F6)|elastic/session_verdict.c|/if (queued)/{n;s/op_set_verdict.*/engine_finish(s->engine, op, result);/}
an update tries the pair that it waits for (R3h)|master/edges.c|s/if (!g->edges\[i\].bad .. g->edges\[i\].bad_at < since) drop(g, i);/drop(g, i);/
a refused voter's launch ends with the verdict (F6)|elastic/session_verdict.c|s/ == pcclSuccess .. told) return;/ == pcclSuccess) return;/
fast path beside a pending loss (D9)|elastic/session_launch.c|s/s->sync != SYNC_IDLE .. s->notified.loss_count > 0 ../s->sync != SYNC_IDLE ||/
fast path in a closed epoch (D9)|elastic/session_launch.c|s/^        links_is_frozen(s->links))$/        false)/
fast path past a kept verdict (D9)|elastic/session_launch.c|s/if (session_keeps_verdict(s, r)) return false;$//
fast path beside operations (D9)|ring/fast_path.c|s/if (!q->able .. e->op_end > 0 .. r->members)/if (!q->able || r->members)/
fast path without the copy of the last (D9)|ring/fast_path.c|s/    if (!q->cached) return false;/    if (!q->cached) q->cached = \&e->results[0];/
fast path with half a header sent (D9)|ring/fast_path.c|s/return conn_is_idle(c) \&\& /return /
fast path before a waiting DONE (D9)|ring/fast_path.c|s/ep->link->control_count == 0 \&\&$/true \&\&/
fast path reads before all have sent (D9)|ring/fast_path.c|s/    if (q->left > 0) return FAST_WAITS;/    if (q->left > 1) return FAST_WAITS;/
fast path takes half a body (D9)|ring/fast_path.c|s/if (size < FRAME_SIZE + ep->recvs) continue;//
fast path keeps no copy (D9)|ring/fast_path.c|s/^        memcpy(q->cached->bytes, q->r->recvbuf, q->size);//
fast path's copy has the old number (D9)|ring/fast_path.c|s/^    q->cached->seq = q->frame.seq;//
converted under the next number (D9)|ring/fast_path.c|s/    q->tag->next = q->frame.seq;//
converted sends again (D9)|ring/fast_path.c|s/    op_unqueue(e, op);//
converted asks for DONE (D9)|ring/fast_path.c|s/    op->confirm = false; .*//
converted counts no sent frame (D9)|ring/fast_path.c|s/ep->send_next = ep->sent = ep->sends;/ep->send_next = ep->sends;/
fast endpoints of an older view (D9)|ring/flush.c|s/    e->fast.known = false;//
fast endpoints of closed connections (D9)|ring/op_frame.c|s/    e->fast.known = false;//
fast path over one connection of several (D9)|ring/fast_path.c|s/ep->link->open != 1 .. ep->link->dialing > 0/ep->link->open < 1/
MUTANTS
[ "$survived" -eq 0 ]
