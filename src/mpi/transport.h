/* transport.h - the seam to other members' queues: how messages travel over
 * the library beneath.
 *
 * Small ones are posted with their data and stay in the receiver's queue until
 * they are matched, as far as the sender's credit with that receiver goes. The
 * others announce themselves, and the receiver pulls the data when it has
 * matched the announcement. */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include "p2p.h"

/* Whether a message of this size would be announced first. */
bool transport_is_large(uint64_t member, MPI_Count size);
/* Sends a message, whose source, context and tag are in its entry, to the
 * member. Takes one reference over. With `wait` it is marked matched when its
 * receive is (large: when its data have been pulled), or with an error when
 * the member is lost. Returns a noted class. */
int transport_send(uint64_t member, struct message *message, bool large,
                   bool wait);
/* A message of another member has found its receive. */
void transport_matched(struct message *message);
/* Gets the data of an announced message; p2p_pulled follows. Returns a noted
 * class. */
int transport_pull(struct message *message, char *to);
/* Whether the member is lost; 0: whether any is. */
bool transport_lost(uint64_t member);

/* Moves messages, waiting that many milliseconds for one at most. True: it
 * waited, or something happened; false: there is nothing to wait with. */
bool transport_progress(int timeout_ms);
/* Something needs transport_progress() for others to go on. */
bool transport_busy(void);
void transport_stop(void);

#endif
