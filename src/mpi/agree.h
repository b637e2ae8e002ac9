/* agree.h - messages of the library itself, and what processes agree on that
 * have no communicator of their own yet. */
#ifndef AGREE_H
#define AGREE_H

#include "mpi_comm.h"

/* Sends at most PRIVATE_MAX bytes, which nobody waits for. Returns a noted
 * class. */
enum { PRIVATE_MAX = 48 * 1024 };
int private_send(uint64_t to, uint32_t context, int tag, const void *data,
                 size_t size);
/* Blocks until the message comes or its sender is lost. More bytes than there
 * is room for: MPI_ERR_TRUNCATE. */
int private_receive(uint64_t from, uint32_t context, int tag, void *data,
                    size_t room, size_t *size);

/* A context id that none of the group has used. Collective over the group,
 * whose members name the same messages with context (one of CHANNEL_*) and tag.
 * They go through the first member, which tells all others if one is lost: with
 * tags of pccl, that count operations, overlapping groups would disagree on how
 * many there were. Returns a noted class. */
int agree_context(const struct group *group, uint32_t context, int tag,
                  uint32_t *out);

/* An intercommunicator of the communicator's group and one that its leader
 * knows (NULL: it knows none), with messages as above. Collective over both
 * groups. Returns a noted class. */
int inter_from_groups(struct comm *comm, int leader, const struct group *other,
                      uint32_t bridge, int tag, MPI_Comm *out);

#endif
