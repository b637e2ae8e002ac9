/* single_copy.c - see lend.h. */
#include "../ring/engine.h"

#include <string.h>

static_assert(LEND_ROOMS * sizeof(struct lend_head) <= LEND_HEAD / 2,
              "the heads lie before the places");

/* ------------------------------------------------------------- the memory */

static bool is_channel_of_host(const struct engine *e, const struct conn *c)
{
    return c && c->state == CONN_OPEN && c->channel && c->link &&
           c->link->host == e->host;
}

/* Where a host has two members a queue of their own does as well. */
static bool is_worth_it(const struct engine *e)
{
    uint32_t here = 0;
    for (uint32_t i = 0; i < e->world; i++)
        here += e->members[i].host == e->host;
    return e->mesh && e->host % 2 == 0 && here > 2 && here <= e->lenders;
}

void lend_install(struct engine *e)
{
    e->lends = is_worth_it(e);
    for (uint32_t i = 0; i < LEND_ROOMS; i++) e->lend.users[i] = NULL;
    for (uint32_t i = 0; e->lends && e->out.lend && i < e->conn_end; i++) {
        struct conn *c = e->conns[i];
        if (!is_channel_of_host(e, c) || c->lend.taken) continue;
        struct channel_offer offer;
        if (!e->lend.area) e->lend.area = e->out.lend(e->out.user, &offer);
        if (!e->lend.area) return;
        c->lend.offers = true;
        conn_dirty(e, i);
    }
}

bool lend_say(struct engine *e, struct conn *c, struct frame *f)
{
    if (!c->lend.offers && !c->lend.answers) return false;
    *f = (struct frame){.type = FRAME_AREA};
    if (c->lend.answers) {
        f->flags = FLAG_ANSWER;
        c->lend.answers = false;
        return true;
    }
    c->lend.offers = false;
    struct channel_offer offer;
    if (!e->out.lend(e->out.user, &offer)) return false;
    f->seq = offer.size;
    f->tag = offer.nonce;
    f->digest = (uint64_t)offer.pid << 32 | offer.fd;
    return true;
}

bool lend_heard(struct engine *e, uint32_t number)
{
    struct conn *c = e->conns[number];
    const struct frame *f = &c->rx;
    if (!c->channel || f->size > 0) return false;
    if (f->flags & FLAG_ANSWER) {
        c->lend.taken = e->lend.area != NULL;
        return true;
    }
    struct channel_offer offer = {.pid = (uint32_t)(f->digest >> 32),
                                  .fd = (uint32_t)f->digest,
                                  .size = f->seq,
                                  .nonce = f->tag};
    if (!c->lend.area && offer.size == LEND_SIZE && e->out.borrow)
        c->lend.area = e->out.borrow(e->out.user, number, &offer);
    if (!c->lend.area) return true; /* it goes on without */
    c->lend.answers = true;
    conn_dirty(e, number);
    return true;
}

/* ---------------------------------------------------------- an operation */

static size_t place_size(const struct plan *p)
{
    enum { PAGE = 4096 };
    return LEND_SET / p->r.world / PAGE * PAGE;
}

/* The input for a member lies in its place, the sum in that of who made it. */
static size_t place(const struct plan *p, uint32_t room, uint32_t g,
                    uint32_t rank)
{
    size_t set = (size_t)room * LEND_SETS + g % LEND_SETS;
    return LEND_HEAD + set * LEND_SET + rank * place_size(p);
}

static uint64_t name_of(const struct op *op)
{
    return (uint64_t)op->epoch << 32 | op->seq;
}

/* Before anything else is written there: who still reads what was lent before,
 * and was left out of the view meanwhile, must not take this for it. */
static void sign(struct engine *e, const struct op *op, uint32_t room)
{
    struct lend_head *head = (struct lend_head *)(void *)e->lend.area + room;
    atomic_store_explicit(&head->tag, op->r.tag, memory_order_relaxed);
    atomic_store_explicit(&head->number, name_of(op), memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

void lend_begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    op->room = op->sums_lent = 0;
    op->borrows = false;
    if (p->kind != PLAN_LENT || !op->confirm || !e->lend.area) return;
    assert(p->segment <= place_size(p));
    /* The first one rather, which is in the caches. */
    for (uint32_t room = 0; room < LEND_ROOMS; room++) {
        if (e->lend.users[room]) continue;
        e->lend.users[room] = op;
        op->room = room + 1;
        sign(e, op, room);
        return;
    }
}

void lend_end(struct engine *e, struct op *op)
{
    if (op->room > 0 && e->lend.users[op->room - 1] == op)
        e->lend.users[op->room - 1] = NULL;
    op->room = 0;
}

bool lend_may(const struct conn *c, const struct op *op,
              const struct plan_xfer *x)
{
    return op->room > 0 && c->lend.taken && x->size > 0;
}

void lend_put(struct engine *e, struct op *op, const struct lane *lane,
              uint32_t k, const struct plan_xfer *x, struct frame *f)
{
    uint32_t g;
    bool sum = plan_is_sum(&op->plan, k, &g);
    uint32_t rank = sum ? op->plan.r.rank : lane->rank;
    const void *from = sum ? op->r.recv : op->r.send;
    f->flags |= FLAG_LENT;
    f->size = 0;
    if (sum && g < op->sums_lent) return; /* is there already */
    /* The sum will come here: what it replaces is read once, not twice. */
    if (!sum) op_save_piece(op, rank * op->plan.segments + g);
    if (sum) op->sums_lent = g + 1;
    memcpy(e->lend.area + place(&op->plan, op->room - 1, g, rank),
           (const uint8_t *)from + x->offset, x->size);
}

const uint8_t *lend_area(const struct engine *e, const struct link *l)
{
    for (uint32_t i = 0; i < e->conn_end; i++) {
        const struct conn *c = e->conns[i];
        if (c && c->state == CONN_OPEN && c->link == l && c->lend.area)
            return c->lend.area;
    }
    return NULL;
}

static bool is_named(const struct op *op, const uint8_t *area, uint32_t room)
{
    const struct lend_head *head =
        (const struct lend_head *)(const void *)area + room;
    return atomic_load_explicit(&head->tag, memory_order_relaxed) ==
               op->r.tag &&
           atomic_load_explicit(&head->number, memory_order_relaxed) ==
               name_of(op);
}

uint32_t lend_room(const struct op *op, const uint8_t *area)
{
    uint32_t room = 0;
    while (room < LEND_ROOMS && !is_named(op, area, room)) room++;
    return room;
}

const uint8_t *lend_place(const struct op *op, const uint8_t *area,
                          uint32_t room, uint32_t g, uint32_t rank)
{
    return area + place(&op->plan, room, g, rank);
}

bool lend_stands(const struct op *op, const uint8_t *area, uint32_t room)
{
    atomic_thread_fence(memory_order_acquire);
    return is_named(op, area, room);
}
