/* wire_resume.c - see wire_resume.h. */
#include "wire_resume.h"

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
}

void wire_resume_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u64(c, &m->resume.id);
    cursor_u64(c, &m->resume.secret.word[0]);
    cursor_u64(c, &m->resume.secret.word[1]);
    cursor_u64(c, &m->resume.synced);
    cursor_flag(c, &m->resume.complete);
    for (uint32_t i = 0; i < VOTE_KIND_COUNT; i++) {
        cursor_u32(c, &m->resume.answered[i]);
        cursor_u8(c, &m->resume.answer[i]);
    }
    cursor_u64(c, &m->resume.term);
    cursor_flag(c, &m->resume.installs);
    cursor_u32(c, &m->resume.grace_ms);
}
