/* members.c - the peers: their states, how many there are of a kind, messages
 * to them, and how one goes. It calls nothing of the other files that agree;
 * they all call it. */
#include "master.h"

#include "watch/peer_report.h"

#include <stdlib.h>
#include <string.h>

#define STATE_BIT(s) BIT(PEER_##s)

static const uint32_t may_become[PEER_STATE_COUNT] = {
    [PEER_FREE] = STATE_BIT(CONNECTED),
    [PEER_CONNECTED] = STATE_BIT(REGISTERED) | STATE_BIT(FREE),
    [PEER_REGISTERED] = STATE_BIT(MEMBER) | STATE_BIT(FREE),
    [PEER_MEMBER] = STATE_BIT(DEAD) | STATE_BIT(FREE),
    [PEER_DEAD] = STATE_BIT(FREE),
};

static void tally(struct master_tally *t, const struct master_peer *p,
                  uint32_t by)
{
    t->members += by;
    for (int kind = 0; kind < VOTE_KIND_COUNT; kind++)
        if (p->voted[kind]) t->votes[kind] += by;
}

/* Adds a peer to what is counted, or with -1 takes it away. */
static void count(struct master *m, const struct master_peer *p, uint32_t by)
{
    enum master_peer_state s = p->state;
    struct master_group *g = &m->groups[p->group];
    if (s != PEER_FREE) m->in_state[s] += by;
    if (s == PEER_FREE || s == PEER_CONNECTED) return;
    g->peers += by;
    if (s == PEER_REGISTERED && !p->join) m->founders += by;
    if (s != PEER_MEMBER || p->leaving) return;
    tally(&m->tally, p, by);
    tally(&g->tally, p, by);
}

static bool is_found(enum master_peer_state s)
{
    return s == PEER_REGISTERED || s == PEER_MEMBER;
}

static void find_by_id(struct master *m, uint32_t link, bool found)
{
    struct master_peer *p = &m->peers[link];
    uint16_t *at = &m->by_id[p->info.id % ARRAY_COUNT(m->by_id)];
    if (found) {
        p->same_bits = *at;
        *at = (uint16_t)(link + 1);
        return;
    }
    while (*at != link + 1) at = &m->peers[*at - 1].same_bits;
    *at = p->same_bits;
}

uint32_t master_link_of(const struct master *m, uint32_t group, uint64_t id)
{
    uint32_t at = m->by_id[id % ARRAY_COUNT(m->by_id)];
    while (at > 0 && m->peers[at - 1].info.id != id)
        at = m->peers[at - 1].same_bits;
    return at > 0 && m->peers[at - 1].group == group ? at - 1 : MASTER_NO_LINK;
}

void master_release(struct master *m, uint32_t link)
{
    struct master_peer *p = &m->peers[link];
    bool has_slot = m->edges && p->state > PEER_CONNECTED;
    if (has_slot && p->slot != MASTER_NO_PLACE) {
        m->slots_used[p->slot / 64] &= ~(1ull << p->slot % 64);
        bandwidth_remove(m->edges, p->slot);
    }
    if (m->reports[link]) free(m->reports[link]->sets);
    free(m->reports[link]);
    m->reports[link] = NULL;
    free(p->held);
    p->held = NULL;
    if (m->replicas.phase == REPLICAS_COLLECTS && m->replicas.source == link)
        m->replicas.source = MASTER_NO_LINK;
}

void master_peer_move(struct master *m, uint32_t link,
                      enum master_peer_state next)
{
    PCCL_ASSERT(may_become[m->peers[link].state] & BIT(next));
    count(m, &m->peers[link], UINT32_MAX);
    if (next == PEER_FREE) master_release(m, link);
    m->groups[m->peers[link].group].samples.stale = true;
    if (is_found(m->peers[link].state) != is_found(next))
        find_by_id(m, link, is_found(next));
    m->peers[link].state = next;
    count(m, &m->peers[link], 1);
    if (next == PEER_FREE) memset(&m->peers[link], 0, sizeof m->peers[link]);
    if (next == PEER_FREE && link < m->link_free) m->link_free = link;
    while (m->link_free < MASTER_LINKS_MAX &&
           m->peers[m->link_free].state != PEER_FREE)
        m->link_free++;
}

