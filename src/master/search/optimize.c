/* optimize.c - optimizes the order of the ring: probe, search, adopt (rules
 * O2.. of SEARCH.md). A loss discards all progress. An optimization ends in a
 * round like any other (round.c). */
#include "../master.h"

#include <string.h>

/* Edges measured longer ago than this are probed again, in deadlines. */
enum { STALE_DEADLINES = 10 };

/* ------------------------------------------------------------------- places */

/* Whether the ring found covers m->sorted[0..count). */
static bool wish_fits(const struct master *m, uint32_t group, uint32_t count)
{
    const struct master_group *g = &m->groups[group];
    if (g->wish == 0 || g->wish_count != count) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (m->peers[m->sorted[i]].wish.ticket != g->wish) return false;
    }
    return true;
}

/* Sorts the members that have a place by it, in linear time. */
static uint32_t place_members(struct master *m, uint32_t count, bool wish)
{
    uint16_t *at = m->slots; /* place -> index + 1; scratch */
    for (uint32_t i = 0; i < PEERS_MAX; i++) at[i] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct master_peer *p = &m->peers[m->sorted[i]];
        uint32_t place = wish ? p->wish.at : p->place;
        if (place < PEERS_MAX) at[place] = (uint16_t)(i + 1);
    }
    uint32_t placed = 0;
    for (uint32_t i = 0; i < PEERS_MAX; i++) {
        if (at[i] > 0) m->order[placed++] = (uint16_t)(at[i] - 1);
    }
    return placed;
}

/* Where the last member of each host, and of each network, stands in the ring
 * that is made: tables of indexes plus 1, by hash. */
enum { SPOTS = 2 * PEERS_MAX };
struct last_spots {
    uint16_t host[SPOTS], network[SPOTS];
};

static bool same_network(const struct wire_addr *a, const struct wire_addr *b)
{
    size_t size = a->family == 4 ? 3 : 8;
    return a->family == b->family && memcmp(a->ip, b->ip, size) == 0;
}

static uint16_t *spot_of(const struct master *m, uint16_t *table,
                         const struct wire_member *who, bool host)
{
    uint64_t key = who->host;
    if (!host) memcpy(&key, who->addr.ip, who->addr.family == 4 ? 3 : 8);
    if (!host && who->addr.family == 4) key &= 0xffffff;
    uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 40) % SPOTS;
    for (; table[at] > 0; at = (at + 1) % SPOTS) {
        const struct wire_member *other = &m->members[table[at] - 1];
        if (host ? other->host == who->host
                 : same_network(&other->addr, &who->addr))
            break;
    }
    return &table[at];
}

/* The member behind which a newcomer stands, plus 1: the last one of its host,
 * of its network, or of all (rule O8). It is the last one then. */
static uint32_t place_behind(const struct master *m, struct last_spots *last,
                             uint32_t index, uint32_t tail)
{
    const struct wire_member *who = &m->members[index];
    uint32_t behind = 0;
    uint16_t *host = NULL, *network = NULL;
    if (who->host != 0) host = spot_of(m, last->host, who, true);
    if (who->addr.family != 0) network = spot_of(m, last->network, who, false);
    if (host) behind = *host;
    if (network && behind == 0) behind = *network;
    if (behind == 0) behind = tail;
    if (network && (*network == behind || *network == 0))
        *network = (uint16_t)(index + 1);
    if (host) *host = (uint16_t)(index + 1);
    return behind;
}

/* Newcomers beside those that have a place: a list, of which `next` has the
 * successor of each, plus 1. */
