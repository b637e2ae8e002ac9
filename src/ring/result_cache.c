/* result_cache.c - the memory of finished operations: the sequence numbers of
 * tags, and the result cache. Pure; rules D1, D5 to D7 of
 * ALGORITHMS.md. */
#include "op.h"

#include "algorithm.h"

#include "../base/buggify.h"

#include <string.h>

/* Epoch 0 is before the first view: no entry is of it. */
static bool in_use(const struct engine *e, const struct tag_entry *t)
{
    return t->epoch == e->links.view->epoch && t->epoch != 0;
}

static struct tag_entry *tag_slot(const struct engine *e, uint64_t scope,
                                  uint64_t tag)
{
    uint64_t mixed = (tag ^ scope) * 0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(mixed >> 48) % TAGS_MAX;
    while (in_use(e, &e->tags[at]) &&
           (e->tags[at].tag != tag || e->tags[at].scope != scope))
        at = (at + 1) % TAGS_MAX;
    return &e->tags[at];
}

struct tag_entry *op_tag_entry(const struct engine *e, uint64_t scope,
                               uint64_t tag)
{
    struct tag_entry *t = tag_slot(e, scope, tag);
    return in_use(e, t) ? t : NULL;
}

/* Rule D1: operations of one tag and scope are numbered within the epoch. */
uint32_t op_next_sequence(const struct engine *e, const struct op *op)
{
    const struct tag_entry *t = op_tag_entry(e, op->scope_number, op->r.tag);
    return t ? t->next : 0;
}

bool op_take_sequence(struct engine *e, const struct op *op)
{
    struct tag_entry *t = tag_slot(e, op->scope_number, op->r.tag);
    if (!in_use(e, t)) {
        if (e->tag_count >= TAGS_MAX - 1) return false;
        *t = (struct tag_entry){.scope = op->scope_number,
                                .tag = op->r.tag,
                                .epoch = e->links.view->epoch};
        e->tag_count++;
    }
    t->next++;
    bool full = e->tag_count > TAGS_MAX / 4 * 3 || PCCL_BUGGIFY(tags_full);
    if (full && !e->tags_reported) {
        e->tags_reported = true;
        e->out.fault(e->out.user, FAULT_TAGS, NULL, 0);
    }
    return true;
}

bool engine_is_past(const struct engine *e, uint64_t scope, uint64_t tag,
                    uint32_t seq)
{
    const struct tag_entry *t = tag_slot(e, scope, tag);
    return in_use(e, t) && t->next > seq;
}

/* Each tag of a scope has at most one result, see op_drop_older(). */
struct cached_result *op_cached_result(struct engine *e, uint64_t scope,
                                       uint64_t tag)
{
    const struct tag_entry *t = op_tag_entry(e, scope, tag);
    return t && t->cached > 0 ? &e->results[t->cached - 1] : NULL;
}

static void drop(struct engine *e, struct cached_result *r)
{
    struct tag_entry *t = op_tag_entry(e, r->scope, r->tag);
    if (t) t->cached = 0;
    e->results_used &= ~((uint64_t)1 << (r - e->results));
    e->reserved -= !r->replaced;
    pool_give(&e->links.pool, r->bytes);
    r->bytes = NULL;
}

/* A cached result is dropped when this peer holds the next result of its tag
 * (D6). Both use the same slot. */
bool op_reserve_result(struct engine *e, struct op *op)
{
    struct cached_result *before =
        op_cached_result(e, op->scope_number, op->r.tag);
    if (before && before->replaced) before = NULL;
    if (!before && e->reserved >= RESULTS_MAX) return false;
    if (before) before->replaced = true;
    e->reserved += !before;
    op->reserved = true;
    return true;
}

void op_release_result(struct engine *e, struct op *op)
{
    e->reserved -= op->reserved;
    op->reserved = false;
}

/* Rule D5. The launch has reserved a slot. */
bool op_cache_result(struct engine *e, struct op *op, uint32_t size)
{
    PCCL_ASSERT(~e->results_used != 0);
    uint32_t number = (uint32_t)__builtin_ctzll(~e->results_used);
    struct cached_result *r = &e->results[number];
    if (PCCL_BUGGIFY(copy_fails)) return false;
    r->bytes = pool_take(&e->links.pool, size);
    if (!r->bytes) return false;
    if (size > 0) memcpy(r->bytes, op->r.recvbuf, size);
    e->results_used |= (uint64_t)1 << number;
    op_tag_entry(e, op->scope_number, op->r.tag)->cached =
        (uint8_t)(number + 1);
    op_release_result(e, op);
    e->reserved++;
    r->replaced = false;
    r->scope = op->scope_number;
    r->tag = op->r.tag;
    r->seq = op->seq;
    r->size = r->room = size;
    r->old = false;
    return true;
}

/* Rule D6: a member that has begun an operation has returned from the one of
 * the same tag and scope before it. */
void op_drop_older(struct engine *e, const struct op *op)
{
    struct cached_result *r = op_cached_result(e, op->scope_number, op->r.tag);
    if (r) drop(e, r);
}

/* Rule D7. One operation at a time: where many are under way, hardly any DONE
 * is clean. */
void op_begin_sweep(struct engine *e, const struct op *op)
{
    if (e->sweeper || !op->confirm || !op->whole) return;
    if (PCCL_BUGGIFY(never_sweeps)) return;
    if (!op->plan.algorithm->awaits_all) return;
    e->sweeper = op;
    for (uint64_t left = e->results_used; left != 0; left &= left - 1)
        e->results[__builtin_ctzll(left)].old = true;
}

/* Each member was idle except for this operation when it held the result. So
 * all hold the results that this peer had before it launched this operation. */
void op_sweep(struct engine *e, const struct op *op)
{
    if (e->sweeper != op || !op->cleared || PCCL_BUGGIFY(copies_stay)) return;
    for (uint64_t left = e->results_used; left != 0; left &= left - 1) {
        struct cached_result *r = &e->results[__builtin_ctzll(left)];
        if (r->old) drop(e, r);
    }
}

void op_drop_results(struct engine *e)
{
    for (uint64_t left = e->results_used; left != 0; left &= left - 1)
        drop(e, &e->results[__builtin_ctzll(left)]);
}
