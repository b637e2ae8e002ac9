/* reduce_star.c - "star" of an all-reduce whose sum is for a root alone: each
 * other member sends its vector to the root, which adds them (rule D25). Pure.
 *
 * A vector goes in segments, a large one through the sender's region. The root
 * tells all when it has added all parts of a segment: then they send the next
 * but AHEAD. The last such word says that it has the result, as in a gather
 * (star.c): all have launched, and nobody waits for DONE (rule D5). */
#include "algorithm.h"
#include "geometry.h"
#include "pieces.h"

#include <string.h>

enum {
    SEGMENT = EAGER_MAX, /* the first one waits for no READY (rule D2b) */
    AHEAD = 4,           /* more of all members leave the caches */
};
static_assert(AHEAD * SEGMENT <= SINGLE_COPY_BUFFERS * SINGLE_COPY_BUFFER,
              "a slot holds them");

/* In `came`: the place of a part that waits for its turn. */
enum {
    CAME_NOT,
    CAME_QUEUE, /* it came through a queue and is in the slots */
    CAME_PUT,   /* it is in this slot of its sender's region, and so on */
};

struct reduce_star_state {
    uint32_t slot;   /* of the own region, plus 1; 0: none */
    uint32_t done;   /* segments that are added, or words that have come */
    uint8_t *marks;  /* bit set: which of them */
    uint8_t *came;   /* root: by turn and place */
    uint8_t *slots;  /* root: parts that came before their turn */
    uint16_t *turns; /* root: by segment, the partners that are added */
};

/* --------------------------------------------------------------- the plan */

/* The root owns the whole vector. */
static void shape(struct plan *p)
{
    uint64_t segment = SEGMENT;
    if (p->r.piece > 0 && p->r.piece < segment) segment = p->r.piece;
    plan_shape_root(p);
    p->chunks = 1;
    plan_choose_segment(p, segment, plan_vector_size(p));
}

/* The last one is of the whole result. */
static uint32_t words(const struct plan *p)
{
    return p->segments > AHEAD ? p->segments - AHEAD + 1 : 1;
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    (void)to;
    return plan_is_root(p) ? words(p) : p->segments;
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    (void)from;
    return plan_is_root(p) ? p->segments : words(p);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    (void)to;
    if (plan_is_root(p)) {
        x->after = k + 1 == words(p) ? p->segments : k;
        return;
    }
    pieces_place(p, k, x);
    if (k >= AHEAD) x->after = k - AHEAD;
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    (void)from;
    if (!plan_is_root(p)) return;
    pieces_place(p, k, x);
    x->action = ACTION_REDUCE;
}

static const char *unfit(const struct plan_request *r)
{
    if (r->flow != FLOW_TO_ROOT) return "needs a root that receives all";
    if (r->codes) return "its elements are not codes";
    if (!r->one_host || !r->shared_memory)
        return "needs members of one host that share its memory";
    return NULL;
}

/* ---------------------------------------------------------- the operation */

static size_t places(const struct plan *p)
{
    return (size_t)(p->r.world - 1) *
           (p->segments < AHEAD ? p->segments : AHEAD);
}

static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    struct reduce_star_state *s = op_take_state(e, op, sizeof *s, 0);
    if (!s) return false;
    size_t marks = p->segments / 8 + 1, turns = p->segments * sizeof *s->turns;
    s->marks = pool_take(&e->links.pool, marks);
    if (!s->marks) return false;
    memset(s->marks, 0, marks);
    if (!plan_is_root(p)) {
        if (p->segments > 1) s->slot = single_copy_take_slot(e, op);
        return true;
    }
    s->came = pool_take(&e->links.pool, places(p));
    s->turns = pool_take(&e->links.pool, turns);
    s->slots = pool_take(&e->links.pool, places(p) * p->segment);
    if (!s->came || !s->turns || !s->slots) return false;
    memset(s->came, CAME_NOT, places(p));
    memset(s->turns, 0, turns);
    return true;
}

static void end(struct engine *e, struct op *op)
{
    struct reduce_star_state *s = op->state;
    single_copy_give_slot(e, op, s->slot);
    pool_give(&e->links.pool, s->marks);
    pool_give(&e->links.pool, s->came);
    pool_give(&e->links.pool, s->turns);
    pool_give(&e->links.pool, s->slots);
}

static bool has(const struct op *op, uint32_t after)
{
    const struct reduce_star_state *s = op->state;
    if (after == op->plan.segments) return s->done == after;
    return op_bit_get(s->marks, after);
}

/* Partners that wait for this may be sent to now. */
static void mark(struct engine *e, struct op *op, uint32_t g)
{
    struct reduce_star_state *s = op->state;
    op_bit_set(s->marks, g);
    s->done++;
    for (uint32_t i = 0; i < op->ep_count; i++)
        link_dirty(&e->links, op->eps[i].link);
}

/* ------------------------------------------------------- parts at the root */

static uint32_t turn_of(const struct op *op, const struct endpoint *ep)
{
    return plan_wrap(&op->plan, ep->rank, op->plan.r.rank);
}

