/* util.c - small functions that every part of the simulator uses. */
#include "sim.h"

#include "../../../src/master/admission.h"

#include "../../../include/pccl.h"
#include "../../../src/base/scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "election.h"
#include "faults.h"

void sim_say(const struct sim *s, const char *format, ...)
{
    va_list args;
    printf("%8lld ", (long long)(s->now / 1000));
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

void sim_fail(const struct sim *s, const char *condition, const char *format,
              ...)
{
    va_list args;
    printf("\nseed %llu at %lld us: %s\n  ", (unsigned long long)s->seed,
           (long long)(s->now / 1000), condition);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    abort(); /* the handler prints how to replay */
}

void sim_trace_message(const struct sim *s, const char *who, uint64_t to,
                       const struct wire_msg *m)
{
    if (!sim_trace || m->type == WIRE_HEARTBEAT) return;
    sim_say(s, "%s %llu %s round %u epoch %u ops %u ids %u members %u", who,
            (unsigned long long)to, wire_type_name(m->type), m->round, m->epoch,
            m->op_count, m->id_count, m->member_count);
    if (m->type == WIRE_PARTIAL || m->type == WIRE_COVERAGE)
        sim_say(s, "    word %u tag %llu round %llu", m->partial.word,
                (unsigned long long)m->partial.tag,
                (unsigned long long)m->partial.number);
    for (uint32_t i = 0; i < m->op_count; i++)
        sim_say(s, "    op %llx: %llx.%u state %u donor %d",
                (unsigned long long)m->ops[i].scope,
                (unsigned long long)m->ops[i].tag, m->ops[i].seq,
                m->ops[i].state, m->ops[i].donor);
    for (uint32_t i = 0; i < m->id_count; i++)
        sim_say(s, "    id %llu", (unsigned long long)m->ids[i]);
}

uint64_t sim_hash(const uint8_t *bytes, size_t size)
{
    uint64_t h = size + 1;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    for (; size > 0; size--) h = (h ^ *bytes++) * 0x100000001b3u;
    return h;
}

uint64_t sim_mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint64_t state = a;
    state = net_random(&state) ^ b;
    state = net_random(&state) ^ c;
    state = net_random(&state) ^ d;
    return net_random(&state);
}

size_t spec_pair(const struct sim *s, const struct sim_spec *spec,
                 uint64_t from, uint64_t to)
{
    uint64_t h = sim_mix(s->seed, spec->ident, from * 100003 + to, 9);
    uint64_t root = spec->ids[spec->root];
    if (spec->flow == FLOW_TO_ROOT && to != root) return 0;
    if (spec->flow == FLOW_FROM_ROOT && from != root) return 0;
    if (spec->flow == FLOW_EVEN) return (size_t)spec->count;
    if (h % 4 == 0) return 0;
    return (size_t)((h >> 8) % (spec->count * 2 + 1));
}

bool sim_is_member(const struct sim *s, uint64_t id)
{
    for (uint32_t i = 0; i < s->master->link_end; i++) {
        const struct master_peer *p = &s->master->peers[i];
        if (p->state == PEER_MEMBER && p->info.id == id) return true;
    }
    return false;
}

/* Of each pair only one direction. */
bool sim_walled(const struct sim *s, uint32_t caller, uint32_t called)
{
    if (s->options.walls) return !walls_is_public(s, called);
    bool lower = caller < called;
    uint64_t pair =
        (uint64_t)(lower ? caller : called) << 32 | (lower ? called : caller);
    uint64_t what = sim_mix(s->seed, pair, 0, 0) % 6;
    return s->options.one_way && (lower ? what < 2 : what == 2);
}

bool sim_refused(const struct sim *s, uint32_t a, uint32_t b)
{
    if (sim_walled(s, a, b)) return true;
    for (uint32_t i = 0; i < SIM_REFUSALS_MAX; i++) {
        if (s->refusals[i].until <= s->now) continue;
        bool same = (s->refusals[i].a == a && s->refusals[i].b == b) ||
                    (s->refusals[i].a == b && s->refusals[i].b == a);
        if (same) return true;
    }
    return false;
}

/* Rule V4: it waits for a member that has met a loss or another error instead,
 * of an operation in another scope, and runs nothing of the tag any more.
 * Nobody but an operator ends that. */
