/* replicas.c - see replicas.h. Rules H10 to H14. */
#include "replicas.h"

#include "../base/cursor.h"
#include "../base/wire_resume.h"
#include "master.h"

#include <stdlib.h>
#include <string.h>

enum { REPLICAS_MEMORY_MAX = WIRE_RECORD_MAX - 8 * PEERS_MAX - 64 };

/* Founders and members of a run whose coordinator has died come at the same
 * time; the latter dial at each of their ticks. */
static pccl_ns time_to_come(const struct master *m)
{
    return m->deadline / 2;
}

/* Their own time is over a little later, and this tells more. */
static bool have_had_time(const struct master *m)
{
    pccl_ns grace = m->succession.grace;
    pccl_ns less = grace > 2 * m->deadline ? m->deadline : grace / 2;
    return m->now - m->replicas.came >= grace - less;
}

static void tell(struct master *m, const char *text)
{
    struct master_note note = {.kind = NOTE_SUCCESSION, .reason = text};
    master_note_send(m, &note);
}

void replicas_begin(struct master *m)
{
    m->replicas.phase = REPLICAS_COLLECTS;
    m->replicas.source = MASTER_NO_LINK;
}

void replicas_end(struct master *m)
{
    struct replicas *k = &m->replicas;
    for (uint32_t i = 0; i < m->link_end; i++) replicas_forget(m, i);
    free(k->bytes);
    free(k->in);
    free(k->voters.ids);
    free(k->next.ids);
}

void replicas_forget(struct master *m, uint32_t link)
{
    struct replicas *k = &m->replicas;
    free(m->peers[link].held);
    m->peers[link].held = NULL;
    if (k->phase == REPLICAS_COLLECTS && k->source == link)
        k->source = MASTER_NO_LINK;
}

/* ---------------------------------------------------------- members of one */

static int compare_ids(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static bool has(const struct replicas_ids *set, uint64_t id)
{
    return set->count > 0 && bsearch(&id, set->ids, set->count,
                                     sizeof *set->ids, compare_ids) != NULL;
}

static bool ids_of(const struct master_memory *memory, struct replicas_ids *set)
{
    uint32_t room = succession_members(memory, NULL);
    free(set->ids);
    set->count = 0;
    set->ids = malloc((room > 0 ? room : 1) * sizeof *set->ids);
    if (!set->ids) return false;
    set->count = succession_members(memory, set->ids);
    if (set->count > 1)
        qsort(set->ids, set->count, sizeof *set->ids, compare_ids);
    return true;
}

/* ------------------------------------------------------------------ keeping */

/* Members, newcomers that the next view has, and who has come back. */
static bool keeps(const struct master_peer *p)
{
    return p->state == PEER_MEMBER ||
           (p->state == PEER_REGISTERED && p->proposed) || p->held_resume;
}

/* To the first of m->links. */
static void send_record(struct master *m, uint32_t count)
{
    const struct replicas *k = &m->replicas;
    for (uint32_t at = 0; at < k->size && count > 0;) {
        struct wire_msg msg;
        at = wire_record_part(&msg, k->name, k->bytes, k->size, at);
        m->out.send(m->out.user, m->links, count, &msg);
    }
}

struct count {
    uint32_t kept, owe; /* of the voters; of all */
};

static struct count count_kept(const struct master *m,
                               const struct replicas_ids *voters)
{
    const struct replicas *k = &m->replicas;
    struct count count = {0, 0};
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!keeps(p)) continue;
        uint64_t id = p->held_resume ? p->held->resume.id : p->info.id;
        bool kept = wire_record_same(p->kept, k->name);
        count.kept += kept && has(voters, id);
        count.owe += !kept && p->state == PEER_MEMBER;
    }
    return count;
}

/* Rules H11, H12. */
static bool is_kept(const struct master *m)
{
    const struct replicas *k = &m->replicas;
    struct count count = count_kept(m, &k->voters);
    if (2 * count.kept >= k->voters.count) return true;
    return !k->fenced && count.owe == 0;
}

/* Those that keep it know so. */
static void commit(struct master *m)
{
    struct replicas *k = &m->replicas;
    struct wire_msg counts = {.type = WIRE_KEPT};
    uint32_t count = 0;
    counts.keep.name = k->name;
    for (uint32_t i = 0; i < m->link_end; i++)
        if (keeps(&m->peers[i])) m->links[count++] = i;
    if (count > 0) m->out.send(m->out.user, m->links, count, &counts);
    free(k->voters.ids);
    k->voters = k->next;
    k->next = (struct replicas_ids){NULL, 0};
    k->pending = false;
}

