/* partial.c - the calls of partial all-reduces, and the orders of the
 * coordinator. See partial.h; rules A of COVERAGE.md. */
#include "partial.h"

#include "../hash/hash.h"
#include "../link/link.h"
#include "../reduce/weighted.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- life */

void partial_init(struct partial *p, struct links *links,
                  void (*send)(void *user, const struct wire_msg *msg),
                  void (*changed)(void *user), void *user)
{
    p->links = links;
    p->send = send;
    p->changed = changed;
    p->user = user;
    p->piece = PARTIAL_CHUNK;
    partial_receive_frames(p);
}

static void close_input(struct partial_member *m)
{
    free(m->input.to);
    partial_stream_close(&m->input);
}

/* Nothing is received any more, and the caller's memory is not read. */
static void stop_moving(struct partial *p, struct partial_call *c)
{
    conn_stop_receiving(p->links, c);
    conn_forget(p->links, &c->r);
    for (uint32_t i = 0; i < c->member_count; i++) close_input(&c->members[i]);
    for (uint32_t i = 0; i < c->part_count; i++)
        partial_stream_close(&c->parts[i].result);
}

static void release(struct partial *p, struct partial_call *c)
{
    conn_forget(p->links, &c->result);
    c->released = true;
    free(c->result);
    c->result = NULL;
    for (uint32_t i = 0; i < c->part_count; i++) c->parts[i].here = false;
}

static void free_call(struct partial *p, struct partial_call *c)
{
    struct partial_call **slot = &p->calls;
    while (*slot != c) slot = &(*slot)->next;
    *slot = c->next;
    stop_moving(p, c);
    release(p, c);
    free(c->members);
    free(c->parts);
    free(c->sets);
    free(c);
}

void partial_free(struct partial *p)
{
    free(p->tags);
    p->tags = NULL;
    p->tag_count = 0;
    while (p->calls) free_call(p, p->calls);
}

static void set_text(struct partial_call *c, const char *text)
{
    size_t size = strnlen(text, WIRE_TEXT_MAX);
    memmove(c->text, text, size);
    c->text[size] = '\0';
}

void partial_finish(struct partial *p, struct partial_call *c, int why,
                    const char *text)
{
    stop_moving(p, c);
    c->phase = PARTIAL_DONE;
    c->why = why;
    set_text(c, text);
    if (why != PARTIAL_WELL) release(p, c);
    p->changed(p->user);
}

void partial_stop(struct partial *p, int why)
{
    for (uint32_t i = 0; i < p->tag_count; i++)
        p->tags[i].missed = !partial_is_under_way(p, p->tags[i].tag);
    for (struct partial_call *c = p->calls, *next; c; c = next) {
        next = c->next;
        if (c->phase != PARTIAL_DONE)
            partial_finish(p, c, why, "");
        else if (c->taken)
            free_call(p, c);
        else
            release(p, c);
    }
}

struct partial_call *partial_find(struct partial *p, uint64_t tag)
{
    struct partial_call *c = p->calls;
    while (c && (c->r.tag != tag || c->taken)) c = c->next;
    return c;
}

bool partial_waits(const struct partial *p)
{
    for (const struct partial_call *c = p->calls; c; c = c->next)
        if (c->phase != PARTIAL_DONE) return true;
    return false;
}

bool partial_has_work(const struct partial *p)
{
    for (const struct partial_call *c = p->calls; c; c = c->next)
        if (c->phase != PARTIAL_DONE || !c->released) return true;
    return false;
}

uint32_t partial_untaken(const struct partial *p,
                         uint64_t tags[PARTIAL_CALLS_MAX])
{
    uint32_t count = 0;
    for (const struct partial_call *c = p->calls; c; c = c->next)
        if (!c->taken) tags[count++] = c->r.tag;
    return count;
}

void partial_take(struct partial *p, struct partial_call *c)
{
    PCCL_ASSERT(c->phase == PARTIAL_DONE);
    c->taken = true;
    if (c->released) free_call(p, c);
}

