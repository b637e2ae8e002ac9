/* small_grid.c - "grid": every member sends to its row of a grid, and then the
 * data of its row to other rows (rule D20). Two messages deep, of which a
 * member sends 2 sqrt(n). Recursive multiplying of two steps. Pure.
 *
 * An all-reduce adds up a row in the order of positions, then the rows. Of a
 * broadcast the row of the root sends the data, and all others send an empty
 * word. The blocks of a row of an all-gather go to the other rows together. So
 * all results imply that all have launched (rule D5). */
#include "algorithm.h"
#include "geometry.h"
#include "op.h"

#include "../reduce/reduce.h"

#include <string.h>

/* What a transfer to another row waits for. */
enum { AFTER_ROW };

struct small_grid_state {
    uint32_t row_missing; /* transfers of the row that have not come */
    /* Of an all-reduce the vectors of the row, then the sums of the rows; of an
     * all-gather the blocks in the order of positions. */
    _Alignas(64) uint8_t slots[];
};

/* --------------------------------------------------------------- the plan */

static void shape(struct plan *p)
{
    const struct plan_request *r = &p->r;
    plan_grid_find(p, r->rank, &p->grid);
    p->done = DONE_GRID;
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    return grid_sends(&p->grid, plan_position(p, to));
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    struct grid_node other;
    plan_grid_find(p, from, &other);
    return grid_sends(&other, p->grid.position);
}

static bool in_own_row(const struct plan *p, uint32_t rank)
{
    return plan_position(p, rank) - p->grid.first < p->grid.size;
}

/* The data of a member, or of its row. */
static void data_of(const struct plan *p, uint32_t position, bool row,
                    struct plan_xfer *x)
{
    struct grid_node node;
    uint64_t size = plan_vector_size(p);
    grid_find(p->r.world, position, &node);
    uint32_t first = row ? node.first : position, count = row ? node.size : 1;
    x->space = SPACE_SLOT;
    if (p->r.coll == COLL_BROADCAST) {
        x->space = SPACE_RECV;
        if (plan_position(p, p->r.root) - first >= count) size = 0;
    } else if (p->r.coll == COLL_ALLGATHER) {
        x->offset = first * size;
        size *= count;
    } else if (row) {
        x->offset = (p->grid.size + node.row) * size;
    } else {
        x->offset = node.column * size;
    }
    x->size = (uint32_t)size;
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    bool row = !in_own_row(p, to);
    (void)k;
    data_of(p, p->grid.position, row, x);
    if (row) x->after = AFTER_ROW;
    if (!row && p->r.coll != COLL_BROADCAST && p->r.coll != COLL_ALLGATHER) {
        x->space = SPACE_SEND;
        x->offset = 0;
    }
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    (void)k;
    data_of(p, plan_position(p, from), !in_own_row(p, from), x);
}

static const char *unfit(const struct plan_request *r)
{
    uint64_t size = r->count * r->element;
    if (r->world < 3) return "needs 3 members";
    if (r->world > GRID_WORLD_MAX) return "takes up to 1024 members";
    if (!r->grid && !r->mesh) return "needs the links of a grid";
    if (r->codes) return "its elements are not codes";
    if (r->coll == COLL_BARRIER) return NULL;
    if (r->count > PLAN_SEGMENT_MAX) return "takes up to 512 KiB";
    if (r->coll == COLL_ALLGATHER) {
        struct grid_node node;
        grid_find(r->world, 0, &node);
        size *= node.size;
    }
    return size > PLAN_SEGMENT_MAX ? "takes up to 512 KiB in a row" : NULL;
}

/* ---------------------------------------------------------- the operation */

static bool reduces(const struct op *op)
{
    return op->plan.r.coll == COLL_ALLREDUCE || op->plan.r.coll == COLL_BARRIER;
}

static size_t vector_size(const struct op *op)
{
    return (size_t)plan_vector_size(&op->plan);
}

static uint8_t *sum_of(const struct op *op, uint32_t row)
{
    struct small_grid_state *s = op->state;
    return s->slots + (op->plan.grid.size + row) * vector_size(op);
}

