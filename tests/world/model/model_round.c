/* model_round.c - one round of a group, as the master must lead it: lists,
 * questions, donations, verdicts. Rules R1, R2, F1, F4 to F8, V4. */
#include "model_state.h"

#include <string.h>

struct group *group_of(struct model *m, uint32_t number)
{
    uint32_t i = 0;
    while (i < GROUPS && m->groups[i].used && m->groups[i].number != number)
        i++;
    if (i == GROUPS) {
        REFUSE(m, "too many groups");
        return &m->groups[0];
    }
    m->groups[i].used = true;
    m->groups[i].number = number;
    return &m->groups[i];
}

bool is_live(const struct process *p, const struct group *g)
{
    return p && p->standing == MEMBER && p->group == g->number;
}

/* Ranks of the view that ends whose members live. */
uint32_t live_ranks(struct model *m, const struct group *g)
{
    uint32_t live = 0;
    if (g->past || g->decided) return g->lived;
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (!is_live(p, g)) continue;
        uint32_t rank = find_id(&g->view, p->id);
        if (rank < g->view.count) live |= 1u << rank;
    }
    return live;
}

bool all_ready(const struct model *m, const struct group *g)
{
    for (uint32_t i = 0; i < g->next.count; i++) {
        const struct process *p = NULL;
        for (uint32_t k = 0; k < m->process_end; k++)
            if (m->processes[k] && m->processes[k]->id == g->next.of[i])
                p = m->processes[k];
        if (!p || !p->ready || !p->proposed) return false;
    }
    return true;
}

/* Rule M14a: members and newcomers. Who leaves does not count. */
bool too_few(const struct model *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        count += p && !p->leaving &&
                 (p->standing == MEMBER || p->standing == REGISTERED);
    }
    return m->minimum > 0 && count < m->minimum;
}

/* Rule F7: members that sit in an update or an optimization have nothing under
 * way, and who leaves has nobody to share it with. */
bool flush_needed(struct model *m, const struct group *g)
{
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (is_live(p, g) && !p->leaving && !p->voted[UPDATE] &&
            !p->voted[OPTIMIZE])
            return true;
    }
    return false;
}

void round_begins(struct model *m, struct group *g, const struct trace *t)
{
    round_deserted(m, g);
    if (g->decided)
        REFUSE(m, "J5: round %u will be installed, and another one begins",
               g->round);
    if (t->round <= g->round)
        REFUSE(m, "R1: round %u after round %u", t->round, g->round);
    bool voted =
        t->message == MESSAGE_PROPOSE && t->flag & (FOR_UPDATE | FOR_OPTIMIZE);
    if (!g->cause && !voted && !g->suspected)
        REFUSE(m, "R1: a round without a cause");
    if ((t->message == MESSAGE_FLUSH) != flush_needed(m, g))
        REFUSE(m, "F7: a flush that is needed, and only that");
    g->round = t->round;
    g->phase = t->message == MESSAGE_FLUSH ? FLUSHING : DONATING;
    g->cause = g->unlinked = g->suspected = false;
    g->blocked = 0;
    g->late = g->admits && m->now - g->update_at >= 2 * m->deadline;
    g->op_count = g->traits = 0;
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p || p->group != g->number) continue;
        p->flushed = p->sent = p->proposed = p->ready = p->installed = false;
        p->probe_due = false;
    }
}

static struct listed *find_op(struct group *g, const struct trace_name *n)
{
    for (uint32_t i = 0; i < g->op_count; i++)
        if (same_name(&g->ops[i].name, n)) return &g->ops[i];
    return NULL;
}

static uint32_t whole(const struct group *g)
{
    return g->view.count == 32 ? ~0u : (1u << g->view.count) - 1;
}

/* The ranks of a scope by the members that it is known to have. */
static uint32_t ranks_of(struct model *m, const struct group *g, uint64_t scope)
{
    uint32_t set = 0;
    if (scope == 0) return whole(g);
    for (uint32_t i = 0; i < m->scope_count; i++) {
        if (m->scopes[i].number != scope) continue;
        for (uint32_t k = 0; k < m->scopes[i].ids.count; k++) {
            uint32_t rank = find_id(&g->view, m->scopes[i].ids.of[k]);
            if (rank < g->view.count) set |= 1u << rank;
        }
    }
    return set;
}

/* Rule F8. */
static void check_sets(struct model *m, const struct group *g, uint32_t rank,
                       const struct trace *t)
{
    for (uint32_t i = 0; i < t->name_count; i++) {
        uint64_t scope = t->names[i].scope;
        if (scope == 0) continue;
        uint32_t set = ranks_of(m, g, scope);
        bool named = false;
        for (uint32_t k = 0; k < t->set_count; k++) named |= t->sets[k] == set;
        if (!named || !(set >> rank & 1))
            REFUSE(m, "F8: a list without the members of its scope");
    }
}