/* ------------------------------------------------------------ what is told */

static bool in_set(const uint8_t *set, uint32_t i)
{
    return set[i / 8] >> i % 8 & 1;
}

/* The parts of a message cover the vector, in order. */
static bool fits(const struct partial_call *c, const struct wire_msg *msg,
                 uint32_t members)
{
    uint64_t end = 0;
    if (members == 0 || members > WIRE_AVERAGED_MAX ||
        msg->partial.self >= members)
        return false;
    for (uint32_t i = 0; i < msg->part_count; i++) {
        const struct wire_part *w = &msg->parts[i];
        if (w->begin != end || w->count == 0 || w->count > c->r.count - end ||
            w->owner >= members || w->contributors > members)
            return false;
        end += w->count;
    }
    return end == c->r.count && msg->set_size == (members + 7) / 8;
}

/* The members and parts of the message are those that are known, or the first
 * ones. False: they cannot be, or there is no memory. */
static bool take_round(struct partial *p, struct partial_call *c,
                       const struct wire_msg *msg, uint32_t step)
{
    uint32_t count = msg->id_count / step;
    bool known = c->number != 0;
    if (msg->id_count % step != 0 || !fits(c, msg, count)) return false;
    if (msg->ids[step * msg->partial.self] != p->links->self) return false;
    if (known && (msg->partial.number != c->number || count < c->member_count ||
                  msg->partial.self != c->self))
        return false;
    bool has_parts = c->part_count > 0; /* a round without any may get some */
    if (has_parts && msg->part_count != c->part_count) return false;
    for (uint32_t i = 0; i < c->member_count; i++)
        if (msg->ids[step * i] != c->members[i].id) return false;
    struct partial_member *members =
        realloc(c->members, count * sizeof *members);
    c->starved |= !members;
    if (!members) return false;
    c->members = members;
    memset(members + c->member_count, 0,
           (count - c->member_count) * sizeof *members);
    for (uint32_t i = c->member_count; i < count; i++)
        members[i].id = msg->ids[step * i];
    c->member_count = count;
    c->self = msg->partial.self;
    c->set_size = msg->set_size;
    for (uint32_t i = 0; i < c->part_count; i++)
        if (msg->parts[i].begin != c->parts[i].begin ||
            msg->parts[i].owner != c->parts[i].owner)
            return false;
    if (!has_parts && msg->part_count > 0) {
        c->parts = calloc(msg->part_count, sizeof *c->parts);
        c->starved |= !c->parts;
        if (!c->parts) return false;
        c->part_count = msg->part_count;
    }
    for (uint32_t i = 0; !has_parts && i < c->part_count; i++) {
        c->parts[i].begin = msg->parts[i].begin;
        c->parts[i].count = msg->parts[i].count;
        c->parts[i].owner = msg->parts[i].owner;
        if (c->parts[i].owner == c->self) c->own = i;
    }
    c->number = msg->partial.number;
    return c->number != 0;
}

static bool copy_sets(struct partial_call *c, const struct wire_msg *msg)
{
    size_t size = (size_t)msg->set_count * msg->set_size;
    if (msg->set_count != c->part_count) return false;
    uint8_t *sets = malloc(size + 1);
    c->starved |= !sets;
    if (!sets) return false;
    memcpy(sets, msg->sets, size);
    free(c->sets);
    c->sets = sets;
    return true;
}

static uint8_t *place_of(const struct partial_call *c, uint32_t part)
{
    return c->result + c->parts[part].begin * c->element;
}

static uint64_t size_of(const struct partial_call *c, uint32_t part)
{
    return c->parts[part].count * c->element;
}

/* ------------------------------------------------------------------ moving */

