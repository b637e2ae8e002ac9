/* transport.c - sends and receives messages through pccl, with credit. */
#include "transport.h"
#include "message_table.h"
#include "partner.h"
#include "revoke.h"

#include "../base/limit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STOP_TURNS = 2000, /* ms that stopping waits for queued messages */
    EVENTS_MAX = 16,   /* taken at once */
};

/* Guarded by partners_lock(). */
static struct message_table outgoing; /* until acknowledged or pulled */
static struct message_table incoming; /* being pulled */
static uint64_t last_cookie;
/* Out of the run, and why; the text is constant once the flag is set. */
static atomic_bool gone;
static char gone_text[320];
/* One thread at a time takes events, which keeps their order. The next one
 * releases those of the last turn. */
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;
static pcclEvent_t events[EVENTS_MAX];
static size_t event_count;

bool transport_lost(uint64_t member)
{
    if (!partners_some_lost()) return false;
    struct partner *partner = member ? partner_of(member) : NULL;
    return !member || (partner && atomic_load(&partner->lost));
}

const char *transport_gone(void)
{
    return atomic_load(&gone) ? gone_text : NULL;
}

bool transport_is_large(uint64_t member, MPI_Count size)
{
    if (size > MESSAGE_EAGER_MAX) return true;
    struct partner *partner = partner_of(member);
    return !partner || !partner_has_credit(partner, (uint64_t)size);
}

/* ------------------------------------------------------------------- sending
 */

static int send_error(pcclResult_t result)
{
    if (result == pcclSuccess) return MPI_SUCCESS;
    const char *text = transport_gone();
    if (result == pcclRankConnectionLost)
        return error_note(MPIX_ERR_PROC_FAILED, "%s",
                          text ? text : "the receiver was lost");
    if (result == pcclMasterConnectionFailed && text)
        return error_note(MPI_ERR_OTHER, "%s", text);
    return error_note(result == pcclInternalError ? MPI_ERR_NO_MEM
                                                  : MPI_ERR_OTHER,
                      "%s", pcclGetErrorString(result));
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
        /* the receiver's reply carries this cookie */
        message->cookie = letter.cookie;
        message->announced = large;
        message->entry.key.source = member;
        message_table_add(&outgoing, message);
    }
    if (!large && wait) atomic_fetch_add(&message->references, 1);
    result = partner_send(partner, &letter, large ? NULL : message);
    if (result == pcclSuccess || large) return MPI_SUCCESS; /* event follows */
    message_release(message);
    if (wait) {
        (void)message_table_take(&outgoing, member, letter.cookie);
        message_release(message);
    }
    return send_error(result);
}

bool transport_send_now(uint64_t member, uint32_t context, int tag,
                        const void *bytes, MPI_Count size, int *result)
{
    struct letter letter = {.kind = LETTER_EAGER,
                            .context = context,
                            .tag = tag,
                            .size = (uint64_t)size};
    pcclResult_t posted;
    struct partner *partner =
        size <= MESSAGE_EAGER_MAX ? partner_of(member) : NULL;
    if (!partner || !partner_send_now(partner, &letter, bytes, &posted))
        return false;
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
    partners_lock();
    int result = send_remote(member, message, large, wait);
    partners_unlock();
    return result;
}

void transport_matched(struct partner *partner, uint64_t cookie,
                       uint32_t charged, bool wants_ack)
{
    if (wants_ack) {
        struct letter ack = {.kind = LETTER_ACK, .cookie = cookie};
        partner_send_control(partner, &ack);
    }
    partner_matched(partner, charged);
}

void transport_want(uint64_t member)
{
    partners_grant(member);
}

int transport_pull(struct message *message, char *to)
{
    uint64_t source = message->entry.key.source;
    partners_lock();
    /* Two at once under one cookie: the sender breaks the rules, and pccl may
     * still write what the other one is to get. */
    if (message_table_has(&incoming, source, message->cookie)) {
        partners_unlock();
        return error_note(MPI_ERR_OTHER, "the sender's message has the number "
                                         "of another one");
    }
    message_table_add(&incoming, message);
    /* Empty messages are announced too, without credit, and need no buffer. For
     * others a wrong size makes the sender fail them. */
    pcclResult_t result = pcclExpectBulk(world.pccl, source, message->cookie,
                                         to, to ? (size_t)message->size : 0);
    if (result != pcclSuccess)
        (void)message_table_take(&incoming, source, message->cookie);
    partners_unlock();
    return send_error(result);
}

