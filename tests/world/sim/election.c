/* election.c - counts the votes of a synchronization again (rules S1..S9).
 *
 * It is written from the rules, with ballots of its own: it sees the messages
 * that members and the master send to each other, and takes only the
 * membership from the master. The master's STATE must equal the result of the
 * recount. */
#include "election.h"

#include <stdlib.h>
#include <string.h>

enum { LINKS_MAX = 256, HAD_MAX = 32, VOTERS_MAX = 64 };

enum part { PART_OUT, PART_GIVES, PART_MUTE, PART_WANTS, PART_ODD };

struct ballot {
    bool cast;    /* not decided yet */
    bool decided; /* `want` is the master's next STATE to this member */
    enum part part;
    enum sync_role want;
    uint8_t strategy;
    uint64_t id, revision, structure, content;
    bool lacked;          /* when it was decided */
    uint64_t given, took; /* bytes, by the receivers' reports */
};

/* A group through time. */
struct chronicle {
    bool any; /* there has been a synchronization */
    uint64_t revision, structure, content;
    uint64_t had[HAD_MAX]; /* members that had the content then */
    uint32_t had_count;
    bool under_way, ending;
    uint64_t id;               /* of the last one in which bytes moved */
    uint32_t completed, taken; /* notified COMPLETE, seen by the programs */
    uint64_t sum_tx, sum_rx;   /* by the programs, and of the lost */
    bool spoiled;              /* one left in the middle: sums mean nothing */
    bool stale;                /* one was lost since the lists went out */
    bool named;                /* one has reported how its tensors differ */
};

struct election {
    struct ballot ballots[LINKS_MAX];
    uint32_t asked[LINKS_MAX]; /* number of the member's last SYNC (V1) */
    struct chronicle groups[SIM_GROUPS];
};

struct election *election_new(void)
{
    return calloc(1, sizeof(struct election));
}

void election_free(struct election *e)
{
    free(e);
}

/* Members of a group in the order of links; leaving members do not count. */
static uint32_t members(const struct sim *s, uint32_t number, uint32_t *links)
{
    const struct master *m = s->master;
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end && i < LINKS_MAX; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state == PEER_MEMBER && !p->leaving &&
            m->groups[p->group].number == number)
            links[count++] = i;
    }
    return count;
}

static uint32_t number_of(const struct sim *s, uint32_t link)
{
    return s->master->groups[s->master->peers[link].group].number;
}

static bool same(const struct ballot *a, const struct ballot *b)
{
    return a->content == b->content && a->structure == b->structure;
}

void election_asked(struct sim *s, uint32_t link, const struct wire_msg *msg)
{
    if (!s->election) return;
    SIM_CHECK(s, link < LINKS_MAX, "link %u", link);
    struct ballot *b = &s->election->ballots[link];
    if (s->master->peers[link].state != PEER_MEMBER) return;
    if (msg->round <= s->election->asked[link]) return; /* came twice */
    s->election->asked[link] = msg->round;
    struct chronicle *c = &s->election->groups[number_of(s, link)];
    sim_coverage.sync_late += c->under_way;
    *b = (struct ballot){.cast = true,
                         .strategy = msg->sync.strategy,
                         .id = s->master->peers[link].info.id,
                         .revision = msg->sync.revision,
                         .structure = msg->sync.structure,
                         .content = msg->sync.content};
}

static struct ballot *ballot_of(struct sim *s, uint32_t number, uint64_t id)
{
    uint32_t links[LINKS_MAX];
    uint32_t count = members(s, number, links);
    for (uint32_t i = 0; i < count; i++) {
        struct ballot *b = &s->election->ballots[links[i]];
        if (b->id == id) return b;
    }
    return NULL;
}

static uint32_t count_part(struct sim *s, uint32_t number, enum part part)
{
    uint32_t links[LINKS_MAX];
    uint32_t count = members(s, number, links);
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        found += s->election->ballots[links[i]].part == part;
    return found;
}

static void note_had(struct chronicle *c, uint64_t id)
{
    if (c->had_count < HAD_MAX) c->had[c->had_count++] = id;
}

