/* message.c - see message.h; rules in MESSAGES.md. */
#include "message.h"

#include "../../include/pccl.h"
#include "../link/link.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- members */

static struct p2p_link **slot_of(struct messages *m, uint64_t id)
{
    struct p2p_link **slot = &m->table[id % ARRAY_COUNT(m->table)];
    while (*slot && (*slot)->id != id) slot = &(*slot)->next;
    return slot;
}

struct p2p_link *p2p_link_find(struct messages *m, uint64_t id, bool create)
{
    struct p2p_link **slot = slot_of(m, id);
    if (*slot || !create) return *slot;
    struct p2p_link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->id = id;
    l->conn = NO_CONN;
    l->first_seq = 1;
    l->lost = (struct message_event){.kind = EVENT_LOST, .member = id};
    l->room = (struct message_event){.kind = EVENT_ROOM, .member = id};
    *slot = l;
    return l;
}

#define EACH_LINK(m, l)                                                        \
    for (size_t l##_i = 0; l##_i < ARRAY_COUNT((m)->table); l##_i++)           \
        for (struct p2p_link *l = (m)->table[l##_i], *l##_next;                \
             l && (l##_next = l->next, true); l = l##_next)

/* An item of this member has not arrived, or its arrival is not known. */
static bool needs_conn(const struct p2p_link *l)
{
    return l->count > 0 || l->running;
}

static bool waits(const struct p2p_link *l)
{
    return !message_full(l) && (needs_conn(l) || l->expects.count > 0);
}

bool message_lacks_link(const struct messages *m)
{
    EACH_LINK(m, l)
    {
        if (!l->gone && !l->open && waits(l)) return true;
    }
    return false;
}

void p2p_link_dirty(struct messages *m, const struct p2p_link *l)
{
    if (l->open) conn_dirty(m->links, l->conn);
}

const struct poll_set *message_poll_set(struct messages *m)
{
    struct poll_set *set = &m->poll_set;
    if (set->known) return set;
    *set = (struct poll_set){.known = true};
    EACH_LINK(m, l)
    {
        if (l->conn == NO_CONN) continue;
        if (!l->open || !m->links->conns[l->conn]->channel ||
            set->count == POLL_SET_MAX)
            set->others = true;
        else
            set->conns[set->count++] = l->conn;
    }
    return set;
}

/* ------------------------------------------------------------------ events */

void p2p_link_push(struct messages *m, struct message_event *event)
{
    event->next = NULL;
    event->queued = true;
    if (m->first)
        m->last->next = event;
    else
        m->first = event;
    m->last = event;
    if (m->out.event) m->out.event(m->out.user);
}

void message_use(struct messages *m)
{
    m->used = true;
}

struct message_event *message_take(struct messages *m)
{
    struct message_event *event = m->first;
    if (!event) return NULL;
    m->first = event->next;
    event->queued = false;
    if (event->kind != EVENT_MESSAGE) return event;
    struct p2p_link *l = p2p_link_find(m, event->member, false);
    if (!l) return event;
    bool was_full = message_full(l);
    l->inbox_count--;
    l->inbox_bytes -= ((struct message_block *)event)->size;
    if (was_full && !message_full(l) && l->open)
        conn_resume_one(m->links, l->conn);
    return event;
}

static void drop_items(struct messages *m, struct p2p_link *l)
{
    while (l->count > 0) {
        pool_give(&m->links->pool, l->items[l->first].block);
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

static void link_free(struct messages *m, struct p2p_link *l)
{
    PCCL_ASSERT(l->conn == NO_CONN && !l->sends.count && !l->expects.count);
    *slot_of(m, l->id) = l->next;
    (void)keyed_take_all(&l->sends); /* empty, but for their slots */
    (void)keyed_take_all(&l->expects);
    drop_items(m, l);
    pool_give(&m->links->pool, l->rx_block); /* part of a message */
    free(l->items);
    free(l);
}

void message_release(struct messages *m, struct message_event *event)
{
    switch (event->kind) {
    case EVENT_MESSAGE:
    case EVENT_SENT:
    case EVENT_RECEIVED:
        pool_give(&m->links->pool, event);
        return;
    case EVENT_LOST:
        link_free(m, p2p_link_find(m, event->member, false));
        return;
    case EVENT_ROOM:
        return;
    }
}

void message_discard(struct message_event *message)
{
    pool_discard(message);
}

void message_free(struct messages *m)
{
    struct message_event *event;
    EACH_LINK(m, l)
    {
        l->conn = NO_CONN;
        l->open = false;
        p2p_link_end_all(m, &l->sends, 0);
        p2p_link_end_all(m, &l->expects, 0);
    }
    m->out.event = NULL;
    while ((event = message_take(m))) message_release(m, event);
    EACH_LINK(m, l) link_free(m, l);
}

/* ------------------------------------------------------------------- losses */

static void finish_lost(struct messages *m, struct p2p_link *l, int result)
{
    p2p_link_end_all(m, &l->sends, result);
    p2p_link_end_all(m, &l->expects, result);
    l->running = l->running_last = NULL;
    drop_items(m, l);
    if (result != pcclRankConnectionLost || l->lost.queued) return;
    if (m->used || m->untold < UNTOLD_MAX) {
        m->untold += !m->used;
        p2p_link_push(m, &l->lost);
    } else if (l->inbox_count == 0 && !l->room.queued) {
        link_free(m, l);
    }
}

/* Rule P2P-7: items that have arrived from a lost member are read before its
 * end. */
void message_lose(struct messages *m, uint64_t id)
{
    struct p2p_link *l = p2p_link_find(m, id, true);
    if (!l || l->gone) return;
    l->gone = true;
    if (l->conn != NO_CONN && !l->open)
        conn_reject(m->links, l->conn);
    else if (l->conn == NO_CONN)
        finish_lost(m, l, pcclRankConnectionLost);
}

void message_stop(struct messages *m, int result)
{
    EACH_LINK(m, l)
    {
        l->gone = true;
        finish_lost(m, l, result);
    }
}

/* ------------------------------------------------------------- connections */

bool message_full(const struct p2p_link *l)
{
    return l->inbox_count >= MESSAGE_INBOX_MAX ||
           l->inbox_bytes >= MESSAGE_INBOX_BYTES;
}

static void hello(const struct p2p_link *l, struct frame *f)
{
    f->flags = FLAG_MESSAGES;
    f->epoch = l->seq;
    f->index = l->dials;
}

/* The connection no longer belongs to this link; the caller closes it. */
static void detach(struct messages *m, struct p2p_link *l)
{
    m->links->conns[l->conn]->peer = NULL;
    pool_give(&m->links->pool, l->rx_block);
    l->rx_block = NULL;
    l->rx_rndv = NULL;
    l->rx_numbered = l->tx_item = false;
    l->conn = NO_CONN;
    l->open = false;
    l->sent = 0;
    m->poll_set.known = false;
}

static void on_closed(void *user, struct conn *c, bool dialed)
{
    struct messages *m = user;
    struct p2p_link *l = c->peer;
    PCCL_ASSERT(l->conn == c->number);
    detach(m, l);
    if (l->gone) {
        finish_lost(m, l, pcclRankConnectionLost);
        return;
    }
    l->retry_at = m->links->now;
    l->asks = dialed || l->inward;
    if (dialed) {
        pccl_ns pause = 10 * PCCL_MS;
        for (uint32_t i = 0; i < l->failures && pause < m->links->deadline / 5;
             i++)
            pause *= 2;
        l->retry_at += pause;
        l->failures++;
    }
    m->pending = true;
}

static void hang_up(struct messages *m, struct p2p_link *l)
{
    uint32_t number = l->conn;
    detach(m, l);
    conn_close(m->links, number);
}

static void dial(struct messages *m, struct p2p_link *l)
{
    const struct wire_member *member = links_member(m->links, l->id);
    if (!member) return;
    l->dials++;
    l->host = member->host;
    const struct link *other = link_find(m->links, l->id, false);
    uint32_t turn = l->dials - 1 + (other ? other->turn : 0); /* rule N2 */
    uint32_t number =
        link_dial(m->links, l->id, l->host, wire_dial_addr(member, turn));
    if (number != NO_CONN) {
        m->links->conns[number]->peer = l;
        l->conn = number;
        m->poll_set.known = false;
        return;
    }
    l->failures++;
    l->retry_at = m->links->now + 10 * PCCL_MS;
}

/* This end's dials for the collectives did not get through (rule R3). */
static bool is_walled(struct messages *m, const struct p2p_link *l)
{
    if (l->dials > 0 || l->peer_dials > 0) return false; /* own dials decide */
    const struct link *other = link_find(m->links, l->id, false);
    return other && link_is_inward(m->links, other);
}

/* Rule P2P-10: this end dials, and asks the other one to dial, in turn. */
static void attempt(struct messages *m, struct p2p_link *l)
{
    bool asks = (l->asks || (!l->asked && is_walled(m, l))) && m->out.ask;
    l->asks = false;
    if (!asks || !m->out.ask(m->out.user, l->id, l->dials, l->peer_dials)) {
        dial(m, l);
        return;
    }
    l->asked = true;
    l->retry_at = m->links->now + m->links->deadline / 2;
}

void message_dial_requested(struct messages *m, uint64_t id, uint32_t dials,
                            uint32_t known)
{
    struct p2p_link *l =
        links_member(m->links, id) ? p2p_link_find(m, id, true) : NULL;
    if (!l || l->gone || id == m->links->self) return;
    if (l->conn != NO_CONN) {
        /* A dial is under way, or was made since then. */
        if ((int32_t)(l->dials - known) > 0) return;
        if ((int32_t)(l->peer_dials - dials) > 0) return;
        hang_up(m, l);
    }
    dial(m, l);
}

void message_progress(struct messages *m)
{
    if (!m->pending) return;
    m->pending = false;
    EACH_LINK(m, l)
    {
        if (l->gone || l->conn != NO_CONN || !needs_conn(l)) continue;
        if (m->links->now >= l->retry_at) attempt(m, l);
        if (l->conn == NO_CONN) m->pending = true;
    }
}

bool message_pending(const struct messages *m)
{
    return m->pending;
}

void p2p_link_want(struct messages *m, struct p2p_link *l)
{
    if (l->open || l->gone || l->conn != NO_CONN) return;
    m->pending = true;
    message_progress(m);
}

/* Rule P2P-3: decides which of two dials stands. A HELLO that does not match
 * the dialer's latest dial has been overtaken by another connection. */
static bool may_replace(struct messages *m, struct p2p_link *l, uint32_t dials)
{
    if ((int32_t)(dials - l->peer_dials) <= 0) return false;
    if (l->conn == NO_CONN) return true;
    const struct conn *old = m->links->conns[l->conn];
    if (old->state == CONN_DIALED && m->links->self < l->id) return false;
    hang_up(m, l);
    return true;
}

/* The body of a HELLO is complete and valid. False: close. */
static bool on_open(void *user, struct conn *c, uint64_t from)
{
    struct messages *m = user;
    const struct frame f = c->rx;
    struct p2p_link *l = c->peer;
    if (!(f.flags & FLAG_MESSAGES)) return false;
    if (c->state == CONN_DIALED) {
        if (!l || from != l->id) return false; /* dialed for something else */
    } else {
        l = p2p_link_find(m, from, false);
        if (l && l->gone) return false;
        if (!links_member(m->links, from)) {
            c->parked = c->stranger = true; /* rule P2P-2 */
            return true;
        }
        l = p2p_link_find(m, from, true);
        if (!l || !may_replace(m, l, f.index)) return false;
        c->peer = l;
        l->conn = c->number;
    }
    if (!p2p_link_acked(m, l, f.epoch, l->count)) return false;
    if ((int32_t)(f.index - l->peer_dials) > 0) l->peer_dials = f.index;
    l->inward = l->asked && c->state == CONN_ACCEPTED;
    l->asked = false;
    c->state = CONN_OPEN;
    c->last_recv = m->links->now;
    l->open = true;
    l->sent = 0;
    l->failures = 0;
    conn_dirty(m->links, c->number);
    return true;
}

bool message_flush(struct messages *m)
{
    bool waits = false;
    EACH_LINK(m, l)
    {
        if (l->unacked_items > 0) {
            l->ack_due = true;
            p2p_link_dirty(m, l);
        }
        /* A member that dials do not reach has most likely left. */
        if (l->gone || l->count == 0 || l->failures > 1) continue;
        waits = true;
        if (l->open) {
            l->answer_due = true;
            p2p_link_dirty(m, l);
        }
    }
    return waits;
}

uint32_t message_conn(struct messages *m, uint64_t member)
{
    const struct p2p_link *l = p2p_link_find(m, member, false);
    return l ? l->conn : NO_CONN;
}

/* ----------------------------------------------------------------- the links
 */

static bool ended(const struct p2p_link *l)
{
    return l->gone;
}

static void changed(void *user)
{
    struct messages *m = user;
    m->poll_set.known = false;
}

void message_init(struct messages *m, struct links *links,
                  const struct message_events *events)
{
    m->links = links;
    m->out = *events;
    links->p2p = (struct p2p_client){.user = m,
                                     .hello = hello,
                                     .open = on_open,
                                     .closed = on_closed,
                                     .next_send = message_next_send,
                                     .sent = message_sent,
                                     .full = message_full,
                                     .waits = waits,
                                     .ended = ended,
                                     .take_whole = message_take_whole,
                                     .changed = changed};
    message_receive_frames(m);
}