static void place_newcomers(struct master *m, uint32_t placed, uint32_t count)
{
    struct last_spots last = {{0}, {0}};
    uint16_t *next = m->slots; /* scratch */
    uint32_t first = 0, tail = 0;
    for (uint32_t i = 0; i < count; i++) next[i] = 0;
    for (uint32_t k = 0; k < placed; k++) {
        uint32_t index = m->order[k];
        const struct wire_member *who = &m->members[index];
        if (who->host != 0)
            *spot_of(m, last.host, who, true) = (uint16_t)(index + 1);
        if (who->addr.family != 0)
            *spot_of(m, last.network, who, false) = (uint16_t)(index + 1);
        if (tail > 0) next[tail - 1] = (uint16_t)(index + 1);
        tail = index + 1;
    }
    if (placed > 0) first = m->order[0] + 1u;
    for (uint32_t i = 0; i < count; i++) {
        if (m->peers[m->sorted[i]].place < PEERS_MAX) continue;
        uint32_t behind = place_behind(m, &last, i, tail);
        if (behind == tail) tail = i + 1;
        if (first == 0) first = i + 1;
        if (behind == 0) continue;
        next[i] = next[behind - 1];
        next[behind - 1] = (uint16_t)(i + 1);
    }
    for (uint32_t k = 0, at = first; at > 0; at = next[at - 1])
        m->order[k++] = (uint16_t)(at - 1);
}

void optimize_order(struct master *m, uint32_t group, uint32_t count)
{
    const struct master_group *g = &m->groups[group];
    bool adopts = g->optimize || g->update || g->stuck;
    bool wish = adopts && wish_fits(m, group, count);
    uint32_t placed = place_members(m, count, wish);
    if (!wish && placed < count) place_newcomers(m, placed, count);
    PCCL_ASSERT(!wish || placed == count);
}

/* ------------------------------------------------------------------- search */

static void world_slots(struct master *m, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        m->slots[i] = (uint16_t)m->peers[m->sorted[i]].slot;
}

static bool all_stored(const struct master *m, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (m->peers[m->sorted[i]].slot == MASTER_NO_PLACE) return false;
    }
    return true;
}

/* Searches a ring of the world in m->sorted, starting from m->order. */
static bool search(struct master *m, uint32_t group, uint32_t count,
                   bool hopeful, bool background)
{
    struct master_group *g = &m->groups[group];
    uint32_t ticket = ++m->ticket_last;
    if (!m->edges || !m->out.search || !all_stored(m, count)) return false;
    world_slots(m, count);
    struct master_search s = {
        .group = group,
        .ticket = ticket,
        .edges = m->edges,
        .n = count,
        .slots = m->slots,
        .initial = m->order,
        .view = {.caution = hopeful ? 0 : 1, .coarse_bits = 8},
        .seed = m->key.word[0] ^ g->epoch,
        .background = background};
    if (!m->out.search(m->out.user, &s)) return false;
    for (uint32_t i = 0; i < count; i++) {
        struct master_peer *p = &m->peers[m->sorted[i]];
        struct master_place mine = {ticket, i};
        if (background)
            p->improved = mine;
        else
            p->searched = mine;
    }
    *(background ? &g->background : &g->ticket) = ticket;
    *(background ? &g->background_count : &g->ticket_count) = count;
    return true;
}

/* Rules O5, R4. False: a search is impossible. */
bool optimize_search(struct master *m, uint32_t group, bool hopeful)
{
    struct master_group *g = &m->groups[group];
    uint32_t count = round_next_view(m, group);
    g->searched = true;
    g->hopeful = hopeful;
    optimize_order(m, group, count);
    if (count < 3 || !search(m, group, count, hopeful, false)) return false;
    g->phase = GROUP_SOLVING;
    return true;
}

/* Whether the optimization still needs its ring, before a proposal. */
bool optimize_search_due(struct master *m, uint32_t group)
{
    const struct master_group *g = &m->groups[group];
    if (!g->optimize || g->searched) return false;
    return !wish_fits(m, group, round_next_view(m, group));
}

/* Rule O5: whether the result covers m->sorted[0..count) without a gap. */
static bool found_fits(const struct master *m, uint32_t group, uint32_t count,
                       uint32_t ticket, bool background)
{
    const struct master_group *g = &m->groups[group];
    uint32_t asked = background ? g->background_count : g->ticket_count;
    if (asked != count) return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct master_peer *p = &m->peers[m->sorted[i]];
        const struct master_place *x = background ? &p->improved : &p->searched;
        if (x->ticket != ticket) return false;
    }
    return true;
}

