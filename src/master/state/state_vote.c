/* state_vote.c - election of the shared state and of its senders and receivers
 * (rules S1..S9 of STATE.md). One synchronization per group at a time;
 * groups are independent. The master sees only digests, never content. */
#include "../master.h"

#include "../coverage/coverage.h"
#include "../votes.h"

#include <stdlib.h>
#include <string.h>

static bool in_group(const struct master_peer *p, uint32_t group)
{
    return p->state == PEER_MEMBER && p->group == group;
}

static struct master_record *find_record(struct master *m, uint32_t number)
{
    for (uint32_t i = 0; i < GROUPS_MAX; i++) {
        struct master_record *r = &m->records[i];
        if (r->used && r->number == number) return r;
    }
    return NULL;
}

static struct master_record *take_record(struct master *m, uint32_t number)
{
    struct master_record *found = find_record(m, number);
    if (found) return found;
    found = &m->records[0];
    for (uint32_t i = 0; i < GROUPS_MAX && found->used; i++) {
        struct master_record *r = &m->records[i];
        if (!r->used || r->stamp < found->stamp) found = r;
    }
    *found = (struct master_record){.used = true, .number = number};
    return found;
}

/* --- messages from peers --- */

void state_vote_asked(struct master *m, uint32_t link,
                      const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    if (!votes_is_new(m, link, msg)) return;
    if (p->sync.voted || p->sync.part != PART_NONE) {
        master_drop(m, link, "synchronized again inside a synchronization");
        return;
    }
    if (msg->sync.revision == UINT64_MAX) {
        master_drop(m, link, "its state has a revision that none can follow");
        return;
    }
    p->sync.voted = true;
    p->sync.again = msg->sync.again;
    m->groups[p->group].hints.again |= p->sync.again;
    p->sync.ended = msg->sync.id;
    p->sync.strategy = msg->sync.strategy;
    p->sync.revision = msg->sync.revision;
    p->sync.structure = msg->sync.structure;
    p->sync.content = msg->sync.content;
    coverage_votes(m, link, msg);
}

/* Rule S8: bytes that a receiver took count when it is complete. */
static void credit(struct master *m, uint32_t group, const struct wire_msg *msg)
{
    for (uint32_t k = 0; k + 1 < msg->id_count; k += 2) {
        uint32_t link = master_link_of(m, group, msg->ids[k]);
        if (link != MASTER_NO_LINK && in_group(&m->peers[link], group))
            m->peers[link].sync.given += msg->ids[k + 1];
    }
}

/* Rule S6: reports to all which members have different tensors; of several
 * members the one of the lowest rank is named. */
static void note_differs(struct master *m, uint32_t link, const char *text)
{
    const struct master_peer *p = &m->peers[link];
    struct master_group *g = &m->groups[p->group];
    if (text[0] == '\0') return;
    struct master_note note = {.kind = NOTE_DIFFERS, .peer = p, .reason = text};
    master_note_send(m, &note);
    if (g->sync_text[0] != '\0' && g->sync_text_rank < p->rank) return;
    g->sync_text_rank = p->rank;
    memcpy(g->sync_text, text, sizeof g->sync_text);
}

void state_vote_done(struct master *m, uint32_t link,
                     const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    struct master_group *g = &m->groups[p->group];
    if (msg->sync.id != g->sync_id || p->sync.part < PART_LACKS) return;
    bool has = p->sync.part == PART_LACKS && msg->sync.role == SYNC_COMPLETE;
    if (p->sync.part == PART_DIFFERS) note_differs(m, link, msg->sync.text);
    p->sync.part = PART_NONE;
    if (!has) return;
    credit(m, p->group, msg);
    p->sync.well = g->sync_id;
    p->sync.part =
        p->sync.strategy == SYNC_RECEIVE_ONLY ? PART_HAS : PART_SERVES;
}

/* --- answers --- */

static void answer(struct master *m, uint32_t link, enum sync_role role,
                   uint64_t revision)
{
    struct master_peer *p = &m->peers[link];
    struct wire_msg msg = {.type = WIRE_STATE, .epoch = 0};
    msg.sync.id = m->sync_last;
    msg.sync.role = (uint8_t)role;
    msg.sync.revision = revision;
    p->sync.voted = false;
    p->sync.part = PART_NONE;
    master_send(m, link, &msg);
}

static void refuse(struct master *m, uint32_t link)
{
    if (!m->peers[link].sync.voted) return;
    struct wire_msg msg = {.type = WIRE_STATE, .sync.role = SYNC_CROSSED};
    m->peers[link].sync.voted = false;
    master_send(m, link, &msg);
}

