/* op_restore.c - the input of an in-place operation: kept until the operation
 * is over, and put back if it fails. Pure; rules F5 and F6, contract C2. */
#include "op.h"

#include "../reduce/stream.h"

#include <string.h>

bool op_in_place(const struct op *op)
{
    return op->r.plan.coll == COLL_ALLREDUCE && op->r.send == op->r.recv;
}

/* The first write to a place of an in-place buffer saves what stood there. */
void op_save(struct op *op, uint32_t k, const struct plan_xfer *x)
{
    if (!op->backup || x->size == 0) return;
    struct plan_xfer y = *x;
    op_to_elements(op, &y);
    uint8_t *to = op->backup + y.offset;
    const uint8_t *from = (uint8_t *)op->r.recv + y.offset;
    if (op->plan.streamed)
        stream_copy(to, from, y.size); /* nobody reads it but after a failure */
    else
        memcpy(to, from, y.size);
    op_bit_set(op->saved, k);
}

void op_save_piece(struct op *op, uint32_t piece)
{
    if (!op->backup || op_bit_get(op->saved, piece)) return;
    struct plan_xfer x;
    plan_piece_place(&op->plan, piece, &x);
    op_save(op, piece, &x);
}

void op_save_pieces(struct op *op)
{
    uint32_t count = op->plan.r.world * op->plan.segments;
    for (uint32_t i = 0; i < count; i++) op_save_piece(op, i);
}

/* Of an in-place exchange or star: where its input is kept. */
static uint8_t *own_copy(const struct op *op)
{
    if (op->backup) return op->backup;
    return op->slots + op->plan.r.rank * op_vector_size(op);
}

/* Puts the in-place buffer back to what it held at the launch (contract C2). */
void engine_restore(struct engine *e, struct op *op)
{
    (void)e;
    const struct plan *p = &op->plan;
    if (!op_in_place(op)) return;
    uint8_t *to = op->r.recv;
    if (op->folded) {
        size_t size = op_vector_size(op);
        if (size > 0) memcpy(to, own_copy(op), size);
    }
    bool pairwise = plan_has_pieces(p);
    if ((p->kind != PLAN_RING && !pairwise) || !op->backup) return;
    uint32_t count =
        pairwise ? p->r.world * p->segments : plan_recvs(p, p->prev);
    for (uint32_t k = 0; k < count; k++) {
        if (!op_bit_get(op->saved, k)) continue;
        struct plan_xfer x;
        if (pairwise)
            plan_piece_place(p, k, &x);
        else
            plan_recv(p, p->prev, k, &x);
        op_to_elements(op, &x);
        memcpy(to + x.offset, op->backup + x.offset, x.size);
    }
}

void engine_accept_donation(struct engine *e, uint64_t tag, uint32_t seq,
                            const uint8_t *bytes, uint32_t size)
{
    struct op *op = op_find(e, tag, seq);
    if (!op || op->phase != PHASE_RUNNING || !e->links.frozen) return;
    if (size != op_result_size(op)) return;
    conn_cut_sending(&e->links, op);
    if (op->turns)
        op_save_pieces(op);
    else if (op->slots && op_in_place(op) && !op->folded && size > 0)
        memcpy(own_copy(op), op->r.send, size);
    op->folded = op->slots != NULL;
    if (size > 0) memcpy(op->r.recv, bytes, size);
    op->phase = PHASE_COMPLETE;
}
