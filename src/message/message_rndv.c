/* message_rndv.c - transfers of any size from and to user memory. See
 * message.h; rules in master/PROTOCOL.md. */
#include "../ring/op.h"

#include "../../include/pccl.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct bulk *bulk_of(struct keyed *keyed)
{
    if (!keyed) return NULL;
    return (struct bulk *)(void *)((char *)keyed -
                                   offsetof(struct bulk, keyed));
}

static struct bulk *find_key(struct keyed_table *table, uint64_t key)
{
    return bulk_of(keyed_find(table, key));
}

struct bulk *mlink_find_bulk(struct mlink *l, const struct frame *f)
{
    struct bulk *b = find_key(&l->expects, f->tag);
    return b && b->number == f->index ? b : NULL;
}

static struct bulk *new_bulk(struct engine *e, struct keyed_table *table,
                             enum message_event_kind kind, uint64_t member,
                             uint64_t key, size_t size)
{
    struct bulk *b = pool_take(&e->links.pool, sizeof *b);
    if (!b) return NULL;
    *b = (struct bulk){.event = {.kind = kind, .member = member, .key = key},
                       .keyed = {.key = key},
                       .size = size};
    keyed_add(table, &b->keyed);
    return b;
}

void mlink_run(struct mlink *l, struct bulk *b)
{
    b->state = BULK_RUNS;
    b->next = NULL;
    b->previous = l->running_last;
    if (b->previous)
        b->previous->next = b;
    else
        l->running = b;
    l->running_last = b;
}

void mlink_pause(struct mlink *l, struct bulk *b)
{
    if (b->state != BULK_RUNS) return;
    b->state = BULK_WAITS;
    if (b->previous)
        b->previous->next = b->next;
    else
        l->running = b->next;
    if (b->next)
        b->next->previous = b->previous;
    else
        l->running_last = b->previous;
}

void mlink_end_bulk(struct engine *e, struct mlink *l, struct bulk *b,
                    int result)
{
    bool sends = b->event.kind == EVENT_SENT;
    if (sends) mlink_pause(l, b);
    keyed_remove(sends ? &l->sends : &l->expects, &b->keyed);
    b->event.result = result;
    mlink_push(e, &b->event);
}

void mlink_end_all(struct engine *e, struct keyed_table *table, int result)
{
    for (struct keyed *at = keyed_take_all(table), *next; at; at = next) {
        next = at->next;
        struct bulk *b = bulk_of(at);
        b->event.result = result;
        mlink_push(e, &b->event);
    }
}

static void begin_send(struct engine *e, struct mlink *l, struct bulk *b,
                       uint32_t number, uint64_t size, bool lends)
{
    b->number = number;
    b->lends = lends;
    b->done = 0;
    if (b->size == size) {
        mlink_run(l, b);
        mlink_dirty(e, l);
        mlink_want(e, l);
        return;
    }
    (void)mlink_control(e, l, FRAME_REFUSE, b->event.key, number, 0);
    mlink_end_bulk(e, l, b, pcclInvalidArgument);
}

static bool take_expected(struct mlink *l, uint64_t key, struct expected *out)
{
    struct keyed *keyed = keyed_find(&l->expected, key);
    if (!keyed) return false;
    *out = *(struct expected *)keyed;
    keyed_remove(&l->expected, keyed);
    free(keyed);
    return true;
}

int message_send_bulk(struct engine *e, uint64_t to, uint64_t key,
                      const void *from, size_t size)
{
    int result;
    struct expected x;
    struct mlink *l = mlink_to(e, to, &result);
    if (!l) return result;
    if (find_key(&l->sends, key)) return pcclInvalidArgument;
    struct bulk *b = new_bulk(e, &l->sends, EVENT_SENT, to, key, size);
    if (!b) return pcclInternalError;
    b->from = from;
    if (take_expected(l, key, &x))
        begin_send(e, l, b, x.number, x.size, x.lends);
    return pcclSuccess;
}