/* Rule A5: a member that has called is asked for its contribution. */
static void open_inputs(const struct partial *p, struct partial_call *c)
{
    if (c->own == PARTIAL_NONE || c->folded) return;
    for (uint32_t i = 0; i < c->member_count; i++) {
        struct partial_member *m = &c->members[i];
        bool asks = i != c->self && m->weight > 0 && !m->gone;
        if (!asks || m->input.chunks) continue;
        uint8_t *to = malloc(size_of(c, c->own));
        /* Without memory it does not contribute. */
        if (!to ||
            !partial_stream_open(p, &m->input, i, to, size_of(c, c->own)))
            free(to);
    }
}

static bool open_results(const struct partial *p, struct partial_call *c)
{
    for (uint32_t i = 0; i < c->part_count; i++) {
        struct partial_part *part = &c->parts[i];
        if (i == c->own || part->here || part->result.chunks) continue;
        c->starved = !partial_stream_open(p, &part->result, part->owner,
                                          place_of(c, i), size_of(c, i));
        if (c->starved) return false;
    }
    return true;
}

/* Rule A12. The call ends when no order for this round can come any more. */
static void fail(struct partial *p, struct partial_call *c,
                 const struct wire_msg *order, const char *text)
{
    stop_moving(p, c);
    c->phase = PARTIAL_FAILING;
    c->number = order->partial.number;
    set_text(c, c->starved ? "no memory for the round" : text);
    struct wire_msg msg = {.type = WIRE_PARTIAL};
    msg.partial.word = PARTIAL_FAILED;
    msg.partial.tag = c->r.tag;
    msg.partial.number = c->number;
    p->send(p->user, &msg);
}

static void on_plan(struct partial *p, struct partial_call *c,
                    const struct wire_msg *msg)
{
    bool ok = c->phase <= PARTIAL_MOVING && take_round(p, c, msg, 2) &&
              msg->set_count == 1;
    for (uint32_t i = 0; ok && i < c->member_count; i++) {
        struct partial_member *m = &c->members[i];
        memcpy(&m->weight, &msg->ids[2 * i + 1], sizeof m->weight);
        ok &= m->weight >= 0 && m->weight <= WIRE_WEIGHT_MAX;
        m->gone = in_set(msg->sets, i);
    }
    ok = ok && !c->members[c->self].gone && c->members[c->self].weight > 0;
    if (!ok || !open_results(p, c)) {
        fail(p, c, msg, "the coordinator's plan cannot be");
        return;
    }
    c->phase = PARTIAL_MOVING;
    open_inputs(p, c);
    partial_apply_early(p, c);
    partial_dial(p, c);
    partial_wake(p, c);
    partial_settle(p, c);
}

static bool may_fold(const struct partial_call *c)
{
    for (uint32_t i = 0; i < c->member_count && !c->fold_due; i++) {
        const struct partial_member *m = &c->members[i];
        if (m->input.chunks && m->input.here < m->input.count && !m->gone)
            return false;
    }
    return true;
}

/* Rule A6: once, of whole contributions, in the order of the members. */
static void fold(struct partial *p, struct partial_call *c)
{
    const void *inputs[WIRE_AVERAGED_MAX];
    double weights[WIRE_AVERAGED_MAX];
    uint8_t set[WIRE_AVERAGED_MAX / 8] = {0};
    uint32_t n = 0;
    struct partial_part *part = &c->parts[c->own];
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct partial_member *m = &c->members[i];
        bool whole = m->input.chunks && m->input.here == m->input.count;
        if (i != c->self && !whole) continue;
        inputs[n] = m->input.to;
        if (i == c->self) inputs[n] = c->r.send + part->begin * c->element;
        weights[n++] = m->weight;
        set[i / 8] |= (uint8_t)(1u << i % 8);
    }
    reduce_weighted((enum dtype)c->r.dtype, (enum redop)c->r.redop,
                    place_of(c, c->own), inputs, weights, n, part->count);
    conn_stop_receiving(p->links, c);
    for (uint32_t i = 0; i < c->member_count; i++) {
        if (i != c->self) partial_release(p, c, i);
        close_input(&c->members[i]);
    }
    part->hash = hash_bytes(place_of(c, c->own), size_of(c, c->own), 1);
    part->here = part->told = c->folded = true;
    struct wire_msg msg = {.type = WIRE_PARTIAL};
    msg.partial.word = PARTIAL_FOLDED;
    msg.partial.tag = c->r.tag;
    msg.partial.number = c->number;
    msg.partial.part = c->own;
    msg.partial.hash = part->hash;
    msg.set_count = 1;
    msg.set_size = c->set_size;
    msg.sets = set;
    p->send(p->user, &msg);
    partial_wake(p, c);
}

