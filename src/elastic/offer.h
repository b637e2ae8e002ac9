/* offer.h - a member lets newcomers download its shared state while it trains
 * (rule S10): it answers guests, who are no members yet.
 *
 * Blocks are read where they lie, at the moment at which they are sent. Nothing
 * is copied, and the program may write meanwhile: a block may then be torn, or
 * of another revision than its neighbour. That does no harm, because the guest
 * believes nothing of it: its first synchronization compares all by hash. Pure.
 */
#ifndef PCCL_OFFER_H
#define PCCL_OFFER_H

#include "../link/links.h"
#include "state_list.h"

enum {
    OFFER_GUESTS_MAX = 4, /* at a time; others try another member */
    OFFER_WINDOW = 16,    /* unanswered questions of a guest */
};

/* With guests the rate is kept in steps of this time. */
#define OFFER_TICK (10 * PCCL_MS)

struct offer_terms {
    uint64_t revision;
    uint64_t rate;  /* bytes per second to all guests together; 0: no limit */
    uint32_t share; /* of a round, thousandths: later nothing is sent */
};

struct offer_question {
    uint32_t tensor, size;
    uint64_t offset, hash;
};

struct offer_guest {
    struct conn *conn; /* NULL: free */
    bool announce;     /* OFFER is due */
    struct offer_question questions[OFFER_WINDOW];
    uint32_t first, count;
    const struct state_device *device; /* of stage */
    uint8_t *stage; /* a block of a device's tensor on its way; or NULL */
};

struct offer {
    struct links *links;
    /* Something that is not to be slowed down is under way. */
    bool (*busy)(void *user);
    /* The number of guests has changed. */
    void (*changed)(void *user);
    void *user;
    const struct state_list *list; /* the caller's; NULL: nothing is offered */
    uint64_t structure;            /* its digest */
    struct offer_terms terms;
    pccl_ns began, round; /* this round; how long the last one took, or 0 */
    int64_t tokens; /* bytes that may be sent; one block may exceed them */
    pccl_ns filled_at;
    uint32_t guest_count;
    uint64_t sent; /* bytes of blocks, to all guests so far */
    struct offer_guest guests[OFFER_GUESTS_MAX];
};

struct offer_config {
    struct links *links;
    bool (*busy)(void *user);
    void (*changed)(void *user);
    void *user;
};

/* Zeroed before; the links are initialized. */
void offer_init(struct offer *o, const struct offer_config *config);

/* A round begins, in which these tensors are offered; the list of state_list.h
 * needs no hashes, and is used until the next call or offer_end(). */
void offer_begin(struct offer *o, const struct state_list *list,
                 const struct offer_terms *terms);
/* No thread reads the tensors after this. */
void offer_end(struct offer *o);

void offer_tick(struct offer *o);
static inline bool offer_serves(const struct offer *o)
{
    return o->guest_count > 0;
}

#endif