static void ids_fields(struct cursor *c, struct replicas_ids *set)
{
    cursor_u32(c, &set->count);
    c->failed |= set->count > PEERS_MAX;
    if (c->failed) return;
    if (c->in && c->left / sizeof *set->ids >= set->count)
        set->ids = malloc((set->count + 1) * sizeof *set->ids);
    c->failed |= !set->ids && set->count > 0;
    for (uint32_t i = 0; i < set->count && !c->failed; i++) {
        cursor_u64(c, &set->ids[i]);
        c->failed |= i > 0 && set->ids[i] <= set->ids[i - 1];
    }
}

/* The voters, and room for the memory behind them. NULL: out of memory. */
static uint8_t *new_record(struct replicas_ids *voters, size_t more,
                           uint32_t *head)
{
    size_t room = sizeof(uint32_t) + voters->count * sizeof *voters->ids;
    uint8_t *bytes = malloc(room + more);
    if (!bytes) return NULL;
    struct cursor c = {.out = bytes, .left = room};
    ids_fields(&c, voters);
    PCCL_ASSERT(!c.failed && c.left == 0);
    *head = (uint32_t)room;
    return bytes;
}

/* The record takes the place of the one before. False: out of memory. */
static bool begin_record(struct master *m, const struct master_memory *memory)
{
    struct replicas *k = &m->replicas;
    size_t room = memory_size(memory);
    uint32_t head, count = 0;
    uint8_t *bytes = new_record(&k->voters, room, &head);
    if (!bytes || !ids_of(memory, &k->next)) {
        free(bytes);
        return false;
    }
    size_t size = head + memory_encode(memory, bytes + head, room);
    free(k->bytes);
    k->bytes = bytes;
    k->head = head;
    k->size = (uint32_t)size;
    k->name = (struct wire_record_name){memory->term, k->name.seq + 1};
    k->pending = true;
    k->pending_since = m->now;
    for (uint32_t i = 0; i < m->link_end; i++)
        if (keeps(&m->peers[i])) m->links[count++] = i;
    send_record(m, count);
    return true;
}

/* The record says the same. */
static bool is_known(const struct replicas *k,
                     const struct master_memory *memory)
{
    size_t room = memory_size(memory);
    uint8_t *bytes = malloc(room);
    if (!bytes) return false;
    size_t size = memory_encode(memory, bytes, room);
    bool same = k->size > 0 && size == k->size - k->head &&
                memcmp(bytes, k->bytes + k->head, size) == 0;
    free(bytes);
    return same;
}

bool replicas_hold(struct master *m, const struct master_memory *memory)
{
    struct replicas *k = &m->replicas;
    struct master_memory copy = *memory;
    if (k->phase != REPLICAS_SERVES) return true;
    if (k->pending && !is_kept(m)) return false;
    if (k->pending) commit(m);
    /* So that a newcomer's id makes no new record: J4 skips more. */
    copy.id |= MEMORY_IDS_SKIPPED / 2 - 1;
    if (is_known(k, &copy)) return true;
    if (memory_size(&copy) > REPLICAS_MEMORY_MAX) {
        if (!k->told_large)
            tell(m, "the run is too large for its members to keep its record: "
                    "without a journal no other coordinator can follow");
        k->told_large = true;
        return true;
    }
    if (!begin_record(m, &copy) || !is_kept(m)) return false;
    commit(m);
    return true;
}

/* --------------------------------------------------------------- collecting */

static bool is_key(const struct wire_key *a, const struct wire_key *b)
{
    return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

/* A member counts once: its connection before is gone. */
static void drop_former(struct master *m, uint32_t link)
{
    const struct wire_msg *msg = m->peers[link].held;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (i != link && p->held_resume &&
            p->held->resume.id == msg->resume.id &&
            is_key(&p->held->resume.secret, &msg->resume.secret))
            master_hang_up(m, i, "it has come again");
    }
}

static bool hold(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct replicas *k = &m->replicas;
    struct master_peer *p = &m->peers[link];
    if (!p->held) p->held = malloc(sizeof *p->held);
    if (!p->held) {
        master_hang_up(m, link, "no memory");
        return true;
    }
    *p->held = *msg;
    p->held_resume = msg->type == WIRE_RESUME;
    if (!p->held_resume) return true;
    drop_former(m, link);
    if (k->came == 0) k->came = m->now;
    if (msg->resume.term > k->term) k->term = msg->resume.term;
    if (msg->resume.kept.term > k->term) k->term = msg->resume.kept.term;
    /* Rule H13: another one has claimed them meanwhile. */
    bool above =
        wire_record_above(msg->resume.kept, k->name) || k->term > k->name.term;
    if (k->phase != REPLICAS_CLAIMS) return true;
    if (above) {
        k->phase = REPLICAS_COLLECTS;
        k->source = MASTER_NO_LINK;
    } else {
        m->links[0] = link;
        send_record(m, 1);
    }
    return true;
}

