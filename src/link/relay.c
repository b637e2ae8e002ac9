/* relay.c - connections of other members that this one relays: who may come,
 * who is joined, and bounded copying. See relay.h; rules N12 and N13. */
#include "link.h"

#include <string.h>

static bool is_named(const struct links *n, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < n->relay.pair_count; i++) {
        const uint64_t *pair = n->relay.pairs[i];
        if ((pair[0] == a && pair[1] == b) || (pair[0] == b && pair[1] == a))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------- legs */

static void release(struct links *n, struct relay_leg *leg)
{
    struct relay_leg **slot = &n->relay.legs;
    while (*slot != leg) slot = &(*slot)->next;
    *slot = leg->next;
    pool_give(&n->pool, leg);
}

void relay_free(struct links *n)
{
    while (n->relay.legs) release(n, n->relay.legs);
}

/* Rule N12c: the newest legs of a kind stay. */
static void make_room(struct links *n, const struct relay_leg *newest)
{
    uint32_t most = newest->listens ? 1 : RELAY_DIALS_MAX, count = 0;
    for (struct relay_leg *l = n->relay.legs, *next; l; l = next) {
        next = l->next;
        if (l->other || l->from != newest->from || l->to != newest->to ||
            l->listens != newest->listens || count++ < most)
            continue;
        conn_close(n, l->conn->number);
        return;
    }
}

/* Of the dials that wait the oldest is served: the last one in the list. */
static struct relay_leg *partner_of(const struct links *n,
                                    const struct relay_leg *leg)
{
    struct relay_leg *found = NULL;
    for (struct relay_leg *l = n->relay.legs; l; l = l->next) {
        bool fits = l->from == leg->to && l->to == leg->from;
        if (fits && !l->other && l->conn && l->listens != leg->listens)
            found = l;
    }
    return found;
}

bool relay_open(struct links *n, struct conn *c)
{
    const struct frame_hello hello = frame_hello_decode(c->hello);
    bool ours =
        hello.key[0] == n->key.word[0] && hello.key[1] == n->key.word[1];
    if (n->self == 0) return conn_park(c); /* WELCOME is under way */
    if (!ours || c->rx.scope != n->self || c->listens > 0) return false;
    if (!is_named(n, hello.from, hello.to)) return conn_park(c);
    struct relay_leg *leg = pool_take(&n->pool, sizeof *leg);
    if (!leg) return false;
    leg->conn = c;
    leg->other = NULL;
    leg->from = hello.from;
    leg->to = hello.to;
    leg->listens = (c->rx.flags & FLAG_LISTEN) != 0;
    leg->first = leg->count = 0;
    leg->next = n->relay.legs;
    n->relay.legs = leg;
    c->leg = leg;
    c->state = CONN_OPEN;
    c->last_recv = n->now;
    make_room(n, leg);
    leg->other = partner_of(n, leg);
    if (!leg->other) return true;
    leg->other->other = leg;
    conn_dirty(n, c->number);
    conn_dirty(n, leg->other->conn->number);
    return true;
}

bool relay_is_late(const struct links *n, const struct conn *c)
{
    pccl_ns most = PCCL_TIME_TO_DETECT(n->deadline);
    if (c->leg->listens) most = n->deadline; /* its owner renews it before */
    return !c->leg->other && n->now - c->last_recv >= most;
}

void relay_closed(struct links *n, struct conn *c)
{
    struct relay_leg *leg = c->leg, *other = leg->other;
    c->leg = NULL;
    leg->conn = NULL;
    if (!other || !other->conn) {
        release(n, leg);
        if (other) release(n, other);
    } else if (leg->count == 0) {
        conn_close(n, other->conn->number);
    }
}

void links_prune(struct links *n)
{
    struct relay_leg *l = n->relay.legs;
    while (l) {
        struct relay_leg *next = l->next;
        bool ends = l->conn && !is_named(n, l->from, l->to);
        if (ends) conn_close(n, l->conn->number);
        l = ends ? n->relay.legs : next; /* the other one may have gone, too */
    }
}

uint32_t links_relays(const struct links *n, uint64_t *bytes)
{
    uint32_t joined = 0;
    for (const struct relay_leg *l = n->relay.legs; l; l = l->next)
        joined += l->other && l->listens;
    *bytes = n->relay.bytes;
    return joined;
}

/* ------------------------------------------------------------------- bytes */

static void arrived(struct links *n, struct relay_leg *leg, size_t size)
{
    const struct relay_leg *other = leg->other;
    leg->count += (uint32_t)size;
    n->relay.bytes += size;
    if (other && other->conn) conn_dirty(n, other->conn->number);
}

/* Nobody speaks before the other end is there but its dialer. */
static bool may_speak(const struct relay_leg *leg)
{
    return leg->other || !leg->listens;
}

bool relay_absorb(struct links *n, struct conn *c)
{
    struct relay_leg *leg = c->leg;
    uint32_t size = c->rx_filled - c->rx_parsed;
    static_assert((int)RELAY_PIPE >= (int)RX_BUFFER_SIZE, "it fits");
    if (size > 0 && !may_speak(leg)) return false;
    memcpy(leg->bytes, c->rx_buffer + c->rx_parsed, size);
    c->rx_filled = c->rx_parsed = 0;
    arrived(n, leg, size);
    return true;
}

size_t relay_rx_window(struct links *n, struct conn *c, uint8_t **to)
{
    struct relay_leg *leg = c->leg;
    if (leg->other && !leg->other->conn) { /* for nobody: only its end counts */
        *to = n->trash;
        return sizeof n->trash;
    }
    uint32_t at = (leg->first + leg->count) % RELAY_PIPE;
    uint32_t room = leg->count < n->relay.pipe ? n->relay.pipe - leg->count : 0;
    *to = leg->bytes + at;
    return room < RELAY_PIPE - at ? room : RELAY_PIPE - at;
}

bool relay_rx(struct links *n, struct conn *c, size_t size)
{
    struct relay_leg *leg = c->leg;
    if (leg->other && !leg->other->conn) return true;
    if (!may_speak(leg)) return false;
    PCCL_ASSERT(size <= RELAY_PIPE - leg->count);
    arrived(n, leg, size);
    return true;
}

uint32_t relay_tx_window(const struct conn *c, struct conn_part parts[2])
{
    const struct relay_leg *from = c->leg->other;
    if (!from || from->count == 0) return 0;
    uint32_t size = RELAY_PIPE - from->first;
    if (size > from->count) size = from->count;
    parts[0] = (struct conn_part){from->bytes + from->first, size};
    if (size == from->count) return 1;
    parts[1] = (struct conn_part){from->bytes, from->count - size};
    return 2;
}

void relay_tx(struct links *n, struct conn *c, size_t size)
{
    struct relay_leg *from = c->leg->other;
    PCCL_ASSERT(size <= from->count);
    from->count -= (uint32_t)size;
    from->first = (from->first + (uint32_t)size) % RELAY_PIPE;
    if (from->count > 0) return;
    from->first = 0;
    if (!from->conn) conn_close(n, c->number);
}
