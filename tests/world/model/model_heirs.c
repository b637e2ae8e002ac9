/* model_heirs.c - the master dies, and another one takes its place. Rules H1,
 * H4 to H7, H9.
 *
 * What its record says follows from what it had begun to tell: a view counts
 * from the first VERDICT or INSTALL of its round on. If all were ready, and
 * nobody was told, the record may have it or not; the first member that is
 * taken over shows which. */
#include "model_state.h"

#include <string.h>

/* The round as its master left it. */
static void bequeath(struct model *m, const struct group *g, struct group *will)
{
    uint32_t lived = live_ranks(m, g);
    *will = *g;
    will->past = true;
    will->lived = lived;
}

void heirs_will(struct model *m, const struct group *g)
{
    bequeath(m, g, &m->wills[g - m->groups]);
    m->stale[g - m->groups] = false;
}

/* Its group has no member. The record may still have it. */
void heirs_forget(struct model *m, const struct group *g)
{
    m->stale[g - m->groups] = true;
}

/* Its master may die before the end of the group is settled. */
void heirs_left(struct model *m, const struct process *p)
{
    if (p->standing != MEMBER || !p->leaving) return;
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *other = m->processes[i];
        bool stays = other && other != p && other->standing == MEMBER;
        if (stays && other->group == p->group) return;
    }
    heirs_forget(m, group_of(m, p->group));
}

static bool was_told(const struct model *m, const struct group *g)
{
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (p && p->group == g->number && p->proposed && p->installed)
            return true;
    }
    for (uint32_t i = 0; i < g->op_count; i++)
        if (g->ops[i].judged != 0) return true;
    return false;
}

static void adopt(struct model *m, uint32_t i)
{
    m->wills[i] = m->drafts[i];
    m->stale[i] = false;
    m->drafts[i].used = false;
    m->groups[i].view = m->wills[i].next;
    m->groups[i].epoch = m->wills[i].round;
}

/* An update is installed in all groups or in none. */
static void resolve(struct model *m, uint32_t i, bool drafted)
{
    bool update = m->drafts[i].flags & FOR_UPDATE;
    for (uint32_t k = 0; k < GROUPS; k++) {
        if (!m->drafts[k].used || (k != i && !update)) continue;
        if (k != i && !(m->drafts[k].flags & FOR_UPDATE)) continue;
        if (drafted)
            adopt(m, k);
        else
            m->drafts[k].used = false;
    }
}

static void forget_process(struct model *m, struct process *p)
{
    bool heir = false;
    for (uint32_t i = 0; i < GROUPS; i++) {
        const struct group *will = &m->wills[i], *draft = &m->drafts[i];
        heir |= will->used && find_id(&will->next, p->id) < will->next.count;
        heir |= draft->used && find_id(&draft->next, p->id) < draft->next.count;
    }
    if (p->standing != NOBODY) p->standing = heir ? HEIR : OUT;
    p->leaving = p->proposed = p->ready = p->flushed = p->sent = false;
    p->installed = p->in_sync = p->synced = p->lacks = false;
    p->undecided = p->asks_again = p->receives = false;
    p->ended = 0;
    p->probe_due = p->evicted = p->asks = p->spoke = p->inherits = false;
    p->reports = p->over = p->samples_told = p->told_last.known = false;
    p->told_owed = 0;
    memset(p->voted, 0, sizeof p->voted);
    memset(p->answers, 0, sizeof p->answers);
    p->probe = 0;
    p->heard = p->asked_at = m->now;
}

