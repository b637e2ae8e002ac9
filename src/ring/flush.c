/* flush.c - the data plane while an epoch is closed: its report, and its
 * donations to other members. Pure; rules F1 to F6. */
#include "op.h"

#include "../base/scope.h"

#include <string.h>

void engine_freeze(struct engine *e)
{
    e->fast.known = false;
    for (uint32_t i = 0; i < e->op_end; i++) {
        struct op *op = &e->ops[i];
        if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE) continue;
        conn_stop_receiving(&e->links, op);
        for (uint32_t k = 0; k < op->ep_count; k++) op->eps[k].eager = 0;
    }
    links_freeze(&e->links);
}

void op_write_set(const struct engine *e, const struct op *op, uint8_t *set)
{
    for (uint32_t i = 0; i < op->r.member_count; i++) {
        uint32_t rank = view_find(e->links.view, op->scope[i]);
        if (rank < e->links.view->size)
            set[rank / 8] = (uint8_t)(set[rank / 8] | 1u << rank % 8);
    }
}

enum { SCOPE_SLOTS = 2 * SCOPED_MAX };

/* `known`: a hash of the scopes that are listed. */
static bool is_listed(uint64_t known[SCOPE_SLOTS], uint64_t scope)
{
    uint32_t i = (uint32_t)scope_mix(scope) % SCOPE_SLOTS;
    while (known[i] != 0 && known[i] != scope) i = (i + 1) % SCOPE_SLOTS;
    bool listed = known[i] == scope;
    known[i] = scope;
    return listed;
}

bool engine_list(struct engine *e, struct wire_msg *msg, struct wire_op *ops)
{
    uint8_t *sets = NULL;
    uint64_t known[SCOPE_SLOTS] = {0};
    msg->ops = ops;
    msg->op_count = msg->set_count = 0;
    msg->set_size = (e->links.view->size + 7) / 8;
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *op = &e->ops[i];
        if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE) continue;
        if (!op->whole && !is_listed(known, op->scope_number)) {
            size_t size = (size_t)SCOPED_MAX * msg->set_size;
            if (!sets) sets = pool_take(&e->links.pool, size);
            if (!sets) return false;
            if (msg->set_count == 0) memset(sets, 0, size);
            op_write_set(e, op,
                         sets + (size_t)msg->set_count++ * msg->set_size);
        }
        ops[msg->op_count++] = (struct wire_op){
            .scope = op->scope_number,
            .tag = op->r.tag,
            .seq = op->seq,
            .state = op->phase == PHASE_COMPLETE ? OP_COMPLETE : OP_RUNNING,
        };
    }
    msg->sets = sets;
    return true;
}

void engine_listed(struct engine *e, struct wire_msg *msg)
{
    if (msg->set_count > 0)
        pool_give(&e->links.pool, (void *)(uintptr_t)msg->sets);
    msg->sets = NULL;
}

bool engine_awaits(const struct op *op, const struct endpoint *ep)
{
    if (ep->received < ep->recvs) return true;
    if (op_exchanges(ep) && !ep->ready) return true;
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
