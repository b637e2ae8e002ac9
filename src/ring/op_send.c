/* op_send.c - chooses the next transfer of an operation to send. Pure.
 *
 * Rule numbers: see src/README.md. */
#include "op.h"

#include "algorithm.h"

#include "../base/buggify.h"

/* Number of transfers to look at after the first that cannot be sent yet. */
enum { SEND_AHEAD = 256 };

bool op_eager_fits(const struct endpoint *ep, uint32_t size)
{
    return size <= EAGER_MAX &&
           ep->link->eager_bytes + size <= EAGER_LINK_MAX &&
           !PCCL_BUGGIFY(credit_small);
}

bool op_may_send(const struct op *op, const struct endpoint *ep, uint32_t k,
                 struct plan_xfer *x)
{
    plan_send(&op->plan, ep->rank, k, x);
    return x->after == PLAN_NOTHING || op->plan.algorithm->has(op, x->after);
}

/* The transfer goes through the region, which needs no credit: the other end
 * has mapped it, or is able to read this process. */
static bool may_put(const struct engine *e, const struct op *op,
                    const struct conn *c, const struct plan_xfer *x)
{
    if (op->slot == 0) return false;
    if (op->plan.algorithm->pulls)
        return c->region.pulls && x->size >= e->pull_least;
    return c->region.taken && x->size > 0;
}

/* The credit of this transfer has been reserved at the launch. */
static bool has_credit(const struct endpoint *ep, uint32_t k)
{
    return k == 0 && ep->reserved;
}

/* The first transfer whose dependency is met. Over several connections,
 * transfers arrive in any order, and one that waits for a late arrival must not
 * block the others: a delay on one link would repeat on every link after it. */
static bool sendable(const struct engine *e, const struct conn *c,
                     const struct op *op, const struct endpoint *ep,
                     uint32_t *which, struct plan_xfer *x)
{
    if (op->phase != PHASE_RUNNING || ep->send_next == ep->sends) return false;
    uint32_t k = ep->send_next;
    uint32_t end = k + 1;
    if (ep->begun && ep->link->open > 1 && !PCCL_BUGGIFY(in_turn))
        end = k + SEND_AHEAD;
    if (end > ep->sends) end = ep->sends;
    while (k < end && ((ep->begun && op_bit_get(ep->begun, k)) ||
                       !op_may_send(op, ep, k, x)))
        k++;
    if (k == end) return false;
    *which = k;
    return ep->ready || has_credit(ep, k) || may_put(e, op, c, x) ||
           op_eager_fits(ep, x->size);
}

static void begin(struct endpoint *ep, uint32_t k)
{
    if (ep->begun) op_bit_set(ep->begun, k);
    if (k > ep->send_next) return;
    do {
        ep->send_next++;
    } while (ep->begun && ep->send_next < ep->sends &&
             op_bit_get(ep->begun, ep->send_next));
}

static const uint8_t *source_of(struct op *op, const struct plan_xfer *x)
{
    const struct algorithm *a = op->plan.algorithm;
    if (a->source) return a->source(op, x);
    const uint8_t *base =
        x->space == SPACE_SEND ? op->r.sendbuf : op->r.recvbuf;
    return base + x->offset;
}

static struct op *first_sendable(const struct engine *e,
                                 const struct op_queue *q, const struct conn *c,
                                 struct endpoint **ep, uint32_t *k,
                                 struct plan_xfer *x)
{
    for (struct op *op = q->first; op; op = op->unsent_next) {
        *ep = op_endpoint(op, c->link);
        if (*ep && sendable(e, c, op, *ep, k, x)) return op;
    }
    return NULL;
}

bool op_next_send(struct engine *e, struct conn *c, struct frame *f,
                  const uint8_t **from, struct op **which, struct endpoint **at)
{
    enum { TURNS = 4 }; /* one turn in this many is for long operations */
    bool long_first = ++e->turn % TURNS == 0 || PCCL_BUGGIFY(long_first);
    const struct op_queue *first = long_first ? &e->longs : &e->shorts;
    const struct op_queue *second = long_first ? &e->shorts : &e->longs;
    struct endpoint *ep;
    struct plan_xfer x;
    uint32_t k;
    struct op *op = first_sendable(e, first, c, &ep, &k, &x);
    if (!op) op = first_sendable(e, second, c, &ep, &k, &x);
    if (!op) return false;
    *f =
        (struct frame){.type = FRAME_DATA,
                       .flags = op->confirm || op->tells_all ? FLAG_CONFIRM : 0,
                       .epoch = e->links.view->epoch,
                       .scope = op->scope_number,
                       .tag = op->r.tag,
                       .seq = op->seq,
                       .index = k,
                       .size = x.size,
                       .digest = ep->tx_digest};
    begin(ep, k);
    bool put = may_put(e, op, c, &x);
    if (put) {
        f->flags |= FLAG_SINGLE_COPY;
        f->size = 0;
        op->plan.algorithm->put(e, op, ep, k, &x);
    }
    *from = x.size > 0 && !put ? source_of(op, &x) : NULL;
    *which = op;
    *at = ep;
    if (!ep->ready && !put && !has_credit(ep, k)) {
        ep->eager += x.size;
        c->link->eager_bytes += x.size;
    }
    op->tx_bytes += x.size;
    if (op->unsent == 1)
        op_unqueue(e, op);
    else
        op->unsent--;
    return true;
}
