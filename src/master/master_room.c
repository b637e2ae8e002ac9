/* master_room.c - see master_room.h. */
#include "master_room.h"

#include "../base/descriptors.h"

enum { STRANGERS_ROOM = 32 }; /* of strangers, and what is open for a moment */

bool master_room(const struct master_server_options *o, uint32_t *peers,
                 char *error, size_t error_size)
{
    uint64_t left, used = descriptors_used(&left);
    uint64_t other = used + o->reserve + STRANGERS_ROOM;
    *peers = PEERS_MAX;
    if (left >= o->reserve + STRANGERS_ROOM + (uint64_t)PEERS_MAX) return true;
    *peers = left > o->reserve + STRANGERS_ROOM
                 ? (uint32_t)(left - o->reserve - STRANGERS_ROOM)
                 : 0;
    if (*peers > 0 && *peers >= o->quorum) return true;
    uint32_t members = o->quorum > 0 ? o->quorum : 1;
    snprintf(error, error_size,
             "a run of %u members needs %llu descriptors in the process of "
             "its coordinator, and there may be %llu (ulimit -n)",
             members, (unsigned long long)(other + members),
             (unsigned long long)(used + left));
    return false;
}
