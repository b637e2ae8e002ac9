/* model_install.c - a view is put in force. Rules R5, J5. */
#include "model_state.h"

bool is_empty(const struct model *m, const struct group *g)
{
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (!p || p->group != g->number) continue;
        if (p->standing == MEMBER ||
            (p->standing == REGISTERED &&
             (m->founded ? p->id <= g->admitted : !p->joins)))
            return false;
    }
    return true;
}

/* A decision stands, whatever happens after it (J5). */
static bool is_sound(const struct model *m, const struct group *g)
{
    return g->phase == PROPOSED && !g->unlinked && (!g->cause || g->decided) &&
           all_ready(m, g);
}

/* Rule R5: everybody is ready, of all groups if it is an update. */
bool may_install(const struct model *m, const struct group *g)
{
    bool all = g->flags & FOR_UPDATE && !m->installs;
    for (uint32_t i = 0; i < GROUPS && all; i++) {
        const struct group *other = &m->groups[i];
        bool in = other->used && other->phase != OPEN && !is_empty(m, other);
        if (in && (!(other->flags & FOR_UPDATE) || !is_sound(m, other)))
            return false;
    }
    return is_sound(m, g);
}

/* The view is in force. */
static void installed(struct model *m, struct group *g)
{
    heirs_will(m, g);
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p || p->group != g->number) continue;
        if (p->standing == DEAD && !p->proposed) p->standing = OUT;
        if (!p->proposed) continue;
        p->proposed = false;
        if (g->flags & FOR_UPDATE) p->voted[UPDATE] = false;
        if (g->flags & FOR_OPTIMIZE) p->voted[OPTIMIZE] = false;
        g->cause |= p->leaving || p->standing == DEAD;
        if (p->standing != DEAD) p->standing = MEMBER;
        round_refuses(g, p);
    }
    g->view = g->next;
    g->epoch = g->round;
    g->phase = OPEN;
    g->decided = false;
    g->op_count = g->forced_count = 0;
    m->founded = true;
    m->views++;
    if (g->flags & FOR_UPDATE) g->admits = false;
}

void round_installs(struct model *m, struct group *g, struct process *p,
                    const struct trace *t)
{
    if (!may_install(m, g))
        REFUSE(m, "R5: INSTALL of round %u before all are ready", t->round);
    if (!p->proposed || p->installed || t->round != g->round ||
        t->flag != g->flags)
        REFUSE(m, "R5: INSTALL of another view than the one proposed");
    if (t->value != g->traits) REFUSE(m, "T4: traits %x", t->value);
    round_judged(m, g, p);
    m->installs = g->flags & FOR_UPDATE;
    p->installed = true;
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *q = m->processes[i];
        count += q && q->group == g->number && q->proposed &&
                 (q->installed || q->standing == DEAD);
    }
    if (count == g->next.count && !m->wrong) installed(m, g);
}

/* The disk has refused the record of a view that may be installed. With a grace
 * it will be, for the record may be where the next master finds it. */
void round_decided(struct model *m, struct group *g)
{
    if (g->decided || m->grace == 0 || !may_install(m, g)) return;
    g->lived = live_ranks(m, g);
    g->decided = true;
}

/* Nobody is left who could be told that a decided view is in force. */
void round_deserted(struct model *m, struct group *g)
{
    if (!g->decided) return;
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (p && p->group == g->number && p->proposed && p->standing != DEAD)
            return;
    }
    installed(m, g);
}
