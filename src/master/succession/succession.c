/* succession.c - see succession.h. Rules H1 to H9. */
#include "succession.h"

#include "../../base/cursor.h"
#include "../../base/siphash.h"
#include "../../base/wire_resume.h"
#include "journal.h"
#include "../master.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WILL_MEMBER = 8 + 8 + 4 + 4 + 2 * 19 + 4 + 2,
    /* Bytes of all; the rest of a record is small. */
    WILLS_MAX = JOURNAL_RECORD_MAX - (1 << 16),
};

/* ------------------------------------------------------------------ writing */

static bool reserve(struct will *w, size_t more)
{
    if (w->size + more <= w->room) return true;
    size_t room = 2 * (w->size + more);
    uint8_t *bytes = realloc(w->bytes, room);
    if (!bytes) return false;
    w->bytes = bytes;
    w->room = room;
    return true;
}

static struct cursor at_end(struct will *w, size_t size)
{
    return (struct cursor){.out = w->bytes + w->size, .left = size};
}

static void heir_field(struct cursor *c, struct master_heir *h)
{
    cursor_u64(c, &h->info.id);
    cursor_u64(c, &h->info.host);
    cursor_i32(c, &h->info.hint);
    cursor_u32(c, &h->info.pid);
    wire_addr_field(c, &h->info.addr);
    wire_addr_field(c, &h->info.announced);
    cursor_u32(c, &h->place);
    cursor_flag(c, &h->join);
    cursor_flag(c, &h->stays);
}

struct will_head {
    uint32_t number, epoch, count;
    bool ring, mesh, tree, grid;
};

static void head_field(struct cursor *c, struct will_head *h)
{
    cursor_u32(c, &h->number);
    cursor_u32(c, &h->epoch);
    cursor_flag(c, &h->ring);
    cursor_flag(c, &h->mesh);
    cursor_flag(c, &h->tree);
    cursor_flag(c, &h->grid);
    cursor_u32(c, &h->count);
    c->failed |= h->count == 0 || h->count > PEERS_MAX || h->epoch == 0;
}

enum { HEAD_SIZE = 4 + 4 + 4 + 4 };

/* A message of the will: to whom, and its frame. */
struct recorder {
    struct master *m;
    struct will *will;
    uint8_t *frame;
    bool failed;
};

static void record(void *user, const uint32_t *links, uint32_t count,
                   const struct wire_msg *msg)
{
    struct recorder *r = user;
    uint32_t size = (uint32_t)wire_encode(msg, r->frame);
    size_t all = 8 + 8 * (size_t)count + size;
    r->failed |= !reserve(r->will, all);
    if (r->failed) return;
    struct cursor c = at_end(r->will, all);
    cursor_u32(&c, &count);
    for (uint32_t i = 0; i < count; i++)
        cursor_u64(&c, &r->m->peers[links[i]].info.id);
    cursor_u32(&c, &size);
    cursor_bytes(&c, r->frame, size);
    r->will->size += all;
}

static bool draft(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    struct will *w = &m->succession.drafts[group];
    struct will_head head = {g->number, g->round, round_next_view(m, group),
                             g->ring,   g->mesh,  g->tree,
                             g->grid};
    w->size = 0;
    if (head.count == 0) return true;
    size_t size = HEAD_SIZE + (size_t)head.count * WILL_MEMBER;
    if (!reserve(w, size)) return false;
    struct cursor c = at_end(w, size);
    head_field(&c, &head);
    for (uint32_t i = 0; i < head.count; i++) {
        struct master_peer *p = &m->peers[m->sorted[i]];
        p->next_rank = i;
        struct master_heir h = {.info = p->info,
                                .place = p->proposed_place,
                                .join = p->join,
                                .stays = p->stays};
        heir_field(&c, &h);
    }
    PCCL_ASSERT(!c.failed && c.left == 0);
    w->size = w->letters = size;
    struct recorder r = {.m = m, .will = w, .frame = malloc(WIRE_FRAME_MAX)};
    if (!r.frame) return false;
    struct master_output out = m->out;
    m->out.user = &r;
    m->out.send = record;
    round_send_install(m, group, head.count);
    m->out = out;
    free(r.frame);
    return !r.failed;
}

