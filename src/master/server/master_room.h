/* master_room.h - how many peers the coordinator's process has descriptors for
 * (rule M1). */
#ifndef PCCL_MASTER_ROOM_H
#define PCCL_MASTER_ROOM_H

#include "master_server.h"

/* Peers for which it may have descriptors, beside what is open, what it needs
 * otherwise, and strangers. False: fewer than the quorum; error says so. */
bool master_room(const struct master_server_options *o, uint32_t *peers,
                 char *error, size_t error_size);

#endif
