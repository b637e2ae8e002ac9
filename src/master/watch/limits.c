/* limits.c - how long a peer may owe an answer in a round (rule R8).
 *
 * Heartbeats prove that a peer lives, not that it does its part. Silence has
 * its own judge (silence.c): who is silent, and who waits for a silent one, is
 * given time here. */
#include "../master.h"

#include <stdio.h>

/* The message that the peer has not answered, or NULL. */
static const char *owed(const struct master *m, uint32_t link,
                        const bool *results)
{
    const struct master_peer *p = &m->peers[link];
    const struct master_group *g = &m->groups[p->group];
    bool member = p->state == PEER_MEMBER;
    switch (g->phase) {
    case GROUP_FLUSHING:
        return member && p->answer < ANSWER_FLUSHED ? "FLUSH" : NULL;
    case GROUP_ASKING:
        return member && p->answer < ANSWER_TOLD ? "QUERY" : NULL;
    case GROUP_DONATING:
        return member && results[link] ? "DONATE" : NULL;
    case GROUP_PROPOSED:
        return p->proposed && !p->ready ? "PROPOSE" : NULL;
    case GROUP_OPEN:
    case GROUP_PROBING:
    case GROUP_SOLVING:
    case GROUP_PHASE_COUNT:
        break;
    }
    return NULL;
}

void limits_begin(struct master *m, uint32_t group)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        if (m->peers[i].group == group)
            m->peers[i].debt = (struct master_debt){.since = m->now};
    }
}

void limits_extend(struct master *m, uint32_t link, pccl_ns since)
{
    pccl_ns *own = &m->peers[link].debt.since;
    if (*own < since) *own = since;
}

/* A proposed peer that the master does not hear: links to it wait (M10c). */
static bool delays_others(const struct master *m, uint32_t link)
{
    return m->peers[link].proposed && silence_is_suspect(m, link);
}

/* True: it has the time until the next tick. */
static bool has_time(struct master *m, uint32_t link, bool delayed)
{
    struct master_debt *d = &m->peers[link].debt;
    bool silent = silence_is_suspect(m, link);
    d->silent |= silent;
    if (silence_is_excused(m, link) || (delayed && !silent))
        *d = (struct master_debt){.since = m->now};
    return m->now - d->since < (d->silent ? 2 : 1) * m->deadline;
}

void limits_tick(struct master *m)
{
    bool delayed[GROUPS_MAX] = {false}, results[MASTER_LINKS_MAX] = {false};
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct master_group *g = &m->groups[m->group_list[i]];
        if (g->phase == GROUP_DONATING) round_ops_owing(g, results);
    }
    for (uint32_t i = 0; i < m->link_end; i++)
        if (delays_others(m, i)) delayed[m->peers[i].group] = true;
    for (uint32_t i = 0; i < m->link_end; i++) {
        enum master_peer_state s = m->peers[i].state;
        if (s != PEER_MEMBER && s != PEER_REGISTERED) continue;
        const char *what = owed(m, i, results);
        if (!what || has_time(m, i, delayed[m->peers[i].group])) continue;
        char text[WIRE_TEXT_MAX];
        (void)snprintf(text, sizeof text,
                       "did not answer %s within the deadline", what);
        master_drop(m, i, text);
    }
}
