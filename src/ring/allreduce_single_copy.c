/* allreduce_single_copy.c - "single_copy": members of one host reduce from
 * regions of memory that all of them have mapped (rules D16, L7, L8). Pure.
 *
 * Each member owns a chunk and adds the parts of the others, as in
 * allreduce_direct.c, but segment by segment: the sum of one segment follows
 * the input of the next, and the input after that waits for all sums of the
 * first. So at most two segments are under way anywhere. A member writes its
 * data once into the own region, and an empty frame announces them. The queues
 * of all pairs carry no bodies, and the receivers reduce or copy the data from
 * where they lie when their turn has come. Data that have no place in the
 * region come through a queue.
 *
 * A reduce-scatter does the same (rule D21). In the place of each sum it sends
 * an empty word: the sender has taken the inputs of that segment. */
#include "algorithm.h"
#include "geometry.h"
#include "pieces.h"

#include <string.h>

struct allreduce_single_copy_state {
    struct pieces pieces;
    /* By buffer of the region: the segment whose sum is in it, plus 1. A member
     * that maps the region late has got some of them through its queue. */
    uint32_t sums_put[SINGLE_COPY_BUFFERS];
    uint16_t sums[]; /* by segment: partners whose sums are here */
};

/* --------------------------------------------------------------- the plan */

static size_t place_size(const struct plan *p)
{
    enum { PAGE = 4096 };
    return SINGLE_COPY_BUFFER / p->r.world / PAGE * PAGE;
}

static void shape(struct plan *p)
{
    uint64_t segment = REGION_SEGMENTS / p->r.world / p->r.world;
    if (segment < REGION_SEGMENT_MIN) segment = REGION_SEGMENT_MIN;
    if (p->r.piece > 0) segment = p->r.piece;
    if (segment > place_size(p)) segment = place_size(p);
    plan_choose_segment(p, segment, plan_chunk_size(p, 0));
}

static uint32_t transfers(const struct plan *p, uint32_t partner)
{
    (void)partner;
    return 2 * p->segments;
}

/* Of a reduce-scatter: nobody waits for the last words. */
static uint32_t transfers_of_inputs(const struct plan *p, uint32_t partner)
{
    (void)partner;
    return p->segments == 1 ? 1 : 2 * p->segments - SINGLE_COPY_BUFFERS;
}

static bool is_scatter(const struct plan *p)
{
    return p->r.coll == COLL_REDUCE_SCATTER;
}

/* Sets the segment of the k-th transfer to or from a partner. */
static bool is_sum(const struct plan *p, uint32_t k, uint32_t *segment)
{
    bool last = k + 1 == 2 * p->segments;
    bool input = k == 0 || (k % 2 == 1 && !last);
    *segment = input ? (k + 1) / 2 : k / 2 - (last ? 0 : 1);
    return !input;
}

static uint32_t piece_of(const struct plan *p, uint32_t rank, uint32_t g)
{
    return rank * p->segments + g;
}

static bool part_of(const struct plan *p, uint32_t from, uint32_t k,
                    struct pieces_part *part)
{
    uint32_t g;
    bool sum = is_sum(p, k, &g);
    *part =
        (struct pieces_part){.piece = piece_of(p, sum ? from : p->r.rank, g),
                             .turn = plan_wrap(p, from, p->r.rank),
                             .turns = p->r.world - 1,
                             .place = g % SINGLE_COPY_BUFFERS,
                             .all = true};
    return !sum;
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    uint32_t g;
    bool sum = is_sum(p, k, &g);
    if (!sum || !is_scatter(p)) plan_chunk_cut(p, sum ? p->r.rank : to, g, x);
    x->space = sum ? SPACE_RECV : SPACE_SEND;
    if (sum)
        x->after = piece_of(p, p->r.rank, g);
    else if (g >= 2)
        x->after = pieces_count(p) + piece_of(p, p->r.rank, g - 2);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    uint32_t g;
    bool sum = is_sum(p, k, &g);
    if (!sum || !is_scatter(p)) plan_chunk_cut(p, sum ? from : p->r.rank, g, x);
    x->action = sum ? ACTION_STORE : ACTION_REDUCE;
}