/* Sends one message to all members with a role; encoded once. */
static void notify_part(struct master *m, uint32_t group, enum master_part part,
                        struct wire_msg *msg, enum sync_role role)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (in_group(p, group) && p->sync.part == part) m->links[count++] = i;
    }
    msg->sync.role = (uint8_t)role;
    if (count > 0) m->out.send(m->out.user, m->links, count, msg);
}

static uint32_t list_part(struct master *m, uint32_t group,
                          enum master_part part, uint32_t at, uint32_t most)
{
    for (uint32_t i = 0; i < m->link_end && most > 0; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!in_group(p, group) || p->leaving || p->sync.part != part) continue;
        m->ids[at++] = p->info.id;
        most--;
    }
    return at;
}

static uint32_t count_part(const struct master *m, uint32_t group,
                           enum master_part part)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        count += in_group(p, group) && !p->leaving && p->sync.part == part;
    }
    return count;
}

static struct wire_msg group_state(struct master *m, uint32_t group)
{
    const struct master_group *g = &m->groups[group];
    struct wire_msg msg = {.type = WIRE_STATE, .epoch = g->epoch};
    msg.sync.id = g->sync_id;
    msg.sync.revision = g->sync_revision;
    msg.sync.structure = g->sync_structure;
    msg.sync.content = g->sync_content;
    return msg;
}

/* Rule S6: sends the list of servers and receivers to all of them. */
static void send_lists(struct master *m, uint32_t group)
{
    struct wire_msg msg = group_state(m, group);
    uint32_t end = list_part(m, group, PART_SERVES, 0, MASTER_SERVERS_MAX);
    msg.sync.holders = end;
    end = list_part(m, group, PART_LACKS, end, PEERS_MAX);
    msg.sync.receivers = end - msg.sync.holders;
    end = list_part(m, group, PART_DIFFERS, end, PEERS_MAX);
    msg.id_count = end;
    msg.ids = m->ids;
    notify_part(m, group, PART_SERVES, &msg, SYNC_WAIT);
    notify_part(m, group, PART_HAS, &msg, SYNC_WAIT);
    notify_part(m, group, PART_LACKS, &msg, SYNC_RECEIVE);
    notify_part(m, group, PART_DIFFERS, &msg, SYNC_DIFFERS);
}

/* COMPLETE to all members with a role: one message for those that sent no
 * bytes. */
static void complete_part(struct master *m, uint32_t group,
                          enum master_part part, struct wire_msg *msg)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        if (!in_group(p, group) || p->sync.part != part || p->sync.given == 0)
            continue;
        struct wire_msg own = *msg;
        own.sync.role = SYNC_COMPLETE;
        own.sync.given = p->sync.given;
        p->sync.part = PART_NONE;
        master_send(m, i, &own);
    }
    notify_part(m, group, part, msg, SYNC_COMPLETE);
}

/* Rule S8: members that have the state continue; the others cannot get it. */
static void end_sync(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    struct master_record *r = take_record(m, g->number);
    r->revision = g->sync_revision;
    r->structure = g->sync_structure;
    r->content = g->sync_content;
    r->stamp = g->sync_id;
    if (!memory_keep(m)) return; /* J1 */
    g->synced = g->sync_id;
    struct wire_msg msg = group_state(m, group);
    memcpy(msg.sync.text, g->sync_text, sizeof g->sync_text);
    complete_part(m, group, PART_SERVES, &msg);
    complete_part(m, group, PART_HAS, &msg);
    notify_part(m, group, PART_LACKS, &msg, SYNC_NO_STATE);
    notify_part(m, group, PART_DIFFERS, &msg, SYNC_NO_STATE);
    for (uint32_t i = 0; i < m->link_end; i++) {
        if (in_group(&m->peers[i], group)) m->peers[i].sync.part = PART_NONE;
    }
    g->sync_id = 0;
    g->sync_changed = false;
}

static void go_on(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    uint32_t open =
        count_part(m, group, PART_LACKS) + count_part(m, group, PART_DIFFERS);
    if (open == 0 || count_part(m, group, PART_SERVES) == 0) {
        end_sync(m, group);
    } else if (g->sync_changed) {
        g->sync_changed = false;
        send_lists(m, group);
    }
}

/* --- the election --- */

struct election {
    uint64_t expected; /* revision */
    bool resume;       /* no member present was in the run's last sync (S4) */
    bool current;      /* some candidate has the expected revision */
    uint32_t winner;   /* link, or MASTER_NO_LINK */
};

static bool same_state(const struct master_peer_sync *a,
                       const struct master_peer_sync *b)
{
    return a->structure == b->structure && a->content == b->content;
}

static bool votes(const struct master *m, uint32_t link, uint32_t group)
{
    const struct master_peer *p = &m->peers[link];
    return in_group(p, group) && !p->leaving && p->sync.voted;
}

