/* member_partial.c - partial all-reduces of the member under test: the calls of
 * its program, and frames and orders that fit them, but for a quirk now and
 * then. See member.h. */
#include "member.h"

#include "../../include/pccl.h"
#include "../../src/hash/hash.h"

enum { COUNT_MAX = 4096, SENT = 0x3c, OLD = 0x5a, PARTS = 4, MEMBERS = 8 };

/* --------------------------------------------------------------- the program
 */

static bool is_all(const uint8_t *b, uint8_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (b[MEMBER_GUARD + i] != value) return false;
    return true;
}

static void clear(struct member_partial *x)
{
    member_buffer_free(x->recv, x->size);
    member_buffer_free(x->send, x->size);
    *x = (struct member_partial){.call = NULL};
}

static void read_request(struct member_partial *x, struct fuzz_input *in)
{
    struct partial_request *r = &x->request;
    r->tag = fuzz_u64(in);
    r->dtype = fuzz_u8(in);
    r->redop = fuzz_u8(in);
    r->count = fuzz_u32(in) % (COUNT_MAX + 1);
    uint64_t weight = fuzz_u64(in);
    memcpy(&r->weight, &weight, sizeof weight);
    r->deadline_ms = fuzz_u32(in);
    r->gather_ms = fuzz_u32(in);
    r->evict_after = fuzz_u32(in);
}

/* Whatever the API lets through. */
void member_partial(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    struct member_partial *x = u->partials;
    while (x < u->partials + MEMBER_PARTIALS && x->recv) x++;
    if (x == u->partials + MEMBER_PARTIALS) return;
    *x = (struct member_partial){.call = NULL};
    read_request(x, &in);
    if (x->request.dtype < DTYPE_COUNT)
        x->size = x->request.count * dtype_size((enum dtype)x->request.dtype);
    x->recv = member_buffer(x->size);
    memset(x->recv + MEMBER_GUARD, r->arg & 1 ? SENT : OLD, x->size);
    if (!(r->arg & 1)) {
        x->send = member_buffer(x->size);
        memset(x->send + MEMBER_GUARD, SENT, x->size);
    }
    x->request.recv = x->recv + MEMBER_GUARD;
    x->request.send = (x->send ? x->send : x->recv) + MEMBER_GUARD;
    if (partial_wrong(&x->request) ||
        session_partial(u->s, &x->request, &x->call) != pcclSuccess)
        clear(x);
}

/* What the API copies for the program: all of it is there. */
static void look_at(const struct partial_call *c, bool well)
{
    uint32_t all = 0;
    for (uint32_t i = 0; well && i < c->part_count; i++) {
        assert(c->parts[i].begin + c->parts[i].count <= c->r.count);
        for (uint32_t k = 0; k < c->set_size; k++)
            all += c->sets[i * c->set_size + k];
    }
    assert(all <= UINT8_MAX * c->part_count * c->set_size);
}

/* A call that is over: its input is as it was, and so is its output if it has
 * failed. */
static void take(struct member *u, struct member_partial *x)
{
    const char *text = NULL;
    int result = session_partial_result(u->s, x->call, &text);
    assert(result == pcclSuccess || text);
    look_at(x->call, result == pcclSuccess);
    assert(!x->send || is_all(x->send, SENT, x->size));
    assert(result == pcclSuccess ||
           is_all(x->recv, x->send ? OLD : SENT, x->size));
    session_partial_take(u->s, x->call);
    clear(x);
}

void member_partial_take(struct member *u, uint64_t tag)
{
    for (uint32_t i = 0; i < MEMBER_PARTIALS; i++) {
        struct member_partial *x = &u->partials[i];
        if (x->call && x->request.tag == tag && x->call->phase == PARTIAL_DONE)
            take(u, x);
    }
}

void member_partials_end(struct member *u)
{
    for (uint32_t i = 0; i < MEMBER_PARTIALS; i++)
        if (u->partials[i].recv) clear(&u->partials[i]);
}

/* -------------------------------------------------------- frames of members */

static const struct partial_call *some_call(const struct member *u,
                                            uint32_t number)
{
    for (uint32_t i = 0; i < MEMBER_PARTIALS; i++) {
        const struct partial_call *c =
            u->partials[(number + i) % MEMBER_PARTIALS].call;
        if (c) return c;
    }
    return u->s->partial.calls; /* one that the program has taken */
}

