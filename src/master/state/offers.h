/* offers.h - who offers the shared state to newcomers, and newcomers that have
 * downloaded it (rule S10). See master.h. */
#ifndef PCCL_OFFERS_H
#define PCCL_OFFERS_H

#include "../../base/wire.h"

struct master;

struct master_offer {
    bool on;      /* a member: newcomers may download from it */
    bool fetched; /* a newcomer: it has downloaded */
    uint64_t revision, max_stale;
    uint32_t guests; /* that download from it, as it says */
};

/* A member's OFFER, a newcomer's HELLO, a stranger's OFFERS_GET. */
void offers_take(struct master *m, uint32_t link, const struct wire_msg *msg);
void offers_hello(struct master *m, uint32_t link, const struct wire_msg *msg);
void offers_tell(struct master *m, uint32_t link, const struct wire_msg *msg);

#endif
