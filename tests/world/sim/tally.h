/* tally.h - how many universes of each kind and size ran, and for how long. */
#ifndef PCCL_SIM_TALLY_H
#define PCCL_SIM_TALLY_H

#include "sim.h"

void tally_begin(void);
/* kind: of all universes, or NULL; rare: so are the ways of the cores. */
void tally_end(const struct sim_options *o, uint64_t steps, const char *kind,
               bool rare);
/* A line for each kind, feature and number of founding members. */
void tally_report(void);

#endif