static bool has_all(const struct partial_call *c)
{
    for (uint32_t i = 0; i < c->part_count; i++) {
        const struct partial_part *part = &c->parts[i];
        bool due = c->phase == PARTIAL_FETCHING ? part->wanted
                                                : !c->members[part->owner].gone;
        if (due && !part->here) return false;
    }
    return true;
}

static void tell(struct partial *p, struct partial_call *c, bool always)
{
    uint64_t ids[2 * WIRE_PARTS_MAX];
    struct wire_msg msg = {.type = WIRE_PARTIAL, .ids = ids};
    msg.partial.word = PARTIAL_HOLDS;
    msg.partial.tag = c->r.tag;
    msg.partial.number = c->number;
    for (uint32_t i = 0; i < c->part_count; i++) {
        struct partial_part *part = &c->parts[i];
        if (!part->here || part->told) continue;
        part->told = true;
        ids[msg.id_count++] = i;
        ids[msg.id_count++] = part->hash;
    }
    if (msg.id_count > 0 || always) p->send(p->user, &msg);
}

void partial_settle(struct partial *p, struct partial_call *c)
{
    if (c->phase != PARTIAL_MOVING && c->phase != PARTIAL_FETCHING) return;
    bool folds = c->phase == PARTIAL_MOVING && c->own != PARTIAL_NONE;
    if (folds && !c->folded && may_fold(c)) fold(p, c);
    if (c->reports || has_all(c)) tell(p, c, false);
}

void partial_result_here(struct partial *p, struct partial_call *c,
                         uint32_t part)
{
    struct partial_part *x = &c->parts[part];
    uint64_t hash = hash_bytes(place_of(c, part), size_of(c, part), 1);
    if (c->phase == PARTIAL_FETCHING && hash != x->hash) {
        memset(x->result.chunks, CHUNK_WANTED, x->result.count);
        x->result.here = x->result.asked = x->result.next = 0;
        partial_next_holder(p, c, part);
        return;
    }
    x->hash = hash;
    x->here = true;
    partial_stream_close(&x->result);
}

/* ---------------------------------------------------------------- fetching */

/* Rule A8: holders take turns, those of different members in different
 * order. */
void partial_next_holder(struct partial *p, struct partial_call *c,
                         uint32_t part)
{
    struct partial_part *x = &c->parts[part];
    const uint8_t *set = c->sets + (size_t)part * c->set_size;
    uint32_t first = (c->self + part + x->tries++) % c->member_count;
    for (uint32_t i = 0; i < c->member_count; i++) {
        uint32_t k = (first + i) % c->member_count;
        if (k == c->self || !in_set(set, k)) continue;
        if (links_status(p->links, c->members[k].id) == LINK_FAILED &&
            i + 1 < c->member_count && links_member(p->links, c->members[k].id))
            continue;
        if (x->result.from != k) partial_release(p, c, x->result.from);
        x->result.from = k;
        partial_dial(p, c);
        partial_wake(p, c);
        return;
    }
}

static bool holds(const struct partial_call *c, uint32_t part, uint32_t member)
{
    return in_set(c->sets + (size_t)part * c->set_size, member);
}

