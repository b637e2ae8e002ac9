/* collective_check.h - the arguments of a collective of pccl.h: what they mean,
 * and the errors that one member sees alone. Each check returns a text, or
 * NULL. Pure. */
#ifndef PCCL_COLLECTIVE_CHECK_H
#define PCCL_COLLECTIVE_CHECK_H

#include "../base/base.h"

#include "../../include/pccl.h"

pcclFlow_t collective_flow(const pcclCollective_t *op);
/* The blocks of all pairs are equally large. */
bool collective_is_even(const pcclCollective_t *op);
/* The root is an argument. */
bool collective_is_rooted(const pcclCollective_t *op);
/* A sum that goes to a root does not come to the others. */
bool collective_has_result(const pcclCollective_t *op, uint32_t rank);

/* Another collective may carry it out (ring/choose.h). */
bool collective_may_choose(const pcclCollective_t *op);

/* The buffers of an all-reduce, whose type is known, overlap without being
 * equal. */
bool collective_overlaps(const pcclCollective_t *op);

const char *collective_check(const pcclCollective_t *op, uint32_t world,
                             uint32_t rank);
/* After that. The arrays have `world` entries. */
const char *collective_check_flow(const pcclCollective_t *op, uint32_t world,
                                  uint32_t rank);
const char *collective_check_quantization(const pcclCollective_t *op,
                                          const pcclQuantizationOptions_t *q);

#endif
