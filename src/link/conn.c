/* conn.c - the beginning of a connection, the HELLOs of both ends, and its end.
 * See conn.h; rules R3, R6, L1. */
#include "link.h"

#include <stdlib.h>
#include <string.h>

static bool take(struct links *n, uint32_t number)
{
    PCCL_ASSERT(number < CONNS_MAX);
    if (!n->conns[number])
        n->conns[number] = calloc(1, sizeof *n->conns[number]);
    struct conn *c = n->conns[number];
    if (!c) return false;
    PCCL_ASSERT(c->state == CONN_FREE);
    uint8_t *scratch = c->scratch;
    memset(c, 0, sizeof *c);
    c->scratch = scratch;
    c->number = number;
    c->state = CONN_ACCEPTED;
    c->last_recv = c->last_sent = n->now;
    c->deaf_at = PCCL_NEVER;
    if (number >= n->conn_end) n->conn_end = number + 1;
    return true;
}

/* Rule R3i: of too many connections that have not said who they are, the one
 * that has been silent for the longest makes room. */
static void limit_strangers(struct links *n)
{
    const struct conn *oldest = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->conn_end; i++) {
        const struct conn *c = n->conns[i];
        if (!c || c->state != CONN_ACCEPTED || c->stranger) continue;
        count++;
        if (!oldest || c->last_recv < oldest->last_recv) oldest = c;
    }
    if (count >= LINK_STRANGERS_MAX) conn_close(n, oldest->number);
}

bool conn_accepted(struct links *n, uint32_t number)
{
    limit_strangers(n);
    return take(n, number);
}

bool conn_begin_dial(struct links *n, uint32_t number, uint64_t to,
                     uint64_t host)
{
    if (!take(n, number)) {
        n->driver.close(n->driver.user, number);
        return false;
    }
    struct conn *c = n->conns[number];
    c->state = CONN_DIALED;
    c->to = to;
    c->to_host = host;
    return true;
}

void conn_dirty(struct links *n, uint32_t number)
{
    n->dirty[number / 64] |= (uint64_t)1 << (number % 64);
}

bool conn_may_send(const struct links *n, uint32_t number)
{
    return (n->dirty[number / 64] >> (number % 64)) & 1;
}

void conn_clear_dirty(struct links *n, uint32_t number)
{
    n->dirty[number / 64] &= ~((uint64_t)1 << (number % 64));
}

bool conn_is_idle(const struct conn *c)
{
    return conn_sent_all(c) && c->rx_state == RX_HEADER && c->rx_filled == 0 &&
           !c->parked;
}

/* ------------------------------------------------------------------- memory */

void channel_offer_encode(const struct channel_offer *offer, struct frame *f)
{
    f->seq = offer->size;
    f->tag = offer->nonce;
    f->digest = (uint64_t)offer->pid << 32 | offer->fd;
}

struct channel_offer channel_offer_decode(const struct frame *f)
{
    return (struct channel_offer){.pid = (uint32_t)(f->digest >> 32),
                                  .fd = (uint32_t)f->digest,
                                  .size = f->seq,
                                  .nonce = f->tag};
}

/* Rule L1: the dialer offers memory to a member of the same host. */
static void offer_memory(struct links *n, struct conn *c, struct frame *f)
{
    const struct driver *d = &n->driver;
    if (!d->share || c->to_host != n->host || c->relayed) return;
    struct channel_offer offer;
    c->offered = d->share(d->user, c->number, &offer);
    if (!c->offered) return;
    f->flags |= FLAG_SHARE;
    channel_offer_encode(&offer, f);
}

void conn_settle_memory(struct links *n, struct conn *c, bool dialed)
{
    const struct driver *d = &n->driver;
    bool share = (c->rx.flags & FLAG_SHARE) != 0;
    if (dialed && c->offered) {
        if (share) c->channel = c->offered;
        c->offered = NULL;
        d->shared(d->user, c->number, share);
    } else if (!dialed && share && d->join) {
        struct channel_offer offer = channel_offer_decode(&c->rx);
        c->channel = d->join(d->user, c->number, &offer);
    }
}

/* ------------------------------------------------------------------ opening */

void conn_queue_hello(struct links *n, struct conn *c)
{
    struct frame f = {.type = FRAME_HELLO, .size = FRAME_HELLO_SIZE};
    if (c->peer) n->p2p.hello(c->peer, &f);
    if (c->guest) f.flags = FLAG_GUEST;
    if (c->link) f.index = c->generation = c->link->generation;
    if (c->state == CONN_DIALED) offer_memory(n, c, &f);
    if (c->channel) f.flags |= FLAG_SHARE;
    uint32_t at = conn_sent_all(c) ? 0 : c->tx_head_size;
    frame_encode(&f, c->tx_head + at);
    struct frame_hello hello = {
        .key = {n->key.word[0], n->key.word[1]}, .from = n->self, .to = c->to};
    frame_hello_encode(&hello, c->tx_head + at + FRAME_SIZE);
    /* Rule R3c: the answer is as long as the question. */
    bool further = c->link && c->link->open > 0;
    if (c->state == CONN_DIALED) c->further = further;
    struct frame fill = {.type = FRAME_FILL,
                         .size = c->further ? 0 : n->fill_size};
    frame_encode(&fill, c->tx_head + at + FRAME_SIZE + FRAME_HELLO_SIZE);
    if (at == 0) c->tx_head_done = 0;
    c->tx_head_size = at + 2 * FRAME_SIZE + FRAME_HELLO_SIZE;
    c->tx_left = fill.size; /* padding */
    c->greets = true;
    conn_dirty(n, c->number);
}

