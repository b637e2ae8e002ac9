/* links.c - all links of one member: what they begin and end with, the passing
 * of time, and the frames that this folder takes itself. See link.h. */
#include "link.h"

#include "../base/buggify.h"

#include <stdlib.h>

/* ------------------------------------------------------- frames of this folder
 */

static bool begin_hello(void *user, struct conn *c)
{
    (void)user;
    c->rx_state = RX_BODY;
    c->rx_to = c->hello;
    return true;
}

static bool end_hello(void *user, struct conn *c)
{
    (void)user;
    if (c->hello_frame.type == FRAME_HELLO) return false;
    c->hello_frame = c->rx;
    return true;
}

static bool end_relay(void *user, struct conn *c)
{
    return conn_open(user, c);
}

static bool begin_fill(void *user, struct conn *c)
{
    struct links *n = user;
    if (c->hello_frame.type != FRAME_HELLO) return false;
    if (c->rx.size >= n->fill_size) return true;
    if (c->state == CONN_DIALED) return c->further;
    /* Rule R3c: the path is known. */
    const struct frame_hello hello = frame_hello_decode(c->hello);
    const struct link *l = link_find(n, hello.from, false);
    c->further = l && l->open > 0;
    return c->further;
}

/* Rule R3d: the HELLO counts once a full packet has come as well. */
static bool is_used(const struct links *n, const struct link *l)
{
    for (int i = 0; i < CLIENT_COUNT; i++) {
        const struct link_client *client = &n->clients[i];
        if (client->uses && client->uses(client->user, l)) return true;
    }
    return false;
}

static bool end_fill(void *user, struct conn *c)
{
    c->rx = c->hello_frame;
    return conn_open(user, c);
}

/* Rule R7a: what is sent here does not arrive, and somebody waits for that. */
static bool is_unheard(const struct links *n, struct conn *c)
{
    pccl_ns limit = link_time(n, c->link, n->deadline / 5);
    if (!(c->rx.flags & FLAG_DEAF)) {
        c->deaf_at = PCCL_NEVER;
        return false;
    }
    if (n->now < c->deaf_at) c->deaf_at = n->now;
    if (n->now - c->deaf_at < limit || !is_used(n, c->link)) return false;
    c->link->silent = true;
    return true;
}

/* Rule R3d: a PING with a number is answered, an answer shows that the link is
 * alive in both directions. */
static bool begin_ping(void *user, struct conn *c)
{
    if (is_unheard(user, c)) return false;
    if (c->accepted) {
        c->accepted = false;
        if (c->asked == c->link->attempt) c->alive = c->asked;
        link_settle(c->link);
    }
    if (c->rx.index == 0) return true;
    if (!(c->rx.flags & FLAG_ANSWER)) {
        c->asks = c->rx.index;
        c->ping = true;
        conn_dirty(user, c->number);
    } else {
        c->alive = c->rx.index;
        link_settle(c->link);
    }
    return true;
}

static bool begin_probe(void *user, struct conn *c)
{
    return probe_accept(user, c->link, &c->rx);
}

static bool end_probe(void *user, struct conn *c)
{
    probe_received(user, c->link, &c->rx);
    return true;
}

void links_receive(struct links *n, enum conn_use use, enum frame_type type,
                   const struct frame_handler *handler, void *user)
{
    n->routes[use][type] = (struct frame_route){*handler, user, true};
}

