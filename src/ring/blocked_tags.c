/* blocked_tags.c - members that use a tag in scopes that wait for each other:
 * the part of the data plane in rule V6.
 *
 * A member that runs an operation and has received a frame of another one of
 * the same tag cannot launch that one. So that each operation is known to some
 * member that lacks it, all partners get a frame sooner or later: those whom
 * the launch did not tell (rule D2c), late. */
#include "op.h"

#include <string.h>

/* Once: frames of what cannot be launched may have come from several
 * members. */
static uint32_t add_pair(struct wire_op *pairs, uint32_t count,
                         const struct wire_op *use, const struct wire_op *lacks)
{
    for (uint32_t i = 0; i + 1 < count; i += 2)
        if (wire_same_op(&pairs[i], use) && pairs[i].state == use->state &&
            wire_same_op(&pairs[i + 1], lacks))
            return count;
    if (count + 2 > WIRE_OPS_MAX) return count;
    pairs[count++] = *use;
    pairs[count++] = *lacks;
    return count;
}

void engine_lost(struct engine *e, uint64_t tag, uint32_t epoch)
{
    e->ended[e->ended_last++ % ENDED_MAX] =
        (struct ended_tag){.tag = tag, .epoch = epoch, .lost = true};
}

void engine_ended(struct engine *e, uint64_t scope, uint64_t tag,
                  uint32_t epoch)
{
    e->ended[e->ended_last++ % ENDED_MAX] =
        (struct ended_tag){.scope = scope, .tag = tag, .epoch = epoch};
}

void engine_used(struct engine *e, uint64_t tag)
{
    for (uint32_t i = 0; i < ENDED_MAX && i < e->ended_last; i++)
        if (e->ended[i].tag == tag) e->ended[i].epoch = 0;
}

void engine_forget_ended(struct engine *e)
{
    e->ended_last = 0;
    memset(e->ended, 0, sizeof e->ended);
}

static struct wire_op name_of(const struct ended_tag *t)
{
    return (struct wire_op){.scope = t->scope,
                            .tag = t->tag,
                            .seq = t->epoch,
                            .state = t->lost ? OP_RETURNED : OP_ENDED};
}

void engine_list_ended(const struct engine *e, struct wire_msg *msg,
                       struct wire_op *ops)
{
    for (uint32_t i = 0; i < ENDED_MAX && msg->op_count < OPS_MAX; i++)
        if (e->ended[i].epoch > 0 && !e->ended[i].lost)
            ops[msg->op_count++] = name_of(&e->ended[i]);
}

void engine_settle(struct engine *e, const struct wire_op *name)
{
    for (uint32_t i = 0; i < ENDED_MAX; i++) {
        struct ended_tag *t = &e->ended[i];
        const struct wire_op own = name_of(t);
        t->settled |= !t->lost && wire_same_op(&own, name);
    }
}

bool engine_settled(struct engine *e, uint64_t *tag)
{
    for (uint32_t i = 0; i < ENDED_MAX; i++) {
        if (!e->ended[i].settled) continue;
        *tag = e->ended[i].tag;
        e->ended[i] = (struct ended_tag){0};
        return true;
    }
    return false;
}

void op_set_told(struct op *op, uint32_t epoch)
{
    op->told = epoch;
}

/* What the tag is used for here, or what has ended with an error (V6f, V6g). */
static uint32_t add_uses(struct engine *e, const struct frame *f,
                         struct wire_op *pairs, uint32_t count)
{
    const struct wire_op lacks = {
        .scope = f->scope, .tag = f->tag, .seq = f->seq};
    const struct op *op = engine_find(e, f->tag);
    if (op) {
        const struct wire_op use = op_name(op);
        bool blocks = op_is_active(op) && op->scope_number != f->scope;
        return blocks ? add_pair(pairs, count, &use, &lacks) : count;
    }
    for (uint32_t i = 0; i < ENDED_MAX; i++) {
        const struct ended_tag *t = &e->ended[i];
        const struct wire_op use = name_of(t);
        if (t->epoch > 0 && t->tag == f->tag && t->scope != f->scope)
            count = add_pair(pairs, count, &use, &lacks);
    }
    return count;
}

static uint32_t add_blocked(struct engine *e, const struct link *l,
                            struct wire_op *pairs, uint32_t count)
{
    for (const struct unexpected *k = l->unexpected; k; k = k->next)
        count = add_uses(e, &k->frame, pairs, count);
    return count;
}

/* In a tree a member is silent until it is asked (rule D17c). */
static void announce_late(struct engine *e, struct op *op)
{
    for (uint32_t i = 0; i < op->ep_count; i++) {
        struct endpoint *ep = &op->eps[i];
        bool told = ep->announced || ep->ready || !op_exchanges(ep);
        if (told || op->phase != PHASE_RUNNING) continue;
        ep->announced = true;
        op_control_send(e, op, ep, FRAME_READY, 0, 0);
    }
}

/* An operation in a scope that was launched before the program knew of a loss
 * waits for those of its tag that met the loss (rule V6f). */
static uint32_t add_untold(const struct engine *e, const struct op *op,
                           struct wire_op *pairs, uint32_t count)
{
    if (!op_is_active(op) || op->whole || op->told == 0) return count;
    if (op->told >= e->links.epoch || count + 2 > WIRE_OPS_MAX) return count;
    pairs[count++] = op_name(op);
    pairs[count++] = (struct wire_op){
        .tag = op->r.tag, .seq = op->told, .state = OP_RETURNED};
    return count;
}

uint32_t engine_blocked(struct engine *e, struct wire_op *pairs)
{
    uint32_t count = 0;
    bool idle = !engine_has_work(e) && e->links.unexpected_links == 0;
    if (idle || e->links.frozen) return 0;
    for (uint32_t i = 0; i < e->op_end && !e->links.frozen; i++)
        announce_late(e, &e->ops[i]);
    for (size_t i = 0; i < ARRAY_COUNT(e->links.table); i++) {
        for (const struct link *l = e->links.table[i]; l; l = l->next)
            count = add_blocked(e, l, pairs, count);
    }
    for (uint32_t i = 0; i < e->op_end; i++)
        count = add_untold(e, &e->ops[i], pairs, count);
    return count;
}
