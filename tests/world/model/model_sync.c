/* model_sync.c - synchronizations: when one is decided, how it ends, and what
 * another master makes of it. It knows neither which member is elected nor
 * which bytes move (S2 to S7), but that all have the same in the end. Rules S1,
 * S8, S9, H6, H8 and contract 3. */
#include "model_state.h"

static bool stays(const struct process *p, const struct group *g)
{
    return is_live(p, g) && !p->leaving;
}

void sync_asked(struct model *m, struct process *p, const struct trace *t)
{
    if (t->epoch < p->ended) return; /* F6a */
    p->in_sync = p->undecided = true;
    p->receives = false;
    average_votes(m, p, t);
    p->asks_again = t->joins;
    p->sync_from = t->number;
}

/* Rule S1: all have come to it. */
static void begins(struct model *m, struct group *g, const struct trace *t)
{
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (stays(p, g) && !p->undecided)
            REFUSE(m, "S1: synchronization %llu begins without %llu",
                   (unsigned long long)t->number, (unsigned long long)p->id);
    }
    if (g->phase != OPEN) REFUSE(m, "S1: a synchronization begins in a round");
    g->sync_last = t->number;
}

/* Rule S9: all wait, and not in the same call. It has no number. */
static void crosses(struct model *m, const struct group *g)
{
    bool all = true; /* ... in it, as far as nobody has been refused yet */
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (!stays(p, g)) continue;
        bool waits = p->in_sync || p->synced;
        all &= waits;
        for (uint32_t k = 0; k < VOTES; k++)
            waits |= p->voted[k] || p->answers[k];
        if (!waits)
            REFUSE(m, "S9: CROSSED, and %llu waits in nothing",
                   (unsigned long long)p->id);
    }
    if (all) REFUSE(m, "S9: CROSSED, and all wait in a synchronization");
    if (g->phase != OPEN) REFUSE(m, "V5: CROSSED amid a round");
}

void sync_given(struct model *m, struct process *p, const struct trace *t)
{
    struct group *g = group_of(m, p->group);
    bool over = t->message == MESSAGE_SYNCED;
    bool ends = t->flag == ROLE_COMPLETE || t->flag == ROLE_NO_STATE;
    if (!p->in_sync)
        REFUSE(m, "S1: a state for %llu, which does not wait",
               (unsigned long long)p->id);
    if (t->flag == ROLE_CROSSED) {
        crosses(m, g);
    } else if (p->asks_again && p->undecided && t->number > p->sync_from &&
               t->number <= g->sync_known) {
        if (!over || !ends) /* that of another master (H6) */
            REFUSE(m, "H6: %llu is told %u of a synchronization that is over",
                   (unsigned long long)p->id, t->flag);
    } else if (t->number > g->sync_last) {
        begins(m, g, t);
    } else if (t->number != g->sync_last || t->number == 0) {
        REFUSE(m, "S6: %llu is told of synchronization %llu",
               (unsigned long long)p->id, (unsigned long long)t->number);
    }
    if (t->flag == ROLE_COMPLETE && p->receives)
        REFUSE(m, "S8a: COMPLETE to %llu, which has not all of it",
               (unsigned long long)p->id);
    if (t->flag == ROLE_RECEIVE && p->undecided) average_follows(m, p, t);
    p->completed |= t->flag == ROLE_COMPLETE && !p->asks_again;
    p->receives = t->flag == ROLE_RECEIVE || t->flag == ROLE_DIFFERS;
    p->undecided = p->asks_again = false;
    if (!over) return;
    m->results++; /* as an answer (model_member.c) */
    p->in_sync = false;
    p->synced = true;
}

/* It has all, or gives up. */
void sync_has(struct model *m, struct process *p, const struct trace *t)
{
    if (t->number == group_of(m, p->group)->sync_last) p->receives = false;
}

/* Rule S8a: whoever still receives when it is complete gets NO_STATE. */
static void check_complete(struct model *m, const struct group *g)
{
    bool complete = false;
    uint64_t receives = 0;
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p || p->group != g->number) continue;
        complete |= p->completed;
        p->completed = false;
        if (is_live(p, g) && p->in_sync && p->receives) receives = p->id;
    }
    if (complete && receives > 0)
        REFUSE(m, "S8a: it is complete, and %llu still receives",
               (unsigned long long)receives);
}

/* Rule H6: what some heir knows. */
void sync_resumed(struct model *m, const struct process *p,
                  const struct trace *t)
{
    struct group *g = group_of(m, p->group);
    if (t->id_count > 0 && t->ids[0] > g->sync_known) g->sync_known = t->ids[0];
}

