/* op_quant.c - all-reduces that send codes instead of elements. Pure.
 *
 * The plan's elements are blocks of codes. What a ring passes on, partial sums
 * and then results, is kept in `codes`; an exchange keeps everybody's vector in
 * the slots, this peer's own as well. The caller's buffers are read when their
 * first codes are made and when a partial sum comes by, and written only with
 * values made from codes that all members have (rule D8). */
#include "op.h"

#include <string.h>

void engine_quantize(struct op_request *r, enum quant_algorithm algorithm,
                     enum dtype code)
{
    assert(r->plan.coll == COLL_ALLREDUCE);
    r->quant = (struct quant){algorithm, r->dtype, code};
    r->count = r->plan.count;
    struct plan_request *p = &r->plan;
    p->count = (r->count + QUANT_BLOCK - 1) / QUANT_BLOCK;
    p->element = (uint32_t)quant_size(&r->quant, QUANT_BLOCK);
    p->spare =
        (uint32_t)(p->count * p->element - quant_size(&r->quant, r->count));
}

/* In a world of one nothing is sent, and the result is exact. */
bool op_is_quantized(const struct op *op)
{
    return op->r.quant.algorithm != QUANT_NONE && op->plan.kind != PLAN_LOCAL;
}

size_t op_vector_size(const struct op *op)
{
    if (op->r.quant.algorithm != QUANT_NONE)
        return (size_t)op->r.count * dtype_size(op->r.dtype);
    return (size_t)plan_vector_size(&op->plan);
}

/* From bytes of codes to bytes of the caller's vector. */
void op_to_elements(const struct op *op, struct plan_xfer *x)
{
    if (!op_is_quantized(op)) return;
    uint64_t block = op->plan.r.element;
    uint64_t first = x->offset / block * QUANT_BLOCK;
    uint64_t next = (x->offset + x->size + block - 1) / block * QUANT_BLOCK;
    if (first > op->r.count) first = op->r.count;
    if (next > op->r.count) next = op->r.count;
    size_t size = dtype_size(op->r.dtype);
    x->offset = first * size;
    x->size = (uint32_t)((next - first) * size);
}

bool op_quant_take(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    if (op_in_place(op)) {
        op->backup = pool_take(&e->links.pool, op_vector_size(op) + 1);
        if (!op->backup) return false;
    }
    if (p->kind != PLAN_RING) return true;
    op->codes = pool_take(&e->links.pool, plan_vector_size(p) + 1);
    return op->codes != NULL;
}

static uint8_t *own_slot(const struct op *op)
{
    return op->slots + op->plan.r.rank * plan_vector_size(&op->plan);
}

void op_quant_begin(struct op *op)
{
    if (op->plan.kind != PLAN_EXCHANGE) return;
    quant_encode(&op->r.quant, own_slot(op), op->r.send, (size_t)op->r.count);
}

/* The bytes of a transfer; in a ring one's own codes are made when the link
 * can take them, so that they are made while others travel. */
const uint8_t *op_quant_source(struct op *op, const struct plan_xfer *x)
{
    if (op->plan.kind == PLAN_EXCHANGE) return own_slot(op) + x->offset;
    if (x->space == SPACE_SEND) {
        struct plan_xfer y = *x;
        op_to_elements(op, &y);
        quant_encode(&op->r.quant, op->codes + x->offset,
                     (const uint8_t *)op->r.send + y.offset,
                     y.size / dtype_size(op->r.dtype));
    }
    return op->codes + x->offset;
}

/* A partial sum is sent as it is made, one step later; a place of `codes` is
 * written again only with results, which come after it has been sent. */
void op_quant_received(struct op *op, uint32_t k, const struct plan_xfer *x,
                       const uint8_t *body)
{
    if (x->size == 0) return;
    const struct quant *q = &op->r.quant;
    struct plan_xfer y = *x;
    op_to_elements(op, &y);
    size_t count = y.size / dtype_size(op->r.dtype);
    uint32_t divisor = x->action == ACTION_DIVIDE; /* the result: at least 1 */
    if (divisor == 1 && op->r.redop == REDOP_AVG) divisor = op->plan.r.world;
    if (x->action != ACTION_STORE)
        quant_combine(q, op->r.redop, op->codes + x->offset, body,
                      (const uint8_t *)op->r.send + y.offset, count, divisor);
    if (x->action == ACTION_REDUCE) return;
    op_save(op, k, x);
    quant_decode(q, (uint8_t *)op->r.recv + y.offset, op->codes + x->offset,
                 count);
}

void op_quant_fold(struct op *op)
{
    const struct plan *p = &op->plan;
    if (op_in_place(op)) memcpy(op->backup, op->r.send, op_vector_size(op));
    quant_fold(&op->r.quant, op->r.redop, op->r.recv, op->slots,
               (size_t)plan_vector_size(p), p->r.world, (size_t)op->r.count,
               op->r.redop == REDOP_AVG ? p->r.world : 1);
}
