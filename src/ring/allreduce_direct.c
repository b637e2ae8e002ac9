/* allreduce_direct.c - "direct": a reduce-scatter and an all-gather among all
 * pairs (rule D12); and a reduce-scatter alone (rule D21). Pure.
 *
 * Every member sends each owner its part of the owner's chunk, and each owner
 * sends every member the sum. It sends as many bytes as a ring, but a member
 * waits for others twice instead of 2(world-1) times. This suits members that
 * are far apart, because each step of a ring takes one network distance. Where
 * members share a site, one of them adds up the parts before they cross to
 * another site (hierarchy.h, rule D15).
 *
 * Parts are added in the order of turns (rule D3). A part that arrives in its
 * turn is reduced from where it lies; a part that arrives earlier waits in a
 * slot. */
#include "algorithm.h"
#include "geometry.h"
#include "pieces.h"

#include <string.h>

struct allreduce_direct_state {
    /* Bit set over the pieces: first those that are added up here, then those
     * whose sum has arrived and is to be passed on. */
    uint8_t *received;
    uint8_t *came;   /* bit set: (part, segment) is in the slots */
    uint8_t *slots;  /* parts that arrived before their turn */
    uint16_t *turns; /* by piece: number of partners whose parts are added */
};

/* --------------------------------------------------------------- the plan */

/* Segments need no READY (rule D2). */
static void shape(struct plan *p)
{
    plan_choose_segment(p, PLAN_SEGMENT_MIN, plan_chunk_size(p, 0));
}

/* Of any size: segments are as large as those of other algorithms. */
static void shape_parts(struct plan *p)
{
    uint64_t size = plan_chunk_size(p, 0);
    plan_choose_segment(p, plan_segment_of(p, size), size);
}

/* Number of chunks of which `from` sends its part to `to`; the i-th of them. */
static uint32_t parts_to(const struct plan *p, uint32_t from, uint32_t to)
{
    return p->r.hierarchy ? hierarchy_chunks(p->r.hierarchy, from, to) : 1;
}

static uint32_t part_to(const struct plan *p, uint32_t from, uint32_t to,
                        uint32_t i)
{
    return p->r.hierarchy ? hierarchy_chunk(p->r.hierarchy, from, to, i) : to;
}

/* Transfers from one to the other: its parts, and then the sums that it has for
 * the other's parts. */
static uint32_t transfers(const struct plan *p, uint32_t partner)
{
    uint32_t self = p->r.rank;
    return (parts_to(p, self, partner) + parts_to(p, partner, self)) *
           p->segments;
}

/* Of a reduce-scatter: nobody sends sums. */
static uint32_t transfers_of_parts(const struct plan *p, uint32_t partner)
{
    (void)partner;
    return p->segments;
}

static uint32_t piece_of(const struct plan *p, uint32_t from, uint32_t to,
                         uint32_t k, bool *part)
{
    uint32_t parts = parts_to(p, from, to);
    uint32_t i = k / p->segments;
    *part = i < parts;
    uint32_t chunk =
        *part ? part_to(p, from, to, i) : part_to(p, to, from, i - parts);
    return chunk * p->segments + k % p->segments;
}

uint32_t direct_piece(const struct plan *p, uint32_t from, uint32_t k)
{
    bool part;
    return piece_of(p, from, p->r.rank, k, &part);
}

bool direct_is_part(const struct plan *p, uint32_t from, uint32_t k)
{
    return k / p->segments < parts_to(p, from, p->r.rank);
}

uint32_t direct_turns(const struct plan *p, uint32_t piece)
{
    uint32_t chunk = piece / p->segments;
    if (p->r.hierarchy) return hierarchy_turns(p->r.hierarchy, chunk);
    return chunk == p->r.rank ? p->r.world - 1 : 0;
}

uint32_t direct_turn(const struct plan *p, uint32_t piece, uint32_t from)
{
    if (p->r.hierarchy)
        return hierarchy_turn(p->r.hierarchy, piece / p->segments, from);
    return plan_wrap(p, from, p->r.rank);
}

/* Number of chunks whose parts arrive here from others; those before one
 * chunk. */
static uint32_t all_parts(const struct plan *p)
{
    return p->r.hierarchy ? p->r.hierarchy->parts : p->r.world - 1;
}

static uint32_t parts_before(const struct plan *p, uint32_t chunk)
{
    return p->r.hierarchy ? p->r.hierarchy->parts_before[chunk] : 0;
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    bool part;
    uint32_t piece = piece_of(p, p->r.rank, to, k, &part);
    uint32_t chunk = piece / p->segments;
    pieces_place(p, piece, x);
    if (part && direct_turns(p, piece) == 0) return;
    x->space = SPACE_RECV;
    x->after = piece;
    if (!part && chunk != p->r.rank) x->after += pieces_count(p);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    pieces_place(p, direct_piece(p, from, k), x);
    x->action = direct_is_part(p, from, k) ? ACTION_REDUCE : ACTION_STORE;
}

static const char *unfit(const struct plan_request *r)
{
    if (r->world < 3) return "needs 3 members";
    if (!r->mesh) return "needs links between all pairs of members";
    return r->codes ? "its elements are not codes" : NULL;
}

/* ---------------------------------------------------------- the operation */

