/* fast_path.c - see fast_path.h. Rule numbers: see src/README.md. */
#include "op.h"

#include "algorithm_table.h"
#include "fast_pairs.h"
#include "fast_star.h"
#include "fast_sums.h"
#include "fast_tree.h"

#include "../base/buggify.h"
#include "../reduce/reduce.h"

#include <string.h>

/* ---------------------------------------------------------- the endpoints */

bool fast_find_endpoint(struct engine *e, uint32_t rank,
                        struct fast_endpoint *ep)
{
    *ep = (struct fast_endpoint){
        .link = link_find(&e->links, e->links.view->ids[rank], false)};
    if (!ep->link || ep->link->open != 1 || ep->link->dialing > 0) return false;
    struct conn *c = ep->link->conns;
    while (c && c->state != CONN_OPEN) c = c->next;
    if (!c) return false;
    ep->conn = c;
    ep->number = c->number;
    return c->channel != NULL;
}

/* In rows of one shape only the last counts. */
static void ask_table(const struct engine *e, const struct plan_request *r,
                      struct fast_choice *choices)
{
    struct plan_request p = {.coll = r->coll, .flow = r->flow, .element = 1};
    struct fast_choice *c = choices;
    op_plan_request(e, NULL, &p);
    c->fast = algorithm_choose_range(&p, &c->most)->fast;
    while (c->most < PLAN_SEGMENT_MAX) {
        struct fast_choice next;
        p.count = c->most + 1;
        next.fast = algorithm_choose_range(&p, &next.most)->fast;
        /* No range is known from here on: operations as usual. */
        if (next.most == p.count && p.count < PLAN_SEGMENT_MAX) return;
        if (next.fast != c->fast && ++c == choices + FAST_CHOICES) return;
        *c = next;
    }
    c->most = PLAN_SEGMENT_MAX; /* of a frame */
}

enum algorithm_fast
fast_find_choice(struct engine *e, const struct plan_request *r, uint64_t bytes)
{
    struct fast_choice *c = e->fast.choices[r->coll][r->flow];
    if (c->most == 0) ask_table(e, r, c);
    for (uint32_t i = 0; i < FAST_CHOICES; i++)
        if (bytes <= c[i].most) return c[i].fast;
    return FAST_NOT;
}

static void find_partners(struct engine *e, const struct plan *tree,
                          struct fast_partners *p)
{
    uint32_t count = tree ? plan_partners(tree) : e->links.view->size - 1;
    p->able = count <= FAST_PARTNERS_MAX;
    p->count = 0;
    while (p->able && p->count < count) {
        uint32_t i = p->count++;
        uint32_t rank =
            tree ? plan_partner(tree, i) : i + (i >= e->links.view->rank);
        p->able = fast_find_endpoint(e, rank, &p->eps[i]);
    }
}

static void find_endpoints(struct engine *e)
{
    struct fast_path *q = &e->fast;
    q->known = true;
    q->star.known = false;
    q->all.able = q->near.able = false;
    memset(q->choices, 0, sizeof q->choices);
    /* Over a grid the smallest ones go, which nobody does on the fast path.
     * Between hosts a block is cut into segments, which it does not either. */
    if (!e->links.view->ring || e->links.frozen || e->links.view->size < 2 ||
        e->links.view->grid || e->links.view->one_host == 0)
        return;
    if (e->links.view->mesh) find_partners(e, NULL, &q->all);
    if (fast_tree_shape(e, &q->plan)) find_partners(e, &q->plan, &q->near);
}

bool fast_endpoint_is_settled(const struct fast_endpoint *ep)
{
    const struct conn *c = ep->conn;
    return conn_is_idle(c) && ep->link->control_count == 0;
}

bool fast_endpoint_is_idle(const struct fast_endpoint *ep)
{
    return fast_endpoint_is_settled(ep) && ep->link->unexpected_count == 0;
}