/* A part of the record that was asked for. */
static void take_part(struct master *m, uint32_t link,
                      const struct wire_msg *msg)
{
    struct replicas *k = &m->replicas;
    bool fits = k->phase == REPLICAS_COLLECTS && link == k->source &&
                wire_record_same(msg->keep.name, k->found) &&
                msg->keep.offset == k->in_size &&
                (k->in_size == 0 || msg->keep.total == k->in_total);
    if (!fits) {
        master_hang_up(m, link, "sent a record that nobody has asked for");
        return;
    }
    if (k->in_size == 0) {
        free(k->in);
        k->in = malloc(msg->keep.total);
        k->in_total = msg->keep.total;
    }
    if (!k->in) {
        master_hang_up(m, link, "no memory");
        return;
    }
    memcpy(k->in + k->in_size, msg->keep.bytes, msg->keep.size);
    k->in_size += msg->keep.size;
}

/* Whose HELLO or RESUME waits says nothing else that counts, but that it goes.
 */
bool replicas_pass(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    bool known = msg->type == WIRE_RESUME || msg->type == WIRE_KEEP ||
                 msg->type == WIRE_KEPT || msg->type == WIRE_HELLO;
    if (!m->peers[link].held || known) return false;
    if (msg->type == WIRE_LEAVE || msg->type == WIRE_ABORT)
        master_hang_up(m, link, "left before it was accepted");
    return true;
}

bool replicas_take(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct replicas *k = &m->replicas;
    struct master_peer *p = &m->peers[link];
    bool waits = k->phase == REPLICAS_COLLECTS || k->phase == REPLICAS_CLAIMS;
    switch (msg->type) {
    case WIRE_HELLO:
        if (waits && k->standby) {
            master_drop(m, link, "stands by for another coordinator");
            return true;
        }
        return waits && hold(m, link, msg);
    case WIRE_RESUME:
        return waits && hold(m, link, msg);
    case WIRE_KEEP:
        take_part(m, link, msg);
        return true;
    case WIRE_KEPT:
        if (k->phase != REPLICAS_OFF &&
            wire_record_same(msg->keep.name, k->name))
            p->kept = k->name;
        return true;
    default:
        return false;
    }
}

/* The held one with the latest record, or MASTER_NO_LINK. */
static uint32_t latest(const struct master *m)
{
    uint32_t best = MASTER_NO_LINK;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!p->held_resume || p->held->resume.kept.seq == 0) continue;
        if (best == MASTER_NO_LINK ||
            wire_record_above(p->held->resume.kept,
                              m->peers[best].held->resume.kept))
            best = i;
    }
    return best;
}

/* The latest record is here, whole; or is asked for. */
static bool has_latest(struct master *m)
{
    struct replicas *k = &m->replicas;
    uint32_t best = latest(m);
    if (best == MASTER_NO_LINK) return false;
    struct wire_record_name name = m->peers[best].held->resume.kept;
    bool current = !wire_record_above(name, k->found);
    if (current && k->in_total > 0 && k->in_size == k->in_total) return true;
    if (current && k->source != MASTER_NO_LINK) return false;
    struct wire_msg ask = {.type = WIRE_KEEP_GET};
    ask.keep.name = name;
    k->found = name;
    k->source = best;
    k->in_size = k->in_total = 0;
    master_send(m, best, &ask);
    return false;
}

static bool most_are_here(const struct master *m,
                          const struct replicas_ids *members)
{
    uint32_t here = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        here += p->held_resume && has(members, p->held->resume.id);
    }
    return here > members->count / 2;
}

/* One that has the record which was found knows that it counts. */
static bool found_counts(const struct master *m)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->held_resume && p->held->resume.counts &&
            wire_record_same(p->held->resume.kept, m->replicas.found))
            return true;
    }
    return false;
}

/* What was found: its voters, and the memory. False: it cannot be. */
static bool read_found(struct replicas *k, struct replicas_ids *voters,
                       struct master_memory *memory)
{
    struct cursor c = {.in = k->in, .left = k->in_size};
    *voters = (struct replicas_ids){NULL, 0};
    ids_fields(&c, voters);
    return !c.failed && memory_decode(memory, c.in, c.left);
}

