/* order.c - ring orders round bad pairs, and the set that goes on where there
 * is none (rule R4). Pure.
 *
 * Up to MASTER_EXACT_MAX members by dynamic programming over sets (Held & Karp,
 * 1962): a table of the members at which a path through a set can end. Beyond,
 * bad pairs are rare or many at once, so an order is repaired locally, and a
 * split takes those members away first that have most bad pairs. */
#include "../master.h"

bool order_is_bad(const struct master_group *g, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const struct master_edge *e = &g->edges[i];
        bool same = (e->a == a && e->b == b) || (e->a == b && e->b == a);
        if (same && e->bad) return true;
    }
    return false;
}

bool order_is_missing(const struct master_group *g, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const struct master_edge *e = &g->edges[i];
        bool same = (e->a == a && e->b == b) || (e->a == b && e->b == a);
        if (same && e->bad && !e->relayed) return true;
    }
    return false;
}

struct ring_search {
    bool relayed; /* with pairs that are relayed (rule N10c) */
    const struct master_group *group;
    const struct wire_member *members;
    uint32_t count;
    uint16_t *order;
};

static bool bad(const struct ring_search *s, uint16_t a, uint16_t b)
{
    uint64_t x = s->members[a].id, y = s->members[b].id;
    return s->relayed ? order_is_missing(s->group, x, y)
                      : order_is_bad(s->group, x, y);
}

/* ------------------------------------------------------------- small worlds */

static uint32_t first_of(uint32_t set)
{
    return (uint32_t)__builtin_ctz(set);
}

/* links[i]: the members that i can be linked to. */
static void find_links(const struct ring_search *s, uint16_t *links)
{
    for (uint16_t i = 0; i < s->count; i++) {
        links[i] = 0;
        for (uint16_t j = 0; j < s->count; j++)
            if (i != j && !bad(s, i, j)) links[i] |= (uint16_t)BIT(j);
    }
}

/* ends[set]: where a path can end that begins at the first of the set and
 * leads through all of it. */
static void find_paths(const uint16_t *links, uint32_t count, uint16_t *ends)
{
    for (uint32_t set = 1; set < BIT(count); set++) {
        uint32_t first = first_of(set);
        ends[set] = set == BIT(first) ? (uint16_t)set : 0;
        for (uint32_t left = set & ~BIT(first); left > 0; left &= left - 1) {
            uint32_t last = first_of(left);
            if (ends[set & ~BIT(last)] & links[last])
                ends[set] |= (uint16_t)BIT(last);
        }
    }
}

static bool has_ring(const uint16_t *links, const uint16_t *ends, uint32_t set)
{
    uint32_t first = first_of(set);
    return set == BIT(first) || (ends[set] & links[first]) != 0;
}

/* The ring that begins as the given order does, as far as there is one. */
static bool exact_ring(const struct ring_search *s, uint16_t *ends)
{
    uint16_t links[MASTER_EXACT_MAX], given[MASTER_EXACT_MAX];
    uint32_t all = BIT(s->count) - 1;
    find_links(s, links);
    find_paths(links, s->count, ends);
    if (!has_ring(links, ends, all)) return false;
    /* The table knows paths from member 0: the ring begins there. */
    uint32_t zero = 0;
    while (s->order[zero] != 0) zero++;
    for (uint32_t i = 0; i < s->count; i++)
        given[i] = s->order[(zero + i) % s->count];
    uint32_t rest = all & ~1u;
    uint16_t at = 0;
    for (uint32_t depth = 0; depth < s->count; depth++) {
        s->order[(zero + depth) % s->count] = at;
        for (uint32_t i = 0; i < s->count && rest > 0; i++) {
            uint16_t next = given[i];
            if (!(rest & links[at] & BIT(next))) continue;
            /* The ring closes by a path from 0 through the rest to `next`. */
            if (!(ends[rest | 1u] & BIT(next))) continue;
            rest &= ~BIT(next);
            at = next;
            break;
        }
    }
    return true;
}

/* Of two sets of one size the one with the lowest rank that the other lacks. */
static bool is_better(uint32_t set, uint32_t than)
{
    int size = __builtin_popcount(set);
    int other = __builtin_popcount(than);
    if (size != other) return size > other;
    uint32_t differ = set ^ than;
    return differ > 0 && (set & (differ & (~differ + 1))) != 0;
}

static uint32_t exact_split(const struct ring_search *s, uint16_t *ends)
{
    uint16_t links[MASTER_EXACT_MAX];
    uint32_t best = 1;
    find_links(s, links);
    find_paths(links, s->count, ends);
    for (uint32_t set = 1; set < BIT(s->count); set++)
        if (has_ring(links, ends, set) && is_better(set, best)) best = set;
    return best;
}

/* ------------------------------------------------------------- large worlds */

static uint32_t bad_around(const struct ring_search *s, uint32_t at)
{
    uint32_t before = (at + s->count - 1) % s->count;
    uint32_t after = (at + 1) % s->count;
    return (uint32_t)bad(s, s->order[before], s->order[at]) +
           (uint32_t)bad(s, s->order[at], s->order[after]);
}

static void swap(struct ring_search *s, uint32_t a, uint32_t b)
{
    uint16_t keep = s->order[a];
    s->order[a] = s->order[b];
    s->order[b] = keep;
}

