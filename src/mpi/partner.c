/* partner.c - order and credit of messages posted to each member. */
#include "partner.h"

#include "../base/limit.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    CREDIT_PART =
        MESSAGE_CREDIT / 8, /* returned at once, and granted in advance */
    CHARGE = 128,           /* per message, beside its data */
    ANNOUNCED = 1024,       /* per announced message */
};

/* A message that could not be posted yet. */
struct waiting {
    struct waiting *next;
    struct letter letter;
    struct message *message; /* holds a reference; NULL: no data */
    bool held;               /* for lack of credit */
};

/* Taken after p2p's lock, before pccl's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Partners are only added. */
static _Atomic(struct partner *) partners[256];
static struct partner *queuing; /* partners with queued letters */
static atomic_uint queued;      /* queued letters of all partners */
static atomic_bool some_lost;
static atomic_uint holders; /* partners that hold back messages */

void partners_lock(void)
{
    pthread_mutex_lock(&lock);
}

void partners_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

uint32_t partner_charge(const struct letter *letter)
{
    return letter->kind == LETTER_LARGE ? ANNOUNCED
                                        : (uint32_t)letter->size + CHARGE;
}

static struct partner *find(uint64_t id)
{
    struct partner *at = atomic_load(&partners[id % 256]);
    while (at && at->id != id) at = atomic_load(&at->next);
    return at;
}

struct partner *partner_of(uint64_t id)
{
    static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
    struct partner *partner = find(id);
    if (partner) return partner;
    pthread_mutex_lock(&adding);
    partner = find(id);
    if (!partner && (partner = calloc(1, sizeof *partner)) != NULL) {
        partner->id = id;
        atomic_init(&partner->next, atomic_load(&partners[id % 256]));
        atomic_store(&partners[id % 256], partner);
    }
    pthread_mutex_unlock(&adding);
    return partner;
}

/* -------------------------------------------------------------------- queues
 */

/* The caller holds the lock. */
static bool keep(struct partner *partner, struct queue *queue,
                 const struct letter *letter, struct message *message,
                 bool held)
{
    struct waiting *w = malloc(sizeof *w);
    if (!w) return false;
    *w = (struct waiting){NULL, *letter, message, held};
    if (queue->last)
        queue->last->next = w;
    else
        queue->first = w;
    queue->last = w;
    atomic_fetch_add(&partner->queued, 1);
    atomic_fetch_add(&queued, 1);
    if (!partner->queuing) {
        partner->queuing = true;
        partner->queuing_next = queuing;
        queuing = partner;
    }
    return true;
}

/* The caller holds the lock. Removes the letter behind `previous`, or the first
 * one. */
static void forget(struct partner *partner, struct queue *queue,
                   struct waiting *previous)
{
    struct waiting *w = previous ? previous->next : queue->first;
    if (previous)
        previous->next = w->next;
    else
        queue->first = w->next;
    if (queue->last == w) queue->last = previous;
    if (w->message) message_release(w->message);
    free(w);
    atomic_fetch_sub(&partner->queued, 1);
    atomic_fetch_sub(&queued, 1);
}

static pcclResult_t post_now(uint64_t to, const struct letter *letter,
                             const struct message *message)
{
    size_t size = message ? (size_t)message->size : 0;
    return pcclPostMessage(world.pccl, to, letter, sizeof *letter,
                           message ? message->payload : NULL, size);
}

/* The caller holds the lock. False: the remaining letters have to wait. */
static bool flush_queue(struct partner *partner, struct queue *queue)
{
    while (queue->first) {
        struct waiting *w = queue->first;
        if (post_now(partner->id, &w->letter, w->message) ==
            pcclPendingAsyncOps)
            return false;
        forget(partner, queue, NULL);
    }
    return true;
}

/* Charges the message, if there is credit for it. Granted credit is for
 * announcements only. The caller holds the lock. */
static bool charge(struct partner *partner, const struct letter *letter)
{
    long long cost = partner_charge(letter), limit = MESSAGE_CREDIT;
    if (letter->kind == LETTER_LARGE) limit += partner->granted;
    if (atomic_fetch_add(&partner->unmatched, cost) + cost <= limit)
        return true;
    atomic_fetch_sub(&partner->unmatched, cost);
    return false;
}

static void uncharge(struct partner *partner, const struct letter *letter)
{
    atomic_fetch_sub(&partner->unmatched, (long long)partner_charge(letter));
}

/* The caller holds the lock. Messages held back get credit in their order
 * (X2). */
static void flush(struct partner *partner)
{
    struct queue *messages = &partner->messages;
    if (!flush_queue(partner, &partner->controls)) return;
    while (messages->first) {
        struct waiting *w = messages->first;
        if (w->held && !charge(partner, &w->letter)) return;
        if (w->held) partner->held--;
        w->held = false;
        if (post_now(partner->id, &w->letter, w->message) ==
            pcclPendingAsyncOps)
            return;
        forget(partner, messages, NULL);
    }
}

void partners_flush(void)
{
    if (atomic_load(&queued) == 0) return;
    pthread_mutex_lock(&lock);
    for (struct partner **at = &queuing; *at;) {
        struct partner *partner = *at;
        flush(partner);
        if (atomic_load(&partner->queued) > 0) {
            at = &partner->queuing_next;
            continue;
        }
        *at = partner->queuing_next;
        partner->queuing = false;
    }
    pthread_mutex_unlock(&lock);
}

bool partners_wait(void)
{
    return atomic_load(&queued) > 0;
}