static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    size_t size = vector_size(op), slots = 0;
    bool gathers = p->r.coll == COLL_ALLGATHER;
    if (reduces(op)) slots = p->grid.size + p->grid.rows;
    if (gathers) slots = p->r.world;
    struct small_grid_state *s = op_take_state(e, op, sizeof *s, slots * size);
    if (!s) return false;
    s->row_missing = p->grid.size - 1;
    if (!gathers || size == 0) return true;
    const uint8_t *own = op->r.sendbuf;
    if (!own) own = (const uint8_t *)op->r.recvbuf + p->r.rank * size;
    memcpy(s->slots + p->grid.position * size, own, size);
    return true;
}

static bool has(const struct op *op, uint32_t after)
{
    const struct small_grid_state *s = op->state;
    (void)after;
    return s->row_missing == 0;
}

static const uint8_t *source(struct op *op, const struct plan_xfer *x)
{
    struct small_grid_state *s = op->state;
    if (x->space == SPACE_SEND) return op->r.sendbuf;
    if (x->space == SPACE_RECV) return op->r.recvbuf;
    return s->slots + x->offset;
}

static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    struct small_grid_state *s = op->state;
    (void)ep;
    (void)k;
    return (x->space == SPACE_RECV ? (uint8_t *)op->r.recvbuf : s->slots) +
           x->offset;
}

/* The sum of `count` vectors, of which the one at `own` may lie elsewhere. */
static void fold(const struct op *op, uint8_t *to, const uint8_t *vectors,
                 uint32_t count, uint32_t own, const uint8_t *own_vector)
{
    size_t size = vector_size(op);
    const uint8_t *sum = own == 0 ? own_vector : vectors;
    if (size == 0) return;
    if (count == 1) memmove(to, sum, size);
    for (uint32_t i = 1; i < count; i++) {
        const uint8_t *next = i == own ? own_vector : vectors + i * size;
        reduce_apply(op->r.dtype, op->r.redop, to, sum, next,
                     (size_t)op->plan.r.count);
        sum = to;
    }
}

static void fold_row(struct op *op)
{
    const struct small_grid_state *s = op->state;
    const struct grid_node *g = &op->plan.grid;
    if (!reduces(op)) return;
    fold(op, sum_of(op, g->row), s->slots, g->size, g->column, op->r.sendbuf);
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct small_grid_state *s = op->state;
    const struct plan *p = &op->plan;
    (void)k;
    (void)x;
    (void)body;
    if (!in_own_row(p, ep->rank) || --s->row_missing > 0) return;
    fold_row(op);
    for (uint32_t i = p->grid.size - 1; i < op->ep_count; i++) {
        link_dirty(&e->links, op->eps[i].link);
        op_announce(e, op, &op->eps[i]);
    }
}

static void complete(struct op *op)
{
    const struct small_grid_state *s = op->state;
    const struct plan *p = &op->plan;
    size_t size = vector_size(op);
    if (size == 0) return;
    if (reduces(op)) {
        fold(op, op->r.recvbuf, sum_of(op, 0), p->grid.rows, 0, sum_of(op, 0));
        if (op->r.redop == REDOP_AVG)
            reduce_divide(op->r.dtype, op->r.recvbuf, (size_t)p->r.count,
                          p->r.world);
    }
    for (uint32_t i = 0; p->r.coll == COLL_ALLGATHER && i < p->r.world; i++) {
        uint8_t *to = (uint8_t *)op->r.recvbuf + plan_at(p, i) * size;
        if (i != p->grid.position) memcpy(to, s->slots + i * size, size);
    }
}

const struct algorithm small_grid = {
    .name = "grid",
    .colls = BIT(COLL_ALLREDUCE) | BIT(COLL_BARRIER) | BIT(COLL_BROADCAST) |
             BIT(COLL_ALLGATHER),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .shape = shape,
    .partners = plan_grid_partners,
    .partner = plan_grid_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin,
    .has = has,
    .source = source,
    .place = place,
    .arrived = arrived,
    .complete = complete,
};
