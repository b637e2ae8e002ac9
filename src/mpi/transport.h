/* transport.h - the seam to other members' queues: how messages travel over
 * the library beneath.
 *
 * Small ones are posted with their data and stay in the receiver's queue until
 * they are matched, as far as the sender's credit with that receiver goes. The
 * others announce themselves, and the receiver pulls the data when it has
 * matched the announcement. Rules of credit: partner.h. */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include "p2p.h"

/* Whether a message of this size would be announced first. */
bool transport_is_large(uint64_t member, MPI_Count size);
/* Sends bytes that are the caller's again at once, if they are few enough and
 * nothing is in their way. False: nothing has happened. *result: a noted
 * class. */
bool transport_send_now(uint64_t member, uint32_t context, int tag,
                        const void *bytes, MPI_Count size, int *result);
/* Sends a message, whose source, context and tag are in its entry, to the
 * member. Takes one reference over. With `wait` it is marked matched when its
 * receive is (large: when its data have been pulled), or with an error when
 * the member is lost. Returns a noted class. */
int transport_send(uint64_t member, struct message *message, bool large,
                   bool wait);
/* A message of another member has found its receive, or is thrown away. With
 * p2p's lock. */
void transport_matched(struct message *message);
/* A receive or a probe found no message of the member, or of any
 * (MATCH_ANY_SOURCE): what is held back for want of credit is to come. With
 * p2p's lock. */
void transport_want(uint64_t member);
/* Gets the data of an announced message; p2p_pulled follows. Returns a noted
 * class. */
int transport_pull(struct message *message, char *to);
/* Whether the member is lost; 0: whether any is. */
bool transport_lost(uint64_t member);

/* Moves messages, waiting that many milliseconds for one at most. True: it
 * waited, or something happened; false: there is nothing to wait with. */
bool transport_progress(int timeout_ms);
/* The same for a thread that is in no hurry: false if another one moves
 * messages already. */
bool transport_background(void);
/* Something needs transport_progress() for others to go on. */
bool transport_busy(void);
/* Tells the members that the context was revoked. */
void transport_tell_revoked(const struct group *members, uint32_t context);
/* Ends what is under way in the context with the error; true: some of it
 * cannot be ended yet, call again. */
bool transport_drop(uint32_t context, int error);
void transport_stop(void);

#endif
