/* fast_sums.c - see fast_sums.h. */
#include "fast_sums.h"
#include "op.h"

#include "../base/buggify.h"
#include "../reduce/reduce.h"

#include <string.h>

void fast_sum(const struct engine *e, const struct fast_path *q, uint8_t *to,
              size_t at, size_t size)
{
    const struct op_request *r = q->r;
    const uint8_t *own = r->call.sendbuf;
    size_t count = size / r->plan.element;
    uint32_t ep = 0;
    const uint8_t *sum =
        e->links.view->rank == 0 ? own + at : q->eps[ep++].body + at;
    for (uint32_t i = 1; i < e->links.view->size; i++) {
        const uint8_t *x =
            (i == e->links.view->rank ? own : q->eps[ep++].body) + at;
        reduce_apply(r->call.dtype, r->call.redop, to, sum, x, count);
        sum = to;
    }
    if (r->call.redop == REDOP_AVG)
        reduce_divide(r->call.dtype, to, count, e->links.view->size);
}

bool fast_take_sum(const struct fast_path *q)
{
    if (!fast_posts_hold(q)) return false;
    memcpy(q->r->call.recvbuf, q->cached->bytes, q->size);
    return true;
}

/* Where the part of a rank begins, in bytes. */
static size_t part_at(const struct engine *e, const struct fast_path *q,
                      uint32_t rank)
{
    const struct plan_request *p = &q->r->plan;
    return (size_t)(p->count * rank / e->links.view->size * p->element);
}

static size_t part_size(const struct engine *e, const struct fast_path *q,
                        uint32_t rank)
{
    return part_at(e, q, rank + 1) - part_at(e, q, rank);
}

static uint32_t rank_of(const struct engine *e, uint32_t i)
{
    return i < e->links.view->rank ? i : i + 1;
}

/* The other end has posted its vector, so it may post its part of the sum. */
static bool shares(const struct fast_endpoint *ep)
{
    return ep->posted || (ep->early && ep->conn->channel->read_post);
}

bool fast_sums_begin(const struct engine *e, struct fast_path *q)
{
    const struct plan_request *p = &q->r->plan;
    bool all = !PCCL_BUGGIFY(sums_alone) && q->posts && e->roomy &&
               q->ep_count > 1 && p->coll == COLL_ALLREDUCE &&
               p->count >= e->links.view->size &&
               (uint64_t)q->size * q->ep_count >= e->sums_least;
    for (uint32_t i = 0; i < q->ep_count && all; i++)
        all = channel_may_post(q->eps[i].conn->channel, e->links.board.posts);
    q->sums = all;
    q->has_sum = false;
    q->looks = 0;
    q->left = q->ep_count;
    return all;
}

static bool post_sum(struct engine *e, struct fast_path *q)
{
    struct board *b = &e->links.board;
    size_t size = part_size(e, q, e->links.view->rank);
    q->own_sum = board_begin(b);
    fast_sum(e, q, q->own_sum, part_at(e, q, e->links.view->rank), size);
    /* Whoever has been left out says nothing more. */
    if (!fast_posts_hold(q)) return false;
    board_post(b, BOARD_HINT | size);
    for (uint32_t i = 0; i < q->ep_count; i++) q->written |= (uint64_t)1 << i;
    q->has_sum = true;
    return true;
}

static bool take_sums(struct engine *e, struct fast_path *q)
{
    uint8_t *to = q->cached->bytes;
    memcpy(to + part_at(e, q, e->links.view->rank), q->own_sum,
           part_size(e, q, e->links.view->rank));
    for (uint32_t i = 0; i < q->ep_count; i++) {
        uint32_t rank = rank_of(e, i);
        if (!q->eps[i].sum) continue;
        memcpy(to + part_at(e, q, rank), q->eps[i].sum, part_size(e, q, rank));
    }
    return fast_take_sum(q);
}

static void look(const struct engine *e, struct fast_path *q, uint32_t i)
{
    struct fast_endpoint *ep = &q->eps[i];
    if (ep->sum || ep->added || !shares(ep)) return;
    ep->sum = channel_look_at_hint(ep->conn->channel, ep->posted,
                                   part_size(e, q, rank_of(e, i)));
    if (!ep->sum) return;
    q->latest = i;
    q->left--;
}

/* The part of somebody who may not post it, or is late. Each member begins with
 * another one. */
static void add_one(const struct engine *e, struct fast_path *q, bool late)
{
    for (uint32_t k = 0; k < q->ep_count; k++) {
        uint32_t i = (e->links.view->rank + k) % q->ep_count,
                 rank = rank_of(e, i);
        struct fast_endpoint *ep = &q->eps[i];
        size_t at = part_at(e, q, rank);
        if (ep->sum || ep->added || (shares(ep) && !late)) continue;
        fast_sum(e, q, q->cached->bytes + at, at, part_size(e, q, rank));
        ep->added = true;
        q->left--;
        return;
    }
}

enum look fast_sums_poll(struct engine *e, struct fast_path *q)
{
    if (!q->has_sum && !post_sum(e, q)) return LOOK_ELSE;
    for (uint32_t i = 0; i < q->ep_count; i++) look(e, q, i);
    if (q->left > 0) {
        q->looks++;
        add_one(e, q, q->looks >= e->sums_looks);
    }
    if (q->left > 0) return LOOK_IDLE;
    return take_sums(e, q) ? LOOK_DONE : LOOK_ELSE;
}