static uint32_t number_of(const struct partial_call *c, uint64_t id)
{
    uint32_t i = 0;
    while (i < c->member_count && c->members[i].id != id) i++;
    return i;
}

static uint32_t size_at(const struct partial_stream *s, uint32_t chunk)
{
    uint64_t left = s->size - (uint64_t)chunk * s->piece;
    return left < s->piece ? (uint32_t)left : s->piece;
}

/* Names the first chunk that was asked and has not come. */
static bool is_asked(const struct partial_stream *s, struct frame *f)
{
    for (uint32_t i = 0; s->chunks && i < s->count; i++) {
        if (s->chunks[i] != CHUNK_ASKED) continue;
        f->digest = (uint64_t)i * s->piece;
        f->size = size_at(s, i);
        return true;
    }
    return false;
}

/* What the member was asked for. */
static void answer(const struct partial_call *c, uint32_t member,
                   struct frame *f)
{
    f->flags = PARTIAL_INPUT;
    f->seq = c->own;
    if (member < c->member_count && is_asked(&c->members[member].input, f))
        return;
    f->flags = PARTIAL_RESULT;
    for (f->seq = 0; f->seq < c->part_count; f->seq++) {
        const struct partial_stream *s = &c->parts[f->seq].result;
        if (s->from == member && is_asked(s, f)) return;
    }
}

/* What the member may ask. */
static void question(const struct partial_call *c, uint32_t member,
                     uint32_t piece, struct frame *f, uint8_t which)
{
    f->flags = which % 4 == 0 ? PARTIAL_RESULT : which / 4 % 2;
    f->seq = which / 8 % 4;
    for (uint32_t i = 0; i < c->part_count && f->flags == PARTIAL_INPUT; i++)
        if (c->parts[i].owner == member) f->seq = i;
    if (f->flags == PARTIAL_RESULT && which < 128 && c->own < c->part_count)
        f->seq = c->own;
    f->digest = (uint64_t)(which / 32 % 2) * piece;
}

void member_partial_frame(const struct member *u, uint64_t from,
                          struct frame *f, uint8_t which, uint8_t *fill)
{
    const struct partial_call *c = some_call(u, which);
    f->flags = 0;
    f->index = 0;
    f->tag = c ? c->r.tag : which % 4;
    f->scope = c && c->number != 0 ? c->number : 1u + which / 64u;
    f->digest = f->seq = 0;
    if (!c) return;
    uint32_t member = number_of(c, from);
    if (f->type == FRAME_PART_GET) {
        question(c, member, u->s->partial.piece, f, which);
        return;
    }
    answer(c, member, f);
    *fill = f->flags == PARTIAL_INPUT ? SENT : 0;
    if (which >= 240) f->size = 0; /* it does not have it */
}

/* -------------------------------------------------- orders of the coordinator
 */

struct order {
    struct wire_msg msg;
    uint64_t ids[2 * MEMBERS];
    struct wire_part parts[PARTS];
    uint8_t sets[PARTS];
};

/* The members of a round: as it is known, else those of the view. */
static uint32_t fill_members(const struct member *u,
                             const struct partial_call *c, struct order *o,
                             uint64_t *ids, uint8_t bits)
{
    const struct view *v = u->s->view;
    uint32_t count = 0;
    bool self = false;
    for (uint32_t i = 0; i < c->member_count && count < MEMBERS; i++)
        ids[count++] = c->members[i].id;
    for (uint32_t i = 0; count == 0 && i < v->size && i < MEMBERS; i++)
        ids[i] = v->ids[i];
    if (count == 0) count = v->size < MEMBERS ? v->size : MEMBERS;
    /* One who has joined meanwhile. */
    if (c->member_count > 0 && bits == 7 && count < MEMBERS)
        ids[count++] = 1 + bits;
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] != u->s->id) continue;
        o->msg.partial.self = i;
        self = true;
    }
    if (!self && count < MEMBERS) {
        o->msg.partial.self = count;
        ids[count++] = u->s->id;
    }
    return count;
}

static void fill_parts(const struct partial_call *c, struct order *o,
                       uint32_t members, uint8_t bits)
{
    uint32_t count = c->part_count;
    if (count == 0) count = 1 + bits % (members < PARTS ? members : PARTS);
    if (count > c->r.count) count = (uint32_t)c->r.count;
    if (count > PARTS) count = PARTS;
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct wire_part *w = &o->parts[i];
        uint64_t last = (i + 1) * c->r.count / count;
        *w = (struct wire_part){.begin = end, .count = last - end};
        w->owner = (i + bits / 4) % members;
        if (c->part_count > 0) {
            w->begin = c->parts[i].begin;
            w->count = c->parts[i].count;
            w->owner = c->parts[i].owner;
        }
        end = last;
    }
    o->msg.part_count = count;
}

