/* transport.c - see transport.h. */
#include "transport.h"
#include "revoke.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    EAGER_MAX = 32 * 1024,    /* larger data are pulled */
    CREDIT = 4 * 1024 * 1024, /* bytes unmatched at one receiver */
    CREDIT_PART = CREDIT / 8, /* given back at once */
    CHARGE = 128,             /* of any message, beside its data */
    STOP_TURNS = 2000, /* milliseconds for what could not be posted yet */
};

enum letter_kind {
    LETTER_EAGER,  /* with the data */
    LETTER_LARGE,  /* the data are to be pulled under the cookie */
    LETTER_ACK,    /* the message with the cookie was matched */
    LETTER_CREDIT, /* `size` bytes of the receiver's queue are free again */
    LETTER_REVOKED /* nothing more happens in the context */
};

/* The header of what is posted. All members have one byte order: the ABI has
 * no heterogeneous runs. */
struct letter {
    uint32_t kind, context;
    int32_t tag;
    uint32_t wants_ack;
    uint64_t size, cookie;
};

/* One other member. */
struct partner {
    struct partner *next;
    uint64_t id;
    uint64_t unmatched; /* bytes of ours that it has not matched */
    uint64_t owed;      /* credit not given back yet */
    bool lost;
};

/* What the library's queue had no room for. */
struct waiting {
    struct waiting *next;
    uint64_t to;
    struct letter letter;
    struct message *message; /* one reference; NULL: no data */
};

/* Guards what follows. Taken after p2p's lock, before the library's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct partner *partners[256];
static bool some_lost;
static struct waiting *backlog, **backlog_end = &backlog;
static struct message *outgoing; /* until acknowledged or pulled */
static struct message *incoming; /* being pulled */
static uint64_t last_cookie;
/* One thread at a time takes events, so that they stay in order. */
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;

static struct partner *partner_of(uint64_t id)
{
    struct partner **slot = &partners[id % 256];
    while (*slot && (*slot)->id != id) slot = &(*slot)->next;
    if (*slot) return *slot;
    struct partner *partner = calloc(1, sizeof *partner);
    if (!partner) return NULL;
    partner->id = id;
    *slot = partner;
    return partner;
}

bool transport_lost(uint64_t member)
{
    pthread_mutex_lock(&lock);
    struct partner *partner = some_lost && member ? partner_of(member) : NULL;
    bool lost = member ? partner && partner->lost : some_lost;
    pthread_mutex_unlock(&lock);
    return lost;
}

bool transport_is_large(uint64_t member, MPI_Count size)
{
    if (size > EAGER_MAX) return true;
    pthread_mutex_lock(&lock);
    const struct partner *partner = partner_of(member);
    bool large =
        !partner || partner->unmatched + (uint64_t)size + CHARGE > CREDIT;
    pthread_mutex_unlock(&lock);
    return large;
}

/* ------------------------------------------------------------------- posting
 */

static bool has_backlog(uint64_t to)
{
    for (const struct waiting *w = backlog; w; w = w->next)
        if (w->to == to) return true;
    return false;
}

static pcclResult_t post_now(uint64_t to, const struct letter *letter,
                             const struct message *message)
{
    size_t size = message ? (size_t)message->size : 0;
    return pcclPostMessage(world.pccl, to, letter, sizeof *letter,
                           message ? message->payload : NULL, size);
}

/* With the lock: posts, or keeps for later. `message` brings the data and a
 * reference. */
static pcclResult_t post(uint64_t to, const struct letter *letter,
                         struct message *message)
{
    pcclResult_t result = pcclPendingAsyncOps;
    if (!has_backlog(to)) result = post_now(to, letter, message);
    if (result == pcclPendingAsyncOps) {
        struct waiting *w = malloc(sizeof *w);
        if (!w) return pcclInternalError;
        *w = (struct waiting){NULL, to, *letter, message};
        *backlog_end = w;
        backlog_end = &w->next;
        return pcclSuccess;
    }
    if (message) message_release(message);
    return result;
}

/* With the lock. Later letters to a member whose queue is full stay behind. */
static void backlog_flush(void)
{
    uint64_t full = 0;
    struct waiting **slot = &backlog;
    while (*slot) {
        struct waiting *w = *slot;
        if (w->to != full &&
            post_now(w->to, &w->letter, w->message) != pcclPendingAsyncOps) {
            *slot = w->next;
            if (w->message) message_release(w->message);
            free(w);
            continue;
        }
        full = w->to;
        slot = &w->next;
    }
    backlog_end = slot;
}