void election_reported(struct sim *s, uint32_t link, const struct wire_msg *msg)
{
    if (!s->election) return;
    struct ballot *b = &s->election->ballots[link];
    if (b->part != PART_WANTS && b->part != PART_ODD) return;
    uint32_t number = number_of(s, link);
    struct chronicle *c = &s->election->groups[number];
    if (msg->sync.id != c->id) return;
    if (b->part == PART_WANTS && msg->sync.role != SYNC_COMPLETE) {
        const struct sim_options *o = &s->options;
        bool faults = o->single || o->reset || o->refuse || o->stall ||
                      o->freeze || o->starve || o->pause || o->garble ||
                      o->stutter;
        sim_coverage.sync_gave_up++;
        SIM_CHECK(s,
                  faults || o->liars || count_part(s, number, PART_GIVES) == 0,
                  "S7: member %llu has given up, though somebody has it",
                  (unsigned long long)b->id);
    }
    c->named |= b->part == PART_ODD && msg->sync.text[0] != '\0';
    if (b->part == PART_ODD || msg->sync.role != SYNC_COMPLETE) {
        c->sum_tx += b->given;
        b->part = PART_OUT;
        return;
    }
    b->part = b->strategy == SYNC_RECEIVE_ONLY ? PART_MUTE : PART_GIVES;
    note_had(c, b->id);
    uint32_t givers = 0;
    for (uint32_t i = 0; i + 1 < msg->id_count; i += 2) {
        struct ballot *giver = ballot_of(s, number, msg->ids[i]);
        uint64_t bytes = msg->ids[i + 1];
        SIM_CHECK(s, msg->ids[i] != b->id && bytes > 0, "took of itself");
        b->took += bytes;
        givers++;
        sim_coverage.sync_relay += giver && giver->lacked;
        sim_coverage.sync_orphan += !giver;
        if (giver)
            giver->given += bytes;
        else
            c->sum_tx += bytes; /* of one that was lost */
    }
    sim_coverage.sync_many += givers > 1;
}

void election_gone(struct sim *s, uint32_t link)
{
    if (!s->election) return;
    if (link >= LINKS_MAX) return;
    struct ballot *b = &s->election->ballots[link];
    sim_coverage.sync_dead_vote += b->cast;
    sim_coverage.sync_dead_giver += b->part == PART_GIVES;
    sim_coverage.sync_dead_taker += b->part == PART_WANTS;
    if (b->part != PART_OUT) {
        struct chronicle *c = &s->election->groups[number_of(s, link)];
        c->sum_tx += b->given;
        c->spoiled |= s->master->peers[link].leaving;
        c->stale = true;
        if (b->part != PART_WANTS) c->sum_rx += b->took;
    }
    memset(b, 0, sizeof *b);
    s->election->asked[link] = 0;
}

/* ------------------------------------------------------------ the recount */

struct count {
    struct ballot *voters[VOTERS_MAX];
    uint32_t ranks[VOTERS_MAX];
    uint32_t size;
    uint64_t expected;
    bool resume;
    bool mixed; /* somebody was refused for another strategy (S2) */
};

static bool had_it(const struct chronicle *c, const struct ballot *b)
{
    for (uint32_t k = 0; k < c->had_count; k++)
        if (c->had[k] == b->id) return true;
    return false;
}

/* Members with enforce-popular less those with another strategy; `all`: also
 * those that were not in the last synchronization. */
static int lead(const struct chronicle *c, const struct count *n, bool all,
                uint32_t *size)
{
    int more = 0;
    *size = 0;
    for (uint32_t i = 0; i < n->size; i++) {
        const struct ballot *b = n->voters[i];
        if (!all && !had_it(c, b)) continue;
        (*size)++;
        more += b->strategy == SYNC_ENFORCE_POPULAR ? 1 : -1;
    }
    return more;
}

/* S2: those whose kind of strategy does not count are no voters. */
static void drop_other_kind(const struct chronicle *c, struct count *n)
{
    uint32_t size, left = 0, first = 0;
    int more = lead(c, n, false, &size);
    if (size == 0) more = lead(c, n, true, &size);
    for (uint32_t i = 0; i < n->size; i++)
        if (n->ranks[i] < n->ranks[first]) first = i;
    bool popular = n->voters[first]->strategy == SYNC_ENFORCE_POPULAR;
    if (more != 0) popular = more > 0;
    for (uint32_t i = 0; i < n->size; i++) {
        struct ballot *b = n->voters[i];
        if ((b->strategy == SYNC_ENFORCE_POPULAR) != popular) {
            b->want = SYNC_MIXED;
            n->mixed = true;
            continue;
        }
        n->voters[left] = b;
        n->ranks[left++] = n->ranks[i];
    }
    n->size = left;
    sim_coverage.sync_mixed += n->mixed;
}