void master_dies(struct model *m)
{
    bool told = false;    /* of an update */
    bool sure = false;    /* that there are heirs */
    bool open = m->waits; /* nobody has come who could tell */
    m->waits = false;
    for (uint32_t i = 0; i < GROUPS; i++) {
        const struct group *g = &m->groups[i];
        m->drafts[i].used &= open;
        if (!g->used || g->phase != PROPOSED || g->unlinked || !all_ready(m, g))
            continue;
        bequeath(m, g, &m->drafts[i]);
        if (was_told(m, g)) told |= g->flags & FOR_UPDATE;
    }
    for (uint32_t i = 0; i < GROUPS; i++) {
        struct group *g = &m->groups[i];
        const struct group *draft = &m->drafts[i];
        if (!g->used) continue;
        if (draft->used &&
            (was_told(m, g) || (told && draft->flags & FOR_UPDATE)))
            adopt(m, i);
        const struct group *will = &m->wills[i];
        struct group next = {.used = true,
                             .number = g->number,
                             .round = g->round,
                             .step = g->step};
        if (will->used && !m->stale[i]) {
            next.view = will->next;
            next.epoch = will->round;
        }
        *g = next;
        m->waits |= will->used || m->drafts[i].used;
        sure |= will->used && !m->stale[i];
    }
    for (uint32_t i = 0; i < m->process_end; i++)
        if (m->processes[i]) forget_process(m, m->processes[i]);
    average_dies(m);
    memset(m->given, 0, sizeof m->given);
    m->founded = m->waits;
    m->perhaps = m->waits && !sure;
    m->unsettled = m->installs = m->probes = false;
    m->starts = true;
    m->term_before = m->term > m->term_before ? m->term : m->term_before;
    m->term = 0;
}

/* Rule H1: one term for all that a master says, above those before it. */
void heirs_term(struct model *m, uint64_t term)
{
    if (m->term == 0 && term > m->term_before) m->term = term;
    if (term != m->term)
        REFUSE(m, "H1: term %llu after %llu", (unsigned long long)term,
               (unsigned long long)(m->term ? m->term : m->term_before));
}

/* ------------------------------------------------------------------ RESUME */

/* The last answers that it has had (rule H6). */
static void note_answers(struct model *m, const struct process *p)
{
    for (uint32_t k = 0; k < VOTES; k++) {
        if (!m->waits || p->told[k] < m->given[k].number) continue;
        if (p->told[k] == m->given[k].number && p->told_value[k] > 1) continue;
        m->given[k].known = p->told_value[k] <= 1;
        m->given[k].number = p->told[k];
        m->given[k].value = p->told_value[k];
    }
}

void heirs_ask(struct model *m, struct process *p, const struct trace *t)
{
    for (uint32_t k = 0; k < t->name_count && k < VOTES; k++) {
        p->told[k] = t->names[k].seq;
        p->told_value[k] = t->names[k].state;
    }
    sync_resumed(m, p, t);
    if (p->standing == MEMBER && !p->spoke) note_answers(m, p);
    if (p->standing == MEMBER && !p->spoke) {
        p->spoke = true;
        return;
    }
    p->asks = true;
    p->asks_epoch = t->epoch;
    p->asks_round = t->round;
}

/* Whether it says that it is of this view, or is ready for it. */
static bool is_of(const struct process *p, const struct group *will)
{
    return will->used && find_id(&will->next, p->id) < will->next.count &&
           (p->asks_epoch == will->round ||
            (p->asks_round == will->round && p->asks_epoch < will->round));
}

void heirs_resumed(struct model *m, struct process *p, const struct trace *t)
{
    uint32_t i = (uint32_t)(group_of(m, p->group) - m->groups);
    heirs_term(m, t->digest);
    if (!p->asks || p->standing != HEIR || !m->waits || t->number != p->id) {
        REFUSE(m, "H4: process %llu is taken over", (unsigned long long)p->id);
        return;
    }
    if (m->drafts[i].used) resolve(m, i, t->epoch == m->drafts[i].round);
    struct group *will = &m->wills[i];
    bool installs = p->asks_epoch != t->epoch;
    if (t->epoch != will->round || !is_of(p, will) || t->flag != installs) {
        REFUSE(m, "H4, H7: process %llu of epoch %u is taken over in %u",
               (unsigned long long)p->id, p->asks_epoch, t->epoch);
        return;
    }
    if (m->stale[i]) m->groups[i].view = will->next;
    if (m->stale[i]) m->groups[i].epoch = will->round;
    m->stale[i] = p->asks = false;
    p->standing = MEMBER;
    p->inherits = installs;
    note_answers(m, p);
    uint32_t rank = find_id(&will->view, p->id);
    for (uint32_t k = 0; k < will->op_count && rank < will->view.count; k++)
        will->ops[k].judged &= ~(1u << rank);
}

