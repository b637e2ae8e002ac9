/* op_waits.c - what is under way at this member, for the report to the operator
 * (rule W1). It reads what operations hold anyway; nothing is kept for it. */
#include "op.h"

#include "../../include/pccl.h"

#include <string.h>

/* The partners that it waits for: their number; and the first one. */
static uint32_t partners_missing(const struct op *op, uint64_t *first)
{
    uint32_t missing = 0;
    if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE) return 0;
    for (uint32_t i = 0; i < op->ep_count; i++) {
        if (!engine_awaits(op, &op->eps[i])) continue;
        if (missing++ == 0) *first = op->eps[i].link->id;
    }
    return missing;
}

static void name_call(const struct op *op, struct wire_wait *w)
{
    const pcclArgument_t *named = op->r.named;
    if (!named || op->r.named_count == 0 || !named->name || !named->text ||
        strcmp(named->name, "function") != 0)
        return;
    for (size_t i = 0; i < WIRE_NAME_MAX && named->text[i] != '\0'; i++)
        w->call[i] =
            named->text[i] < ' ' || named->text[i] > '~' ? '?' : named->text[i];
}

static void describe(const struct op *op, struct wire_wait *w)
{
    *w = (struct wire_wait){.kind = WAIT_COLLECTIVE,
                            .coll = (uint8_t)op->plan.r.coll,
                            .blocks = op->awaited,
                            .scope = op->scope_number,
                            .tag = op->r.tag,
                            .seq = op->seq,
                            .moved = op->tx_bytes + op->rx_bytes};
    bool reduces = op->plan.r.coll == COLL_ALLREDUCE;
    bool sized =
        op->plan.r.coll != COLL_BARRIER && op->plan.r.coll != COLL_ALLTOALLV;
    if (sized) w->count = reduces ? op->r.count : op->plan.r.count;
    if (w->count == 0 && sized) w->count = op->plan.r.count;
    if (op->plan.r.coll == COLL_REDUCE_SCATTER) w->count /= op->plan.r.world;
    w->missing = partners_missing(op, &w->peer);
    name_call(op, w);
}

static bool has_scope(const struct wire_wait *waits, uint32_t count,
                      uint64_t scope)
{
    for (uint32_t i = 0; i < count; i++)
        if (waits[i].scope == scope) return true;
    return false;
}

uint32_t engine_waits(const struct engine *e, struct wire_wait *waits,
                      uint8_t *sets, uint32_t set_size, uint32_t *set_count)
{
    uint32_t count = 0;
    *set_count = 0;
    for (int blocks = 1; blocks >= 0; blocks--) {
        for (uint32_t i = 0; i < e->op_end && count < WIRE_UNDER_WAY_MAX; i++) {
            const struct op *op = &e->ops[i];
            if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE)
                continue;
            if (op->awaited != (blocks == 1)) continue;
            if (!op->whole && !has_scope(waits, count, op->scope_number))
                op_write_set(e, op, sets + (size_t)set_size * (*set_count)++);
            describe(op, &waits[count++]);
        }
    }
    return count;
}
