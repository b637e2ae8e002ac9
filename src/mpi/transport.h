/* transport.h - the seam to other members' queues. */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include "p2p.h"

/* Sends a message, whose source, context and tag are in its entry, to the
 * member. Takes one reference over. With `synchronous` the message is marked
 * matched when its receive is. Returns a noted class. */
int transport_send(uint64_t member, struct message *message, bool synchronous);

#endif
