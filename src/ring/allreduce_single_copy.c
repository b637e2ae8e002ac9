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
#include "allreduce_single_copy.h"

#include "algorithm.h"
#include "geometry.h"

#include "../reduce/stream.h"

#include <string.h>

enum {
    SEGMENT_LEAST = 32 * 1024, /* or a place, if that is less */
    SEGMENT_MOST = 256 * 1024,
    /* Bytes of one segment for all pairs together. */
    SEGMENTS_TOTAL = 4 * 1024 * 1024,
};

/* In `came`: the place of an input that waits for its turn. */
enum {
    CAME_NOT,
    CAME_QUEUE, /* it came through a queue and is in the slots */
    CAME_PUT,   /* it is in this slot of its sender's region, and so on */
};

/* --------------------------------------------------------------- the plan */

static size_t place_size(const struct plan *p)
{
    enum { PAGE = 4096 };
    return SINGLE_COPY_BUFFER / p->r.world / PAGE * PAGE;
}

/* The data that wait in all regions stay in a cache. The fewer members there
 * are, the larger are the portions between two turns of the others. */
static void shape(struct plan *p)
{
    uint64_t segment = SEGMENTS_TOTAL / p->r.world / p->r.world;
    if (segment < SEGMENT_LEAST) segment = SEGMENT_LEAST;
    if (segment > SEGMENT_MOST) segment = SEGMENT_MOST;
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

bool single_copy_is_sum(const struct plan *p, uint32_t k, uint32_t *segment)
{
    bool last = k + 1 == 2 * p->segments;
    bool input = k == 0 || (k % 2 == 1 && !last);
    *segment = input ? (k + 1) / 2 : k / 2 - (last ? 0 : 1);
    return !input;
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    uint32_t g;
    bool sum = single_copy_is_sum(p, k, &g);
    if (!sum || !is_scatter(p)) plan_chunk_cut(p, sum ? p->r.rank : to, g, x);
    x->space = sum ? SPACE_RECV : SPACE_SEND;
    if (sum)
        x->after = g;
    else if (g >= 2)
        x->after = p->segments + g - 2;
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    uint32_t g;
    bool sum = single_copy_is_sum(p, k, &g);
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
static size_t offset_of(const struct plan *p, uint32_t slot, uint32_t g,
                        uint32_t rank)
{
    return single_copy_slot_offset(slot) +
           g % SINGLE_COPY_BUFFERS * (size_t)SINGLE_COPY_BUFFER +
           rank * place_size(p);
}

/* ---------------------------------------------------------- the operation */

static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    struct allreduce_single_copy_state *s = op_take_state(e, op, sizeof *s, 0);
    if (!s) return false;
    uint32_t world = p->r.world;
    size_t came = (size_t)world * SINGLE_COPY_BUFFERS;
    size_t turns = 2 * p->segments * sizeof *s->turns;
    s->received = pool_take(&e->links.pool, 2 * p->segments / 8 + 1);
    s->came = pool_take(&e->links.pool, came);
    s->turns = pool_take(&e->links.pool, turns);
    s->slots = pool_take(&e->links.pool,
                         (world - 1) * SINGLE_COPY_BUFFERS * p->segment + 1);
    if (!s->received || !s->came || !s->turns || !s->slots) return false;
    memset(s->received, 0, 2 * p->segments / 8 + 1);
    memset(s->came, CAME_NOT, came);
    memset(s->turns, 0, turns);
    PCCL_ASSERT(p->segment <= place_size(p));
    s->slot = single_copy_take_slot(e, op);
    return true;
}

static void end(struct engine *e, struct op *op)
{
    struct allreduce_single_copy_state *s = op->state;
    single_copy_give_slot(e, op, s->slot);
    pool_give(&e->links.pool, s->received);
    pool_give(&e->links.pool, s->came);
    pool_give(&e->links.pool, s->turns);
    pool_give(&e->links.pool, s->slots);
}

static bool has(const struct op *op, uint32_t after)
{
    const struct allreduce_single_copy_state *s = op->state;
    return op_bit_get(s->received, after);
}

static uint32_t own_piece(const struct plan *p, uint32_t g)
{
    return p->r.rank * p->segments + g;
}

static uint32_t turn_of(const struct op *op, const struct endpoint *ep)
{
    return plan_wrap(&op->plan, ep->rank, op->plan.r.rank);
}

/* Of two segments: the next but one is sent when all members have this one
 * (D16). */
static uint8_t *queue_slot(const struct op *op, uint32_t turn, uint32_t g)
{
    const struct allreduce_single_copy_state *s = op->state;
    size_t buffer =
        (size_t)(turn - 1) * SINGLE_COPY_BUFFERS + g % SINGLE_COPY_BUFFERS;
    return s->slots + buffer * op->plan.segment;
}

static uint8_t *came(const struct op *op, uint32_t turn, uint32_t g)
{
    const struct allreduce_single_copy_state *s = op->state;
    return s->came + (size_t)turn * SINGLE_COPY_BUFFERS +
           g % SINGLE_COPY_BUFFERS;
}

static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    const struct allreduce_single_copy_state *s = op->state;
    uint32_t g;
    uint32_t turn = turn_of(op, ep);
    if (single_copy_is_sum(&op->plan, k, &g))
        return (uint8_t *)op->r.recvbuf + x->offset;
    return s->turns[g] + 1u == turn ? NULL : queue_slot(op, turn, g);
}

