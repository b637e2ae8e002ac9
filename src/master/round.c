/* round.c - one round of a group: flush, decide, propose, install. What is
 * known of the operations is in round_ops.c, the next view and its proposal in
 * round_view.c.
 *
 * The flush of virtual synchrony with the master as coordinator (Birman &
 * Joseph, SOSP 1987). Rule numbers: see src/README.md. */
#include "master.h"

#include "votes.h"

#include <string.h>

static struct master_group *group_of(struct master *m, uint32_t link)
{
    return &m->groups[m->peers[link].group];
}

/* Rules R4c, R4d: an operation has no link to the peer, and there may be more
 * pairs without one. */
static void cannot_reach(struct master *m, const struct master_peer *p,
                         uint64_t peer, const struct wire_op *name)
{
    struct master_group *g = &m->groups[p->group];
    bool known = order_is_bad(g, p->info.id, peer);
    if (!edges_failed(m, p->group, p->info.id, peer)) return;
    g->survey |= !known;
    if (!relays_can(m, p->group, p->info.id, peer))
        round_force(g, p->rank, name, VERDICT_UNREACHABLE);
}

/* Rule R1. A broken link or a member's request closes the epoch. Reports about
 * an epoch that is already closed are ignored. */
void round_fault(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_group *g = group_of(m, link);
    const struct master_peer *p = &m->peers[link];
    const struct wire_op name = {.scope = msg->fault.scope,
                                 .tag = msg->fault.tag,
                                 .seq = msg->fault.seq};
    if (g->phase != GROUP_OPEN || msg->epoch != g->epoch) return;
    if (msg->type == WIRE_SUSPECT) {
        g->survey = true;
        edges_broken(m, p->group, p->info.id, msg->fault.peer,
                     msg->fault.cause > 0);
    }
    if (msg->type == WIRE_REFRESH) {
        if (msg->fault.cause == REFRESH_MISMATCH) {
            round_force(g, p->rank, &name, VERDICT_INVALID);
            dispute_begin(g, &name, p->info.id, msg->fault.peer);
        }
        if (msg->fault.cause == REFRESH_FAIL)
            round_force(g, p->rank, &name, VERDICT_FAILED);
        if (msg->fault.cause == REFRESH_UNREACHABLE)
            cannot_reach(m, p, msg->fault.peer, &name);
    }
    g->broken_at = m->now;
    g->restart = true;
}

/* Rule F7: members that all wait in such a vote have nothing in flight. */
static bool flush_needed(const struct master *m, uint32_t group)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state != PEER_MEMBER || p->group != group) continue;
        bool votes = p->voted[VOTE_UPDATE] || p->voted[VOTE_OPTIMIZE];
        if (!p->leaving && !votes) return true;
    }
    return false;
}

static void begin(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    g->restart = g->unlinked = false;
    g->round = ++m->round_last;
    g->traits = 0;
    g->sweeping = g->searched = false;
    /* Rule M3b. */
    if (m->now - g->update_at >= 2 * m->deadline) g->admitted = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        if (p->state == PEER_FREE || p->group != group) continue;
        p->answer = ANSWER_DUE;
        p->proposed = false;
        p->ready = false;
        p->probe = 0;
    }
    round_ops_clear(g);
    g->blocked = 0;
    if (!flush_needed(m, group)) {
        g->phase = GROUP_DONATING;
        return;
    }
    g->phase = GROUP_FLUSHING;
    round_ops_begin(m, group);
    struct wire_msg flush = {
        .type = WIRE_FLUSH, .round = g->round, .epoch = g->epoch};
    flush.id_count = master_dead_ids(m, group, false);
    flush.ids = m->ids;
    dispute_ask(g, &flush);
    uint32_t count = master_live_links(m, group);
    m->out.send(m->out.user, m->links, count, &flush);
    limits_begin(m, group);
}

static bool owes_answer(const struct master *m, const struct master_peer *p,
                        uint32_t group, uint32_t answer)
{
    (void)m;
    return p->state == PEER_MEMBER && p->group == group && p->answer < answer;
}

static bool all_answered(struct master *m, uint32_t group,
                         enum master_answer answer)
{
    uint32_t *hint = &m->groups[group].hints.answers;
    return !master_finds(m, hint, owes_answer, group, answer);
}

void round_flushed(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_group *g = group_of(m, link);
    struct master_peer *p = &m->peers[link];
    if (g->phase != GROUP_FLUSHING || msg->round != g->round) return;
    if (p->answer != ANSWER_DUE) return;
    const char *wrong = round_ops_list(m, link, msg);
    if (wrong) {
        master_drop(m, link, wrong);
        return;
    }
    dispute_answer(m, link, msg);
    g->traits |= msg->flushed.traits;
    p->answer = ANSWER_FLUSHED;
}

