/* model_samples.c - the samples of a step, as the master adds them up and tells
 * the members. Rules G1 to G4. */
#include "model_state.h"

#include <string.h>

static bool counts(const struct process *p, const struct group *g)
{
    return is_live(p, g) && !p->leaving && p->reports;
}

/* Rule G2. Nobody is left who has reported: the step stays. */
static struct sum sum_of(const struct model *m, const struct group *g)
{
    struct sum s = {.step = g->sum.step};
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (!p || !counts(p, g)) continue;
        if (s.members > 0 && p->step < s.step) continue;
        if (s.members > 0 && p->step > s.step) s = (struct sum){.step = 0};
        s.step = p->step;
        s.samples += p->samples;
        s.members++;
        if (p->target > s.target) s.target = p->target;
    }
    return s;
}

/* Rule G3. */
static bool is_reached(const struct group *g)
{
    return g->reached && g->reached_step == g->sum.step;
}

/* Told at once (G4): a step is reached, or is over and was not. */
static void look(const struct model *m, struct group *g)
{
    struct sum before = g->sum;
    bool there = is_reached(g) || before.members == 0;
    g->sum = sum_of(m, g);
    if (g->sum.step > before.step && !there) g->telling = true;
    bool full = g->sum.target > 0 && g->sum.samples >= g->sum.target;
    if (is_reached(g) || !full) return;
    g->reached = g->telling = true;
    g->reached_step = g->sum.step;
}

void samples_reported(struct model *m, struct process *p, const struct trace *t)
{
    struct group *g = group_of(m, p->group);
    p->heard = m->now;
    look(m, g);
    /* A step may be made again. */
    if (counts(p, g) && p->step == g->sum.step && t->number < p->step)
        g->reached = false;
    p->reports = true;
    p->step = t->number;
    p->samples = t->digest;
    p->target = t->id_count > 0 ? t->ids[0] : 0;
    look(m, g);
}

void samples_told(struct model *m, struct process *p, const struct trace *t)
{
    struct group *g = group_of(m, p->group);
    look(m, g);
    if (p->standing != MEMBER)
        REFUSE(m, "G4: samples are told to a process that is no member");
    if (t->number != g->sum.step || t->digest != g->sum.samples ||
        t->value != g->sum.members || t->ids[0] != g->sum.target)
        REFUSE(m, "G2: %llu samples of %u for step %llu are told, not %llu",
               (unsigned long long)t->digest, t->value,
               (unsigned long long)t->number,
               (unsigned long long)g->sum.samples);
    if (t->flag != is_reached(g))
        REFUSE(m, "G3: step %llu is told as %sreached",
               (unsigned long long)t->number, t->flag ? "" : "not ");
    p->samples_told = true;
}

/* Rule G4: everybody, at once. */
void samples_settled(struct model *m)
{
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p) continue;
        const struct group *g = group_of(m, p->group);
        if (g->telling && is_live(p, g) && !p->samples_told)
            REFUSE(m, "G4: process %llu is not told of step %llu",
                   (unsigned long long)p->id, (unsigned long long)g->sum.step);
        p->samples_told = false;
    }
    for (uint32_t i = 0; i < GROUPS; i++) {
        struct group *g = &m->groups[i];
        bool empty = true;
        for (uint32_t k = 0; k < m->process_end && g->used; k++) {
            const struct process *p = m->processes[k];
            empty &= !p || p->group != g->number || p->standing == NOBODY ||
                     p->standing == OUT;
        }
        g->telling = false;
        if (empty) g->reached = false; /* another one has its number */
        if (empty) g->sum = (struct sum){.step = 0};
    }
}