/* Whether it may be elected, by strategy and revision (S3, S5). */
static bool stands(const struct master *m, uint32_t link, uint32_t group,
                   const struct election *e)
{
    const struct master_peer_sync *s = &m->peers[link].sync;
    if (!votes(m, link, group) || s->strategy == SYNC_RECEIVE_ONLY)
        return false;
    return s->revision == e->expected || !(e->resume || e->current);
}

static void answer_all(struct master *m, uint32_t group, enum sync_role role,
                       uint64_t revision)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        if (votes(m, i, group)) answer(m, i, role, revision);
    }
}

/* Whether it has the state of the record. */
static bool was_in_last(const struct master_peer *p,
                        const struct master_record *r)
{
    return r && p->sync.well == r->stamp;
}

static bool is_popular(const struct master_peer *p)
{
    return p->sync.strategy == SYNC_ENFORCE_POPULAR;
}

/* Rule S2: the kind of strategy that counts, enforce-popular or the others. */
static bool popular_counts(struct master *m, uint32_t group)
{
    const struct master_record *r = find_record(m, m->groups[group].number);
    const struct master_peer *lowest = NULL;
    uint32_t count[2] = {0};
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!votes(m, i, group)) continue;
        /* One of the last synchronization outweighs all newcomers. */
        count[is_popular(p)] += was_in_last(p, r) ? PEERS_MAX : 1;
        if (!lowest || p->rank < lowest->rank) lowest = p;
    }
    if (count[0] / PEERS_MAX != count[1] / PEERS_MAX ||
        (count[0] < PEERS_MAX && count[0] != count[1]))
        return count[1] > count[0];
    return lowest && is_popular(lowest);
}

/* Rule S2: the members of the other kind are out of this synchronization. */
static void refuse_strategies(struct master *m, uint32_t group)
{
    bool popular = popular_counts(m, group);
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!votes(m, i, group) || is_popular(p) == popular) continue;
        char text[WIRE_TEXT_MAX + 1];
        dispute_text_strategy(p->rank, p->sync.strategy, text);
        note_differs(m, i, text);
        answer(m, i, SYNC_MIXED, 0);
    }
}

/* Rules S3, S4: the revision that this synchronization assigns. */
static struct election begin_election(struct master *m, uint32_t group)
{
    const struct master_record *r = find_record(m, m->groups[group].number);
    struct election e = {.winner = MASTER_NO_LINK, .resume = r != NULL};
    uint64_t most = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        if (!votes(m, i, group)) continue;
        const struct master_peer_sync *s = &m->peers[i].sync;
        if (was_in_last(&m->peers[i], r)) e.resume = false;
        if (s->strategy != SYNC_RECEIVE_ONLY && s->revision > most)
            most = s->revision;
    }
    e.expected = most;
    if (r) e.expected = e.resume ? r->revision : r->revision + 1;
    return e;
}

static void refuse_ahead(struct master *m, uint32_t group, struct election *e)
{
    const struct master_record *r = find_record(m, m->groups[group].number);
    for (uint32_t i = 0; i < m->link_end; i++) {
        if (!votes(m, i, group)) continue;
        const struct master_peer_sync *s = &m->peers[i].sync;
        if (s->revision > e->expected) {
            answer(m, i, SYNC_AHEAD, e->expected);
            continue;
        }
        if (s->revision != e->expected) continue;
        bool foreign = e->resume && (s->structure != r->structure ||
                                     s->content != r->content);
        if (foreign && s->strategy != SYNC_RECEIVE_ONLY)
            answer(m, i, SYNC_FOREIGN, e->expected);
        else if (s->strategy != SYNC_RECEIVE_ONLY)
            e->current = true;
    }
}

