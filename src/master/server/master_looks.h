/* master_looks.h - silent peers that the machine asks about (rule M10). */
#ifndef PCCL_MASTER_LOOKS_H
#define PCCL_MASTER_LOOKS_H

#include "../../base/host.h"
#include "../../base/wire.h"

struct master_looks {
    struct master_look {
        uint64_t id, host;
        uint32_t pid;
    } list[PEERS_MAX];
    uint32_t count;
    uint64_t host; /* this one */
    struct host_watch watch;
};

void looks_add(struct master_looks *l, const struct wire_member *peer);
/* NULL: no other one. A peer of this host has been looked at: *seen. */
const struct master_look *looks_take(struct master_looks *l, pccl_ns now,
                                     enum evidence *seen);

#endif
