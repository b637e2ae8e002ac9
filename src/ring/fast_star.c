/* fast_star.c - the fast path of a gather, a scatter and a reduction to a root
 * (rule D9e). Its frames are those of star.c. */
#include "fast_star.h"
#include "geometry.h"
#include "op.h"

#include "../reduce/reduce.h"

#include <string.h>

static bool gathers(const struct fast_path *q)
{
    return q->r->plan.flow == FLOW_TO_ROOT;
}

static bool reduces(const struct op_request *r)
{
    return plan_coll_reduces(r->plan.coll);
}

static size_t vector_size(const struct op_request *r)
{
    return (size_t)r->plan.count * r->plan.element;
}

static bool is_root(const struct engine *e, const struct fast_path *q)
{
    return q->star.root == e->links.view->rank;
}

static uint32_t rank_of(const struct engine *e, uint32_t i)
{
    if (e->fast.star.root != e->links.view->rank) return e->fast.star.root;
    return i < e->links.view->rank ? i : i + 1;
}

/* Rule D23c: the member at the first position of the tree, unless it is the
 * root, is told of a root's launch. */
static uint32_t witness(const struct engine *e)
{
    return e->links.view->order ? e->links.view->order[0] : 0;
}

/* ---------------------------------------------------------------- starting */

/* The root's partners are all others, and it is the only partner of each. */
static bool find_spokes(struct engine *e, const struct op_request *r)
{
    struct fast_star *s = &e->fast.star;
    bool root = r->plan.root == e->links.view->rank;
    uint32_t count = root ? e->links.view->size - 1 : 1;
    if (s->known && s->root == r->plan.root) return s->able;
    s->known = true;
    s->root = r->plan.root;
    s->count = 0;
    s->able = e->links.view->size > 1 && count <= FAST_PARTNERS_MAX;
    for (uint32_t i = 0; i < count && s->able; i++)
        s->able = fast_find_endpoint(e, rank_of(e, i), &s->eps[s->count++]);
    return s->able;
}

static bool may_go(struct engine *e, const struct op_request *r)
{
    uint64_t bytes = reduces(r) ? vector_size(r) : 0;
    return fast_choice(e, &e->fast, &r->plan, bytes) == FAST_STAR &&
           find_spokes(e, r);
}

/* Bytes to and from the partner of that rank. */
static void find_sizes(const struct engine *e, const struct op_request *r,
                       uint32_t rank, size_t *sends, size_t *recvs)
{
    const struct plan_request *p = &r->plan;
    bool root = p->root == e->links.view->rank;
    if (reduces(r)) {
        *sends = root ? 0 : vector_size(r);
        *recvs = root ? vector_size(r) : 0;
    } else {
        *sends = p->send_bytes[rank];
        *recvs = p->recv_bytes[rank];
    }
}

static bool size_endpoint(const struct engine *e, const struct op_request *r,
                          uint32_t i, struct fast_endpoint *ep)
{
    enum { FRAMES = 2 }; /* that it may write */
    size_t sends, recvs;
    uint64_t most = e->links.view->size > 2 ? EAGER_MAX : PAIR_MAX; /* D2b */
    uint8_t *to;
    find_sizes(e, r, rank_of(e, i), &sends, &recvs);
    if (!fast_endpoint_is_idle(ep) || sends > most || recvs > most)
        return false;
    ep->body = NULL;
    ep->sends = (uint32_t)sends;
    ep->recvs = (uint32_t)recvs;
    ep->tx_digest = ep->rx_digest = r->call.digest;
    if (!reduces(r)) {
        ep->tx_digest = op_pair_digest(r->call.digest, sends, recvs);
        ep->rx_digest = op_pair_digest(r->call.digest, recvs, sends);
    }
    return channel_room(ep->conn->channel, &to) >= FRAMES * FRAME_SIZE + sends;
}

static void write_frame(struct fast_path *q, uint32_t i, struct frame f,
                        const uint8_t *body)
{
    struct fast_endpoint *ep = &q->star.eps[i];
    struct channel *channel = ep->conn->channel;
    uint8_t *to = NULL;
    f.digest = ep->tx_digest;
    (void)channel_room(channel, &to);
    frame_encode(&f, to);
    if (f.size > 0) memcpy(to + FRAME_SIZE, body, f.size);
    channel_write(channel, FRAME_SIZE + f.size);
    q->sent += FRAME_SIZE + f.size;
    q->written |= (uint64_t)1 << i;
}