static const char *unfit(const struct plan_request *r)
{
    return r->codes ? "its elements are not codes" : single_copy_unfit(r);
}

/* ------------------------------------------------------ slots of a region */

/* A segment of the input for a member lies in that member's place, a segment of
 * the sum in the place of the member that made it. */
static size_t lent(const struct plan *p, uint32_t slot, uint32_t piece)
{
    return single_copy_slot_offset(slot) +
           piece % p->segments % SINGLE_COPY_BUFFERS *
               (size_t)SINGLE_COPY_BUFFER +
           piece / p->segments * place_size(p);
}

/* ---------------------------------------------------------- the operation */

/* Of two segments: the next but one is sent when all members have this one
 * (D16). */
static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    size_t own = sizeof(struct allreduce_single_copy_state) +
                 p->segments * sizeof(uint16_t);
    PCCL_ASSERT(p->segment <= place_size(p));
    if (!pieces_begin(e, op, own, p->r.world - 1, SINGLE_COPY_BUFFERS))
        return false;
    single_copy_take_slot(e, op);
    return true;
}

/* The sum of a segment of another chunk is here; perhaps it is the last one. */
static void count_sum(struct engine *e, struct op *op, uint32_t g)
{
    struct allreduce_single_copy_state *s = op->state;
    const struct plan *p = &op->plan;
    if (++s->sums[g] + 1u == p->r.world)
        pieces_mark(e, op, pieces_count(p) + piece_of(p, p->r.rank, g));
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct pieces_part part;
    if (part_of(&op->plan, ep->rank, k, &part))
        pieces_arrived(e, op, &part, body, x->size);
    else
        count_sum(e, op, part.piece % op->plan.segments);
}

/* --------------------------------------------------- through regions (D16) */

static void put(struct engine *e, struct op *op, const struct endpoint *ep,
                uint32_t k, const struct plan_xfer *x)
{
    struct allreduce_single_copy_state *s = op->state;
    const struct plan *p = &op->plan;
    uint32_t g;
    bool sum = is_sum(p, k, &g);
    const uint8_t *from = sum ? op->r.recvbuf : op->r.sendbuf;
    uint32_t *there = &s->sums_put[g % SINGLE_COPY_BUFFERS];
    if (sum && *there == g + 1) return; /* for another member */
    /* The sum arrives here: the overwritten input is read once, not twice. */
    if (!sum) input_overwrite(op, from + x->offset, x->size);
    if (sum) *there = g + 1;
    uint32_t piece = piece_of(p, sum ? p->r.rank : ep->rank, g);
    memcpy(e->links.region + lent(p, op->slot - 1, piece), from + x->offset,
           x->size);
}

static bool take_put(struct engine *e, struct op *op, struct endpoint *ep,
                     uint32_t k, const struct plan_xfer *x, uint32_t slot)
{
    const struct plan *p = &op->plan;
    struct pieces_part part;
    if (part_of(p, ep->rank, k, &part)) {
        pieces_lent(e, op, &part, slot, x->size);
        return true;
    }
    if (!single_copy_take(op, ep, x, slot, lent(p, slot, part.piece)))
        return false;
    count_sum(e, op, part.piece % p->segments);
    return true;
}

const struct algorithm allreduce_single_copy = {
    .name = "single_copy",
    .colls = BIT(COLL_ALLREDUCE) | BIT(COLL_BARRIER),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .confirms = true,
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
    .lent = lent,
    .place = pieces_place,
    .reduce = pieces_reduce,
    .arrived = arrived,
    .put = put,
    .take_put = take_put,
};

const struct algorithm reduce_scatter_single_copy = {
    .name = "single_copy",
    .colls = BIT(COLL_REDUCE_SCATTER),
    .unfit = single_copy_unfit,
    .awaits_all = true,
    .is_long = true,
    .shape = shape,
    .partners = plan_all_partners,
    .partner = plan_all_partner,
    .sends = transfers_of_inputs,
    .recvs = transfers_of_inputs,
    .send = send,
    .recv = recv,
    .begin = begin,
    .has = pieces_has,
    .part = part_of,
    .lent = lent,
    .place = pieces_place,
    .reduce = pieces_reduce,
    .arrived = arrived,
    .put = put,
    .take_put = take_put,
};
