/* stall.c - see stall.h. Rules W3 to W5. */
#include "stall.h"

#include "../admission.h"
#include "../votes.h"
#include "wait_graph.h"

#include <string.h>

/* One look at the run. */
struct look {
    const struct master *m;
    struct wait_graph *graph;
    pccl_ns age; /* younger waits do not count */
    struct stall *out;
    uint32_t count, most;
};

/* ------------------------------------------------------------- one member */

static enum evidence evidence_of(const struct master *m, uint32_t link)
{
    const struct master_peer *p = &m->peers[link];
    const struct peer_report *report = m->reports[link];
    if (p->silence.evidence != EVIDENCE_NONE) return p->silence.evidence;
    return report && report->seen_at > p->last_recv ? report->seen
                                                    : EVIDENCE_NONE;
}

/* It has called it, and it is not over. */
static bool in_sync(const struct master_peer *p)
{
    return p->sync.voted || p->sync.part != PART_NONE;
}

static enum stall_object vote_of(const struct master_peer *p)
{
    if (p->voted[VOTE_UPDATE]) return STALL_UPDATE;
    if (p->voted[VOTE_PENDING]) return STALL_PENDING;
    if (p->voted[VOTE_OPTIMIZE]) return STALL_OPTIMIZE;
    return in_sync(p) ? STALL_SYNC : STALL_OPERATION;
}

/* Of a process that is in no call (W4). */
static enum stall_cause cause_of_process(const struct master *m, uint32_t link)
{
    enum { BUSY = 100, MUCH = 500, FAULTS = 100 };
    const struct peer_report *report = m->reports[link];
    if (wait_is_silent(m, link)) {
        switch (evidence_of(m, link)) {
        case EVIDENCE_STOPPED:
            return CAUSE_STOPPED;
        case EVIDENCE_TRACED:
            return CAUSE_TRACED;
        case EVIDENCE_RUNNABLE:
            return CAUSE_STARVED;
        default:
            return CAUSE_SILENT;
        }
    }
    if (!report) return CAUSE_NOT_CALLED;
    const struct wire_self *self = &report->self;
    if (self->state == 't') return CAUSE_TRACED;
    if (self->starve >= MUCH && self->cpu < BUSY) return CAUSE_STARVED;
    if (self->state == 'D' && self->faults >= FAULTS) return CAUSE_SWAPS;
    if (self->state == 'R' || self->cpu >= BUSY) return CAUSE_COMPUTES;
    return CAUSE_NOT_CALLED;
}

/* ------------------------------------------------------------- one culprit */

static bool blame_link(const struct master *m, struct stall *s)
{
    uint64_t id = m->peers[s->culprit].info.id;
    for (uint32_t i = 0; i < s->waiter_count && i < STALL_WAITERS_MAX; i++) {
        uint32_t w = s->waiters[i];
        if (wait_is_silent(m, s->culprit) ||
            !peer_report_is_quiet(m->reports[w], id))
            continue;
        bool both =
            peer_report_is_quiet(m->reports[s->culprit], m->peers[w].info.id);
        s->cause = both ? CAUSE_PARTITION : CAUSE_HALF_OPEN;
        s->other = w;
        return true;
    }
    return false;
}

static void blame_call(struct look *l, struct stall *s,
                       const struct wire_wait *w)
{
    const struct master *m = l->m;
    s->his = *w;
    s->cause = CAUSE_OTHER_CALL;
    if (w->kind == WAIT_COLLECTIVE) return;
    s->cause = w->kind == WAIT_SEND ? CAUSE_SENDS : CAUSE_RECEIVES;
    s->other = wait_link_of(m, s->group, w->peer);
    if (s->other == MASTER_NO_LINK) return;
    uint32_t count = s->waiter_count;
    if (count > STALL_WAITERS_MAX) count = STALL_WAITERS_MAX;
    if (wait_leads_to(l->graph, s->other, s->waiters, count))
        s->cause = CAUSE_CYCLE;
}

/* Why the culprit keeps the waiters waiting (W4). */
static void blame(struct look *l, struct stall *s)
{
    const struct master *m = l->m;
    const struct master_peer *p = &m->peers[s->culprit];
    const struct wire_wait *w = wait_blocked_in(m, s->culprit);
    s->other = MASTER_NO_LINK;
    s->his_vote = STALL_OPERATION;
    if (blame_link(m, s)) return;
    if (wait_is_silent(m, s->culprit)) {
        s->cause = cause_of_process(m, s->culprit);
    } else if (vote_of(p) != STALL_OPERATION && vote_of(p) != s->object) {
        s->cause = CAUSE_OTHER_CALL;
        s->his_vote = vote_of(p);
    } else if (w) {
        blame_call(l, s, w);
    } else {
        s->cause = cause_of_process(m, s->culprit);
    }
}

