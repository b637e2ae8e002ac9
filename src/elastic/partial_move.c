/* partial_move.c - the frames of partial all-reduces: questions and answers.
 * See partial.h; rules A5 and A6. */
#include "partial.h"

#include "../link/link.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- streams */

bool partial_stream_open(const struct partial *p, struct partial_stream *s,
                         uint32_t from, uint8_t *to, uint64_t size)
{
    uint64_t count = (size + p->piece - 1) / p->piece;
    *s = (struct partial_stream){
        .from = from, .to = to, .size = size, .piece = p->piece};
    s->chunks = count < UINT32_MAX / 2 ? calloc(count + 1, 1) : NULL;
    s->count = (uint32_t)count;
    if (!s->chunks) *s = (struct partial_stream){0};
    return s->chunks != NULL;
}

void partial_stream_close(struct partial_stream *s)
{
    free(s->chunks);
    *s = (struct partial_stream){0};
}

static uint32_t chunk_size(const struct partial_stream *s, uint32_t chunk)
{
    uint64_t left = s->size - (uint64_t)chunk * s->piece;
    return left < s->piece ? (uint32_t)left : s->piece;
}

static void ask_again(struct partial_stream *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->chunks[i] != CHUNK_HERE) s->chunks[i] = CHUNK_WANTED;
    }
    s->asked = s->next = 0;
}

void partial_release(struct partial *p, struct partial_call *c, uint32_t member)
{
    struct partial_member *m = &c->members[member];
    struct link *l = link_find(p->links, m->id, false);
    if (l) link_stop_receiving(l, c);
    if (m->input.chunks) ask_again(&m->input);
    for (uint32_t i = 0; i < c->part_count; i++) {
        struct partial_stream *s = &c->parts[i].result;
        if (s->chunks && s->from == member) ask_again(s);
    }
    memset(m->asked, 0, sizeof m->asked);
}

/* There is nothing to ask of the member now. */
static bool wants_nothing(const struct partial *p,
                          const struct partial_stream *s, uint32_t member)
{
    return !s->chunks || s->from != member || s->here + s->asked == s->count ||
           p->links->now < s->pause_until;
}

/* The next question to the member. The answer about a result waits until
 * its owner has folded, for which it may need a contribution from here, as this
 * member needs the owner's: each kind has a window of its own (A5). */
