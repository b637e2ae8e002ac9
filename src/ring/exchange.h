/* exchange.h - a large all-reduce in place makes its result in scratch memory,
 * and the pages of the two change places when all members hold the result (rule
 * D18). So the input needs no copy (backup.h). A reduce-scatter makes its
 * block in scratch memory, too, and copies it (rule D21d). Pure. */
#ifndef PCCL_EXCHANGE_H
#define PCCL_EXCHANGE_H

#include "op.h"

enum {
    /* Less than this, a copy of the input stays in the caches. */
    EXCHANGE_LEAST = 4 << 20,
};

/* Has the algorithm write to scratch memory: of a reduce-scatter; and where the
 * driver can exchange the pages of the caller's buffer, if there is memory for
 * that. False: no memory for a reduce-scatter. */
bool exchange_begin(struct engine *e, struct op *op);
/* The result goes to the caller's buffer. */
void exchange_commit(const struct engine *e, const struct op *op);
/* The request has the caller's buffer again. */
void exchange_end(struct engine *e, struct op *op);

#endif