static bool want_part(struct partial *p, struct partial_call *c, uint32_t part,
                      const struct wire_part *w)
{
    struct partial_part *x = &c->parts[part];
    x->wanted = w->contributors > 0;
    if (x->here && x->wanted && x->hash != w->hash) x->here = x->told = false;
    if (!x->here) x->hash = w->hash;
    if (!x->wanted || x->here) {
        partial_stream_close(&x->result);
        return true;
    }
    bool moves = x->result.chunks != NULL;
    if (!moves)
        c->starved = !partial_stream_open(p, &x->result, c->self,
                                          place_of(c, part), size_of(c, part));
    if (c->starved) return false;
    if (!holds(c, part, x->result.from) || x->result.from == c->self)
        partial_next_holder(p, c, part);
    return true;
}

static void on_fetch(struct partial *p, struct partial_call *c,
                     const struct wire_msg *msg)
{
    bool ok = take_round(p, c, msg, 1) && copy_sets(c, msg);
    if (ok && c->phase != PARTIAL_FETCHING) {
        /* What still comes of a part that nobody wants is dropped. */
        for (uint32_t i = 0; i < c->member_count; i++) {
            if (i != c->self) partial_release(p, c, i);
            close_input(&c->members[i]);
        }
        c->phase = PARTIAL_FETCHING;
    }
    for (uint32_t i = 0; ok && i < c->part_count; i++)
        ok = want_part(p, c, i, &msg->parts[i]);
    if (!ok) {
        fail(p, c, msg, "the coordinator's decision cannot be");
        return;
    }
    partial_apply_early(p, c);
    partial_dial(p, c);
    partial_wake(p, c);
    partial_settle(p, c);
}

/* --------------------------------------------------------------------- end */

static void on_end(struct partial *p, struct partial_call *c,
                   const struct wire_msg *msg)
{
    bool ok = take_round(p, c, msg, 1) && copy_sets(c, msg);
    for (uint32_t i = 0; ok && i < c->part_count; i++) {
        const struct wire_part *w = &msg->parts[i];
        struct partial_part *x = &c->parts[i];
        x->weight = w->weight;
        x->contributors = w->contributors;
        ok = w->contributors == 0 || (x->here && x->hash == w->hash);
    }
    if (!ok) {
        fail(p, c, msg, "the coordinator's map cannot be");
        return;
    }
    /* The input may be the same memory, and part of it may be half sent. */
    stop_moving(p, c);
    for (uint32_t i = 0; i < c->part_count; i++) {
        if (c->parts[i].contributors > 0)
            memcpy(c->r.recv + c->parts[i].begin * c->element, place_of(c, i),
                   size_of(c, i));
    }
    c->contributed = msg->partial.contributed;
    partial_finish(p, c, PARTIAL_WELL, "");
    if (msg->partial.last) release(p, c);
}

static void on_release(struct partial *p, uint64_t number)
{
    for (struct partial_call *c = p->calls; c; c = c->next) {
        if (c->number != number) continue;
        if (c->phase == PARTIAL_FAILING)
            partial_finish(p, c, PARTIAL_BROKEN, c->text);
        if (c->phase != PARTIAL_DONE) continue;
        release(p, c);
        if (c->taken) free_call(p, c);
        return;
    }
}

void partial_on_message(struct partial *p, const struct wire_msg *msg)
{
    if (msg->partial.word == PARTIAL_RELEASE) {
        on_release(p, msg->partial.number);
        return;
    }
    struct partial_call *c = partial_find(p, msg->partial.tag);
    if (!c || c->phase >= PARTIAL_FAILING) return;
    switch ((enum partial_order)msg->partial.word) {
    case PARTIAL_PLAN:
        on_plan(p, c, msg);
        return;
    case PARTIAL_FOLD:
        c->fold_due = true;
        partial_settle(p, c);
        return;
    case PARTIAL_REPORT:
        c->reports = true;
        tell(p, c, true);
        return;
    case PARTIAL_FETCH:
        on_fetch(p, c, msg);
        return;
    case PARTIAL_END:
        on_end(p, c, msg);
        return;
    case PARTIAL_REFUSE:
        partial_finish(p, c, msg->partial.why, msg->partial.text);
        return;
    case PARTIAL_RELEASE:
    case PARTIAL_ORDER_COUNT:
        return;
    }
}