static bool next_question(struct partial *p, struct partial_call *c,
                          uint32_t member, struct partial_question *q)
{
    struct partial_member *m = &c->members[member];
    for (uint32_t i = 0; i <= c->part_count; i++) {
        bool input = i == 0;
        uint32_t part = input ? c->own : i - 1;
        uint8_t kind = input ? PARTIAL_INPUT : PARTIAL_RESULT;
        struct partial_stream *s = input ? &m->input : &c->parts[part].result;
        if (m->asked[kind] == PARTIAL_WINDOW || wants_nothing(p, s, member))
            continue;
        while (s->chunks[s->next] != CHUNK_WANTED)
            s->next = (s->next + 1) % s->count;
        s->chunks[s->next] = CHUNK_ASKED;
        s->asked++;
        m->asked[kind]++;
        *q = (struct partial_question){
            .kind = kind, .part = part, .offset = (uint64_t)s->next * s->piece};
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------- answers */

enum answer { ANSWER_NO, ANSWER_LATER, ANSWER_HERE };

static enum answer find_answer(const struct partial *p,
                               const struct partial_call *c, uint32_t asker,
                               const struct partial_question *q,
                               const uint8_t **from, uint32_t *size)
{
    if (q->part >= c->part_count || q->kind >= PARTIAL_DATA_COUNT)
        return ANSWER_NO;
    const struct partial_part *part = &c->parts[q->part];
    uint64_t total = part->count * c->element;
    uint64_t begin = part->begin * c->element;
    if (q->offset >= total || q->offset % p->piece != 0) return ANSWER_NO;
    uint64_t left = total - q->offset;
    *size = left < p->piece ? (uint32_t)left : p->piece;
    if (q->kind == PARTIAL_INPUT) {
        if (c->phase != PARTIAL_MOVING || part->owner != asker)
            return ANSWER_NO;
        *from = c->r.send + begin + q->offset;
        return ANSWER_HERE;
    }
    if (!part->here)
        return c->phase == PARTIAL_MOVING && q->part == c->own ? ANSWER_LATER
                                                               : ANSWER_NO;
    *from = c->result + begin + q->offset;
    return ANSWER_HERE;
}

static struct frame frame_of(const struct partial_call *c, enum frame_type type,
                             const struct partial_question *q)
{
    return (struct frame){.type = (uint8_t)type,
                          .flags = q->kind,
                          .tag = c->r.tag,
                          .scope = c->number,
                          .seq = q->part,
                          .digest = q->offset};
}

static uint32_t find_member(const struct partial_call *c, uint64_t id)
{
    uint32_t i = 0;
    while (i < c->member_count && c->members[i].id != id) i++;
    return i;
}

static bool give(const struct partial *p, struct partial_call *c,
                 uint32_t member, struct conn *k, struct frame *f)
{
    struct partial_member *m = &c->members[member];
    for (uint32_t i = 0; i < m->todo_count; i++) {
        struct partial_question q = m->todo[i];
        const uint8_t *from = NULL;
        uint32_t size = 0;
        enum answer answer = find_answer(p, c, member, &q, &from, &size);
        if (answer == ANSWER_LATER) continue;
        m->todo_count--;
        memmove(&m->todo[i], &m->todo[i + 1],
                (m->todo_count - i) * sizeof m->todo[0]);
        *f = frame_of(c, FRAME_PART_DATA, &q);
        if (answer == ANSWER_NO) return true;
        f->size = size;
        k->tx_from = from;
        /* Rule A6: the two kinds of memory have different lives. */
        k->tx_owner = q.kind == PARTIAL_INPUT ? (void *)&c->r : &c->result;
        c->tx_bytes += size;
        return true;
    }
    return false;
}

static bool next_send(void *user, struct conn *k, struct frame *f)
{
    struct partial *p = user;
    for (struct partial_call *c = p->calls; c; c = c->next) {
        struct partial_question q;
        uint32_t member = find_member(c, k->link->id);
        if (member == c->member_count) continue;
        k->tx_from = NULL;
        if (give(p, c, member, k, f)) return true;
        if (c->phase == PARTIAL_DONE || !next_question(p, c, member, &q))
            continue;
        *f = frame_of(c, FRAME_PART_GET, &q);
        return true;
    }
    return false;
}

/* -------------------------------------------------------------- receiving */

static struct partial_call *find_round(struct partial *p, uint64_t tag,
                                       uint64_t number)
{
    struct partial_call *c = p->calls;
    while (c && (c->r.tag != tag || c->number != number)) c = c->next;
    return number != 0 ? c : NULL;
}

/* False: the member asks for more than it can want at a time. */
static bool add_todo(struct partial_call *c, uint32_t member,
                     const struct partial_question *q)
{
    struct partial_member *m = &c->members[member];
    for (uint32_t i = 0; i < m->todo_count; i++) {
        const struct partial_question *t = &m->todo[i];
        if (t->kind == q->kind && t->part == q->part && t->offset == q->offset)
            return true;
    }
    if (m->todo_count == PARTIAL_TODO_MAX) return false;
    m->todo[m->todo_count++] = *q;
    return true;
}

static void refuse(struct partial *p, struct link *l, const struct frame *f)
{
    struct frame no = *f;
    no.type = FRAME_PART_DATA;
    (void)link_control(p->links, l, &no);
}

static bool begin_get(void *user, struct conn *k)
{
    struct partial *p = user;
    const struct frame *f = &k->rx;
    struct partial_question q = {
        .kind = f->flags, .part = f->seq, .offset = f->digest};
    struct partial_call *c = find_round(p, f->tag, f->scope);
    uint32_t member = c ? find_member(c, k->link->id) : 0;
    if (c) {
        if (member == c->member_count || !add_todo(c, member, &q))
            refuse(p, k->link, f);
        link_dirty(p->links, k->link);
        return true;
    }
    if (p->early_count == PARTIAL_EARLY_MAX) {
        refuse(p, k->link, f);
        return true;
    }
    p->early[p->early_count++] = (struct partial_early){.peer = k->link->id,
                                                        .tag = f->tag,
                                                        .number = f->scope,
                                                        .question = q,
                                                        .since = p->links->now};
    return true;
}

void partial_apply_early(struct partial *p, struct partial_call *c)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->early_count; i++) {
        struct partial_early e = p->early[i];
        uint32_t member = c->member_count;
        if (e.tag == c->r.tag && e.number == c->number)
            member = find_member(c, e.peer);
        if (member == c->member_count || !add_todo(c, member, &e.question))
            p->early[kept++] = e;
    }
    p->early_count = kept;
}

static void refuse_old(struct partial *p)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->early_count; i++) {
        struct partial_early e = p->early[i];
        struct link *l = link_find(p->links, e.peer, false);
        if (p->links->now - e.since < p->links->deadline / 4) {
            p->early[kept++] = e;
            continue;
        }
        struct frame f = {.flags = e.question.kind,
                          .tag = e.tag,
                          .scope = e.number,
                          .seq = e.question.part,
                          .digest = e.question.offset};
        if (l) refuse(p, l, &f);
    }
    p->early_count = kept;
}

static struct partial_stream *
find_stream(struct partial_call *c, uint32_t member, const struct frame *f)
{
    if (member == c->member_count || f->seq >= c->part_count ||
        c->phase == PARTIAL_DONE)
        return NULL;
    struct partial_stream *s = f->flags == PARTIAL_INPUT
                                   ? &c->members[member].input
                                   : &c->parts[f->seq].result;
    if (f->flags >= PARTIAL_DATA_COUNT || !s->chunks || s->from != member ||
        (f->flags == PARTIAL_INPUT && f->seq != c->own))
        return NULL;
    return f->digest % s->piece == 0 && f->digest / s->piece < s->count ? s
                                                                        : NULL;
}