/* S3, S4. */
static void find_revision(const struct chronicle *c, struct count *n)
{
    bool known = false;
    uint64_t highest = 0;
    for (uint32_t i = 0; i < n->size; i++) {
        const struct ballot *b = n->voters[i];
        known |= had_it(c, b);
        if (b->strategy != SYNC_RECEIVE_ONLY && b->revision > highest)
            highest = b->revision;
    }
    n->resume = c->any && !known;
    n->expected = highest;
    if (c->any) n->expected = n->resume ? c->revision : c->revision + 1;
}

static bool foreign(const struct chronicle *c, const struct count *n,
                    const struct ballot *b)
{
    return n->resume && b->strategy != SYNC_RECEIVE_ONLY &&
           b->revision == c->revision &&
           (b->content != c->content || b->structure != c->structure);
}

/* S5: the votes of a candidate's content, then its lowest rank. */
static struct ballot *find_winner(struct count *n, const bool *stands)
{
    struct ballot *winner = NULL;
    uint32_t most = 0;
    bool tie = false;
    /* In the order of ranks, so that the first of equals is the lowest. */
    for (uint32_t rank = 0; rank < VOTERS_MAX; rank++) {
        for (uint32_t i = 0; i < n->size; i++) {
            if (n->ranks[i] != rank || !stands[i]) continue;
            uint32_t votes = 0;
            for (uint32_t k = 0; k < n->size; k++)
                votes += stands[k] && same(n->voters[k], n->voters[i]);
            tie |= votes == most && winner && !same(winner, n->voters[i]);
            if (votes <= most) continue;
            tie = false;
            most = votes;
            winner = n->voters[i];
        }
    }
    sim_coverage.sync_tie += tie;
    for (uint32_t i = 0; winner && most > 1 && i < n->size; i++) {
        if (!stands[i] || same(n->voters[i], winner)) continue;
        sim_coverage.sync_popular++;
        break;
    }
    return winner;
}

static void give_parts(struct count *n, const struct ballot *winner)
{
    bool moves = false;
    for (uint32_t i = 0; i < n->size; i++) {
        struct ballot *b = n->voters[i];
        if (b->want != SYNC_ROLE_COUNT) continue;
        if (same(b, winner)) {
            b->part = b->strategy == SYNC_RECEIVE_ONLY ? PART_MUTE : PART_GIVES;
            continue;
        }
        if (b->strategy == SYNC_SEND_ONLY) {
            b->want = SYNC_CONFLICT;
            continue;
        }
        moves = true;
        b->lacked = true;
        b->part = b->structure == winner->structure ? PART_WANTS : PART_ODD;
        b->want = b->part == PART_ODD ? SYNC_DIFFERS : SYNC_RECEIVE;
    }
    for (uint32_t i = 0; i < n->size; i++) {
        struct ballot *b = n->voters[i];
        if (b->want == SYNC_ROLE_COUNT)
            b->want = moves ? SYNC_WAIT : SYNC_COMPLETE;
    }
}

static void count_votes(struct chronicle *c, struct count *n)
{
    bool stands[VOTERS_MAX] = {false};
    bool current = false;
    drop_other_kind(c, n);
    find_revision(c, n);
    for (uint32_t i = 0; i < n->size; i++) {
        struct ballot *b = n->voters[i];
        b->want = SYNC_ROLE_COUNT;
        if (b->revision > n->expected) b->want = SYNC_AHEAD;
        if (foreign(c, n, b)) b->want = SYNC_FOREIGN;
        stands[i] =
            b->want == SYNC_ROLE_COUNT && b->strategy != SYNC_RECEIVE_ONLY;
        current |= stands[i] && b->revision == n->expected;
    }
    for (uint32_t i = 0; i < n->size; i++) {
        bool behind = n->voters[i]->revision < n->expected;
        if (stands[i] && behind) sim_coverage.sync_behind++;
        if (behind && (current || n->resume)) stands[i] = false;
    }
    struct ballot *winner = find_winner(n, stands);
    if (!winner) {
        for (uint32_t i = 0; i < n->size; i++) {
            if (n->voters[i]->want == SYNC_ROLE_COUNT)
                n->voters[i]->want = SYNC_NO_STATE;
        }
        return;
    }
    c->any = true;
    c->revision = n->expected;
    c->structure = winner->structure;
    c->content = winner->content;
    c->had_count = 0;
    give_parts(n, winner);
    for (uint32_t i = 0; i < n->size; i++) {
        const struct ballot *b = n->voters[i];
        if (b->part == PART_GIVES || b->part == PART_MUTE) note_had(c, b->id);
    }
}

