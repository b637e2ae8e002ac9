/* driver_wish.c - what the programs of the mates do: the same as the driver's,
 * and then they take what is over. See driver_world.h. */
#include "driver_mate.h"

#include "../../include/pccl.h"

#include <assert.h>
#include <stdlib.h>

enum { WISHES = 8, ARRAY_MAX = 8 };

/* What the program of the driver has begun, and mates will. */
static struct wish {
    enum { WISH_OP, WISH_VOTE, WISH_SYNC, WISH_PARTIAL } kind;
    uint32_t left; /* mates that have not, as bits */
    enum vote_kind vote;
    enum sync_strategy strategy;
    struct op_request op;
    struct partial_request partial;
    uint64_t members[ARRAY_MAX];
    size_t arrays[4][ARRAY_MAX];
    uint32_t world;
} wishes[WISHES];
static uint32_t wish_next;

static void op_end(struct mate_op *o)
{
    free(o->send);
    free(o->recv);
    *o = (struct mate_op){.op = NULL};
}

static void partial_end(struct mate_partial *p)
{
    free(p->send);
    free(p->recv);
    *p = (struct mate_partial){.call = NULL};
}

void wishes_begin(void)
{
    memset(wishes, 0, sizeof wishes);
}

void wishes_end(struct mate *m)
{
    for (uint32_t i = 0; i < MATE_OPS; i++) op_end(&m->ops[i]);
    for (uint32_t i = 0; i < MATE_PARTIALS; i++) partial_end(&m->partials[i]);
    if (m->listed) state_list_free(&m->list);
}

static struct wish *new_wish(void)
{
    struct wish *w = &wishes[wish_next++ % WISHES];
    w->left = (1u << MATES) - 1;
    return w;
}

void world_wish_op(const struct op_request *r, uint32_t members)
{
    struct wish *w = new_wish();
    struct plan_request *p = &w->op.plan;
    const size_t **arrays[] = {&p->send_bytes, &p->send_displs, &p->recv_bytes,
                               &p->recv_displs};
    uint32_t world = r->call.members ? r->call.member_count : members;
    w->kind = WISH_OP;
    w->op = *r;
    w->op.call.named = NULL;
    w->op.call.named_count = 0;
    w->world = world;
    if (world > ARRAY_MAX) {
        w->left = 0;
        return;
    }
    if (r->call.members) {
        memcpy(w->members, r->call.members, world * sizeof *w->members);
        w->op.call.members = w->members;
    }
    for (uint32_t i = 0; i < 4 && r->plan.send_bytes; i++) {
        memcpy(w->arrays[i], *arrays[i], world * sizeof w->arrays[i][0]);
        *arrays[i] = w->arrays[i];
    }
}

void world_wish_vote(enum vote_kind kind)
{
    struct wish *w = new_wish();
    w->kind = WISH_VOTE;
    w->vote = kind;
}

void world_wish_sync(enum sync_strategy strategy)
{
    struct wish *w = new_wish();
    w->kind = WISH_SYNC;
    w->strategy = strategy;
}

void world_wish_partial(const struct partial_request *r)
{
    struct wish *w = new_wish();
    w->kind = WISH_PARTIAL;
    w->partial = *r;
}

/* Bytes of a buffer that is large enough for anything it asks for. */
static size_t room_for(const struct wish *w)
{
    const struct op_request *r = &w->op;
    size_t size = (size_t)(r->plan.count * (r->plan.element | 1u));
    size_t all = (size_t)r->call.count * 8;
    for (uint32_t i = 0; i < w->world && r->plan.send_bytes; i++)
        all += w->arrays[0][i] + w->arrays[2][i];
    return size * (w->world + 1) + all + 4096;
}

/* Ones, of each type: so the sum is the number of members. */
static void fill(uint8_t *to, size_t size, enum dtype type)
{
    memset(to, 0, size);
    if (type == DTYPE_F32)
        for (size_t i = 0; i + 4 <= size; i += 4)
            memcpy(to + i, &(const float){1}, 4);
    else
        memset(to, 1, size);
}

