/* master_partial.h - what a member says of a partial all-reduce, for
 * fuzz_master.c. */
#ifndef PCCL_FUZZ_MASTER_PARTIAL_H
#define PCCL_FUZZ_MASTER_PARTIAL_H

#include "../../src/master/master.h"
#include "fuzz.h"

enum { PARTIAL_IDS = 8, PARTIAL_LINKS = 8 };

/* A message that fits the rounds of the member's group, but for a quirk now and
 * then. */
void master_partial_fill(const struct master *m, uint32_t link,
                         struct fuzz_input *in, struct wire_msg *msg,
                         uint64_t ids[PARTIAL_IDS], uint8_t *set);

#endif