bool fast_find_early(const struct engine *e, const struct op_request *r,
                     struct fast_endpoint *ep)
{
    struct unexpected *k = ep->link->unexpected;
    ep->early = k;
    if (!k) return true;
    const struct frame *f = &k->frame;
    return ep->link->unexpected_count == 1 && k->complete &&
           f->type == FRAME_DATA && !frame_is_single_copy(f) &&
           f->epoch == e->links.view->epoch && f->scope == 0 &&
           f->tag == r->call.tag && f->seq == e->fast.tag->next &&
           f->index == 0 && f->size == ep->recvs && f->digest == ep->rx_digest;
}

void fast_drop_early(struct engine *e, struct fast_endpoint *ep)
{
    link_remove_unexpected(&e->links, ep->link, &ep->link->unexpected);
    pool_give(&e->links.pool, ep->early);
    ep->early = NULL;
}

/* --------------------------------------------------------------- starting */

/* The result of (tag, n) takes the slot of the result of (tag, n-1): rules D5,
 * D6. */
static struct cached_result *find_cached(struct engine *e,
                                         const struct fast_path *q,
                                         uint64_t tag, uint32_t size)
{
    struct cached_result *r = q->cached;
    if (!r || !r->bytes || r->tag != tag || r->scope != 0)
        r = op_cached_result(e, 0, tag);
    return r && r->room >= size ? r : NULL;
}

static bool own_fits(struct engine *e, struct fast_path *q, size_t size)
{
    if (size <= q->own_size) return true;
    pool_give(&e->links.pool, q->own);
    q->own_size = 0;
    q->own = pool_take(&e->links.pool, size);
    if (!q->own) return false;
    q->own_size = size;
    return true;
}

/* Sets the bytes of each sender: in a broadcast only the root has any. */
static bool divide_up(const struct engine *e, struct fast_path *q,
                      const struct op_request *r)
{
    bool root = r->plan.coll == COLL_BROADCAST;
    q->sends = !root || r->plan.root == e->links.view->rank ? q->size : 0;
    for (uint32_t i = 0; i < q->ep_count; i++) {
        uint32_t rank = i < e->links.view->rank ? i : i + 1;
        q->eps[i].recvs = !root || r->plan.root == rank ? q->size : 0;
        q->eps[i].sends = q->sends;
        q->eps[i].frames = 1;
        q->eps[i].rx_digest = r->call.digest;
        /* One that has to be confirmed is not for the fast path. */
        if (!fast_find_early(e, r, &q->eps[i]) ||
            (q->eps[i].early && q->eps[i].early->frame.flags != 0))
            return false;
    }
    return true;
}

/* Rule L11b. */
static bool may_post(struct engine *e, const struct fast_path *q)
{
    const struct links *n = &e->links;
    if (!n->board.memory || FRAME_SIZE + q->sends > BOARD_POST_MAX)
        return false;
    /* The queue of a pair is read where it begins, again and again. */
    if (q->ep_count == 1 && q->sends > PAIR_MAX) return false;
    for (uint32_t i = 0; i < q->ep_count; i++) {
        const struct conn *c = q->eps[i].conn;
        if (!c->region.taken || !channel_may_post(c->channel, n->board.posts))
            return false;
    }
    return !PCCL_BUGGIFY(post_refused);
}

/* Makes room for what the operation writes. */
static bool fits(struct engine *e, struct fast_path *q,
                 const struct op_request *r)
{
    if (q->pairs)
        return fast_pairs_fits(e, q, r) &&
               own_fits(e, q, q->size / e->links.view->size);
    if (q->tree)
        return fast_tree_fits(q, r) && own_fits(e, q, fast_tree_scratch(q));
    if (!divide_up(e, q, r)) return false;
    q->posts = may_post(e, q);
    for (uint32_t i = 0; i < q->ep_count && !q->posts; i++) {
        uint8_t *to;
        if (channel_room(q->eps[i].conn->channel, &to) < FRAME_SIZE + q->sends)
            return false;
    }
    return true;
}

