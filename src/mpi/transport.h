/* transport.h - carries messages to other members through the public calls of
 * pccl.
 *
 * Small messages are eager: they carry their data and stay in the receiver's
 * queue until they match, within the sender's credit with that receiver. Others
 * are announced (rendezvous); the receiver pulls the data when the announcement
 * has matched. Rules of credit: partner.h. */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include "p2p.h"

/* Whether a message of this size uses rendezvous. */
bool transport_is_large(uint64_t member, MPI_Count size);
/* Sends a small message from a buffer that the caller may reuse at once, if no
 * queued message is before it. False: nothing was sent. *result: a noted
 * class. */
bool transport_send_now(uint64_t member, uint32_t context, int tag,
                        const void *bytes, MPI_Count size, int *result);
/* Sends a message to the member; its entry has source, context and tag. Takes
 * one reference over. With `wait` it is marked as matched when its receive
 * matches (large: when its data were pulled), or with an error when the member
 * is lost. Returns a noted class. */
int transport_send(uint64_t member, struct message *message, bool large,
                   bool wait);
/* A message of another member has matched or is discarded. The caller holds
 * p2p's lock. */
void transport_matched(struct partner *partner, uint64_t cookie,
                       uint32_t charged, bool wants_ack);
/* A receive or a probe found no message of the member, or of any
 * (MATCH_ANY_SOURCE): requests messages that are held back for lack of credit.
 * The caller holds p2p's lock. */
void transport_want(uint64_t member);
/* Pulls the data of an announced message; p2p_pulled follows. Returns a noted
 * class. */
int transport_pull(struct message *message, char *to);
/* Why this process is out of the run; NULL: it is not. */
const char *transport_gone(void);
/* Whether the member is lost; 0: whether any member is. */
bool transport_lost(uint64_t member);

/* Makes progress on messages; waits that many milliseconds for one at most.
 * True: it waited, or there was an event; false: it cannot wait. */
bool transport_progress(int timeout_ms);
/* Progress without urgency: false if another thread makes it already. */
bool transport_background(void);
/* Whether other members need transport_progress() to go on. */
bool transport_busy(void);
/* Notifies the members of the revocation of a context. */
void transport_notify_revoked(const struct group *members, uint32_t context);
/* Ends operations of the context with the error; true: some cannot be ended
 * yet, call again. */
bool transport_drop(uint32_t context, int error);
void transport_stop(void);
/* No progress is made any more. */
void transport_end(void);

#endif
