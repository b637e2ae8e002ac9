/* master_room.c - see master_room.h. */
#include "master_room.h"

#include "../../base/descriptors.h"

/* For strangers, and what is open for a moment; of few descriptors a half. */
enum { STRANGERS_ROOM = 32 };

bool master_room(const struct master_server_options *o, uint32_t *peers,
                 char *error, size_t error_size)
{
    uint64_t left, used = descriptors_used(&left);
    uint64_t rest = left > o->reserve ? left - o->reserve : 0;
    uint64_t room = rest / 2 < STRANGERS_ROOM ? rest / 2 : STRANGERS_ROOM;
    *peers = rest - room < PEERS_MAX ? (uint32_t)(rest - room) : PEERS_MAX;
    uint32_t members = o->quorum > 0 ? o->quorum : 1;
    if (*peers >= members) return true;
    room = members < STRANGERS_ROOM ? members : STRANGERS_ROOM;
    snprintf(error, error_size,
             "a run of %u members needs %llu descriptors in the process of "
             "its coordinator, and there may be %llu (ulimit -n)",
             members, (unsigned long long)(used + o->reserve + room + members),
             (unsigned long long)(used + left));
    return false;
}
