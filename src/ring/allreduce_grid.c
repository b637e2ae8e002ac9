/* allreduce_grid.c - "grid_direct": a reduce-scatter within a row of a grid,
 * a direct all-reduce between the rows, an all-gather within the row (rule
 * D22). Pure.
 *
 * A member waits for others four times, in a world of any size, and sends
 * little more than two vectors. As many columns as the shortest row is long
 * have owners: a member of such a column owns a band of the vector within its
 * row, of which each row adds up its parts, and of that band the chunk with the
 * number of its row. The last member of a longer row owns nothing. */
#include "algorithm.h"
#include "geometry.h"
#include "pieces.h"

#include <string.h>

/* Of one member; pieces of its band are numbered from 0 on. */
struct allreduce_grid_state {
    /* Bit set over the pieces of the band: first those whose parts of the row
     * are added, then those whose sum is the result. */
    uint8_t *ready;
    uint16_t *parts;     /* by piece of the band: parts to come from the row */
    uint16_t *sums;      /* by segment of the chunk: sums to come from rows */
    uint8_t *part_slots; /* parts of the band, by the member of the row */
    uint8_t *sum_slots;  /* sums of the chunk, by row */
};

/* What a transfer carries. */
enum kind {
    KIND_PART,   /* of the sender alone, to the owner of a band in its row */
    KIND_SUM,    /* of the sender's row, to the owner of a chunk */
    KIND_RESULT, /* the sum of all rows */
    KIND_WORD,   /* nothing: both ends take part in what follows (rule D22c) */
};

/* --------------------------------------------------------------- the plan */

static uint32_t band_pieces(const struct plan *p)
{
    return p->grid.rows * p->segments;
}

static bool has_band(const struct plan *p, const struct grid_node *node)
{
    return node->column < plan_grid_columns(p);
}

/* The first piece of a band, and of one of its chunks. */
static uint32_t band_first(const struct plan *p, uint32_t column)
{
    return column * band_pieces(p);
}

static uint32_t chunk_first(const struct plan *p, uint32_t column, uint32_t row)
{
    return band_first(p, column) + row * p->segments;
}

static void shape(struct plan *p)
{
    plan_grid_find(p, p->r.rank, &p->grid);
    p->chunks = p->grid.rows * plan_grid_columns(p);
    plan_choose_segment(p, PLAN_SEGMENT_MIN, plan_chunk_size(p, 0));
    p->done = DONE_GRID;
}

/* The transfers from one member to another: parts or sums, and then results. */
static uint32_t transfers(const struct plan *p, const struct grid_node *from,
                          const struct grid_node *to)
{
    if (from->row == to->row)
        return (has_band(p, to) + has_band(p, from)) * band_pieces(p);
    if (from->column == to->column && has_band(p, from)) return 2 * p->segments;
    return grid_sends(from, to->position) ? 1 : 0;
}

static enum kind transfer(const struct plan *p, const struct grid_node *from,
                          const struct grid_node *to, uint32_t k,
                          uint32_t *piece)
{
    bool row = from->row == to->row;
    uint32_t before = p->segments;
    *piece = 0;
    if (!row && (from->column != to->column || !has_band(p, from)))
        return KIND_WORD;
    if (row) before = has_band(p, to) ? band_pieces(p) : 0;
    if (k >= before) {
        k -= before;
        *piece = row ? band_first(p, from->column) + k
                     : chunk_first(p, from->column, from->row) + k;
        return KIND_RESULT;
    }
    *piece = row ? band_first(p, to->column) + k
                 : chunk_first(p, to->column, to->row) + k;
    return row ? KIND_PART : KIND_SUM;
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
    uint32_t piece;
    plan_grid_find(p, to, &other);
    enum kind kind = transfer(p, &p->grid, &other, k, &piece);
    if (kind == KIND_WORD) return;
    pieces_cut(p, piece, x);
    if (kind == KIND_PART) return;
    x->space = SPACE_RECV;
    x->after = piece - band_first(p, p->grid.column);
    if (kind == KIND_RESULT) x->after += band_pieces(p);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    struct grid_node other;
    uint32_t piece;
    plan_grid_find(p, from, &other);
    if (transfer(p, &other, &p->grid, k, &piece) == KIND_WORD) return;
    pieces_cut(p, piece, x);
}

static const char *unfit(const struct plan_request *r)
{
    if (r->world < 4) return "needs 4 members";
    if (r->world > GRID_WORLD_MAX) return "takes up to 1024 members";
    if (!r->grid && !r->mesh) return "needs the links of a grid";
    return r->codes ? "its elements are not codes" : NULL;
}

/* ---------------------------------------------------------- the operation */

/* Bytes of the slots of one member of the row. */
static size_t band_room(const struct plan *p)
{
    return (size_t)p->grid.rows * plan_chunk_size(p, 0);
}