/* -------------------------------------------------------------------- events
 */

static void sent(uint64_t member, uint64_t cookie, int error)
{
    partners_lock();
    struct message *message = message_table_take(&outgoing, member, cookie);
    partners_unlock();
    if (!message) return;
    message->error = error;
    atomic_store(&message->matched, true);
    message_release(message);
}

static void pulled(uint64_t member, uint64_t cookie, int error)
{
    partners_lock();
    struct message *message = message_table_take(&incoming, member, cookie);
    partners_unlock();
    if (message) p2p_pulled(message, error);
}

/* Ends a list of sends with the error. */
static void end_sends(struct message *list, int error)
{
    while (list) {
        struct message *message = list;
        list = message->next;
        message->error = error;
        atomic_store(&message->matched, true);
        message_release(message);
    }
}

static bool is_to(struct message *message, void *member)
{
    return message->entry.key.source == *(const uint64_t *)member;
}

static void lost(uint64_t member)
{
    struct partner *partner = partner_of(member);
    if (!partner) env_abort(MPI_ERR_NO_MEM, "out of memory for a loss");
    p2p_lock();
    partner_lose(partner);
    p2p_unlock();
    partners_lock();
    struct message *failed = message_table_take_all(&outgoing, is_to, &member);
    partners_unlock();
    end_sends(failed, MPIX_ERR_PROC_FAILED);
    p2p_member_lost(member);
}

static bool announced(const struct arrival *arrival)
{
    struct message *message = message_new(0);
    if (!message) return false;
    message->entry.key = arrival->key;
    message->remote = true;
    message->wants_ack = arrival->wants_ack;
    message->cookie = arrival->cookie;
    message->charged = arrival->charged;
    message->size = arrival->size;
    message->payload = NULL;
    p2p_deliver(message);
    return true;
}

/* The letter of an event. No size is one that MPI_Count cannot hold; who says
 * so breaks the rules. */
static bool is_letter(const pcclEvent_t *event, struct letter *letter)
{
    if (event->kind != pcclEventMessage || event->header_size != sizeof *letter)
        return false;
    memcpy(letter, event->header, sizeof *letter);
    return letter->size <= INT64_MAX;
}

/* A message that carries its data, or is announced. The caller has called
 * p2p_lock() for the former. */
static void arrived(const pcclEvent_t *event, const struct letter *letter)
{
    const struct arrival arrival = {
        .key = {event->member, letter->context, letter->tag},
        .partner = partner_of(event->member),
        .wants_ack = letter->wants_ack != 0,
        .cookie = letter->cookie,
        .size = (MPI_Count)letter->size,
        .payload = event->body,
        .charged = partner_charge(letter)};
    bool good = arrival.partner != NULL;
    if (good && letter->kind == LETTER_LARGE)
        good = announced(&arrival);
    else if (good && letter->size == event->body_size)
        good = p2p_deliver_borrowed(&arrival);
    if (!good) env_abort(MPI_ERR_NO_MEM, "out of memory for a message");
}