bool fast_may_begin(struct engine *e, const struct op_request *r)
{
    if (!e->fast.known) find_endpoints(e);
    bool ready =
        e->links.view->ring && !e->links.frozen && !e->links.view->grid;
    if (!ready || e->op_end > 0 || r->call.members) return false;
    return !PCCL_BUGGIFY(fast_refused);
}

static bool may_start(struct engine *e, const struct op_request *r)
{
    struct fast_path *q = &e->fast;
    enum plan_coll coll = r->plan.coll;
    if (!fast_may_begin(e, r)) return false;
    if (r->call.quant.algorithm != QUANT_NONE) return false;
    uint64_t size = coll == COLL_BARRIER ? 0 : r->plan.count;
    if (plan_coll_reduces(coll)) size *= r->plan.element;
    enum algorithm_fast fast = fast_choice(e, q, &r->plan, size);
    if (fast == FAST_NOT) return false;
    q->pairs = fast == FAST_PAIRS;
    q->tree = fast == FAST_TREE;
    struct fast_partners *partners = q->tree ? &q->near : &q->all;
    q->eps = partners->eps;
    q->ep_count = partners->count;
    if (!partners->able) return false;
    q->size = q->result = coll == COLL_ALLTOALLV ? 0 : (uint32_t)size;
    if (coll == COLL_ALLGATHER) q->result *= e->links.view->size;
    q->tag = op_tag_entry(e, 0, r->call.tag);
    if (!q->tag) return false;
    q->cached = q->pairs ? NULL : find_cached(e, q, r->call.tag, q->result);
    if (!q->pairs && !q->cached) return false;
    for (uint32_t i = 0; i < q->ep_count; i++) {
        const struct fast_endpoint *ep = &q->eps[i];
        bool ready =
            q->tree ? fast_endpoint_is_idle(ep) : fast_endpoint_is_settled(ep);
        if (!ready) return false;
    }
    return fits(e, q, r);
}

/* Usually only the sequence differs from the last header. */
static void make_head(struct engine *e, struct fast_path *q)
{
    struct frame *f = &q->frame;
    uint32_t seq = q->tag->next++;
    if (f->type == FRAME_DATA && f->epoch == e->links.view->epoch &&
        f->tag == q->r->call.tag && f->size == q->size &&
        f->digest == q->r->call.digest) {
        frame_renumber(q->head, seq);
        frame_renumber(q->empty, seq);
        f->seq = seq;
        return;
    }
    *f = (struct frame){.type = FRAME_DATA,
                        .epoch = e->links.view->epoch,
                        .tag = q->r->call.tag,
                        .seq = seq,
                        .size = q->size,
                        .digest = q->r->call.digest};
    frame_encode(f, q->head);
    struct frame empty = *f;
    empty.size = 0;
    frame_encode(&empty, q->empty);
}

/* The bytes that this member has, as the operation would find them. */
static const uint8_t *own_vector(const struct engine *e,
                                 const struct fast_path *q)
{
    const struct op_request *r = q->r;
    if (r->plan.coll == COLL_BROADCAST) return r->call.recvbuf;
    if (r->plan.coll == COLL_ALLREDUCE || r->call.sendbuf)
        return r->call.sendbuf;
    return (const uint8_t *)r->call.recvbuf +
           (size_t)e->links.view->rank * q->size;
}

static void write_frame(const struct fast_path *q, const uint8_t *body,
                        uint8_t *to)
{
    memcpy(to, q->sends > 0 ? q->head : q->empty, FRAME_SIZE);
    if (q->sends > 0) memcpy(to + FRAME_SIZE, body, q->sends);
}

/* Rule L11b. */
static size_t mark_post(struct engine *e, const struct fast_path *q)
{
    bool marked = false;
    for (uint32_t i = 0; i < q->ep_count; i++)
        marked |=
            channel_mark_post(q->eps[i].conn->channel, e->links.board.posts);
    return marked ? BOARD_MARKED : 0;
}