static void add(struct op *op, uint32_t turn, uint32_t g, size_t at,
                const uint8_t *bytes, size_t size)
{
    unsigned turns = turn == 1 ? TURN_FIRST : 0;
    if (turn + 1 == op->plan.r.world) turns |= TURN_LAST;
    if (size > 0)
        pieces_add(op, own_piece(&op->plan, g), turns, at, bytes, size);
}

static void reduce(struct op *op, const struct endpoint *ep, uint32_t k,
                   size_t at, const uint8_t *bytes, size_t size)
{
    uint32_t g;
    (void)single_copy_is_sum(&op->plan, k, &g);
    add(op, turn_of(op, ep), g, at, bytes, size);
}

/* False: the data cannot be read any more, because the sender has left the
 * operation; this end will soon learn why. The transfer never counts (rule
 * L8). */
static bool add_put(struct op *op, const struct endpoint *ep, uint32_t g,
                    uint32_t size, uint32_t slot)
{
    const uint8_t *region = region_of(ep->link);
    const struct plan *p = &op->plan;
    if (!region) return false;
    add(op, turn_of(op, ep), g, 0, region + offset_of(p, slot, g, p->r.rank),
        size);
    return single_copy_is_valid(op, region, slot);
}

/* Adds the inputs that came before their turn, as far as possible. True: the
 * sum is complete. */
static bool take_waiting(struct op *op, uint32_t g, uint32_t size)
{
    struct allreduce_single_copy_state *s = op->state;
    const struct plan *p = &op->plan;
    uint32_t turn;
    while ((turn = s->turns[g] + 1u) < p->r.world) {
        uint8_t *where = came(op, turn, g);
        uint32_t rank = (p->r.rank + turn) % p->r.world;
        const struct endpoint *from =
            &op->eps[rank < p->r.rank ? rank : rank - 1];
        if (*where == CAME_NOT) return false;
        if (*where == CAME_QUEUE)
            add(op, turn, g, 0, queue_slot(op, turn, g), size);
        else if (!add_put(op, from, g, size, *where - (uint32_t)CAME_PUT))
            return false;
        *where = CAME_NOT;
        s->turns[g]++;
    }
    return true;
}

/* Partners that wait for these sums may send now. */
static void mark(struct engine *e, struct op *op, uint32_t bit)
{
    struct allreduce_single_copy_state *s = op->state;
    op_bit_set(s->received, bit);
    for (uint32_t i = 0; i < op->ep_count; i++)
        link_dirty(&e->links, op->eps[i].link);
}

