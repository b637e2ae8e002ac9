/* model_optimize.c - the probes of an optimization. Rules O2 to O4. */
#include "model_state.h"

#define SWEEP                                                                  \
    ((int64_t)20 * 1000000000) /* ns; and as the master's clock runs */
#define LATEST (SWEEP + SWEEP / 20)

/* A receiver has not reported, and may yet. */
static bool is_due(struct model *m, const struct group *g)
{
    if (m->now - g->step_at >= m->deadline) return false;
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (is_live(p, g) && p->probe == g->step && p->probe_due) return true;
    }
    return false;
}

static void step_begins(struct model *m, struct group *g, uint32_t step)
{
    if (step < g->step || is_due(m, g))
        REFUSE(m, "O4: probes begin before the last ones have ended");
    if (!g->probes) g->probes_at = m->now;
    if (m->now - g->probes_at > LATEST)
        REFUSE(m, "O4: a probe begins after 20 seconds");
    g->probes = true;
    g->step = step;
    g->step_at = m->now;
}

void probe_ordered(struct model *m, struct process *p, const struct trace *t)
{
    struct group *g = group_of(m, p->group);
    const struct process *with = process_of(m, t->number);
    if (g->phase != OPEN || g->cause || !is_live(p, g))
        REFUSE(m, "O3a, O4: a probe in a round, or after a loss or a leave");
    if (!all_voted(m, g, OPTIMIZE))
        REFUSE(m, "O2: a probe before all have voted");
    if (!is_live(with, g) || with == p) REFUSE(m, "O3a: a probe with nobody");
    if (t->round != g->step) step_begins(m, g, t->round);
    if (p->probe == t->round) REFUSE(m, "O3a: a member of two pairs at a time");
    p->probe = t->round;
    p->probe_with = t->number;
    p->probe_due = t->flag;
    m->probes = true;
}

void probe_read(struct process *p, const struct trace *t)
{
    p->probe_read = t->round;
    p->probe_read_with = t->number;
}

/* MEASURED, at its sender. */
void probe_reported(struct model *m, const struct process *p,
                    const struct trace *t)
{
    if (t->round != p->probe_read || t->number != p->probe_read_with)
        REFUSE(m, "O3b: a report of a probe that was not ordered");
}

/* ... and at the master. */
void probe_ended(struct model *m, struct process *p, const struct trace *t)
{
    if (p->probe != t->round || p->probe_with != t->number) return;
    struct process *with = process_of(m, t->number);
    p->probe_due = false;
    group_of(m, p->group)->pairs |= t->flag; /* R4a */
    if (t->flag && with && with->probe == t->round) with->probe_due = false;
}

void probes_settled(struct model *m)
{
    for (uint32_t i = 0; i < GROUPS; i++) {
        struct group *g = &m->groups[i];
        g->probes &= all_voted(m, g, OPTIMIZE);
    }
    for (uint32_t i = 0; i < m->process_end && m->probes; i++) {
        const struct process *p = m->processes[i];
        if (!p || p->standing != MEMBER) continue;
        struct group *g = group_of(m, p->group);
        if (p->probe == 0 || p->probe != g->step) continue;
        const struct process *with = process_of(m, p->probe_with);
        if (!with || with->probe != p->probe || with->probe_with != p->id)
            REFUSE(m, "O3a: one end alone of a pair has an order");
    }
    m->probes = false;
}
