/* model_crossed.c - operations of a tag that wait for each other, in the lists
 * of a round, and the reports before it. Rule V4. */
#include "model_state.h"

#include <string.h>

/* INSTALL ends it, whatever others do; `maybe`: that is not certain. */
static bool is_decided(const struct group *g, const struct listed *op,
                       bool maybe)
{
    bool decided = op->commit || op->awaits || (op->may_await && !maybe);
    for (uint32_t i = 0; i < g->forced_count; i++) {
        const struct trace_name *n = &g->forced[i].name;
        if (!same_name(n, &op->name) || (g->forced[i].ranks & ~op->set) != 0)
            continue;
        decided |= n->state != UNREACHABLE || !maybe;
    }
    return decided;
}

/* Operation l waits for x: a member of its scope runs x instead. */
static bool waits_for(const struct group *g, uint32_t live,
                      const struct listed *l, const struct listed *x,
                      bool maybe)
{
    return l != x && l->name.tag == x->name.tag &&
           (l->set & x->runs & live) != 0 && !is_decided(g, l, maybe) &&
           !is_decided(g, x, maybe);
}

/* x waits for l, through any number of others. */
static bool reaches(const struct group *g, uint32_t live,
                    const struct listed *x, const struct listed *l, bool maybe)
{
    uint32_t reached[4 * CALLS] = {(uint32_t)(x - g->ops)};
    uint32_t count = 1;
    bool in[4 * CALLS] = {false};
    in[reached[0]] = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct listed *from = &g->ops[reached[i]];
        if (waits_for(g, live, from, l, maybe)) return true;
        for (uint32_t k = 0; k < g->op_count; k++) {
            if (in[k] || !waits_for(g, live, from, &g->ops[k], maybe)) continue;
            in[k] = true;
            reached[count++] = k;
        }
    }
    return false;
}

/* It waits for some that wait for each other, and such ones wait for it. */
bool in_circle(const struct group *g, uint32_t live, const struct listed *op,
               bool maybe)
{
    bool waits = false, awaited = false;
    for (uint32_t i = 0; i < g->op_count; i++) {
        const struct listed *x = &g->ops[i];
        if (!reaches(g, live, x, x, maybe)) continue;
        waits |= x == op || reaches(g, live, op, x, maybe);
        awaited |= x == op || reaches(g, live, x, op, maybe);
    }
    return waits && awaited;
}

/* BLOCKED; whether it lasts long enough the model does not know. */
void round_blocked(struct group *g, struct process *p, const struct trace *t)
{
    uint32_t others = g->blocked & ~(1u << find_id(&g->view, p->id));
    bool waits = p->voted[UPDATE] || p->voted[OPTIMIZE] || p->undecided;
    if (g->phase != OPEN || t->epoch != g->epoch) return;
    g->blocked |= 1u << find_id(&g->view, p->id);
    p->lacks |= t->flag && p->voted[PENDING];
    g->suspected |= (t->flag && waits) || others != 0;
}
