/* blocked_tags.c - members that use a tag in scopes that wait for each other:
 * the part of the data plane in rule V6.
 *
 * A member that runs an operation and has received a frame of another one of
 * the same tag cannot launch that one. So that each operation is known to some
 * member that lacks it, all partners get a frame sooner or later: those whom
 * the launch did not tell (rule D2c), late. */
#include "op.h"

/* Frames of the operation that cannot be launched came from several members. */
static bool has_pair(const struct wire_op *pairs, uint32_t count,
                     const struct wire_op *lacks)
{
    for (uint32_t i = 1; i < count; i += 2) {
        if (wire_same_op(&pairs[i], lacks)) return true;
    }
    return false;
}

void engine_ended(struct engine *e, uint64_t tag, uint32_t epoch)
{
    e->ended[e->ended_last++ % ENDED_MAX] = (struct ended_tag){tag, epoch};
}

void engine_used(struct engine *e, uint64_t tag)
{
    for (uint32_t i = 0; i < ENDED_MAX && i < e->ended_last; i++)
        if (e->ended[i].tag == tag) e->ended[i].epoch = 0;
}

void op_set_told(struct op *op, uint32_t epoch)
{
    op->told = epoch;
}

/* What the tag is used for here, or was with a loss (rule V6f). */
static bool use_of(struct engine *e, const struct frame *f, struct wire_op *use)
{
    const struct op *op = engine_find(e, f->tag);
    if (op) *use = op_name(op);
    if (op) return op_is_active(op) && op->scope_number != f->scope;
    for (uint32_t i = 0; i < ENDED_MAX; i++) {
        if (e->ended[i].tag != f->tag || e->ended[i].epoch == 0) continue;
        *use = (struct wire_op){
            .tag = f->tag, .seq = e->ended[i].epoch, .state = OP_RETURNED};
        return f->scope != 0;
    }
    return false;
}

static uint32_t add_blocked(struct engine *e, const struct link *l,
                            struct wire_op *pairs, uint32_t count)
{
    for (const struct unexpected *k = l->unexpected;
         k && count + 2 <= WIRE_OPS_MAX; k = k->next) {
        const struct frame *f = &k->frame;
        const struct wire_op lacks = {
            .scope = f->scope, .tag = f->tag, .seq = f->seq};
        struct wire_op use;
        if (has_pair(pairs, count, &lacks) || !use_of(e, f, &use)) continue;
        pairs[count++] = use;
        pairs[count++] = lacks;
    }
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
    if (!engine_has_work(e) || e->links.frozen) return 0;
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
