/* rare.h - the rare ways of the cores in this universe (rare.c). */
#ifndef PCCL_SIM_RARE_H
#define PCCL_SIM_RARE_H

#include "../../../src/base/buggify.h"

void rare_begin(uint64_t seed, bool on);
void rare_forbid(enum buggify_point point); /* not in this universe */
void rare_force(enum buggify_point point);  /* whenever it may be taken */
void rare_end(void);
/* How often, and in how many universes, each was taken. The number of those
 * that never were, if `all` must be. */
int rare_report(bool all);

#endif