static void send_to_all(struct engine *e, struct fast_path *q)
{
    const uint8_t *body = own_vector(e, q);
    size_t size = FRAME_SIZE + q->sends;
    if (q->posts) {
        uint8_t *to = board_begin(&e->links.board);
        write_frame(q, body, to);
        board_post(&e->links.board, size | mark_post(e, q));
    }
    for (uint32_t i = 0; i < q->ep_count; i++) {
        struct channel *channel = q->eps[i].conn->channel;
        uint8_t *to = NULL;
        if (!q->posts) {
            (void)channel_room(channel, &to);
            write_frame(q, body, to);
            channel_write(channel, size);
        }
        q->eps[i].posted = false;
        q->eps[i].sum = NULL;
        q->eps[i].added = false;
        q->eps[i].body = NULL;
        if (q->eps[i].early) q->eps[i].body = q->eps[i].early->body;
        q->left -= q->eps[i].early != NULL;
        q->sent += size;
        q->written |= (uint64_t)1 << i;
    }
}

bool fast_start(struct engine *e, const struct op_request *r)
{
    struct fast_path *q = &e->fast;
    q->spoked = q->posts = q->sums = false;
    if (plan_flow_has_root(r->plan.flow)) return fast_star_start(e, r);
    if (!may_start(e, r)) return false;
    q->r = r;
    q->left = q->tree ? q->plan.tree.children : q->ep_count;
    q->has_sent = !q->tree;
    if (q->pairs) {
        fast_pairs_send(e, q);
        return true;
    }
    make_head(e, q);
    if (q->tree) return true;
    send_to_all(e, q);
    return true;
}

/* -------------------------------------------------------------- finishing */

static void take_root(const struct fast_path *q)
{
    for (uint32_t i = 0; i < q->ep_count; i++) {
        const struct fast_endpoint *ep = &q->eps[i];
        if (ep->recvs > 0) memcpy(q->r->call.recvbuf, ep->body, q->size);
    }
}

static void take_blocks(const struct engine *e, const struct fast_path *q)
{
    uint8_t *to = q->r->call.recvbuf;
    const uint8_t *own = own_vector(e, q);
    uint32_t ep = 0;
    for (uint32_t i = 0; i < e->links.view->size; i++, to += q->size) {
        const uint8_t *from =
            i == e->links.view->rank ? own : q->eps[ep++].body;
        if (from != to) memmove(to, from, q->size);
    }
}

/* A flat sum is in the copy already. */
static void keep(struct fast_path *q)
{
    bool summed = !q->tree && q->r->plan.coll == COLL_ALLREDUCE;
    if (q->size > 0 && !summed)
        memcpy(q->cached->bytes, q->r->call.recvbuf, q->result);
    q->cached->seq = q->frame.seq;
    q->cached->size = q->result;
    q->cached->old = false;
    q->r = NULL;
}

bool fast_posts_hold(const struct fast_path *q)
{
    bool all = true;
    for (uint32_t i = 0; i < q->ep_count; i++) {
        struct channel *c = q->eps[i].conn->channel;
        if (!channel_holds(c, fast_posts_of(&q->eps[i]))) c->broken = true;
        all &= !c->broken;
    }
    return all;
}

static bool take_all(const struct engine *e, struct fast_path *q)
{
    if (q->size == 0) return true;
    if (q->r->plan.coll == COLL_ALLREDUCE) {
        fast_sum(e, q, q->cached->bytes, 0, q->size);
        return fast_take_sum(q);
    }
    if (q->r->plan.coll == COLL_BROADCAST)
        take_root(q);
    else
        take_blocks(e, q);
    return fast_posts_hold(q);
}

static void finish(struct engine *e, struct fast_path *q)
{
    for (uint32_t i = 0; i < q->ep_count; i++) {
        struct fast_endpoint *ep = &q->eps[i];
        uint32_t posts = fast_posts_of(ep);
        if (posts > 0) channel_skip_posts(ep->conn->channel, posts);
        if (ep->early)
            fast_drop_early(e, ep);
        else if (!ep->posted)
            channel_read(ep->conn->channel, FRAME_SIZE + ep->recvs);
        q->received += FRAME_SIZE + ep->recvs;
    }
    keep(q);
}