void round_result(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_group *g = group_of(m, link);
    if (g->phase == GROUP_DONATING && msg->round == g->round)
        round_ops_result(m, link, msg);
}

static void end_round(struct master *m, uint32_t group);

/* Rule R4d: a survey has found sets without a link between them. */
static bool is_split(struct master *m, uint32_t group, uint32_t count)
{
    bool kept[PEERS_MAX];
    return m->groups[group].surveyed &&
           order_component(m, group, count, kept) < count;
}

static void propose(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    uint32_t count = round_next_view(m, group);
    if (count == 0) {
        end_round(m, group);
        return;
    }
    optimize_order(m, group, count);
    g->ring = !is_split(m, group, count) && order_ring(m, group, count);
    if (!g->ring && !g->surveyed && !g->searched && count > MASTER_EXACT_MAX) {
        g->stuck = true;
        if (optimize_search(m, group, false)) return;
        g->searched = true;
        count = round_next_view(m, group);
        g->ring = order_ring(m, group, count);
    }
    if (!g->ring && partition_resolve(m, group, count)) return;
    if (!g->ring) {
        for (uint32_t i = 0; i < count; i++) m->order[i] = (uint16_t)i;
    }
    link_shape_choose(m, g, count);
    relays_list(m, group, count);
    g->phase = GROUP_PROPOSED;
    g->survey = g->survey && g->ring && !g->surveyed && !g->mesh;
    g->survey_size = count;
    for (uint32_t i = 0; i < count; i++) {
        m->peers[m->sorted[i]].proposed = true;
        m->peers[m->sorted[i]].lacks = 0;
        m->peers[m->sorted[i]].ready = false;
        m->peers[m->sorted[m->order[i]]].proposed_place = i;
    }
    round_send_proposal(m, group, count);
    limits_begin(m, group);
}

static void lack(const struct master_group *g, struct master_peer *a,
                 struct master_peer *b)
{
    uint32_t size = g->survey_size;
    uint32_t after = (b->proposed_place + size - a->proposed_place) % size;
    if (after > 0 && (after & (after - 1)) == 0)
        a->lacks |= BIT(__builtin_ctz(after));
    if (size - after > 0 && ((size - after) & (size - after - 1)) == 0)
        b->lacks |= BIT(__builtin_ctz(size - after));
}

void round_ready(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_group *g = group_of(m, link);
    struct master_peer *p = &m->peers[link];
    if (g->phase != GROUP_PROPOSED || msg->round != g->round) return;
    if (!p->proposed || p->ready) return;
    for (uint32_t i = 0; i < msg->id_count; i++) {
        if (!edges_is_pair(m, p->group, p->info.id, msg->ids[i])) continue;
        g->unlinked = true;
        edges_report(m, p->group, p->info.id, msg->ids[i]);
    }
    p->late = msg->ready.late;
    p->ready = true;
}

/* Rule R4f. True: this says nothing about the pair, because an end could not
 * run, or because only one end misses the link. */
static bool is_spared(const struct master_group *g, const struct master_edge *e,
                      const struct master_peer *a, const struct master_peer *b)
{
    bool both = e->failed[0] == g->round && e->failed[1] == g->round;
    return (!both || a->late || b->late) && g->spared < MASTER_SPARED_MAX;
}

/* All reports of the round are there. False: they say nothing. */
static bool judge_pairs(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    bool any = false;
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const struct master_edge *e = &g->edges[i];
        if (e->failed[0] != g->round && e->failed[1] != g->round) continue;
        uint32_t x = master_link_of(m, group, e->a);
        uint32_t y = master_link_of(m, group, e->b);
        if (x == MASTER_NO_LINK || y == MASTER_NO_LINK) continue;
        struct master_peer *a = &m->peers[x];
        struct master_peer *b = &m->peers[y];
        if (is_spared(g, e, a, b) || !edges_failed(m, group, e->a, e->b))
            continue;
        any = true;
        if (a->proposed && b->proposed) lack(g, a, b);
    }
    g->spared = any ? 0 : g->spared + 1;
    return any;
}

static bool owes_ready(const struct master *m, const struct master_peer *p,
                       uint32_t group, uint32_t what)
{
    (void)m, (void)what;
    return p->group == group && p->proposed && !p->ready;
}

/* Nobody takes it back within a round. */
static bool all_ready(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    if (g->ready == g->round) return true;
    if (master_finds(m, &g->hints.ready, owes_ready, group, 0)) return false;
    g->ready = g->round;
    return true;
}

/* An update is one change for all groups: none installs before all can. */
static bool may_install(struct master *m, uint32_t group)
{
    if (!m->groups[group].update) return all_ready(m, group);
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct master_group *g = &m->groups[m->group_list[i]];
        if (!g->update) continue;
        if (g->restart || g->unlinked || g->phase != GROUP_PROPOSED ||
            !all_ready(m, m->group_list[i]))
            return false;
    }
    return true;
}

