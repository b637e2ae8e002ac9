/* op_input.c - see op_input.h. Rules D18, D21d, F5, F6. */
#include "op_input.h"

#include "algorithm.h"
#include "op.h"

#include "../reduce/stream.h"

#include <string.h>

enum { SMALL_PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* ------------------------------------------------------------- the choice */

/* Pages change places only where both lie alike. */
static bool put_aside(struct engine *e, struct op *op, size_t alike)
{
    struct op_input *in = &op->input;
    size_t shift = 0;
    in->block = pool_take(&e->links.pool, in->size + alike);
    if (!in->block) return false;
    if (alike > 0)
        shift = ((uintptr_t)op->r.recvbuf - (uintptr_t)in->block) & (alike - 1);
    in->exchanges = alike > 0;
    in->aside = true;
    in->target = op->r.recvbuf;
    op->r.recvbuf = in->block + shift;
    return true;
}

static bool begin_saving(struct engine *e, struct op *op)
{
    struct op_input *in = &op->input;
    in->each = e->input_block;
    size_t bits = in->size / in->each / 8 + 1;
    in->block = pool_take(&e->links.pool, in->size);
    in->saved = pool_take(&e->links.pool, bits);
    if (in->saved) memset(in->saved, 0, bits);
    return in->block && in->saved;
}

static bool may_exchange(const struct engine *e, const struct op *op)
{
    const struct driver *d = &e->links.driver;
    return d->may_exchange &&
           d->may_exchange(d->user, op->r.recvbuf, op->input.size);
}

/* A sum that goes to a root comes to all where the algorithm knows no root. */
static bool lacks_place(const struct op *op)
{
    const struct plan_request *p = &op->plan.r;
    return p->coll == COLL_ALLREDUCE && p->flow == FLOW_TO_ROOT &&
           p->rank != p->root && !op->plan.algorithm->at_root;
}

/* The result replaces the input. */
static bool in_place(const struct op *op)
{
    const struct plan_request *p = &op->plan.r;
    bool has_result = !op->plan.algorithm->at_root || p->rank == p->root;
    return p->coll == COLL_ALLREDUCE && op->r.sendbuf == op->r.recvbuf &&
           has_result;
}

bool input_begin(struct engine *e, struct op *op)
{
    struct op_input *in = &op->input;
    /* The caller's block may lie in its vector, or it has no place for one. */
    bool aside = op->plan.r.coll == COLL_REDUCE_SCATTER || lacks_place(op);
    if (op->plan.r.world < 2 || (!aside && !in_place(op))) return true;
    in->size = aside ? (size_t)op_result_size(op) : op_vector_size(op);
    if (in->size == 0) return true;
    if (aside || in->size < e->input_large) return put_aside(e, op, 0);
    if (may_exchange(e, op))
        return put_aside(e, op, in->size < HUGE_PAGE ? SMALL_PAGE : HUGE_PAGE);
    if (op->plan.algorithm->announces_writes) return begin_saving(e, op);
    return put_aside(e, op, 0);
}

/* -------------------------------------------------------------- the writes */

static size_t size_of(const struct op_input *in, size_t at)
{
    return in->size - at < in->each ? in->size - at : in->each;
}

void input_overwrite(struct op *op, const uint8_t *to, size_t size)
{
    const struct op_input *in = &op->input;
    if (!in->saved || size == 0) return;
    const uint8_t *vector = op->r.recvbuf;
    if (to < vector || to >= vector + in->size) return;
    size_t first = (size_t)(to - vector) / in->each;
    size_t last = ((size_t)(to - vector) + size - 1) / in->each;
    for (size_t i = first; i <= last; i++) {
        size_t at = i * in->each;
        if (op_bit_get(in->saved, (uint32_t)i)) continue;
        if (op->plan.uncached) /* read after a failure only */
            stream_copy(in->block + at, vector + at, size_of(in, at));
        else
            memcpy(in->block + at, vector + at, size_of(in, at));
        op_bit_set(in->saved, (uint32_t)i);
    }
}

/* ----------------------------------------------------------------- the end */

void input_end(struct engine *e, struct op *op)
{
    struct op_input *in = &op->input;
    if (in->aside) op->r.recvbuf = in->target;
    pool_give(&e->links.pool, in->block);
    pool_give(&e->links.pool, in->saved);
    *in = (struct op_input){0};
}

void input_restore(const struct op *op)
{
    const struct op_input *in = &op->input;
    uint8_t *vector = op->r.recvbuf;
    for (size_t at = 0; in->saved && at < in->size; at += in->each) {
        if (op_bit_get(in->saved, (uint32_t)(at / in->each)))
            memcpy(vector + at, in->block + at, size_of(in, at));
    }
}

void input_commit(const struct engine *e, const struct op *op)
{
    const struct driver *d = &e->links.driver;
    const struct op_input *in = &op->input;
    uint8_t *from = op->r.recvbuf, *to = in->target;
    size_t done = 0;
    if (!to) return;
    if (in->exchanges) done = d->exchange(d->user, to, from, in->size);
    PCCL_ASSERT(done <= in->size);
    if (op->plan.uncached)
        stream_copy(to + done, from + done, in->size - done);
    else
        memcpy(to + done, from + done, in->size - done);
}
