/* broadcast_grid.c - "grid_scatter": the root scatters the vector over its row
 * of a grid, each member of that row sends its part to its column, and all rows
 * all-gather the parts (rule D24). Pure.
 *
 * Data take three steps, in a world of any size; the root sends one vector, and
 * no member more than little over two. As many columns as the shortest row is
 * long, but for that of the root, have owners, each of one band of the vector.
 * The root and the last member of a longer row own nothing. */
#include "algorithm.h"
#include "geometry.h"
#include "op.h"

#include <string.h>

struct broadcast_grid_state {
    uint8_t *received; /* bit set over the segments of the own band */
};

/* --------------------------------------------------------------- the plan */

/* Returns whether the member owns a band, and its number. */
static bool band_of(const struct plan *p, const struct grid_node *node,
                    uint32_t *band)
{
    struct grid_node root;
    plan_grid_find(p, p->r.root, &root);
    *band = node->column - (root.column < node->column);
    return node->column < plan_grid_columns(p) && node->column != root.column;
}

static void shape(struct plan *p)
{
    struct grid_node root;
    plan_grid_find(p, p->r.rank, &p->grid);
    plan_grid_find(p, p->r.root, &root);
    p->chunks = plan_grid_columns(p) - (root.column < plan_grid_columns(p));
    uint64_t size = plan_vector_size(p);
    plan_choose_segment(p, plan_segment_of(p, size), plan_chunk_size(p, 0));
    p->done = DONE_GRID;
}

/* Returns whether the one member sends a band to the other one, and which. */
static bool carries(const struct plan *p, const struct grid_node *from,
                    const struct grid_node *to, uint32_t *band)
{
    struct grid_node root;
    plan_grid_find(p, p->r.root, &root);
    bool row = from->row == to->row;
    if (to->position == root.position) return false;
    if (from->position == root.position) return row && band_of(p, to, band);
    if (!band_of(p, from, band)) return false;
    return row || (from->row == root.row && from->column == to->column);
}

/* Partners that exchange no data exchange an empty word (rule D22c). */
static uint32_t transfers(const struct plan *p, const struct grid_node *from,
                          const struct grid_node *to)
{
    uint32_t band;
    if (carries(p, from, to, &band)) return p->segments;
    return grid_sends(from, to->position) ? 1 : 0;
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    struct grid_node other;
    plan_grid_find(p, to, &other);
    return transfers(p, &p->grid, &other);
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    struct grid_node other;
    plan_grid_find(p, from, &other);
    return transfers(p, &other, &p->grid);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    struct grid_node other;
    uint32_t band;
    plan_grid_find(p, to, &other);
    if (!carries(p, &p->grid, &other, &band)) return;
    plan_chunk_cut(p, band, k, x);
    x->space = SPACE_RECV;
    if (p->r.rank != p->r.root) x->after = k;
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    struct grid_node other;
    uint32_t band;
    plan_grid_find(p, from, &other);
    if (carries(p, &other, &p->grid, &band)) plan_chunk_cut(p, band, k, x);
}

static const char *unfit(const struct plan_request *r)
{
    if (r->world < 4) return "needs 4 members";
    if (r->world > GRID_WORLD_MAX) return "takes up to 1024 members";
    if (!r->grid && !r->mesh) return "needs the links of a grid";
    return NULL;
}

/* ---------------------------------------------------------- the operation */

static bool begin(struct engine *e, struct op *op)
{
    struct broadcast_grid_state *s = op_take_state(e, op, sizeof *s, 0);
    size_t size = op->plan.segments / 8 + 1;
    if (!s) return false;
    s->received = pool_take(&e->links.pool, size);
    if (!s->received) return false;
    memset(s->received, 0, size);
    return true;
}

static void end(struct engine *e, struct op *op)
{
    struct broadcast_grid_state *s = op->state;
    pool_give(&e->links.pool, s->received);
}

static bool has(const struct op *op, uint32_t after)
{
    const struct broadcast_grid_state *s = op->state;
    return op_bit_get(s->received, after);
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct broadcast_grid_state *s = op->state;
    const struct plan *p = &op->plan;
    struct grid_node from;
    uint32_t band, own;
    (void)x;
    (void)body;
    plan_grid_find(p, ep->rank, &from);
    if (!carries(p, &from, &p->grid, &band)) return;
    if (!band_of(p, &p->grid, &own) || own != band) return;
    op_bit_set(s->received, k);
    op_wake(e, op);
}

const struct algorithm broadcast_grid = {
    .name = "grid_scatter",
    .colls = BIT(COLL_BROADCAST),
    .unfit = unfit,
    .tells_launch = true,
    .shape = shape,
    .partners = plan_grid_partners,
    .partner = plan_grid_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin,
    .end = end,
    .has = has,
    .arrived = arrived,
};