/* The accepted peers of each group as they will be when this round is over. */
static void count_peers(const struct master *m, uint32_t *counts)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state == PEER_FREE) continue;
        bool proposes = m->groups[p->group].phase == GROUP_PROPOSED;
        bool member = p->state == PEER_MEMBER && !p->leaving;
        counts[p->group] += proposes ? p->proposed : member;
    }
}

/* Once for each round: all members of a view are told the same, also those that
 * another master tells (H7), whatever becomes of other groups meanwhile. */
static void measure_world(struct master *m, struct master_group *g)
{
    uint32_t sizes[GROUPS_MAX] = {0};
    if (g->measured == g->round) return;
    g->measured = g->round;
    g->world = g->groups = g->largest = 0;
    count_peers(m, sizes);
    for (uint32_t i = 0; i < m->group_count; i++) {
        uint32_t size = sizes[m->group_list[i]];
        g->world += size;
        g->groups += size > 0;
        if (size > g->largest) g->largest = size;
    }
}

/* Rule R4: the pairs that prevent a ring. */
static uint32_t blocker_ids(struct master *m, const struct master_group *g)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->edge_count; i++) {
        if (!g->edges[i].bad) continue;
        m->ids[count++] = g->edges[i].a;
        m->ids[count++] = g->edges[i].b;
    }
    return count;
}

static void note_blockers(struct master *m, uint32_t group)
{
    const struct master_group *g = &m->groups[group];
    uint32_t count = blocker_ids(m, g);
    for (uint32_t i = 0; i < count && i < 2 * MASTER_PAIRS_TOLD; i += 2) {
        uint32_t a = master_link_of(m, group, m->ids[i]);
        uint32_t b = master_link_of(m, group, m->ids[i + 1]);
        if (a == MASTER_NO_LINK || b == MASTER_NO_LINK) continue;
        bool last = i / 2 + 1 == MASTER_PAIRS_TOLD;
        struct master_note note = {.kind = NOTE_NO_RING,
                                   .peer = &m->peers[a],
                                   .other = &m->peers[b],
                                   .more = last ? (count - i) / 2 - 1 : 0};
        master_note_send(m, &note);
    }
}

/* m->sorted, without those that were lost since it was decided. */
static uint32_t live_links(struct master *m, uint32_t count)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < count; i++)
        if (m->peers[m->sorted[i]].state != PEER_DEAD)
            m->links[live++] = m->sorted[i];
    return live;
}

static void send_install(struct master *m, uint32_t group, uint32_t count)
{
    struct master_group *g = &m->groups[group];
    struct wire_msg msg = {
        .type = WIRE_INSTALL, .round = g->round, .epoch = g->epoch};
    msg.view.ring = g->ring;
    msg.view.mesh = g->mesh;
    msg.view.tree = g->tree;
    msg.view.grid = g->grid;
    msg.view.update = g->update;
    msg.view.optimize = g->optimize;
    msg.view.traits = g->traits;
    memcpy(msg.view.answered, m->succession.answered, sizeof msg.view.answered);
    msg.view.synced = g->synced;
    if (!g->ring) msg.id_count = blocker_ids(m, g);
    msg.ids = m->ids;
    measure_world(m, g);
    msg.view.world = g->world;
    msg.view.groups = g->groups;
    msg.view.largest = g->largest;
    count = live_links(m, count);
    if (count > 0) m->out.send(m->out.user, m->links, count, &msg);
}

void round_send_install(struct master *m, uint32_t group, uint32_t count)
{
    round_ops_send_verdicts(m, group);
    send_install(m, group, count);
}

static void note_departures(struct master *m, uint32_t group, uint32_t count)
{
    const struct master_group *g = &m->groups[group];
    struct master_note view = {.kind = NOTE_VIEW,
                               .old_epoch = g->epoch,
                               .epoch = g->round,
                               .size = count,
                               .took = m->now - g->broken_at};
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->group != group) continue;
        view.old_size += p->state == PEER_MEMBER || p->state == PEER_DEAD;
        view.joined += p->proposed && p->state == PEER_REGISTERED;
        bool gone =
            p->state == PEER_MEMBER ? p->leaving : p->state == PEER_DEAD;
        if (!gone || p->proposed) continue;
        struct master_note note = {
            .kind = p->state == PEER_DEAD && p->lost ? NOTE_LOST : NOTE_LEFT,
            .peer = p};
        master_note_send(m, &note);
    }
    master_note_send(m, &view);
}