static void letter_opened(const pcclEvent_t *event)
{
    struct letter letter;
    if (!is_letter(event, &letter)) return;
    if (letter.kind == LETTER_ACK) sent(event->member, letter.cookie, 0);
    struct partner *partner = partner_of(event->member);
    if (letter.kind == LETTER_CREDIT && partner)
        partner_credited(partner, letter.size);
    if (letter.kind == LETTER_GRANT && partner)
        partner_granted(partner, letter.size);
    if (letter.kind == LETTER_HELD && partner) p2p_held(partner);
    if (letter.kind == LETTER_REVOKED)
        revoke_received(event->member, letter.context);
    if (letter.kind == LETTER_LARGE) arrived(event, &letter);
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

/* The caller holds `taking`. Evicted: all members count as lost. */
static void all_lost(void)
{
    char reason[256] = "";
    bool first = !atomic_load(&gone);
    if (first) {
        (void)pcclGetLastError(world.pccl, reason, sizeof reason);
        snprintf(gone_text, sizeof gone_text,
                 "this process was evicted or the run is over%s%s",
                 *reason ? ": " : "", reason);
        atomic_store(&gone, true);
    }
    const struct group *view = atomic_load(&world.view);
    for (int i = 0; view && i < view->size; i++)
        if (view->ids[i] != world.self && !transport_lost(view->ids[i]))
            lost(view->ids[i]);
    /* Those lost before may have left receives from anybody. */
    if (first) p2p_member_lost(world.self);
}

/* Messages that carry their data are delivered under one lock. */
static void handle_all(void)
{
    bool locked = false;
    for (size_t i = 0; i < event_count; i++) {
        struct letter letter;
        bool small =
            is_letter(&events[i], &letter) && letter.kind == LETTER_EAGER;
        if (small && !locked) p2p_lock();
        if (!small && locked) p2p_unlock();
        locked = small;
        if (small)
            arrived(&events[i], &letter);
        else
            handle(&events[i]);
    }
    if (locked) p2p_unlock();
}

/* The caller holds `taking`. */
static bool progress(int timeout_ms)
{
    bool some = false;
    for (;;) {
        pcclResult_t result = pcclTakeEvents(world.pccl, some ? 0 : timeout_ms,
                                             events, EVENTS_MAX, &event_count);
        if (result == pcclMasterConnectionFailed) all_lost();
        if (result != pcclSuccess || event_count == 0) break;
        handle_all();
        some = true;
        /* a caller that waits for one message checks it before further ones */
        if (timeout_ms > 0) break;
    }
    partners_flush();
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

void transport_notify_revoked(const struct group *members, uint32_t context)
{
    struct letter letter = {.kind = LETTER_REVOKED, .context = context};
    for (int i = 0; i < members->size; i++) {
        struct partner *partner =
            members->ids[i] != world.self ? partner_of(members->ids[i]) : NULL;
        if (partner) partner_send_control(partner, &letter);
    }
}

/* Operations of a context to end. */
struct ending {
    uint32_t context;
    bool left; /* some cannot be ended yet */
};

/* The caller holds the lock. Whether the library releases the sender's
 * memory. */
static bool cancel_send(struct message *message, void *user)
{
    struct ending *ending = user;
    if ((message->entry.key.context & CONTEXT_MASK) != ending->context)
        return false;
    if (!message->announced) return true;
    pcclResult_t result = pcclWithdrawBulk(
        world.pccl, message->entry.key.source, message->cookie);
    if (result == pcclPendingAsyncOps) ending->left = true;
    return result == pcclSuccess;
}

/* The caller holds the lock. Whether the library releases the receiver's
 * memory. */
static bool cancel_pull(struct message *message, void *user)
{
    const struct ending *ending = user;
    return (message->entry.key.context & CONTEXT_MASK) == ending->context &&
           pcclCancelBulk(world.pccl, message->entry.key.source,
                          message->cookie) == pcclSuccess;
}

bool transport_drop(uint32_t context, int error)
{
    struct ending ending = {.context = context};
    partners_lock();
    partners_drop(context, CONTEXT_MASK);
    struct message *sends =
        message_table_take_all(&outgoing, cancel_send, &ending);
    struct message *receives =
        message_table_take_all(&incoming, cancel_pull, &ending);
    partners_unlock();
    end_sends(sends, error);
    while (receives) {
        struct message *message = receives;
        receives = message->next;
        p2p_pulled(message, error);
    }
    return ending.left;
}

bool transport_busy(void)
{
    if (!world.pccl) return false;
    return count_any(&outgoing.count) || count_any(&incoming.count) ||
           partners_wait() || p2p_busy();
}

void transport_stop(void)
{
    for (int turn = 0; turn < STOP_TURNS; turn++)
        if (!partners_wait() || !transport_progress(1)) break;
    partners_lock();
    message_table_free(&outgoing);
    message_table_free(&incoming);
    partners_unlock();
}

void transport_end(void)
{
    if (!world.pccl) return;
    pthread_mutex_lock(&taking);
    (void)pcclTakeEvents(world.pccl, 0, events, 0, &event_count);
    pthread_mutex_unlock(&taking);
}
