/* scatter.h - reduce-scatter: an all-to-all of blocks into private memory, and
 * the sum of these blocks when all have come.
 *
 * Every byte travels once, straight to the member that adds it. The members see
 * an all-to-all (rules D2c, D4); what they must agree on beyond its sizes is in
 * the digest. The caller's receive buffer is written at the end only, so a
 * failed operation has touched nothing. */
#ifndef PCCL_SCATTER_H
#define PCCL_SCATTER_H

#include "../../include/pccl.h"
#include "../elastic/session.h"

struct scatter;

/* Makes r, the request of op among `world` members, that of the all-to-all;
 * r->keep is the scatter. False: no memory. */
bool scatter_begin(const pcclCollective_t *op, uint32_t world,
                   struct op_request *r);
/* All blocks are there: writes the result. Takes as long as it takes to read
 * them; touches nothing else. */
void scatter_finish(struct scatter *s);
void scatter_free(struct scatter *s); /* NULL is allowed */

#endif
