/* fold.c - see fold.h. */
#include "fold.h"

#include "../reduce/reduce.h"

#include <string.h>

void fold_slots(struct op *op, uint8_t *slots)
{
    const struct plan *p = &op->plan;
    size_t size = fold_size(op);
    size_t count = (size_t)p->r.count;
    if (size == 0) return;
    /* Out of place, the own vector stays where it is. In place it is copied; an
     * abort also restores this copy. */
    const uint8_t *own = op->r.sendbuf;
    if (op_in_place(op)) {
        memcpy(slots + p->r.rank * size, op->r.sendbuf, size);
        own = slots + p->r.rank * size;
    }
    const uint8_t *sum = p->r.rank == 0 ? own : slots;
    for (uint32_t r = 1; r < p->r.world; r++) {
        const uint8_t *x = r == p->r.rank ? own : slots + r * size;
        reduce_apply(op->r.dtype, op->r.redop, op->r.recvbuf, sum, x, count);
        sum = op->r.recvbuf;
    }
    if (op->r.redop == REDOP_AVG)
        reduce_divide(op->r.dtype, op->r.recvbuf, count, p->r.world);
}