/* ------------------------------------------------------------------- sending
 */

static int send_error(pcclResult_t result)
{
    if (result == pcclSuccess) return MPI_SUCCESS;
    if (result == pcclRankConnectionLost)
        return error_note(MPIX_ERR_PROC_FAILED, "the receiver was lost");
    return error_note(result == pcclInternalError ? MPI_ERR_NO_MEM
                                                  : MPI_ERR_OTHER,
                      "%s", pcclGetErrorString(result));
}

/* Takes the message out of a list; NULL: it is not there. */
static struct message *list_take(struct message **list, uint64_t member,
                                 uint64_t cookie)
{
    while (*list &&
           ((*list)->cookie != cookie || (*list)->entry.key.source != member))
        list = &(*list)->next;
    struct message *message = *list;
    if (message) *list = message->next;
    return message;
}

static int send_remote(uint64_t member, struct message *message, bool large,
                       bool wait)
{
    struct partner *partner = partner_of(member);
    struct letter letter = {.kind = large ? LETTER_LARGE : LETTER_EAGER,
                            .context = message->entry.key.context,
                            .tag = message->entry.key.tag,
                            .wants_ack = wait && !large,
                            .size = (uint64_t)message->size,
                            .cookie = ++last_cookie};
    if (!partner) return error_note(MPI_ERR_NO_MEM, "out of memory");
    pcclResult_t result = pcclSuccess;
    if (large)
        result = pcclSendBulk(world.pccl, member, letter.cookie,
                              message->payload, (size_t)message->size);
    if (result != pcclSuccess) {
        message_release(message);
        return send_error(result);
    }
    if (large || wait) {
        /* Named by the receiver here: that is who will answer. */
        message->cookie = letter.cookie;
        message->announced = large;
        message->entry.key.source = member;
        message->next = outgoing;
        outgoing = message;
    }
    if (!large) {
        partner->unmatched += (uint64_t)message->size + CHARGE;
        if (wait) atomic_fetch_add(&message->references, 1);
    }
    result = post(member, &letter, large ? NULL : message);
    if (result == pcclSuccess || large) return MPI_SUCCESS; /* event follows */
    if (wait) {
        (void)list_take(&outgoing, member, letter.cookie);
        message_release(message);
    }
    return send_error(result);
}

bool transport_send_now(uint64_t member, uint32_t context, int tag,
                        const void *bytes, MPI_Count size, int *result)
{
    if (size > EAGER_MAX) return false;
    pthread_mutex_lock(&lock);
    struct partner *partner = partner_of(member);
    struct letter letter = {.kind = LETTER_EAGER,
                            .context = context,
                            .tag = tag,
                            .size = (uint64_t)size,
                            .cookie = ++last_cookie};
    uint64_t charge = (uint64_t)size + CHARGE;
    bool free = partner && !backlog && partner->unmatched + charge <= CREDIT;
    pcclResult_t posted = pcclPendingAsyncOps;
    if (free)
        posted = pcclPostMessage(world.pccl, member, &letter, sizeof letter,
                                 bytes, (size_t)size);
    if (posted == pcclSuccess) partner->unmatched += charge;
    pthread_mutex_unlock(&lock);
    if (posted == pcclPendingAsyncOps) return false;
    *result = send_error(posted);
    return true;
}

int transport_send(uint64_t member, struct message *message, bool large,
                   bool wait)
{
    if (member == world.self) {
        p2p_deliver(message);
        return MPI_SUCCESS;
    }
    pthread_mutex_lock(&lock);
    int result = send_remote(member, message, large, wait);
    pthread_mutex_unlock(&lock);
    return result;
}

void transport_matched(struct message *message)
{
    uint64_t source = message->entry.key.source;
    struct letter ack = {.kind = LETTER_ACK, .cookie = message->cookie};
    pthread_mutex_lock(&lock);
    if (message->wants_ack) (void)post(source, &ack, NULL);
    struct partner *partner = partner_of(source);
    if (partner && message->charged > 0) {
        partner->owed += message->charged;
        if (partner->owed >= CREDIT_PART) {
            struct letter credit = {.kind = LETTER_CREDIT,
                                    .size = partner->owed};
            partner->owed = 0;
            (void)post(source, &credit, NULL);
        }
    }
    pthread_mutex_unlock(&lock);
}

