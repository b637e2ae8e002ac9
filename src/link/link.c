/* link.c - the links to other members: who dials, how many connections, and
 * whether there are any. See link.h; rules R3 and R6. */
#include "../ring/op.h"

#include <stdlib.h>

static void link_free(struct engine *e, struct link *l)
{
    link_drop_unexpected(e, l);
    pool_give(&e->links.pool, l->control);
    free(l);
}

bool link_dials(const struct engine *e, const struct link *l)
{
    return (e->links.self < l->id) != l->reversed;
}

static struct link **link_slot(struct engine *e, uint64_t id)
{
    struct link **slot = &e->links.table[id % ARRAY_COUNT(e->links.table)];
    while (*slot && (*slot)->id != id) slot = &(*slot)->next;
    return slot;
}

struct link *link_find(struct engine *e, uint64_t id, bool create)
{
    struct link **slot = link_slot(e, id);
    if (*slot || !create) return *slot;
    struct link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->id = id;
    if (e->links.self < id) l->generation = e->links.generation;
    l->want = 1;
    l->unexpected_end = &l->unexpected;
    *slot = l;
    return l;
}

void link_drop_unexpected(struct engine *e, struct link *l)
{
    struct unexpected *keep = NULL;
    while (l->unexpected) {
        struct unexpected *next = l->unexpected->next;
        /* One still being received is kept: its connection points at it. */
        if (l->unexpected->complete) {
            pool_give(&e->links.pool, l->unexpected);
        } else {
            l->unexpected->next = keep;
            keep = l->unexpected;
        }
        l->unexpected = next;
    }
    for (struct unexpected *k = keep; k;) {
        struct unexpected *next = k->next;
        for (uint32_t i = 0; i < e->links.conn_end; i++) {
            struct conn *c = e->links.conns[i];
            if (!c || c->rx_unexpected != k) continue;
            c->rx_unexpected = NULL;
            c->sink = SINK_DISCARD;
        }
        pool_give(&e->links.pool, k);
        k = next;
    }
    l->unexpected_end = &l->unexpected;
    l->unexpected_count = 0;
    l->unexpected_bytes = 0;
}

static void link_close(struct engine *e, const struct link *l)
{
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        struct conn *c = e->links.conns[i];
        if (!c || c->link != l) continue;
        e->out.close(e->out.user, i);
        engine_closed(e, i);
    }
}

void engine_drop_link(struct engine *e, uint64_t id)
{
    struct link **slot = link_slot(e, id);
    struct link *l = *slot;
    if (!l) return;
    link_close(e, l);
    *slot = l->next;
    link_free(e, l);
}

void engine_close_unwanted(struct engine *e)
{
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        const struct conn *c = e->links.conns[i];
        if (!c || c->state == CONN_FREE || !c->link || c->link->wanted)
            continue;
        e->out.close(e->out.user, i);
        engine_closed(e, i);
    }
}

void engine_close_all(struct engine *e)
{
    engine_unwant_links(e); /* nothing is called again */
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        if (!e->links.conns[i] || e->links.conns[i]->state == CONN_FREE)
            continue;
        e->out.close(e->out.user, i);
        engine_closed(e, i);
    }
}

void link_dirty(struct engine *e, const struct link *l)
{
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        if (e->links.conns[i] && e->links.conns[i]->link == l)
            e->links.dirty[i / 64] |= (uint64_t)1 << (i % 64);
    }
}

bool link_control(struct engine *e, struct link *l, const struct frame *f)
{
    if (!l->control)
        l->control =
            pool_take(&e->links.pool, CONTROL_MAX * sizeof *l->control);
    if (!l->control || l->control_count == CONTROL_MAX) return false;
    uint32_t at = (l->control_first + l->control_count++) % CONTROL_MAX;
    l->control[at] = *f;
    link_dirty(e, l);
    return true;
}