static void receive_own(struct links *n)
{
    static const struct {
        enum conn_use use;
        enum frame_type type;
        struct frame_handler handler;
    } rows[] = {
        {CONN_OF_LINK, FRAME_HELLO, {ON_GREETING, begin_hello, end_hello}},
        {CONN_OF_P2P_LINK, FRAME_HELLO, {ON_GREETING, begin_hello, end_hello}},
        {CONN_OF_LINK, FRAME_RELAY, {ON_ACCEPTED, begin_hello, end_relay}},
        {CONN_OF_LINK, FRAME_FILL, {ON_GREETING, begin_fill, end_fill}},
        {CONN_OF_P2P_LINK, FRAME_FILL, {ON_GREETING, begin_fill, end_fill}},
        {CONN_OF_LINK, FRAME_PING, {ON_OPEN, begin_ping, NULL}},
        {CONN_OF_LINK, FRAME_REGION, {ON_OPEN, region_accept, NULL}},
        {CONN_OF_LINK, FRAME_PROBE, {ON_OPEN, begin_probe, end_probe}},
        {CONN_OF_LINK, FRAME_ECHO, {ON_OPEN, begin_probe, NULL}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        links_receive(n, rows[i].use, rows[i].type, &rows[i].handler, n);
}

/* --------------------------------------------------------------------- life */

bool links_init(struct links *n, const struct driver *driver,
                uint32_t pool_size, pccl_ns deadline)
{
    n->driver = *driver;
    n->deadline = deadline;
    n->fill_size = FRAME_FILL_SIZE;
    n->relay.pipe = RELAY_PIPE;
    n->view = view_none();
    n->pool_auto = pool_size == 0;
    n->pool_size = pool_size > 0 ? pool_size : 1;
    if (n->pool_size > POOL_MAX) n->pool_size = POOL_MAX;
    receive_own(n);
    n->dirty = calloc(CONNS_MAX / 64, sizeof *n->dirty);
    return n->dirty != NULL;
}

static void free_link(struct links *n, struct link *l)
{
    link_drop_unexpected(n, l);
    pool_give(&n->pool, l->control);
    free(l);
}

void links_free(struct links *n)
{
    for (size_t i = 0; i < ARRAY_COUNT(n->table); i++) {
        while (n->table[i]) {
            struct link *next = n->table[i]->next;
            free_link(n, n->table[i]);
            n->table[i] = next;
        }
    }
    relay_free(n);
    for (uint32_t i = 0; i < n->conn_end; i++) {
        if (!n->conns[i]) continue;
        pool_give(&n->pool, n->conns[i]->scratch);
        pool_give(&n->pool, n->conns[i]->region.post);
        free(n->conns[i]);
        n->conns[i] = NULL;
    }
    view_release(n->view);
    n->view = view_none();
    free(n->dirty);
    n->dirty = NULL;
}

void links_free_pool(struct links *n)
{
    pool_trim(&n->pool);
}

static struct link **slot_of(struct links *n, uint64_t id)
{
    struct link **slot = &n->table[id % ARRAY_COUNT(n->table)];
    while (*slot && (*slot)->id != id) slot = &(*slot)->next;
    return slot;
}

struct link *link_find(struct links *n, uint64_t id, bool create)
{
    struct link **slot = slot_of(n, id);
    if (*slot || !create) return *slot;
    struct link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->id = id;
    l->want = 1;
    l->unexpected_end = &l->unexpected;
    *slot = l;
    return l;
}

void links_drop(struct links *n, uint64_t id)
{
    struct link **slot = slot_of(n, id);
    struct link *l = *slot;
    if (!l) return;
    l->wanted = l->sought = false;
    l->dropped = true; /* clients hear that it is closed, and may need it */
    way_leave(n, l);
    link_close(n, l);
    *slot = l->next;
    free_link(n, l);
}

const struct wire_member *links_member(const struct links *n, uint64_t id)
{
    uint32_t rank = view_find(n->view, id);
    return rank < n->view->size ? &n->view->members[rank] : NULL;
}

void links_install(struct links *n, const struct view *view)
{
    view_retain(view);
    view_release(n->view);
    n->view = view;
    n->frozen = false;
}

/* The epoch is closed: everything received or queued in it is void. */
void links_freeze(struct links *n)
{
    n->frozen = true;
    probe_cancel(n);
    for (size_t i = 0; i < ARRAY_COUNT(n->table); i++) {
        for (struct link *l = n->table[i]; l; l = l->next) {
            link_drop_unexpected(n, l);
            l->control_count = 0;
            l->eager_bytes = 0;
        }
    }
}

/* --------------------------------------------------------------------- time */

/* A link that anything waits for must show life. Pings ensure it, so silence
 * means that the link is dead even if both ends live (rule R7). */
static void check_silence(struct links *n, const struct conn *c)
{
    pccl_ns limit = link_time(n, c->link, PCCL_TIME_TO_DETECT(n->deadline));
    if (c->leg) {
        if (relay_is_late(n, c)) conn_close(n, c->number);
        return;
    }
    if (n->now - c->last_recv < limit) return;
    if (c->state == CONN_DIALED && c->link) return; /* link_tick() judges */
    if (c->state == CONN_OPEN && c->peer && !n->p2p.waits(c->peer)) return;
    if (c->state == CONN_OPEN && c->link && !is_used(n, c->link)) return;
    if (c->link) c->link->silent = true;
    conn_close(n, c->number);
}

static void tick_links(struct links *n)
{
    for (size_t i = 0; i < ARRAY_COUNT(n->table); i++)
        for (struct link *l = n->table[i]; l; l = l->next) {
            way_tick(n, l);
            link_tick(n, l);
        }
}

void links_tick(struct links *n, pccl_ns now)
{
    links_set_now(n, now);
    pool_age(&n->pool, now);
    for (uint32_t i = 0; i < n->conn_end; i++) {
        struct conn *c = n->conns[i];
        if (!c || c->state == CONN_FREE || conn_has_no_path(c)) continue;
        if (c->state == CONN_OPEN &&
            (now - c->last_sent >= PCCL_TIME_TO_PING(n->deadline) ||
             PCCL_BUGGIFY(ping_early))) {
            c->ping = true;
            conn_dirty(n, i);
        }
        check_silence(n, c);
    }
    tick_links(n);
}
