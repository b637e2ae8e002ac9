/* edges.c - measured links between peers, and pairs without a link (rules O1,
 * R4).
 *
 * The store of bandwidth.h names peers by slots; a peer has a slot from its
 * HELLO on. Peers with the same address prefix count as one site. */
#include "master.h"

uint32_t edges_link_of(const struct master *m, uint32_t group, uint64_t id)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        bool known = p->state == PEER_MEMBER || p->state == PEER_REGISTERED;
        if (known && p->group == group && p->info.id == id) return i;
    }
    return MASTER_NO_LINK;
}

/* Hash of the network part of the address, by the usual prefix length. */
static uint64_t site_of(const struct wire_addr *addr)
{
    uint32_t size = addr->family == 4 ? 3 : addr->family == 6 ? 8 : 0;
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < size; i++)
        hash = (hash ^ addr->ip[i]) * 0x100000001b3u;
    return size > 0 ? hash : 0;
}

void edges_add(struct master *m, uint32_t link)
{
    struct master_peer *p = &m->peers[link];
    p->slot = p->place = MASTER_NO_PLACE;
    if (!m->edges) return;
    uint32_t word = 0;
    while (word < ARRAY_COUNT(m->slots_used) && m->slots_used[word] == ~0ull)
        word++;
    if (word == ARRAY_COUNT(m->slots_used)) return;
    uint32_t bit = (uint32_t)__builtin_ctzll(~m->slots_used[word]);
    m->slots_used[word] |= 1ull << bit;
    p->slot = word * 64 + bit;
    m->slot_link[p->slot] = link;
    bandwidth_add(m->edges, p->slot, p->info.host, site_of(&p->info.addr));
}

void edges_remove(struct master *m, uint32_t link)
{
    const struct master_peer *p = &m->peers[link];
    bool has = p->state == PEER_MEMBER || p->state == PEER_REGISTERED ||
               p->state == PEER_DEAD;
    if (!m->edges || !has || p->slot == MASTER_NO_PLACE) return;
    m->slots_used[p->slot / 64] &= ~(1ull << p->slot % 64);
    bandwidth_remove(m->edges, p->slot);
}

static void unreachable(struct master *m, uint32_t a, uint32_t b)
{
    uint32_t x = m->peers[a].slot;
    uint32_t y = m->peers[b].slot;
    if (!m->edges || x == MASTER_NO_PLACE || y == MASTER_NO_PLACE) return;
    bandwidth_unreachable(m->edges, x, y, m->now);
    bandwidth_unreachable(m->edges, y, x, m->now);
}

void edges_measured(struct master *m, uint32_t link,
                    const struct wire_edge *edge)
{
    const struct master_peer *p = &m->peers[link];
    uint32_t from = edges_link_of(m, p->group, edge->peer);
    if (!m->edges || from == MASTER_NO_LINK || from == link) return;
    uint32_t x = m->peers[from].slot;
    if (x == MASTER_NO_PLACE || p->slot == MASTER_NO_PLACE) return;
    pccl_ns rtt = (pccl_ns)(edge->rtt & INT64_MAX);
    if (edge->kind == EDGE_RTT) {
        if (rtt > 0) bandwidth_rtt(m->edges, x, p->slot, rtt, m->now);
        return;
    }
    /* An edge that carries no data counts as very slow. */
    bool silent = edge->kind == EDGE_SILENT;
    bandwidth_measured(m->edges, x, p->slot, silent ? 1 : edge->rate, rtt,
                       edge->kind == EDGE_AT_LEAST ? BANDWIDTH_AT_LEAST
                                                   : BANDWIDTH_SATURATED,
                       m->now);
}

static struct master_edge *find(struct master_group *g, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < g->edge_count; i++) {
        struct master_edge *e = &g->edges[i];
        if ((e->a == a && e->b == b) || (e->a == b && e->b == a)) return e;
    }
    return NULL;
}

static bool neighbours(const struct master_peer *a, const struct master_peer *b,
                       uint32_t count)
{
    uint32_t gap =
        a->place > b->place ? a->place - b->place : b->place - a->place;
    return gap == 1 || gap == count - 1;
}

