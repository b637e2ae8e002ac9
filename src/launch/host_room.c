/* host_room.c - see host_room.h. */
#include "host_room.h"

#include "../base/descriptors.h"
#include "../base/memory_supply.h"

#include <inttypes.h>
#include <stdio.h>

/* While a rank starts: the other ends of its pipes, /dev/null, a failure. */
enum { STARTING = 8 };

/* What a rank holds that has joined and computes nothing. */
#define RANK_MEMORY ((uint64_t)4 << 20)

struct host_room host_room_here(void)
{
    struct host_room room = {.memory = memory_supply("")};
    (void)descriptors_used(&room.descriptors);
    return room;
}

bool host_has_room(const struct host_room *room, const struct host_load *load,
                   char *error, size_t error_size)
{
    uint32_t ranks = load->ranks;
    uint64_t descriptors =
        (uint64_t)RANK_DESCRIPTORS * ranks + load->inputs + STARTING;
    if (ranks > 0 && room->descriptors < descriptors) {
        (void)snprintf(error, error_size,
                       "%" PRIu32 " ranks need %" PRIu64
                       " descriptors more in the process that starts them, "
                       "and there may be %" PRIu64 " (ulimit -n)",
                       ranks, descriptors, room->descriptors);
        return false;
    }
    if (room->memory / RANK_MEMORY >= ranks) return true;
    (void)snprintf(error, error_size,
                   "%" PRIu32 " ranks need %" PRIu64
                   " MiB of memory at the least, and the host or the control "
                   "group has %" PRIu64 " MiB left",
                   ranks, ranks * RANK_MEMORY >> 20, room->memory >> 20);
    return false;
}