void master_vote(struct master *m, uint32_t link, int kind, bool voted)
{
    struct master_peer *p = &m->peers[link];
    count(m, p, UINT32_MAX);
    p->voted[kind] = voted;
    count(m, p, 1);
}

void master_leaves(struct master *m, uint32_t link)
{
    struct master_peer *p = &m->peers[link];
    count(m, p, UINT32_MAX);
    p->leaving = true;
    count(m, p, 1);
}

bool master_finds(const struct master *m, uint32_t *hint, master_test *is,
                  uint32_t group, uint32_t what)
{
    uint32_t i = *hint < m->link_end ? *hint : 0;
    for (uint32_t left = m->link_end; left > 0; left--) {
        if (is(m, &m->peers[i], group, what)) {
            *hint = i;
            return true;
        }
        i = i + 1 < m->link_end ? i + 1 : 0;
    }
    return false;
}

uint32_t master_count(const struct master *m, enum master_peer_state state)
{
    uint32_t free = m->link_end;
    for (int s = PEER_FREE + 1; s < PEER_STATE_COUNT; s++)
        free -= m->in_state[s];
    return state == PEER_FREE ? free : m->in_state[state];
}

uint32_t master_free_link(const struct master *m)
{
    uint32_t strangers = m->in_state[PEER_CONNECTED];
    if (m->link_free == MASTER_LINKS_MAX) return MASTER_NO_LINK;
    for (uint32_t i = 0; i < m->link_end && strangers >= MASTER_STRANGERS_MAX;
         i++)
        strangers -= m->peers[i].held != NULL;
    return strangers < MASTER_STRANGERS_MAX ? m->link_free : MASTER_NO_LINK;
}

void master_send(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    m->out.send(m->out.user, &link, 1, msg);
}

void master_note_send(struct master *m, const struct master_note *note)
{
    if (m->out.note) m->out.note(m->out.user, note);
}

void master_forget(struct master *m, uint32_t link, bool lost)
{
    struct master_peer *p = &m->peers[link];
    struct master_group *g = &m->groups[p->group];
    bool decided = p->proposed && g->decided;
    if (p->state == PEER_REGISTERED && decided)
        master_peer_move(m, link, PEER_MEMBER);
    if (p->state != PEER_MEMBER) {
        /* A proposed newcomer that vanishes invalidates the proposal (M6). */
        if (p->proposed) g->restart = true;
        master_peer_move(m, link, PEER_FREE);
        return;
    }
    if (g->phase == GROUP_OPEN && !g->restart) g->broken_at = m->now;
    p->lost = lost;
    p->proposed = decided; /* J5: the next view has it, as DEAD */
    if (p->sync.part != PART_NONE) g->sync_changed = true;
    g->restart = true;
    master_peer_move(m, link, PEER_DEAD);
}

void master_hang_up(struct master *m, uint32_t link, const char *reason)
{
    m->out.close(m->out.user, link, reason);
    m->peers[link].dropped = true;
    master_forget(m, link, true);
}

void master_evict(struct master *m, uint32_t link, const char *reason,
                  enum wire_evict kind)
{
    struct master_peer *p = &m->peers[link];
    struct wire_msg evict = {.type = WIRE_EVICT, .abort.code = (int32_t)kind};
    size_t size = strnlen(reason, WIRE_TEXT_MAX);
    memcpy(evict.abort.text, reason, size);
    if (p->state == PEER_MEMBER || p->state == PEER_REGISTERED) {
        struct master_note note = {.kind = NOTE_EVICTED,
                                   .peer = p,
                                   .reason = reason,
                                   .code = (int32_t)kind};
        master_note_send(m, &note);
    }
    master_send(m, link, &evict);
    master_hang_up(m, link, reason);
}

uint32_t master_live_links(struct master *m, uint32_t group)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        if (m->peers[i].state == PEER_MEMBER && m->peers[i].group == group)
            m->links[count++] = i;
    }
    return count;
}

uint32_t master_dead_ids(struct master *m, uint32_t group, bool leavers)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->group != group) continue;
        bool leaves = leavers && p->state == PEER_MEMBER && p->leaving;
        if (p->state == PEER_DEAD || leaves) m->ids[count++] = p->info.id;
    }
    return count;
}

bool master_all_open(const struct master *m)
{
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct master_group *g = &m->groups[m->group_list[i]];
        if (g->phase != GROUP_OPEN || g->restart) return false;
    }
    return true;
}