static bool is_left_alone(const struct sim *s, const struct sim_proc *p)
{
    const struct sim_op *o = &p->program.ops[0];
    if (p->program.stage != STAGE_LAUNCH && p->program.stage != STAGE_TAKE)
        return false;
    if (!o->op || !op_is_active(o->op)) return false;
    for (uint32_t i = 0; i < SIM_PROCS_MAX; i++) {
        const struct sim_proc *q = &s->procs[i];
        if (!sim_lives(s, i) || q == p) continue;
        bool in = false, apart = q->program.resync && q->program.apart;
        if (!o->spec.scoped && !apart) continue;
        for (uint32_t k = 0; k < o->spec.size; k++)
            in |= o->spec.ids[k] == q->session->id;
        if (in && !session_votes_topology(q->session) &&
            q->session->sync == SYNC_IDLE &&
            !engine_find(q->session->engine, o->spec.tag))
            return true;
    }
    return false;
}

/* No process waits for long once the faults have stopped. */
void sim_check_progress(struct sim *s, struct sim_proc *p)
{
    const struct sim_program *g = &p->program;
    if (g->stage == STAGE_JOIN || p->session->state != SESSION_MEMBER) return;
    if (s->options.single != SINGLE_NONE && !s->healing) {
        lasting_watch(s, p);
        return;
    }
    uint32_t have; /* while they wait for newcomers, time stands still */
    if (admission_lacks(s->master, &have)) {
        s->last_fault = s->now;
        sim_coverage.few_waits += g->stage == STAGE_UPDATE;
    }
    /* A deadline or two to notice, one to reconnect, and own time. */
    pccl_ns limit = (s->options.large  ? 15
                     : s->options.slow ? 10
                                       : 4) *
                    SIM_DEADLINE;
    /* Of a vector that travels over many connections each turn moves little. */
    if (s->options.large && s->options.pool == 0) limit *= 2;
    /* A relay that holds few bytes passes few of them each turn. */
    if (s->options.alive_max > SIM_FEW || s->options.walls) limit *= 2;
    /* A member with other tensors asks again while the others still move
     * theirs. */
    if (g->stage == STAGE_SYNC) limit *= 3;
    /* A sweep has as many steps as there are members. */
    if (g->stage == STAGE_OPTIMIZE) limit *= 5;
    /* Groups that share a vote need not be in step. */
    if (g->stage == STAGE_PENDING && s->options.groups > 1) limit *= 3;
    pccl_ns since =
        g->progress_at > s->last_fault ? g->progress_at : s->last_fault;
    if (s->now - since >= limit / 2 && is_left_alone(s, p)) {
        sim_coverage.left_alone++;
        sim_crash(s, p);
        return;
    }
    SIM_CHECK(s, s->now - since < limit,
              "process %u (id %llu) is blocked in stage %d, step %llu", p->uid,
              (unsigned long long)p->session->id, (int)g->stage,
              (unsigned long long)g->step);
}

void sim_count_pending(uint32_t flag, bool odd)
{
    sim_coverage.pending_yes += flag == 1;
    sim_coverage.pending_no += flag == 0;
    sim_coverage.pending_refused += flag == 0xff && odd;
}

void sim_count_message(const struct wire_msg *msg)
{
    struct sim_coverage *c = &sim_coverage;
    switch (msg->type) {
    case WIRE_FLUSH:
        c->flush++;
        return;
    case WIRE_QUERY:
        c->ask += msg->round > 0;
        return;
    case WIRE_DONATE:
        c->donate++;
        return;
    case WIRE_SUSPECT:
        c->suspect++;
        return;
    case WIRE_REFRESH:
        c->refresh_mismatch += msg->fault.cause == REFRESH_MISMATCH;
        c->refresh_unreachable += msg->fault.cause == REFRESH_UNREACHABLE;
        return;
    case WIRE_ANSWER:
        c->vote_refused += msg->vote.flag == 0xff;
        return;
    case WIRE_PROPOSE:
        c->shuffled += msg->order_count > 0;
        c->survey += msg->view.survey;
        return;
    case WIRE_DIAL_REQUEST:
        c->reverse_dial++;
        return;
    case WIRE_PROBE:
        c->probe++;
        return;
    case WIRE_MEASURED:
        c->probe_failed += msg->edges[0].kind == EDGE_FAILED;
        c->probe_silent += msg->edges[0].kind == EDGE_SILENT;
        return;
    case WIRE_INSTALL:
        c->update += msg->view.update;
        c->optimize += msg->view.optimize;
        return;
    case WIRE_VERDICT:
        for (uint32_t i = 0; i < msg->op_count; i++) {
            c->commit += msg->ops[i].state == VERDICT_COMMIT;
            c->crossed += msg->ops[i].state == VERDICT_CROSSED;
            c->invalid += msg->ops[i].state == VERDICT_INVALID;
            c->usage += msg->ops[i].state == VERDICT_USAGE;
            c->unreachable += msg->ops[i].state == VERDICT_UNREACHABLE;
        }
        return;
    default:
        return;
    }
}

