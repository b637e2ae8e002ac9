/* agree.h - private messages of the library, and agreement between processes
 * that have no common communicator yet. */
#ifndef AGREE_H
#define AGREE_H

#include "mpi_comm.h"

/* Sends at most PRIVATE_MAX bytes; does not wait for the receiver. Returns a
 * noted class. */
enum { PRIVATE_MAX = 48 * 1024 };
int private_send(uint64_t to, uint32_t context, int tag, const void *data,
                 size_t size);
/* Blocks until the message arrives or its sender is lost. A message that is
 * larger than the buffer: MPI_ERR_TRUNCATE. */
int private_receive(uint64_t from, uint32_t context, int tag, void *data,
                    size_t room, size_t *size);

/* A context id that no member of the group has used. Collective over the group.
 * All members name the same messages by context (one of CHANNEL_*) and tag. The
 * messages go through the first member, which notifies all others of a loss.
 * (Tags of pccl count operations, so overlapping groups would disagree on their
 * number.) Returns a noted class. */
int agree_context(const struct group *group, uint32_t context, int tag,
                  uint32_t *out);

/* Makes an intercommunicator of the communicator's group and a group that its
 * leader knows (NULL: it knows none), with messages as above. Collective over
 * both groups. Returns a noted class. */
int inter_from_groups(struct comm *comm, int leader, const struct group *other,
                      uint32_t bridge, int tag, MPI_Comm *out);

#endif
