/* message.c - see message.h; rules in master/PROTOCOL.md. */
#include "../ring/op.h"

#include "../../include/pccl.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- members */

static struct mlink **slot_of(struct engine *e, uint64_t id)
{
    struct messages *m = &e->messages;
    struct mlink **slot = &m->links[id % ARRAY_COUNT(m->links)];
    while (*slot && (*slot)->id != id) slot = &(*slot)->next;
    return slot;
}

struct mlink *mlink_find(struct engine *e, uint64_t id, bool create)
{
    struct mlink **slot = slot_of(e, id);
    if (*slot || !create) return *slot;
    struct mlink *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->id = id;
    l->conn = NO_CONN;
    l->first_seq = 1;
    l->lost = (struct message_event){.kind = EVENT_LOST, .member = id};
    l->room = (struct message_event){.kind = EVENT_ROOM, .member = id};
    *slot = l;
    return l;
}

#define EACH_LINK(e, l)                                                        \
    for (size_t l##_i = 0; l##_i < ARRAY_COUNT((e)->messages.links); l##_i++)  \
        for (struct mlink *l = (e)->messages.links[l##_i], *l##_next;          \
             l && (l##_next = l->next, true); l = l##_next)

/* Something of ours has not arrived, or is not known to have. */
static bool needs_conn(const struct mlink *l)
{
    return l->count > 0 || l->running;
}

bool message_waits(const struct mlink *l)
{
    return !message_full(l) && (needs_conn(l) || l->expects.count > 0);
}

bool message_lacks_link(const struct engine *e)
{
    EACH_LINK(e, l)
    {
        if (!l->gone && !l->open && message_waits(l)) return true;
    }
    return false;
}

void mlink_dirty(struct engine *e, const struct mlink *l)
{
    if (l->open) conn_dirty(e, l->conn);
}

const struct mail *message_mail(struct engine *e)
{
    struct mail *mail = &e->messages.mail;
    if (mail->known) return mail;
    *mail = (struct mail){.known = true};
    EACH_LINK(e, l)
    {
        if (l->conn == NO_CONN) continue;
        if (!l->open || !e->links.conns[l->conn]->channel ||
            mail->count == MAIL_MAX)
            mail->others = true;
        else
            mail->conns[mail->count++] = l->conn;
    }
    return mail;
}

/* ------------------------------------------------------------------ events */

void mlink_push(struct engine *e, struct message_event *event)
{
    struct messages *m = &e->messages;
    event->next = NULL;
    event->queued = true;
    if (m->first)
        m->last->next = event;
    else
        m->first = event;
    m->last = event;
    if (e->out.event) e->out.event(e->out.user);
}

void message_use(struct engine *e)
{
    e->messages.used = true;
}

struct message_event *message_take(struct engine *e)
{
    struct messages *m = &e->messages;
    struct message_event *event = m->first;
    if (!event) return NULL;
    m->first = event->next;
    event->queued = false;
    if (event->kind != EVENT_MESSAGE) return event;
    struct mlink *l = mlink_find(e, event->member, false);
    if (!l) return event;
    bool was_full = message_full(l);
    l->inbox_count--;
    l->inbox_bytes -= ((struct message_block *)event)->size;
    if (was_full && !message_full(l) && l->open) conn_resume_one(e, l->conn);
    return event;
}

static void drop_items(struct engine *e, struct mlink *l)
{
    while (l->count > 0) {
        pool_give(&e->links.pool, l->items[l->first].block);
        l->first = (l->first + 1) & (l->capacity - 1);
        l->count--;
    }
    l->posted = l->pieces = l->sent = 0;
    l->posted_bytes = 0;
    for (struct keyed *at = keyed_take_all(&l->expected), *next; at;
         at = next) {
        next = at->next;
        free(at);
    }
}

static void link_free(struct engine *e, struct mlink *l)
{
    assert(l->conn == NO_CONN && !l->sends.count && !l->expects.count);
    *slot_of(e, l->id) = l->next;
    (void)keyed_take_all(&l->sends); /* empty, but for their slots */
    (void)keyed_take_all(&l->expects);
    drop_items(e, l);
    free(l->items);
    free(l);
}

void message_release(struct engine *e, struct message_event *event)
{
    switch (event->kind) {
    case EVENT_MESSAGE:
    case EVENT_SENT:
    case EVENT_RECEIVED:
        pool_give(&e->links.pool, event);
        return;
    case EVENT_LOST:
        link_free(e, mlink_find(e, event->member, false));
        return;
    case EVENT_ROOM:
        return;
    }
}

void message_free(struct engine *e)
{
    struct message_event *event;
    EACH_LINK(e, l)
    {
        l->conn = NO_CONN;
        l->open = false;
        mlink_end_all(e, &l->sends, 0);
        mlink_end_all(e, &l->expects, 0);
    }
    e->out.event = NULL;
    while ((event = message_take(e))) message_release(e, event);
    EACH_LINK(e, l) link_free(e, l);
}

/* ------------------------------------------------------------------- losses */

static void finish_lost(struct engine *e, struct mlink *l, int result)
{
    mlink_end_all(e, &l->sends, result);
    mlink_end_all(e, &l->expects, result);
    l->running = l->running_last = NULL;
    drop_items(e, l);
    if (result != pcclRankConnectionLost || l->lost.queued) return;
    if (e->messages.used || e->messages.untold < UNTOLD_MAX) {
        e->messages.untold += !e->messages.used;
        mlink_push(e, &l->lost);
    } else if (l->inbox_count == 0 && !l->room.queued) {
        link_free(e, l);
    }
}

/* Rule P2P-7: what has arrived from a lost member is read before its end. */
void message_lose(struct engine *e, uint64_t id)
{
    struct mlink *l = mlink_find(e, id, true);
    if (!l || l->gone) return;
    l->gone = true;
    if (l->conn != NO_CONN && !l->open)
        conn_reject(e, l->conn);
    else if (l->conn == NO_CONN)
        finish_lost(e, l, pcclRankConnectionLost);
}

void message_stop(struct engine *e, int result)
{
    EACH_LINK(e, l)
    {
        l->gone = true;
        finish_lost(e, l, result);
    }
}

/* ------------------------------------------------------------- connections */

bool message_full(const struct mlink *l)
{
    return l->inbox_count >= MESSAGE_INBOX_MAX ||
           l->inbox_bytes >= MESSAGE_INBOX_BYTES;
}

void message_hello(const struct mlink *l, struct frame *f)
{
    f->flags = FLAG_MESSAGES;
    f->epoch = l->seq;
    f->index = l->dials;
}

/* The connection is no longer this link's; the caller closes it. */
static void detach(struct engine *e, struct mlink *l)
{
    struct conn *c = e->links.conns[l->conn];
    pool_give(&e->links.pool, c->rx_block);
    c->rx_block = NULL;
    c->rx_bulk = NULL;
    c->peer = NULL;
    l->conn = NO_CONN;
    l->open = false;
    l->sent = 0;
    e->messages.mail.known = false;
}

void message_closed(struct engine *e, uint32_t number, bool dialed)
{
    struct mlink *l = e->links.conns[number]->peer;
    assert(l->conn == number);
    detach(e, l);
    if (l->gone) {
        finish_lost(e, l, pcclRankConnectionLost);
        return;
    }
    l->retry_at = e->links.now;
    l->asks = dialed || l->inward;
    if (dialed) {
        pccl_ns pause = 10 * PCCL_MS;
        for (uint32_t i = 0; i < l->failures && pause < e->links.deadline / 5;
             i++)
            pause *= 2;
        l->retry_at += pause;
        l->failures++;
    }
    e->messages.pending = true;
}

static void hang_up(struct engine *e, struct mlink *l)
{
    uint32_t number = l->conn;
    detach(e, l);
    e->out.close(e->out.user, number);
    engine_closed(e, number);
}

static void dial(struct engine *e, struct mlink *l)
{
    const struct wire_member *member = engine_member(e, l->id);
    if (!member) return;
    l->dials++;
    l->host = member->host;
    uint32_t number = e->out.dial(e->out.user, &member->addr);
    if (number != NO_CONN && engine_accepted(e, number)) {
        struct conn *c = e->links.conns[number];
        c->state = CONN_DIALED;
        c->peer = l;
        l->conn = number;
        e->messages.mail.known = false;
        return;
    }
    if (number != NO_CONN) e->out.close(e->out.user, number);
    l->failures++;
    l->retry_at = e->links.now + 10 * PCCL_MS;
}

/* Ours is the end whose calls for the collectives did not pass (rule R3). */
static bool is_walled(struct engine *e, const struct mlink *l)
{
    if (l->dials > 0 || l->peer_dials > 0) return false; /* we know better */
    const struct link *other = link_find(e, l->id, false);
    return other && other->reversed && other->open > 0 && !link_dials(e, other);
}

/* Rule P2P-10: by turns this end calls, and has the other one call. */
static void attempt(struct engine *e, struct mlink *l)
{
    bool asks = (l->asks || (!l->asked && is_walled(e, l))) && e->out.ask;
    l->asks = false;
    if (!asks || !e->out.ask(e->out.user, l->id, l->dials, l->peer_dials)) {
        dial(e, l);
        return;
    }
    l->asked = true;
    l->retry_at = e->links.now + e->links.deadline / 2;
}

void message_called(struct engine *e, uint64_t id, uint32_t dials,
                    uint32_t heard)
{
    struct mlink *l = engine_member(e, id) ? mlink_find(e, id, true) : NULL;
    if (!l || l->gone || id == e->links.self) return;
    if (l->conn != NO_CONN) {
        /* A call is under way, or was made since then. */
        if ((int32_t)(l->dials - heard) > 0) return;
        if ((int32_t)(l->peer_dials - dials) > 0) return;
        hang_up(e, l);
    }
    dial(e, l);
}

void message_pump(struct engine *e)
{
    if (!e->messages.pending) return;
    e->messages.pending = false;
    EACH_LINK(e, l)
    {
        if (l->gone || l->conn != NO_CONN || !needs_conn(l)) continue;
        if (e->links.now >= l->retry_at) attempt(e, l);
        if (l->conn == NO_CONN) e->messages.pending = true;
    }
}

bool message_pending(const struct engine *e)
{
    return e->messages.pending;
}

void mlink_want(struct engine *e, struct mlink *l)
{
    if (l->open || l->gone || l->conn != NO_CONN) return;
    e->messages.pending = true;
    message_pump(e);
}

/* Rule P2P-3: which of two calls stands. A HELLO that is not the caller's
 * latest word has been overtaken by another connection. */
static bool may_replace(struct engine *e, struct mlink *l, uint32_t dials)
{
    if ((int32_t)(dials - l->peer_dials) <= 0) return false;
    if (l->conn == NO_CONN) return true;
    const struct conn *old = e->links.conns[l->conn];
    if (old->state == CONN_DIALED && e->links.self < l->id) return false;
    hang_up(e, l);
    return true;
}

/* The body of a HELLO is there and right. False: close. */
bool message_open(struct engine *e, uint32_t number, uint64_t from)
{
    struct conn *c = e->links.conns[number];
    const struct frame f = c->rx;
    struct mlink *l = c->peer;
    if (!(f.flags & FLAG_MESSAGES)) return false;
    if (c->state == CONN_DIALED) {
        if (from != l->id) return false;
    } else {
        l = mlink_find(e, from, false);
        if (l && l->gone) return false;
        if (!engine_member(e, from)) {
            c->parked = c->stranger = true; /* rule P2P-2 */
            return true;
        }
        l = mlink_find(e, from, true);
        if (!l || !may_replace(e, l, f.index)) return false;
        c->peer = l;
        l->conn = number;
    }
    if (!mlink_acked(e, l, f.epoch, l->count)) return false;
    if ((int32_t)(f.index - l->peer_dials) > 0) l->peer_dials = f.index;
    l->inward = l->asked && c->state == CONN_ACCEPTED;
    l->asked = false;
    c->state = CONN_OPEN;
    c->last_recv = e->links.now;
    l->open = true;
    l->sent = 0;
    l->failures = 0;
    conn_dirty(e, number);
    return true;
}

/* --------------------------------------------------------------- sending */

static struct message_item *new_item(struct mlink *l)
{
    if (l->count == l->capacity) {
        uint32_t capacity = l->capacity ? 2 * l->capacity : 16;
        struct message_item *items = malloc(capacity * sizeof *items);
        if (!items) return NULL;
        for (uint32_t i = 0; i < l->count; i++)
            items[i] = l->items[(l->first + i) & (l->capacity - 1)];
        free(l->items);
        l->items = items;
        l->capacity = capacity;
        l->first = 0;
    }
    struct message_item *item =
        &l->items[(l->first + l->count++) & (l->capacity - 1)];
    *item = (struct message_item){.body = NULL};
    return item;
}

bool mlink_control(struct engine *e, struct mlink *l, enum frame_type type,
                   uint64_t key, uint32_t number, uint64_t size)
{
    return mlink_flagged(e, l, type, 0, key, number, size);
}

bool mlink_flagged(struct engine *e, struct mlink *l, enum frame_type type,
                   uint8_t flags, uint64_t key, uint32_t number, uint64_t size)
{
    struct message_item *item = new_item(l);
    if (!item) return false;
    item->frame = (struct frame){.type = (uint8_t)type,
                                 .flags = flags,
                                 .tag = key,
                                 .index = number,
                                 .digest = size};
    mlink_dirty(e, l);
    return true;
}

/* A live link to a member; NULL: *result says why not. */
struct mlink *mlink_to(struct engine *e, uint64_t id, int *result)
{
    message_use(e);
    *result = pcclInvalidArgument;
    if (id == e->links.self) return NULL;
    *result = pcclRankConnectionLost;
    struct mlink *l = mlink_find(e, id, false);
    if (l ? l->gone : !engine_member(e, id)) return NULL;
    *result = pcclInternalError;
    return l ? l : mlink_find(e, id, true);
}

/* What a frame on the connection tells beside its own. */
static void frame_finish(struct mlink *l, struct frame *f)
{
    if (l->answer_due) f->flags |= FLAG_ANSWER;
    f->epoch = l->seq;
    l->ack_due = l->answer_due = false;
    l->unacked_items = 0;
    l->unacked_bytes = 0;
}

/* The only item that is not sent goes into shared memory at once, if nothing
 * else is under way there. */
static bool send_now(struct engine *e, struct mlink *l)
{
    if (!l->open || l->sent + 1 != l->count) return false;
    struct conn *c = e->links.conns[l->conn];
    const struct message_item *item =
        &l->items[(l->first + l->sent) & (l->capacity - 1)];
    uint8_t *to;
    size_t size = item->frame.size;
    if (!c->channel || c->greets || c->ping || c->tx_left > 0 ||
        c->tx_head_done < c->tx_head_size)
        return false;
    if (channel_room(c->channel, &to) < FRAME_SIZE + size) return false;
    struct frame f = item->frame;
    f.seq = l->first_seq + l->sent;
    frame_finish(l, &f);
    frame_encode(&f, to);
    memcpy(to + FRAME_SIZE, item->body, size);
    channel_write(c->channel, FRAME_SIZE + size);
    c->last_sent = e->links.now;
    l->sent++;
    return true;
}

int message_post(struct engine *e, uint64_t to, const void *head,
                 size_t head_size, const void *body, size_t size)
{
    int result;
    if (head_size > MESSAGE_HEADER_MAX || size > MESSAGE_MAX - head_size)
        return pcclInvalidArgument;
    struct mlink *l = mlink_to(e, to, &result);
    if (!l) return result;
    size_t bytes = head_size + size;
    if (l->posted >= MESSAGE_QUEUE_MAX ||
        (l->posted > 0 && l->posted_bytes + bytes > MESSAGE_QUEUE_BYTES)) {
        l->starved = true;
        return pcclPendingAsyncOps;
    }
    struct message_block *block =
        pool_take(&e->links.pool, sizeof *block + bytes);
    struct message_item *item = block ? new_item(l) : NULL;
    if (!item) {
        pool_give(&e->links.pool, block);
        return pcclInternalError;
    }
    if (head_size > 0) memcpy(block->bytes, head, head_size);
    if (size > 0) memcpy(block->bytes + head_size, body, size);
    item->frame = (struct frame){.type = FRAME_MESSAGE,
                                 .index = (uint32_t)head_size,
                                 .size = (uint32_t)bytes};
    item->body = block->bytes;
    item->block = block;
    l->posted++;
    l->posted_bytes += bytes;
    if (send_now(e, l)) return pcclSuccess;
    mlink_dirty(e, l);
    mlink_want(e, l);
    return pcclSuccess;
}

/* The next piece of the oldest send that is expected becomes an item. */
static void cut_piece(struct mlink *l)
{
    struct bulk *b = l->running;
    if (!b || l->pieces >= (b->lends ? CMA_PIECES_MAX : BULK_PIECES_MAX))
        return;
    uint64_t left = b->size - b->done;
    uint32_t most = b->lends ? CMA_PIECE : BULK_PIECE;
    uint32_t size = left < most ? (uint32_t)left : most;
    struct message_item *item = new_item(l);
    if (!item) return; /* the next ping tries again */
    item->frame = (struct frame){.type = FRAME_BULK,
                                 .tag = b->event.key,
                                 .index = b->number,
                                 .size = size,
                                 .digest = b->done};
    item->body = b->from + b->done;
    if (b->lends) {
        item->frame.type = FRAME_CMA;
        item->frame.size = 0;
        item->frame.digest = (uint64_t)(uintptr_t)item->body;
    }
    b->done += size;
    l->pieces++;
    if (b->done < b->size) return;
    mlink_pause(l, b);
    b->state = BULK_CUT;
}

bool message_next(struct engine *e, struct conn *c, struct frame *f)
{
    struct mlink *l = c->peer;
    (void)e;
    if (l->sent == l->count) cut_piece(l);
    if (l->sent < l->count) {
        const struct message_item *item =
            &l->items[(l->first + l->sent) & (l->capacity - 1)];
        *f = item->frame;
        f->seq = l->first_seq + l->sent;
        c->tx_from = f->size > 0 ? item->body : NULL;
        c->tx_item = true;
    } else if (l->ack_due || c->ping || l->answer_due) {
        *f = (struct frame){.type = FRAME_ACK};
    } else {
        return false;
    }
    frame_finish(l, f);
    return true;
}

void message_sent(struct conn *c)
{
    c->tx_item = false;
    c->peer->sent++;
}

/* Everything up to `seq` has arrived; at most `most` items can have. */
bool mlink_acked(struct engine *e, struct mlink *l, uint32_t seq, uint32_t most)
{
    uint32_t count = seq - l->first_seq + 1;
    if (count > most) return false;
    if (count == 0) return true;
    for (uint32_t i = 0; i < count; i++) {
        struct message_item *item = &l->items[l->first];
        if (item->frame.type == FRAME_MESSAGE) {
            l->posted--;
            l->posted_bytes -= item->frame.size;
        }
        if (item->frame.type == FRAME_BULK || item->frame.type == FRAME_CMA)
            l->pieces--;
        pool_give(&e->links.pool, item->block);
        l->first = (l->first + 1) & (l->capacity - 1);
    }
    l->first_seq += count;
    l->count -= count;
    l->sent = l->sent > count ? l->sent - count : 0;
    if (l->running) mlink_dirty(e, l); /* more pieces may go */
    if (l->starved && l->posted <= MESSAGE_QUEUE_MAX / 2 &&
        l->posted_bytes <= MESSAGE_QUEUE_BYTES / 2) {
        l->starved = false;
        if (!l->room.queued) mlink_push(e, &l->room);
    }
    return true;
}

bool message_flush(struct engine *e)
{
    bool waits = false;
    EACH_LINK(e, l)
    {
        if (l->unacked_items > 0) {
            l->ack_due = true;
            mlink_dirty(e, l);
        }
        /* One that calls do not reach has most likely left. */
        if (l->gone || l->count == 0 || l->failures > 1) continue;
        waits = true;
        if (l->open) {
            l->answer_due = true;
            mlink_dirty(e, l);
        }
    }
    return waits;
}
