/* master_say.c - see master_say.h. */
#include "master_say.h"

#include "../../src/base/arguments.h"
#include "../../src/base/dtype.h"
#include "../../src/master/coverage.h"

/* The round of that place, from the last one on; NULL: there is none. */
static struct coverage_round *some_round(const struct master_group *g,
                                         uint32_t place)
{
    uint32_t count = 0;
    for (struct coverage_round *r = g->averages; r; r = r->next) count++;
    if (count == 0) return NULL;
    struct coverage_round *r = g->averages;
    for (uint32_t i = count - 1 - place % count; i > 0; i--) r = r->next;
    return r;
}

static void fill_call(const struct master_peer *p, struct fuzz_input *in,
                      struct wire_msg *msg)
{
    uint8_t bits = fuzz_u8(in);
    uint8_t odd = fuzz_u8(in);
    msg->partial.tag = bits & 3;
    if (odd >= 128) msg->partial.tag = odd; /* many tags */
    msg->partial.version = p->average_calls + (odd == 1 ? 0 : 1);
    msg->partial.count = 64u + (odd == 2);
    msg->partial.dtype = odd == 3 ? DTYPE_F32 : 0;
    msg->partial.redop = odd == 4 ? 1 : odd == 5 ? 2 : 0;
    msg->partial.weight = odd == 6 ? 0 : 1 + bits;
    msg->partial.deadline_ms = odd == 7 ? 0 : odd == 8 ? UINT32_MAX : 80;
    msg->partial.gather_ms = odd == 9 ? 100 : bits & 4 ? 8 : 0;
    msg->partial.evict_after = bits & 8 ? 1 : 0;
    if (odd == 10) msg->partial.count = UINT64_MAX;
    if (odd == 11) msg->partial.count = 0;
}

/* The part that the member owns, and who has called. */
static void fill_folded(const struct coverage_round *r, uint32_t self,
                        uint8_t bits, struct wire_msg *msg, uint8_t *set)
{
    for (uint32_t i = 0; i < r->part_count; i++)
        if (r->parts[i].owner == self) msg->partial.part = i;
    if (bits >= 240) msg->partial.part = bits % 4;
    *set = bits >= 128 ? bits : 0;
    for (uint32_t i = 0; i < r->member_count && i < 8; i++)
        if (bits < 192 && r->members[i].called) *set |= (uint8_t)(1u << i);
    msg->set_count = msg->set_size = 1;
    msg->sets = set;
}

static void fill_holds(const struct coverage_round *r, uint8_t bits,
                       struct wire_msg *msg, uint64_t *ids)
{
    for (uint32_t i = 0; i < r->part_count && i < PARTIAL_IDS / 2; i++) {
        if (bits >= 128 && bits >> i & 1) continue;
        ids[msg->id_count++] = bits == 255 ? 1000 : i;
        ids[msg->id_count++] = r->number + (bits == 254);
    }
}

void master_partial_fill(const struct master *m, uint32_t link,
                         struct fuzz_input *in, struct wire_msg *msg,
                         uint64_t ids[PARTIAL_IDS], uint8_t *set)
{
    static const uint8_t words[] = {
        PARTIAL_CALL,  PARTIAL_CALL,  PARTIAL_FOLDED, PARTIAL_FOLDED,
        PARTIAL_HOLDS, PARTIAL_HOLDS, PARTIAL_FAILED};
    const struct master_peer *p = &m->peers[link];
    uint8_t what = fuzz_u8(in);
    msg->type = WIRE_PARTIAL;
    msg->partial.word = words[what % ARRAY_COUNT(words)];
    if (msg->partial.word == PARTIAL_CALL) {
        fill_call(p, in, msg);
        return;
    }
    uint8_t bits = fuzz_u8(in);
    struct coverage_round *r = some_round(&m->groups[p->group], what / 32);
    if (!r) return;
    const struct coverage_member *c = coverage_find(r, p->info.id);
    uint32_t self = c ? (uint32_t)(c - r->members) : 0;
    msg->partial.tag = r->tag;
    msg->partial.number = r->number;
    /* The data are those of the round: equal for all. */
    msg->partial.hash = r->number + (bits == 255);
    if (msg->partial.word == PARTIAL_FOLDED)
        fill_folded(r, self, bits, msg, set);
    if (msg->partial.word == PARTIAL_HOLDS) fill_holds(r, bits, msg, ids);
}

/* A text, and numbers, which are compared before the rest or after it. */
static uint32_t fill_named(struct fuzz_input *in, uint8_t *bytes)
{
    static uint64_t values[ARGUMENT_VALUES_MAX + 8];
    struct arguments list = {.bytes = bytes};
    uint8_t how = fuzz_u8(in);
    char text[4] = {'a', 'b', (char)('c' + (how >> 6)), '\0'};
    size_t count = how & 32 ? 3 : 1;
    if (how & 8) count = ARRAY_COUNT(values);
    values[how >> 6 & 1] = fuzz_u8(in);
    values[ARRAY_COUNT(values) - 1] = fuzz_u8(in);
    if (how & 1) arguments_text(&list, how & 2, "mode", text);
    if (how & 4) arguments_values(&list, how & 16, "shape", values, count);
    return list.size;
}

void master_args_fill(struct fuzz_input *in, uint8_t coll,
                      struct wire_args *args)
{
    static uint8_t named[ARGUMENTS_SIZE];
    args->coll = coll;
    args->dtype = fuzz_u8(in) % 12;
    args->redop = fuzz_u8(in) % 5;
    args->quant = fuzz_u8(in) % 3;
    args->root = fuzz_u8(in);
    args->count = fuzz_u8(in);
    args->sends = fuzz_u8(in);
    args->recvs = fuzz_u8(in);
    args->digest = fuzz_u8(in);
    args->named = named;
    args->named_size = fill_named(in, named);
}

void master_relay_fill(const struct master *m, struct fuzz_input *in,
                       struct wire_msg *msg)
{
    uint8_t bits = fuzz_u8(in);
    const struct master_group *g = &m->groups[bits >> 4 & 1];
    msg->type = WIRE_RELAY;
    msg->relay.key = m->key;
    if (bits == 255) msg->relay.key.word[0]++;
    msg->relay.listens = bits & 1;
    msg->relay.from = 1 + fuzz_below(in, 8);
    msg->relay.to = 1 + fuzz_below(in, 8);
    if (g->edge_count == 0 || bits >= 128) return;
    const struct master_edge *e = &g->edges[bits / 2 % g->edge_count];
    msg->relay.from = bits & 1 ? e->a : e->b;
    msg->relay.to = bits & 1 ? e->b : e->a;
}