/* A will that no record has room for would hold its view back for ever. Without
 * one the group's members are not taken over. */
static void take_draft(struct master *m, uint32_t group)
{
    struct succession *s = &m->succession;
    struct will old = s->wills[group];
    size_t all = 0;
    s->wills[group] = s->drafts[group];
    s->drafts[group] = old;
    for (uint32_t i = 0; i < GROUPS_MAX; i++) all += s->wills[i].size;
    if (all > WILLS_MAX) succession_forget(m, group);
}

/* The will of the group is to change with that of `first`. */
static bool changes(const struct master *m, uint32_t group, uint32_t first)
{
    return group == first ||
           (m->groups[first].update && m->groups[group].update);
}

bool succession_will(struct master *m, uint32_t group)
{
    if (m->succession.grace == 0) return true;
    for (uint32_t i = 0; i < m->group_count; i++) {
        uint32_t other = m->group_list[i];
        if (changes(m, other, group) && !draft(m, other)) return false;
    }
    for (uint32_t i = 0; i < m->group_count; i++) {
        if (changes(m, m->group_list[i], group))
            take_draft(m, m->group_list[i]);
    }
    return true;
}

void succession_forget(struct master *m, uint32_t group)
{
    m->succession.wills[group].size = 0;
}

void succession_to_memory(const struct master *m, struct master_memory *memory)
{
    const struct succession *s = &m->succession;
    memory->term = s->term;
    memory->secret = s->secret;
    if (s->grace == 0) return;
    for (uint32_t i = 0; i < GROUPS_MAX; i++) {
        if (s->wills[i].size == 0) continue;
        memory->wills[memory->will_count].bytes = s->wills[i].bytes;
        memory->wills[memory->will_count++].size = (uint32_t)s->wills[i].size;
    }
}

/* ------------------------------------------------------------------ reading */

/* The letters of a will are whole; called with each: its frame, and whether it
 * is to that member. */
static bool next_letter(struct cursor *c, uint64_t id, const uint8_t **frame,
                        uint32_t *size, bool *mine)
{
    uint32_t count = 0;
    *mine = false;
    cursor_u32(c, &count);
    for (uint32_t i = 0; i < count && !c->failed; i++) {
        uint64_t to = 0;
        cursor_u64(c, &to);
        *mine |= to == id;
    }
    cursor_u32(c, size);
    if (!c->failed) cursor_raw(c, frame, *size);
    return !c->failed;
}

static bool letters_hold(struct cursor *c, struct wire_store *store)
{
    while (c->left > 0) {
        const uint8_t *frame;
        uint32_t size;
        bool mine;
        struct wire_msg msg;
        size_t used;
        if (!next_letter(c, 0, &frame, &size, &mine)) return false;
        if (wire_decode(frame, size, store, &msg, &used) != WIRE_OK ||
            used != size ||
            (msg.type != WIRE_VERDICT && msg.type != WIRE_INSTALL))
            return false;
    }
    return !c->failed;
}

static bool read_will(struct master *m, uint32_t index,
                      const struct memory_will *from, struct wire_store *store)
{
    struct succession *s = &m->succession;
    struct cursor c = {.in = from->bytes, .left = from->size};
    struct will_head head = {0};
    head_field(&c, &head);
    if (c.failed || c.left < (size_t)head.count * WILL_MEMBER) return false;
    struct master_heir *heirs =
        realloc(s->heirs, (s->heir_count + head.count) * sizeof *s->heirs);
    if (!heirs) return false;
    s->heirs = heirs;
    for (uint32_t i = 0; i < head.count; i++) {
        struct master_heir *h = &heirs[s->heir_count++];
        *h = (struct master_heir){
            .group = index, .rank = i, .epoch = head.epoch};
        heir_field(&c, h);
        c.failed |= h->info.id == 0 || h->info.id > m->id_last;
    }
    struct will *w = &s->wills[index];
    w->letters = c.done;
    if (c.failed || head.epoch > m->round_last || !letters_hold(&c, store) ||
        !reserve(w, from->size))
        return false;
    memcpy(w->bytes, from->bytes, from->size);
    w->size = from->size;
    struct master_group *g = &m->groups[index];
    g->used = true;
    g->number = head.number;
    g->epoch = g->round = head.epoch;
    g->ring = head.ring;
    g->mesh = head.mesh;
    g->tree = head.tree;
    g->grid = head.grid;
    m->group_list[m->group_count++] = (uint16_t)index;
    m->group_end = index + 1;
    return true;
}