/* Of the copy that is here, or of what an answer will have. */
static uint64_t hash_of(const struct partial_call *c, uint32_t part)
{
    uint64_t size = c->parts[part].count * c->element;
    if (c->parts[part].here) return c->parts[part].hash;
    uint8_t *zeros = calloc(1, size + 1);
    assert(zeros);
    uint64_t hash = hash_bytes(zeros, size, 1);
    free(zeros);
    return hash;
}

static void fill_decision(const struct partial_call *c, struct order *o,
                          struct fuzz_input *in, uint8_t bits)
{
    for (uint32_t i = 0; i < o->msg.part_count; i++) {
        struct wire_part *w = &o->parts[i];
        uint8_t odd = fuzz_u8(in);
        w->contributors = odd % 4 < 3;
        if (o->msg.partial.word == PARTIAL_END && i < c->part_count &&
            odd < 224)
            w->contributors = c->parts[i].here;
        w->weight = w->contributors;
        if (i < c->part_count) w->hash = hash_of(c, i) ^ (odd > 250);
        o->sets[i] = bits < 32 ? odd : 0xff;
    }
    o->msg.set_count = o->msg.part_count;
    o->msg.partial.contributed = bits & 1;
    o->msg.partial.last = bits & 2;
}

static void fill_plan(const struct partial_call *c, struct order *o,
                      uint64_t *ids, uint32_t count, struct fuzz_input *in)
{
    uint8_t called = fuzz_u8(in);
    uint8_t gone = fuzz_u8(in);
    for (uint32_t i = count; i-- > 0;) {
        double weight = called >> i & 1 ? 0 : 1 + i;
        if (i == o->msg.partial.self) weight = called == 255 ? 0 : c->r.weight;
        ids[2 * i] = ids[i];
        memcpy(&ids[2 * i + 1], &weight, sizeof weight);
    }
    /* One, more often than not none. */
    o->sets[0] = (uint8_t)(gone < 64 ? 1u << gone % 8 : gone == 255 ? 255 : 0);
    if (gone < 250) o->sets[0] &= (uint8_t) ~(1u << o->msg.partial.self);
    o->msg.set_count = 1;
}

void member_partial_order(struct member *u, struct fuzz_input *in)
{
    static const uint8_t words[] = {
        PARTIAL_PLAN, PARTIAL_PLAN,   PARTIAL_PLAN,    PARTIAL_FOLD,
        PARTIAL_FOLD, PARTIAL_REPORT, PARTIAL_FETCH,   PARTIAL_FETCH,
        PARTIAL_END,  PARTIAL_END,    PARTIAL_RELEASE, PARTIAL_REFUSE};
    struct order o = {.msg = {.type = WIRE_COVERAGE}};
    uint8_t which = fuzz_u8(in), bits = fuzz_u8(in);
    const struct partial_call *c = some_call(u, which / 16);
    if (!c) return;
    o.msg.ids = o.ids;
    o.msg.parts = o.parts;
    o.msg.sets = o.sets;
    o.msg.set_size = 1;
    o.msg.partial.word = words[which % ARRAY_COUNT(words)];
    o.msg.partial.tag = c->r.tag;
    o.msg.partial.number = c->number != 0 ? c->number : 1u + bits / 32u;
    if (bits == 255) o.msg.partial.number++;
    o.msg.partial.why = bits % PARTIAL_REFUSAL_COUNT;
    if (bits & 8) memcpy(o.msg.partial.text, "no", 3);
    bool says = o.msg.partial.word == PARTIAL_PLAN ||
                o.msg.partial.word == PARTIAL_FETCH ||
                o.msg.partial.word == PARTIAL_END;
    uint32_t count = says ? fill_members(u, c, &o, o.ids, bits) : 0;
    if (count > 0) fill_parts(c, &o, count, bits);
    o.msg.id_count = count;
    if (count > 0 && o.msg.partial.word == PARTIAL_PLAN) {
        fill_plan(c, &o, o.ids, count, in);
        o.msg.id_count = 2 * count;
    } else if (count > 0) {
        fill_decision(c, &o, in, bits);
    }
    member_tell(u, &o.msg);
}