int transport_pull(struct message *message, char *to)
{
    pthread_mutex_lock(&lock);
    message->next = incoming;
    incoming = message;
    /* Empty ones are announced too, without credit, and need no buffer. Of
     * others the sender hears by a wrong size that they cannot be taken. */
    pcclResult_t result =
        pcclExpectBulk(world.pccl, message->entry.key.source, message->cookie,
                       to, to ? (size_t)message->size : 0);
    if (result != pcclSuccess) incoming = message->next;
    pthread_mutex_unlock(&lock);
    return send_error(result);
}

/* -------------------------------------------------------------------- events
 */

static void sent(uint64_t member, uint64_t cookie, int error)
{
    pthread_mutex_lock(&lock);
    struct message *message = list_take(&outgoing, member, cookie);
    pthread_mutex_unlock(&lock);
    if (!message) return;
    message->error = error;
    atomic_store(&message->matched, true);
    message_release(message);
}

static void pulled(uint64_t member, uint64_t cookie, int error)
{
    pthread_mutex_lock(&lock);
    struct message *message = list_take(&incoming, member, cookie);
    pthread_mutex_unlock(&lock);
    if (message) p2p_pulled(message, error);
}

static void lost(uint64_t member)
{
    pthread_mutex_lock(&lock);
    struct partner *partner = partner_of(member);
    if (partner) partner->lost = true;
    some_lost = true;
    struct message *failed = NULL;
    for (struct message **at = &outgoing; *at;) {
        struct message *message = *at;
        if (message->entry.key.source != member) {
            at = &message->next;
            continue;
        }
        *at = message->next;
        message->next = failed;
        failed = message;
    }
    pthread_mutex_unlock(&lock);
    while (failed) {
        struct message *message = failed;
        failed = message->next;
        message->error = MPIX_ERR_PROC_FAILED;
        atomic_store(&message->matched, true);
        message_release(message);
    }
    p2p_member_lost(member);
}

static bool announced(const struct message *arrived)
{
    struct message *message = message_new(0);
    if (!message) return false;
    message->entry.key = arrived->entry.key;
    message->remote = true;
    message->wants_ack = arrived->wants_ack;
    message->cookie = arrived->cookie;
    message->size = arrived->size;
    message->payload = NULL;
    p2p_deliver(message);
    return true;
}

static void letter_opened(const pcclEvent_t *event)
{
    struct letter letter;
    if (event->header_size != sizeof letter) return;
    memcpy(&letter, event->header, sizeof letter);
    if (letter.kind == LETTER_ACK) sent(event->member, letter.cookie, 0);
    if (letter.kind == LETTER_CREDIT) {
        pthread_mutex_lock(&lock);
        struct partner *partner = partner_of(event->member);
        if (partner) partner->unmatched -= letter.size;
        pthread_mutex_unlock(&lock);
    }
    if (letter.kind == LETTER_REVOKED) revoke_heard(letter.context);
    if (letter.kind > LETTER_LARGE) return;
    struct message arrived = {
        .entry.key = {event->member, letter.context, letter.tag},
        .remote = true,
        .wants_ack = letter.wants_ack != 0,
        .cookie = letter.cookie,
        .size = (MPI_Count)letter.size,
        .payload = event->body,
        .charged = (uint32_t)letter.size + CHARGE};
    bool good = true;
    if (letter.kind == LETTER_LARGE)
        good = announced(&arrived);
    else if (letter.size == event->body_size)
        good = p2p_deliver_borrowed(&arrived);
    if (!good) env_abort(MPI_ERR_NO_MEM, "out of memory for a message");
}

static void handle(const pcclEvent_t *event)
{
    int error =
        event->result == pcclSuccess ? MPI_SUCCESS : MPIX_ERR_PROC_FAILED;
    if (event->result == pcclInvalidArgument ||
        event->result == pcclInternalError)
        error = MPI_ERR_NO_MEM; /* of the receiver: see transport_pull */
    switch (event->kind) {
    case pcclEventMessage:
        letter_opened(event);
        break;
    case pcclEventBulkSent:
        sent(event->member, event->key, error);
        break;
    case pcclEventBulkReceived:
        pulled(event->member, event->key, error);
        break;
    case pcclEventMemberLost:
        lost(event->member);
        break;
    case pcclEventRoom:
    case pcclEventNone:
        break;
    }
}

