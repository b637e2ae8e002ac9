/* model_samples.c - the samples of a step, as the master adds them up and tells
 * the members, and what these make of it. Rules G1 to G6.
 *
 * A step is over for a member in it, and so for all that come to it (G3). */
#include "model_state.h"

#include <string.h>

/* ------------------------------------------------------------ at the master */

/* Rule G2: it lives, stays, and has reported. */
static bool counts(const struct process *p, const struct group *g)
{
    return is_live(p, g) && !p->leaving && p->reports;
}

/* Rules G2, G3; without members: step 0, of nobody. */
static struct sum sum_of(const struct model *m, const struct group *g)
{
    struct sum s = {.step = 0};
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        bool first = s.members == 0;
        if (!p || !counts(p, g) || (!first && p->step < s.step)) continue;
        if (first || p->step > s.step) s = (struct sum){.step = p->step};
        s.members++;
        s.samples += p->samples;
        if (p->target > s.target) s.target = p->target;
        s.reached |= p->over;
    }
    return s;
}

/* Rule G3: for who is in a lower step, or in this one. */
static void mark(struct model *m, const struct group *g)
{
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (p && counts(p, g))
            p->over |= p->step < g->sum.step || g->sum.reached;
    }
}

/* What an event has made of the sum; true: all are to be told at once (G4). */
static bool has_changed(struct model *m, struct group *g)
{
    const struct sum before = g->sum;
    g->sum = sum_of(m, g);
    bool left =
        before.members > 0 && !before.reached && g->sum.step > before.step;
    bool full = g->sum.target > 0 && g->sum.samples >= g->sum.target;
    bool fills = full && !g->sum.reached;
    g->sum.reached |= full;
    mark(m, g);
    return left || fills;
}

static void look(struct model *m, struct group *g)
{
    g->telling |= has_changed(m, g);
}

/* Rule G2: the last member has gone back. */
static void anew(struct model *m, const struct group *g)
{
    for (uint32_t i = 0; i < m->process_end; i++)
        if (m->processes[i] && m->processes[i]->group == g->number)
            m->processes[i]->over = false;
}

void samples_reported(struct model *m, struct process *p, const struct trace *t)
{
    struct group *g = group_of(m, p->group);
    p->heard = m->now;
    look(m, g); /* deaths and leaves before it */
    bool alone = counts(p, g) && p->step == g->sum.step && g->sum.members == 1;
    if (alone && t->number < p->step) anew(m, g);
    if (!p->reports || t->number != p->step) p->over = false;
    p->reports = true;
    p->step = t->number;
    p->samples = t->digest;
    p->target = t->id_count > 0 ? t->ids[0] : 0;
    look(m, g);
}

static struct told told_of(const struct group *g)
{
    return (struct told){.known = true,
                         .reached = g->sum.reached,
                         .step = g->sum.step,
                         .samples = g->sum.samples,
                         .target = g->sum.target,
                         .members = g->sum.members};
}

static bool same_told(const struct told *a, const struct told *b)
{
    return a->known == b->known && a->reached == b->reached &&
           a->step == b->step && a->samples == b->samples &&
           a->target == b->target && a->members == b->members;
}

void samples_told(struct model *m, struct process *p, const struct trace *t)
{
    struct group *g = group_of(m, p->group);
    look(m, g);
    const struct told now = told_of(g);
    uint64_t target = t->id_count > 0 ? t->ids[0] : 0;
    if (p->standing != MEMBER)
        REFUSE(m, "G4: samples are told to a process that is no member");
    if (t->number != now.step || t->digest != now.samples ||
        t->value != now.members || target != now.target)
        REFUSE(m, "G2: %llu samples of %u for step %llu are told, not %llu",
               (unsigned long long)t->digest, t->value,
               (unsigned long long)t->number, (unsigned long long)now.samples);
    if ((t->flag != 0) != now.reached)
        REFUSE(m, "G3: step %llu is told as %sreached",
               (unsigned long long)t->number, t->flag ? "" : "not ");
    p->told_last = now;
    p->told_owed = 0;
    p->samples_told = true;
}

/* Rule G4: any other change at the tick, which pccl.h says is a tenth of a
 * deadline; and as much again. */
static void check_owed(struct model *m, struct process *p, struct group *g)
{
    const struct told now = told_of(g);
    bool owed = now.members > 0 && !same_told(&p->told_last, &now);
    if (m->no_disk || m->waits) owed = false; /* J1, H5 */
    if (!owed) p->told_owed = 0;
    if (owed && p->told_owed == 0) p->told_owed = m->now;
    if (owed && m->now - p->told_owed > m->deadline / 5)
        REFUSE(m, "G4: process %llu is not told of %llu samples",
               (unsigned long long)p->id, (unsigned long long)now.samples);
}

/* Rule G4: who is there has changed. */
static bool members_changed(const struct model *m, struct group *g)
{
    uint64_t members = 1;
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (p && is_live(p, g) && !p->leaving)
            members = (members ^ p->id) * 0x9e3779b97f4a7c15u;
    }
    bool changed = members != g->counted;
    g->counted = members;
    return changed;
}

