/* model_crossed.c - operations of a tag that wait for each other, in the lists
 * of a round and in the reports before it. Rule V6. */
#include "model_state.h"

#include <string.h>

/* Ranks that run something of the tag that is not committed. */
static uint32_t users(const struct group *g, uint64_t tag)
{
    uint32_t ranks = 0;
    for (uint32_t i = 0; i < g->op_count; i++)
        if (g->ops[i].name.tag == tag && !g->ops[i].commit)
            ranks |= g->ops[i].runs;
    return ranks;
}

/* Rule V6g: l waits for what has ended, and that for x. */
static bool waits_by(const struct group *g, uint32_t live,
                     const struct listed *l, const struct listed *x,
                     const struct former *e)
{
    uint64_t tag = e->name.tag;
    return tag == l->name.tag && tag == x->name.tag &&
           (l->set & e->ended & live & ~users(g, tag)) != 0 &&
           (x->runs & e->kept & live) != 0;
}

/* Rules V6b, V6g: operation l waits for x. */
static bool waits_for(const struct group *g, uint32_t live,
                      const struct listed *l, const struct listed *x)
{
    if (l->name.tag != x->name.tag || l->commit || x->commit) return false;
    if (l != x && (l->set & x->runs & live) != 0) return true;
    for (uint32_t i = 0; i < g->former_count; i++)
        if (waits_by(g, live, l, x, &g->formers[i])) return true;
    return false;
}

/* x itself, or what it waits for through any number of others, waits for l. */
static bool reaches(const struct group *g, uint32_t live,
                    const struct listed *x, const struct listed *l)
{
    uint32_t reached[4 * CALLS] = {(uint32_t)(x - g->ops)};
    uint32_t count = 1;
    bool in[4 * CALLS] = {false};
    in[reached[0]] = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct listed *from = &g->ops[reached[i]];
        if (waits_for(g, live, from, l)) return true;
        for (uint32_t k = 0; k < g->op_count; k++) {
            if (in[k] || !waits_for(g, live, from, &g->ops[k])) continue;
            in[k] = true;
            reached[count++] = k;
        }
    }
    return false;
}

bool in_circle(const struct group *g, uint32_t live, const struct listed *op)
{
    return reaches(g, live, op, op);
}

/* ------------------------------------------------- what ended before (V6g) */

static struct former *find_former(struct group *g, const struct trace_name *n)
{
    for (uint32_t i = 0; i < g->former_count; i++)
        if (same_name(&g->formers[i].name, n)) return &g->formers[i];
    return NULL;
}

/* FLUSHED. */
void former_lists(struct model *m, struct group *g, uint32_t rank,
                  const struct trace_name *n)
{
    struct former *e = find_former(g, n);
    if (!e && g->former_count < ENDED_LISTED) {
        e = &g->formers[g->former_count++];
        *e = (struct former){.name = *n};
    }
    if (!e) {
        REFUSE(m, "more operations have ended than the model has room for");
        return;
    }
    uint32_t *ranks = n->state == KEPT ? &e->kept : &e->ended;
    if (*ranks >> rank & 1) REFUSE(m, "V6g: it is listed twice");
    *ranks |= 1u << rank;
}

/* It is in a circle. */
static bool is_settled(const struct group *g, uint32_t live,
                       const struct former *e)
{
    if (!e->ended || !e->kept) return false;
    for (uint32_t i = 0; i < g->op_count; i++)
        for (uint32_t k = 0; k < g->op_count; k++) {
            const struct listed *l = &g->ops[i], *x = &g->ops[k];
            if (l->commit || x->commit || !waits_by(g, live, l, x, e)) continue;
            if (l == x || reaches(g, live, x, l)) return true;
        }
    return false;
}

/* The scope of one that crosses has that rank. */
static bool is_told(const struct group *g, uint32_t live, uint32_t rank,
                    const struct former *e)
{
    for (uint32_t i = 0; i < g->op_count; i++) {
        const struct listed *op = &g->ops[i];
        if (op->name.tag == e->name.tag && !op->commit && op->set >> rank & 1 &&
            in_circle(g, live, op))
            return true;
    }
    return false;
}