/* Rule H7: a message of the will. */
void heirs_letter(struct model *m, struct process *p, const struct trace *t)
{
    struct group *will = &m->wills[group_of(m, p->group) - m->groups];
    if (t->round != will->round)
        REFUSE(m, "H7: round %u, not %u", t->round, will->round);
    if (t->message == MESSAGE_VERDICT) {
        round_judges(m, will, p, t);
        return;
    }
    if (t->flag != will->flags || t->value != will->traits)
        REFUSE(m, "H7: another INSTALL of round %u", t->round);
    round_judged(m, will, p);
    p->inherits = false;
}

/* ------------------------------------------------------------- the end of it
 */

/* Rule H5: all have come and spoken, or the grace is over. */
static bool is_due(const struct model *m)
{
    bool all = true;
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (!p) continue;
        all &= p->standing != MEMBER || p->spoke;
        for (uint32_t k = 0; k < GROUPS; k++) {
            const struct group *will = &m->wills[k];
            bool in = will->used && !m->stale[k] && !m->drafts[k].used &&
                      find_id(&will->next, p->id) < will->next.count;
            all &= !in || p->standing != HEIR;
        }
    }
    return all;
}

/* The master decides something. */
void heirs_take_over(struct model *m)
{
    if (!m->waits) return;
    if (!is_due(m) && m->now - m->began < m->grace)
        REFUSE(m, "H5: a decision before all have come");
    m->waits = false;
    for (uint32_t i = 0; i < GROUPS; i++) {
        struct group *g = &m->groups[i];
        g->cause = g->used && g->view.count > 0;
        m->drafts[i].used = false;
    }
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p || p->standing != HEIR) continue;
        const struct group *g = group_of(m, p->group);
        bool in = find_id(&g->view, p->id) < g->view.count;
        p->standing = in ? DEAD : OUT;
    }
}

/* Rule H4: who is refused is in no will, or comes when the grace is over; the
 * master may have given it up with nobody left to tell. */
void heirs_refused(struct model *m, struct process *p)
{
    uint32_t i = (uint32_t)(group_of(m, p->group) - m->groups);
    bool sure = !m->drafts[i].used && !m->stale[i];
    bool in = sure && p->standing == HEIR && is_of(p, &m->wills[i]);
    if (m->waits && in && m->now - m->began >= m->grace)
        heirs_take_over(m);
    else if (m->waits && in)
        REFUSE(m, "H4: process %llu is in the last view, and is refused",
               (unsigned long long)p->id);
    p->asks = false;
}

/* At the end of an event. True: nothing else is to be looked at. */
bool heirs_settled(struct model *m)
{
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (p && p->inherits)
            REFUSE(m, "H7: process %llu does not get its INSTALL",
                   (unsigned long long)p->id);
        if (p && p->asks)
            REFUSE(m, "H4: process %llu has no answer to RESUME",
                   (unsigned long long)p->id);
    }
    m->unsettled &= !m->waits;
    return m->waits;
}

/* Rule H6: what one heir has been told, all are. */
bool heirs_answered(struct model *m, struct process *p, const struct trace *t)
{
    bool same = t->round == m->given[t->flag].number;
    bool known = m->given[t->flag].known;
    if (t->round < m->given[t->flag].number ||
        (same && known && t->value != m->given[t->flag].value))
        REFUSE(m, "H6: answer %u to vote %u, whose number is %u", t->value,
               t->flag, t->round);
    m->given[t->flag].number = t->round;
    m->given[t->flag].value = t->value;
    m->given[t->flag].known = true;
    bool former = same && known; /* V2 is of those who have voted since */
    if (former) p->answers[t->flag] = false;
    return former;
}
