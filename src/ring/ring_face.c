/* ring_face.c - functions of the operations for the session and the driver. See
 * ring.h. */
#include "choose.h"
#include "op.h"

#include "../base/host_id.h"

#include <stdlib.h>

struct engine *engine_new(const struct driver *driver,
                          const struct engine_events *events,
                          uint32_t pool_size, pccl_ns deadline)
{
    struct engine *e = calloc(1, sizeof *e); /* not touched before it is used */
    if (!e || engine_init(e, driver, events, pool_size, deadline)) return e;
    engine_delete(e);
    return NULL;
}

void engine_delete(struct engine *e)
{
    if (!e) return;
    engine_free(e);
    free(e);
}

struct links *engine_links(struct engine *e)
{
    return &e->links;
}

uint32_t engine_tree_width(const struct engine *e)
{
    return e->tree_width;
}

/* In a scope nothing takes the fast path, whose figures the rows for shared
 * memory have. */
void engine_choose(const struct engine *e, bool scoped,
                   struct plan_request *way)
{
    way->one_host = !scoped && e->links.view->one_host != 0;
    way->shared_memory =
        way->one_host && host_shares_memory(e->links.view->one_host);
    way->boards = !scoped && e->boards_on;
    way->roomy = e->roomy;
    if (!scoped) way->world = e->links.view->size;
    (void)choose_way(way);
}

/* ------------------------------------------------------------ an operation */

enum op_phase op_phase(const struct op *op)
{
    return op->phase;
}

bool op_is_active(const struct op *op)
{
    return op->phase == PHASE_RUNNING || op->phase == PHASE_COMPLETE;
}

bool op_is_whole(const struct op *op)
{
    return op->whole;
}

enum plan_coll op_coll(const struct op *op)
{
    return op->plan.r.coll;
}

uint64_t op_mapped(const struct op *op)
{
    return op->mapped_bytes;
}

struct wire_op op_name(const struct op *op)
{
    return (struct wire_op){
        .scope = op->scope_number, .tag = op->r.tag, .seq = op->seq};
}

const uint64_t *op_scope(const struct op *op, uint32_t *count)
{
    *count = op->r.member_count;
    return op->scope;
}

void op_set_loss(struct op *op, uint32_t epoch)
{
    op->loss = epoch;
}

void op_set_verdict(struct op *op, enum op_verdict verdict)
{
    op->verdict = verdict;
}

enum op_verdict op_verdict_of(const struct op *op)
{
    return op->verdict;
}

void op_set_dispute(struct op *op, uint32_t number)
{
    op->dispute = number;
}

uint32_t op_dispute(const struct op *op)
{
    return op->dispute;
}

bool op_is_awaited(const struct op *op)
{
    return op->awaited;
}

void op_set_awaited(struct op *op, bool awaited)
{
    op->awaited = awaited;
}

void engine_fail(struct engine *e, struct op *op, bool again)
{
    if (again || !op->mismatch) e->out.fault(e->out.user, FAULT_FAIL, op, 0);
    op->mismatch = op->fails = true;
}

bool op_fails(const struct op *op)
{
    return op->fails;
}

struct op_outcome engine_take(struct engine *e, struct op *op)
{
    PCCL_ASSERT(op->phase == PHASE_DONE);
    struct op_outcome out = {.result = op->result,
                             .contributors = op->contributors,
                             .loss = op->loss,
                             .tx_bytes = op->tx_bytes,
                             .rx_bytes = op->rx_bytes};
    engine_release(e, op);
    return out;
}

/* --------------------------------------------------------- all operations */

uint32_t engine_op_end(const struct engine *e)
{
    return e->op_end;
}

struct op *engine_op(struct engine *e, uint32_t number)
{
    struct op *op = &e->ops[number];
    return op->phase == PHASE_FREE ? NULL : op;
}

bool engine_is_full(const struct engine *e, bool scoped)
{
    return e->op_free == OPS_MAX || (scoped && e->scoped == SCOPED_MAX);
}

void engine_set_defers(struct engine *e, bool defers)
{
    e->defers = defers;
}

void engine_set_goal(struct engine *e, const struct op *op)
{
    e->goal = op;
}

/* ---------------------------------------------------------- the fast path */

/* The endpoints of the last operation. */
static const struct fast_endpoint *fast_endpoints(const struct engine *e,
                                                  uint32_t *count)
{
    const struct fast_path *q = &e->fast;
    *count = q->spoked ? q->star.count : q->ep_count;
    return q->spoked ? q->star.eps : q->eps;
}

uint32_t fast_conn(const struct engine *e, uint32_t i)
{
    uint32_t count;
    const struct fast_endpoint *eps = fast_endpoints(e, &count);
    return i < count ? eps[i].number : NO_CONN;
}

uint64_t fast_written(struct engine *e)
{
    uint64_t written = e->fast.written;
    e->fast.written = 0;
    return written;
}

void fast_bytes(const struct engine *e, uint64_t *tx, uint64_t *rx)
{
    uint32_t count;
    const struct fast_endpoint *eps = fast_endpoints(e, &count);
    *tx = *rx = 0;
    for (uint32_t i = 0; i < count; i++) {
        *tx += eps[i].sends;
        *rx += eps[i].recvs;
    }
}