/* SETTLED, in VERDICT. */
void former_settles(struct model *m, struct group *g, uint32_t rank,
                    const struct trace_name *n)
{
    struct former *e = find_former(g, n);
    uint32_t live = live_ranks(m, g);
    if (!e || !is_settled(g, live, e) || !is_told(g, live, rank, e))
        REFUSE(m, "V6g: operation %llu of epoch %u is in no circle",
               (unsigned long long)n->tag, n->seq);
    else
        e->told |= 1u << rank;
}

/* INSTALL. */
void former_settled(struct model *m, struct group *g, uint32_t rank)
{
    uint32_t live = live_ranks(m, g);
    for (uint32_t i = 0; i < g->former_count; i++) {
        const struct former *e = &g->formers[i];
        if (!(e->told >> rank & 1) && is_settled(g, live, e) &&
            is_told(g, live, rank, e))
            REFUSE(m, "V6g: operation %llu of epoch %u is not named",
                   (unsigned long long)e->name.tag, e->name.seq);
    }
}

/* ------------------------------------------------------------- reports */

/* Rules V6b, V6f, V6g: the fact at `to` waits for the one at `from`. */
static bool fact_follows(const struct group *g, uint32_t from, uint32_t to)
{
    const struct trace_name *runs = &g->facts[from].runs;
    const struct trace_name *lacks = &g->facts[to].lacks;
    bool runs_now = runs->state != RETURNED && runs->state != ENDED;
    if (lacks->state == RETURNED)
        return runs->state == RETURNED && runs->tag == lacks->tag &&
               runs->seq > lacks->seq;
    return same_name(runs, lacks) &&
           (lacks->state == KEPT ? runs->state == ENDED : runs_now);
}

/* The facts that are reached from one of them. */
static uint64_t facts_from(const struct group *g, uint32_t first)
{
    uint64_t in = 0, before = 1;
    while (in != before) {
        before = in;
        for (uint32_t k = 0; k < g->fact_count; k++)
            for (uint32_t j = 0; j < g->fact_count; j++)
                if ((j == first || in >> j & 1) && fact_follows(g, j, k))
                    in |= (uint64_t)1 << k;
    }
    return in;
}

/* Rule V6f: what has ended with a loss is in no list; the operations of the
 * circle that wait for it may get this verdict. */
static void misplace(struct group *g, uint32_t first)
{
    for (uint32_t to = 0; to < g->fact_count; to++) {
        if (!(facts_from(g, first) >> to & facts_from(g, to) >> first & 1) ||
            g->facts[to].lacks.state != RETURNED)
            continue;
        for (uint32_t from = 0; from < g->fact_count; from++) {
            bool round = facts_from(g, to) >> from & 1;
            if (!round || !fact_follows(g, from, to)) continue;
            if (g->forced_count == CALLS) return;
            g->forced[g->forced_count].name = g->facts[to].runs;
            g->forced[g->forced_count].name.state = MISPLACED;
            g->forced[g->forced_count++].ranks =
                1u << g->facts[to].rank | 1u << g->facts[from].rank;
        }
    }
}

/* Rules V6a, V6b, V6f: the facts of one member replace its former ones. */
void round_blocked(struct group *g, uint32_t rank, const struct trace *t)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->fact_count; i++)
        if (g->facts[i].rank != rank) g->facts[kept++] = g->facts[i];
    for (uint32_t i = 0; i + 1 < t->name_count && kept < WAITS; i += 2) {
        g->facts[kept].runs = t->names[i];
        g->facts[kept].lacks = t->names[i + 1];
        g->facts[kept++].rank = rank;
    }
    g->fact_count = kept;
    for (uint32_t i = 0; i < kept && !g->cause; i++) {
        if (g->facts[i].rank != rank || !(facts_from(g, i) >> i & 1)) continue;
        misplace(g, i);
        g->cause = true;
    }
}
