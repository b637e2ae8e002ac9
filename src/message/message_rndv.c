/* message_rndv.c - transfers of any size from and to user memory. See
 * message.h; rules in MESSAGES.md. */
#include "message.h"

#include "../../include/pccl.h"
#include "../link/link.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct rndv *rndv_of(struct keyed *keyed)
{
    if (!keyed) return NULL;
    return (struct rndv *)(void *)((char *)keyed -
                                   offsetof(struct rndv, keyed));
}

static struct rndv *find_key(struct keyed_table *table, uint64_t key)
{
    return rndv_of(keyed_find(table, key));
}

struct rndv *p2p_link_find_rndv(struct p2p_link *l, const struct frame *f)
{
    struct rndv *b = find_key(&l->expects, f->tag);
    return b && b->number == f->index ? b : NULL;
}

static struct rndv *new_rndv(struct messages *m, struct keyed_table *table,
                             enum message_event_kind kind, uint64_t member,
                             uint64_t key, size_t size)
{
    struct rndv *b = pool_take(&m->links->pool, sizeof *b);
    if (!b) return NULL;
    *b = (struct rndv){.event = {.kind = kind, .member = member, .key = key},
                       .keyed = {.key = key},
                       .size = size};
    keyed_add(table, &b->keyed);
    return b;
}

void p2p_link_run(struct p2p_link *l, struct rndv *b)
{
    b->state = RNDV_RUNS;
    b->next = NULL;
    b->previous = l->running_last;
    if (b->previous)
        b->previous->next = b;
    else
        l->running = b;
    l->running_last = b;
}

void p2p_link_pause(struct p2p_link *l, struct rndv *b)
{
    if (b->state != RNDV_RUNS) return;
    b->state = RNDV_WAITS;
    if (b->previous)
        b->previous->next = b->next;
    else
        l->running = b->next;
    if (b->next)
        b->next->previous = b->previous;
    else
        l->running_last = b->previous;
}

void p2p_link_end_rndv(struct messages *m, struct p2p_link *l, struct rndv *b,
                       int result)
{
    bool sends = b->event.kind == EVENT_SENT;
    if (sends) p2p_link_pause(l, b);
    keyed_remove(sends ? &l->sends : &l->expects, &b->keyed);
    b->event.result = result;
    p2p_link_push(m, &b->event);
}

void p2p_link_end_all(struct messages *m, struct keyed_table *table, int result)
{
    for (struct keyed *at = keyed_take_all(table), *next; at; at = next) {
        next = at->next;
        struct rndv *b = rndv_of(at);
        b->event.result = result;
        p2p_link_push(m, &b->event);
    }
}

static void begin_send(struct messages *m, struct p2p_link *l, struct rndv *b,
                       uint32_t number, uint64_t size, bool uses_cma)
{
    b->number = number;
    b->uses_cma = uses_cma;
    b->done = 0;
    if (b->size == size) {
        p2p_link_run(l, b);
        p2p_link_dirty(m, l);
        p2p_link_want(m, l);
        return;
    }
    (void)p2p_link_control(m, l, FRAME_REFUSE, b->event.key, number, 0);
    p2p_link_end_rndv(m, l, b, pcclInvalidArgument);
}

static bool take_expected(struct p2p_link *l, uint64_t key,
                          struct expected *out)
{
    struct keyed *keyed = keyed_find(&l->expected, key);
    if (!keyed) return false;
    *out = *(struct expected *)keyed;
    keyed_remove(&l->expected, keyed);
    free(keyed);
    return true;
}

int message_send_rndv(struct messages *m, uint64_t to, uint64_t key,
                      const void *send, size_t size)
{
    int result;
    struct expected x;
    struct p2p_link *l = p2p_link_to(m, to, &result);
    if (!l) return result;
    if (find_key(&l->sends, key)) return pcclInvalidArgument;
    struct rndv *b = new_rndv(m, &l->sends, EVENT_SENT, to, key, size);
    if (!b) return pcclInternalError;
    b->send = send;
    if (take_expected(l, key, &x))
        begin_send(m, l, b, x.number, x.size, x.uses_cma);
    return pcclSuccess;
}

/* Rule P2P-9a. */
static bool wants_cma(const struct messages *m, const struct p2p_link *l,
                      struct rndv *b)
{
    const struct driver *d = &m->links->driver;
    const struct wire_member *member = links_member(m->links, l->id);
    b->compared = false;
    if (!d->cma_read || l->barred || !member || member->host != m->links->host)
        return false;
    if (b->size >= CMA_MIN) return true;
    if (b->size < CMA_TRY_MIN || !d->cma_prefers || !l->open) return false;
    b->compared = l->expects.count == 1;
    return d->cma_prefers(d->user, l->conn, (size_t)b->size, b->compared);
}