/* A member that asks again for one that is over gets its end (H6). Where all
 * wait, it is decided if they wait in the same call (S1); else all of them are
 * refused (S9, H8). */
void sync_settled(struct model *m)
{
    for (uint32_t i = 0; i < m->process_end && !m->no_disk; i++) {
        const struct process *p = m->processes[i];
        if (!p || p->standing != MEMBER || !p->asks_again || !p->undecided)
            continue;
        const struct group *g = group_of(m, p->group);
        if (p->sync_from < g->sync_known && !p->leaving && g->phase == OPEN &&
            !g->cause) /* after the round of H7 */
            REFUSE(m, "H6: %llu waits in a synchronization that is over",
                   (unsigned long long)p->id);
    }
    /* J1: a disk that refuses the record. */
    for (uint32_t k = 0; k < GROUPS && !m->wrong && !m->no_disk; k++) {
        const struct group *g = &m->groups[k];
        if (g->used) check_complete(m, g);
        bool syncs = false, all = true, others = false;
        for (uint32_t i = 0; i < m->process_end && g->used; i++) {
            const struct process *p = m->processes[i];
            if (!stays(p, g)) continue;
            bool votes = p->voted[UPDATE] || p->voted[OPTIMIZE];
            all &= votes || p->undecided;
            syncs |= p->undecided;
            others |= votes && !p->undecided;
        }
        if (!g->used || !all || !syncs || g->phase != OPEN || g->cause)
            continue;
        REFUSE(m,
               others
                   ? "S9: members wait in different calls, and for ever"
                   : "S1: all wait in a synchronization that is not decided");
    }
}

/* ------------------------------------------------------------ at a process */

/* Rule V1: votes and synchronizations are numbered; what waits is asked again
 * under its old number (H6). */
void call_numbered(struct model *m, struct process *p, const struct trace *t)
{
    if (t->round <= p->numbered && !t->joins && !p->speaks)
        REFUSE(m, "V1: number %u after %u", t->round, p->numbered);
    if (t->round > p->numbered) p->numbered = t->round;
}

void sync_read(struct process *p, const struct trace *t)
{
    p->moves = t->flag == ROLE_RECEIVE || t->flag == ROLE_DIFFERS;
    if (t->message != MESSAGE_SYNCED) return;
    p->shared = t->flag == ROLE_COMPLETE;
    p->sync_ended = t->number;
    bool ends = t->flag == ROLE_COMPLETE || t->flag == ROLE_NO_STATE;
    if (ends && t->number > p->sync_over) p->sync_over = t->number;
}

void sync_installed(struct process *p, const struct trace *t)
{
    if (t->number > p->sync_over) p->sync_over = t->number;
}

void sync_resumes(struct model *m, const struct process *p,
                  const struct trace *t)
{
    if (t->id_count != 2 || t->ids[0] != p->sync_over || t->ids[1] > t->ids[0])
        REFUSE(m, "H6: RESUME knows of synchronization %llu, not %llu",
               (unsigned long long)(t->id_count ? t->ids[0] : 0),
               (unsigned long long)p->sync_over);
}

void sync_says(struct model *m, struct process *p)
{
    if (!p->moves)
        REFUSE(m, "S8a: %llu has a state that it was not to receive",
               (unsigned long long)p->id);
    p->moves = false;
}

/* Contract: all members hold the same bytes. */
void sync_taken(struct model *m, struct process *p, const struct trace *t)
{
    bool ended = p->shared;
    p->shared = false;
    bool own = t->flag == BAD_ARGUMENT || t->flag == INTERNAL; /* S6b, S7 */
    bool out = p->master_lost || p->state != IN_VIEW;
    if (ended && t->flag != SUCCESS && !own && !out)
        REFUSE(m, "S8: process %llu ends a synchronization with %u",
               (unsigned long long)p->id, t->flag);
    if (t->flag != SUCCESS) return;
    if (!ended)
        REFUSE(m, "S8: process %llu succeeds without COMPLETE",
               (unsigned long long)p->id);
    if (t->joins) return;
    for (uint32_t i = 0; i < SHARED_KEPT; i++) {
        if (m->states[i].number != p->sync_ended ||
            m->states[i].group != p->group)
            continue;
        if (m->states[i].digest != t->digest ||
            m->states[i].revision != t->ids[0])
            REFUSE(m, "S8: process %llu has other bytes after %llu",
                   (unsigned long long)p->id,
                   (unsigned long long)p->sync_ended);
        return;
    }
    uint32_t at = m->state_next++ % SHARED_KEPT;
    m->states[at].number = p->sync_ended;
    m->states[at].group = p->group;
    m->states[at].digest = t->digest;
    m->states[at].revision = t->ids[0];
}