static bool take_found(struct master *m, uint32_t group,
                       const struct master_event *event, bool background)
{
    struct master_group *g = &m->groups[group];
    uint32_t count = round_next_view(m, group);
    if (!event->order ||
        !found_fits(m, group, count, event->ticket, background))
        return false;
    uint16_t *at = m->slots; /* index -> place; scratch */
    for (uint32_t i = 0; i < count; i++) at[event->order[i]] = (uint16_t)i;
    for (uint32_t i = 0; i < count; i++) {
        struct master_peer *p = &m->peers[m->sorted[i]];
        uint32_t index = background ? p->improved.at : p->searched.at;
        p->wish = (struct master_place){event->ticket, at[index]};
    }
    g->wish = event->ticket;
    g->wish_count = count;
    return true;
}

void optimize_found(struct master *m, const struct master_event *event)
{
    struct master_group *g = &m->groups[event->group];
    if (!g->used || event->ticket == 0) return;
    /* Rule O6: only for the current members, and only while the group is
     * idle. */
    if (event->ticket == g->background && g->phase == GROUP_OPEN && !g->restart)
        (void)take_found(m, event->group, event, true);
    if (event->ticket != g->ticket || g->phase != GROUP_SOLVING) return;
    g->ticket = 0;
    if (g->restart) return;
    bool found = take_found(m, event->group, event, false);
    g->phase = g->sweeping ? GROUP_PROBING : GROUP_DONATING;
    /* No ring over known edges: the round finds out which links exist (R4). */
    if (!found) g->hopeful = false;
}

bool optimize_has_better(const struct master *m, uint32_t group)
{
    const struct master_group *g = &m->groups[group];
    return g->wish > 0 && g->wish == g->background;
}

/* ------------------------------------------------------------------- probes */

static void order_probe(struct master *m, uint32_t link, uint32_t with,
                        bool gives, bool takes)
{
    struct master_peer *p = &m->peers[link];
    struct wire_msg msg = {.type = WIRE_PROBE,
                           .round = m->groups[p->group].step};
    msg.probe.peer = m->peers[with].info.id;
    msg.probe.gives = gives;
    msg.probe.takes = takes;
    msg.probe.bytes = m->probe_bytes;
    msg.probe.time_us = (uint32_t)(m->probe_time / 1000);
    p->probe = takes ? msg.round : 0;
    p->probe_with = with;
    master_send(m, link, &msg);
}

static pccl_ns before(pccl_ns now, pccl_ns age)
{
    return now > age ? now - age : 0;
}

/* Rule O3: whether all round trips of m->slots are known; then the ring that
 * they suggest selects the probes. */
static bool guesses(const struct master *m, uint32_t count)
{
    return count > m->small_world &&
           bandwidth_rtts_known(m->edges, m->slots, count);
}

/* Rule O3: plans the next probes, at most one per peer. False: no edge is worth
 * a probe. */
static bool probe_some(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    uint32_t count = round_next_view(m, group);
    if (count < 2 || !all_stored(m, count)) return false;
    optimize_order(m, group, count);
    world_slots(m, count);
    struct bandwidth_wish wish = {
        .slots = m->slots,
        .n = count,
        .ring = count > m->small_world ? m->order : NULL,
        .ring_only = guesses(m, count),
        /* Measurements of this sweep stay fresh for its whole duration. */
        .stale = before(g->sweep_until - MASTER_SWEEP_TIME,
                        STALE_DEADLINES * m->deadline),
        .sweep = g->sweep};
    uint32_t rounds;
    uint32_t found =
        bandwidth_plan(m->edges, &wish, m->probes, MASTER_PROBES_MAX, &rounds);
    if (found == 0) return false;
    g->step = ++m->step_last;
    g->step_until = m->now + 2 * m->deadline + 4 * m->probe_time;
    for (uint32_t i = 0; i < found && m->probes[i].round == 0; i++) {
        const struct bandwidth_probe *x = &m->probes[i];
        uint32_t a = m->slot_link[x->a];
        uint32_t b = m->slot_link[x->b];
        order_probe(m, a, b, x->a_to_b, x->b_to_a);
        order_probe(m, b, a, x->b_to_a, x->a_to_b);
    }
    return true;
}

