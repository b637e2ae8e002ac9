/* fast_pairs.c - the fast path of a pairwise all-to-all and a direct
 * reduce-scatter (rule D9d). Their frames are those of all_pairs.c and
 * allreduce_direct.c, their folds in the same order. */
#include "fast_pairs.h"
#include "op.h"

#include "../reduce/reduce.h"

#include <string.h>

static uint32_t rank_of(const struct engine *e, uint32_t i)
{
    return i < e->links.view->rank ? i : i + 1;
}

/* Bytes of the block of each member. */
static uint32_t chunk_of(const struct engine *e, const struct fast_path *q)
{
    return q->size / e->links.view->size;
}

static bool is_sum(const struct fast_path *q)
{
    return q->r->plan.coll == COLL_REDUCE_SCATTER && q->size > 0;
}

/* ----------------------------------------------------------------- starting */

static bool size_endpoint(const struct engine *e, const struct fast_path *q,
                          const struct op_request *r, uint32_t i,
                          struct fast_endpoint *ep)
{
    const struct plan_request *p = &r->plan;
    uint32_t rank = rank_of(e, i);
    bool all = p->coll == COLL_ALLTOALLV;
    size_t sends = all ? p->send_bytes[rank] : chunk_of(e, q);
    size_t recvs = all ? p->recv_bytes[rank] : chunk_of(e, q);
    uint8_t *to;
    uint64_t most = q->ep_count > 1 ? EAGER_MAX : PAIR_MAX; /* D2b */
    if (sends > most || recvs > most) return false;
    ep->body = NULL;
    ep->frames = 1;
    ep->sends = (uint32_t)sends;
    ep->recvs = (uint32_t)recvs;
    ep->tx_digest =
        all ? op_pair_digest(r->call.digest, sends, recvs) : r->call.digest;
    ep->rx_digest =
        all ? op_pair_digest(r->call.digest, recvs, sends) : r->call.digest;
    if (!fast_find_early(e, r, ep)) return false;
    return channel_room(ep->conn->channel, &to) >= 2 * FRAME_SIZE + sends;
}

bool fast_pairs_fits(struct engine *e, struct fast_path *q,
                     const struct op_request *r)
{
    const struct plan_request *p = &r->plan;
    bool even = p->coll == COLL_ALLTOALLV
                    ? p->send_bytes[e->links.view->rank] ==
                          p->recv_bytes[e->links.view->rank] /* D2f */
                    : p->count % e->links.view->size == 0;
    if (!even) return false;
    for (uint32_t i = 0; i < q->ep_count; i++) {
        if (!size_endpoint(e, q, r, i, &q->eps[i])) return false;
    }
    return true;
}

static const uint8_t *block_to(const struct engine *e,
                               const struct fast_path *q, uint32_t rank)
{
    const struct op_request *r = q->r;
    const uint8_t *from = r->call.sendbuf;
    if (r->plan.coll == COLL_ALLTOALLV) return from + r->plan.send_displs[rank];
    return from + rank * (size_t)chunk_of(e, q);
}

static void write_frame(struct fast_path *q, uint32_t i, const struct frame *f,
                        const uint8_t *body)
{
    struct channel *channel = q->eps[i].conn->channel;
    uint8_t *to = NULL;
    (void)channel_room(channel, &to);
    frame_encode(f, to);
    if (f->size > 0) memcpy(to + FRAME_SIZE, body, f->size);
    channel_write(channel, FRAME_SIZE + f->size);
    q->sent += FRAME_SIZE + f->size;
    q->written |= (uint64_t)1 << i;
}

void fast_pairs_send(struct engine *e, struct fast_path *q)
{
    q->holds = false;
    q->frame = (struct frame){.epoch = e->links.view->epoch,
                              .tag = q->r->call.tag,
                              .seq = q->tag->next++};
    struct frame f = q->frame;
    f.type = FRAME_DATA;
    f.flags = FLAG_CONFIRM;
    for (uint32_t i = 0; i < q->ep_count; i++) {
        struct fast_endpoint *ep = &q->eps[i];
        f.size = ep->recvs;
        f.digest = ep->rx_digest;
        frame_encode(&f, ep->head);
        f.size = ep->sends;
        f.digest = ep->tx_digest;
        write_frame(q, i, &f, block_to(e, q, rank_of(e, i)));
        if (!ep->early) continue;
        ep->body = ep->early->body;
        q->left--;
    }
}

/* ------------------------------------------------------------------- taking */

/* Rule D3: the parts in the order of ranks from this one on. The caller's block
 * may lie in its vector, which stays as it is until the end (D21d). */
static void fold(const struct engine *e, const struct fast_path *q)
{
    const struct op_request *r = q->r;
    uint32_t world = e->links.view->size;
    size_t count = chunk_of(e, q) / r->plan.element;
    const uint8_t *sum = block_to(e, q, e->links.view->rank);
    for (uint32_t turn = 1; turn < world; turn++) {
        uint32_t rank = (e->links.view->rank + turn) % world;
        const uint8_t *part = q->eps[rank - (rank > e->links.view->rank)].body;
        reduce_apply(r->call.dtype, r->call.redop, q->own, part, sum, count);
        sum = q->own;
    }
    if (r->call.redop == REDOP_AVG)
        reduce_divide(r->call.dtype, q->own, count, world);
}

