/* flush.c - the data plane while an epoch is closed: its report, and its
 * donations to other members. Pure; rules F1 to F6. */
#include "op.h"

void engine_freeze(struct engine *e)
{
    e->fast.known = false;
    for (uint32_t i = 0; i < e->op_end; i++) {
        struct op *op = &e->ops[i];
        if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE) continue;
        conn_stop_receiving(&e->links, op, NULL);
        for (uint32_t k = 0; k < op->ep_count; k++) op->eps[k].eager = 0;
    }
    links_freeze(&e->links);
}

static bool contains(const uint64_t *ids, uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id) return true;
    }
    return false;
}

static uint32_t survivors(const struct engine *e, const struct op *op,
                          const uint64_t *dead, uint32_t dead_count)
{
    uint32_t world = op->plan.r.world;
    if (op->whole)
        return dead_count < e->links.world ? e->links.world - dead_count : 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < world; i++)
        count += !contains(dead, dead_count, op->scope[i]);
    return count;
}

uint32_t engine_list(const struct engine *e, const uint64_t *dead,
                     uint32_t dead_count, struct wire_op *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *op = &e->ops[i];
        if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE) continue;
        out[count++] = (struct wire_op){
            .scope = op->scope_number,
            .tag = op->r.tag,
            .seq = op->seq,
            .survivors = survivors(e, op, dead, dead_count),
            .state = op->phase == PHASE_COMPLETE ? OP_COMPLETE : OP_RUNNING,
        };
    }
    return count;
}

bool engine_awaits(const struct op *op, const struct endpoint *ep)
{
    if (ep->received < ep->recvs) return true;
    if (ep->sent < ep->sends && !ep->ready) return true;
    if (!op->confirm) return false;
    if (op->plan.done == DONE_RING)
        return ep == op->eps && op->done_prev + 1 < op->plan.r.world;
    return !ep->done;
}

static const struct cached_result *
find_result(const struct engine *e, uint64_t scope, uint64_t tag, uint32_t seq)
{
    for (size_t i = 0; i < RESULTS_MAX; i++) {
        const struct cached_result *r = &e->results[i];
        bool named = r->scope == scope && r->tag == tag && r->seq == seq;
        if (r->bytes && named) return r;
    }
    return NULL;
}

/* Fills in state and donor of the operation. */
void engine_query(const struct engine *e, struct wire_op *op)
{
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *o = &e->ops[i];
        if (o->r.tag != op->tag || o->seq != op->seq ||
            o->scope_number != op->scope)
            continue;
        if (o->phase != PHASE_RUNNING && o->phase != PHASE_COMPLETE) continue;
        op->state = o->phase == PHASE_COMPLETE ? OP_COMPLETE : OP_RUNNING;
        op->donor = false;
        return;
    }
    bool past = engine_is_past(e, op->scope, op->tag, op->seq);
    op->state = past ? OP_RETURNED : OP_NOT_LAUNCHED;
    op->donor = past && find_result(e, op->scope, op->tag, op->seq) != NULL;
}

const uint8_t *engine_donation(const struct engine *e, uint64_t scope,
                               uint64_t tag, uint32_t seq, uint32_t *size)
{
    const struct cached_result *r = find_result(e, scope, tag, seq);
    if (!r) return NULL;
    *size = r->size;
    return r->bytes;
}
