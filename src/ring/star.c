/* star.c - "star": only the root exchanges data with the others, each of which
 * has the root as its only partner. Rules D23 and D25. Pure.
 *
 * A gather and a scatter are an all-to-all: 2(n-1) or 3(n-1) frames, where
 * pairs have 2n(n-1). A sum for the root alone is a gather with a fold: vectors
 * go in segments, a large one through the sender's region, and the root adds
 * them (pieces.h). The root sends empty words: in a gather one when it has all
 * blocks, of a sum one for each segment that it has added, and the others then
 * send the next but AHEAD. The last word says that the root has the result. So
 * all have launched, and nobody waits for DONE (rule D5). In a scatter a block
 * is with its owner alone, and completion is confirmed: DONE goes to the root,
 * and comes back from it. */
#include "algorithm.h"
#include "geometry.h"
#include "pieces.h"
#include "pull.h"

#include <string.h>

enum {
    SEGMENT = EAGER_MAX, /* the first one waits for no READY (rule D2b) */
    AHEAD = 4,           /* more of all members leave the caches */
};
static_assert(AHEAD * SEGMENT <= SINGLE_COPY_BUFFERS * SINGLE_COPY_BUFFER,
              "a slot holds them");

struct star_state {
    struct pieces pieces; /* of a sum; at the others: words that are here */
    uint32_t missing;     /* root: segments to add, or blocks to come in full */
};

/* --------------------------------------------------------------- the plan */

static bool is_sum(const struct plan *p)
{
    return p->r.coll == COLL_ALLREDUCE;
}

static bool is_scatter(const struct plan *p)
{
    return p->r.flow == FLOW_FROM_ROOT;
}

/* The root owns the whole vector of a sum. */
static void shape(struct plan *p)
{
    uint64_t segment = SEGMENT;
    if (p->r.piece > 0 && p->r.piece < segment) segment = p->r.piece;
    plan_shape_root(p);
    p->chunks = 1;
    if (is_sum(p)) plan_choose_segment(p, segment, plan_vector_size(p));
}

/* The last one is of the whole result. */
static uint32_t words(const struct plan *p)
{
    if (!is_sum(p) || p->segments <= AHEAD) return 1;
    return p->segments - AHEAD + 1;
}

static uint32_t data(const struct plan *p, const size_t *bytes, uint32_t rank)
{
    return is_sum(p) ? p->segments : plan_block_transfers(bytes[rank]);
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    if (plan_is_root(p) == is_scatter(p)) return data(p, p->r.send_bytes, to);
    return is_scatter(p) ? 0 : words(p);
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    if (plan_is_root(p) != is_scatter(p)) return data(p, p->r.recv_bytes, from);
    return is_scatter(p) ? 0 : words(p);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    if (plan_is_root(p) != is_scatter(p)) { /* a word */
        x->after = k + 1 == words(p) ? p->segments : k;
    } else if (is_sum(p)) {
        pieces_cut(p, k, x);
        if (k >= AHEAD) x->after = k - AHEAD;
    } else {
        plan_block_cut(p->r.send_bytes, p->r.send_displs, to, k, x);
    }
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    if (plan_is_root(p) == is_scatter(p)) return;
    if (is_sum(p)) {
        pieces_cut(p, k, x);
        x->action = ACTION_REDUCE;
    } else {
        plan_block_cut(p->r.recv_bytes, p->r.recv_displs, from, k, x);
    }
}

/* A part is sent when all have added the one that had its place. */
static bool part_of(const struct plan *p, uint32_t from, uint32_t k,
                    struct pieces_part *part)
{
    *part = (struct pieces_part){.piece = k,
                                 .turn = plan_wrap(p, from, p->r.rank),
                                 .turns = p->r.world - 1,
                                 .place = k % AHEAD,
                                 .all = true};
    return plan_is_root(p);
}

static size_t lent(const struct plan *p, uint32_t slot, uint32_t piece)
{
    (void)p;
    return single_copy_slot_offset(slot) + piece % AHEAD * (size_t)SEGMENT;
}

static const char *unfit_flow(const struct plan_request *r, enum plan_flow flow)
{
    if (r->flow != flow && r->coll == COLL_ALLREDUCE)
        return "needs a root that receives all";
    if (r->flow != flow) return "needs a root that sends or receives all";
    if (r->codes) return "its elements are not codes";
    if (!r->one_host || !r->shared_memory)
        return "needs members of one host that share its memory";
    return NULL;
}