static void decide(struct sim *s, uint32_t number)
{
    struct chronicle *c = &s->election->groups[number];
    uint32_t links[LINKS_MAX];
    struct count n = {.size = 0};
    uint32_t count = members(s, number, links);
    for (uint32_t i = 0; i < count; i++) {
        struct ballot *b = &s->election->ballots[links[i]];
        SIM_CHECK(s, b->cast, "S1: decided without member %llu",
                  (unsigned long long)s->master->peers[links[i]].info.id);
        b->cast = false;
        b->decided = true;
        n.ranks[n.size] = s->master->peers[links[i]].rank;
        n.voters[n.size++] = b;
    }
    count_votes(c, &n);
    c->ending = c->spoiled = c->stale = false;
    c->named = n.mixed;
    c->completed = c->taken = 0;
    c->sum_tx = c->sum_rx = 0;
    for (uint32_t i = 0; i < n.size; i++)
        c->under_way |= n.voters[i]->want == SYNC_WAIT;
    uint32_t together = 0;
    for (uint32_t i = 0; i < SIM_GROUPS; i++)
        together += s->election->groups[i].under_way;
    sim_coverage.sync_two += together > 1;
}

/* ------------------------------------------------------ the master's STATE */

/* S6: the holders, the receivers, and the members with other tensors; all of
 * them. */
static void check_lists(struct sim *s, uint32_t number,
                        const struct wire_msg *msg)
{
    struct chronicle *c = &s->election->groups[number];
    c->stale = false;
    SIM_CHECK(s,
              msg->sync.content == c->content &&
                  msg->sync.structure == c->structure &&
                  msg->sync.revision == c->revision,
              "S5: another content or revision than the elected");
    uint32_t wants = msg->sync.holders + msg->sync.receivers;
    for (uint32_t i = 0; i < msg->id_count; i++) {
        const struct ballot *b = ballot_of(s, number, msg->ids[i]);
        enum part part = i < msg->sync.holders ? PART_GIVES
                         : i < wants           ? PART_WANTS
                                               : PART_ODD;
        SIM_CHECK(s, b && b->part == part, "S6: member %llu is listed wrongly",
                  (unsigned long long)msg->ids[i]);
    }
    SIM_CHECK(s,
              msg->sync.holders == count_part(s, number, PART_GIVES) &&
                  msg->sync.receivers == count_part(s, number, PART_WANTS) &&
                  msg->id_count - wants == count_part(s, number, PART_ODD),
              "S6: somebody is not listed");
}

/* S8. */
static void check_end(struct sim *s, uint32_t number, struct ballot *b,
                      const struct wire_msg *msg)
{
    struct chronicle *c = &s->election->groups[number];
    uint32_t open =
        count_part(s, number, PART_WANTS) + count_part(s, number, PART_ODD);
    SIM_CHECK(s,
              c->ending || open == 0 || count_part(s, number, PART_GIVES) == 0,
              "S8: the end, with %u receivers and somebody who has it", open);
    c->ending = true;
    c->under_way = false;
    bool has = b->part == PART_GIVES || b->part == PART_MUTE;
    SIM_CHECK(s, has == (msg->sync.role == SYNC_COMPLETE),
              "S8: member %llu is told role %u", (unsigned long long)b->id,
              msg->sync.role);
    if (!has) {
        sim_coverage.sync_stranded++;
        c->sum_tx += b->given;
    }
    if (has) {
        c->completed++;
        SIM_CHECK(s, msg->sync.given == b->given, "%llu bytes given, not %llu",
                  (unsigned long long)msg->sync.given,
                  (unsigned long long)b->given);
        SIM_CHECK(s, msg->sync.revision == c->revision, "S3: wrong revision");
        SIM_CHECK(s, c->named == (msg->sync.text[0] != '\0'),
                  "S6: who has other tensors: \"%s\"", msg->sync.text);
        sim_coverage.sync_named += c->named;
    }
    b->part = PART_OUT;
}

