/* backup.c - see backup.h. Rules F5 and F6. */
#include "backup.h"

#include "../reduce/stream.h"

#include <string.h>

bool backup_take(struct engine *e, const struct op *op, struct backup *b,
                 uint32_t count)
{
    if (!op_in_place(op)) return true;
    b->bytes = pool_take(&e->links.pool, op_vector_size(op) + 1);
    b->saved = pool_take(&e->links.pool, count / 8 + 1);
    if (!b->bytes || !b->saved) return false;
    memset(b->saved, 0, count / 8 + 1);
    return true;
}

void backup_give(struct engine *e, struct backup *b)
{
    pool_give(&e->links.pool, b->bytes);
    pool_give(&e->links.pool, b->saved);
    *b = (struct backup){NULL, NULL};
}

void backup_save(const struct op *op, struct backup *b, uint32_t k,
                 const struct plan_xfer *x)
{
    if (!b->bytes || x->size == 0) return;
    struct plan_xfer y = *x;
    op_to_elements(op, &y);
    uint8_t *to = b->bytes + y.offset;
    const uint8_t *from = (uint8_t *)op->r.recvbuf + y.offset;
    if (op->plan.uncached)
        stream_copy(to, from, y.size); /* read after a failure only */
    else
        memcpy(to, from, y.size);
    op_bit_set(b->saved, k);
}

bool backup_has(const struct backup *b, uint32_t k)
{
    return b->bytes && op_bit_get(b->saved, k);
}

void backup_restore(const struct op *op, const struct backup *b,
                    const struct plan_xfer *x)
{
    struct plan_xfer y = *x;
    op_to_elements(op, &y);
    memcpy((uint8_t *)op->r.recvbuf + y.offset, b->bytes + y.offset, y.size);
}
