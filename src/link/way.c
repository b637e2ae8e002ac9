/* way.c - how a member is reached: at the address that it announces, at the one
 * that the master sees (rule N2), or over a relay. There this member listens
 * for each member that it reaches so, and its dials go there. See relay.h; rule
 * N11. */
#include "link.h"

/* Dials that nobody has taken would count as connections until the system gives
 * them up. The other end has seen nothing of them. */
void way_found(struct links *n, const struct conn *c)
{
    struct link *l = c->link;
    l->turn = c->turn;
    struct conn *other = l->conns;
    for (; other; other = link_conn_from(l, other->number + 1)) {
        if (other->state == CONN_DIALED && other->turn != c->turn &&
            other->tx_head_size == 0)
            conn_forget_dial(n, other);
    }
}

static bool has_two_addresses(const struct link *l)
{
    const struct wire_member *m = l->relayed ? &l->relay_member : &l->member;
    return m->announced.family != 0 && !(l->relayed && l->relay == 0);
}

/* What stands at a wrong address may take a connection and be silent. */
void way_try_other(struct links *n, struct link *l, pccl_ns time)
{
    if (!has_two_addresses(l)) return;
    const struct conn *c = l->conns;
    for (; c && l->open == 0; c = link_conn_from(l, c->number + 1)) {
        if (c->state != CONN_DIALED || c->tx_head_size == 0 ||
            n->now - c->last_recv < time)
            continue;
        l->turn = c->turn + 1; /* other dials are lost with it (R6a) */
        conn_close(n, c->number);
    }
}

/* Rule N2: to the address where a dial of this member has reached the relay, or
 * to both in turn. */
static uint32_t dial_relay(struct links *n, const struct link *l)
{
    const struct driver *d = &n->driver;
    const struct link *to = link_find(n, l->relay, false);
    bool reached = to && to->open > 0 && to->outward;
    uint32_t turn = reached ? to->turn : l->turn;
    if (l->relay != 0)
        return d->dial(d->user, wire_dial_addr(&l->relay_member, turn));
    return d->dial_master ? d->dial_master(d->user) : NO_CONN;
}

uint32_t link_dial(struct links *n, uint64_t id, uint64_t host,
                   const struct wire_addr *addr)
{
    const struct link *l = link_find(n, id, false);
    bool relayed = l && l->relayed;
    uint32_t number =
        relayed ? dial_relay(n, l) : n->driver.dial(n->driver.user, addr);
    if (number == NO_CONN || !conn_begin_dial(n, number, id, host))
        return NO_CONN;
    n->conns[number]->relayed = relayed;
    if (relayed) n->conns[number]->relay = l->relay;
    return number;
}

/* What a relay is told first. */
static uint32_t encode(const struct links *n, const struct conn *c,
                       uint8_t out[TX_HEAD_MAX])
{
    uint64_t to = c->listens > 0 ? c->listens : c->to;
    struct frame_hello ends = {
        .key = {n->key.word[0], n->key.word[1]}, .from = n->self, .to = to};
    struct frame f = {.type = FRAME_RELAY,
                      .flags = c->listens > 0 ? FLAG_LISTEN : 0,
                      .scope = c->relay,
                      .size = FRAME_HELLO_SIZE};
    if (c->relay == 0) {
        struct wire_msg msg = {.type = WIRE_RELAY};
        msg.relay.key = n->key;
        msg.relay.from = n->self;
        msg.relay.to = to;
        msg.relay.listens = c->listens > 0;
        static_assert(WIRE_RELAY_SIZE <=
                          TX_HEAD_MAX - 2 * FRAME_SIZE - FRAME_HELLO_SIZE,
                      "HELLO and FILL follow");
        return (uint32_t)wire_encode(&msg, out);
    }
    frame_encode(&f, out);
    frame_hello_encode(&ends, out + FRAME_SIZE);
    return FRAME_SIZE + FRAME_HELLO_SIZE;
}

void way_begin(struct links *n, struct conn *c)
{
    c->tx_head_size = encode(n, c, c->tx_head);
    c->tx_head_done = 0;
    c->last_recv = n->now;
    if (c->listens > 0) c->state = CONN_ACCEPTED;
    conn_dirty(n, c->number);
}

bool way_is_wrong(struct links *n, const struct conn *c, uint64_t from)
{
    const struct link *l = link_find(n, from, false);
    return c->listens == 0 && l && l->relayed;
}

/* No dial has come over it yet. */
static bool is_listening(const struct conn *c, uint64_t id)
{
    return c && c->state != CONN_FREE && c->listens == id &&
           c->hello_frame.type == 0;
}

/* Rule N11a: one connection waits at the relay. */
static void listen_there(struct links *n, struct link *l)
{
    if (!l->relayed || n->now < l->listen_at) return;
    for (uint32_t i = 0; i < n->conn_end; i++)
        if (is_listening(n->conns[i], l->id)) return;
    l->listen_at = n->now + PCCL_TIME_OF_TICK(n->deadline);
    uint32_t number = dial_relay(n, l);
    if (number == NO_CONN || !conn_begin_dial(n, number, 0, 0)) return;
    struct conn *c = n->conns[number];
    c->turn = l->turn;
    c->relayed = true;
    c->relay = l->relay;
    c->listens = l->id;
}

void way_served(struct links *n, struct conn *c)
{
    struct link *l = link_find(n, c->listens, false);
    c->listens = 0;
    if (!l) return;
    l->turn = c->turn;
    l->listen_at = n->now;
    listen_there(n, l);
}

void way_tick(struct links *n, struct link *l)
{
    listen_there(n, l);
}

void way_leave(struct links *n, struct link *l)
{
    l->relayed = false;
    for (uint32_t i = 0; i < n->conn_end; i++) {
        const struct conn *c = n->conns[i];
        if (c && c->state != CONN_FREE && c->listens == l->id) conn_close(n, i);
    }
}

/* ------------------------------------------------------------- a proposal */

static const struct relay_way *find(const struct links *n,
                                    const struct relay_way *ways,
                                    uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct relay_way *w = &ways[i];
        if ((w->a == n->self && w->b == id) || (w->b == n->self && w->a == id))
            return w;
    }
    return NULL;
}

/* Rule N11c. */
static void take_way(struct links *n, struct link *l, const struct relay_way *w)
{
    if (!w && !l->relayed) return;
    if (w && l->relayed && l->relay == w->relay) return;
    link_close(n, l);
    way_leave(n, l);
    l->failed = false; /* by another way */
    if (!w) return;
    l->relayed = true;
    l->relay = w->relay;
    l->relay_member = w->member;
    l->listen_at = n->now;
    listen_there(n, l);
}

void links_set_ways(struct links *n, const struct relay_way *ways,
                    uint32_t count)
{
    struct relay *r = &n->relay;
    r->pair_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t other = ways[i].a == n->self ? ways[i].b : ways[i].a;
        bool mine = ways[i].a == n->self || ways[i].b == n->self;
        if (mine) (void)link_find(n, other, true);
        if (ways[i].relay != n->self || r->pair_count == RELAYED_MAX) continue;
        r->pairs[r->pair_count][0] = ways[i].a;
        r->pairs[r->pair_count++][1] = ways[i].b;
    }
    for (size_t i = 0; i < ARRAY_COUNT(n->table); i++)
        for (struct link *l = n->table[i]; l; l = l->next)
            take_way(n, l, find(n, ways, count, l->id));
}
