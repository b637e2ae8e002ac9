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
 * Parts are added in the order of turns (pieces.h). */
#include "algorithm.h"
#include "geometry.h"
#include "pieces.h"

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

/* Partners whose parts of a chunk are added here. */
static uint32_t turns_of(const struct plan *p, uint32_t chunk)
{
    if (p->r.hierarchy) return hierarchy_turns(p->r.hierarchy, chunk);
    return chunk == p->r.rank ? p->r.world - 1 : 0;
}

/* Number of chunks whose parts arrive here from others. */
static uint32_t all_parts(const struct plan *p)
{
    return p->r.hierarchy ? p->r.hierarchy->parts : p->r.world - 1;
}

static bool part_of(const struct plan *p, uint32_t from, uint32_t k,
                    struct pieces_part *part)
{
    const struct hierarchy *h = p->r.hierarchy;
    bool is_part;
    part->piece = piece_of(p, from, p->r.rank, k, &is_part);
    uint32_t chunk = part->piece / p->segments;
    part->turn =
        h ? hierarchy_turn(h, chunk, from) : plan_wrap(p, from, p->r.rank);
    part->turns = turns_of(p, chunk);
    part->place = (h ? h->parts_before[chunk] : 0) * p->segments +
                  part->piece % p->segments;
    part->all = chunk == p->r.rank;
    return is_part;
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    bool part;
    uint32_t piece = piece_of(p, p->r.rank, to, k, &part);
    uint32_t chunk = piece / p->segments;
    pieces_cut(p, piece, x);
    if (part && turns_of(p, chunk) == 0) return;
    x->space = SPACE_RECV;
    x->after = piece;
    if (!part && chunk != p->r.rank) x->after += pieces_count(p);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    bool part;
    pieces_cut(p, piece_of(p, from, p->r.rank, k, &part), x);
    x->action = part ? ACTION_REDUCE : ACTION_STORE;
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
    return pieces_begin(e, op, sizeof(struct pieces), all_parts(p),
                        p->segments) != NULL;
}

/* A sum that has come is passed on by the leader of a site. */
static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    const struct plan *p = &op->plan;
    struct pieces_part part;
    if (part_of(p, ep->rank, k, &part))
        pieces_arrived(e, op, &part, body, x->size);
    else if (part.turns > 0)
        pieces_mark(e, op, pieces_count(p) + part.piece);
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
    .has = pieces_has,
    .part = part_of,
    .place = pieces_place,
    .reduce = pieces_reduce,
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
    .has = pieces_has,
    .part = part_of,
    .place = pieces_place,
    .reduce = pieces_reduce,
    .arrived = arrived,
};
