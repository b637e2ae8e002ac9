/* fast_tree.c - the fast path over a tree (rule D9c). Its frames are those of
 * small_tree.c, its folds in the same order. */
#include "fast_tree.h"
#include "algorithm.h"
#include "geometry.h"
#include "op.h"

#include "../reduce/reduce.h"

#include <string.h>

bool fast_tree_shape(const struct engine *e, struct plan *p)
{
    *p = (struct plan){.r = {.coll = COLL_BARRIER, .element = 1}};
    op_plan_request(e, NULL, &p->r);
    p->algorithm = &small_tree;
    if (small_tree.unfit(&p->r)) return false;
    small_tree.shape(p);
    return true;
}

static bool is_root(const struct fast_path *q)
{
    return plan_is_root(&q->plan);
}

static struct fast_endpoint *parent_of(struct fast_path *q)
{
    return &q->eps[q->plan.tree.children];
}

/* Sets the bytes from and to each partner. False: more than a queue takes. */
static bool size_endpoint(struct fast_path *q, uint32_t i)
{
    const struct plan *p = &q->plan;
    struct fast_endpoint *ep = &q->eps[i];
    uint32_t rank = plan_partner(p, i), sends = plan_sends(p, rank);
    struct plan_xfer x;
    uint8_t *to;
    ep->body = NULL;
    ep->recvs = 0;
    ep->frames = plan_recvs(p, rank);
    for (uint32_t k = 0; k < ep->frames; k++) {
        plan_recv(p, rank, k, &x);
        ep->recvs += x.size;
    }
    size_t bytes = 0;
    for (uint32_t k = 0; k < sends; k++) {
        plan_send(p, rank, k, &x);
        if (x.size > EAGER_MAX) return false; /* rule D2b */
        bytes += FRAME_SIZE + x.size;
    }
    ep->sends = (uint32_t)(bytes - FRAME_SIZE * (size_t)sends);
    return channel_room(ep->conn->channel, &to) >= bytes;
}

bool fast_tree_fits(struct fast_path *q, const struct op_request *r)
{
    struct plan_request *p = &q->plan.r;
    p->coll = r->plan.coll;
    p->root = r->plan.root;
    p->element = 1;
    p->count = q->size;
    for (uint32_t i = 0; i < q->ep_count; i++) {
        if (!size_endpoint(q, i)) return false;
    }
    return true;
}

size_t fast_tree_scratch(const struct fast_path *q)
{
    return q->plan.r.coll == COLL_BROADCAST ? 0 : q->result;
}

/* ----------------------------------------------------------------- sending */

static void encode(const struct fast_path *q, uint32_t k, uint32_t size,
                   uint8_t *to)
{
    struct frame f = q->frame;
    f.index = k;
    f.size = size;
    frame_encode(&f, to);
}

static void send_to(struct fast_path *q, uint32_t i, const uint8_t *value)
{
    const struct plan *p = &q->plan;
    struct channel *channel = q->eps[i].conn->channel;
    uint32_t rank = plan_partner(p, i), sends = plan_sends(p, rank);
    uint8_t *to = NULL;
    size_t size = 0;
    (void)channel_room(channel, &to);
    for (uint32_t k = 0; k < sends; k++) {
        struct plan_xfer x;
        plan_send(p, rank, k, &x);
        encode(q, k, x.size, to + size);
        if (x.size > 0)
            memcpy(to + size + FRAME_SIZE, value + x.offset, x.size);
        size += FRAME_SIZE + x.size;
    }
    channel_write(channel, size);
    q->sent += size;
    q->written |= (uint64_t)1 << i;
}

/* ------------------------------------------------------------------ folding */

static void fold(struct fast_path *q, uint8_t *to)
{
    const struct op_request *r = q->r;
    const uint8_t *sum = r->call.sendbuf;
    size_t count = (size_t)r->plan.count;
    for (uint32_t i = 0; i < q->plan.tree.children; i++) {
        reduce_apply(r->call.dtype, r->call.redop, to, sum, q->eps[i].body,
                     count);
        sum = to;
    }
    if (is_root(q) && r->call.redop == REDOP_AVG)
        reduce_divide(r->call.dtype, to, count, q->plan.r.world);
}

/* The blocks of this part of the tree, in the order of positions. */
static void collect(struct fast_path *q, const uint8_t *own)
{
    uint8_t *to = q->own + q->plan.tree.position * (size_t)q->size;
    memcpy(to, own, q->size);
    to += q->size;
    for (uint32_t i = 0; i < q->plan.tree.children; i++) {
        memcpy(to, q->eps[i].body, q->eps[i].recvs);
        to += q->eps[i].recvs;
    }
}