static void settle(struct model *m, struct group *g)
{
    look(m, g);
    if (members_changed(m, g) && g->sum.members > 0) g->telling = true;
    if (m->no_disk || m->waits) g->telling = false; /* J1, H5 */
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p || p->group != g->number) continue;
        if (is_live(p, g)) {
            if (g->telling && !p->samples_told)
                REFUSE(m, "G4: process %llu is not told of step %llu at once",
                       (unsigned long long)p->id,
                       (unsigned long long)g->sum.step);
            check_owed(m, p, g);
        }
        p->samples_told = false;
    }
    g->telling = false;
}

void samples_settled(struct model *m)
{
    for (uint32_t i = 0; i < GROUPS; i++)
        if (m->groups[i].used) settle(m, &m->groups[i]);
}

/* ------------------------------------------------------------ at a member */

/* Rules G3, G6: it is full, or somebody has ended it. */
static bool is_over(const struct process *p)
{
    const struct told *s = &p->heard_of;
    return s->known &&
           (s->step > p->made.step || (s->step == p->made.step && s->reached));
}

void samples_made(struct process *p, const struct trace *t)
{
    if (p->made.step != t->number) p->found = false;
    p->made = (struct made){.any = true,
                            .step = t->number,
                            .samples = t->digest,
                            .target = t->ids[0],
                            .at = t->now};
    p->found |= is_over(p); /* before it has begun */
}

static bool is_news(const struct process *p)
{
    return p->made.any &&
           (!p->reported.any || p->made.step != p->reported.step ||
            p->made.samples != p->reported.samples ||
            p->made.target != p->reported.target);
}

/* Rule G5: how long it waits after a report. */
static int64_t pause_of(const struct model *m, const struct process *p)
{
    int64_t pause = m->deadline / 100;
    int64_t load = (int64_t)p->view.count * 100000; /* 10,000 a second */
    if (load > pause) pause = load;
    return pause < m->deadline / 10 ? pause : m->deadline / 10;
}

/* ... unless its own samples and those of the others, as it was told, make the
 * target. What it was told has its last report in it. */
static bool may_hurry(const struct process *p)
{
    const struct told *s = &p->heard_of;
    bool same = p->reported.any && p->reported.step == p->made.step;
    uint64_t own = same ? p->reported.samples : 0;
    uint64_t all = s->known && s->step == p->made.step ? s->samples : 0;
    uint64_t others = all > own ? all - own : 0;
    return !p->hurried && p->made.samples + others >= p->made.target;
}

void samples_sent(struct model *m, struct process *p, const struct trace *t)
{
    struct made *r = &p->reported;
    uint64_t target = t->id_count > 0 ? t->ids[0] : 0;
    if (!p->made.any || t->number != p->made.step ||
        t->digest != p->made.samples || target != p->made.target)
        REFUSE(m, "G1: process %llu reports what it has not made",
               (unsigned long long)p->id);
    else if (!is_news(p))
        REFUSE(m, "G5: a report that is no news");
    if (!r->any || r->step != t->number) p->hurried = false;
    bool early = r->any && t->now - r->at < pause_of(m, p);
    if (early && !may_hurry(p))
        REFUSE(m, "G5: process %llu reports again after %lld ns",
               (unsigned long long)p->id, (long long)(t->now - r->at));
    p->hurried |= early;
    *r = p->made;
    r->at = t->now;
    p->overdue = 0;
}

void samples_heard(struct process *p, const struct trace *t)
{
    p->heard_of = (struct told){.known = true,
                                .reached = t->flag,
                                .step = t->number,
                                .samples = t->digest};
    p->found |= p->made.any && is_over(p);
}

/* Another master. */
void samples_anew(struct process *p)
{
    p->heard_of.known = p->reported.any = p->hurried = false;
}

/* The program looks. */
void samples_seen(struct model *m, struct process *p, const struct trace *t)
{
    const struct told *s = &p->heard_of;
    bool alone = p->master_lost || p->speaks || p->state != IN_VIEW;
    if (alone) p->overdue = 0;
    if (alone || !p->made.any) return;
    bool own = !s->known || s->step < p->made.step; /* what pccl.h says */
    uint64_t samples = own ? p->made.samples : s->samples;
    if (!t->joins || t->number != (own ? p->made.step : s->step) ||
        t->digest != samples)
        REFUSE(m, "G6: process %llu knows %llu samples of step %llu, not %llu",
               (unsigned long long)p->id, (unsigned long long)t->digest,
               (unsigned long long)t->number, (unsigned long long)samples);
    bool reached = p->found || is_over(p);
    if (t->flag != reached)
        REFUSE(m, "G6: process %llu finds step %llu %sreached, told of %llu",
               (unsigned long long)p->id, (unsigned long long)p->made.step,
               t->flag ? "" : "not ", (unsigned long long)s->step);
    int64_t since = p->reported.any && p->reported.at > p->made.at
                        ? p->reported.at
                        : p->made.at;
    /* Who leaves counts nowhere (G2). */
    bool late = is_news(p) && !p->leaves && t->now - since > pause_of(m, p);
    if (!late) p->overdue = 0;
    if (late && p->overdue == 0) p->overdue = t->now;
    if (late && t->now - p->overdue > m->deadline / 5)
        REFUSE(m, "G5: process %llu does not report step %llu",
               (unsigned long long)p->id, (unsigned long long)p->made.step);
}