/* Those with the lowest ranks are kept, in their order. */
static void add_waiter(const struct master *m, struct stall *s, uint32_t link)
{
    uint32_t at = s->waiter_count++;
    if (at >= STALL_WAITERS_MAX) at = STALL_WAITERS_MAX;
    while (at > 0 && m->peers[s->waiters[at - 1]].rank > m->peers[link].rank) {
        if (at < STALL_WAITERS_MAX) s->waiters[at] = s->waiters[at - 1];
        at--;
    }
    if (at < STALL_WAITERS_MAX) s->waiters[at] = link;
}

/* False: whoever causes it, it is not told. */
static bool counts(const struct look *l, const struct stall *s)
{
    return s->age >= l->age && l->count < l->most;
}

static void emit(struct look *l, struct stall *s)
{
    if (counts(l, s)) l->out[l->count++] = *s;
}

/* ------------------------------------------------------------ the waits */

static pccl_ns age_of(const struct master *m, uint32_t link,
                      const struct wire_wait *w)
{
    return m->now - m->reports[link]->at + (pccl_ns)w->age_ms * PCCL_MS;
}

static void gather_waiters(struct look *l, struct stall *s)
{
    const struct wait_graph *g = l->graph;
    const struct wait_entry *e = wait_graph_first(g, g->of);
    for (; e; e = wait_graph_next(g, e)) {
        bool waits = e->part == WAIT_PART_SAME && e->wait->blocks;
        if (!waits || !wait_report(l->m, e->link)) continue;
        add_waiter(l->m, s, e->link);
        pccl_ns age = age_of(l->m, e->link, e->wait);
        if (age > s->age) s->age = age;
    }
}

/* A waiter hears nothing of some member, with which it may exchange the data.
 * True: it was told. */
static bool judge_links(struct look *l, struct stall *s)
{
    const struct master *m = l->m;
    bool any = false;
    for (uint32_t i = 0; i < s->waiter_count && i < STALL_WAITERS_MAX; i++) {
        const struct peer_report *report = m->reports[s->waiters[i]];
        for (uint32_t k = 0; k + 1 < report->quiet_count; k += 2) {
            struct stall one = *s;
            one.culprit = wait_link_of(m, s->group, report->quiet[k]);
            if (one.culprit == MASTER_NO_LINK) continue;
            if (wait_is_silent(m, one.culprit))
                one.cause = cause_of_process(m, one.culprit);
            else if (!blame_link(m, &one))
                continue;
            emit(l, &one);
            any = true;
        }
    }
    return any;
}

/* All have called it: the data are late, or there are many (W4). */
static void judge_data(struct look *l, struct stall *s)
{
    enum { SLOW = 4 }; /* times slower than they were */
    const struct master *m = l->m;
    if (!counts(l, s) || judge_links(l, s)) return;
    for (uint32_t i = 0; i < s->waiter_count && i < STALL_WAITERS_MAX; i++) {
        const struct peer_report *report = m->reports[s->waiters[i]];
        uint64_t rate = peer_report_rate(report, &s->wait);
        if (rate > s->rate) s->rate = rate;
        if (report->best > s->best) s->best = report->best;
    }
    s->cause = s->rate < s->best / SLOW ? CAUSE_SLOW : CAUSE_MOVES;
    if (s->rate == 0) s->cause = CAUSE_NO_DATA;
    emit(l, s);
}

/* Once, by the first waiter that is heard. */
static void judge_operation(struct look *l, uint32_t link,
                            const struct wire_wait *w)
{
    const struct master *m = l->m;
    struct stall s = {.object = STALL_OPERATION,
                      .group = m->peers[link].group,
                      .culprit = MASTER_NO_LINK,
                      .other = MASTER_NO_LINK,
                      .wait = *w};
    struct wait_op *op = wait_graph_find(l->graph, s.group, w);
    uint32_t lacks, unknown;
    if (op->judged) return;
    op->judged = true;
    wait_graph_choose(l->graph, op);
    gather_waiters(l, &s);
    wait_graph_count(l->graph, op, &lacks, &unknown);
    if (lacks == 0 && unknown == 0) judge_data(l, &s);
    for (uint32_t i = 0; i < m->link_end && lacks > 0 && counts(l, &s); i++) {
        wait_graph_choose(l->graph, op); /* a culprit's may be another one */
        if (wait_part(l->graph, i) != WAIT_PART_LACKS) continue;
        s.culprit = i;
        blame(l, &s);
        emit(l, &s);
    }
}

