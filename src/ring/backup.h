/* backup.h - what an in-place operation has overwritten so far, transfer by
 * transfer, to be put back if it fails (contract C2). Pure. */
#ifndef PCCL_BACKUP_H
#define PCCL_BACKUP_H

#include "op.h"

struct backup {
    uint8_t *bytes; /* a vector; NULL: the operation is not in place */
    uint8_t *saved; /* bit set over transfers or pieces: those in `bytes` */
};

bool backup_take(struct engine *e, const struct op *op, struct backup *b,
                 uint32_t count);
void backup_give(struct engine *e, struct backup *b);
/* Before the first write to the target of x, which has the number k. */
void backup_save(const struct op *op, struct backup *b, uint32_t k,
                 const struct plan_xfer *x);
bool backup_has(const struct backup *b, uint32_t k);
void backup_restore(const struct op *op, const struct backup *b,
                    const struct plan_xfer *x);

#endif