bool succession_begin(struct master *m, const struct master_memory *memory)
{
    struct succession *s = &m->succession;
    if (s->grace == 0 || !memory || memory->will_count == 0) return true;
    struct wire_store *store = malloc(sizeof *store);
    bool good = store != NULL;
    for (uint32_t i = 0; i < memory->will_count && good; i++)
        good = read_will(m, i, &memory->wills[i], store);
    free(store);
    s->waits = m->founded = good;
    return good;
}

void succession_give_up(struct master *m)
{
    struct succession *s = &m->succession;
    free(s->heirs);
    s->heirs = NULL;
    s->heir_count = 0;
    s->waits = m->founded = false;
    for (uint32_t i = 0; i < GROUPS_MAX; i++) succession_forget(m, i);
    for (uint32_t i = 0; i < m->group_count; i++)
        m->groups[m->group_list[i]].used = false;
    m->group_count = 0; /* find_group() clears one that is used again */
}

uint32_t succession_members(const struct master_memory *memory, uint64_t *ids)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < memory->will_count; i++) {
        struct cursor c = {.in = memory->wills[i].bytes,
                           .left = memory->wills[i].size};
        struct will_head head = {0};
        head_field(&c, &head);
        for (uint32_t k = 0; k < head.count && !c.failed; k++) {
            struct master_heir h;
            heir_field(&c, &h);
            if (c.failed) break;
            if (ids) ids[count] = h.info.id;
            count++;
        }
    }
    return count;
}

void succession_end(struct master *m)
{
    struct succession *s = &m->succession;
    for (uint32_t i = 0; i < GROUPS_MAX; i++) {
        free(s->wills[i].bytes);
        free(s->drafts[i].bytes);
    }
    free(s->heirs);
    s->heirs = NULL;
}

void succession_init(struct master *m, const struct master_config *config)
{
    m->succession.grace = config->grace;
    m->succession.secret = config->secret;
    m->masters = config->masters;
    m->master_count = config->master_count;
    if (config->memory) memory_take(m, config->memory);
    m->succession.term++;
    if (config->replicas && config->grace > 0 && !config->memory) {
        m->replicas.fenced = config->fenced;
        m->replicas.standby = config->standby;
        replicas_begin(m);
    }
}

/* -------------------------------------------------------------- the members */

/* To the operator. */
__attribute__((format(printf, 2, 3))) static void say(struct master *m,
                                                      const char *format, ...)
{
    char text[160];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    struct master_note note = {.kind = NOTE_SUCCESSION, .reason = text};
    master_note_send(m, &note);
}

struct wire_key succession_secret(const struct wire_key *key, uint64_t id)
{
    const uint64_t first[2] = {id, 0};
    const uint64_t second[2] = {id, 1};
    return (struct wire_key){{siphash_words(key->word, first, 2),
                              siphash_words(key->word, second, 2)}};
}

void succession_welcome(const struct master *m, struct wire_msg *welcome)
{
    const struct succession *s = &m->succession;
    welcome->welcome.term = s->term;
    welcome->welcome.grace_ms = (uint32_t)(s->grace / PCCL_MS);
    if (s->grace == 0) return;
    welcome->welcome.secret =
        succession_secret(&m->succession.secret, welcome->welcome.id);
    welcome->welcome.master_count = m->master_count;
    for (uint8_t i = 0; i < m->master_count; i++)
        welcome->welcome.masters[i] = m->masters[i];
}