/* The view in force has the link. */
static bool linked(const struct master *m, const struct master_edge *e,
                   uint32_t group, uint32_t count)
{
    uint32_t x = edges_link_of(m, group, e->a);
    uint32_t y = edges_link_of(m, group, e->b);
    const struct master_group *g = &m->groups[group];
    return m->peers[x].state == PEER_MEMBER &&
           m->peers[y].state == PEER_MEMBER &&
           (g->mesh ||
            (g->ring && neighbours(&m->peers[x], &m->peers[y], count)));
}

static void drop_gone(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    for (uint32_t i = g->edge_count; i-- > 0;) {
        if (edges_link_of(m, group, g->edges[i].a) == MASTER_NO_LINK ||
            edges_link_of(m, group, g->edges[i].b) == MASTER_NO_LINK)
            g->edges[i] = g->edges[--g->edge_count];
    }
}

/* Rule R4e: gives up the pair that is missed least. */
static void make_room(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    drop_gone(m, group);
    if (g->edge_count < MASTER_EDGES_MAX) return;
    uint32_t count = round_live_links(m, group);
    uint32_t least = UINT32_MAX;
    uint32_t at = 0;
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const struct master_edge *e = &g->edges[i];
        uint32_t worth = e->tries;
        if (linked(m, e, group, count)) worth += MASTER_EDGE_TRIES;
        if (worth >= least) continue;
        least = worth;
        at = i;
    }
    g->edges[at] = g->edges[--g->edge_count];
}

static struct master_edge *take(struct master *m, uint32_t group, uint64_t a,
                                uint64_t b)
{
    struct master_group *g = &m->groups[group];
    struct master_edge *e = find(g, a, b);
    if (e) return e;
    if (g->edge_count == MASTER_EDGES_MAX) make_room(m, group);
    e = &g->edges[g->edge_count++];
    *e = (struct master_edge){.a = a, .b = b};
    return e;
}

bool edges_failed(struct master *m, uint32_t group, uint64_t a, uint64_t b,
                  uint64_t attempt)
{
    struct master_group *g = &m->groups[group];
    uint32_t x = edges_link_of(m, group, a);
    uint32_t y = edges_link_of(m, group, b);
    /* A peer may name itself, or any number. */
    if (x == y || x == MASTER_NO_LINK || y == MASTER_NO_LINK) return true;
    if (silence_is_suspect(m, x) || silence_is_suspect(m, y)) return true;
    struct master_edge *e = take(m, group, a, b);
    if (e->attempt != attempt) {
        e->attempt = attempt;
        e->reversed = !e->reversed;
        e->tries++;
    }
    if (e->tries < MASTER_EDGE_TRIES) return true;
    unreachable(m, x, y);
    g->wish = 0; /* the ring found uses this edge: drop it */
    return false;
}

bool edges_dials(const struct master *m, uint32_t a, uint32_t b)
{
    const struct master_group *g = &m->groups[m->peers[a].group];
    uint64_t x = m->peers[a].info.id;
    uint64_t y = m->peers[b].info.id;
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const struct master_edge *e = &g->edges[i];
        bool same = (e->a == x && e->b == y) || (e->a == y && e->b == x);
        if (same) return (x < y) != e->reversed;
    }
    return x < y;
}

uint32_t edges_reversed(const struct master_group *g, struct wire_pair *pairs)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const struct master_edge *e = &g->edges[i];
        if (!e->reversed) continue;
        pairs[count++] =
            (struct wire_pair){.dialer = e->a > e->b ? e->a : e->b,
                               .acceptor = e->a < e->b ? e->a : e->b};
    }
    return count;
}

/* Keeps the dial direction of the last successful link. */
static void forgive(struct master_group *g, uint32_t i)
{
    g->edges[i].tries = 0;
    if (!g->edges[i].reversed) g->edges[i] = g->edges[--g->edge_count];
}

void edges_linked(struct master *m, uint32_t group, uint32_t count)
{
    struct master_group *g = &m->groups[group];
    drop_gone(m, group);
    for (uint32_t i = g->edge_count; i-- > 0;)
        if (linked(m, &g->edges[i], group, count)) forgive(g, i);
}

void edges_retry(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    for (uint32_t i = g->edge_count; i-- > 0;) forgive(g, i);
    for (uint32_t i = 0; m->edges && i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        bool has = p->state == PEER_MEMBER || p->state == PEER_REGISTERED;
        if (has && p->group == group && p->slot != MASTER_NO_PLACE)
            bandwidth_retry(m->edges, p->slot);
    }
}