bool optimize_begin(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    const struct master_tally *t = &g->tally;
    if (t->members == 0 || t->votes[VOTE_OPTIMIZE] < t->members) return false;
    g->optimize = true;
    g->broken_at = m->now;
    g->sweeping = m->edges != NULL;
    g->searched = false;
    g->loops = 0;
    g->sweep++;
    g->step = 0;
    g->sweep_until = m->now + MASTER_SWEEP_TIME;
    g->phase = GROUP_PROBING;
    return true;
}

static bool probes_due(const struct master *m, uint32_t group)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state == PEER_MEMBER && p->group == group && p->probe != 0)
            return true;
    }
    return false;
}

/* Whether to guess a ring before any probe. */
static bool guesses_first(struct master *m, uint32_t group)
{
    const struct master_group *g = &m->groups[group];
    if (!m->edges || g->loops > 0) return false;
    uint32_t count = round_next_view(m, group);
    if (!all_stored(m, count)) return false;
    world_slots(m, count);
    return guesses(m, count);
}

/* Rules O4, O5: probe, search a ring with estimates, probe its edges, until all
 * edges of the ring found are measured. */
bool optimize_probe(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    if (probes_due(m, group)) return false;
    bool more = g->sweeping && m->now < g->sweep_until;
    if (more && !guesses_first(m, group) && probe_some(m, group)) {
        g->searched = false;
        return true;
    }
    bool large = round_next_view(m, group) > m->small_world;
    bool hopeful = large && more && g->loops < MASTER_LOOPS_MAX;
    bool guessed = g->searched && g->hopeful && !more;
    if (g->sweeping && (!g->searched || guessed)) {
        g->loops++;
        if (optimize_search(m, group, hopeful)) return true;
    }
    g->restart = true; /* the round that installs it */
    return true;
}

void optimize_measured(struct master *m, uint32_t link,
                       const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    struct master_group *g = &m->groups[p->group];
    if (msg->round == 0) {
        for (uint32_t i = 0; i < msg->edge_count; i++) {
            enum edge_kind kind = (enum edge_kind)msg->edges[i].kind;
            if (kind <= EDGE_AT_LEAST || kind == EDGE_RTT)
                edges_measured(m, link, &msg->edges[i]);
        }
        return;
    }
    if (g->phase != GROUP_PROBING || msg->round != g->step) return;
    if (msg->edge_count != 1) return;
    struct master_peer *other = &m->peers[p->probe_with];
    if (msg->edges[0].peer != other->info.id) return;
    bool failed = msg->edges[0].kind == EDGE_FAILED;
    if (p->probe == 0 && !failed) return;
    p->probe = 0;
    if (failed) {
        other->probe = 0;
        (void)edges_failed(m, p->group, p->info.id, other->info.id);
    } else {
        edges_measured(m, link, &msg->edges[0]);
    }
}

/* Rule O4: a probe without a report times out. */
void optimize_tick(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    if (g->phase != GROUP_PROBING || m->now < g->step_until) return;
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        if (p->state != PEER_MEMBER || p->group != group || p->probe == 0)
            continue;
        struct wire_edge silent = {.peer = m->peers[p->probe_with].info.id,
                                   .kind = EDGE_SILENT};
        p->probe = 0;
        edges_measured(m, i, &silent);
    }
}

/* Rule O6: the view of m->sorted[0..count) is installed; g->optimize still
 * tells whether it answers the vote. */
void optimize_installed(struct master *m, uint32_t group, uint32_t count)
{
    struct master_group *g = &m->groups[group];
    bool optimized = g->optimize;
    g->optimize = g->sweeping = g->stuck = false;
    g->wish = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct master_peer *p = &m->peers[m->sorted[i]];
        p->place = p->proposed_place;
    }
    if (!optimized || count <= m->small_world) return;
    (void)place_members(m, count, false);
    (void)search(m, group, count, false, true);
}
