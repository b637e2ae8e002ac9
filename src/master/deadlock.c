/* deadlock.c - detects members that wait for each other in different calls
 * (rule V4).
 *
 * When a member has waited long in a vote, the master asks the other members
 * which operations block them, and asks the voters whether they have launched
 * these. */
#include "master.h"

#include "votes.h"

#include "../base/buggify.h"

/* A thread beside PENDING may launch operations: it gets more time. */
static bool waits_long(const struct master *m, const struct master_peer *p)
{
    pccl_ns since = m->now - p->voted_at;
    if (p->state != PEER_MEMBER) return false;
    bool early = PCCL_BUGGIFY(asked_early);
    return master_waits(p) ? since >= m->deadline / 2 || early
                           : p->voted[VOTE_PENDING] && since >= 2 * m->deadline;
}

/* Asked once per half a deadline while it lasts. */
void deadlock_probe(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    if (g->phase != GROUP_OPEN || g->restart) return;
    if (m->now - g->probed_at < m->deadline / 2) return;
    bool waiting = false;
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        if (p->state != PEER_MEMBER || p->group != group) continue;
        p->questions = 0;
        waiting |= waits_long(m, p);
        if (master_waits(p)) continue;
        m->links[count++] = i;
    }
    if (!waiting || count == 0) return;
    g->probed_at = m->now;
    for (uint32_t i = 0; i < count; i++) m->peers[m->links[i]].questions = 1;
    struct wire_msg probe = {.type = WIRE_QUERY, .epoch = g->epoch};
    m->out.send(m->out.user, m->links, count, &probe);
    round_ops_begin(m, group);
}

/* Asks the waiting members of a scope about the operations listed of it, but
 * for those that an earlier reply has listed. */
static void query_scope(struct master *m, uint32_t group,
                        const struct wire_msg *report,
                        const struct master_set *set)
{
    struct wire_msg question = {
        .type = WIRE_QUERY, .epoch = m->groups[group].epoch, .ops = m->ops};
    for (uint32_t i = 0; i < report->op_count; i++) {
        const struct wire_op *op = &report->ops[i];
        bool waits = op->state == OP_RUNNING || op->state == OP_COMPLETE;
        if (waits && op->scope == set->number &&
            round_ops_is_new(&m->groups[group], op))
            m->ops[question.op_count++] = *op;
    }
    if (question.op_count == 0) return;
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        if (p->group != group || !waits_long(m, p)) continue;
        if (set->number != 0 && !(set->bits[p->rank / 64] >> p->rank % 64 & 1))
            continue;
        p->questions++;
        m->links[count++] = i;
    }
    if (count > 0) m->out.send(m->out.user, m->links, count, &question);
}

static void query_waiting(struct master *m, uint32_t link,
                          const struct wire_msg *report)
{
    uint32_t group = m->peers[link].group;
    struct master_set set = {0};
    query_scope(m, group, report, &set); /* the whole view */
    for (uint32_t k = 0; k < report->set_count; k++) {
        if (round_read_set(m, link, report, k, &set))
            query_scope(m, group, report, &set);
    }
}

static bool lacks_one(const struct wire_msg *report)
{
    for (uint32_t i = 0; i < report->op_count; i++) {
        if (report->ops[i].state == OP_NOT_LAUNCHED) return true;
    }
    return false;
}

/* A member waits in a vote and has not launched an operation in which another
 * one is blocked: the lists of the flush show it, and both get an error instead
 * of a deadlock (round_ops_judge()). */
void deadlock_reply(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    struct master_group *g = &m->groups[p->group];
    if (g->phase != GROUP_OPEN || g->restart || msg->epoch != g->epoch) return;
    if (p->questions == 0) return;
    if (!master_waits(p)) {
        p->questions--;
        if (p->voted[VOTE_PENDING] && lacks_one(msg))
            votes_answer(m, VOTE_PENDING, 0xff);
        else
            query_waiting(m, link, msg);
        return;
    }
    p->questions--;
    if (!lacks_one(msg)) return;
    g->restart = true;
    g->broken_at = m->now;
}