static struct master_heir *heir_of(struct succession *s, uint64_t id)
{
    for (uint32_t i = 0; i < s->heir_count; i++)
        if (s->heirs[i].info.id == id) return &s->heirs[i];
    return NULL;
}

static void send_letters(struct master *m, uint32_t link, uint32_t group)
{
    const struct will *w = &m->succession.wills[group];
    uint64_t id = m->peers[link].info.id;
    struct cursor c = {.in = w->bytes + w->letters,
                       .left = w->size - w->letters};
    struct wire_store *store = malloc(sizeof *store);
    if (!store) {
        master_hang_up(m, link, "the coordinator is out of memory");
        return;
    }
    while (c.left > 0) {
        const uint8_t *frame;
        uint32_t size;
        bool mine;
        struct wire_msg msg;
        size_t used;
        if (!next_letter(&c, id, &frame, &size, &mine)) break;
        if (mine && wire_decode(frame, size, store, &msg, &used) == WIRE_OK)
            master_send(m, link, &msg);
    }
    free(store);
}

/* Why this peer cannot go on as a member, or NULL. */
static const char *refusal(const struct master *m, const struct master_heir *h,
                           const struct wire_msg *msg)
{
    const struct succession *s = &m->succession;
    if (s->grace == 0)
        return "this coordinator takes over no members: it has no "
               "--master-grace";
    struct wire_key secret =
        succession_secret(&m->succession.secret, msg->resume.id);
    if (memcmp(&secret, &msg->resume.secret, sizeof secret) != 0)
        return "it is no member of this run";
    if (!s->waits) return "it came back too late, and was given up";
    if (!h || h->resumed) return "it is not in the last view";
    bool ready = msg->round == h->epoch && msg->epoch < h->epoch;
    if (msg->epoch != h->epoch && !ready)
        return "the view that it has is not the last one";
    return NULL;
}

static void note_answers(struct master *m, uint32_t link,
                         const struct wire_msg *msg)
{
    struct succession *s = &m->succession;
    struct master_peer *p = &m->peers[link];
    for (uint32_t i = 0; i < VOTE_KIND_COUNT; i++) {
        p->answered[i] = msg->resume.answered[i];
        bool later = p->answered[i] > s->told[i];
        bool knows = p->answered[i] == s->told[i] &&
                     msg->resume.answer[i] != ANSWER_UNKNOWN;
        if (!later && !knows) continue;
        s->told[i] = p->answered[i];
        s->answers[i] = msg->resume.answer[i];
    }
}

/* The second RESUME. Meanwhile INSTALL may have given it numbers (H6). */
static void has_spoken(struct master *m, uint32_t link,
                       const struct wire_msg *msg)
{
    if (m->succession.waits) note_answers(m, link, msg);
    m->peers[link].spoke = true;
}

void succession_resume(struct master *m, uint32_t link,
                       const struct wire_msg *msg)
{
    struct succession *s = &m->succession;
    if (m->peers[link].state == PEER_MEMBER) {
        has_spoken(m, link, msg);
        return;
    }
    struct master_heir *h = heir_of(s, msg->resume.id);
    /* Rule H1: it is not for this master to end a membership of the run. */
    bool later = msg->resume.term >= s->term || msg->resume.claimed > s->term;
    if (s->grace > 0 && later) {
        const char *old = "has known a later coordinator: this one has an old "
                          "copy of the journal, or one of another run";
        if (!s->told_old)
            say(m, "members of the run are not taken over: a later coordinator "
                   "has been here; this one has an old copy of the journal");
        s->told_old = true;
        master_hang_up(m, link, old);
        return;
    }
    const char *why = refusal(m, h, msg);
    if (why) {
        master_drop(m, link, why);
        return;
    }
    struct master_peer *p = &m->peers[link];
    h->resumed = true;
    p->info = h->info;
    p->group = h->group;
    p->join = h->join;
    p->stays = h->stays;
    p->since = m->now;
    master_peer_move(m, link, PEER_REGISTERED);
    master_peer_move(m, link, PEER_MEMBER);
    edges_add(m, link);
    p->rank = h->rank;
    p->place = h->place;
    struct master_group *g = &m->groups[h->group];
    if (msg->resume.sync_over > g->synced) g->synced = msg->resume.sync_over;
    p->sync.well = msg->resume.sync_well;
    note_answers(m, link, msg);
    struct wire_msg back = {.type = WIRE_RESUMED, .epoch = h->epoch};
    back.resume.id = p->info.id;
    back.resume.term = s->term;
    back.resume.installs = msg->epoch != h->epoch;
    back.resume.grace_ms = (uint32_t)(s->grace / PCCL_MS);
    master_send(m, link, &back);
    if (back.resume.installs) send_letters(m, link, h->group);
}

