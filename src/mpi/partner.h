/* partner.h - the other members that this one exchanges messages with: the
 * order and the credit of what is posted to them. Part of transport.c.
 *
 * K1  Each message that is posted is charged to its sender's credit with the
 *     receiver: its data and CHARGE where they come with it, ANNOUNCED where
 *     it is announced. The receiver gives it back when the message has found
 *     its receive or is thrown away. So what a member keeps for others is
 *     bounded, whatever they send.
 * K2  A message that there is no credit for is announced, and its announcement
 *     is held back at the sender. What is sent to that member later stays
 *     behind it. Words (all that is no message) need no credit and pass by.
 * K3  Who holds something back says so (HELD), anew each time it gets credit
 *     that does not end it. A receiver that has a receive or a probe without a
 *     message, which the sender might have, answers with credit in advance
 *     (GRANT), for announcements only: a program may receive the last message
 *     first. It is void when as much has been given back. */
#ifndef PARTNER_H
#define PARTNER_H

#include "p2p.h"

enum letter_kind {
    LETTER_EAGER,   /* with the data */
    LETTER_LARGE,   /* the data are to be pulled under the cookie */
    LETTER_ACK,     /* the message with the cookie was matched */
    LETTER_CREDIT,  /* `size` bytes of the receiver's queue are free again */
    LETTER_REVOKED, /* nothing more happens in the context */
    LETTER_HELD,    /* messages are held back for want of credit */
    LETTER_GRANT    /* `size` more may be announced */
};

/* The header of what is posted. All members have one byte order: the ABI has
 * no heterogeneous runs. */
struct letter {
    uint32_t kind, context;
    int32_t tag;
    uint32_t wants_ack;
    uint64_t size, cookie;
};

struct waiting;

struct queue {
    struct waiting *first, *last;
};

struct partner {
    _Atomic(struct partner *) next;
    uint64_t id;
    atomic_llong unmatched; /* bytes of ours that it has not matched */
    atomic_uint queued;     /* letters that wait here */
    atomic_bool lost;
    /* Guarded by the lock: */
    struct queue words, messages;
    uint32_t held;     /* of the messages: they have no credit yet */
    long long granted; /* beyond the credit */
    struct partner *queuing_next;
    bool queuing; /* in the list of those with letters that wait */
    /* Guarded by p2p's lock: */
    uint64_t owed; /* credit not given back yet */
    bool holds;    /* has said HELD */
};

/* What a message costs (K1). */
uint32_t partner_charge(const struct letter *letter);

/* Takes no lock. NULL: no memory. */
struct partner *partner_of(uint64_t id);

void partners_lock(void);
void partners_unlock(void);

/* Whether an eager message of this size may be sent now. */
bool partner_has_credit(struct partner *partner, uint64_t size);
/* Posts an eager message at once, without the lock; false: something is in its
 * way, and nothing has happened. */
bool partner_send_now(struct partner *partner, const struct letter *letter,
                      const void *bytes, pcclResult_t *result);
/* With the lock: posts a message, or keeps it for later. `message` brings the
 * data and a reference, or is NULL. On failure both stay the caller's. */
pcclResult_t partner_send(struct partner *partner, const struct letter *letter,
                          struct message *message);
/* The same for a word; takes the lock. */
void partner_tell(struct partner *partner, const struct letter *letter);
/* Posts what waits and can leave now. */
void partners_flush(void);
/* Whether something waits. */
bool partners_wait(void);

/* With p2p's lock: a message of the partner, charged as much, is matched. */
void partner_matched(struct partner *partner, uint64_t charged);
/* With p2p's lock: it has said HELD. */
void partner_holds(struct partner *partner);
/* With p2p's lock: gives credit in advance to the member, or to any member
 * (MATCH_ANY_SOURCE), if it holds something back. */
void partners_grant(uint64_t id);
/* The receiver gave credit back, or in advance. */
void partner_credited(struct partner *partner, uint64_t size);
void partner_granted(struct partner *partner, uint64_t size);

/* With the lock: forgets the messages of a context that wait. */
void partners_drop(uint32_t context, uint32_t mask);
/* Forgets what waits, and marks it lost. */
void partner_lose(struct partner *partner);
bool partners_some_lost(void);

#endif
