/* retain.c - what an engine remembers of operations that are over: the
 * sequence numbers of tags, and results kept for others. Pure; rules D1, D5 to
 * D7 of master/PROTOCOL.md. */
#include "engine.h"

#include <string.h>

static struct tag_entry *tag_slot(const struct engine *e, uint64_t tag)
{
    uint64_t mixed = tag * 0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(mixed >> 48) % TAGS_MAX;
    while (e->tags[at].epoch == e->epoch && e->tags[at].tag != tag)
        at = (at + 1) % TAGS_MAX;
    return &e->tags[at];
}

struct tag_entry *op_tag_entry(const struct engine *e, uint64_t tag)
{
    struct tag_entry *t = tag_slot(e, tag);
    return t->epoch == e->epoch ? t : NULL;
}

/* Rule D1: operations of one tag are numbered within the epoch. */
bool op_take_sequence(struct engine *e, uint64_t tag, uint32_t *seq)
{
    struct tag_entry *t = tag_slot(e, tag);
    if (t->epoch != e->epoch) {
        if (e->tag_count >= TAGS_MAX - 1) return false;
        *t = (struct tag_entry){.tag = tag, .epoch = e->epoch};
        e->tag_count++;
    }
    *seq = t->next++;
    if (e->tag_count > TAGS_MAX / 4 * 3 && !e->tags_reported) {
        e->tags_reported = true;
        e->out.fault(e->out.user, FAULT_TAGS, NULL, 0);
    }
    return true;
}

bool op_is_past(const struct engine *e, uint64_t tag, uint32_t seq)
{
    const struct tag_entry *t = tag_slot(e, tag);
    return t->epoch == e->epoch && t->next > seq;
}

/* A result that is kept for others goes when this peer holds the next one of
 * its tag (D6), whose slot is the same. */
bool op_can_retain(struct engine *e, uint64_t tag)
{
    uint32_t reserved = 0;
    struct retained *before = NULL;
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *op = &e->ops[i];
        reserved += op->phase == PHASE_RUNNING && !op->confirm;
    }
    for (size_t i = 0; i < RETAIN_MAX; i++) {
        struct retained *r = &e->retained[i];
        if (!r->bytes || r->replaced) continue;
        if (r->tag == tag) before = r;
        reserved += r->tag != tag;
    }
    if (reserved >= RETAIN_MAX) return false;
    if (before) before->replaced = true;
    return true;
}

/* Rule D5. A slot was reserved at the launch. */
bool op_retain(struct engine *e, const struct op *op, uint32_t size)
{
    struct retained *r = e->retained;
    while (r->bytes) {
        r++;
        assert(r < e->retained + RETAIN_MAX);
    }
    r->bytes = pool_take(&e->pool, size);
    if (!r->bytes) return false;
    if (size > 0) memcpy(r->bytes, op->r.recv, size);
    r->replaced = false;
    r->tag = op->r.tag;
    r->seq = op->seq;
    r->size = r->room = size;
    r->finished = e->clock;
    return true;
}

/* Rule D6: who has begun (tag, seq) has returned from (tag, seq - 1). */
void op_drop_older(struct engine *e, uint64_t tag, uint32_t seq)
{
    for (size_t i = 0; i < RETAIN_MAX; i++) {
        struct retained *r = &e->retained[i];
        if (!r->bytes || r->tag != tag || r->seq >= seq) continue;
        pool_give(&e->pool, r->bytes);
        r->bytes = NULL;
    }
}

/* Rule D7: everybody was idle but for this operation when he held it, so all
 * hold what this peer had finished before it launched it. */
void op_drop_finished_before(struct engine *e, uint64_t launched)
{
    for (size_t i = 0; i < RETAIN_MAX; i++) {
        struct retained *r = &e->retained[i];
        if (!r->bytes || r->finished >= launched) continue;
        pool_give(&e->pool, r->bytes);
        r->bytes = NULL;
    }
}
