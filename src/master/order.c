/* order.c - repairs a ring order around unreachable pairs (rule R4). Pure.
 *
 * Unreachable pairs are rare, so the order is repaired locally. Small worlds
 * are searched exhaustively; in large worlds one end of each bad edge moves to
 * a place where no edge is bad. */
#include "master.h"

bool order_is_bad(const struct master_group *g, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const struct master_edge *e = &g->edges[i];
        bool same = (e->a == a && e->b == b) || (e->a == b && e->b == a);
        if (same && e->tries >= MASTER_EDGE_TRIES) return true;
    }
    return false;
}

struct ring_search {
    const struct master_group *group;
    const struct wire_member *members;
    uint32_t count;
    uint16_t *order;
    uint16_t first[MASTER_MESH_MAX]; /* the given order, small worlds only */
    uint32_t used;                   /* bit set of members in use */
};

static bool bad(const struct ring_search *s, uint16_t a, uint16_t b)
{
    return order_is_bad(s->group, s->members[a].id, s->members[b].id);
}

/* MASTER_MESH_MAX bounds the depth. */
static bool extend(struct ring_search *s, uint32_t depth)
{
    if (depth == s->count) return !bad(s, s->order[depth - 1], s->order[0]);
    for (uint16_t i = 0; i < s->count; i++) {
        uint16_t next = s->first[i];
        if (s->used & BIT(i) || bad(s, s->order[depth - 1], next)) continue;
        s->used |= BIT(i);
        s->order[depth] = next;
        if (extend(s, depth + 1)) return true;
        s->used &= ~BIT(i);
    }
    return false;
}

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

bool order_ring(const struct master_group *g, const struct wire_member *members,
                uint32_t count, uint16_t *order)
{
    if (count < 2 || g->edge_count == 0) return true;
    struct ring_search s = {.group = g,
                            .members = members,
                            .count = count,
                            .order = order,
                            .used = BIT(0)};
    if (count > MASTER_MESH_MAX) return repair(&s);
    for (uint32_t i = 0; i < count; i++) s.first[i] = order[i];
    return extend(&s, 1);
}

uint32_t order_mesh_max(const struct wire_member *members, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (members[i].host != members[0].host) return MASTER_MESH_WAN_MAX;
    }
    return MASTER_MESH_MAX;
}
