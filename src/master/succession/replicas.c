/* replicas.c - the record that members keep (see replicas.h): rules H10 to H12.
 */
#include "replicas_record.h"

#include "../../base/cursor.h"
#include "../../base/wire_resume.h"

#include <stdlib.h>
#include <string.h>

enum { REPLICAS_MEMORY_MAX = WIRE_RECORD_MAX - 8 * PEERS_MAX - 64 };

void replicas_tell(struct master *m, const char *text)
{
    struct master_note note = {.kind = NOTE_SUCCESSION, .reason = text};
    master_note_send(m, &note);
}

void replicas_begin(struct master *m)
{
    m->replicas.phase = REPLICAS_COLLECTS;
    m->replicas.source = MASTER_NO_LINK;
}

void replicas_void(struct master *m)
{
    struct replicas *k = &m->replicas;
    free(k->bytes);
    free(k->in);
    free(k->voters.ids);
    free(k->next.ids);
    *k = (struct replicas){.phase = REPLICAS_COLLECTS,
                           .source = MASTER_NO_LINK,
                           .fenced = k->fenced,
                           .standby = k->standby,
                           .began = k->began,
                           .term = k->term};
}

/* ---------------------------------------------------------- members of one */

static int compare_ids(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

bool replicas_has(const struct replicas_ids *set, uint64_t id)
{
    return set->count > 0 && bsearch(&id, set->ids, set->count,
                                     sizeof *set->ids, compare_ids) != NULL;
}

bool replicas_ids_of(const struct master_memory *memory,
                     struct replicas_ids *set)
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

void replicas_send(struct master *m, uint32_t count)
{
    const struct replicas *k = &m->replicas;
    for (uint32_t at = 0; at < k->size && count > 0;) {
        struct wire_msg msg;
        at = wire_record_part(&msg, k->name, k->bytes, k->size, at);
        m->out.send(m->out.user, m->links, count, &msg);
    }
}

/* Rules H11, H12. */
static bool is_kept(const struct master *m)
{
    const struct replicas *k = &m->replicas;
    uint32_t count = 0;
    bool by_all = true;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        bool kept = wire_record_same(p->kept, k->name);
        count += kept && replicas_has(&k->voters, p->info.id);
        by_all &= kept || p->state != PEER_MEMBER;
    }
    if (2 * count >= k->voters.count) return true;
    return !k->fenced && by_all;
}

void replicas_commit(struct master *m)
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

bool replicas_begin_record(struct master *m, const struct master_memory *memory)
{
    struct replicas *k = &m->replicas;
    size_t room = memory_size(memory);
    uint32_t head, count = 0;
    uint8_t *bytes = new_record(&k->voters, room, &head);
    if (!bytes || !replicas_ids_of(memory, &k->next)) {
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
    replicas_send(m, count);
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
    if (k->pending) replicas_commit(m);
    /* So that a newcomer's id makes no new record: J4 skips more. */
    copy.id |= MEMORY_IDS_SKIPPED / 2 - 1;
    if (is_known(k, &copy)) return true;
    if (memory_size(&copy) > REPLICAS_MEMORY_MAX) {
        if (!k->told_large)
            replicas_tell(
                m, "the run is too large for its members to keep its record: "
                   "without a journal no other coordinator can follow");
        k->told_large = true;
        return true;
    }
    if (!replicas_begin_record(m, &copy) || !is_kept(m)) return false;
    replicas_commit(m);
    return true;
}

bool replicas_read(const struct replicas *k, struct replicas_ids *voters,
                   struct master_memory *memory)
{
    struct cursor c = {.in = k->in, .left = k->in_size};
    *voters = (struct replicas_ids){NULL, 0};
    ids_fields(&c, voters);
    return !c.failed && memory_decode(memory, c.in, c.left);
}

/* It has no part in the run any more. */
static void stand_down(struct master *m, const char *why)
{
    replicas_tell(m, why);
    for (uint32_t i = 0; i < m->link_end; i++) {
        enum master_peer_state state = m->peers[i].state;
        if (state == PEER_MEMBER || state == PEER_REGISTERED)
            master_evict(m, i, why, WIRE_EVICT_ELSEWHERE);
    }
    m->replicas.over = true;
}

bool replicas_need_tick(const struct master *m)
{
    const struct replicas *k = &m->replicas;
    return k->phase == REPLICAS_SERVES && k->fenced && !k->over && m->founded;
}

void replicas_tick(struct master *m)
{
    const struct replicas *k = &m->replicas;
    if (!replicas_need_tick(m)) return;
    if (k->pending && m->now - k->pending_since >= m->succession.grace)
        stand_down(m, "the coordinator is cut off with less than half of the "
                      "members");
    else if (!m->succession.waits && master_count(m, PEER_MEMBER) == 0)
        stand_down(m, "the coordinator has no member any more");
}
