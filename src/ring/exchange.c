/* exchange.c - see exchange.h. Rules D18, D21d. */
#include "exchange.h"

#include "algorithm.h"

#include "../reduce/stream.h"

#include <string.h>

enum { SMALL_PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* The caller's block may lie in its vector, or it has no place for a result. */
static bool begin_block(struct engine *e, struct op *op, size_t size)
{
    if (size == 0) return true;
    uint8_t *block = pool_take(&e->links.pool, size);
    if (!block) return false;
    op->scratch = block;
    op->target = op->r.recvbuf;
    op->r.recvbuf = block;
    return true;
}

static void begin_vector(struct engine *e, struct op *op)
{
    const struct driver *d = &e->links.driver;
    size_t size = op_vector_size(op);
    if (!op_in_place(op) || op_is_quantized(op)) return;
    if (size < e->exchange_least || !d->may_exchange) return;
    if (!d->may_exchange(d->user, op->r.recvbuf, size)) return;
    /* Pages change places only where both lie alike. */
    size_t alike = size < HUGE_PAGE ? SMALL_PAGE : HUGE_PAGE;
    uint8_t *block = pool_take(&e->links.pool, size + alike);
    if (!block) return;
    size_t shift = ((uintptr_t)op->r.recvbuf - (uintptr_t)block) & (alike - 1);
    op->scratch = block;
    op->target = op->r.recvbuf;
    op->r.recvbuf = block + shift;
}

/* A sum that goes to a root comes to all where the algorithm knows no root. */
static bool lacks_place(const struct op *op)
{
    const struct plan_request *p = &op->plan.r;
    return p->coll == COLL_ALLREDUCE && p->flow == FLOW_TO_ROOT &&
           p->rank != p->root && !op->plan.algorithm->at_root;
}

bool exchange_begin(struct engine *e, struct op *op)
{
    if (op->plan.r.world < 2) return true;
    if (op->r.plan.coll == COLL_REDUCE_SCATTER)
        return begin_block(e, op, op_result_size(op));
    if (lacks_place(op)) return begin_block(e, op, op_vector_size(op));
    begin_vector(e, op);
    return true;
}

void exchange_commit(const struct engine *e, const struct op *op)
{
    const struct driver *d = &e->links.driver;
    if (!op->target) return;
    bool whole = op->r.plan.coll == COLL_ALLREDUCE;
    size_t size = whole ? op_vector_size(op) : op_result_size(op);
    uint8_t *from = op->r.recvbuf;
    uint8_t *to = op->target;
    size_t done = whole ? d->exchange(d->user, to, from, size) : 0;
    PCCL_ASSERT(done <= size);
    if (op->plan.uncached)
        stream_copy(to + done, from + done, size - done);
    else
        memcpy(to + done, from + done, size - done);
}

void exchange_end(struct engine *e, struct op *op)
{
    if (!op->scratch) return;
    pool_give(&e->links.pool, op->scratch);
    op->r.recvbuf = op->target;
    op->target = NULL;
    op->scratch = NULL;
}
