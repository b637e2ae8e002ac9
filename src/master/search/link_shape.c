/* link_shape.c - the links that a proposal has beside those of its ring: all
 * pairs, those of a tree, of a tree and a grid, or none (rules R3a, D17a,
 * D20a).
 *
 * Rule numbers: see src/README.md. */
#include "../master.h"

#include "../../base/grid_shape.h"
#include "../../base/tree.h"

static bool any_bad_pair(const struct master_group *g)
{
    for (uint32_t i = 0; i < g->edge_count; i++) {
        if (g->edges[i].bad) return true;
    }
    return false;
}

/* At most two members of a host, on the average. The members of a host stand
 * beside each other in the ring; where they do not, the links of a grid are no
 * more expensive than those of any other shape. */
static bool is_spread(const struct master *m, uint32_t count)
{
    uint32_t hosts = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_member *a = &m->members[m->order[i]];
        const struct wire_member *b = &m->members[m->order[(i + 1) % count]];
        hosts += a->host != b->host;
    }
    return 2 * hosts >= count;
}

static uint32_t place_of(const struct master *m, uint32_t count, uint64_t id)
{
    uint32_t i = 0;
    while (i < count && m->members[m->order[i]].id != id) i++;
    return i;
}

static bool beside_in_grid(uint32_t count, uint32_t a, uint32_t b)
{
    struct grid_node one, other;
    grid_find(count, a, &one);
    grid_find(count, b, &other);
    return grid_sends(&one, b) || grid_sends(&other, a);
}

static bool beside_in_tree(const struct master *m, uint32_t count, uint32_t a,
                           uint32_t b)
{
    struct tree_node one, other;
    tree_find(count, m->tree_width, a, &one);
    tree_find(count, m->tree_width, b, &other);
    return one.parent == b || other.parent == a;
}

/* Some bad pair would exchange data in the grid, or else in the tree. */
static bool has_bad_pair(const struct master *m, const struct master_group *g,
                         uint32_t count, bool grid)
{
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const struct master_edge *e = &g->edges[i];
        if (!e->bad) continue;
        uint32_t a = place_of(m, count, e->a), b = place_of(m, count, e->b);
        if (a == count || b == count) continue;
        if (grid ? beside_in_grid(count, a, b) : beside_in_tree(m, count, a, b))
            return true;
    }
    return false;
}

void link_shape_choose(struct master *m, struct master_group *g, uint32_t count)
{
    uint32_t mesh_max = m->mesh_max;
    if (mesh_max == 0) mesh_max = order_mesh_max(m->members, count);
    g->small = count <= mesh_max;
    g->mesh = g->ring && g->small && !any_bad_pair(g);
    g->tree = g->ring && !g->mesh && !has_bad_pair(m, g, count, false);
    g->grid = g->tree && !g->small && count <= GRID_WORLD_MAX &&
              is_spread(m, count) && !has_bad_pair(m, g, count, true);
}