/* Rule P2P-9: of a member of this host large data are fetched. */
bool mlink_announce(struct engine *e, struct mlink *l, const struct bulk *b)
{
    const struct wire_member *member = engine_member(e, l->id);
    bool fetch = e->out.cma_read && !l->barred && b->size >= CMA_MIN &&
                 member && member->host == e->links.host;
    return mlink_flagged(e, l, FRAME_EXPECT, fetch ? FLAG_CMA : 0, b->event.key,
                         b->number, b->size);
}

int message_expect_bulk(struct engine *e, uint64_t from, uint64_t key, void *to,
                        size_t size)
{
    int result;
    struct mlink *l = mlink_to(e, from, &result);
    if (!l) return result;
    if (find_key(&l->expects, key)) return pcclInvalidArgument;
    if (l->expects.count >= EXPECTS_MAX) return pcclPendingAsyncOps;
    struct bulk *b = new_bulk(e, &l->expects, EVENT_RECEIVED, from, key, size);
    if (!b) return pcclInternalError;
    b->to = to;
    b->number = l->number++;
    if (!mlink_announce(e, l, b)) {
        mlink_end_bulk(e, l, b, pcclInternalError);
        return pcclSuccess;
    }
    mlink_want(e, l);
    return pcclSuccess;
}

int message_cancel_bulk(struct engine *e, uint64_t from, uint64_t key)
{
    struct mlink *l = mlink_find(e, from, false);
    struct bulk *b = l ? find_key(&l->expects, key) : NULL;
    if (!b) return pcclInvalidUsage;
    if (!mlink_control(e, l, FRAME_CANCEL, key, b->number, 0))
        return pcclInternalError;
    struct conn *c = l->open ? e->links.conns[l->conn] : NULL;
    if (c && c->rx_bulk == b) {
        c->rx_bulk = NULL;
        c->sink = SINK_DISCARD;
    }
    keyed_remove(&l->expects, &b->keyed);
    pool_give(&e->links.pool, b);
    return pcclSuccess;
}

/* What the other end expects is kept until it cancels. */
int message_withdraw_bulk(struct engine *e, uint64_t to, uint64_t key)
{
    struct mlink *l = mlink_find(e, to, false);
    struct bulk *b = l ? find_key(&l->sends, key) : NULL;
    if (!b) return pcclInvalidUsage;
    if (b->state != BULK_WAITS) return pcclPendingAsyncOps;
    /* Pieces that were cut before a cancel are sent to their end. */
    for (uint32_t i = 0; i < l->count; i++) {
        const struct frame *f =
            &l->items[(l->first + i) & (l->capacity - 1)].frame;
        if (f->type == FRAME_BULK && f->tag == key) return pcclPendingAsyncOps;
        if (f->type == FRAME_CMA && f->tag == key) return pcclPendingAsyncOps;
    }
    keyed_remove(&l->sends, &b->keyed);
    pool_give(&e->links.pool, b);
    return pcclSuccess;
}

bool mlink_on_expect(struct engine *e, struct mlink *l, const struct frame *f)
{
    bool lends = (f->flags & FLAG_CMA) != 0;
    struct bulk *b = find_key(&l->sends, f->tag);
    if (b && b->state == BULK_WAITS) {
        begin_send(e, l, b, f->index, f->digest, lends);
        return true;
    }
    /* The other end keeps to the limit. */
    struct expected *x =
        l->expected.count < EXPECTS_MAX ? malloc(sizeof *x) : NULL;
    if (!x) return false;
    *x = (struct expected){{.key = f->tag}, f->digest, f->index, lends};
    keyed_add(&l->expected, &x->keyed);
    return true;
}

/* What the other end says about an expect that it made. */
void mlink_on_word(struct engine *e, struct mlink *l, const struct frame *f)
{
    struct expected x;
    if (f->type == FRAME_CANCEL && take_expected(l, f->tag, &x)) return;
    struct bulk *b = find_key(&l->sends, f->tag);
    if (!b || b->state == BULK_WAITS || b->number != f->index) return;
    /* Pieces under way are dropped over there. */
    if (f->type == FRAME_CANCEL) {
        mlink_pause(l, b);
        b->state = BULK_WAITS;
    }
    if (f->type == FRAME_GOT && b->state == BULK_CUT)
        mlink_end_bulk(e, l, b, pcclSuccess);
}