bool p2p_link_announce(struct messages *m, struct p2p_link *l, struct rndv *b)
{
    b->uses_cma = wants_cma(m, l, b);
    return p2p_link_flagged(m, l, FRAME_EXPECT, b->uses_cma ? FLAG_CMA : 0,
                            b->event.key, b->number, b->size);
}

int message_recv_rndv(struct messages *m, uint64_t from, uint64_t key,
                      void *recv, size_t size)
{
    int result;
    struct p2p_link *l = p2p_link_to(m, from, &result);
    if (!l) return result;
    if (find_key(&l->expects, key)) return pcclInvalidArgument;
    if (l->expects.count >= EXPECTS_MAX) return pcclPendingAsyncOps;
    struct rndv *b = new_rndv(m, &l->expects, EVENT_RECEIVED, from, key, size);
    if (!b) return pcclInternalError;
    b->recv = recv;
    b->number = l->number++;
    if (!p2p_link_announce(m, l, b)) {
        p2p_link_end_rndv(m, l, b, pcclInternalError);
        return pcclSuccess;
    }
    p2p_link_want(m, l);
    return pcclSuccess;
}

int message_cancel_recv(struct messages *m, uint64_t from, uint64_t key)
{
    struct p2p_link *l = p2p_link_find(m, from, false);
    struct rndv *b = l ? find_key(&l->expects, key) : NULL;
    if (!b) return pcclInvalidUsage;
    if (!p2p_link_control(m, l, FRAME_CANCEL, key, b->number, 0))
        return pcclInternalError;
    struct conn *c = l->open ? m->links->conns[l->conn] : NULL;
    if (c && l->rx_rndv == b) {
        l->rx_rndv = NULL;
        c->rx_state = RX_DISCARD;
    }
    keyed_remove(&l->expects, &b->keyed);
    pool_give(&m->links->pool, b);
    return pcclSuccess;
}

/* The expects of the other end are stored until it cancels them. */
int message_cancel_send(struct messages *m, uint64_t to, uint64_t key)
{
    struct p2p_link *l = p2p_link_find(m, to, false);
    struct rndv *b = l ? find_key(&l->sends, key) : NULL;
    if (!b) return pcclInvalidUsage;
    if (b->state != RNDV_WAITS) return pcclPendingAsyncOps;
    /* A piece that was begun before a cancel is sent to its end. */
    for (uint32_t i = 0; i < l->count; i++) {
        const struct frame *f =
            &l->items[(l->first + i) & (l->capacity - 1)].frame;
        if (f->type == FRAME_RNDV && f->tag == key) return pcclPendingAsyncOps;
        if (f->type == FRAME_CMA && f->tag == key) return pcclPendingAsyncOps;
    }
    keyed_remove(&l->sends, &b->keyed);
    pool_give(&m->links->pool, b);
    return pcclSuccess;
}

bool p2p_link_on_expect(struct messages *m, struct p2p_link *l,
                        const struct frame *f)
{
    bool uses_cma = (f->flags & FLAG_CMA) != 0;
    struct rndv *b = find_key(&l->sends, f->tag);
    if (b && b->state == RNDV_WAITS) {
        begin_send(m, l, b, f->index, f->digest, uses_cma);
        return true;
    }
    /* The other end keeps to the limit. */
    struct expected *x =
        l->expected.count < EXPECTS_MAX ? malloc(sizeof *x) : NULL;
    if (!x) return false;
    *x = (struct expected){{.key = f->tag}, f->digest, f->index, uses_cma};
    keyed_add(&l->expected, &x->keyed);
    return true;
}

/* The other end reports about an expect that it made. */
void p2p_link_on_word(struct messages *m, struct p2p_link *l,
                      const struct frame *f)
{
    struct expected x;
    if (f->type == FRAME_CANCEL && take_expected(l, f->tag, &x)) return;
    struct rndv *b = find_key(&l->sends, f->tag);
    if (!b || b->state == RNDV_WAITS || b->number != f->index) return;
    /* The other end drops the pieces under way. */
    if (f->type == FRAME_CANCEL) {
        p2p_link_pause(l, b);
        b->state = RNDV_WAITS;
    }
    if (f->type == FRAME_GOT && b->state == RNDV_CUT)
        p2p_link_end_rndv(m, l, b, pcclSuccess);
}
