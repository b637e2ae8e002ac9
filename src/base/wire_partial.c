/* wire_partial.c - see wire_partial.h. */
#include "wire_partial.h"

#include "dtype.h"

#include <string.h>

/* A weight, or a sum of weights: no NaN, and nothing infinite or negative. */
static void weight_field(struct cursor *c, double *value)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    cursor_u64(c, &bits);
    memcpy(value, &bits, sizeof bits);
    bool negative = bits >> 63 != 0; /* -0 has no other place */
    if (negative || !(*value <= WIRE_WEIGHT_MAX)) c->failed = true;
}

void wire_part_field(struct cursor *c, struct wire_part *p)
{
    cursor_u64(c, &p->begin);
    cursor_u64(c, &p->count);
    cursor_u64(c, &p->hash);
    weight_field(c, &p->weight);
    cursor_u32(c, &p->owner);
    cursor_u32(c, &p->contributors);
    cursor_limit(c, p->owner, WIRE_AVERAGED_MAX);
    cursor_limit(c, p->contributors, WIRE_AVERAGED_MAX + 1);
}

void wire_partial_field(struct cursor *c, struct wire_msg *m)
{
    uint8_t words =
        m->type == WIRE_PARTIAL ? PARTIAL_WORD_COUNT : PARTIAL_ORDER_COUNT;
    cursor_u8(c, &m->partial.word);
    cursor_u8(c, &m->partial.why);
    cursor_u64(c, &m->partial.tag);
    cursor_u64(c, &m->partial.number);
    cursor_u64(c, &m->partial.count);
    cursor_u8(c, &m->partial.dtype);
    cursor_u8(c, &m->partial.redop);
    weight_field(c, &m->partial.weight);
    cursor_u32(c, &m->partial.deadline_ms);
    cursor_u32(c, &m->partial.gather_ms);
    cursor_u32(c, &m->partial.evict_after);
    cursor_u32(c, &m->partial.version);
    cursor_u32(c, &m->partial.part);
    cursor_u64(c, &m->partial.hash);
    cursor_u32(c, &m->partial.self);
    cursor_flag(c, &m->partial.contributed);
    cursor_flag(c, &m->partial.last);
    cursor_limit(c, m->partial.word, words);
    cursor_limit(c, m->partial.why, PARTIAL_REFUSAL_COUNT);
    cursor_limit(c, m->partial.dtype, DTYPE_COUNT);
    cursor_limit(c, m->partial.redop, REDOP_COUNT);
    cursor_limit(c, m->partial.part, WIRE_PARTS_MAX);
    cursor_limit(c, m->partial.self, WIRE_AVERAGED_MAX);
}