/* A part is sent when all have added the one that had its place. */
static size_t place_of(const struct op *op, uint32_t turn, uint32_t g)
{
    size_t each = places(&op->plan) / (op->plan.r.world - 1);
    return (turn - 1) * each + g % AHEAD;
}

static uint8_t *queue_slot(const struct op *op, uint32_t turn, uint32_t g)
{
    const struct reduce_star_state *s = op->state;
    return s->slots + place_of(op, turn, g) * op->plan.segment;
}

static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    const struct reduce_star_state *s = op->state;
    uint32_t turn = turn_of(op, ep);
    (void)x;
    return s->turns[k] + 1u == turn ? NULL : queue_slot(op, turn, k);
}

static void add(struct op *op, uint32_t turn, uint32_t g, size_t at,
                const uint8_t *bytes, size_t size)
{
    unsigned turns = turn == 1 ? TURN_FIRST : 0;
    if (turn + 1 == op->plan.r.world) turns |= TURN_LAST;
    if (size > 0) pieces_add(op, g, turns, at, bytes, size);
}

static void reduce(struct op *op, const struct endpoint *ep, uint32_t k,
                   size_t at, const uint8_t *bytes, size_t size)
{
    add(op, turn_of(op, ep), k, at, bytes, size);
}

static size_t region_place(uint32_t slot, uint32_t g)
{
    return single_copy_slot_offset(slot) + g % AHEAD * (size_t)SEGMENT;
}

/* False: the sender has left the operation (rule L8). */
static bool add_put(struct op *op, uint32_t turn, uint32_t g, uint32_t size,
                    uint32_t slot)
{
    const struct plan *p = &op->plan;
    uint32_t rank = (p->r.rank + turn) % p->r.world;
    const struct endpoint *ep = &op->eps[rank < p->r.rank ? rank : rank - 1];
    const uint8_t *region = region_of(ep->link);
    if (!region) return false;
    add(op, turn, g, 0, region + region_place(slot, g), size);
    return single_copy_is_valid(op, region, slot);
}

/* Adds the parts that came before their turn, as far as possible. */
static void take_waiting(struct engine *e, struct op *op, uint32_t g,
                         uint32_t size)
{
    struct reduce_star_state *s = op->state;
    uint32_t turn;
    while ((turn = s->turns[g] + 1u) < op->plan.r.world) {
        uint8_t *where = &s->came[place_of(op, turn, g)];
        if (*where == CAME_NOT) return;
        if (*where == CAME_QUEUE)
            add(op, turn, g, 0, queue_slot(op, turn, g), size);
        else if (!add_put(op, turn, g, size, *where - (uint32_t)CAME_PUT))
            return;
        *where = CAME_NOT;
        s->turns[g]++;
    }
    mark(e, op, g);
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct reduce_star_state *s = op->state;
    if (!plan_is_root(&op->plan)) {
        mark(e, op, k);
        return;
    }
    uint32_t turn = turn_of(op, ep);
    if (body && body == queue_slot(op, turn, k)) {
        s->came[place_of(op, turn, k)] = CAME_QUEUE;
    } else {
        if (body) add(op, turn, k, 0, body, x->size);
        s->turns[k]++;
    }
    take_waiting(e, op, k, x->size);
}

/* --------------------------------------------------------- through regions */

/* The root has mapped this member's region. */
static bool may_put(const struct op *op, const struct conn *c,
                    const struct plan_xfer *x)
{
    const struct reduce_star_state *s = op->state;
    return s->slot > 0 && c->region.taken && x->size > 0;
}

static void put(struct engine *e, struct op *op, const struct endpoint *ep,
                uint32_t k, const struct plan_xfer *x, struct frame *f)
{
    const struct reduce_star_state *s = op->state;
    (void)ep;
    f->flags |= FLAG_SINGLE_COPY;
    f->size = 0;
    memcpy(e->links.region + region_place(s->slot - 1, k),
           (const uint8_t *)op->r.sendbuf + x->offset, x->size);
}

static bool take_put(struct engine *e, struct op *op, struct endpoint *ep,
                     uint32_t k, const struct plan_xfer *x)
{
    struct reduce_star_state *s = op->state;
    const uint8_t *region = region_of(ep->link);
    if (!region || !plan_is_root(&op->plan)) return false;
    uint32_t slot = single_copy_find_slot(op, region);
    if (slot == SINGLE_COPY_SLOTS) return false; /* as in add_put() */
    s->came[place_of(op, turn_of(op, ep), k)] = (uint8_t)(CAME_PUT + slot);
    take_waiting(e, op, k, x->size);
    return true;
}

const struct algorithm reduce_star = {
    .name = "star",
    .colls = BIT(COLL_ALLREDUCE),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .at_root = true,
    .fast = FAST_STAR,
    .announces_writes = true,
    .shape = shape,
    .partners = plan_root_partners,
    .partner = plan_root_partner,
    .sends = sends,
    .recvs = recvs,
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
