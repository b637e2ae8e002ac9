/* wait_graph.c - see wait_graph.h. */
#include "wait_graph.h"

bool wait_is_member(const struct master_peer *p)
{
    return p->state == PEER_MEMBER && !p->leaving;
}

bool wait_is_silent(const struct master *m, uint32_t link)
{
    const struct master_peer *p = &m->peers[link];
    return m->now - p->last_recv >= 2 * PCCL_TIME_TO_PING(m->deadline);
}

uint32_t wait_link_of(const struct master *m, uint32_t group, uint64_t id)
{
    return id == 0 ? MASTER_NO_LINK : edges_link_of(m, group, id);
}

const struct peer_report *wait_report(const struct master *m, uint32_t link)
{
    const struct master_peer *p = &m->peers[link];
    const struct peer_report *report = m->reports[link];
    if (!report || !report->current || !wait_is_member(p)) return NULL;
    return report->epoch == m->groups[p->group].epoch ? report : NULL;
}

const struct wire_wait *wait_blocked_in(const struct master *m, uint32_t link)
{
    const struct peer_report *report = wait_report(m, link);
    for (uint32_t i = 0; report && i < report->wait_count; i++) {
        const struct wire_wait *w = &report->waits[i];
        if (w->blocks && w->kind < WAIT_REQUESTS) return w;
    }
    return NULL;
}

/* `waiter` reports the operation, and so the scope. */
static bool is_of_scope(const struct master *m, uint32_t link, uint32_t waiter,
                        const struct wire_wait *w)
{
    const struct master_peer *p = &m->peers[link];
    if (!wait_is_member(p) || p->group != m->peers[waiter].group) return false;
    if (w->scope == 0) return true;
    const struct master_set *set =
        peer_report_scope(m->reports[waiter], w->scope);
    return set && (set->bits[p->rank / 64] >> p->rank % 64 & 1);
}

enum wait_part wait_part_of(const struct master *m, uint32_t link,
                            uint32_t waiter, const struct wire_wait *w)
{
    const struct peer_report *report = m->reports[link];
    if (!is_of_scope(m, link, waiter, w)) return WAIT_PART_NONE;
    if (report && report->epoch == m->reports[waiter]->epoch) {
        if (peer_report_lists(report, w)) return WAIT_PART_SAME;
        if (peer_report_answers(report, w, WAIT_PAST)) return WAIT_PART_PAST;
        if (peer_report_answers(report, w, WAIT_LACKS)) return WAIT_PART_LACKS;
    }
    return wait_is_silent(m, link) ? WAIT_PART_LACKS : WAIT_PART_UNKNOWN;
}

bool wait_is_repeated(const struct master *m, uint32_t link,
                      const struct wire_wait *w)
{
    for (uint32_t i = 0; i < link; i++) {
        const struct peer_report *report = wait_report(m, i);
        if (!report || m->peers[i].group != m->peers[link].group) continue;
        const struct wire_wait *other = peer_report_lists(report, w);
        if (other && other->blocks) return true;
    }
    return false;
}

/* The wait of `from` is one for `to`. */
static bool waits_for(const struct master *m, uint32_t from, uint32_t to,
                      const struct wire_wait *w)
{
    if (w->kind == WAIT_COLLECTIVE)
        return wait_part_of(m, to, from, w) == WAIT_PART_LACKS;
    return w->peer != 0 && m->peers[to].info.id == w->peer &&
           wait_is_member(&m->peers[to]);
}

bool wait_leads_to(const struct master *m, uint32_t from, uint32_t target)
{
    uint8_t seen[MASTER_LINKS_MAX] = {0};
    uint16_t todo[MASTER_LINKS_MAX];
    uint32_t count = 0;
    todo[count++] = (uint16_t)from;
    seen[from] = 1;
    while (count > 0) {
        uint32_t at = todo[--count];
        const struct wire_wait *w = wait_blocked_in(m, at);
        if (at == target) return true;
        if (!w || wait_is_silent(m, at)) continue;
        for (uint32_t i = 0; i < m->link_end; i++) {
            if (seen[i] || !waits_for(m, at, i, w)) continue;
            seen[i] = 1;
            todo[count++] = (uint16_t)i;
        }
    }
    return false;
}
