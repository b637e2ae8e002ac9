/* crossed.c - finds operations of a tag that wait for each other, in the lists
 * of a flush (rule V6b).
 *
 * Operation L waits for X if a member of L's scope runs X instead. Those that
 * wait for each other, through any number of others, are a strongly connected
 * component of that graph (Tarjan, SIAM J. Comput. 1972). The lists are of one
 * time, so a component of several operations is a disagreement on scopes that
 * no member can end. */
#include "master.h"

#include <stdlib.h>

struct node {
    uint32_t number, low; /* in the order of visits; 0: not visited */
    uint32_t at;          /* rank whose operation is looked at next */
    uint32_t from, below; /* operations: the visitor; next on the stack */
    bool stacked;
};

struct search {
    struct master_table *t;
    struct node *nodes; /* of all operations */
    uint32_t *runs;     /* by rank: its operation of the tag, or none */
    uint32_t visits, top;
};

static int by_tag(const void *a, const void *b)
{
    const struct master_listing *x = a;
    const struct master_listing *y = b;
    if (x->tag != y->tag) return x->tag < y->tag ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
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

/* The operation that this one waits for by the next member of its scope. */
static uint32_t next_awaited(struct search *s, uint32_t op)
{
    struct node *n = &s->nodes[op];
    while (n->at < s->t->world) {
        uint32_t rank = n->at++;
        if (s->runs[rank] != MASTER_NO_OP &&
            round_ops_has_rank(s->t, s->t->ops[op].scope, rank))
            return s->runs[rank];
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
        if (several) s->t->ops[last].forced = VERDICT_CROSSED;
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

void crossed_judge(struct master_table *t)
{
    if (t->scope_count < 2 || t->listing_count == 0) return;
    struct search s = {.t = t, .top = MASTER_NO_OP};
    s.nodes = calloc(t->op_count, sizeof *s.nodes);
    s.runs = malloc((t->world + 1) * sizeof *s.runs);
    bool memory = s.nodes && s.runs; /* else it is reported again */
    for (uint32_t i = 0; memory && i < t->world; i++) s.runs[i] = MASTER_NO_OP;
    if (memory)
        qsort(t->listings, t->listing_count, sizeof *t->listings, by_tag);
    uint32_t end;
    for (uint32_t i = 0; memory && i < t->listing_count; i = end) {
        const struct master_listing *list = t->listings + i;
        for (end = i + 1; end < t->listing_count; end++) {
            if (t->listings[end].tag != list->tag) break;
        }
        if (t->listings[end - 1].op != list->op) judge(&s, list, end - i);
    }
    free(s.nodes);
    free(s.runs);
}