static bool repair(struct ring_search *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (!bad(s, s->order[i], s->order[(i + 1) % s->count])) continue;
        uint32_t at = (i + 1) % s->count;
        uint32_t other = 0;
        for (; other < s->count; other++) {
            if (other == at) continue;
            uint32_t before = bad_around(s, at) + bad_around(s, other);
            swap(s, at, other);
            if (bad_around(s, at) + bad_around(s, other) < before) break;
            swap(s, at, other);
        }
        if (other == s->count) return false;
        i = UINT32_MAX; /* fewer bad edges than before: start over */
    }
    return true;
}

bool order_ring(struct master *m, uint32_t group, uint32_t count)
{
    const struct master_group *g = &m->groups[group];
    if (count < 2 || g->edge_count == 0) return true;
    struct ring_search s = {
        .group = g, .members = m->members, .count = count, .order = m->order};
    relays_choose(m, group, count);
    /* In a large world a search may find what repair() does not. */
    bool last = count <= MASTER_EXACT_MAX || g->surveyed || g->searched;
    for (int pass = 0; pass < (last ? 2 : 1); pass++) {
        s.relayed = pass > 0;
        if (count <= MASTER_EXACT_MAX ? exact_ring(&s, m->paths) : repair(&s))
            return true;
    }
    return false;
}

static uint16_t root_of(uint16_t *parents, uint16_t i)
{
    while (parents[i] != i) i = parents[i] = parents[parents[i]];
    return i;
}

/* Rule N10e: where all pairs were tried that have no relay, the relays that are
 * left are good. */
static bool is_joined(const struct master *m, uint32_t group, uint32_t i,
                      uint32_t j, bool lacks)
{
    const struct master_group *g = &m->groups[group];
    if (g->survey_size > SURVEY_ALL_MAX) return !lacks;
    return !order_is_missing(g, m->members[i].id, m->members[j].id);
}

/* A survey has tried pairs at distances 1, 2, 4, ... of the proposed order. */
static void unite(struct master *m, uint32_t group, uint32_t count,
                  uint16_t *parents)
{
    uint32_t size = m->groups[group].survey_size;
    uint16_t *at = m->slots; /* place -> index + 1; scratch */
    for (uint32_t i = 0; i < size; i++) at[i] = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = m->peers[m->sorted[i]].proposed_place;
        if (place < size) at[place] = (uint16_t)(i + 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct master_peer *p = &m->peers[m->sorted[i]];
        for (uint32_t k = 0; BIT(k) <= size / 2; k++) {
            uint16_t other = at[(p->proposed_place + BIT(k)) % size];
            bool lacks = (p->lacks & BIT(k)) != 0;
            if (other == 0 || !is_joined(m, group, i, other - 1u, lacks))
                continue;
            uint16_t root = root_of(parents, (uint16_t)i);
            parents[root_of(parents, (uint16_t)(other - 1))] = root;
        }
    }
}

uint32_t order_component(struct master *m, uint32_t group, uint32_t count,
                         bool *kept)
{
    uint16_t parents[PEERS_MAX] = {0}, sizes[PEERS_MAX] = {0};
    relays_choose(m, group, count);
    for (uint32_t i = 0; i < count; i++) parents[i] = (uint16_t)i;
    unite(m, group, count, parents);
    for (uint32_t i = 0; i < count; i++) sizes[root_of(parents, (uint16_t)i)]++;
    uint16_t best = root_of(parents, 0);
    for (uint32_t i = 1; i < count; i++) {
        uint16_t root = root_of(parents, (uint16_t)i);
        if (sizes[root] > sizes[best]) best = root;
    }
    for (uint32_t i = 0; i < count; i++)
        kept[i] = root_of(parents, (uint16_t)i) == best;
    return sizes[best];
}

/* The member that lacks most links to those that are kept; of several the one
 * with the highest rank. */
static uint32_t worst_of(const struct ring_search *s, const bool *kept)
{
    uint32_t worst = 0;
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t lacks = 0;
        for (uint32_t j = 0; j < s->count && kept[i]; j++)
            lacks += kept[j] && bad(s, (uint16_t)i, (uint16_t)j);
        if (!kept[i] || lacks < most) continue;
        most = lacks;
        worst = i;
    }
    return worst;
}

static uint32_t greedy_split(struct ring_search *s, bool *kept)
{
    uint32_t all = s->count;
    for (uint32_t left = all; left > 1; left--) {
        s->count = 0;
        for (uint32_t i = 0; i < all; i++)
            if (kept[i]) s->order[s->count++] = (uint16_t)i;
        if (repair(s)) return left;
        s->count = all;
        kept[worst_of(s, kept)] = false;
    }
    return 1;
}

uint32_t order_split(struct master *m, uint32_t group, uint32_t count,
                     bool *kept)
{
    struct ring_search s = {.relayed = true,
                            .group = &m->groups[group],
                            .members = m->members,
                            .count = count,
                            .order = m->order};
    if (m->groups[group].surveyed) {
        uint32_t size = order_component(m, group, count, kept);
        if (size < count) return size;
    }
    if (count <= MASTER_EXACT_MAX) {
        uint32_t set = exact_split(&s, m->paths);
        for (uint32_t i = 0; i < count; i++) kept[i] = (set >> i & 1) != 0;
        return (uint32_t)__builtin_popcount(set);
    }
    for (uint32_t i = 0; i < count; i++) kept[i] = true;
    return greedy_split(&s, kept);
}

uint32_t order_mesh_max(const struct wire_member *members, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (members[i].host != members[0].host) return SURVEY_ALL_MAX;
    }
    return HOST_MESH_MAX;
}