/* The frames of an operation: its blocks, the words and READY of a gather, and
 * DONE of a scatter. */
static struct frame block_frame(const struct fast_path *q, uint32_t size)
{
    struct frame f = q->frame;
    f.type = FRAME_DATA;
    f.flags = gathers(q) ? 0 : FLAG_CONFIRM;
    f.size = size;
    return f;
}

static struct frame ready_frame(const struct fast_path *q)
{
    struct frame f = q->frame;
    f.type = FRAME_READY;
    return f;
}

static struct frame done_frame(const struct fast_path *q)
{
    struct frame f = q->frame;
    f.type = FRAME_DONE;
    f.index = 1;
    return f;
}

static void send_blocks(struct engine *e, struct fast_path *q)
{
    const struct plan_request *p = &q->r->plan;
    const uint8_t *from = q->r->call.sendbuf;
    for (uint32_t i = 0; i < q->star.count; i++) {
        uint32_t size = q->star.eps[i].sends;
        const uint8_t *block = from;
        if (size > 0 && !reduces(q->r)) block += p->send_displs[rank_of(e, i)];
        write_frame(q, i, block_frame(q, size), block);
    }
}

bool fast_star_start(struct engine *e, const struct op_request *r)
{
    struct fast_path *q = &e->fast;
    const struct plan_request *p = &r->plan;
    bool gather = p->flow == FLOW_TO_ROOT;
    if (!fast_may_begin(e, r)) return false;
    q->tag = op_tag_entry(e, 0, r->call.tag);
    q->cached = q->tag && gather ? op_cached_result(e, 0, r->call.tag) : NULL;
    if (!q->tag || (gather && !q->cached)) return false;
    if (!reduces(r) && p->send_bytes[e->links.view->rank] !=
                           p->recv_bytes[e->links.view->rank])
        return false; /* D2f */
    if (!may_go(e, r)) return false;
    for (uint32_t i = 0; i < q->star.count; i++) {
        if (!size_endpoint(e, r, i, &q->star.eps[i])) return false;
    }
    q->r = r;
    q->spoked = true;
    q->pairs = false;
    q->holds = false;
    q->left = q->star.count;
    q->frame = (struct frame){.epoch = e->links.view->epoch,
                              .tag = r->call.tag,
                              .seq = q->tag->next++};
    q->has_sent = is_root(e, q) != gather;
    if (q->has_sent) send_blocks(e, q);
    for (uint32_t i = 0; i < q->star.count && is_root(e, q) && gather; i++) {
        if (rank_of(e, i) == witness(e))
            write_frame(q, i, ready_frame(q), NULL);
    }
    return true;
}

/* ----------------------------------------------------------------- polling */

/* DONE may be clean, which nobody asks. */
static bool is_frame(const uint8_t *from, struct frame f)
{
    uint8_t head[FRAME_SIZE];
    frame_encode(&f, head);
    if (memcmp(from, head, FRAME_SIZE) == 0) return true;
    if (f.type != FRAME_DONE) return false;
    f.flags = FLAG_CLEAN;
    frame_encode(&f, head);
    return memcmp(from, head, FRAME_SIZE) == 0;
}

/* The frame that is to come next, and behind which one. */
static struct frame next_frame(const struct engine *e,
                               const struct fast_path *q,
                               const struct fast_endpoint *ep)
{
    bool done = !gathers(q) && (is_root(e, q) || q->holds);
    return done ? done_frame(q) : block_frame(q, ep->recvs);
}

static bool is_told(const struct engine *e, const struct fast_path *q)
{
    return gathers(q) && !is_root(e, q) && e->links.view->rank == witness(e);
}

static enum look look(const struct engine *e, struct fast_path *q, uint32_t i)
{
    struct fast_endpoint *ep = &q->star.eps[i];
    const uint8_t *from = NULL;
    size_t size = channel_ready(ep->conn->channel, &from);
    if (ep->conn->channel->broken) return LOOK_ELSE;
    if (is_told(e, q)) {
        struct frame ready = ready_frame(q);
        ready.digest = ep->rx_digest;
        if (size < FRAME_SIZE) return LOOK_IDLE;
        if (!is_frame(from, ready)) return LOOK_ELSE;
        from += FRAME_SIZE;
        size -= FRAME_SIZE;
    }
    struct frame f = next_frame(e, q, ep);
    f.digest = ep->rx_digest;
    if (size < FRAME_SIZE) return LOOK_IDLE;
    if (!is_frame(from, f)) return LOOK_ELSE;
    if (size < FRAME_SIZE + f.size) return LOOK_IDLE;
    ep->body = from + FRAME_SIZE;
    q->latest = i;
    q->left--;
    return LOOK_DONE;
}

