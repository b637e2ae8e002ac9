/* votes.h - what all members of all groups ask for together, and the answers
 * (rules V1 to V5). */
#ifndef PCCL_VOTES_H
#define PCCL_VOTES_H

#include "master.h"

/* A vote or a synchronization is the member's next, and no INSTALL has refused
 * it (rules V1, F6). */
bool votes_is_new(struct master *m, uint32_t link, const struct wire_msg *msg);
void votes_take(struct master *m, uint32_t link, const struct wire_msg *msg);
bool votes_all(const struct master *m, enum vote_kind kind);
/* To all who wait for it (rule V2). */
void votes_answer(struct master *m, enum vote_kind kind, uint8_t flag);
void votes_refuse_crossed(struct master *m); /* rule V5 */
/* The INSTALL of this epoch refuses the member's update, optimization or
 * synchronization, if it waits in one (rule F6). */
void votes_end(struct master *m, uint32_t link, uint32_t epoch);

#endif
