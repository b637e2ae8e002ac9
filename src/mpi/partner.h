/* partner.h - flow control: order and credit of the messages posted to each
 * other member. Used by transport.c.
 *
 * X1  Each posted message is charged to its sender's credit with the receiver:
 *     an eager message costs its data and CHARGE, an announced one ANNOUNCED.
 *     The receiver returns the credit when the message has matched or is
 *     discarded. So the memory that a member keeps for others is bounded.
 * X2  A message without credit is announced, and the sender holds back its
 *     announcement. Later messages to that member stay behind it. Control
 *     letters (all other kinds) need no credit and may overtake messages.
 * X3  A sender that holds back messages sends HELD, and again whenever new
 *     credit does not suffice. A receiver with an unmatched receive or probe
 *     that the sender might satisfy replies with credit in advance (GRANT). It
 *     is for announcements only, because a program may receive the last message
 *     first. It expires when the same amount has been returned. */
#ifndef PARTNER_H
#define PARTNER_H

#include "p2p.h"

enum letter_kind {
    LETTER_EAGER,   /* carries the data */
    LETTER_LARGE,   /* the data are to be pulled under the cookie */
    LETTER_ACK,     /* the message with the cookie was matched */
    LETTER_CREDIT,  /* the receiver returns `size` bytes of credit */
    LETTER_REVOKED, /* the context was revoked */
    LETTER_HELD,    /* messages are held back for lack of credit */
    LETTER_GRANT    /* `size` more bytes may be announced */
};

/* Header of a posted message. All members have the same byte order: the ABI has
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
    atomic_uint queued;     /* letters queued here */
    atomic_bool lost;
    /* Guarded by the lock: */
    struct queue controls, messages;
    uint32_t held;     /* of the messages: without credit yet */
    long long granted; /* credit in advance */
    struct partner *queuing_next;
    bool queuing; /* in the list of partners with queued letters */
    /* Guarded by p2p's lock: */
    uint64_t owed; /* credit not given back yet */
    bool holds;    /* it has sent HELD */
};

/* Cost of a message (X1). */
uint32_t partner_charge(const struct letter *letter);

/* Takes no lock. NULL: no memory. */
struct partner *partner_of(uint64_t id);

void partners_lock(void);
void partners_unlock(void);

/* Whether an eager message of this size may be sent now. */
bool partner_has_credit(struct partner *partner, uint64_t size);
/* Posts an eager message at once, without the lock; false: a queued message is
 * before it, and nothing was sent. */
bool partner_send_now(struct partner *partner, const struct letter *letter,
                      const void *bytes, pcclResult_t *result);
/* The caller holds the lock. Posts a message or queues it. `message` has the
 * data and a reference, or is NULL. On failure the caller keeps both. */
pcclResult_t partner_send(struct partner *partner, const struct letter *letter,
                          struct message *message);
/* Sends a control letter; takes the lock. */
void partner_send_control(struct partner *partner, const struct letter *letter);
/* Posts queued letters that can leave now. */
void partners_flush(void);
/* Whether letters are queued. */
bool partners_wait(void);

/* The caller holds p2p's lock: a message of the partner, with this charge, has
 * matched. */
void partner_matched(struct partner *partner, uint64_t charged);
/* The caller holds p2p's lock: the partner has sent HELD. */
void partner_holds(struct partner *partner);
/* The caller holds p2p's lock: grants credit in advance to the member, or to
 * any member (MATCH_ANY_SOURCE), if it holds messages back. */
void partners_grant(uint64_t id);
/* The receiver has returned or granted credit. */
void partner_credited(struct partner *partner, uint64_t size);
void partner_granted(struct partner *partner, uint64_t size);

/* The caller holds the lock: drops queued messages of a context. */
void partners_drop(uint32_t context, uint32_t mask);
/* The caller holds p2p's lock: drops all queued letters and marks the partner
 * as lost; it holds back nothing any more. */
void partner_lose(struct partner *partner);
bool partners_some_lost(void);

#endif
