/* edges.c - measured links between peers, and pairs without a link (rules O1,
 * R4).
 *
 * The store of bandwidth.h names peers by slots; a peer has a slot from its
 * HELLO on. Peers with the same address prefix count as one site. */
#include "../master.h"

#include "../../base/buggify.h"
#include "../../base/fnv.h"

#include <string.h>

/* Hash of the network part of the address, by the usual prefix length. */
static uint64_t site_of(const struct wire_addr *addr)
{
    uint32_t size = addr->family == 4 ? 3 : addr->family == 6 ? 8 : 0;
    return size > 0 ? fnv_bytes(FNV_BEGIN, addr->ip, size) : 0;
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
    uint32_t from = master_link_of(m, p->group, edge->peer);
    if (!m->edges || from == MASTER_NO_LINK || from == link) return;
    uint32_t x = m->peers[from].slot;
    if (x == MASTER_NO_PLACE || p->slot == MASTER_NO_PLACE) return;
    pccl_ns rtt = (pccl_ns)(edge->rtt & INT64_MAX);
    if (edge->kind == EDGE_RTT) {
        if (rtt > 0) bandwidth_rtt(m->edges, x, p->slot, rtt, m->now);
        return;
    }
    if (order_is_bad(&m->groups[p->group], p->info.id, edge->peer)) {
        edges_slow(m, p->group, p->info.id, edge->peer);
        return;
    }
    /* An edge that carries no data counts as very slow. */
    bool silent = edge->kind == EDGE_SILENT;
    bandwidth_measured(m->edges, x, p->slot, silent ? 1 : edge->rate, rtt,
                       edge->kind == EDGE_AT_LEAST ? BANDWIDTH_AT_LEAST
                                                   : BANDWIDTH_SATURATED,
                       m->now);
}

void edges_slow(struct master *m, uint32_t group, uint64_t a, uint64_t b)
{
    uint32_t x = master_link_of(m, group, a), y = master_link_of(m, group, b);
    if (!m->edges || x == MASTER_NO_LINK || y == MASTER_NO_LINK) return;
    uint32_t from = m->peers[x].slot, to = m->peers[y].slot;
    if (from == MASTER_NO_PLACE || to == MASTER_NO_PLACE) return;
    bandwidth_measured(m->edges, from, to, 1, PCCL_S, BANDWIDTH_SATURATED,
                       m->now);
    bandwidth_measured(m->edges, to, from, 1, PCCL_S, BANDWIDTH_SATURATED,
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

/* The oldest pair makes room: it costs a member one more attempt to link. */
static struct master_edge *take(struct master_group *g, uint64_t a, uint64_t b)
{
    struct master_edge *e = find(g, a, b);
    if (e) return e;
    bool few = g->edge_count > 0 && PCCL_BUGGIFY(edges_few);
    if (g->edge_count == MASTER_EDGES_MAX || few) {
        g->edge_count--;
        memmove(g->edges, g->edges + 1, g->edge_count * sizeof g->edges[0]);
    }
    e = &g->edges[g->edge_count++];
    *e = (struct master_edge){.a = a, .b = b};
    return e;
}

static void drop(struct master_group *g, uint32_t i)
{
    g->edges[i] = g->edges[--g->edge_count];
}

static void fail(struct master *m, struct master_group *g, uint32_t x,
                 uint32_t y, struct master_edge *e)
{
    if (e->bad) return;
    e->bad = true;
    e->bad_at = m->now;
    unreachable(m, x, y);
    g->wish = 0; /* the ring found uses this edge: drop it */
    struct master_note note = {
        .kind = NOTE_CUT, .peer = &m->peers[x], .other = &m->peers[y]};
    master_note_send(m, &note);
}

/* A peer may name any number, itself as well. */
static bool both_known(const struct master *m, uint32_t group, uint64_t a,
                       uint64_t b, uint32_t *x, uint32_t *y)
{
    *x = master_link_of(m, group, a);
    *y = master_link_of(m, group, b);
    return *x != *y && *x != MASTER_NO_LINK && *y != MASTER_NO_LINK;
}

bool edges_is_pair(const struct master *m, uint32_t group, uint64_t a,
                   uint64_t b)
{
    uint32_t x, y;
    return both_known(m, group, a, b, &x, &y);
}

/* Rule M10: a silent peer has answered nobody. Its silence is judged. */
bool edges_failed(struct master *m, uint32_t group, uint64_t a, uint64_t b)
{
    uint32_t x, y;
    struct master_group *g = &m->groups[group];
    if (!both_known(m, group, a, b, &x, &y)) return false;
    if (silence_is_suspect(m, x) || silence_is_suspect(m, y)) return false;
    struct master_edge *e = take(g, a, b);
    uint32_t relay =
        e->relayed ? master_link_of(m, group, e->relay) : MASTER_NO_LINK;
    if (relay != MASTER_NO_LINK && silence_is_suspect(m, relay)) return false;
    if (e->bad) relays_failed(m, e);
    fail(m, g, x, y, e);
    return true;
}

void edges_report(struct master *m, uint32_t group, uint64_t a, uint64_t b)
{
    struct master_group *g = &m->groups[group];
    if (!edges_is_pair(m, group, a, b)) return;
    struct master_edge *e = take(g, a, b);
    e->failed[e->a == a ? 0 : 1] = g->round;
}

void edges_broken(struct master *m, uint32_t group, uint64_t a, uint64_t b,
                  bool carried)
{
    uint32_t x, y;
    struct master_group *g = &m->groups[group];
    if (!both_known(m, group, a, b, &x, &y)) return;
    struct master_edge *e = take(g, a, b);
    e->breaks = carried ? 0 : e->breaks + 1;
    if (e->breaks <= MASTER_BREAKS_MAX) return;
    if (e->bad) relays_failed(m, e);
    e->breaks = 0;
    fail(m, g, x, y, e);
}

void edges_forget_gone(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    for (uint32_t i = g->edge_count; i-- > 0;) {
        uint32_t x, y;
        const struct master_edge *e = &g->edges[i];
        if (!both_known(m, group, e->a, e->b, &x, &y)) drop(g, i);
    }
}

void edges_retry(struct master *m, uint32_t group, pccl_ns since)
{
    struct master_group *g = &m->groups[group];
    for (uint32_t i = g->edge_count; i-- > 0;)
        if (!g->edges[i].bad || g->edges[i].bad_at <= since) drop(g, i);
    for (uint32_t i = 0; m->edges && i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        bool has = p->state == PEER_MEMBER || p->state == PEER_REGISTERED;
        if (has && p->group == group && p->slot != MASTER_NO_PLACE)
            bandwidth_retry(m->edges, p->slot);
    }
    for (uint32_t i = 0; i < g->edge_count; i++) {
        uint32_t x, y;
        const struct master_edge *e = &g->edges[i];
        if (both_known(m, group, e->a, e->b, &x, &y)) unreachable(m, x, y);
    }
}