/* Rule D3: from the root on. The endpoints are in the order of ranks. */
static void take_sum(const struct engine *e, const struct fast_path *q)
{
    const struct op_request *r = q->r;
    size_t count = (size_t)r->plan.count;
    const uint8_t *sum = r->call.sendbuf;
    if (!is_root(e, q) || count == 0) return;
    for (uint32_t i = 0; i < q->star.count; i++) {
        uint32_t from = (e->links.view->rank + i) % q->star.count;
        reduce_apply(r->call.dtype, r->call.redop, r->call.recvbuf,
                     q->star.eps[from].body, sum, count);
        sum = r->call.recvbuf;
    }
    if (r->call.redop == REDOP_AVG)
        reduce_divide(r->call.dtype, r->call.recvbuf, count,
                      e->links.view->size);
}

static void take_blocks(const struct engine *e, const struct fast_path *q)
{
    const struct plan_request *p = &q->r->plan;
    uint8_t *to = q->r->call.recvbuf;
    size_t own = p->send_bytes[e->links.view->rank];
    const uint8_t *from = q->r->call.sendbuf;
    if (own > 0 && to + p->recv_displs[e->links.view->rank] !=
                       from + p->send_displs[e->links.view->rank])
        memmove(to + p->recv_displs[e->links.view->rank],
                from + p->send_displs[e->links.view->rank], own);
    for (uint32_t i = 0; i < q->star.count; i++) {
        const struct fast_endpoint *ep = &q->star.eps[i];
        if (ep->recvs > 0)
            memcpy(to + p->recv_displs[rank_of(e, i)], ep->body, ep->recvs);
    }
}

/* Gives the room back, and looks for the next frame of each. */
static void read_all(const struct engine *e, struct fast_path *q)
{
    for (uint32_t i = 0; i < q->star.count; i++) {
        struct fast_endpoint *ep = &q->star.eps[i];
        size_t size = FRAME_SIZE + next_frame(e, q, ep).size;
        if (is_told(e, q)) size += FRAME_SIZE;
        channel_read(ep->conn->channel, size);
        q->received += size;
        ep->body = NULL;
    }
    q->left = q->star.count;
}

static void send_all(struct fast_path *q, struct frame f)
{
    for (uint32_t i = 0; i < q->star.count; i++) write_frame(q, i, f, NULL);
}

/* The data are here, or DONE is. False: DONE is still to come. */
static bool turn(struct engine *e, struct fast_path *q)
{
    bool root = is_root(e, q);
    if (reduces(q->r))
        take_sum(e, q);
    else if (!q->holds)
        take_blocks(e, q);
    read_all(e, q);
    if (gathers(q) && root) send_all(q, block_frame(q, 0));
    if (gathers(q)) return true;
    if (root || !q->holds) send_all(q, done_frame(q));
    if (root || q->holds) return true;
    q->holds = true;
    return false;
}

enum look fast_star_poll(struct engine *e)
{
    struct fast_path *q = &e->fast;
    for (uint32_t i = 0; i < q->star.count; i++) {
        if (!q->star.eps[i].body && look(e, q, i) == LOOK_ELSE)
            return LOOK_ELSE;
    }
    if (q->left > 0 || !turn(e, q)) return LOOK_IDLE;
    if (q->cached) {
        q->cached->seq = q->frame.seq;
        q->cached->size = 0;
        q->cached->old = false;
    }
    q->r = NULL;
    return LOOK_DONE;
}

/* -------------------------------------------------------------- converting */

void fast_star_hold(struct engine *e, struct op *op)
{
    const struct fast_path *q = &e->fast;
    bool gather = op->plan.r.flow == FLOW_TO_ROOT;
    if (gather) op->confirm = false; /* as its DATA had it */
    for (uint32_t i = 0; i < op->ep_count; i++) {
        struct endpoint *ep = &op->eps[i];
        if (q->has_sent) fast_mark_sent(e, op, ep, q->star.eps[i].sends);
        if (!q->holds) continue;
        ep->done_sent = true;
        ep->received = ep->recvs;
        op_bit_set(ep->came, 0);
        op->rx_bytes += q->star.eps[i].recvs;
    }
    for (uint32_t i = 0; i < op->ep_count && q->holds; i++)
        op_endpoint_ready(e, op, &op->eps[i]);
}
