/* op_frame.c - operations as a client of the links: receives their frames,
 * chooses the next frame, and handles the loss of a connection. Pure; rules D2,
 * F1, F2 of AGREEMENT.md. */
#include "op.h"

#include "../reduce/stream.h"

/* ---------------------------------------------------------------- receiving */

/* The operation is not launched here (rule D2). */
static bool begin_unknown(struct engine *e, struct conn *c)
{
    const struct frame *f = &c->rx;
    c->rx_to = NULL;
    if (engine_is_past(e, f->scope, f->tag, f->seq)) return true;
    struct unexpected *k = link_keep_unexpected(&e->links, c->link, f);
    if (!k) return false; /* rule D2 lets nobody send so much */
    if (f->size == 0) return true;
    c->rx_state = RX_BODY;
    c->rx_unexpected = k;
    c->rx_to = k->body;
    return true;
}

static size_t reduce_body(struct conn *c, const uint8_t *bytes, size_t size)
{
    struct op *op = c->rx_owner;
    uint32_t element = op->plan.r.element;
    if (size > c->rx_left) size = c->rx_left;
    size -= size % element;
    op_reduce(op, c->rx_part, &c->rx, c->rx.size - c->rx_left, bytes, size);
    return size;
}

static size_t stream_body(struct conn *c, const uint8_t *bytes, size_t size)
{
    stream_copy(c->rx_to, bytes, size);
    return size;
}

static bool begin_data(struct engine *e, struct conn *c, struct op *op,
                       struct endpoint *ep)
{
    const struct frame *f = &c->rx;
    if (frame_is_single_copy(f)) {
        op_single_copy(e, op, ep, f);
        return true;
    }
    /* Codes are decoded by blocks, which a channel may cut anywhere. */
    bool direct = c->channel && op_takes_parts(op);
    if (!direct && !c->scratch)
        c->scratch = pool_take(&e->links.pool, FRAME_BODY_MAX);
    if (!direct && !c->scratch) return false;
    c->rx_to = NULL;
    enum op_accept a =
        op_accept(e, op, ep, f, direct ? NULL : c->scratch, &c->rx_to);
    if (a == ACCEPT_DISCARD) return true;
    c->rx_state = RX_BODY;
    if (!c->rx_to)
        c->rx_consume = reduce_body;
    else if (direct && a == ACCEPT_STREAM)
        c->rx_consume = stream_body;
    c->rx_owner = op;
    c->rx_part = ep;
    return true;
}

static bool begin_frame(void *user, struct conn *c)
{
    struct engine *e = user;
    const struct links *n = &e->links;
    const struct frame *f = &c->rx;
    if (frame_is_single_copy(f) && !c->region.memory) return false;
    bool is_old =
        f->epoch < n->view->epoch || (f->epoch == n->view->epoch && n->frozen);
    if (is_old) return true;
    struct op *op = op_find(e, f->scope, f->tag, f->seq);
    if (!op) return begin_unknown(e, c);
    if (op->phase == PHASE_DONE) return true;
    struct endpoint *ep = op_endpoint(op, c->link);
    if (!op_has_member(op, c->link->id)) return false;
    if (!op_agrees(e, op, ep, f, c->link->id)) return true;
    if (!ep) return op->fails; /* it may have no endpoints */
    if (f->type == FRAME_DATA) return begin_data(e, c, op, ep);
    op_control(e, op, ep, f);
    return true;
}

static bool end_frame(void *user, struct conn *c)
{
    struct engine *e = user;
    struct unexpected *k = c->rx_unexpected;
    struct op *op = c->rx_owner;
    c->rx_owner = NULL;
    /* DONE shows that the other end has what this one sent. */
    if (c->rx.type != FRAME_READY) c->link->carried = true;
    if (k) {
        /* The operation may have been launched while the body arrived. */
        c->rx_unexpected = NULL;
        k->complete = true;
        op = op_find(e, k->frame.scope, k->frame.tag, k->frame.seq);
        if (op) engine_apply_unexpected(e, op, c->link);
    } else if (op) {
        bool reduced = c->rx_consume == reduce_body;
        op_received(e, op, c->rx_part, &c->rx,
                    reduced ? NULL : c->rx_to - c->rx.size);
    }
    return true;
}

/* The caller returns from its wait. Had it taken the first frame of the next
 * operation, that one could not go on the fast path (rule D9b), and its frames
 * would make those of others go as operations, too. */
static bool returns(const struct engine *e)
{
    return e->goal && e->goal->phase == PHASE_DONE;
}

/* The caller is launching, or returns. The next frame is of an operation that
 * is not launched here, and may be next; or it has so much data that the launch
 * would take long. */
static bool defers(const void *user, const struct frame *f)
{
    const struct engine *e = user;
    bool leaves = returns(e);
    bool starts = f->type == FRAME_DATA || (leaves && f->type == FRAME_READY);
    if (!leaves && !e->defers) return false;
    return starts && f->epoch == e->links.view->epoch &&
           (f->flags & FLAG_SINGLE_COPY || f->size > LAUNCH_MAX ||
            !engine_is_past(e, f->scope, f->tag, f->seq));
}

/* ------------------------------------------------------------------ sending */

static bool next_send(void *user, struct conn *c, struct frame *f)
{
    struct engine *e = user;
    struct op *op;
    struct endpoint *ep;
    if (e->links.frozen || !op_next_send(e, c, f, &c->tx_from, &op, &ep))
        return false;
    c->tx_owner = op;
    c->tx_part = ep;
    if (c->tx_cut && !c->tx_starved) f->flags |= FLAG_FULL;
    c->tx_cut = c->tx_starved = false;
    return true;
}

static void sent(void *user, void *op, void *ep)
{
    op_sent(user, op, ep);
}

/* -------------------------------------------------------------- connections */

/* A link that the view wants is lost; one that only this operation needs cannot
 * be made. */
static void closed(void *user, struct link *l, bool never)
{
    const struct engine *e = user;
    const struct op *op = NULL;
    if (e->links.frozen || !op_uses_link(e, l, &op)) return;
    bool alone = never && !l->wanted;
    e->out.fault(e->out.user, alone ? FAULT_UNREACHABLE : FAULT_BROKEN, op,
                 l->id);
}

static bool uses(const void *user, const struct link *l)
{
    return op_uses_link(user, l, NULL);
}

static void changed(void *user)
{
    struct engine *e = user;
    e->fast.known = false;
}

void op_use_links(struct engine *e)
{
    static const enum frame_type types[] = {FRAME_DATA, FRAME_READY,
                                            FRAME_DONE};
    static const struct frame_handler handler = {ON_OPEN, begin_frame,
                                                 end_frame};
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        links_receive(&e->links, CONN_OF_LINK, types[i], &handler, e);
    e->links.clients[CLIENT_AFTER_CONTROL] =
        (struct link_client){.user = e,
                             .next_send = next_send,
                             .sent = sent,
                             .closed = closed,
                             .uses = uses,
                             .changed = changed,
                             .defers = defers};
}
