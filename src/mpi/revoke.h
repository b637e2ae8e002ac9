/* revoke.h - communicators that were revoked (MPIX_Comm_revoke).
 *
 * V1  Who revokes tells every member; who hears of it for the first time tells
 *     every member again. So all that live hear of it even if the first one
 *     dies half way, and nobody has to be in a call.
 * V2  A revoked communicator starts nothing; receives and sends under way on it
 *     end with MPIX_ERR_REVOKED, what was never received is thrown away.
 * V3  A collective under way is failed for all its members (pcclFailCollective)
 *     by those who have heard and are in it. One that all had completed by then
 *     stands.
 * V4  Agreement and shrinking have slots of their own and go on.
 *
 * Context ids are used once, so a revocation is the number of a context. It may
 * come before the communicator is made here. */
#ifndef REVOKE_H
#define REVOKE_H

#include "mpi_comm.h"

bool comm_revoked(const struct comm *comm);
bool context_revoked(uint32_t context);
/* Another member says so (V1). */
void revoke_heard(uint32_t context);
/* Does what could not be done at once (V2, V3); true: there is more. */
bool revoke_enforce(void);
/* A communicator with this context has been made: passes on what was heard
 * before. */
void revoke_made(const struct comm *comm);
void revoke_stop(void);

#endif
