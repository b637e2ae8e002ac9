/* admission.c - see admission.h. */
#include "admission.h"
#include "votes.h"

#include <inttypes.h>
#include <stdio.h>

bool admission_lacks(const struct master *m, uint32_t *have)
{
    *have = m->tally.members + m->in_state[PEER_REGISTERED];
    return *have < m->minimum;
}

/* Once, until there are enough members again. */
void admission_settle(struct master *m)
{
    uint32_t have, members = m->tally.members;
    if (m->minimum < 2) return;
    if (members == 0 || members >= m->minimum) m->waits = false;
    if (m->waits || !votes_all(m, VOTE_UPDATE) || !admission_lacks(m, &have))
        return;
    char text[WIRE_TEXT_MAX];
    (void)snprintf(text, sizeof text,
                   "%" PRIu32 " of at least %" PRIu32
                   " members are left: the training waits for newcomers",
                   members, m->minimum);
    struct master_note note = {.kind = NOTE_STALLED, .reason = text};
    m->waits = true;
    master_note_send(m, &note);
}

/* Rule M1. */
void admission_full(struct master *m, uint32_t link, uint32_t known)
{
    char text[WIRE_TEXT_MAX] = "the run is full";
    if (known >= m->peers_max && known < PEERS_MAX)
        (void)snprintf(text, sizeof text,
                       "the run is full: its coordinator has descriptors for "
                       "%u members (ulimit -n)",
                       m->peers_max);
    master_drop(m, link, text);
}

void admission_refuse(struct master *m)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        if (m->peers[i].state == PEER_REGISTERED && m->peers[i].join)
            master_drop(m, i,
                        m->left ? "the job has ended"
                                : "all members of the job were lost");
    }
}

/* A group has no ring, or a better one than the current ring is known. */
static bool any_ring_due(const struct master *m)
{
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct master_group *g = &m->groups[m->group_list[i]];
        if (g->epoch == 0) continue;
        if (!g->ring || optimize_has_better(m, m->group_list[i])) return true;
    }
    return false;
}

/* When the first member began to wait for the update. */
static pccl_ns first_vote(const struct master *m)
{
    pccl_ns first = m->now;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        bool waits = p->state == PEER_MEMBER && p->voted[VOTE_UPDATE];
        if (waits && p->voted_at < first) first = p->voted_at;
    }
    return first;
}

/* Rules M2, M3: the first view waits for the quorum; a later newcomer waits for
 * a unanimous VOTE_UPDATE of all members of all groups. If no ring could be
 * made, an update retries without newcomers (R4). */
void admission_admit(struct master *m)
{
    if (!master_all_open(m)) return;
    uint32_t members = master_count(m, PEER_MEMBER);
    if (m->job && m->founded && members == 0) admission_refuse(m);
    uint32_t waiting = m->in_state[PEER_REGISTERED];
    uint32_t quorum = m->founders;
    bool first =
        members == 0 && waiting > 0 && (m->founded || quorum >= m->quorum);
    bool voted = members > 0 && votes_all(m, VOTE_UPDATE);
    if (!first && !voted) return;
    if (voted && admission_lacks(m, &quorum)) return; /* M14a */
    if (first) m->left = false;
    if (waiting == 0 && !any_ring_due(m)) {
        votes_answer(m, VOTE_UPDATE, 1);
        return;
    }
    for (uint32_t i = 0; i < m->group_count; i++) {
        struct master_group *g = &m->groups[m->group_list[i]];
        g->update = true;
        g->admitted = m->id_last;
        g->update_at = m->now;
        g->restart = true;
        edges_retry(m, m->group_list[i], first_vote(m));
        g->broken_at = m->now;
    }
}
