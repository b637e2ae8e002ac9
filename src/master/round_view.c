/* round_view.c - the view that a round proposes: its order, a newcomer that
 * cannot be in it, and the proposal's text for the members. */
#include "master.h"

#include <string.h>

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

/* Writes the next view's links in rank order to m->sorted. A peer with `join`
 * is no founder (M2). A proposed view is installed as proposed: a member that
 * asks to leave meanwhile leaves in the next round (M7). */
uint32_t round_next_view(struct master *m, uint32_t group)
{
    uint32_t count = 0;
    const struct master_group *g = &m->groups[group];
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->group != group) continue;
        bool stays = p->state == PEER_MEMBER && !p->leaving;
        bool joins = g->update && p->state == PEER_REGISTERED &&
                     (m->founded || !p->join);
        bool takes = g->phase == GROUP_PROPOSED ? p->proposed : stays || joins;
        if (takes && count < PEERS_MAX) m->sorted[count++] = i;
    }
    sort_links(m, m->sorted, count);
    for (uint32_t i = 0; i < count; i++)
        m->members[i] = m->peers[m->sorted[i]].info;
    return count;
}

static uint32_t bad_pairs(const struct master *m, uint32_t group,
                          uint32_t count, uint32_t i, uint32_t *with)
{
    uint32_t bad = 0;
    for (uint32_t j = count; j-- > 0;) {
        const struct master_group *g = &m->groups[group];
        if (!order_is_bad(g, m->members[i].id, m->members[j].id)) continue;
        bad++;
        *with = j;
    }
    return bad;
}

/* Appends unless the text would exceed WIRE_TEXT_MAX bytes. */
static void append(char *text, const char *more)
{
    size_t used = strnlen(text, WIRE_TEXT_MAX);
    size_t size = strnlen(more, WIRE_TEXT_MAX - used);
    memcpy(text + used, more, size);
    text[used + size] = '\0';
}

static void add_number(char *text, uint32_t value)
{
    char digits[12];
    char *at = digits + sizeof digits;
    *--at = '\0';
    do *--at = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    append(text, at);
}

/* Rule R4: a newcomer without a place in any ring is refused, and the refusal
 * names the pair without a link. Members are never evicted for a missing
 * link. */
bool round_refuse_newcomer(struct master *m, uint32_t group, uint32_t count)
{
    struct master_group *g = &m->groups[group];
    uint32_t worst = 0;
    uint32_t most = 0;
    uint32_t with = 0;
    for (uint32_t i = count; i-- > 0;) {
        uint32_t other;
        if (m->peers[m->sorted[i]].state != PEER_REGISTERED) continue;
        uint32_t bad = bad_pairs(m, group, count, i, &other);
        if (bad <= most) continue;
        most = bad;
        worst = i;
        with = other;
    }
    if (most == 0) return false;
    char why[WIRE_TEXT_MAX + 1] = "cannot exchange data with rank ";
    add_number(why, with);
    append(why, " (pid ");
    add_number(why, m->members[with].pid);
    append(why, "), and there is no ring without this pair: neither can "
                "call the other");
    master_drop(m, m->sorted[worst], why);
    g->restart = true;
    return true;
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
    msg.view.update = g->update;
    msg.view.optimize = g->optimize;
    msg.order_count = identity ? 0 : count;
    msg.order = m->order;
    msg.site_count = g->mesh ? sites_find(m, count) : 0;
    msg.sites = m->sites;
    msg.pair_count = edges_reversed(g, m->pairs);
    msg.pairs = m->pairs;
    msg.epoch = 0;
    msg.member_count = count;
    msg.members = m->members;
    if (old < count)
        m->out.send(m->out.user, m->sorted + old, count - old, &msg);
    msg.epoch = g->epoch;
    msg.member_count = count - old;
    msg.members = m->members + old;
    msg.id_count = round_dead_ids(m, group, true);
    msg.ids = m->ids;
    if (old > 0) m->out.send(m->out.user, m->sorted, old, &msg);
}
