/* message_bulk.c - transfers of any size from and to user memory. See
 * message.h; rules in master/PROTOCOL.md. */
#include "engine.h"

#include "../../include/pccl.h"

#include <stdlib.h>
#include <string.h>

struct bulk *mlink_find_bulk(struct mlink *l, uint32_t number)
{
    struct bulk *b = l->expects;
    while (b && b->number != number) b = b->next;
    return b;
}

static struct bulk *find_key(struct bulk *b, uint64_t key)
{
    while (b && b->event.key != key) b = b->next;
    return b;
}

static struct bulk *new_bulk(struct engine *e, struct bulk **list,
                             enum message_event_kind kind, uint64_t member,
                             uint64_t key, size_t size)
{
    struct bulk *b = pool_take(&e->pool, sizeof *b);
    if (!b) return NULL;
    *b = (struct bulk){.event = {.kind = kind, .member = member, .key = key},
                       .size = size};
    while (*list) list = &(*list)->next;
    *list = b;
    return b;
}

static void begin_send(struct engine *e, struct mlink *l, struct bulk *b,
                       uint32_t number, uint64_t size, bool lends)
{
    b->number = number;
    b->lends = lends;
    b->done = 0;
    if (b->size == size) {
        b->state = BULK_RUNS;
        mlink_dirty(e, l);
        mlink_want(e, l);
        return;
    }
    (void)mlink_control(e, l, FRAME_REFUSE, b->event.key, number, 0);
    mlink_push_bulk(e, &l->sends, b, pcclInvalidArgument);
}

static bool take_expected(struct mlink *l, uint64_t key, struct expected *out)
{
    struct expected **slot = &l->expected;
    while (*slot && (*slot)->key != key) slot = &(*slot)->next;
    struct expected *x = *slot;
    if (!x) return false;
    *out = *x;
    *slot = x->next;
    free(x);
    l->expected_count--;
    return true;
}

int message_send_bulk(struct engine *e, uint64_t to, uint64_t key,
                      const void *from, size_t size)
{
    int result;
    struct expected x;
    struct mlink *l = mlink_to(e, to, &result);
    if (!l) return result;
    if (find_key(l->sends, key)) return pcclInvalidArgument;
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
    bool fetch = e->out.fetch && !l->barred && b->size >= LEND_MIN && member &&
                 member->host == e->host;
    return mlink_flagged(e, l, FRAME_EXPECT, fetch ? FLAG_FETCH : 0,
                         b->event.key, b->number, b->size);
}

int message_expect_bulk(struct engine *e, uint64_t from, uint64_t key, void *to,
                        size_t size)
{
    int result;
    struct mlink *l = mlink_to(e, from, &result);
    if (!l) return result;
    if (find_key(l->expects, key)) return pcclInvalidArgument;
    struct bulk *b = new_bulk(e, &l->expects, EVENT_RECEIVED, from, key, size);
    if (!b) return pcclInternalError;
    b->to = to;
    b->number = l->number++;
    if (!mlink_announce(e, l, b)) {
        mlink_push_bulk(e, &l->expects, b, pcclInternalError);
        return pcclSuccess;
    }
    mlink_want(e, l);
    return pcclSuccess;
}

int message_cancel_bulk(struct engine *e, uint64_t from, uint64_t key)
{
    struct mlink *l = mlink_find(e, from, false);
    struct bulk *b = l ? find_key(l->expects, key) : NULL;
    if (!b) return pcclInvalidUsage;
    if (!mlink_control(e, l, FRAME_CANCEL, key, b->number, 0))
        return pcclInternalError;
    struct conn *c = l->open ? e->conns[l->conn] : NULL;
    if (c && c->rx_bulk == b) {
        c->rx_bulk = NULL;
        c->sink = SINK_DISCARD;
    }
    struct bulk **slot = &l->expects;
    while (*slot != b) slot = &(*slot)->next;
    *slot = b->next;
    pool_give(&e->pool, b);
    return pcclSuccess;
}

/* What the other end expects is kept until it cancels. */
int message_withdraw_bulk(struct engine *e, uint64_t to, uint64_t key)
{
    struct mlink *l = mlink_find(e, to, false);
    struct bulk *b = l ? find_key(l->sends, key) : NULL;
    if (!b) return pcclInvalidUsage;
    if (b->state != BULK_WAITS) return pcclPendingAsyncOps;
    /* Pieces that were cut before a cancel are sent to their end. */
    for (uint32_t i = 0; i < l->count; i++) {
        const struct frame *f =
            &l->items[(l->first + i) & (l->capacity - 1)].frame;
        if (f->type == FRAME_BULK && f->tag == key) return pcclPendingAsyncOps;
        if (f->type == FRAME_LEND && f->tag == key) return pcclPendingAsyncOps;
    }
    struct bulk **slot = &l->sends;
    while (*slot != b) slot = &(*slot)->next;
    *slot = b->next;
    pool_give(&e->pool, b);
    return pcclSuccess;
}

bool mlink_on_expect(struct engine *e, struct mlink *l, const struct frame *f)
{
    bool lends = (f->flags & FLAG_FETCH) != 0;
    struct bulk *b = l->sends;
    while (b && (b->event.key != f->tag || b->state != BULK_WAITS)) b = b->next;
    if (b) {
        begin_send(e, l, b, f->index, f->digest, lends);
        return true;
    }
    struct expected *x =
        l->expected_count < EXPECTED_MAX ? malloc(sizeof *x) : NULL;
    if (!x) return false;
    *x = (struct expected){l->expected, f->tag, f->digest, f->index, lends};
    l->expected = x;
    l->expected_count++;
    return true;
}

/* What the other end says about an expect that it made. */
void mlink_on_word(struct engine *e, struct mlink *l, const struct frame *f)
{
    struct expected x;
    if (f->type == FRAME_CANCEL && take_expected(l, f->tag, &x)) return;
    struct bulk *b = find_key(l->sends, f->tag);
    if (!b || b->state == BULK_WAITS || b->number != f->index) return;
    /* Pieces under way are dropped over there. */
    if (f->type == FRAME_CANCEL) b->state = BULK_WAITS;
    if (f->type == FRAME_GOT && b->state == BULK_CUT)
        mlink_push_bulk(e, &l->sends, b, pcclSuccess);
}