static void launch(struct mate *m, const struct wish *w)
{
    struct mate_op *o = m->ops;
    while (o < m->ops + MATE_OPS && o->op) o++;
    if (o == m->ops + MATE_OPS) return;
    /* Its program knows another view: the call would be another one. */
    if (!w->op.call.members && m->s->notified.view->size != w->world) return;
    struct op_request r = w->op;
    size_t room = room_for(w);
    o->send = malloc(room);
    o->recv = malloc(room);
    assert(o->send && o->recv);
    fill(o->send, room, r.call.dtype);
    fill(o->recv, room, r.call.dtype);
    r.call.sendbuf = o->send;
    r.call.recvbuf = o->recv;
    if (session_launch(m->s, &r, 0, &o->op) != pcclSuccess) op_end(o);
}

void mate_describe(struct mate *m, struct state_list *list, bool hashes)
{
    const struct state_tensor t = {.name = "t",
                                   .data = m->tensor,
                                   .count = WORLD_TENSOR,
                                   .size = WORLD_TENSOR};
    memset(m->tensor, 5, sizeof m->tensor);
    if (hashes)
        assert(state_list_make(list, &t, 1, 1));
    else
        assert(state_list_describe(list, &t, 1));
}

static void synchronize(struct mate *m, enum sync_strategy strategy)
{
    if (m->listed) return;
    if (strategy == SYNC_RECEIVE_ONLY)
        strategy = SYNC_SEND_ONLY;
    else if (strategy == SYNC_SEND_ONLY)
        strategy = SYNC_RECEIVE_ONLY;
    mate_describe(m, &m->list, true);
    m->listed = session_sync(m->s, &m->list, strategy, 8) == pcclSuccess;
    if (!m->listed) state_list_free(&m->list);
}

static void average(struct mate *m, const struct partial_request *from)
{
    struct partial_request r = *from;
    size_t size = (size_t)r.count * dtype_size((enum dtype)r.dtype) + 1;
    struct mate_partial *p = m->partials;
    while (p < m->partials + MATE_PARTIALS && p->call) p++;
    if (p == m->partials + MATE_PARTIALS) return;
    p->send = malloc(size);
    p->recv = malloc(size);
    assert(p->send && p->recv);
    fill(p->send, size, (enum dtype)r.dtype);
    fill(p->recv, size, (enum dtype)r.dtype);
    r.send = p->send;
    r.recv = p->recv;
    if (session_partial(m->s, &r, &p->call) != pcclSuccess) partial_end(p);
}

bool wishes_fulfil(struct mate *m)
{
    bool any = false;
    for (uint32_t i = 0; i < WISHES; i++) {
        struct wish *w = &wishes[(wish_next + i) % WISHES];
        if (!(w->left & 1u << mate_number(m))) continue;
        w->left &= ~(1u << mate_number(m));
        any = true;
        if (w->kind == WISH_OP) launch(m, w);
        if (w->kind == WISH_SYNC) synchronize(m, w->strategy);
        if (w->kind == WISH_PARTIAL) average(m, &w->partial);
        if (w->kind == WISH_VOTE && m->s->votes[w->vote] != VOTE_WAITING)
            (void)session_vote(m->s, w->vote);
    }
    return any;
}

/* Operations that are over are taken. */
void wishes_take(struct mate *m)
{
    struct message_event *event;
    uint64_t revision, tx, rx;
    uint32_t contributors;
    for (uint32_t i = 0; i < MATE_OPS; i++) {
        struct mate_op *o = &m->ops[i];
        if (!o->op || !op_is_done(o->op)) continue;
        (void)session_take(m->s, o->op, &contributors, &tx, &rx);
        op_end(o);
    }
    for (uint32_t i = 0; i < MATE_PARTIALS; i++) {
        struct mate_partial *p = &m->partials[i];
        if (!p->call || p->call->phase != PARTIAL_DONE) continue;
        session_partial_take(m->s, p->call);
        partial_end(p);
    }
    for (int i = 0; i < VOTE_KIND_COUNT; i++)
        if (m->s->votes[i] == VOTE_ANSWERED) m->s->votes[i] = VOTE_IDLE;
    if (m->listed && m->s->sync == SYNC_OVER) {
        (void)session_sync_take(m->s, &revision, &tx, &rx);
        state_list_free(&m->list);
        m->listed = false;
    }
    while ((event = message_take(&m->s->messages)))
        message_release(&m->s->messages, event);
}
