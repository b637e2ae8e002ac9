/* grid_bands.c - larger vectors over a grid, in bands: rules D22 and D24. Pure.
 *
 * A member of most columns owns a band of the vector within its row. As many
 * columns as the shortest row is long have owners; the last member of a longer
 * row owns nothing. A band has a piece (pieces.h) for each of its segments.
 *
 * "grid_direct" of an all-reduce: of the owner's band its row adds up the parts
 * there, and of that band the owner in one row, whose chunk it is, adds up the
 * sums of all rows. It sends the result to the other rows, and all send it to
 * their row. A member waits for others four times, in a world of any size, and
 * sends little more than two vectors.
 *
 * "grid_scatter" of a broadcast: the root sends each owner of its row its band,
 * that one sends it down its column, and all send it to their row. Data take
 * three steps; the root, whose column has no owners, sends one vector, and no
 * member more than little over two. */
#include "algorithm.h"
#include "geometry.h"
#include "pieces.h"

/* What a transfer carries. */
enum kind {
    KIND_WORD,   /* nothing: both ends take part in what follows (rule D22c) */
    KIND_PART,   /* of the sender alone, to the owner of a band in its row */
    KIND_SUM,    /* of the sender's row, to the owner of a chunk */
    KIND_RESULT, /* the sum of all rows, or the data of the root */
};

/* --------------------------------------------------------------- the plan */

static bool reduces(const struct plan *p)
{
    return p->r.coll == COLL_ALLREDUCE;
}

/* Pieces of a band: in an all-reduce a chunk for each row. */
static uint32_t band_pieces(const struct plan *p)
{
    return reduces(p) ? p->grid.rows * p->segments : p->segments;
}

/* Returns whether the member owns a band, and its number. */
static bool band_of(const struct plan *p, const struct grid_node *node,
                    uint32_t *band)
{
    struct grid_node root = {.column = UINT32_MAX};
    if (!reduces(p)) plan_grid_find(p, p->r.root, &root);
    *band = node->column - (root.column < node->column);
    return node->column < plan_grid_columns(p) && node->column != root.column;
}

static void shape_reduce(struct plan *p)
{
    plan_grid_find(p, p->r.rank, &p->grid);
    p->chunks = p->grid.rows * plan_grid_columns(p);
    plan_choose_segment(p, PLAN_SEGMENT_MIN, plan_chunk_size(p, 0));
    p->done = DONE_GRID;
}

static void shape_broadcast(struct plan *p)
{
    struct grid_node root;
    plan_grid_find(p, p->r.rank, &p->grid);
    plan_grid_find(p, p->r.root, &root);
    p->chunks = plan_grid_columns(p) - (root.column < plan_grid_columns(p));
    uint64_t size = plan_vector_size(p);
    plan_choose_segment(p, plan_segment_of(p, size), plan_chunk_size(p, 0));
    p->done = DONE_GRID;
}

/* Successive pieces that one member sends another. */
struct band_run {
    enum kind kind;
    uint32_t first, count;
};

static void find_sums(const struct plan *p, const struct grid_node *from,
                      const struct grid_node *to, struct band_run run[2])
{
    uint32_t each = band_pieces(p), band, owned;
    bool owns = band_of(p, from, &band);
    if (from->row == to->row) {
        if (band_of(p, to, &owned))
            run[0] = (struct band_run){KIND_PART, owned * each, each};
        if (owns) run[1] = (struct band_run){KIND_RESULT, band * each, each};
    } else if (owns && from->column == to->column) {
        uint32_t first = band * each, count = p->segments;
        run[0] = (struct band_run){KIND_SUM, first + to->row * count, count};
        run[1] =
            (struct band_run){KIND_RESULT, first + from->row * count, count};
    }
}

static void find_data(const struct plan *p, const struct grid_node *from,
                      const struct grid_node *to, struct band_run *run)
{
    uint32_t each = band_pieces(p), band;
    struct grid_node root;
    plan_grid_find(p, p->r.root, &root);
    bool row = from->row == to->row;
    bool sends = from->row == root.row && from->column == to->column;
    if (to->position == root.position) return;
    if (from->position == root.position)
        sends = row && band_of(p, to, &band);
    else
        sends = band_of(p, from, &band) && (row || sends);
    if (sends) *run = (struct band_run){KIND_RESULT, band * each, each};
}

/* The transfers from one member to another. */
static void find_runs(const struct plan *p, const struct grid_node *from,
                      const struct grid_node *to, struct band_run run[2])
{
    run[0] = run[1] = (struct band_run){KIND_WORD, 0, 0};
    if (reduces(p))
        find_sums(p, from, to, run);
    else
        find_data(p, from, to, &run[0]);
    if (run[0].count + run[1].count == 0)
        run[0].count = grid_sends(from, to->position);
}