/* ------------------------------------------------------------ the end of it */

uint32_t succession_missing(const struct master *m)
{
    const struct succession *s = &m->succession;
    uint32_t count = 0;
    for (uint32_t i = 0; s->waits && i < s->heir_count; i++)
        count += !s->heirs[i].resumed;
    return count;
}

/* It stays in the view as DEAD (M6), at a link without a connection. */
static void bury(struct master *m, const struct master_heir *h)
{
    uint32_t link = 0;
    while (m->peers[link].state != PEER_FREE) link++;
    PCCL_ASSERT(link < MASTER_LINKS_MAX);
    struct master_peer *p = &m->peers[link];
    if (link >= m->link_end) m->link_end = link + 1;
    p->info = h->info;
    p->group = h->group;
    p->rank = h->rank;
    master_peer_move(m, link, PEER_CONNECTED);
    master_peer_move(m, link, PEER_REGISTERED);
    master_peer_move(m, link, PEER_MEMBER);
    edges_add(m, link);
    p->lost = true;
    master_peer_move(m, link, PEER_DEAD);
}

/* Rule H6: an answer that one member has is the answer of all. */
static void repeat_answers(struct master *m)
{
    struct succession *s = &m->succession;
    for (uint8_t kind = 0; kind < VOTE_KIND_COUNT; kind++) {
        s->answered[kind] = s->told[kind];
        for (uint32_t i = 0; i < m->link_end; i++) {
            struct master_peer *p = &m->peers[i];
            /* H6 */
            if (s->answers[kind] == ANSWER_UNKNOWN) continue;
            bool behind = p->state == PEER_MEMBER && p->spoke &&
                          p->voted[kind] && p->answered[kind] < s->told[kind];
            if (!behind) continue;
            struct wire_msg msg = {.type = WIRE_ANSWER, .round = s->told[kind]};
            msg.vote.kind = kind;
            msg.vote.flag = s->answers[kind];
            master_vote(m, i, kind, false);
            master_send(m, i, &msg);
        }
    }
}

/* A member that has resumed and not yet said which votes it waits in would miss
 * the answer. */
static bool all_have_spoken(const struct master *m)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state == PEER_MEMBER && !p->spoke) return false;
    }
    return true;
}

bool succession_waits(struct master *m)
{
    struct succession *s = &m->succession;
    if (!s->waits) return false;
    if (s->until == 0) {
        s->began = m->now;
        s->until = m->now + s->grace;
        say(m, "takes over %u members; waits for them for up to %u s",
            s->heir_count, (uint32_t)(s->grace / PCCL_S));
    }
    uint32_t missing = succession_missing(m);
    bool all = missing == 0 && all_have_spoken(m);
    if (!all && m->now < s->until) return true;
    say(m, "%u of %u members are back after %u ms", s->heir_count - missing,
        s->heir_count, (uint32_t)((m->now - s->began) / PCCL_MS));
    for (uint32_t i = 0; i < s->heir_count; i++)
        if (!s->heirs[i].resumed) bury(m, &s->heirs[i]);
    s->waits = false;
    free(s->heirs);
    s->heirs = NULL;
    s->heir_count = 0;
    repeat_answers(m);
    for (uint32_t i = 0; i < m->group_count; i++) {
        struct master_group *g = &m->groups[m->group_list[i]];
        g->restart = true;
        g->broken_at = m->now;
    }
    return false;
}