static void link_measured(const struct conn *c)
{
    if (c->rtt > 0 && (c->link->rtt == 0 || c->rtt < c->link->rtt))
        c->link->rtt = c->rtt;
}

void conn_measured(struct links *n, uint32_t number, pccl_ns rtt)
{
    struct conn *c = n->conns[number];
    if (c->relayed) rtt *= 2; /* as if the other part were as long */
    if (rtt >= RTT_HIGH) n->high_rtt = true;
    c->rtt = rtt;
    if (c->state == CONN_DIALED && c->link) link_measured(c);
}

void conn_dialed(struct links *n, uint32_t number, bool success)
{
    struct conn *c = n->conns[number];
    PCCL_ASSERT(c && c->state == CONN_DIALED);
    if (!success || (c->link && !link_has_room(n, c->link))) {
        conn_close(n, number);
        return;
    }
    if (c->relayed) way_begin(n, c);
    if (c->listens == 0) conn_queue_hello(n, c);
}

/* A connection that the dialer has closed must carry nothing any more, even if
 * its end has not arrived here yet (rule R3). */
static bool close_older(struct links *n, struct conn *c)
{
    struct link *l = c->link;
    c->generation = c->rx.index;
    if (c->generation < l->generation) return false;
    l->generation = c->generation;
    const struct conn *other = l->conns;
    for (; other; other = link_conn_from(l, other->number + 1)) {
        if (other->state != CONN_OPEN || other == c) continue;
        if (other->generation == l->generation) continue;
        conn_close(n, other->number);
    }
    return true;
}

static void changed(struct links *n)
{
    for (int i = 0; i < CLIENT_COUNT; i++) {
        const struct link_client *client = &n->clients[i];
        if (client->changed) client->changed(client->user);
    }
}

bool conn_park(struct conn *c)
{
    c->parked = c->stranger = true;
    return true;
}

/* Rule R3g. */
static bool park_ahead(struct conn *c)
{
    c->ahead = true;
    return conn_park(c);
}

static bool open_p2p(struct links *n, struct conn *c, uint64_t from)
{
    bool dialed = c->state == CONN_DIALED;
    if (!n->p2p.open || !n->p2p.open(n->p2p.user, c, from)) return false;
    if (c->state != CONN_OPEN) return true;
    c->to = from;
    conn_settle_memory(n, c, dialed);
    if (!dialed) conn_queue_hello(n, c);
    return true;
}

/* Rule S10c: it belongs to no link, and counts for nothing. */
static bool open_guest(struct links *n, struct conn *c)
{
    if (c->state != CONN_ACCEPTED || !n->guests.open ||
        !n->guests.open(n->guests.user, c))
        return false;
    c->state = CONN_OPEN;
    c->last_recv = n->now;
    conn_queue_hello(n, c);
    return true;
}

static bool open_accepted(struct links *n, struct conn *c, uint64_t from)
{
    struct link *l = link_find(n, from, false);
    if (!links_member(n, from) && !(l && l->wanted)) {
        /* Rule R3g: a lower id that is not in the view has been removed. */
        return from < n->self && n->view->size > 0 ? false : park_ahead(c);
    }
    /* Rule R3b: of two dials under way at once that of the lower id stands. */
    bool mine = l && n->self < from;
    if (mine && l->open > 0 && l->outward && c->rx.index == l->generation)
        return false;
    if (mine && link_greets(l)) return conn_park(c);
    if (!l) l = link_find(n, from, true);
    if (!l) return false;
    link_join(l, c);
    if (!close_older(n, c)) {
        link_leave(c);
        return false;
    }
    link_measured(c);
    c->to = from;
    c->state = CONN_OPEN;
    conn_settle_memory(n, c, false);
    conn_queue_hello(n, c);
    return true;
}

static void opened(struct links *n, struct conn *c, bool dialed)
{
    struct link *l = c->link;
    c->state = CONN_OPEN;
    c->last_recv = n->now;
    if (!dialed) link_forget_dials(n, l);
    if (l->open++ == 0) {
        l->outward = dialed;
        l->carried = l->silent = false;
        link_made(n, l);
    }
    c->made = c->asked = l->attempt;
    c->alive = l->attempt - !dialed;
    c->accepted = !dialed;
    c->ping = dialed;
    link_settle(l);
    link_dirty(n, l);
    if (dialed) way_found(n, c);
    link_need(n, l);
    if (dialed) conn_resume(n); /* those that waited for this dial */
    links_dial_next(n);
}