/* Who has the data of a broadcast: this member or a partner. */
static const uint8_t *data(const struct fast_path *q)
{
    const struct plan_request *p = &q->plan.r;
    if (p->rank == p->root) return q->r->call.recvbuf;
    for (uint32_t i = 0; i < q->ep_count; i++) {
        if (q->eps[i].recvs > 0) return q->eps[i].body;
    }
    return NULL; /* not yet: an empty word goes up */
}

/* All children are heard. Returns what the transfers lie in. */
static const uint8_t *value_of(struct fast_path *q, const uint8_t *own)
{
    if (q->size == 0) return NULL;
    switch (q->plan.r.coll) {
    case COLL_ALLREDUCE:
        if (q->plan.tree.children == 0) return own;
        fold(q, q->own);
        return q->own;
    case COLL_ALLGATHER:
        collect(q, own);
        return q->own;
    default:
        return data(q);
    }
}

/* ---------------------------------------------------------------- receiving */

static enum look look(struct fast_path *q, uint32_t i)
{
    struct fast_endpoint *ep = &q->eps[i];
    uint32_t rank = plan_partner(&q->plan, i);
    const uint8_t *from = NULL;
    size_t ready = channel_ready(ep->conn->channel, &from), at = 0;
    if (ep->conn->channel->broken) return LOOK_ELSE;
    for (uint32_t k = 0; k < ep->frames; k++) {
        struct plan_xfer x;
        uint8_t head[FRAME_SIZE];
        if (ready < at + FRAME_SIZE) return LOOK_IDLE;
        plan_recv(&q->plan, rank, k, &x);
        encode(q, k, x.size, head);
        if (memcmp(from + at, head, FRAME_SIZE) != 0) return LOOK_ELSE;
        at += FRAME_SIZE + x.size;
        if (ready < at) return LOOK_IDLE;
    }
    ep->body = from + FRAME_SIZE;
    q->latest = i;
    return LOOK_DONE;
}

static void take_blocks(struct fast_path *q)
{
    const struct plan *p = &q->plan;
    uint8_t *to = q->r->call.recvbuf;
    size_t size = q->size, position = p->tree.position;
    if (!is_root(q)) {
        const uint8_t *from = parent_of(q)->body;
        size_t end = position + p->tree.size;
        memcpy(q->own, from, position * size);
        memcpy(q->own + end * size, from + position * size + FRAME_SIZE,
               (p->r.world - end) * size);
    }
    for (uint32_t i = 0; i < p->r.world; i++)
        memcpy(to + plan_at(p, i) * size, q->own + i * size, size);
}

/* Everything is here. */
static void take_result(struct fast_path *q, const uint8_t *value)
{
    uint8_t *to = q->r->call.recvbuf;
    if (q->size == 0) return;
    if (q->plan.r.coll == COLL_ALLGATHER) {
        take_blocks(q);
        return;
    }
    if (q->plan.r.coll == COLL_BROADCAST)
        value = data(q);
    else if (!is_root(q))
        value = parent_of(q)->body;
    if (value != to) memcpy(to, value, q->size);
}

static void finish(struct fast_path *q, const uint8_t *value)
{
    take_result(q, value);
    value = q->plan.r.coll == COLL_ALLGATHER ? q->own : q->r->call.recvbuf;
    for (uint32_t i = 0; i < q->plan.tree.children; i++) send_to(q, i, value);
    for (uint32_t i = 0; i < q->ep_count; i++) {
        const struct fast_endpoint *ep = &q->eps[i];
        size_t size = FRAME_SIZE * (size_t)ep->frames + ep->recvs;
        channel_read(ep->conn->channel, size);
        q->received += size;
    }
}

enum look fast_tree_poll(struct fast_path *q, const uint8_t *own)
{
    uint32_t children = q->plan.tree.children;
    for (uint32_t i = 0; i < children && q->left > 0; i++) {
        if (q->eps[i].body) continue;
        enum look seen = look(q, i);
        if (seen == LOOK_ELSE) return LOOK_ELSE;
        q->left -= seen == LOOK_DONE;
    }
    if (q->left > 0) return LOOK_IDLE;
    if (is_root(q)) {
        finish(q, value_of(q, own));
        return LOOK_DONE;
    }
    if (!q->has_sent) {
        q->has_sent = true;
        send_to(q, children, value_of(q, own));
    }
    enum look seen = look(q, children);
    if (seen != LOOK_DONE) return seen;
    finish(q, NULL);
    return LOOK_DONE;
}
