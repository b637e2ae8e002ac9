/* neighbors.c - see neighbors.h. */
#include "neighbors.h"

#include <string.h>

/* --------------------------------------------------------------- the plan */

/* Where members are far apart, a count that travels along the ring takes as
 * many network distances as there are members. */
void ring_shape(struct plan *p)
{
    p->position = plan_position(p, p->r.rank);
    p->prev = plan_at(p, plan_wrap(p, p->position, 1));
    p->next = plan_at(p, (p->position + 1) % p->r.world);
    p->done = p->r.mesh && !p->r.one_host ? DONE_PAIRS : DONE_RING;
}

uint32_t ring_partners(const struct plan *p)
{
    if (p->done == DONE_PAIRS) return p->r.world - 1;
    return p->prev == p->next ? 1 : 2;
}

/* The partners beside the neighbours, by rank. */
static uint32_t nth_other(const struct plan *p, uint32_t i)
{
    uint32_t rank = 0;
    for (;; rank++) {
        if (rank == p->r.rank || rank == p->prev || rank == p->next) continue;
        if (i-- == 0) return rank;
    }
}

uint32_t ring_partner(const struct plan *p, uint32_t i)
{
    if (i > 1) return nth_other(p, i - 2);
    return i == 0 ? p->prev : p->next;
}

/* ---------------------------------------------------------- the operation */

/* Over several connections, transfers to the next member arrive in any order,
 * so they may be sent in any order (rule D13). */
bool ring_take(struct engine *e, struct op *op, size_t size)
{
    const struct plan *p = &op->plan;
    struct ring_state *s = op_take_state(e, op, size, 0);
    size_t bits = plan_recvs(p, p->prev) / 8 + 1;
    struct endpoint *next = &op->eps[op->ep_count > 1 ? 1 : 0];
    size_t sends = next->sends / 8 + 1;
    if (!s) return false;
    s->received = pool_take(&e->links.pool, bits);
    next->begun = pool_take(&e->links.pool, sends);
    if (!s->received || !next->begun) return false;
    memset(next->begun, 0, sends);
    memset(s->received, 0, bits);
    return true;
}

void ring_give(struct engine *e, struct op *op)
{
    struct ring_state *s = op->state;
    struct endpoint *next = &op->eps[op->ep_count > 1 ? 1 : 0];
    pool_give(&e->links.pool, s->received);
    pool_give(&e->links.pool, next->begun);
    next->begun = NULL;
}

bool ring_begin(struct engine *e, struct op *op)
{
    return ring_take(e, op, sizeof(struct ring_state));
}

bool ring_has(const struct op *op, uint32_t after)
{
    const struct ring_state *s = op->state;
    return op_bit_get(s->received, after);
}

void ring_arrived(struct engine *e, struct op *op, struct endpoint *ep,
                  uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct ring_state *s = op->state;
    (void)ep;
    (void)x;
    (void)body;
    op_bit_set(s->received, k);
    link_dirty(&e->links, op->eps[op->ep_count > 1 ? 1 : 0].link);
}