static bool begin_data(void *user, struct conn *k)
{
    struct partial *p = user;
    const struct frame *f = &k->rx;
    struct partial_call *c = find_round(p, f->tag, f->scope);
    uint32_t member = c ? find_member(c, k->link->id) : 0;
    struct partial_stream *s = c ? find_stream(c, member, f) : NULL;
    uint32_t chunk = (uint32_t)(f->digest / p->piece);
    if (!s || s->chunks[chunk] != CHUNK_ASKED) return true; /* is over */
    if (f->size != chunk_size(s, chunk)) {
        s->chunks[chunk] = CHUNK_WANTED;
        s->asked--;
        c->members[member].asked[f->flags]--;
        s->pause_until = p->links->now + p->links->deadline / 64;
        if (c->phase == PARTIAL_FETCHING) partial_next_holder(p, c, f->seq);
        return true;
    }
    s->chunks[chunk] = CHUNK_COMING;
    k->rx_state = RX_BODY;
    k->rx_to = s->to + f->digest;
    k->rx_owner = c;
    return true;
}

static bool end_data(void *user, struct conn *k)
{
    struct partial *p = user;
    struct partial_call *c = k->rx_owner;
    const struct frame *f = &k->rx;
    k->rx_owner = NULL;
    if (!c) return true;
    uint32_t member = find_member(c, k->link->id);
    struct partial_stream *s = find_stream(c, member, f);
    uint32_t chunk = (uint32_t)(f->digest / p->piece);
    if (!s || s->chunks[chunk] != CHUNK_COMING) return true;
    s->chunks[chunk] = CHUNK_HERE;
    s->here++;
    s->asked--;
    c->members[member].asked[f->flags]--;
    c->rx_bytes += f->size;
    link_dirty(p->links, k->link);
    if (s->here < s->count) return true;
    if (f->flags == PARTIAL_RESULT) partial_result_here(p, c, f->seq);
    partial_settle(p, c);
    return true;
}

/* ------------------------------------------------------------------- links */

static bool wants_of(const struct partial_call *c, uint32_t member)
{
    const struct partial_stream *s = &c->members[member].input;
    if (s->chunks && s->here < s->count) return true;
    for (uint32_t i = 0; i < c->part_count; i++) {
        s = &c->parts[i].result;
        if (s->chunks && s->from == member && s->here < s->count) return true;
    }
    return false;
}

static bool uses(const void *user, const struct link *l)
{
    const struct partial *p = user;
    for (const struct partial_call *c = p->calls; c; c = c->next) {
        uint32_t member = find_member(c, l->id);
        if (member < c->member_count && c->phase != PARTIAL_DONE &&
            wants_of(c, member))
            return true;
    }
    return false;
}

/* What was under way is unknown: everything is asked again, both ways. */
static void closed(void *user, struct link *l, bool never)
{
    struct partial *p = user;
    (void)never;
    for (struct partial_call *c = p->calls; c; c = c->next) {
        uint32_t member = find_member(c, l->id);
        if (member == c->member_count) continue;
        partial_release(p, c, member);
        c->members[member].todo_count = 0;
        for (uint32_t i = 0; c->phase == PARTIAL_FETCHING && i < c->part_count;
             i++) {
            if (c->parts[i].result.chunks && c->parts[i].result.from == member)
                partial_next_holder(p, c, i);
        }
    }
}

void partial_dial(struct partial *p, const struct partial_call *c)
{
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct wire_member *m = links_member(p->links, c->members[i].id);
        if (i == c->self || !m || !wants_of(c, i)) continue;
        struct link *l = link_find(p->links, m->id, true);
        if (!l || l->open > 0) continue;
        link_know(l, m);
        link_need(p->links, l);
    }
}

void partial_wake(struct partial *p, const struct partial_call *c)
{
    for (uint32_t i = 0; i < c->member_count; i++) {
        struct link *l = link_find(p->links, c->members[i].id, false);
        if (l) link_dirty(p->links, l);
    }
}

void partial_tick(struct partial *p)
{
    if (p->early_count > 0) refuse_old(p);
    for (struct partial_call *c = p->calls; c; c = c->next) {
        if (c->phase != PARTIAL_MOVING && c->phase != PARTIAL_FETCHING)
            continue;
        partial_dial(p, c);
        partial_wake(p, c);
    }
}

void partial_receive_frames(struct partial *p)
{
    static const struct frame_handler get = {ON_OPEN, begin_get, NULL};
    static const struct frame_handler data = {ON_OPEN, begin_data, end_data};
    p->links->clients[CLIENT_LAST] = (struct link_client){
        .user = p, .next_send = next_send, .closed = closed, .uses = uses};
    links_receive(p->links, CONN_OF_LINK, FRAME_PART_GET, &get, p);
    links_receive(p->links, CONN_OF_LINK, FRAME_PART_DATA, &data, p);
}