static const char *unfit_gather(const struct plan_request *r)
{
    return unfit_flow(r, FLOW_TO_ROOT);
}

static const char *unfit_scatter(const struct plan_request *r)
{
    return unfit_flow(r, FLOW_FROM_ROOT);
}

/* ---------------------------------------------------------- the operation */

/* Rule D2f: the root of a gather that waits for itself sends no words. */
static bool begin_gather(struct engine *e, struct op *op)
{
    const struct plan_request *p = &op->plan.r;
    struct star_state *s = op_take_state(e, op, sizeof *s, 0);
    if (!s) return false;
    bool odd = p->send_bytes[p->rank] != p->recv_bytes[p->rank];
    s->missing = op->ep_count + odd;
    return true;
}

static bool begin_sum(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    uint32_t members = plan_is_root(p) ? p->r.world - 1 : 0;
    uint32_t places = p->segments < AHEAD ? p->segments : AHEAD;
    struct star_state *s = pieces_begin(e, op, sizeof *s, members, places);
    if (!s) return false;
    s->missing = p->segments;
    if (!plan_is_root(p) && p->segments > 1) single_copy_take_slot(e, op);
    return true;
}

/* `segments`: all that the root waits for, also in a gather. */
static bool has(const struct op *op, uint32_t after)
{
    const struct star_state *s = op->state;
    if (after == op->plan.segments) return s->missing == 0;
    return pieces_has(op, after);
}

static void arrived_block(struct engine *e, struct op *op, struct endpoint *ep,
                          uint32_t k, const struct plan_xfer *x,
                          const uint8_t *body)
{
    struct star_state *s = op->state;
    (void)k, (void)x, (void)body;
    if (!plan_is_root(&op->plan) || ep->received < ep->recvs) return;
    if (--s->missing == 0) op_wake(e, op);
}

static void arrived_part(struct engine *e, struct op *op, struct endpoint *ep,
                         uint32_t k, const struct plan_xfer *x,
                         const uint8_t *body)
{
    struct star_state *s = op->state;
    struct pieces_part part;
    if (part_of(&op->plan, ep->rank, k, &part))
        pieces_arrived(e, op, &part, body, x->size);
    else
        pieces_mark(e, op, k);
    s->missing -= pieces_has(op, k);
}

/* Of a sum: through the sender's region. */
static void put(struct engine *e, struct op *op, const struct endpoint *ep,
                uint32_t k, const struct plan_xfer *x)
{
    (void)ep;
    memcpy(e->links.region + lent(&op->plan, op->slot - 1, k),
           (const uint8_t *)op->r.sendbuf + x->offset, x->size);
}

static bool take_put(struct engine *e, struct op *op, struct endpoint *ep,
                     uint32_t k, const struct plan_xfer *x, uint32_t slot)
{
    struct star_state *s = op->state;
    struct pieces_part part;
    if (!part_of(&op->plan, ep->rank, k, &part)) return false;
    pieces_lent(e, op, &part, slot, x->size);
    s->missing -= pieces_has(op, k);
    return true;
}

const struct algorithm star_gather = {
    .name = "star",
    .colls = BIT(COLL_ALLTOALLV),
    .unfit = unfit_gather,
    .defers = true,
    .awaits_all = true,
    .at_root = true,
    .is_long = true,
    .fast = FAST_STAR,
    .shape = shape,
    .partners = plan_root_partners,
    .partner = plan_root_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin_gather,
    .has = has,
    .arrived = arrived_block,
};

const struct algorithm star_scatter = {
    .name = "star",
    .colls = BIT(COLL_ALLTOALLV),
    .unfit = unfit_scatter,
    .is_long = true,
    .fast = FAST_STAR,
    .shape = shape,
    .partners = plan_root_partners,
    .partner = plan_root_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = pull_begin,
    .pulls = true,
    .put = pull_put,
    .take_put = pull_take,
};

const struct algorithm star_sum = {
    .name = "star",
    .colls = BIT(COLL_ALLREDUCE),
    .unfit = unfit_gather,
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
    .begin = begin_sum,
    .has = has,
    .part = part_of,
    .lent = lent,
    .place = pieces_place,
    .reduce = pieces_reduce,
    .arrived = arrived_part,
    .put = put,
    .take_put = take_put,
};