static void judge_message(struct look *l, uint32_t link,
                          const struct wire_wait *w)
{
    const struct master *m = l->m;
    struct stall s = {.object = STALL_MESSAGE,
                      .group = m->peers[link].group,
                      .wait = *w,
                      .age = age_of(m, link, w)};
    add_waiter(m, &s, link);
    if (!counts(l, &s)) return;
    s.culprit = wait_link_of(m, s.group, w->peer);
    s.other = MASTER_NO_LINK;
    if (s.culprit != MASTER_NO_LINK && wait_is_member(&m->peers[s.culprit]))
        blame(l, &s);
    else
        s.culprit = MASTER_NO_LINK;
    emit(l, &s);
}

/* The round judges the operations; it is what all wait for. */
static bool is_changing(const struct master *m, uint32_t link)
{
    return m->groups[m->peers[link].group].phase != GROUP_OPEN;
}

static void judge_reports(struct look *l)
{
    const struct master *m = l->m;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct peer_report *report = wait_report(m, i);
        if (!report || wait_is_silent(m, i) || is_changing(m, i)) continue;
        for (uint32_t k = 0; k < report->wait_count; k++) {
            const struct wire_wait *w = &report->waits[k];
            if (!w->blocks) continue;
            if (w->kind == WAIT_COLLECTIVE)
                judge_operation(l, i, w);
            else if (w->kind < WAIT_REQUESTS)
                judge_message(l, i, w);
        }
    }
}

/* ---------------------------------------------------------- votes, rounds */

static bool in_vote(const struct master_peer *p, enum stall_object vote)
{
    switch (vote) {
    case STALL_UPDATE:
        return p->voted[VOTE_UPDATE];
    case STALL_PENDING:
        return p->voted[VOTE_PENDING];
    case STALL_OPTIMIZE:
        return p->voted[VOTE_OPTIMIZE];
    default:
        return in_sync(p);
    }
}

/* These concern all groups, the others one of them. */
static bool is_of_all(enum stall_object vote)
{
    return vote == STALL_UPDATE || vote == STALL_PENDING;
}

static void judge_vote(struct look *l, enum stall_object vote, uint32_t group)
{
    const struct master *m = l->m;
    struct stall s = {.object = vote, .group = group};
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!wait_is_member(p) || !in_vote(p, vote)) continue;
        if (!is_of_all(vote) && p->group != group) continue;
        add_waiter(m, &s, i);
        if (m->now - p->voted_at > s.age) s.age = m->now - p->voted_at;
    }
    for (uint32_t i = 0; i < m->link_end && s.waiter_count > 0; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!counts(l, &s)) return;
        if (!wait_is_member(p) || in_vote(p, vote)) continue;
        if (!is_of_all(vote) && p->group != group) continue;
        if (m->reports[i] && m->now - m->reports[i]->at > s.age &&
            !wait_is_silent(m, i))
            continue; /* its report is older than the votes */
        s.culprit = i;
        blame(l, &s);
        emit(l, &s);
    }
}

/* A synchronization that all have called: a participant is silent, or does not
 * hear another one. */
static void judge_sync(struct look *l, uint32_t group)
{
    const struct master *m = l->m;
    struct stall s = {
        .object = STALL_SYNC, .group = group, .other = MASTER_NO_LINK};
    if (m->groups[group].sync_id == 0) return;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!wait_is_member(p) || p->group != group ||
            p->sync.part == PART_NONE)
            continue;
        if (!wait_is_silent(m, i) && m->reports[i]) add_waiter(m, &s, i);
        if (m->now - p->voted_at > s.age) s.age = m->now - p->voted_at;
    }
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!wait_is_member(p) || p->group != group ||
            p->sync.part == PART_NONE || !wait_is_silent(m, i))
            continue;
        s.culprit = i;
        s.cause = cause_of_process(m, i);
        emit(l, &s);
    }
    (void)judge_links(l, &s);
}

