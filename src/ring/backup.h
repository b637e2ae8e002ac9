/* backup.h - saves the parts that an in-place operation overwrites, transfer by
 * transfer, to restore them if it fails (contract C2). Pure. */
#ifndef PCCL_BACKUP_H
#define PCCL_BACKUP_H

#include "op.h"

struct backup {
    uint8_t *bytes; /* a vector; NULL: the operation is not in place */
    /* Bit set over transfers or pieces: those saved in `bytes`. */
    uint8_t *saved;
};

bool backup_take(struct engine *e, const struct op *op, struct backup *b,
                 uint32_t count);
void backup_give(struct engine *e, struct backup *b);
/* Saves the target of x, the transfer with number k, before the first write to
 * it. */
void backup_save(const struct op *op, struct backup *b, uint32_t k,
                 const struct plan_xfer *x);
bool backup_has(const struct backup *b, uint32_t k);
void backup_restore(const struct op *op, const struct backup *b,
                    const struct plan_xfer *x);

#endif