static void take_blocks(const struct engine *e, const struct fast_path *q)
{
    const struct plan_request *p = &q->r->plan;
    uint8_t *to = q->r->call.recvbuf;
    size_t own = p->send_bytes[e->links.view->rank];
    const uint8_t *from = block_to(e, q, e->links.view->rank);
    if (own > 0 && to + p->recv_displs[e->links.view->rank] != from)
        memmove(to + p->recv_displs[e->links.view->rank], from, own);
    for (uint32_t i = 0; i < q->ep_count; i++) {
        const struct fast_endpoint *ep = &q->eps[i];
        if (ep->recvs > 0)
            memcpy(to + p->recv_displs[rank_of(e, i)], ep->body, ep->recvs);
    }
}

/* Gives the room back, and looks for the next frame of each. */
static void read_all(struct engine *e, struct fast_path *q)
{
    for (uint32_t i = 0; i < q->ep_count; i++) {
        struct fast_endpoint *ep = &q->eps[i];
        size_t size = FRAME_SIZE + (q->holds ? 0 : ep->recvs);
        if (ep->early)
            fast_drop_early(e, ep);
        else
            channel_read(ep->conn->channel, size);
        q->received += size;
        ep->body = NULL;
    }
    q->left = q->ep_count;
}

/* Nothing else is under way here: DONE is clean (rule D7). */
static void take(struct engine *e, struct fast_path *q)
{
    if (q->r->plan.coll == COLL_ALLTOALLV)
        take_blocks(e, q);
    else if (is_sum(q))
        fold(e, q);
    read_all(e, q);
    q->holds = true;
    struct frame f = q->frame;
    f.type = FRAME_DONE;
    f.flags = FLAG_CLEAN;
    f.index = 1;
    for (uint32_t i = 0; i < q->ep_count; i++) {
        f.digest = q->eps[i].rx_digest;
        frame_encode(&f, q->eps[i].head);
        f.digest = q->eps[i].tx_digest;
        write_frame(q, i, &f, NULL);
    }
}

/* A DONE need not be clean. */
static bool is_expected(const struct fast_path *q, const uint8_t *from,
                        const uint8_t *head)
{
    struct frame f, want;
    if (memcmp(from, head, FRAME_SIZE) == 0) return true;
    if (!q->holds || !frame_decode(from, &f) || !frame_decode(head, &want))
        return false;
    return f.flags == 0 && f.type == want.type && f.epoch == want.epoch &&
           f.tag == want.tag && f.seq == want.seq && f.index == want.index &&
           f.size == want.size && f.digest == want.digest &&
           f.scope == want.scope;
}

static enum look look(struct fast_path *q, uint32_t i)
{
    struct fast_endpoint *ep = &q->eps[i];
    struct channel *channel = ep->conn->channel;
    const uint8_t *from;
    size_t size = channel_ready(channel, &from);
    if (channel->broken) return LOOK_ELSE;
    if (size < FRAME_SIZE) return LOOK_IDLE;
    if (!is_expected(q, from, ep->head)) return LOOK_ELSE;
    if (!q->holds && size < FRAME_SIZE + ep->recvs) return LOOK_IDLE;
    ep->body = from + FRAME_SIZE;
    q->latest = i;
    q->left--;
    return LOOK_DONE;
}

enum look fast_pairs_poll(struct engine *e, struct fast_path *q)
{
    for (uint32_t i = 0; i < q->ep_count; i++) {
        if (!q->eps[i].body && look(q, i) == LOOK_ELSE) return LOOK_ELSE;
    }
    if (q->left > 0) return LOOK_IDLE;
    if (!q->holds) {
        take(e, q);
        return LOOK_IDLE;
    }
    read_all(e, q);
    if (is_sum(q)) memcpy(q->r->call.recvbuf, q->own, chunk_of(e, q));
    q->r = NULL;
    return LOOK_DONE;
}

/* --------------------------------------------------------------- converting */

void fast_pairs_hold(struct engine *e, const struct fast_path *q, struct op *op)
{
    if (!q->holds) return;
    if (op->plan.r.coll == COLL_REDUCE_SCATTER && q->size > 0)
        memcpy(op->r.recvbuf, q->own, chunk_of(e, q));
    for (uint32_t i = 0; i < op->ep_count; i++) {
        struct endpoint *ep = &op->eps[i];
        ep->done_sent = true;
        ep->received = ep->recvs;
        op_bit_set(ep->came, 0);
        op->rx_bytes += q->eps[i].recvs;
    }
    for (uint32_t i = 0; i < op->ep_count; i++)
        op_endpoint_ready(e, op, &op->eps[i]);
}