static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    const struct grid_node *g = &p->grid;
    struct allreduce_grid_state *s = op_take_state(e, op, sizeof *s, 0);
    if (!s) return false;
    if (!has_band(p, g)) return true;
    struct pool *pool = &e->links.pool;
    uint32_t band = band_pieces(p);
    s->ready = pool_take(pool, 2 * band / 8 + 1);
    s->parts = pool_take(pool, band * sizeof *s->parts);
    s->sums = pool_take(pool, p->segments * sizeof *s->sums);
    s->part_slots = pool_take(pool, (g->size - 1) * band_room(p) + 1);
    s->sum_slots = pool_take(pool, (g->rows - 1) * plan_chunk_size(p, 0) + 1);
    if (!s->ready || !s->parts || !s->sums || !s->part_slots || !s->sum_slots)
        return false;
    memset(s->ready, 0, 2 * band / 8 + 1);
    for (uint32_t i = 0; i < band; i++) s->parts[i] = (uint16_t)(g->size - 1);
    for (uint32_t i = 0; i < p->segments; i++)
        s->sums[i] = (uint16_t)(g->rows - 1);
    return true;
}

static void end(struct engine *e, struct op *op)
{
    struct allreduce_grid_state *s = op->state;
    struct pool *pool = &e->links.pool;
    pool_give(pool, s->ready);
    pool_give(pool, s->parts);
    pool_give(pool, s->sums);
    pool_give(pool, s->part_slots);
    pool_give(pool, s->sum_slots);
}

static bool has(const struct op *op, uint32_t after)
{
    const struct allreduce_grid_state *s = op->state;
    return op_bit_get(s->ready, after);
}

/* The number of another one among all but one's own. */
static uint32_t among_others(uint32_t other, uint32_t own)
{
    return other - (other > own);
}

static uint8_t *part_slot(const struct op *op, uint32_t column, uint32_t k)
{
    const struct allreduce_grid_state *s = op->state;
    const struct plan *p = &op->plan;
    return s->part_slots + among_others(column, p->grid.column) * band_room(p) +
           k / p->segments * plan_chunk_size(p, 0) +
           k % p->segments * p->segment;
}

static uint8_t *sum_slot(const struct op *op, uint32_t row, uint32_t g)
{
    const struct allreduce_grid_state *s = op->state;
    const struct plan *p = &op->plan;
    return s->sum_slots +
           among_others(row, p->grid.row) * plan_chunk_size(p, 0) +
           g * p->segment;
}

static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    const struct plan *p = &op->plan;
    struct grid_node from;
    uint32_t piece;
    plan_grid_find(p, ep->rank, &from);
    enum kind kind = transfer(p, &from, &p->grid, k, &piece);
    if (kind == KIND_PART)
        return part_slot(op, from.column,
                         piece - band_first(p, p->grid.column));
    if (kind == KIND_SUM) return sum_slot(op, from.row, piece % p->segments);
    return (uint8_t *)op->r.recvbuf + x->offset;
}

static void mark(struct engine *e, struct op *op, uint32_t bit)
{
    struct allreduce_grid_state *s = op->state;
    op_bit_set(s->ready, bit);
    op_wake(e, op);
}

static size_t piece_size(const struct plan *p, uint32_t piece)
{
    struct plan_xfer x;
    pieces_cut(p, piece, &x);
    return x.size;
}

/* Adds the sums of other rows to that of the own one, from the next row on:
 * the own chunk's part k of the band is the result. */
static void add_rows(struct engine *e, struct op *op, uint32_t k)
{
    const struct allreduce_grid_state *s = op->state;
    const struct plan *p = &op->plan;
    const struct grid_node *g = &p->grid;
    uint32_t piece = band_first(p, g->column) + k, segment = k % p->segments;
    size_t size = piece_size(p, piece);
    if (s->sums[segment] > 0 || !op_bit_get(s->ready, k)) return;
    for (uint32_t i = 1; size > 0 && i < g->rows; i++) {
        unsigned turn = i + 1 == g->rows ? TURN_LAST : 0;
        pieces_add(op, piece, turn, 0,
                   sum_slot(op, (g->row + i) % g->rows, segment), size);
    }
    mark(e, op, band_pieces(p) + k);
}

/* Adds the parts of the row to the own one, from the next member on. */
static void add_parts(struct engine *e, struct op *op, uint32_t k)
{
    const struct plan *p = &op->plan;
    const struct grid_node *g = &p->grid;
    uint32_t piece = band_first(p, g->column) + k;
    size_t size = piece_size(p, piece);
    for (uint32_t i = 1; size > 0 && i < g->size; i++)
        pieces_add(op, piece, i == 1 ? TURN_FIRST : 0, 0,
                   part_slot(op, (g->column + i) % g->size, k), size);
    mark(e, op, k);
    if (k / p->segments == g->row) add_rows(e, op, k);
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct allreduce_grid_state *s = op->state;
    const struct plan *p = &op->plan;
    struct grid_node from;
    uint32_t piece;
    (void)x;
    (void)body;
    plan_grid_find(p, ep->rank, &from);
    enum kind kind = transfer(p, &from, &p->grid, k, &piece);
    uint32_t in_band = piece - band_first(p, p->grid.column);
    if (kind == KIND_PART && --s->parts[in_band] == 0) {
        add_parts(e, op, in_band);
    } else if (kind == KIND_SUM) {
        s->sums[piece % p->segments]--;
        add_rows(e, op, in_band);
    } else if (kind == KIND_RESULT && from.row != p->grid.row) {
        mark(e, op, band_pieces(p) + in_band);
    }
}

const struct algorithm allreduce_grid = {
    .name = "grid_direct",
    .colls = BIT(COLL_ALLREDUCE),
    .unfit = unfit,
    .awaits_all = true,
    .whole_bodies = true,
    .tells_launch = true,
    .announces_writes = true,
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
    .place = place,
    .arrived = arrived,
};
