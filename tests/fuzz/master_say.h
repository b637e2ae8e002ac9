/* master_say.h - what a member says of a partial all-reduce, and who is to be
 * relayed, for fuzz_master.c. */
#ifndef PCCL_FUZZ_MASTER_SAY_H
#define PCCL_FUZZ_MASTER_SAY_H

#include "../../src/master/master.h"
#include "fuzz.h"

enum { PARTIAL_IDS = 8 };

/* A message that fits the rounds of the member's group, but for a quirk now and
 * then. */
void master_partial_fill(const struct master *m, uint32_t link,
                         struct fuzz_input *in, struct wire_msg *msg,
                         uint64_t ids[PARTIAL_IDS], uint8_t *set);

/* Arguments of an operation that members may disagree on. Those with names
 * are valid until the next call. */
void master_args_fill(struct fuzz_input *in, uint8_t coll,
                      struct wire_args *args);

/* The first message of a connection that the coordinator is to relay, between
 * the ends of a pair that has none, or of any. */
void master_relay_fill(const struct master *m, struct fuzz_input *in,
                       struct wire_msg *msg);

#endif