/* By content, and of equal ones by rank. */
static int compare_states(const void *a, const void *b, void *master)
{
    const struct master *m = master;
    const struct master_peer *x = &m->peers[*(const uint32_t *)a];
    const struct master_peer *y = &m->peers[*(const uint32_t *)b];
    if (x->sync.structure != y->sync.structure)
        return x->sync.structure < y->sync.structure ? -1 : 1;
    if (x->sync.content != y->sync.content)
        return x->sync.content < y->sync.content ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Rule S5: most votes, then the content of the lowest rank. */
static void elect(struct master *m, uint32_t group, struct election *e)
{
    uint32_t count = 0, best = 0;
    for (uint32_t i = 0; i < m->link_end; i++)
        if (stands(m, i, group, e)) m->links[count++] = i;
    qsort_r(m->links, count, sizeof m->links[0], compare_states, m);
    for (uint32_t i = 0, end; i < count; i = end) {
        const struct master_peer *first = &m->peers[m->links[i]];
        for (end = i + 1; end < count; end++)
            if (!same_state(&first->sync, &m->peers[m->links[end]].sync)) break;
        if (end - i < best) continue;
        if (end - i == best && first->rank > m->peers[e->winner].rank) continue;
        best = end - i;
        e->winner = m->links[i];
    }
}

/* Assigns the roles after the election. */
static void assign_parts(struct master *m, uint32_t group,
                         const struct election *e)
{
    const struct master_peer_sync winner = m->peers[e->winner].sync;
    for (uint32_t i = 0; i < m->link_end; i++) {
        if (!votes(m, i, group)) continue;
        struct master_peer_sync *s = &m->peers[i].sync;
        bool same = same_state(s, &winner);
        if (!same && s->strategy == SYNC_SEND_ONLY) {
            answer(m, i, SYNC_CONFLICT, e->expected);
            continue;
        }
        s->voted = false;
        if (same) s->well = m->groups[group].sync_id;
        if (same)
            s->part = s->strategy == SYNC_RECEIVE_ONLY ? PART_HAS : PART_SERVES;
        else
            s->part =
                s->structure == winner.structure ? PART_LACKS : PART_DIFFERS;
    }
}

/* Whether a content was elected. */
static bool decide(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    g->sync_text[0] = '\0';
    m->sync_last++;
    refuse_strategies(m, group);
    struct election e = begin_election(m, group);
    refuse_ahead(m, group, &e);
    elect(m, group, &e);
    if (e.winner == MASTER_NO_LINK) {
        answer_all(m, group, SYNC_NO_STATE, e.expected);
        return false;
    }
    g->sync_revision = e.expected;
    g->sync_structure = m->peers[e.winner].sync.structure;
    g->sync_content = m->peers[e.winner].sync.content;
    g->sync_id = m->sync_last;
    g->sync_changed = true;
    for (uint32_t i = 0; i < m->link_end; i++) {
        if (!in_group(&m->peers[i], group)) continue;
        m->peers[i].sync.given = 0;
    }
    assign_parts(m, group, &e);
    go_on(m, group);
    coverage_elected(m, group);
    return true;
}

/* Rules S9, V5: all of the group wait, but in different calls. */
static void refuse_crossed(struct master *m, uint32_t group)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        if (!in_group(p, group)) continue;
        refuse(m, i);
        struct wire_msg msg = {.type = WIRE_ANSWER};
        msg.vote.flag = 0xff;
        for (uint8_t kind = 0; kind < VOTE_KIND_COUNT; kind++) {
            if (!p->voted[kind]) continue;
            master_vote(m, i, kind, false);
            msg.vote.kind = kind;
            master_send(m, i, &msg);
        }
    }
}

/* Rule H6: who asks again for a synchronization that has ended, as some member
 * knows, hears how: its state says whether it got it. */
static void repeat_end(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    if (g->synced == 0 || !g->hints.again) return;
    const struct master_record *r = find_record(m, g->number);
    if (!r || r->stamp != g->synced) return;
    g->hints.again = false;
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        if (p->group != group || !p->sync.voted || !p->sync.again) continue;
        bool later = !in_group(p, group) || p->sync.ended >= g->synced;
        g->hints.again |= later;
        if (later) continue;
        bool has =
            p->sync.structure == r->structure && p->sync.content == r->content;
        struct wire_msg msg = {.type = WIRE_STATE, .epoch = g->epoch};
        msg.sync.id = g->synced;
        msg.sync.revision = r->revision;
        msg.sync.role = has ? SYNC_COMPLETE : SYNC_NO_STATE;
        p->sync.voted = false;
        if (has) p->sync.well = r->stamp;
        master_send(m, i, &msg);
    }
}

static bool is_free(const struct master *m, const struct master_peer *p,
                    uint32_t group, uint32_t what)
{
    (void)m, (void)what;
    return in_group(p, group) && !p->leaving && !master_waits(p) &&
           !p->voted[VOTE_PENDING];
}

bool state_vote_settle(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    repeat_end(m, group);
    if (g->sync_id != 0) go_on(m, group);
    if (g->sync_id != 0 || g->phase != GROUP_OPEN || g->restart) return false;
    if (g->tally.members == 0 ||
        master_finds(m, &g->hints.syncs, is_free, group, 0))
        return false;
    uint32_t voters = 0;
    uint32_t optimizers = 0;
    uint32_t members = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!in_group(p, group) || p->leaving) continue;
        voters += p->sync.voted;
        optimizers += p->voted[VOTE_OPTIMIZE];
        members++;
    }
    if (voters + optimizers == 0) return false;
    if (voters == members) return decide(m, group);
    refuse_crossed(m, group);
    return false;
}