/* Rule R3: one of two peers calls. */
void link_dial(struct engine *e, struct link *l)
{
    if (!link_dials(e, l) || !l->known) return;
    /* More than one would only cost memory within a host. */
    bool shares = e->out.share && l->host == e->links.host;
    while (l->open + l->dialing < (shares ? 1 : l->want)) {
        uint32_t number = e->out.dial(e->out.user, &l->addr);
        if (number == NO_CONN) {
            l->failed++;
            return;
        }
        if (!engine_accepted(e, number)) {
            e->out.close(e->out.user, number);
            l->failed++;
            return;
        }
        struct conn *c = e->links.conns[number];
        c->state = CONN_DIALED;
        c->link = l;
        l->dialing++;
    }
}

bool engine_is_long(const struct engine *e, uint32_t number)
{
    const struct conn *c = e->links.conns[number];
    const struct link *l = c ? c->link : NULL;
    return e->links.high_rtt && l && l->known && l->host != e->links.host;
}

void link_widen(const struct engine *e, struct link *l)
{
    uint32_t pool = e->links.pool_size;
    if (e->links.pool_auto && (e->links.high_rtt || l->rtt >= RTT_HIGH))
        pool = l->rtt < RTT_VERY_HIGH ? POOL_HIGH_RTT : POOL_VERY_HIGH_RTT;
    if (l->want < pool) l->want = pool;
}

void engine_want_link(struct engine *e, const struct wire_member *m,
                      uint32_t connections)
{
    struct link *l = link_find(e, m->id, true);
    if (!l) return;
    l->addr = m->addr;
    l->host = m->host;
    l->known = true;
    l->wanted = true;
    l->wanted_at = e->links.now;
    l->failed = 0;
    if (connections > l->want) l->want = connections;
    link_dial(e, l);
}

void engine_unwant_links(struct engine *e)
{
    for (size_t i = 0; i < ARRAY_COUNT(e->links.table); i++) {
        for (struct link *l = e->links.table[i]; l; l = l->next)
            l->wanted = false;
    }
}

/* Both ends close what there is: what follows is of one caller, whose
 * generations the other end counts from there on. */
static void link_set_direction(struct engine *e, struct link *l, bool reversed)
{
    if (l->reversed == reversed) return;
    l->wanted = false; /* a call would come back to the old way */
    link_close(e, l);
    l->reversed = reversed;
    l->failed = 0;
    l->generation = link_dials(e, l) ? ++e->links.generation : 0;
}

void engine_set_direction(struct engine *e, uint64_t id, bool calls)
{
    struct link *l = link_find(e, id, true);
    if (l) link_set_direction(e, l, (e->links.self < id) != calls);
    conn_resume(e);
}

static bool is_reversed(const struct engine *e, uint64_t id,
                        const struct wire_pair *pairs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_pair *p = &pairs[i];
        if (p->dialer == id && p->acceptor == e->links.self)
            return e->links.self < id;
        if (p->acceptor == id && p->dialer == e->links.self)
            return e->links.self > id;
    }
    return false;
}

void engine_set_directions(struct engine *e, const struct wire_pair *pairs,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool caller = pairs[i].dialer == e->links.self;
        if (caller || pairs[i].acceptor == e->links.self)
            (void)link_find(e, caller ? pairs[i].acceptor : pairs[i].dialer,
                            true);
    }
    for (size_t i = 0; i < ARRAY_COUNT(e->links.table); i++) {
        for (struct link *l = e->links.table[i]; l; l = l->next)
            link_set_direction(e, l, is_reversed(e, l->id, pairs, count));
    }
    conn_resume(e); /* calls that were ahead of this */
}

enum link_status engine_link_status(struct engine *e, uint64_t id)
{
    struct link *l = link_find(e, id, false);
    if (!l) return LINK_FAILED;
    if (l->open > 0) return LINK_OPEN;
    if (l->failed > 0 && l->dialing == 0) return LINK_FAILED;
    if (e->links.now - l->wanted_at >= e->links.deadline / 2)
        return LINK_FAILED;
    return LINK_WAITS;
}

void links_free(struct engine *e)
{
    for (size_t i = 0; i < ARRAY_COUNT(e->links.table); i++) {
        while (e->links.table[i]) {
            struct link *next = e->links.table[i]->next;
            link_free(e, e->links.table[i]);
            e->links.table[i] = next;
        }
    }
}
