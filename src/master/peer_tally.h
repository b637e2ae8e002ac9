/* peer_tally.h - what the coordinator knows of all peers without looking at
 * each: so n answers, one after the other, cost n steps and not n times n. */
#ifndef PCCL_PEER_TALLY_H
#define PCCL_PEER_TALLY_H

#include "../base/base.h"
#include "../base/wire.h"

struct master;
struct master_peer;

/* The link at which the search for a peer that holds something up begins: the
 * last one that did. Any value will do. So n answers cost n steps, not n times
 * n.
 */
struct master_hints {
    uint32_t answers, ready, syncs;
    bool again; /* false: nobody asks again for a synchronization (rule H6) */
};

/* The members that do not leave, and of them those that have voted. */
struct master_tally {
    uint32_t members, votes[VOTE_KIND_COUNT];
};

/* The only writer of a peer's votes. */
void master_vote(struct master *m, uint32_t link, int kind, bool voted);
/* There is a peer of which this is true, with these arguments. */
typedef bool master_test(const struct master *m, const struct master_peer *p,
                         uint32_t group, uint32_t what);
bool master_finds(const struct master *m, uint32_t *hint, master_test *is,
                  uint32_t group, uint32_t what);

#endif
