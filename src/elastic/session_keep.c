/* session_keep.c - a member keeps what its master remembers, where that has no
 * journal (rules H10 to H13 of SUCCESSION.md). */
#include "session.h"

#include "../base/wire_resume.h"

#include <stdlib.h>
#include <string.h>

static void say_kept(struct session *s)
{
    struct wire_msg msg = {.type = WIRE_KEPT};
    msg.keep.name = s->kept.name;
    s->out.to_master(s->out.user, &msg);
}

static void forget(struct session_record *r)
{
    free(r->bytes);
    *r = (struct session_record){.size = 0};
}

/* Parts come in order. What does not fit is from a master that lies, and counts
 * as not kept. */
static void on_keep(struct session *s, const struct wire_msg *msg)
{
    struct session_record *in = &s->keeping;
    bool whole = msg->keep.offset + msg->keep.size == msg->keep.total;
    if (wire_record_same(msg->keep.name, s->kept.name) && whole) say_kept(s);
    if (!wire_record_above(msg->keep.name, s->kept.name)) return;
    if (msg->keep.offset == 0) {
        forget(in);
        in->name = msg->keep.name;
        in->bytes = malloc(msg->keep.total);
        in->total = msg->keep.total;
    }
    bool fits = in->bytes && wire_record_same(in->name, msg->keep.name) &&
                in->size == msg->keep.offset && in->total == msg->keep.total;
    if (!fits) {
        forget(in);
        return;
    }
    memcpy(in->bytes + in->size, msg->keep.bytes, msg->keep.size);
    in->size += msg->keep.size;
    if (in->size < in->total) return;
    free(s->kept.bytes);
    s->kept = *in;
    s->claimed = s->kept.name.term;
    *in = (struct session_record){.size = 0};
    say_kept(s);
}

static void give(struct session *s)
{
    const struct session_record *r = &s->kept;
    for (uint32_t at = 0; at < r->size;) {
        struct wire_msg msg;
        at = wire_record_part(&msg, r->name, r->bytes, r->size, at);
        s->out.to_master(s->out.user, &msg);
    }
}

/* Rule H13. Once for each term: two masters that claim with one term have not
 * both most of the members. */
static void on_claim(struct session *s, const struct wire_msg *msg)
{
    uint64_t term = msg->keep.name.term;
    if (term <= s->claimed) return;
    s->claimed = term;
    s->out.to_master(s->out.user, msg);
}

void session_on_record(struct session *s, const struct wire_msg *msg)
{
    if (msg->type == WIRE_KEEP && msg->keep.name.term >= s->claimed)
        on_keep(s, msg);
    if (msg->type == WIRE_CLAIM) on_claim(s, msg);
    if (msg->type == WIRE_KEEP_GET) give(s);
    if (msg->type == WIRE_KEPT)
        s->kept.counts |= wire_record_same(msg->keep.name, s->kept.name);
}

void session_keep_free(struct session *s)
{
    forget(&s->kept);
    forget(&s->keeping);
}
