/* op_look.c - what an operation is and whom it waits for, for a driver that
 * tells of it. Nothing is kept for this. */
#include "op.h"

#include "algorithm_table.h"

#include "../../include/pccl.h"

#include <string.h>

static const char *caller_of(const struct op_call *r)
{
    const pcclArgument_t *named = r->named;
    bool known = named && r->named_count > 0 && named->name && named->text &&
                 strcmp(named->name, "function") == 0;
    return known ? named->text : NULL;
}

void op_look(const struct op *op, struct op_look *look)
{
    *look = (struct op_look){.name = op_name(op),
                             .epoch = op->epoch,
                             .coll = op->plan.r.coll,
                             .caller = caller_of(&op->r),
                             .bytes = op_result_size(op)};
    if (op->plan.algorithm) algorithm_explain(&op->plan.r, &look->reason);
    if (!op_is_active(op)) return;
    for (uint32_t i = 0; i < op->ep_count; i++) {
        if (!engine_awaits(op, &op->eps[i])) continue;
        if (look->missing++ == 0) look->partner = op->eps[i].link->id;
    }
}

bool op_lacks_link(const struct op *op)
{
    for (uint32_t i = 0; i < op->ep_count; i++)
        if (op->eps[i].link->open == 0) return true;
    return false;
}

/* The endpoint whose frame came last. */
static const struct fast_endpoint *fast_latest(const struct fast_path *q)
{
    return q->spoked ? &q->star.eps[q->latest] : &q->eps[q->latest];
}

void fast_look(const struct engine *e, const struct op_request *r,
               struct op_look *look)
{
    const struct fast_path *q = &e->fast;
    struct plan_request plan = r->plan;
    *look = (struct op_look){.name = {.tag = q->frame.tag, .seq = q->frame.seq},
                             .epoch = q->frame.epoch,
                             .partner = fast_latest(q)->link->id};
    op_plan_request(e, &r->call, &plan);
    algorithm_explain(&plan, &look->reason);
}

void fast_total(const struct engine *e, uint64_t *tx, uint64_t *rx)
{
    *tx = e->fast.sent;
    *rx = e->fast.received;
}
