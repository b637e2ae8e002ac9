/* remember.c - what the machine remembers, and its form. See memory.h. */
#include "memory.h"

#include "../../base/cursor.h"
#include "../master.h"

#include <string.h>

enum { FORM = 3 };

static void succession_fields(struct cursor *c, struct master_memory *m)
{
    cursor_u64(c, &m->term);
    cursor_u64(c, &m->secret.word[0]);
    cursor_u64(c, &m->secret.word[1]);
    cursor_u32(c, &m->will_count);
    c->failed |= m->will_count > GROUPS_MAX;
    for (uint32_t i = 0; i < m->will_count && !c->failed; i++) {
        struct memory_will *w = &m->wills[i];
        cursor_u32(c, &w->size);
        if (c->failed) return;
        cursor_raw(c, &w->bytes, w->size);
    }
}

static void fields(struct cursor *c, struct master_memory *m)
{
    uint32_t form = FORM;
    cursor_u32(c, &form);
    c->failed |= form != FORM;
    cursor_u32(c, &m->round);
    cursor_u64(c, &m->id);
    cursor_u64(c, &m->key.word[0]);
    cursor_u64(c, &m->key.word[1]);
    cursor_u64(c, &m->stamp);
    cursor_u32(c, &m->record_count);
    c->failed |= m->record_count > GROUPS_MAX;
    for (uint32_t i = 0; i < m->record_count && !c->failed; i++) {
        struct master_record *r = &m->records[i];
        cursor_u32(c, &r->number);
        cursor_u64(c, &r->revision);
        cursor_u64(c, &r->structure);
        cursor_u64(c, &r->content);
        cursor_u64(c, &r->stamp);
        c->failed |= r->stamp > m->stamp;
        r->used = true;
    }
    succession_fields(c, m);
}

size_t memory_size(const struct master_memory *memory)
{
    size_t size = MEMORY_SIZE_MAX;
    for (uint32_t i = 0; i < memory->will_count; i++)
        size += sizeof(uint32_t) + memory->wills[i].size;
    return size;
}

size_t memory_encode(const struct master_memory *memory, uint8_t *out,
                     size_t room)
{
    struct master_memory copy = *memory;
    struct cursor c = {.out = out, .left = room};
    fields(&c, &copy);
    PCCL_ASSERT(!c.failed);
    return c.done;
}

/* Two records of one group, or numbers that have none after them. */
static bool is_odd(const struct master_memory *m)
{
    for (uint32_t i = 0; i < m->record_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (m->records[i].number == m->records[k].number) return true;
    return m->round > UINT32_MAX / 2 || m->id > UINT64_MAX / 2 ||
           m->stamp > UINT64_MAX / 2 || m->term > MEMORY_TERM_MAX;
}

bool memory_decode(struct master_memory *memory, const uint8_t *in, size_t size)
{
    struct cursor c = {.in = in, .left = size};
    *memory = (struct master_memory){.round = 0};
    fields(&c, memory);
    return !c.failed && c.left == 0 && !is_odd(memory);
}

bool memory_keep(struct master *m)
{
    struct master_memory memory = {.round = m->round_last,
                                   .id = m->id_last,
                                   .key = m->key,
                                   .stamp = m->sync_last};
    for (uint32_t i = 0; i < GROUPS_MAX; i++)
        if (m->records[i].used)
            memory.records[memory.record_count++] = m->records[i];
    succession_to_memory(m, &memory);
    if (m->out.remember && !m->out.remember(m->out.user, &memory)) return false;
    return replicas_hold(m, &memory);
}

bool memory_skip(struct master_memory *memory)
{
    memory->round += MEMORY_ROUNDS_SKIPPED;
    memory->id += MEMORY_IDS_SKIPPED;
    memory->stamp += MEMORY_IDS_SKIPPED;
    return !is_odd(memory);
}

void memory_take(struct master *m, const struct master_memory *memory)
{
    struct master_memory next = *memory;
    (void)memory_skip(&next);
    m->round_last = next.round;
    m->id_last = next.id;
    m->key = memory->key;
    m->sync_last = next.stamp;
    memcpy(m->records, memory->records, sizeof m->records);
    m->succession.term = memory->term;
    if (memory->term > 0) m->succession.secret = memory->secret;
}