/* Ends the round: the proposed view, possibly none, is in force. */
static void end_round(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    uint32_t count = g->phase == GROUP_PROPOSED ? round_next_view(m, group) : 0;
    note_departures(m, group, count);
    if (count > 0)
        round_send_install(m, group, count);
    else
        succession_forget(m, group);
    round_ops_refuse(m, group);
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        if (p->state == PEER_FREE || p->group != group) continue;
        if (p->state == PEER_DEAD && !p->proposed)
            master_peer_move(m, i, PEER_FREE);
        if (p->state != PEER_MEMBER || !p->leaving || p->proposed) continue;
        if (p->sync.part != PART_NONE) g->sync_changed = true; /* S8 */
        struct wire_msg goodbye = {.type = WIRE_EVICT};
        master_send(m, i, &goodbye);
        m->out.close(m->out.user, i, "left");
        master_peer_move(m, i, PEER_FREE);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct master_peer *p = &m->peers[m->sorted[i]];
        bool joins = p->state == PEER_REGISTERED;
        if (joins) master_peer_move(m, m->sorted[i], PEER_MEMBER);
        p->rank = i;
        struct master_note note = {
            .kind = NOTE_JOINED, .peer = p, .old_epoch = g->epoch};
        if (joins) master_note_send(m, &note);
        p->proposed = false;
        if (g->update) master_vote(m, m->sorted[i], VOTE_UPDATE, false);
        if (g->optimize) master_vote(m, m->sorted[i], VOTE_OPTIMIZE, false);
    }
    if (count > 0) m->founded = true;
    g->epoch = count > 0 ? g->round : 0;
    g->phase = GROUP_OPEN;
    g->restart = g->decided = false;
    g->update = g->survey = g->surveyed = false;
    g->spared = 0;
    g->forced_count = 0;
    dispute_end(g);
    round_ops_clear(g);
    optimize_installed(m, group, count);
    edges_forget_gone(m, group);
    relays_note(m, group);
    if (count > 0 && !g->ring) note_blockers(m, group);
    for (uint32_t i = 0; i < count; i++) {
        /* While the view was being installed a member asked to leave, or was
         * lost. */
        const struct master_peer *p = &m->peers[m->sorted[i]];
        if (p->leaving || p->state == PEER_DEAD) g->restart = true;
    }
}

/* Rule J5. */
static bool decide(struct master *m, uint32_t group)
{
    if (!may_install(m, group) || !succession_will(m, group)) return false;
    struct master_group *g = &m->groups[group];
    g->decided = m->succession.grace > 0;
    for (uint32_t i = 0; g->update && i < m->group_count; i++) {
        struct master_group *other = &m->groups[m->group_list[i]];
        if (other->update) other->decided = g->decided;
    }
    return true;
}

/* True if the state changed and the caller must check it again. */
static bool advance(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    if (g->restart && !g->decided) {
        begin(m, group);
        return true;
    }
    switch (g->phase) {
    case GROUP_FLUSHING:
        if (!all_answered(m, group, ANSWER_FLUSHED)) return false;
        g->phase = GROUP_DONATING;
        if (!round_ops_in_doubt(g)) {
            round_ops_judge(m, group);
            return true;
        }
        g->phase = GROUP_ASKING;
        round_ops_ask(m, group);
        limits_begin(m, group);
        return true;
    case GROUP_ASKING:
        if (!all_answered(m, group, ANSWER_TOLD)) return false;
        g->phase = GROUP_DONATING;
        round_ops_decide(m, group);
        round_ops_judge(m, group);
        limits_begin(m, group);
        return true;
    case GROUP_DONATING:
        if (!round_ops_relayed(g)) return false;
        if (optimize_search_due(m, group) && optimize_search(m, group, false))
            return true;
        propose(m, group);
        return true;
    case GROUP_PROPOSED:
        /* The next proposal does without the pairs that cannot be linked. */
        if (g->unlinked && !g->decided && all_ready(m, group)) {
            if (judge_pairs(m, group)) {
                g->surveyed = g->survey && !g->small;
                g->survey = !g->survey;
            }
            g->restart = true;
            return true;
        }
        if (!g->decided && !decide(m, group)) return false;
        if (!memory_keep(m)) return false;
        end_round(m, group);
        return true;
    case GROUP_OPEN:
        return optimize_begin(m, group);
    case GROUP_PROBING:
        return optimize_probe(m, group);
    case GROUP_SOLVING:
    case GROUP_PHASE_COUNT:
        break;
    }
    return false;
}

void round_settle(struct master *m)
{
    for (uint32_t i = 0; i < m->group_count; i++) {
        uint16_t group = m->group_list[i];
        while (m->groups[group].used && advance(m, group)) continue;
    }
}

void round_reply(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_group *g = group_of(m, link);
    if (g->phase != GROUP_ASKING || msg->round != g->round) return;
    if (m->peers[link].answer != ANSWER_FLUSHED) return;
    const char *wrong = round_ops_reply(m, link, msg);
    if (wrong) master_drop(m, link, wrong);
}
