/* round_view.c - the view that a round proposes: its order, and the proposal's
 * text for the members. */
#include "master.h"

/* Rule M5: survivors keep their order, newcomers follow; the first view is
 * ordered by rank hints. */
static bool stands_before(const struct master_peer *a,
                          const struct master_peer *b)
{
    bool old_a = a->state == PEER_MEMBER;
    bool old_b = b->state == PEER_MEMBER;
    if (old_a != old_b) return old_a;
    if (old_a) return a->rank < b->rank;
    uint32_t hint_a = a->join ? UINT32_MAX : (uint32_t)a->info.hint;
    uint32_t hint_b = b->join ? UINT32_MAX : (uint32_t)b->info.hint;
    if (hint_a != hint_b) return hint_a < hint_b; /* -1 comes last */
    return a->info.id < b->info.id;
}

static void sort_links(const struct master *m, uint32_t *links, uint32_t count)
{
    /* Shell sort: members come nearly sorted, and it needs no memory. */
    for (uint32_t gap = count / 2; gap > 0; gap /= 2) {
        for (uint32_t i = gap; i < count; i++) {
            uint32_t link = links[i];
            uint32_t at = i;
            while (at >= gap &&
                   stands_before(&m->peers[link], &m->peers[links[at - gap]])) {
                links[at] = links[at - gap];
                at -= gap;
            }
            links[at] = link;
        }
    }
}

/* Also of those that were lost since (J5). */
static uint32_t decided_view(struct master *m, uint32_t group)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state == PEER_FREE || p->group != group || !p->proposed)
            continue;
        m->sorted[p->next_rank] = i;
        m->members[p->next_rank] = p->info;
        count++;
    }
    return count;
}

/* Writes the next view's links in rank order to m->sorted. A peer with `join`
 * is no founder (M2), and who registered after the
 * vote waits (M3a). A proposed view is installed as proposed: a member that
 * asks to leave meanwhile leaves in the next round (M7). */
uint32_t round_next_view(struct master *m, uint32_t group)
{
    uint32_t count = 0;
    const struct master_group *g = &m->groups[group];
    if (g->decided) return decided_view(m, group);
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->group != group) continue;
        bool stays = p->state == PEER_MEMBER && !p->leaving;
        bool waited = m->founded ? p->info.id <= g->admitted : !p->join;
        bool joins = g->update && p->state == PEER_REGISTERED && waited;
        bool takes = g->phase == GROUP_PROPOSED ? p->proposed : stays || joins;
        if (takes && count < PEERS_MAX) m->sorted[count++] = i;
    }
    sort_links(m, m->sorted, count);
    for (uint32_t i = 0; i < count; i++)
        m->members[i] = m->peers[m->sorted[i]].info;
    return count;
}

void round_send_proposal(struct master *m, uint32_t group, uint32_t count)
{
    struct master_group *g = &m->groups[group];
    bool identity = true;
    for (uint32_t i = 0; i < count; i++) identity &= m->order[i] == i;
    uint32_t old = 0;
    while (old < count && m->peers[m->sorted[old]].state == PEER_MEMBER) old++;

    struct wire_msg msg = {.type = WIRE_PROPOSE, .round = g->round};
    msg.view.ring = g->ring;
    msg.view.mesh = g->mesh;
    msg.view.tree = g->tree;
    msg.view.grid = g->grid;
    msg.view.update = g->update;
    msg.view.optimize = g->optimize;
    msg.view.survey = g->survey;
    msg.order_count = identity ? 0 : count;
    msg.order = m->order;
    msg.relay_count = m->relay_count;
    msg.relays = m->relays;
    msg.site_count = g->mesh ? sites_find(m, count) : 0;
    msg.sites = m->sites;
    msg.epoch = 0;
    msg.member_count = count;
    msg.members = m->members;
    if (old < count)
        m->out.send(m->out.user, m->sorted + old, count - old, &msg);
    msg.epoch = g->epoch;
    msg.member_count = count - old;
    msg.members = m->members + old;
    msg.id_count = master_dead_ids(m, group, true);
    msg.ids = m->ids;
    if (old > 0) m->out.send(m->out.user, m->sorted, old, &msg);
}