/* Newcomers wait for the update of members, or for each other. */
static void judge_newcomers(struct look *l)
{
    const struct master *m = l->m;
    struct stall s = {.object = STALL_ADMISSION, .culprit = MASTER_NO_LINK};
    uint32_t members = master_count(m, PEER_MEMBER);
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state != PEER_REGISTERED) continue;
        add_waiter(m, &s, i);
        s.have += !p->join;
        s.group = p->group;
        if (m->now - p->since > s.age) s.age = m->now - p->since;
    }
    if (s.waiter_count == 0) return;
    if (members == 0) {
        s.object = STALL_QUORUM;
        s.want = m->quorum;
        emit(l, &s);
        return;
    }
    /* With a vote under way, judge_vote() names who lacks. */
    for (uint32_t i = 0; i < m->link_end; i++)
        if (wait_is_member(&m->peers[i]) && m->peers[i].voted[VOTE_UPDATE])
            return;
    emit(l, &s);
}

/* All members wait in an update, for newcomers (rule M14). */
static void judge_few(struct look *l)
{
    const struct master *m = l->m;
    struct stall s = {
        .object = STALL_QUORUM, .culprit = MASTER_NO_LINK, .want = m->minimum};
    if (!votes_all(m, VOTE_UPDATE) || !admission_lacks(m, &s.have)) return;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!wait_is_member(p) || !p->voted[VOTE_UPDATE]) continue;
        add_waiter(m, &s, i);
        s.group = p->group;
        if (m->now - p->voted_at > s.age) s.age = m->now - p->voted_at;
    }
    if (s.waiter_count > 0) emit(l, &s);
}

static bool owes(const struct master_group *g, const struct master_peer *p)
{
    if (g->phase == GROUP_PROPOSED) return p->proposed && !p->ready;
    bool asks = g->phase == GROUP_FLUSHING || g->phase == GROUP_ASKING;
    return asks && p->state == PEER_MEMBER && p->answer == ANSWER_DUE;
}

static void judge_round(struct look *l, uint32_t group)
{
    const struct master *m = l->m;
    const struct master_group *g = &m->groups[group];
    struct stall s = {
        .object = STALL_ROUND, .group = group, .age = m->now - g->broken_at};
    if (g->phase == GROUP_OPEN) return;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->group != group || !wait_is_member(p) || owes(g, p)) continue;
        add_waiter(m, &s, i);
    }
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state == PEER_FREE || p->group != group || !owes(g, p)) continue;
        s.culprit = i;
        s.other = MASTER_NO_LINK;
        s.cause = cause_of_process(m, i);
        emit(l, &s);
    }
}

/* The culprit waits for somebody itself, who is named elsewhere; or all is
 * well. */
static bool is_derived(const struct stall *s)
{
    return s->cause == CAUSE_OTHER_CALL || s->cause == CAUSE_RECEIVES ||
           s->cause == CAUSE_SENDS || s->cause == CAUSE_MOVES;
}

static void sort(struct stall *s, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t k = i; k > 0; k--) {
            bool later = is_derived(&s[k - 1]) && !is_derived(&s[k]);
            bool more = is_derived(&s[k - 1]) == is_derived(&s[k]) &&
                        s[k].waiter_count > s[k - 1].waiter_count;
            if (!later && !more) break;
            struct stall other = s[k];
            s[k] = s[k - 1];
            s[k - 1] = other;
        }
    }
}

uint32_t stall_find(const struct master *m, pccl_ns age, struct stall *out,
                    uint32_t most)
{
    struct look l = {.m = m, .age = age, .out = out, .most = most};
    l.graph = wait_graph_new(m);
    if (!l.graph) return 0;
    for (uint32_t i = 0; i < m->group_count; i++)
        judge_round(&l, m->group_list[i]);
    judge_vote(&l, STALL_UPDATE, 0);
    judge_vote(&l, STALL_PENDING, 0);
    for (uint32_t i = 0; i < m->group_count; i++) {
        judge_vote(&l, STALL_OPTIMIZE, m->group_list[i]);
        if (m->groups[m->group_list[i]].sync_id == 0)
            judge_vote(&l, STALL_SYNC, m->group_list[i]);
        judge_sync(&l, m->group_list[i]);
    }
    judge_reports(&l);
    judge_few(&l);
    judge_newcomers(&l);
    wait_graph_free(l.graph);
    sort(out, l.count);
    return l.count;
}