static void cover_algorithm(const struct plan *p)
{
    const struct algorithm *a;
    for (uint32_t i = 0; (a = algorithm_by_number(i)) != NULL; i++)
        sim_coverage_algorithms[i] += p->algorithm == a;
}

void sim_cover_plan(const struct plan *p, bool quantized, bool confirm,
                    bool mapped, int result)
{
    struct sim_coverage *c = &sim_coverage;
    bool interleaved =
        p->algorithm == &allreduce_ring && p->streamed && p->segments > 1;
    bool sites = p->algorithm == &allreduce_direct && p->r.hierarchy;
    bool spread = p->algorithm == &spread_single_copy;
    bool scatter = p->algorithm == &reduce_scatter_single_copy;
    bool lost = result == pcclRankConnectionLost;
    bool tree =
        p->algorithm == &small_tree && !plan_is_root(p) && p->tree.children > 0;
    bool grid = p->algorithm == &small_grid && p->grid.rows > 1;
    c->tree_lost += tree && lost;
    c->grid_lost += grid && lost;
    c->grid_direct_lost += p->algorithm == &allreduce_grid && lost;
    c->grid_scatter_lost += p->algorithm == &broadcast_grid && lost;
    c->interleaved_lost += interleaved && result != pcclSuccess;
    c->sites_lost += sites && lost;
    c->lent_lost += mapped && lost;
    c->spread_lost += spread && mapped && lost;
    c->quant_lost += quantized && lost;
    if (result != pcclSuccess) return;
    cover_algorithm(p);
    c->forced +=
        p->r.forced && algorithm_row_of(&p->r)->algorithm != p->algorithm;
    c->interleaved += interleaved;
    c->sites += sites;
    c->lent += mapped && p->segments > 2;
    c->spread_turns += spread && mapped && p->segments > SINGLE_COPY_PLACES;
    c->scatter_turns += scatter && mapped && p->segments > SINGLE_COPY_BUFFERS;
    c->lent_queued += p->algorithm == &allreduce_single_copy && !mapped;
    c->sites_confirmed +=
        sites && confirm && plan_vector_size(p) <= WIRE_RESULT_MAX;
    c->through_root += p->done == DONE_TREE;
    c->tree += tree;
    c->grid += grid;
    c->grid_confirmed += grid && confirm && p->algorithm->defers &&
                         plan_vector_size(p) <= WIRE_RESULT_MAX;
    c->tree_confirmed += tree && confirm && p->algorithm->defers &&
                         plan_vector_size(p) <= WIRE_RESULT_MAX;
    c->confirmed += confirm;
    c->deferred += !confirm;
}

uint64_t sim_large(const struct sim *s, uint64_t n, uint64_t h)
{
    /* Where time counts, its own time would be most of it. */
    if (h % 20 == 0 && !s->options.lasting) return 1100000 + n % 1000;
    if (s->options.interleaved || s->options.lends) return 130000 + n % 400000;
    return s->options.pairwise || s->options.sites > 0 ? 30000 + n % 100000
                                                       : 66000 + n % 200000;
}

uint64_t sim_round_trip(void *proc, uint64_t peer)
{
    uint64_t sum = ((const struct sim_proc *)proc)->uid + peer;
    return peer % 16 == 15 ? 0 : sum % 4 == 0 ? RTT_VERY_HIGH : PCCL_MS;
}

void sim_watch(struct sim_proc *p)
{
    const struct engine *e = p->session->engine;
    election_watch(p->sim, p);
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        const struct conn *c = e->links.conns[i];
        if (!c || c->state != CONN_OPEN || !c->link) continue;
        sim_coverage.unexpected += c->link->unexpected_count > 0;
        sim_coverage.pool += c->link->open > 1;
    }
}

bool sim_keeps_verdict(const struct session *x, const struct sim_spec *spec)
{
    uint64_t scope = spec->scoped ? scope_number(spec->ids, spec->size) : 0;
    for (uint32_t i = 0; i < x->pending_abort_count; i++) {
        const struct pending_abort *a = &x->pending_aborts[i];
        if (a->tag == spec->tag && (a->scope == scope || a->any_scope))
            return true;
    }
    return false;
}

/* Half of the operations that quantization supports. */
void sim_quantize(struct sim_spec *spec, uint64_t h)
{
    static const enum dtype codes[] = {DTYPE_U8, DTYPE_I8, DTYPE_U16,
                                       DTYPE_U32};
    struct quant q = {(enum quant_algorithm)(1 + h / 8 % 2), spec->dtype,
                      codes[h / 2 % 4]};
    spec->quant = (struct quant){QUANT_NONE, spec->dtype, spec->dtype};
    if (spec->coll == COLL_ALLREDUCE && h % 2 == 0 &&
        !quant_check(&q, spec->redop))
        spec->quant = q;
}