static bool open_by_hello(struct links *n, struct conn *c)
{
    const struct frame_hello hello = frame_hello_decode(c->hello);
    const uint64_t from = hello.from;
    changed(n);
    if (n->p2p.changed) n->p2p.changed(n->p2p.user);
    bool dialed = c->state == CONN_DIALED;
    c->ahead = false;
    if (n->self == 0) return park_ahead(c); /* WELCOME, PROPOSE are to come */
    bool ours =
        hello.key[0] == n->key.word[0] && hello.key[1] == n->key.word[1];
    if (!ours || hello.to != n->self || from == n->self) return false;
    if (!c->peer && (c->rx.flags & FLAG_GUEST)) return open_guest(n, c);
    if (c->listens > 0 && (from != c->listens || !conn_sent_all(c)))
        return false;
    if (!dialed && way_is_wrong(n, c, from)) return conn_park(c);
    if (c->peer || (c->rx.flags & FLAG_MESSAGES)) return open_p2p(n, c, from);
    if (c->state == CONN_DIALED) {
        if (from != c->link->id || c->generation != c->link->generation)
            return false;
        c->link->dialing--;
        conn_settle_memory(n, c, true);
    } else {
        if (!open_accepted(n, c, from)) return false;
        if (c->state != CONN_OPEN) return true;
    }
    opened(n, c, dialed);
    return true;
}

bool conn_open(struct links *n, struct conn *c)
{
    if (c->rx.type == FRAME_RELAY) return relay_open(n, c);
    bool right = open_by_hello(n, c);
    if (right && c->state == CONN_OPEN && c->listens > 0) way_served(n, c);
    return right;
}

/* ------------------------------------------------------------------- ending */

void conn_drop_tx(struct conn *c)
{
    if (c->tx_busy) *c->tx_busy = false;
    c->tx_busy = NULL;
}

static void let_go(struct links *n, struct conn *c)
{
    struct link *l = c->link;
    if (l) link_drop_half_unexpected(n, c);
    if (l && c->state == CONN_DIALED) l->dialing--;
    if (l && c->state == CONN_OPEN) l->open--;
    n->missed |= c->ahead;
    c->state = CONN_FREE;
    link_leave(c);
    conn_drop_tx(c);
    c->channel = c->offered = NULL;
    pool_give(&n->pool, c->region.post);
    c->region = (struct conn_region){0};
    changed(n);
}

void conn_forget_dial(struct links *n, struct conn *c)
{
    n->driver.close(n->driver.user, c->number);
    let_go(n, c);
}

/* Rule R6: data that the other end has sent on a lost connection, or sends
 * before it notices the loss, are missed only if nothing else of the link
 * works. */
static void close_rest(struct links *n, const struct link *l)
{
    struct conn *c = l->conns;
    for (; c; c = link_conn_from(l, c->number + 1)) {
        n->driver.close(n->driver.user, c->number);
        let_go(n, c);
    }
}

void link_lost(struct links *n, struct link *l, bool never)
{
    for (int i = 0; i < CLIENT_COUNT; i++) {
        const struct link_client *client = &n->clients[i];
        if (client->closed) client->closed(client->user, l, never);
        if (i == CLIENT_BEFORE_CONTROL) probe_closed(n, l);
    }
}

/* Rule R3d: what a dial lacked may be there by now, a little later it is more
 * likely. */
static void redial(struct links *n, struct link *l)
{
    enum { AT_ONCE = 2 };
    if (!l->sought || l->open > 0 || l->dialing > 0) return;
    if (l->redials++ < AT_ONCE) {
        l->dial_at = n->now;
        l->again = false;
    }
    link_need(n, l);
}

void conn_closed(struct links *n, uint32_t number)
{
    struct conn *c = n->conns[number];
    if (!c || c->state == CONN_FREE) return;
    struct link *l = c->link;
    bool dialed = c->state == CONN_DIALED;
    bool had = l && l->open > 0;
    /* The other end may have taken the connection, and sent on it. */
    bool used = c->state == CONN_OPEN || (dialed && c->tx_head_size > 0);
    uint32_t generation = c->generation;
    let_go(n, c);
    if (c->leg) {
        relay_closed(n, c);
        return;
    }
    if (c->peer) {
        n->p2p.closed(n->p2p.user, c, dialed);
        return;
    }
    if (c->guest) {
        n->guests.closed(n->guests.user, c);
        c->guest = NULL;
        return;
    }
    if (!l) return;
    if (used && generation == l->generation) {
        l->generation++; /* rule R6a */
        close_rest(n, l);
    }
    if (had && l->open == 0) {
        link_lost(n, l, false);
        if (n->frozen && l->wanted) link_again(n, l);
        return;
    }
    redial(n, l);
}

void conn_close(struct links *n, uint32_t number)
{
    n->driver.close(n->driver.user, number);
    conn_closed(n, number);
}

bool conn_reject(struct links *n, uint32_t number)
{
    conn_close(n, number);
    return false;
}
