/* op_queue.c - operations by tag, and operations with something to send.
 * Pure. */
#include "op.h"

#include "algorithm.h"

static struct op **head_of(struct engine *e, uint64_t tag)
{
    return &e->by_tag[(tag * 0x9e3779b97f4a7c15u >> 48) % TAG_HEADS];
}

struct op *engine_find(struct engine *e, uint64_t tag)
{
    struct op *op = *head_of(e, tag);
    while (op && op->r.tag != tag) op = op->tag_next;
    return op;
}

void op_enter(struct engine *e, struct op *op)
{
    struct op **head = head_of(e, op->r.tag);
    op->tag_next = *head;
    *head = op;
}

void op_leave(struct engine *e, struct op *op)
{
    struct op **at = head_of(e, op->r.tag);
    while (*at && *at != op) at = &(*at)->tag_next;
    if (*at) *at = op->tag_next;
}

static struct op_queue *queue_of(struct engine *e, const struct op *op)
{
    return op->plan.algorithm->is_long ? &e->longs : &e->shorts;
}

void op_begin_sending(struct engine *e, struct op *op)
{
    if (!op->counted) e->active++;
    op->counted = true;
    op->unsent = 0;
    for (uint32_t i = 0; i < op->ep_count; i++) op->unsent += op->eps[i].sends;
    if (op->unsent == 0) return;
    struct op_queue *q = queue_of(e, op);
    op->unsent_prev = q->last;
    op->unsent_next = NULL;
    if (q->last)
        q->last->unsent_next = op;
    else
        q->first = op;
    q->last = op;
}

void op_unqueue(struct engine *e, struct op *op)
{
    if (op->unsent == 0) return;
    struct op_queue *q = queue_of(e, op);
    op->unsent = 0;
    if (op->unsent_prev)
        op->unsent_prev->unsent_next = op->unsent_next;
    else
        q->first = op->unsent_next;
    if (op->unsent_next)
        op->unsent_next->unsent_prev = op->unsent_prev;
    else
        q->last = op->unsent_prev;
}

void op_end_activity(struct engine *e, struct op *op)
{
    op_unqueue(e, op);
    op_release_result(e, op);
    if (e->sweeper == op) e->sweeper = NULL;
    if (op->counted) e->active--;
    op->counted = false;
}
