/* crossed.c - finds operations of a tag that wait for each other, in the lists
 * of a flush (rules V6b, V6g).
 *
 * Operation L waits for X if a member of L's scope runs X instead, or has ended
 * X with an error instead; and then X waits for what those members run that
 * keep its verdict. Those that wait for each other, through any number of
 * others, are a strongly connected component of that graph (Tarjan, SIAM J.
 * Comput. 1972). The lists are of one time, so a component of several
 * operations is a disagreement on scopes that no member can end. */
#include "master.h"

#include <stdlib.h>

struct node {
    uint32_t number, low; /* in the order of visits; 0: not visited */
    uint32_t at; /* rank whose operation is looked at next, and so on */
    uint32_t from, below; /* nodes: the visitor; next on the stack */
    bool stacked;
};

struct search {
    struct master_table *t;
    struct node *nodes; /* of all operations; behind them, of those ended */
    uint32_t *runs;     /* by rank: its operation of the tag, or none */
    uint32_t visits, top;
    uint32_t past, past_end; /* of the tag, among those ended */
};

static int by_tag(const void *a, const void *b)
{
    const struct master_listing *x = a;
    const struct master_listing *y = b;
    if (x->tag != y->tag) return x->tag < y->tag ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* The first one of a name is ENDED, if any is. */
static int by_name(const void *a, const void *b)
{
    const struct master_past *x = a;
    const struct master_past *y = b;
    if (x->op.tag != y->op.tag) return x->op.tag < y->op.tag ? -1 : 1;
    if (x->op.scope != y->op.scope) return x->op.scope < y->op.scope ? -1 : 1;
    if (x->op.seq != y->op.seq) return x->op.seq < y->op.seq ? -1 : 1;
    if (x->op.state != y->op.state) return x->op.state < y->op.state ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void sort(struct master_table *t)
{
    qsort(t->listings, t->listing_count, sizeof *t->listings, by_tag);
    if (t->past_count > 0)
        qsort(t->past, t->past_count, sizeof *t->past, by_name);
    for (uint32_t i = 0; i < t->past_count; i++) {
        struct master_past *p = &t->past[i];
        bool same = i > 0 && wire_same_op(&p[-1].op, &p->op);
        p->first = same ? p[-1].first : i;
    }
}

static void visit(struct search *s, uint32_t op, uint32_t from)
{
    struct node *n = &s->nodes[op];
    n->number = n->low = ++s->visits;
    n->from = from;
    n->below = s->top;
    n->stacked = true;
    s->top = op;
}

/* What an operation that has ended waits for by the next member that keeps its
 * verdict. */
static uint32_t next_keeping(struct search *s, uint32_t first, struct node *n)
{
    for (uint32_t i = first + n->at; i < s->past_end; i++) {
        const struct master_past *p = &s->t->past[i];
        if (p->first != first) break;
        n->at++;
        if (p->op.state == OP_KEPT && s->runs[p->rank] != MASTER_NO_OP)
            return s->runs[p->rank];
    }
    return MASTER_NO_OP;
}

/* The operation that this one waits for by the next member of its scope. */
static uint32_t next_awaited(struct search *s, uint32_t op)
{
    const struct master_table *t = s->t;
    struct node *n = &s->nodes[op];
    if (op >= t->op_count) return next_keeping(s, op - t->op_count, n);
    while (n->at < t->world) {
        uint32_t rank = n->at++;
        if (s->runs[rank] != MASTER_NO_OP &&
            round_ops_has_rank(t, t->ops[op].scope, rank))
            return s->runs[rank];
    }
    while (s->past + (n->at - t->world) < s->past_end) {
        const struct master_past *p = &t->past[s->past + (n->at++ - t->world)];
        if (p->op.state == OP_ENDED && s->runs[p->rank] == MASTER_NO_OP &&
            round_ops_has_rank(t, t->ops[op].scope, p->rank))
            return t->op_count + p->first;
    }
    return MASTER_NO_OP;
}

/* The operations above this one on the stack wait for it, and it for them. */
static void end_component(struct search *s, uint32_t op)
{
    bool several = s->top != op;
    uint32_t last;
    do {
        last = s->top;
        s->top = s->nodes[last].below;
        s->nodes[last].stacked = false;
        if (several && last < s->t->op_count)
            s->t->ops[last].forced = VERDICT_CROSSED;
        else if (several)
            s->t->past[last - s->t->op_count].settled = true;
    } while (last != op);
}

static void search_from(struct search *s, uint32_t first)
{
    visit(s, first, MASTER_NO_OP);
    for (uint32_t op = first; op != MASTER_NO_OP;) {
        struct node *n = &s->nodes[op];
        uint32_t to = next_awaited(s, op);
        if (to == MASTER_NO_OP) {
            uint32_t from = n->from;
            if (n->low == n->number) end_component(s, op);
            if (from != MASTER_NO_OP && n->low < s->nodes[from].low)
                s->nodes[from].low = n->low;
            op = from;
        } else if (s->nodes[to].number == 0) {
            visit(s, to, op);
            op = to;
        } else if (s->nodes[to].stacked && s->nodes[to].number < n->low) {
            n->low = s->nodes[to].number;
        }
    }
}

/* The listings of one tag. Committed operations wait for nobody. */
static void judge(struct search *s, const struct master_listing *list,
                  uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!s->t->ops[list[i].op].commit) s->runs[list[i].rank] = list[i].op;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t op = list[i].op;
        if (!s->t->ops[op].commit && s->nodes[op].number == 0)
            search_from(s, op);
    }
    for (uint32_t i = 0; i < count; i++) s->runs[list[i].rank] = MASTER_NO_OP;
}

/* Those of the tag, behind those of lower ones. */
static void find_past(struct search *s, uint64_t tag)
{
    const struct master_table *t = s->t;
    s->past = s->past_end;
    while (s->past < t->past_count && t->past[s->past].op.tag < tag) s->past++;
    s->past_end = s->past;
    while (s->past_end < t->past_count && t->past[s->past_end].op.tag == tag)
        s->past_end++;
}

void crossed_judge(struct master_table *t)
{
    if (t->listing_count == 0 || (t->scope_count < 2 && t->past_count == 0))
        return;
    struct search s = {.t = t, .top = MASTER_NO_OP};
    s.nodes = calloc((size_t)t->op_count + t->past_count, sizeof *s.nodes);
    s.runs = malloc((t->world + 1) * sizeof *s.runs);
    bool memory = s.nodes && s.runs; /* else it is reported again */
    for (uint32_t i = 0; memory && i < t->world; i++) s.runs[i] = MASTER_NO_OP;
    if (memory) sort(t);
    uint32_t end;
    for (uint32_t i = 0; memory && i < t->listing_count; i = end) {
        const struct master_listing *list = t->listings + i;
        for (end = i + 1; end < t->listing_count; end++) {
            if (t->listings[end].tag != list->tag) break;
        }
        find_past(&s, list->tag);
        if (t->listings[end - 1].op != list->op || s.past < s.past_end)
            judge(&s, list, end - i);
    }
    free(s.nodes);
    free(s.runs);
}
