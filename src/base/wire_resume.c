/* wire_resume.c - see wire_resume.h. */
#include "wire_resume.h"

void wire_addr_field(struct cursor *c, struct wire_addr *a)
{
    cursor_u8(c, &a->family);
    cursor_bytes(c, a->ip, sizeof a->ip);
    cursor_u16(c, &a->port);
    if (a->family != 0 && a->family != 4 && a->family != 6) c->failed = true;
}

void wire_welcome_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u64(c, &m->welcome.id);
    cursor_u64(c, &m->welcome.key.word[0]);
    cursor_u64(c, &m->welcome.key.word[1]);
    cursor_u32(c, &m->welcome.deadline_ms);
    cursor_u32(c, &m->welcome.minimum);
    cursor_u64(c, &m->welcome.term);
    cursor_u32(c, &m->welcome.grace_ms);
    cursor_u64(c, &m->welcome.secret.word[0]);
    cursor_u64(c, &m->welcome.secret.word[1]);
    cursor_u8(c, &m->welcome.master_count);
    c->failed |= m->welcome.master_count > WIRE_MASTERS_MAX;
    for (uint8_t i = 0; i < m->welcome.master_count && !c->failed; i++) {
        wire_addr_field(c, &m->welcome.masters[i]);
        c->failed |= !wire_addr_is_host(&m->welcome.masters[i]);
    }
}

void wire_resume_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u64(c, &m->resume.id);
    cursor_u64(c, &m->resume.secret.word[0]);
    cursor_u64(c, &m->resume.secret.word[1]);
    cursor_u64(c, &m->resume.sync_over);
    cursor_u64(c, &m->resume.sync_well);
    for (uint32_t i = 0; i < VOTE_KIND_COUNT; i++) {
        cursor_u32(c, &m->resume.answered[i]);
        cursor_u8(c, &m->resume.answer[i]);
    }
    cursor_u64(c, &m->resume.term);
    cursor_u64(c, &m->resume.claimed);
    cursor_flag(c, &m->resume.installs);
    cursor_u32(c, &m->resume.grace_ms);
    cursor_u64(c, &m->resume.kept.term);
    cursor_u64(c, &m->resume.kept.seq);
    cursor_flag(c, &m->resume.counts);
}

void wire_keep_field(struct cursor *c, struct wire_msg *m)
{
    uint32_t size = m->keep.size;
    cursor_u64(c, &m->keep.name.term);
    if (m->type == WIRE_CLAIM) return;
    cursor_u64(c, &m->keep.name.seq);
    if (m->type != WIRE_KEEP) return;
    cursor_u32(c, &m->keep.total);
    cursor_u32(c, &m->keep.offset);
    cursor_u32(c, &size);
    c->failed |= size == 0 || size > WIRE_KEEP_PART_MAX || size > c->left ||
                 m->keep.total > WIRE_RECORD_MAX ||
                 m->keep.offset > m->keep.total ||
                 size > m->keep.total - m->keep.offset;
    if (c->failed) return;
    m->keep.size = size;
    cursor_raw(c, &m->keep.bytes, size);
}

uint32_t wire_record_part(struct wire_msg *msg, struct wire_record_name name,
                          const uint8_t *bytes, uint32_t size, uint32_t at)
{
    uint32_t left = size - at;
    *msg = (struct wire_msg){.type = WIRE_KEEP};
    msg->keep.name = name;
    msg->keep.total = size;
    msg->keep.offset = at;
    msg->keep.size = left < WIRE_KEEP_PART_MAX ? left : WIRE_KEEP_PART_MAX;
    msg->keep.bytes = bytes + at;
    return at + msg->keep.size;
}
