/* revoke.h - communicators that were revoked (MPIX_Comm_revoke).
 *
 * U1  A revoking member notifies every member. A member that receives its first
 *     notification of a revocation notifies every member again. So all live
 *     members receive it even if the first one dies half way, and no member has
 *     to be in a call.
 * U2  A revoked communicator starts no operation. Receives and sends in flight
 *     on it end with MPIX_ERR_REVOKED; unmatched messages are discarded.
 * U3  Notified members that take part in a collective in flight fail it for all
 *     its members (pcclFailCollective). A collective that all have completed by
 *     then is not affected.
 * U4  Agreement and shrinking have slots of their own and go on.
 * U5  A process uses a context id once, so a revocation is the number of a
 *     context. Processes that share no communicator may use the same number, so
 *     it counts only if its sender is a member. It may arrive before the
 *     communicator is made here, and messages may arrive after it is freed. So
 *     of the contexts without communicator the last 1024 that were revoked are
 *     remembered, with the sender.
 * U6  A member that gives up making a communicator which others may have made
 *     revokes it: nobody waits in it for a member that does not have it. */
#ifndef REVOKE_H
#define REVOKE_H

#include "mpi_comm.h"

bool comm_revoked(const struct comm *comm);
bool context_revoked(uint32_t context);
/* `sender` has sent a revocation (U1). */
void revoke_received(uint64_t sender, uint32_t context);
/* The communicator is revoked, as an operation on it shows. */
void revoke_learned(struct comm *comm);
/* This process does not make the communicator that the group agreed on (U6). */
void revoke_unmade(const struct group *group, uint32_t context);
/* Continues what was not possible at once (U2, U3); true: not finished. */
bool revoke_enforce(void);
/* A communicator with this context was made: applies an earlier revocation. */
void revoke_made(struct comm *comm);
/* It is freed. */
void revoke_forget(const struct comm *comm);
void revoke_stop(void);

#endif
