/* model_ended.c - what a process remembers of operations that ended with an
 * error, and what it keeps. Rule V6g. */
#include "model_state.h"

#include <string.h>

static bool is_named(uint64_t scope, uint64_t tag, uint32_t epoch,
                     const struct trace_name *n)
{
    return n->scope == scope && n->tag == tag && n->seq == epoch;
}

static void drop(struct process *p, uint32_t i)
{
    p->ended_count--;
    memmove(&p->ended_ops[i], &p->ended_ops[i + 1],
            (p->ended_count - i) * sizeof p->ended_ops[0]);
}

/* The last ones: the oldest goes. */
static void forget_old(struct process *p)
{
    while (p->ended_count > 0 &&
           p->ended_last - p->ended_ops[0].number >= ENDED_KEPT)
        drop(p, 0);
}

static void add(struct process *p, uint64_t scope, uint64_t tag, uint32_t epoch)
{
    uint32_t number = ++p->ended_last;
    forget_old(p);
    p->ended_ops[p->ended_count++] = (struct ended){
        .scope = scope, .tag = tag, .epoch = epoch, .number = number};
}

/* By the verdict of that INSTALL. */
void ended_adds(struct process *p, const struct running *o, uint32_t epoch)
{
    uint8_t v = o->verdict;
    if (v == INVALID || v == USAGE || v == UNREACHABLE || v == FAILED)
        add(p, o->name.scope, o->name.tag, epoch);
}

/* By a loss: it takes a place (V6f). */
void ended_lost(struct process *p)
{
    p->ended_last++;
    forget_old(p);
}

/* By a verdict that was kept. */
void ended_takes(struct process *p, uint32_t abort)
{
    const struct pending_verdict a = p->aborts[abort];
    member_drops(p, abort);
    if (a.any_scope) return;
    add(p, a.scope, a.tag, a.epoch);
    p->ended_ops[p->ended_count - 1].settled = a.settled;
}

/* A launch that is not over. */
void ended_launch(struct process *p, uint64_t tag)
{
    for (uint32_t i = p->ended_count; i-- > 0;)
        if (p->ended_ops[i].tag == tag) drop(p, i);
}

/* One that is, and met no verdict. */
void ended_over(struct process *p, const struct running *o)
{
    for (uint32_t i = p->abort_count; i-- > 0 && o->name.scope == 0;) {
        const struct pending_verdict *a = &p->aborts[i];
        if (a->tag == o->name.tag && a->scope != 0 && !a->fresh &&
            !a->any_scope)
            member_drops(p, i);
    }
    if (o->loss > 0) ended_lost(p);
}

/* A call of F6b has ended. */
void ended_forget(struct process *p)
{
    p->ended_count = 0;
}

void ended_settles(struct process *p, const struct trace_name *n)
{
    for (uint32_t i = 0; i < p->ended_count; i++) {
        struct ended *e = &p->ended_ops[i];
        e->settled |= is_named(e->scope, e->tag, e->epoch, n);
    }
    for (uint32_t i = 0; i < p->abort_count; i++) {
        struct pending_verdict *a = &p->aborts[i];
        a->settled |= !a->fresh && !a->any_scope &&
                      is_named(a->scope, a->tag, a->epoch, n);
    }
}

void ended_install(struct process *p)
{
    for (uint32_t i = p->ended_count; i-- > 0;) {
        if (!p->ended_ops[i].settled) continue;
        (void)member_drops_crossed(p, p->ended_ops[i].tag);
        drop(p, i);
    }
    for (uint32_t i = p->abort_count; i-- > 0;)
        if (p->aborts[i].settled) member_drops(p, i);
}

static bool lists_it(const struct trace *t, uint64_t scope, uint64_t tag,
                     uint32_t epoch, uint8_t state)
{
    for (uint32_t i = 0; i < t->name_count; i++)
        if (t->names[i].state == state &&
            is_named(scope, tag, epoch, &t->names[i]))
            return true;
    return false;
}

/* It runs the tag in another scope, as it says. */
static bool is_elsewhere(const struct trace *t, const struct pending_verdict *a)
{
    for (uint32_t i = 0; i < t->name_count; i++) {
        const struct trace_name *n = &t->names[i];
        if (n->state < ENDED && n->tag == a->tag) return n->scope != a->scope;
    }
    return false;
}

/* FLUSHED: how many names of it are due. */
uint32_t ended_listed(struct model *m, struct process *p, const struct trace *t)
{
    uint32_t count = p->ended_count;
    for (uint32_t i = 0; i < p->ended_count; i++) {
        const struct ended *e = &p->ended_ops[i];
        if (!lists_it(t, e->scope, e->tag, e->epoch, ENDED))
            REFUSE(m, "V6g: process %llu does not list what it remembers",
                   (unsigned long long)p->id);
    }
    for (uint32_t i = 0; i < p->abort_count; i++) {
        const struct pending_verdict *a = &p->aborts[i];
        if (a->fresh || a->any_scope || !is_elsewhere(t, a)) continue;
        count++;
        if (!lists_it(t, a->scope, a->tag, a->epoch, KEPT))
            REFUSE(m, "V6g: process %llu does not list what it keeps",
                   (unsigned long long)p->id);
    }
    return count;
}
