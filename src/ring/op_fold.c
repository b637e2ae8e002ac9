/* op_fold.c - the results of small all-reduces. Pure. */
#include "op.h"

#include "../reduce/reduce.h"

#include <string.h>

/* Folds an exchange or a star in rank order; everyone does the same sums (rule
 * D3). */
void op_fold(struct op *op)
{
    const struct plan *p = &op->plan;
    size_t size = (size_t)plan_vector_size(p);
    size_t count = (size_t)p->r.count;
    op->folded = true;
    if (size == 0) return;
    if (op_is_quantized(op)) {
        op_quant_fold(op);
        return;
    }
    /* Out of place the own vector stays where it is; in place the copy is
     * also what an abort restores. */
    const uint8_t *own = op->r.send;
    if (op_in_place(op)) {
        memcpy(op->slots + p->r.rank * size, op->r.send, size);
        own = op->slots + p->r.rank * size;
    }
    const uint8_t *sum = p->r.rank == 0 ? own : op->slots;
    for (uint32_t r = 1; r < p->r.world; r++) {
        const uint8_t *x = r == p->r.rank ? own : op->slots + r * size;
        reduce_apply(op->r.dtype, op->r.redop, op->r.recv, sum, x, count);
        sum = op->r.recv;
    }
    if (op->r.redop == REDOP_AVG)
        reduce_divide(op->r.dtype, op->r.recv, count, p->r.world);
}

void op_fold_begin(struct op *op)
{
    const struct plan *p = &op->plan;
    size_t size = (size_t)plan_vector_size(p);
    if (!op->folded && op_in_place(op) && size > 0)
        memcpy(op->slots + p->r.rank * size, op->r.send, size);
    op->folded = true;
}

void op_reduce_two(struct op *op, size_t at, const uint8_t *bytes, size_t size)
{
    uint32_t rank = op->plan.r.rank;
    size_t count = size / op->plan.r.element;
    if (count == 0) return;
    const uint8_t *own = (const uint8_t *)op->r.send + at;
    uint8_t *to = (uint8_t *)op->r.recv + at;
    reduce_apply(op->r.dtype, op->r.redop, to, rank == 0 ? own : bytes,
                 rank == 0 ? bytes : own, count);
    if (op->r.redop == REDOP_AVG) reduce_divide(op->r.dtype, to, count, 2);
}

/* Center of a star: all vectors are here. Who wants to know that all hold the
 * result learns it from the center, which then asks all (rule D11). */
void op_fold_star(struct engine *e, struct op *op)
{
    for (uint32_t i = 0; i < op->ep_count; i++) {
        if (op->eps[i].received < op->eps[i].recvs) return;
    }
    op_fold(op);
    for (uint32_t i = 0; i < op->ep_count; i++) {
        if (op->eps[i].wants_done) op->confirm = true;
        link_dirty(&e->links, op->eps[i].link);
    }
}

/* The result came into a slot: the input is kept in the other one. */
void op_take_result(struct op *op)
{
    const struct plan *p = &op->plan;
    size_t size = (size_t)plan_vector_size(p);
    op->folded = true;
    if (!op_in_place(op) || size == 0) return;
    memcpy(op->slots + p->r.rank * size, op->r.recv, size);
    memcpy(op->r.recv, op->slots + p->center * size, size);
}
