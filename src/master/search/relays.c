/* relays.c - who relays the pairs that cannot be linked (rule N10). See
 * master.h. */
#include "../master.h"

/* As the relay of a pair. */
enum { MASTER_ITSELF = 0 };

static uint32_t rank_of(const struct master *m, uint32_t count, uint64_t id)
{
    uint32_t rank = 0;
    while (rank < count && m->members[rank].id != id) rank++;
    return rank;
}

static bool has_failed(const struct master_edge *e, uint64_t relay)
{
    for (uint32_t i = 0; i < e->relays_failed; i++)
        if (e->lost[i] == relay) return true;
    return false;
}

void relays_failed(struct master *m, struct master_edge *e)
{
    (void)m;
    if (!e->relayed || e->relays_failed == MASTER_RELAYS_MAX) return;
    e->lost[e->relays_failed++] = e->relay;
    e->relayed = false;
}

/* Members that have a bad pair with either end: bit k of the set. */
static void exclude(const struct master_group *g, const struct master *m,
                    uint32_t count, const struct master_edge *e, bool *out)
{
    for (uint32_t i = 0; i < count; i++) out[i] = false;
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const struct master_edge *f = &g->edges[i];
        if (!f->bad) continue;
        bool of_a = f->a == e->a || f->a == e->b;
        bool of_b = f->b == e->a || f->b == e->b;
        uint32_t other = rank_of(m, count, of_a ? f->b : f->a);
        if ((of_a || of_b) && other < count) out[other] = true;
    }
}

/* The rank of the member with the fewest pairs so far, or `count`. */
static uint32_t best_of(const struct master *m, uint32_t group, uint32_t count,
                        const struct master_edge *e)
{
    bool out[PEERS_MAX];
    uint32_t best = count;
    exclude(&m->groups[group], m, count, e, out);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t id = m->members[i].id;
        if (out[i] || id == e->a || id == e->b || has_failed(e, id)) continue;
        if (silence_is_suspect(m, m->sorted[i])) continue;
        if (best == count || m->loads[i] < m->loads[best]) best = i;
    }
    return best;
}

static void choose(struct master *m, uint32_t group, uint32_t count,
                   struct master_edge *e)
{
    uint64_t before = e->relayed ? e->relay : UINT64_MAX;
    e->relayed = false;
    if (!e->bad || e->relays_failed == MASTER_RELAYS_MAX) return;
    if (rank_of(m, count, e->a) == count || rank_of(m, count, e->b) == count)
        return;
    uint32_t best = best_of(m, group, count, e);
    if (best == count && (!m->may_relay || has_failed(e, MASTER_ITSELF)))
        return;
    if (best < count) m->loads[best]++;
    e->relay = best < count ? m->members[best].id : MASTER_ITSELF;
    e->relayed = true;
    if (e->relay == before) return;
    e->told = false;
    edges_slow(m, group, e->a, e->b);
}

void relays_choose(struct master *m, uint32_t group, uint32_t count)
{
    struct master_group *g = &m->groups[group];
    for (uint32_t i = 0; i < count; i++) m->loads[i] = 0;
    for (uint32_t i = 0; i < g->edge_count; i++)
        choose(m, group, count, &g->edges[i]);
}

static bool are_next(const struct master *m, uint32_t count, uint32_t a,
                     uint32_t b)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t x = m->order[i], y = m->order[(i + 1) % count];
        if ((x == a && y == b) || (x == b && y == a)) return true;
    }
    return false;
}

static void add(struct master *m, uint32_t a, uint32_t b, uint32_t relay)
{
    m->relays[m->relay_count++] = (struct wire_relay){
        (uint16_t)(a < b ? a : b), (uint16_t)(a < b ? b : a), (uint16_t)relay};
}

void relays_list(struct master *m, uint32_t group, uint32_t count)
{
    struct master_group *g = &m->groups[group];
    m->relay_count = 0;
    for (uint32_t pass = 0; g->ring && pass < 2; pass++) {
        for (uint32_t i = 0; i < g->edge_count; i++) {
            struct master_edge *e = &g->edges[i];
            if (!e->relayed || m->relay_count == WIRE_RELAYS_MAX) continue;
            uint32_t a = rank_of(m, count, e->a), b = rank_of(m, count, e->b);
            uint32_t relay = rank_of(m, count, e->relay);
            if (e->relay == MASTER_ITSELF) relay = WIRE_RELAY_MASTER;
            if (a == count || b == count || relay == count) continue;
            if (are_next(m, count, a, b) == (pass == 0)) add(m, a, b, relay);
        }
    }
}

bool relays_can(struct master *m, uint32_t group, uint64_t a, uint64_t b)
{
    relays_choose(m, group, round_next_view(m, group));
    return !order_is_missing(&m->groups[group], a, b);
}

void relays_note(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    for (uint32_t i = 0; i < g->edge_count; i++) {
        struct master_edge *e = &g->edges[i];
        uint32_t a = master_link_of(m, group, e->a);
        uint32_t b = master_link_of(m, group, e->b);
        uint32_t relay = master_link_of(m, group, e->relay);
        if (!e->relayed) e->told = false;
        if (!e->relayed || e->told || !g->ring || a == MASTER_NO_LINK ||
            b == MASTER_NO_LINK)
            continue;
        e->told = true;
        struct master_note note = {
            .kind = NOTE_RELAYED,
            .peer = &m->peers[a],
            .other = &m->peers[b],
            .relay = relay == MASTER_NO_LINK ? NULL : &m->peers[relay]};
        master_note_send(m, &note);
    }
}

static bool joins(const struct master_edge *e, uint64_t a, uint64_t b)
{
    return (e->a == a && e->b == b) || (e->a == b && e->b == a);
}

bool relays_take(const struct master *m, const struct wire_msg *msg)
{
    const struct wire_key *key = &msg->relay.key;
    if (!m->may_relay || key->word[0] != m->key.word[0] ||
        key->word[1] != m->key.word[1])
        return false;
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct master_group *g = &m->groups[m->group_list[i]];
        for (uint32_t k = 0; k < g->edge_count; k++) {
            const struct master_edge *e = &g->edges[k];
            if (e->relayed && e->relay == MASTER_ITSELF &&
                joins(e, msg->relay.from, msg->relay.to))
                return true;
        }
    }
    return false;
}
