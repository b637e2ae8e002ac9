/* partial_call.c - calls of partial all-reduces, as they go to the coordinator.
 * Rules A2 and H8. */
#include "partial.h"

#include "../reduce/weighted.h"

#include <stdlib.h>
#include <string.h>

const char *partial_wrong(const struct partial_request *r)
{
    if (r->dtype >= DTYPE_COUNT) return "unknown datatype";
    if (r->redop != REDOP_SUM && r->redop != REDOP_AVG)
        return "the operator of a partial all-reduce is pcclSum or pcclAvg";
    if (!reduce_has_weighted((enum dtype)r->dtype, (enum redop)r->redop))
        return "pcclAvg of a partial all-reduce is for floating-point types";
    if (r->count > INT64_MAX / 16) return "count is too large";
    if (r->count > 0 && (!r->send || !r->recv)) return "a buffer is NULL";
    uintptr_t size = r->count * dtype_size((enum dtype)r->dtype);
    uintptr_t a = (uintptr_t)r->send;
    uintptr_t b = (uintptr_t)r->recv;
    if (a != b && a < b + size && b < a + size)
        return "sendbuf and recvbuf overlap without being equal";
    if (!(r->weight > 0 && r->weight <= PARTIAL_WEIGHT_MAX))
        return "weight is not a number between 0 and 1e290";
    if (r->deadline_ms == 0 || r->deadline_ms > INT32_MAX)
        return "deadline_ms is not between 1 and 2^31 - 1";
    if (r->gather_ms > r->deadline_ms) return "gather_ms exceeds deadline_ms";
    return NULL;
}

bool partial_is_under_way(const struct partial *p, uint64_t tag)
{
    for (const struct partial_call *c = p->calls; c; c = c->next)
        if (c->r.tag == tag && c->phase != PARTIAL_DONE) return true;
    return false;
}

/* The tag's place is the last one now; NULL: no memory. */
static struct partial_tag *note_tag(struct partial *p, uint64_t tag)
{
    uint32_t at = 0;
    while (at < p->tag_count && p->tags[at].tag != tag) at++;
    struct partial_tag found = {.tag = tag};
    if (at < p->tag_count)
        found = p->tags[at];
    else if (at == PARTIAL_TAGS_MAX)
        at = 0;
    if (at == p->tag_count) {
        struct partial_tag *made =
            realloc(p->tags, (p->tag_count + (size_t)1) * sizeof *made);
        if (!made) return NULL;
        p->tags = made;
        p->tag_count++;
    }
    memmove(&p->tags[at], &p->tags[at + 1],
            (p->tag_count - at - 1) * sizeof *p->tags);
    p->tags[p->tag_count - 1] = found;
    return &p->tags[p->tag_count - 1];
}

static void send_call(const struct partial *p, const struct partial_call *c)
{
    struct wire_msg msg = {.type = WIRE_PARTIAL};
    msg.partial.word = PARTIAL_CALL;
    msg.partial.tag = c->r.tag;
    msg.partial.version = c->serial;
    msg.partial.count = c->r.count;
    msg.partial.dtype = c->r.dtype;
    msg.partial.redop = c->r.redop;
    msg.partial.weight = c->r.weight;
    msg.partial.deadline_ms = c->r.deadline_ms;
    msg.partial.gather_ms = c->r.gather_ms;
    msg.partial.evict_after = c->r.evict_after;
    p->send(p->user, &msg);
}

struct partial_call *partial_call(struct partial *p,
                                  const struct partial_request *r)
{
    uint32_t count = 0;
    for (const struct partial_call *c = p->calls; c; c = c->next)
        count += !c->taken;
    if (count == PARTIAL_CALLS_MAX) return NULL;
    struct partial_tag *tag = note_tag(p, r->tag);
    if (!tag) return NULL;
    struct partial_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->r = *r;
    c->own = PARTIAL_NONE;
    c->element = (uint32_t)dtype_size((enum dtype)r->dtype);
    c->result = malloc(r->count * c->element + 1);
    if (!c->result) {
        free(c);
        return NULL;
    }
    c->next = p->calls;
    p->calls = c;
    c->serial = ++p->serial;
    if (tag->missed)
        partial_finish(p, c, PARTIAL_LOST, "");
    else
        send_call(p, c);
    tag->missed = false;
    return c;
}

void partial_call_again(const struct partial *p)
{
    uint32_t last = 0;
    /* In their order: a lower number is taken as one that came twice (A2). */
    for (;;) {
        const struct partial_call *next = NULL;
        for (const struct partial_call *c = p->calls; c; c = c->next)
            if (c->phase == PARTIAL_CALLED && c->serial > last &&
                (!next || c->serial < next->serial))
                next = c;
        if (!next) return;
        last = next->serial;
        send_call(p, next);
    }
}
