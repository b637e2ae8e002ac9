/* votes.c - the votes of all members. See votes.h. */
#include "votes.h"

/* Numbers may wrap around. */
bool votes_is_new(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    bool pending = msg->type == WIRE_VOTE && msg->vote.kind == VOTE_PENDING;
    if ((int32_t)(msg->round - p->call) <= 0) return false; /* came before */
    p->call = msg->round;
    /* Rule F6: it was under way when INSTALL refused it. */
    if (!pending && msg->epoch < p->refused) return false;
    p->voted_at = m->now;
    return true;
}

void votes_take(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    if (!votes_is_new(m, link, msg)) return;
    if (m->peers[link].voted[msg->vote.kind]) {
        master_drop(m, link, "voted twice for the same question");
        return;
    }
    master_vote(m, link, msg->vote.kind, true);
}

void votes_end(struct master *m, uint32_t link, uint32_t epoch)
{
    struct master_peer *p = &m->peers[link];
    master_vote(m, link, VOTE_UPDATE, false);
    master_vote(m, link, VOTE_OPTIMIZE, false);
    p->sync.voted = false;
    p->refused = epoch;
}

bool votes_all(const struct master *m, enum vote_kind kind)
{
    const struct master_tally *t = &m->tally;
    return t->members > 0 && t->votes[kind] == t->members;
}

void votes_answer(struct master *m, enum vote_kind kind, uint8_t flag)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state != PEER_MEMBER || !p->voted[kind]) continue;
        master_vote(m, i, (int)kind, false);
        m->links[count++] = i;
    }
    struct wire_msg answer = {.type = WIRE_ANSWER};
    /* Rule H6. A refusal is for those that wait, no answer for all. */
    if (flag != 0xff) answer.round = ++m->succession.answered[kind];
    answer.vote.kind = (uint8_t)kind;
    answer.vote.flag = flag;
    if (count > 0) m->out.send(m->out.user, m->links, count, &answer);
}

/* A member that waits in a synchronization, too, may see it complete (S2). */
static bool is_free(const struct master *m, const struct master_peer *p,
                    uint32_t group, uint32_t what)
{
    (void)m, (void)group, (void)what;
    if (p->state != PEER_MEMBER || p->leaving) return false;
    return (!p->voted[VOTE_UPDATE] && !p->voted[VOTE_PENDING]) ||
           p->sync.voted || p->sync.part != PART_NONE;
}

/* All members wait, but for different answers, so no answer can ever come. Not
 * amid a round: its INSTALL may refuse some of them (F6). */
void votes_refuse_crossed(struct master *m)
{
    const struct master_tally *t = &m->tally;
    uint32_t votes = t->votes[VOTE_UPDATE] + t->votes[VOTE_PENDING];
    if (t->members == 0 || votes < t->members || votes_all(m, VOTE_UPDATE) ||
        !master_all_open(m) || master_finds(m, &m->crossed, is_free, 0, 0))
        return;
    votes_answer(m, VOTE_UPDATE, 0xff);
    votes_answer(m, VOTE_PENDING, 0xff);
}