static void drop_from(struct partner *partner, struct queue *queue,
                      uint32_t context, uint32_t mask)
{
    struct waiting *previous = NULL;
    for (struct waiting *w = queue->first, *next; w; w = next) {
        next = w->next;
        if ((w->letter.context & mask) != context) {
            previous = w;
            continue;
        }
        if (w->held)
            partner->held--;
        else if (queue == &partner->messages)
            uncharge(partner, &w->letter);
        forget(partner, queue, previous);
    }
}

/* The caller holds p2p's lock. */
static bool lets_go(struct partner *partner)
{
    if (!partner->holds) return false;
    partner->holds = false;
    atomic_fetch_sub(&holders, 1);
    return true;
}

void partner_lose(struct partner *partner)
{
    (void)lets_go(partner);
    pthread_mutex_lock(&lock);
    drop_from(partner, &partner->controls, 0, 0);
    drop_from(partner, &partner->messages, 0, 0);
    atomic_store(&partner->lost, true);
    atomic_store(&some_lost, true);
    pthread_mutex_unlock(&lock);
}

void partners_drop(uint32_t context, uint32_t mask)
{
    for (struct partner *at = queuing; at; at = at->queuing_next)
        drop_from(at, &at->messages, context, mask);
}

bool partners_some_lost(void)
{
    return atomic_load(&some_lost);
}

/* ------------------------------------------------------------------- sending
 */

bool partner_has_credit(struct partner *partner, uint64_t size)
{
    long long cost = (long long)size + CHARGE;
    pthread_mutex_lock(&lock);
    bool has = partner->held == 0 &&
               atomic_load(&partner->unmatched) + cost <= MESSAGE_CREDIT;
    pthread_mutex_unlock(&lock);
    return has;
}

bool partner_send_now(struct partner *partner, const struct letter *letter,
                      const void *bytes, pcclResult_t *result)
{
    if (atomic_load(&partner->queued) > 0 || !charge(partner, letter))
        return false;
    *result = pcclPostMessage(world.pccl, partner->id, letter, sizeof *letter,
                              bytes, (size_t)letter->size);
    if (*result == pcclSuccess) return true;
    uncharge(partner, letter);
    return *result != pcclPendingAsyncOps;
}

static void say_held(struct partner *partner)
{
    struct letter letter = {.kind = LETTER_HELD};
    if (!partner->controls.first &&
        post_now(partner->id, &letter, NULL) != pcclPendingAsyncOps)
        return;
    (void)keep(partner, &partner->controls, &letter, NULL, false);
}

pcclResult_t partner_send(struct partner *partner, const struct letter *letter,
                          struct message *message)
{
    struct queue *queue = &partner->messages;
    bool held = partner->held > 0 || !charge(partner, letter);
    pcclResult_t result = pcclPendingAsyncOps;
    if (!held && !queue->first) result = post_now(partner->id, letter, message);
    if (result == pcclSuccess) {
        if (message) message_release(message);
        return result;
    }
    if (result == pcclPendingAsyncOps) {
        if (keep(partner, queue, letter, message, held)) {
            if (held && partner->held++ == 0) say_held(partner);
            return pcclSuccess;
        }
        result = pcclInternalError;
    }
    if (!held) uncharge(partner, letter);
    return result;
}

void partner_send_control(struct partner *partner, const struct letter *letter)
{
    pthread_mutex_lock(&lock);
    if (partner->controls.first ||
        post_now(partner->id, letter, NULL) == pcclPendingAsyncOps)
        (void)keep(partner, &partner->controls, letter, NULL, false);
    pthread_mutex_unlock(&lock);
}

/* -------------------------------------------------------------------- credit
 */

void partner_matched(struct partner *partner, uint64_t charged)
{
    partner->owed += charged;
    if (partner->owed < CREDIT_PART) return;
    struct letter credit = {.kind = LETTER_CREDIT, .size = partner->owed};
    partner->owed = 0;
    partner_send_control(partner, &credit);
}

void partner_holds(struct partner *partner)
{
    if (!partner->holds) atomic_fetch_add(&holders, 1);
    partner->holds = true;
}

static void grant(struct partner *partner)
{
    if (!lets_go(partner)) return;
    struct letter letter = {.kind = LETTER_GRANT, .size = CREDIT_PART};
    partner_send_control(partner, &letter);
}

void partners_grant(uint64_t id)
{
    if (atomic_load(&holders) == 0) return;
    for (int i = 0; i < 256; i++) {
        struct partner *at = atomic_load(&partners[i]);
        for (; at; at = atomic_load(&at->next))
            if (id == MATCH_ANY_SOURCE || at->id == id) grant(at);
    }
}

/* The caller holds the lock. */
static void go_on(struct partner *partner)
{
    if (partner->held == 0) return;
    flush(partner);
    if (partner->held > 0) say_held(partner);
}

void partner_credited(struct partner *partner, uint64_t size)
{
    pthread_mutex_lock(&lock);
    /* Nobody returns more than it has got. */
    long long had = atomic_load(&partner->unmatched);
    if (size > (uint64_t)had) size = (uint64_t)had;
    atomic_fetch_sub(&partner->unmatched, (long long)size);
    if (had - (long long)size <= MESSAGE_CREDIT) partner->granted = 0;
    go_on(partner);
    pthread_mutex_unlock(&lock);
}

void partner_granted(struct partner *partner, uint64_t size)
{
    pthread_mutex_lock(&lock);
    /* A backlog takes many grants, none of them larger than the credit. */
    if (partner->held > 0 && size <= MESSAGE_CREDIT &&
        partner->granted < INT64_MAX / 2)
        partner->granted += (long long)size;
    go_on(partner);
    pthread_mutex_unlock(&lock);
}
