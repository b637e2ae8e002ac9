/* link.c - the links to other members: the dialer, the number of connections,
 * and the state. See link.h; rules R3 and R6. */
#include "link.h"

bool link_dials(const struct links *n, const struct link *l)
{
    return (n->self < l->id) != l->reversed;
}

void link_close(struct links *n, const struct link *l)
{
    for (uint32_t i = 0; i < n->conn_end; i++) {
        struct conn *c = n->conns[i];
        if (!c || c->link != l) continue;
        conn_close(n, i);
    }
}

void links_close_unwanted(struct links *n)
{
    for (uint32_t i = 0; i < n->conn_end; i++) {
        const struct conn *c = n->conns[i];
        if (!c || c->state == CONN_FREE || !c->link || c->link->wanted)
            continue;
        conn_close(n, i);
    }
}

void links_close_all(struct links *n)
{
    links_unwant(n); /* nothing is dialed again */
    for (uint32_t i = 0; i < n->conn_end; i++) {
        if (!n->conns[i] || n->conns[i]->state == CONN_FREE) continue;
        conn_close(n, i);
    }
}

void link_dirty(struct links *n, const struct link *l)
{
    for (uint32_t i = 0; i < n->conn_end; i++) {
        if (n->conns[i] && n->conns[i]->link == l) conn_dirty(n, i);
    }
}

bool link_control(struct links *n, struct link *l, const struct frame *f)
{
    if (!l->control)
        l->control = pool_take(&n->pool, CONTROL_MAX * sizeof *l->control);
    if (!l->control || l->control_count == CONTROL_MAX) return false;
    uint32_t at = (l->control_first + l->control_count++) % CONTROL_MAX;
    l->control[at] = *f;
    link_dirty(n, l);
    return true;
}

/* Rule R3: one of two members dials. */
void link_dial(struct links *n, struct link *l)
{
    if (!link_dials(n, l) || !l->known) return;
    /* More than one would only cost memory within a host. */
    bool shares = n->driver.share && l->host == n->host;
    while (l->open + l->dialing < (shares ? 1 : l->want)) {
        uint32_t number = n->driver.dial(n->driver.user, &l->addr);
        if (number == NO_CONN) {
            l->failed++;
            return;
        }
        if (!conn_begin_dial(n, number, l->id, l->host)) {
            l->failed++;
            return;
        }
        n->conns[number]->link = l;
        l->dialing++;
    }
}

void link_widen(const struct links *n, struct link *l)
{
    uint32_t pool = n->pool_size;
    if (n->pool_auto && (n->high_rtt || l->rtt >= RTT_HIGH))
        pool = l->rtt < RTT_VERY_HIGH ? POOL_HIGH_RTT : POOL_VERY_HIGH_RTT;
    if (l->want < pool) l->want = pool;
}

void links_want(struct links *n, const struct wire_member *m,
                uint32_t connections)
{
    struct link *l = link_find(n, m->id, true);
    if (!l) return;
    l->addr = m->addr;
    l->host = m->host;
    l->known = true;
    l->wanted = true;
    l->wanted_at = n->now;
    l->failed = 0;
    if (connections > l->want) l->want = connections;
    link_dial(n, l);
}

void links_unwant(struct links *n)
{
    for (size_t i = 0; i < ARRAY_COUNT(n->table); i++) {
        for (struct link *l = n->table[i]; l; l = l->next) l->wanted = false;
    }
}

/* Both ends close all connections. From now on one end dials, and the other end
 * counts its generations from there. */
static void link_set_direction(struct links *n, struct link *l, bool reversed)
{
    if (l->reversed == reversed) return;
    l->wanted = false; /* a dial would restore the old direction */
    link_close(n, l);
    l->reversed = reversed;
    l->failed = 0;
    l->generation = link_dials(n, l) ? ++n->generation : 0;
}

void links_set_direction(struct links *n, uint64_t id, bool dials)
{
    struct link *l = link_find(n, id, true);
    if (l) link_set_direction(n, l, (n->self < id) != dials);
    conn_resume(n);
}

static bool is_reversed(const struct links *n, uint64_t id,
                        const struct wire_pair *pairs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_pair *p = &pairs[i];
        if (p->dialer == id && p->acceptor == n->self) return n->self < id;
        if (p->acceptor == id && p->dialer == n->self) return n->self > id;
    }
    return false;
}

void links_set_directions(struct links *n, const struct wire_pair *pairs,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool dialer = pairs[i].dialer == n->self;
        if (dialer || pairs[i].acceptor == n->self)
            (void)link_find(n, dialer ? pairs[i].acceptor : pairs[i].dialer,
                            true);
    }
    for (size_t i = 0; i < ARRAY_COUNT(n->table); i++) {
        for (struct link *l = n->table[i]; l; l = l->next)
            link_set_direction(n, l, is_reversed(n, l->id, pairs, count));
    }
    conn_resume(n); /* frames that came before this */
}

enum link_status links_status(struct links *n, uint64_t id)
{
    struct link *l = link_find(n, id, false);
    if (!l) return LINK_FAILED;
    if (l->open > 0) return LINK_OPEN;
    if (l->failed > 0 && l->dialing == 0) return LINK_FAILED;
    if (n->now - l->wanted_at >= n->deadline / 2) return LINK_FAILED;
    return LINK_WAITS;
}

bool conn_is_long(const struct links *n, uint32_t number)
{
    const struct conn *c = n->conns[number];
    const struct link *l = c ? c->link : NULL;
    return n->high_rtt && l && l->known && l->host != n->host;
}