static void count_sum(struct engine *e, struct op *op, uint32_t g)
{
    struct allreduce_single_copy_state *s = op->state;
    uint16_t *sums = s->turns + op->plan.segments;
    if (++sums[g] + 1u == op->plan.r.world) mark(e, op, op->plan.segments + g);
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct allreduce_single_copy_state *s = op->state;
    uint32_t g, turn = turn_of(op, ep);
    if (single_copy_is_sum(&op->plan, k, &g)) {
        count_sum(e, op, g);
        return;
    }
    if (body && body == queue_slot(op, turn, g)) {
        *came(op, turn, g) = CAME_QUEUE;
    } else {
        if (body) add(op, turn, g, 0, body, x->size);
        s->turns[g]++;
    }
    if (take_waiting(op, g, x->size)) mark(e, op, g);
}

/* --------------------------------------------------- through regions (D16) */

/* The other end has mapped this member's region. */
static bool may_put(const struct op *op, const struct conn *c,
                    const struct plan_xfer *x)
{
    const struct allreduce_single_copy_state *s = op->state;
    return s->slot > 0 && c->region.taken && x->size > 0;
}

static void put(struct engine *e, struct op *op, const struct endpoint *ep,
                uint32_t k, const struct plan_xfer *x, struct frame *f)
{
    struct allreduce_single_copy_state *s = op->state;
    uint32_t g;
    bool sum = single_copy_is_sum(&op->plan, k, &g);
    uint32_t rank = sum ? op->plan.r.rank : ep->rank;
    const uint8_t *from = sum ? op->r.recvbuf : op->r.sendbuf;
    f->flags |= FLAG_SINGLE_COPY;
    f->size = 0;
    uint32_t *there = &s->sums_put[g % SINGLE_COPY_BUFFERS];
    if (sum && *there == g + 1) return; /* for another member */
    /* The sum arrives here: the overwritten input is read once, not twice. */
    if (!sum) input_overwrite(op, from + x->offset, x->size);
    if (sum) *there = g + 1;
    memcpy(e->links.region + offset_of(&op->plan, s->slot - 1, g, rank),
           from + x->offset, x->size);
}

static bool take_sum(struct op *op, const struct endpoint *ep, uint32_t g,
                     const struct plan_xfer *x, const uint8_t *region,
                     uint32_t slot)
{
    uint8_t *to = (uint8_t *)op->r.recvbuf + x->offset;
    const uint8_t *from = region + offset_of(&op->plan, slot, g, ep->rank);
    input_overwrite(op, to, x->size);
    if (op->plan.bypasses)
        stream_copy(to, from, x->size);
    else
        memcpy(to, from, x->size);
    return single_copy_is_valid(op, region, slot);
}

static bool take_put(struct engine *e, struct op *op, struct endpoint *ep,
                     uint32_t k, const struct plan_xfer *x)
{
    const uint8_t *region = region_of(ep->link);
    uint32_t g;
    bool sum = single_copy_is_sum(&op->plan, k, &g);
    uint32_t slot =
        region ? single_copy_find_slot(op, region) : SINGLE_COPY_SLOTS;
    if (slot == SINGLE_COPY_SLOTS) return false; /* as in add_put() */
    if (sum) {
        bool here = take_sum(op, ep, g, x, region, slot);
        if (here) count_sum(e, op, g);
        return here;
    }
    *came(op, turn_of(op, ep), g) = (uint8_t)(CAME_PUT + slot);
    if (take_waiting(op, g, x->size)) mark(e, op, g);
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
    .end = end,
    .has = has,
    .place = place,
    .reduce = reduce,
    .arrived = arrived,
    .may_put = may_put,
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
    .end = end,
    .has = has,
    .place = place,
    .reduce = reduce,
    .arrived = arrived,
    .may_put = may_put,
    .put = put,
    .take_put = take_put,
};
