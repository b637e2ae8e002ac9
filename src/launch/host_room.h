/* host_room.h - whether a host has room for its ranks, before any is started.
 */
#ifndef PCCL_LAUNCH_HOST_ROOM_H
#define PCCL_LAUNCH_HOST_ROOM_H

#include "launch_base.h"

/* Descriptors: for a rank in the process that starts it, for both outputs; for
 * an agent in its launcher. */
enum { RANK_DESCRIPTORS = 2, AGENT_DESCRIPTORS = 3 };

/* The ranks of a host. */
struct host_load {
    uint32_t ranks;
    uint32_t inputs; /* of them, whose input is a pipe of this process, too */
};

/* What there may be on a host. */
struct host_room {
    uint64_t descriptors; /* more, in this process */
    uint64_t memory;      /* bytes */
};

struct host_room host_room_here(void);

/* This process may start these ranks here. False: error says what they need and
 * what there is. */
bool host_has_room(const struct host_room *room, const struct host_load *load,
                   char *error, size_t error_size);

#endif