static uint32_t transfers(const struct plan *p, const struct grid_node *from,
                          const struct grid_node *to)
{
    struct band_run run[2];
    find_runs(p, from, to, run);
    return run[0].count + run[1].count;
}

static enum kind transfer(const struct plan *p, const struct grid_node *from,
                          const struct grid_node *to, uint32_t k,
                          uint32_t *piece)
{
    struct band_run run[2];
    find_runs(p, from, to, run);
    bool first = k < run[0].count;
    *piece = first ? run[0].first + k : run[1].first + k - run[0].count;
    return first ? run[0].kind : run[1].kind;
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

/* The piece is of the band of this member; it has the result of it first. */
static bool is_own(const struct plan *p, uint32_t piece, bool *first)
{
    uint32_t band, row = piece / p->segments % p->grid.rows;
    bool owns = band_of(p, &p->grid, &band);
    *first = reduces(p) && row == p->grid.row;
    return owns && piece / band_pieces(p) == band;
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    struct grid_node other;
    uint32_t piece;
    bool first;
    plan_grid_find(p, to, &other);
    enum kind kind = transfer(p, &p->grid, &other, k, &piece);
    if (kind == KIND_WORD) return;
    pieces_cut(p, piece, x);
    if (kind == KIND_PART) return;
    x->space = SPACE_RECV;
    if (!reduces(p) && p->r.rank == p->r.root) return;
    x->after = piece;
    (void)is_own(p, piece, &first);
    if (kind == KIND_RESULT && !first) x->after += pieces_count(p);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    struct grid_node other;
    uint32_t piece;
    plan_grid_find(p, from, &other);
    enum kind kind = transfer(p, &other, &p->grid, k, &piece);
    if (kind == KIND_WORD) return;
    pieces_cut(p, piece, x);
    if (kind != KIND_RESULT) x->action = ACTION_REDUCE;
}

/* Adds the parts of the row to the own one, from the next member on, and, of
 * the own chunk, the sums of other rows, from the next row on. */
static bool part_of(const struct plan *p, uint32_t from, uint32_t k,
                    struct pieces_part *part)
{
    const struct grid_node *g = &p->grid;
    struct grid_node other;
    plan_grid_find(p, from, &other);
    enum kind kind = transfer(p, &other, g, k, &part->piece);
    uint32_t column = (other.column + g->size - g->column) % g->size;
    uint32_t row = (other.row + g->rows - g->row) % g->rows;
    (void)is_own(p, part->piece, &part->all);
    part->place = part->piece % band_pieces(p);
    part->turn = kind == KIND_PART ? column : g->size - 1 + row;
    part->turns = g->size - 1;
    if (part->all) part->turns += g->rows - 1;
    return kind == KIND_PART || kind == KIND_SUM;
}

static const char *unfit(const struct plan_request *r)
{
    if (r->world < 4) return "needs 4 members";
    if (r->world > GRID_WORLD_MAX) return "takes up to 1024 members";
    if (!r->grid && !r->mesh) return "needs the links of a grid";
    return r->codes ? "its elements are not codes" : NULL;
}

/* ---------------------------------------------------------- the operation */

static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    const struct grid_node *g = &p->grid;
    uint32_t band, partners = 0;
    if (reduces(p) && band_of(p, g, &band))
        partners = g->size - 1 + g->rows - 1;
    return pieces_begin(e, op, sizeof(struct pieces), partners,
                        band_pieces(p)) != NULL;
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    const struct plan *p = &op->plan;
    struct pieces_part part;
    struct grid_node from;
    bool first;
    plan_grid_find(p, ep->rank, &from);
    if (transfer(p, &from, &p->grid, k, &part.piece) == KIND_WORD) return;
    if (part_of(p, ep->rank, k, &part))
        pieces_arrived(e, op, &part, body, x->size);
    else if (is_own(p, part.piece, &first))
        pieces_mark(e, op, pieces_count(p) + part.piece);
}

const struct algorithm allreduce_grid = {
    .name = "grid_direct",
    .colls = BIT(COLL_ALLREDUCE),
    .unfit = unfit,
    .awaits_all = true,
    .tells_launch = true,
    .announces_writes = true,
    .shape = shape_reduce,
    .partners = plan_grid_partners,
    .partner = plan_grid_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin,
    .has = pieces_has,
    .part = part_of,
    .place = pieces_place,
    .reduce = pieces_reduce,
    .arrived = arrived,
};

const struct algorithm broadcast_grid = {
    .name = "grid_scatter",
    .colls = BIT(COLL_BROADCAST),
    .unfit = unfit,
    .tells_launch = true,
    .shape = shape_broadcast,
    .partners = plan_grid_partners,
    .partner = plan_grid_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin,
    .has = pieces_has,
    .arrived = arrived,
};