static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    struct allreduce_direct_state *s = op_take_state(e, op, sizeof *s, 0);
    if (!s) return false;
    uint32_t pieces = pieces_count(p);
    uint32_t parts = all_parts(p) * p->segments;
    size_t turns = pieces * sizeof *s->turns;
    s->received = pool_take(&e->links.pool, 2 * pieces / 8 + 1);
    s->came = pool_take(&e->links.pool, parts / 8 + 1);
    s->turns = pool_take(&e->links.pool, turns);
    s->slots = pool_take(&e->links.pool,
                         (size_t)all_parts(p) * plan_chunk_size(p, 0) + 1);
    if (!s->received || !s->came || !s->turns || !s->slots) return false;
    memset(s->received, 0, 2 * pieces / 8 + 1);
    memset(s->came, 0, parts / 8 + 1);
    memset(s->turns, 0, turns);
    return true;
}

static void end(struct engine *e, struct op *op)
{
    struct allreduce_direct_state *s = op->state;
    pool_give(&e->links.pool, s->received);
    pool_give(&e->links.pool, s->came);
    pool_give(&e->links.pool, s->turns);
    pool_give(&e->links.pool, s->slots);
}

static bool has(const struct op *op, uint32_t after)
{
    const struct allreduce_direct_state *s = op->state;
    return op_bit_get(s->received, after);
}

/* The number of a part among all parts that arrive here, by segments. */
static uint32_t part_number(const struct plan *p, uint32_t piece, uint32_t turn)
{
    uint32_t before = parts_before(p, piece / p->segments);
    return (before + turn - 1) * p->segments + piece % p->segments;
}

static uint8_t *slot(const struct op *op, uint32_t piece, uint32_t turn)
{
    const struct allreduce_direct_state *s = op->state;
    const struct plan *p = &op->plan;
    uint32_t part = part_number(p, piece, turn);
    return s->slots + part / p->segments * plan_chunk_size(p, 0) +
           part % p->segments * p->segment;
}

static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    const struct allreduce_direct_state *s = op->state;
    const struct plan *p = &op->plan;
    uint32_t piece = direct_piece(p, ep->rank, k);
    if (x->action == ACTION_STORE) return (uint8_t *)op->r.recvbuf + x->offset;
    uint32_t turn = direct_turn(p, piece, ep->rank);
    return s->turns[piece] + 1u == turn ? NULL : slot(op, piece, turn);
}

static void add(struct op *op, uint32_t piece, uint32_t turn, size_t at,
                const uint8_t *bytes, size_t size)
{
    const struct plan *p = &op->plan;
    bool all =
        piece / p->segments == p->r.rank && turn == direct_turns(p, piece);
    unsigned turns = all ? TURN_LAST : 0;
    if (turn == 1) turns |= TURN_FIRST;
    pieces_add(op, piece, turns, at, bytes, size);
}

static void reduce(struct op *op, const struct endpoint *ep, uint32_t k,
                   size_t at, const uint8_t *bytes, size_t size)
{
    uint32_t piece = direct_piece(&op->plan, ep->rank, k);
    add(op, piece, direct_turn(&op->plan, piece, ep->rank), at, bytes, size);
}

/* Partners that wait for a piece may send it now. */
static void mark(struct engine *e, struct op *op, uint32_t bit)
{
    struct allreduce_direct_state *s = op->state;
    op_bit_set(s->received, bit);
    for (uint32_t i = 0; i < op->ep_count; i++)
        link_dirty(&e->links, op->eps[i].link);
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct allreduce_direct_state *s = op->state;
    const struct plan *p = &op->plan;
    uint32_t piece = direct_piece(p, ep->rank, k);
    if (!direct_is_part(p, ep->rank, k)) {
        if (direct_turns(p, piece) > 0) mark(e, op, pieces_count(p) + piece);
        return;
    }
    uint32_t turn = direct_turn(p, piece, ep->rank);
    if (body && body == slot(op, piece, turn)) {
        op_bit_set(s->came, part_number(p, piece, turn));
    } else {
        if (body && x->size > 0) add(op, piece, turn, 0, body, x->size);
        s->turns[piece]++;
    }
    while ((turn = s->turns[piece] + 1u) <= direct_turns(p, piece) &&
           op_bit_get(s->came, part_number(p, piece, turn))) {
        if (x->size > 0)
            add(op, piece, turn, 0, slot(op, piece, turn), x->size);
        s->turns[piece]++;
    }
    if (turn > direct_turns(p, piece)) mark(e, op, piece);
}

const struct algorithm allreduce_direct = {
    .name = "direct",
    .colls = BIT(COLL_ALLREDUCE) | BIT(COLL_BARRIER),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .announces_writes = true,
    .shape = shape,
    .partners = plan_all_partners,
    .partner = plan_all_partner,
    .sends = transfers,
    .recvs = transfers,
    .send = send,
    .recv = recv,
    .begin = begin,
    .end = end,
    .has = has,
    .place = place,
    .reduce = reduce,
    .arrived = arrived,
};

const struct algorithm reduce_scatter_direct = {
    .name = "direct",
    .colls = BIT(COLL_REDUCE_SCATTER),
    .awaits_all = true,
    .is_long = true,
    .fast = FAST_PAIRS,
    .shape = shape_parts,
    .partners = plan_all_partners,
    .partner = plan_all_partner,
    .sends = transfers_of_parts,
    .recvs = transfers_of_parts,
    .send = send,
    .recv = recv,
    .begin = begin,
    .end = end,
    .has = has,
    .place = place,
    .reduce = reduce,
    .arrived = arrived,
};