static void said_to(struct sim *s, uint32_t link, const struct wire_msg *msg)
{
    struct ballot *b = &s->election->ballots[link];
    uint32_t number = number_of(s, link);
    enum sync_role role = (enum sync_role)msg->sync.role;
    if (s->master->peers[link].leaving) {
        s->election->groups[number].spoiled |= b->part != PART_OUT;
        memset(b, 0, sizeof *b);
        return;
    }
    if (role == SYNC_CROSSED) { /* S9, V4 */
        uint32_t links[LINKS_MAX];
        uint32_t elsewhere = members(s, number, links);
        for (uint32_t i = members(s, number, links); i > 0; i--)
            elsewhere -= s->election->ballots[links[i - 1]].cast;
        SIM_CHECK(s, b->cast && elsewhere > 0,
                  "S9: refused, but all wait for it");
        sim_coverage.sync_crossed++;
        b->cast = false;
        return;
    }
    if (b->cast) decide(s, number);
    bool first = b->decided;
    if (first) {
        SIM_CHECK(s, role == b->want,
                  "S2..S6: member %llu is told role %u, the recount says %u",
                  (unsigned long long)b->id, role, b->want);
        b->decided = false;
    }
    if (role <= SYNC_DIFFERS) s->election->groups[number].id = msg->sync.id;
    if (role == SYNC_WAIT || role == SYNC_RECEIVE || role == SYNC_DIFFERS)
        check_lists(s, number, msg);
    else if (b->part != PART_OUT)
        check_end(s, number, b, msg);
    else
        SIM_CHECK(s, first, "a word to member %llu that asked nothing",
                  (unsigned long long)b->id);
}

void election_said(struct sim *s, const uint32_t *links, uint32_t count,
                   const struct wire_msg *msg)
{
    if (!s->election) return;
    for (uint32_t i = 0; i < count; i++) said_to(s, links[i], msg);
}

/* The bytes that all sent are the bytes that all received, including the lost
 * members. */
void election_taken(struct sim *s, uint32_t number, uint64_t member,
                    uint64_t id, uint64_t tx, uint64_t rx)
{
    if (!s->election) return;
    struct chronicle *c = &s->election->groups[number];
    if (id != c->id) {
        /* An evicted member may read the STATE of an older one late. */
        bool late = id > 0 && id < c->id && !sim_is_member(s, member);
        SIM_CHECK(s, late || tx + rx == 0, "bytes without a transfer");
        return;
    }
    c->taken++;
    c->sum_tx += tx;
    c->sum_rx += rx;
    if (!c->ending || c->taken < c->completed || c->spoiled) return;
    SIM_CHECK(s, c->sum_tx == c->sum_rx,
              "%llu bytes were given, %llu were taken",
              (unsigned long long)c->sum_tx, (unsigned long long)c->sum_rx);
    sim_coverage.sync_exact += c->sum_rx > 0;
}

/* S1. A decision of which nobody hears yet: the journal is awaited (J1). */
static void decide_silently(struct sim *s, const struct master_group *g)
{
    uint32_t links[LINKS_MAX];
    uint32_t count = members(s, g->number, links);
    for (uint32_t i = 0; i < count; i++)
        if (!s->election->ballots[links[i]].cast) return;
    if (count > 0) decide(s, g->number);
}

/* S8: after a loss the lists are sent again before anything else happens. */
void election_settled(struct sim *s)
{
    if (!s->election) return;
    for (uint32_t i = 0; i < GROUPS_MAX; i++) {
        const struct master_group *g = &s->master->groups[i];
        if (g->used && g->phase == GROUP_OPEN && !g->restart)
            decide_silently(s, g);
    }
    for (uint32_t i = 0; i < SIM_GROUPS; i++) {
        const struct chronicle *c = &s->election->groups[i];
        if (!c->under_way || !c->stale) continue;
        uint32_t open =
            count_part(s, i, PART_WANTS) + count_part(s, i, PART_ODD);
        SIM_CHECK(s, open == 0 || count_part(s, i, PART_GIVES) == 0,
                  "S8: one was lost, and the lists were not sent again");
    }
}

/* No member here sends wrong bytes, so no member may be suspected of it
 * (S7). */
void election_watch(struct sim *s, const struct sim_proc *p)
{
    const struct state_sync *sync = &p->session->sync_state;
    if (s->options.liars) return;
    for (uint32_t i = 0; i < sync->partner_count; i++)
        SIM_CHECK(s, !sync->partners[i].bad, "process %u distrusts member %llu",
                  p->uid, (unsigned long long)sync->partners[i].id);
}