/* FLUSHED. */
void round_lists(struct model *m, struct group *g, struct process *p,
                 const struct trace *t)
{
    if (g->phase != FLUSHING || t->round != g->round || p->flushed) return;
    uint32_t rank = find_id(&g->view, p->id);
    check_sets(m, g, rank, t);
    for (uint32_t i = 0; i < t->name_count && !m->wrong; i++) {
        const struct trace_name *n = &t->names[i];
        struct listed *op = find_op(g, n);
        if (!op && g->op_count < 4 * CALLS) {
            op = &g->ops[g->op_count++];
            *op = (struct listed){.name = *n, .set = ranks_of(m, g, n->scope)};
        }
        if (!op || n->state > RETURNED || op->runs >> rank & 1) {
            REFUSE(m, "F8: a list that cannot be");
            return;
        }
        op->runs |= 1u << rank;
        op->lists[n->state] |= 1u << rank;
    }
    g->traits |= t->value;
    p->flushed = true;
    round_decides(m, g);
}

/* Rule F4. */
static void ask(struct group *g, uint32_t live)
{
    bool doubt = false;
    for (uint32_t i = 0; i < g->op_count; i++) {
        struct listed *op = &g->ops[i];
        uint32_t survivors = op->set & live;
        op->commit = (op->lists[COMPLETE] & survivors) == survivors;
        op->doubt = (op->runs & survivors) != survivors;
        doubt |= op->doubt;
        if (op->doubt) memset(op->lists, 0, sizeof op->lists);
    }
    g->phase = doubt ? ASKING : DONATING;
}

static void judge(struct model *m, struct listed *op, uint32_t survivors)
{
    op->commit = op->lists[RETURNED] != 0 ||
                 (op->lists[COMPLETE] & survivors) == survivors;
    op->donating = op->commit && op->lists[RUNNING] != 0;
    if (op->lists[RETURNED] != 0 && op->lists[ABSENT] != 0)
        REFUSE(m, "D5: a member has returned what another has not launched");
    if (op->donating && op->donors == 0)
        REFUSE(m, "D6, D7: nobody has a copy of a result that one returned");
}

/* Rule V4c: a member of the scope waits in an update, an optimization or a
 * synchronization that is not decided. One that is tells nobody while the disk
 * refuses its record (J1). */
static void look_for_votes(struct model *m, struct group *g)
{
    for (uint32_t k = 0; k < m->process_end; k++) {
        const struct process *p = m->processes[k];
        if (!is_live(p, g)) continue;
        uint32_t rank = find_id(&g->view, p->id);
        bool may = p->undecided && m->no_disk;
        bool waits =
            p->voted[UPDATE] || p->voted[OPTIMIZE] || (p->undecided && !may);
        for (uint32_t i = 0; rank < g->view.count && i < g->op_count; i++) {
            if (!(g->ops[i].set >> rank & 1)) continue;
            g->ops[i].awaits |= waits;
            g->ops[i].may_await |= may;
        }
    }
}

void round_decides(struct model *m, struct group *g)
{
    uint32_t live = live_ranks(m, g);
    if (g->phase == FLUSHING) {
        for (uint32_t i = 0; i < m->process_end; i++)
            if (is_live(m->processes[i], g) && !m->processes[i]->flushed)
                return;
        ask(g, live);
        return;
    }
    if (g->phase != ASKING) return;
    for (uint32_t i = 0; i < g->op_count; i++) {
        const struct listed *op = &g->ops[i];
        if (op->doubt && (op->replied & live) != (op->set & live)) return;
    }
    for (uint32_t i = 0; i < g->op_count; i++)
        if (g->ops[i].doubt) judge(m, &g->ops[i], g->ops[i].set & live);
    look_for_votes(m, g);
    g->phase = DONATING;
}

/* QUERY. */
void round_asks(struct model *m, struct group *g, struct process *p,
                const struct trace *t)
{
    if (g->phase != ASKING || t->round != g->round)
        REFUSE(m, "F4: QUERY before all lists are there, or without a doubt");
    uint32_t rank = find_id(&g->view, p->id);
    for (uint32_t i = 0; i < t->name_count && !m->wrong; i++) {
        struct listed *op = find_op(g, &t->names[i]);
        if (!op || !op->doubt || !(op->set >> rank & 1) ||
            op->asked >> rank & 1) {
            REFUSE(m, "F4: a question about what is not in doubt there");
            return;
        }
        op->asked |= 1u << rank;
    }
}

void round_replies(struct model *m, struct group *g, struct process *p,
                   const struct trace *t)
{
    if (g->phase != ASKING || t->round != g->round) return;
    uint32_t rank = find_id(&g->view, p->id);
    for (uint32_t i = 0; i < t->name_count && !m->wrong; i++) {
        struct listed *op = find_op(g, &t->names[i]);
        if (!op || !(op->asked >> rank & 1) || op->replied >> rank & 1 ||
            t->names[i].state > RETURNED) {
            REFUSE(m, "F8: an answer to no question");
            return;
        }
        op->replied |= 1u << rank;
        op->lists[t->names[i].state] |= 1u << rank;
        if (t->names[i].donor && t->names[i].state == RETURNED)
            op->donors |= 1u << rank;
    }
    round_decides(m, g);
}