static enum look look(struct fast_path *q, uint32_t i)
{
    struct fast_endpoint *ep = &q->eps[i];
    const uint8_t *from = NULL;
    const uint8_t *head = ep->recvs > 0 ? q->head : q->empty;
    size_t size = channel_look(ep->conn->channel, &from, &ep->posted);
    if (ep->conn->channel->broken) return LOOK_ELSE;
    if (size < FRAME_SIZE) return LOOK_IDLE;
    if (memcmp(from, head, FRAME_SIZE) != 0) return LOOK_ELSE;
    if (size < FRAME_SIZE + ep->recvs) return LOOK_IDLE;
    ep->body = from + FRAME_SIZE;
    q->latest = i;
    q->left--;
    return LOOK_DONE;
}

static enum look poll_flat(struct engine *e, struct fast_path *q)
{
    for (uint32_t i = 0; i < q->ep_count && !q->sums; i++) {
        if (!q->eps[i].body && look(q, i) == LOOK_ELSE) return LOOK_ELSE;
    }
    if (q->left > 0 && !q->sums) return LOOK_IDLE;
    if (q->sums || fast_sums_begin(e, q)) {
        enum look status = fast_sums_poll(e, q);
        if (status != LOOK_DONE) return status;
    } else if (!take_all(e, q)) {
        return LOOK_ELSE;
    }
    finish(e, q);
    return LOOK_DONE;
}

enum look fast_poll(struct engine *e)
{
    struct fast_path *q = &e->fast;
    if (PCCL_BUGGIFY(fast_given_up)) return LOOK_ELSE;
    if (q->spoked) return fast_star_poll(e);
    if (q->pairs) return fast_pairs_poll(e, q);
    if (!q->tree) return poll_flat(e, q);
    enum look status = fast_tree_poll(q, own_vector(e, q));
    if (status == LOOK_DONE) keep(q);
    return status;
}

/* ------------------------------------------------------------- converting */

void fast_mark_sent(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t bytes)
{
    ep->send_next = ep->sent = ep->sends;
    op->tx_bytes += bytes;
    if (op->unsent == ep->sends)
        op_unqueue(e, op);
    else
        op->unsent -= ep->sends;
}

/* The fast path has taken nothing from the channels: the operation reads again
 * all frames that have arrived. In a tree it has sent to the parent at most. */
struct op *fast_convert(struct engine *e)
{
    struct fast_path *q = &e->fast;
    bool holds = q->pairs && q->holds;
    const struct op_request *r = q->r;
    bool all = !q->tree && !q->pairs && (q->sums || q->left == 0);
    q->r = NULL;
    q->tag->next = q->frame.seq;
    struct op *op = engine_launch(e, r, false);
    if (!op) return NULL;
    PCCL_ASSERT(op->phase == PHASE_RUNNING && op->seq == q->frame.seq);
    if (q->spoked) {
        fast_star_hold(e, op);
        return op;
    }
    /* As its DATA had it; `cached` gives the slot, and may have a part of this
     * sum when all are heard (rule D6). */
    if (!q->pairs) op->confirm = false;
    if (all && op_cached_result(e, op->scope_number, op->r.tag)) {
        /* The place of the older copy is kept, whoever else wants one. */
        if (!op->reserved) (void)op_reserve_result(e, op);
        op_drop_older(e, op);
    }
    for (uint32_t i = 0; i < op->ep_count; i++) {
        struct endpoint *ep = &op->eps[i];
        bool above = !q->tree || plan_is_parent(&op->plan, ep->rank);
        if (q->has_sent && above) fast_mark_sent(e, op, ep, q->eps[i].sends);
    }
    /* From those whose data came early nothing else is to come. */
    for (uint32_t i = 0; i < op->ep_count && !q->tree && !holds; i++)
        op_check_endpoint(e, op, &op->eps[i]);
    if (q->pairs) fast_pairs_hold(e, q, op);
    return op;
}