static void drop_found(struct master *m)
{
    struct replicas *k = &m->replicas;
    uint32_t source = k->source;
    k->in_size = k->in_total = 0;
    k->source = MASTER_NO_LINK;
    if (source != MASTER_NO_LINK)
        master_drop(m, source, "sent a record that cannot be");
}

/* Rule H4. */
static void drop_strangers(struct master *m, const struct wire_key *key)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!p->held_resume) continue;
        struct wire_key right = succession_secret(key, p->held->resume.id);
        if (!is_key(&right, &p->held->resume.secret))
            master_drop(m, i, "it has not the secret of that member");
    }
}

/* Rule H13: the record, with this master's term. */
static void claim(struct master *m)
{
    struct replicas *k = &m->replicas;
    struct master_memory memory;
    struct replicas_ids voters, members = {NULL, 0};
    bool good = read_found(k, &voters, &memory);
    if (good)
        drop_strangers(m, &memory.secret);
    else
        drop_found(m);
    good = good && ids_of(&memory, &members) && most_are_here(m, &members);
    if (good && found_counts(m)) {
        free(voters.ids);
        voters = members;
        members.ids = NULL;
    }
    if (good && most_are_here(m, &voters)) {
        free(k->voters.ids);
        k->voters = voters;
        voters.ids = NULL;
        k->name.seq = k->found.seq;
        memory.term =
            (k->term / REPLICAS_TERM_STEP + 1) * REPLICAS_TERM_STEP + k->index;
        if (begin_record(m, &memory)) k->phase = REPLICAS_CLAIMS;
    }
    free(voters.ids);
    free(members.ids);
}

static bool is_claimed(const struct master *m)
{
    const struct replicas *k = &m->replicas;
    return count_kept(m, &k->voters).kept > k->voters.count / 2 &&
           count_kept(m, &k->next).kept > k->next.count / 2;
}

static void release(struct master *m)
{
    m->replicas.phase = REPLICAS_SERVES;
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct wire_msg *msg = m->peers[i].held;
        if (!msg) continue;
        m->peers[i].held = NULL;
        m->peers[i].held_resume = false;
        master_received(m, i, msg);
        free(msg);
    }
}

/* Most of them keep the record with this term. */
static void take_over(struct master *m)
{
    struct replicas *k = &m->replicas;
    struct master_memory memory;
    bool good = memory_decode(&memory, k->bytes + k->head, k->size - k->head);
    PCCL_ASSERT(good);
    memory_take(m, &memory);
    commit(m);
    if (!succession_begin(m, &memory)) {
        tell(m, "the record that the members keep has views that cannot be");
        succession_give_up(m);
    }
    release(m);
}

/* Until a run can begin, members of another one may come. */
static bool lacks_founders(const struct master *m)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < m->link_end; i++)
        held += m->peers[i].held && !m->peers[i].held_resume;
    return held < m->quorum;
}

static void give_up(struct master *m, const char *why)
{
    tell(m, why);
    for (uint32_t i = 0; i < m->link_end; i++)
        if (m->peers[i].held_resume) master_drop(m, i, why);
    m->replicas.came = 0;
}

bool replicas_collect(struct master *m)
{
    struct replicas *k = &m->replicas;
    if (k->phase == REPLICAS_OFF || k->phase == REPLICAS_SERVES) return false;
    if (k->began == 0) k->began = m->now;
    if (k->phase == REPLICAS_COLLECTS && has_latest(m)) claim(m);
    if (k->phase == REPLICAS_CLAIMS && is_claimed(m)) {
        take_over(m);
        return false;
    }
    if (k->came > 0 && have_had_time(m))
        give_up(m, "no more than half of the members have come to the next "
                   "coordinator");
    bool early = m->now - k->began < time_to_come(m);
    if (k->came > 0 || k->standby || early || lacks_founders(m)) return true;
    release(m);
    return false;
}

/* It has no part in the run any more. */
static void stand_down(struct master *m, const char *why)
{
    tell(m, why);
    for (uint32_t i = 0; i < m->link_end; i++) {
        enum master_peer_state state = m->peers[i].state;
        if (state == PEER_MEMBER || state == PEER_REGISTERED)
            master_drop(m, i, why);
    }
    m->replicas.over = true;
}

void replicas_tick(struct master *m)
{
    const struct replicas *k = &m->replicas;
    if (k->phase != REPLICAS_SERVES || !k->fenced || k->over) return;
    if (k->pending && m->now - k->pending_since >= m->succession.grace)
        stand_down(m, "the coordinator is cut off with less than half of the "
                      "members");
    else if (m->founded && !m->succession.waits &&
             master_count(m, PEER_MEMBER) == 0)
        stand_down(m, "the coordinator has no member any more");
}