/* DONATE. */
void round_donates(struct model *m, struct group *g, struct process *p,
                   const struct trace *t)
{
    struct listed *op = find_op(g, &t->names[0]);
    uint32_t rank = find_id(&g->view, p->id);
    if (g->phase != DONATING || t->round != g->round || !op || !op->donating ||
        op->donor != 0 || !(op->donors >> rank & 1))
        REFUSE(m, "F5: a donation that nobody needs, or of one without a copy");
    else
        op->donor = p->id;
}

/* RESULT, at the master and from it. */
void round_receives(struct group *g, const struct process *p,
                    const struct trace *t)
{
    struct listed *op = find_op(g, &t->names[0]);
    if (g->phase != DONATING || t->round != g->round || !op) return;
    if (op->donor != p->id || op->donated) return;
    op->donated = true;
    op->hash = t->number;
}

void round_relays(struct model *m, struct group *g, struct process *p,
                  const struct trace *t)
{
    struct listed *op = find_op(g, &t->names[0]);
    uint32_t rank = find_id(&g->view, p->id);
    if (g->phase != DONATING || t->round != g->round || !op || !op->donated ||
        op->hash != t->number || !(op->set >> rank & 1) ||
        op->relayed >> rank & 1)
        REFUSE(m, "F5: a result that was not donated, or not to this member");
    else
        op->relayed |= 1u << rank;
}

/* Every question and donation that is due is under way. */
bool round_complete(struct model *m, struct group *g)
{
    uint32_t live = live_ranks(m, g);
    bool complete = true;
    for (uint32_t i = 0; i < g->op_count; i++) {
        const struct listed *op = &g->ops[i];
        uint32_t survivors = op->set & live;
        if (g->phase == ASKING && op->doubt &&
            (op->asked & survivors) != survivors)
            REFUSE(m, "F4: a survivor is not asked");
        if (g->phase != DONATING || !op->donating) continue;
        if (op->donor == 0) REFUSE(m, "F5: nobody is asked for the result");
        complete &= op->donated;
        if (op->donated && (op->relayed & survivors) != survivors)
            REFUSE(m, "F5: a survivor does not get the result");
    }
    return complete && g->phase == DONATING;
}

/* ---------------------------------------------------------------- verdicts */

/* Rules F4, F6, V4: the verdicts that are right. */
static uint32_t verdicts(struct model *m, const struct group *g,
                         const struct listed *op)
{
    if (op->commit) return 1u << COMMIT;
    uint32_t live = live_ranks(m, g);
    uint32_t mask = 0;
    bool sure = false;
    for (uint32_t i = 0; i < g->forced_count; i++) {
        const struct trace_name *n = &g->forced[i].name;
        if (!same_name(n, &op->name) || (g->forced[i].ranks & ~op->set) != 0)
            continue;
        mask |= 1u << n->state;
        sure |= n->state != UNREACHABLE; /* of a pair that is bad (R4c) */
    }
    if (sure) return mask;
    if (op->may_await || op->awaits) mask |= 1u << USAGE;
    if (op->awaits) return mask;
    if (in_circle(g, live, op, true)) mask |= 1u << CROSSED;
    return in_circle(g, live, op, false) ? mask : mask | 1u << ABORT;
}

void round_judges(struct model *m, struct group *g, struct process *p,
                  const struct trace *t)
{
    uint32_t rank = find_id(&g->view, p->id);
    for (uint32_t i = 0; i < t->name_count && !m->wrong; i++) {
        const struct trace_name *n = &t->names[i];
        struct listed *op = find_op(g, n);
        if (!op || !(op->set >> rank & 1) || op->judged >> rank & 1 ||
            n->state == ABORT || !(verdicts(m, g, op) >> n->state & 1)) {
            REFUSE(m, "F4, F6: verdict %u on operation %llu of round %u",
                   n->state, (unsigned long long)n->tag, g->round);
            return;
        }
        if (op->judged != 0 && op->verdict != n->state)
            REFUSE(m, "F6: two verdicts on one operation");
        op->judged |= 1u << rank;
        op->verdict = n->state;
    }
}

/* INSTALL follows: p has every verdict of its scopes. */
void round_judged(struct model *m, struct group *g, const struct process *p)
{
    uint32_t rank = find_id(&g->view, p->id);
    for (uint32_t i = 0; i < g->op_count && rank < g->view.count; i++) {
        const struct listed *op = &g->ops[i];
        if (!(op->set >> rank & 1) || op->judged >> rank & 1) continue;
        if (op->judged != 0 || !(verdicts(m, g, op) & 1u << ABORT))
            REFUSE(m, "F6: a member of the scope does not get the verdict");
    }
}

/* Rule F6: who has had USAGE waits in no update, optimization or
 * synchronization any more. */
void round_refuses(const struct group *g, struct process *p)
{
    uint32_t rank = find_id(&g->view, p->id);
    bool any = false;
    for (uint32_t i = 0; i < g->op_count && rank < g->view.count; i++)
        any |= g->ops[i].judged >> rank & 1 && g->ops[i].verdict == USAGE;
    if (!any) return;
    p->voted[UPDATE] = p->voted[OPTIMIZE] = false;
    if (p->undecided) p->in_sync = p->undecided = false;
    p->ended = g->round;
}
