/* wire_member.c - see wire_member.h. */
#include "wire_member.h"

#include "wire_resume.h"

#include <string.h>

/* What an entry of a list has in place of a whole field. Near: a signed
 * difference of 16 bits to the entry before it. */
enum {
    ID_NEAR = 1,
    HOST_SAME = 2,
    HINT_NEXT = 4, /* one more */
    PID_NEAR = 8,
    IP_SAME = 16,
    IP_SHORT = 32, /* its first 4 bytes; zeros follow */
    HAS_ANNOUNCED = 64,
    ALL_MARKS = 127
};

static void announced_field(struct cursor *c, struct wire_addr *a, bool has)
{
    if (!has) return;
    wire_addr_field(c, a);
    if (!wire_addr_is_host(a)) c->failed = true;
}

void wire_member_field(struct cursor *c, struct wire_member *m)
{
    bool has = m->announced.family != 0; /* most members have none */
    cursor_u64(c, &m->id);
    cursor_u64(c, &m->host);
    cursor_i32(c, &m->hint);
    cursor_u32(c, &m->pid);
    wire_addr_field(c, &m->addr);
    cursor_flag(c, &has);
    announced_field(c, &m->announced, has);
}

static bool is_near(uint64_t now, uint64_t before)
{
    return now - before + 0x8000 < 0x10000;
}

static uint8_t marks_of(const struct wire_member *m,
                        const struct wire_member *before)
{
    static const uint8_t zeros[12];
    const struct wire_addr *a = &m->addr, *b = &before->addr;
    uint8_t marks = m->announced.family != 0 ? HAS_ANNOUNCED : 0;
    if (is_near(m->id, before->id)) marks |= ID_NEAR;
    if (m->host == before->host) marks |= HOST_SAME;
    if ((uint32_t)m->hint == (uint32_t)before->hint + 1) marks |= HINT_NEXT;
    if (is_near(m->pid, before->pid)) marks |= PID_NEAR;
    if (a->family == b->family && memcmp(a->ip, b->ip, sizeof a->ip) == 0)
        marks |= IP_SAME;
    else if (memcmp(a->ip + 4, zeros, sizeof zeros) == 0)
        marks |= IP_SHORT;
    return marks;
}

static void near_field(struct cursor *c, uint64_t *value, uint64_t before)
{
    uint16_t difference = (uint16_t)(*value - before);
    cursor_u16(c, &difference);
    *value = before + (uint64_t)(int64_t)(int16_t)difference;
}

static void address_after(struct cursor *c, struct wire_addr *a,
                          const struct wire_addr *before, uint8_t marks)
{
    if (marks & IP_SAME) {
        a->family = before->family;
        memcpy(a->ip, before->ip, sizeof a->ip);
    } else {
        cursor_u8(c, &a->family);
        cursor_bytes(c, a->ip, marks & IP_SHORT ? 4 : sizeof a->ip);
    }
    cursor_u16(c, &a->port);
    if (a->family != 0 && a->family != 4 && a->family != 6) c->failed = true;
}

/* A decoded *m is zeros before. */
static void member_after(struct cursor *c, struct wire_member *m,
                         const struct wire_member *before)
{
    uint8_t marks = c->in ? 0 : marks_of(m, before);
    uint64_t pid = m->pid;
    cursor_u8(c, &marks);
    if (marks > ALL_MARKS) c->failed = true;
    if (marks & ID_NEAR)
        near_field(c, &m->id, before->id);
    else
        cursor_u64(c, &m->id);
    if (marks & HOST_SAME)
        m->host = before->host;
    else
        cursor_u64(c, &m->host);
    if (marks & HINT_NEXT)
        m->hint = (int32_t)((uint32_t)before->hint + 1);
    else
        cursor_i32(c, &m->hint);
    if (marks & PID_NEAR) {
        near_field(c, &pid, before->pid);
        if (pid > UINT32_MAX) c->failed = true;
        m->pid = (uint32_t)pid;
    } else {
        cursor_u32(c, &m->pid);
    }
    address_after(c, &m->addr, &before->addr, marks);
    announced_field(c, &m->announced, (marks & HAS_ANNOUNCED) != 0);
    if (c->in && marks != marks_of(m, before)) c->failed = true;
}

void wire_members_list(struct cursor *c, uint32_t *count,
                       const struct wire_member **list,
                       struct wire_member *store)
{
    struct wire_member before = {.id = 0};
    cursor_u32(c, count);
    if (*count > PEERS_MAX) c->failed = true;
    if (c->failed) *count = 0;
    for (uint32_t i = 0; i < *count; i++) {
        struct wire_member m = {.id = 0};
        if (!c->in) m = (*list)[i];
        member_after(c, &m, &before);
        if (c->failed) break;
        if (c->in) store[i] = m;
        before = m;
    }
    if (c->in) *list = store;
}