/* Out of the run: nothing comes from anybody any more. */
static void all_lost(void)
{
    const struct group *view = atomic_load(&world.view);
    for (int i = 0; view && i < view->size; i++)
        if (view->ids[i] != world.self && !transport_lost(view->ids[i]))
            lost(view->ids[i]);
}

/* With `taking`. */
static bool progress(int timeout_ms)
{
    bool some = false;
    for (;;) {
        pcclEvent_t event;
        pcclResult_t result =
            pcclTakeEvent(world.pccl, some ? 0 : timeout_ms, &event);
        if (result == pcclMasterConnectionFailed) all_lost();
        if (result != pcclSuccess || event.kind == pcclEventNone) break;
        handle(&event);
        (void)pcclReleaseEvent(world.pccl, &event);
        some = true;
        /* Who waits for one message wants to see it before others come. */
        if (timeout_ms > 0) break;
    }
    pthread_mutex_lock(&lock);
    if (backlog) backlog_flush();
    pthread_mutex_unlock(&lock);
    return some || timeout_ms > 0;
}

bool transport_progress(int timeout_ms)
{
    if (!world.pccl || pthread_mutex_trylock(&taking) != 0) return false;
    bool some = progress(timeout_ms);
    pthread_mutex_unlock(&taking);
    return some;
}

bool transport_background(void)
{
    if (!world.pccl || pthread_mutex_trylock(&taking) != 0) return false;
    (void)progress(0);
    pthread_mutex_unlock(&taking);
    return true;
}

/* --------------------------------------------------------------- revocation
 */

void transport_tell_revoked(const struct group *members, uint32_t context)
{
    struct letter letter = {.kind = LETTER_REVOKED, .context = context};
    pthread_mutex_lock(&lock);
    for (int i = 0; i < members->size; i++)
        if (members->ids[i] != world.self)
            (void)post(members->ids[i], &letter, NULL);
    pthread_mutex_unlock(&lock);
}

/* With the lock. Whether the library lets go of the sender's memory. */
static bool withdraw(const struct message *message, bool *left)
{
    if (!message->announced) return true;
    pcclResult_t result = pcclWithdrawBulk(
        world.pccl, message->entry.key.source, message->cookie);
    if (result == pcclPendingAsyncOps) *left = true;
    return result == pcclSuccess;
}

/* With the lock. Whether the library lets go of the receiver's memory. */
static bool cancel(const struct message *message)
{
    return pcclCancelBulk(world.pccl, message->entry.key.source,
                          message->cookie) == pcclSuccess;
}

/* With the lock. Takes those of the context that can be taken out of a list. */
static struct message *list_end(struct message **list, uint32_t context,
                                bool sends, bool *left)
{
    struct message *taken = NULL;
    while (*list) {
        struct message *message = *list;
        bool ours = (message->entry.key.context & CONTEXT_MASK) == context;
        if (!ours || !(sends ? withdraw(message, left) : cancel(message))) {
            list = &message->next;
            continue;
        }
        *list = message->next;
        message->next = taken;
        taken = message;
    }
    return taken;
}

bool transport_drop(uint32_t context, int error)
{
    bool left = false;
    pthread_mutex_lock(&lock);
    struct message *sends = list_end(&outgoing, context, true, &left);
    struct message *receives = list_end(&incoming, context, false, &left);
    pthread_mutex_unlock(&lock);
    while (sends) {
        struct message *message = sends;
        sends = message->next;
        message->error = error;
        atomic_store(&message->matched, true);
        message_release(message);
    }
    while (receives) {
        struct message *message = receives;
        receives = message->next;
        p2p_pulled(message, error);
    }
    return left;
}

bool transport_busy(void)
{
    if (!world.pccl) return false;
    pthread_mutex_lock(&lock);
    bool busy = backlog || outgoing || incoming;
    pthread_mutex_unlock(&lock);
    return busy || p2p_busy();
}

void transport_stop(void)
{
    for (int turn = 0; turn < STOP_TURNS; turn++) {
        pthread_mutex_lock(&lock);
        bool wait = backlog != NULL;
        pthread_mutex_unlock(&lock);
        if (!wait || !transport_progress(1)) break;
    }
}
