/* member_call.c - the calls that the program of the member under test makes:
 * whatever the API lets through. See member.h. */
#include "member.h"

#include "../../include/pccl.h"
#include "../../src/hash/hash.h"

enum { RNDV_MAX = 4 << 20, SENT_MAX = 64 * 1024 };

/* ------------------------------------------------------------------ buffers */

uint8_t *member_buffer(size_t size)
{
    uint8_t *b = calloc(1, size + 2 * MEMBER_GUARD);
    assert(b);
    memset(b, 0xa5, MEMBER_GUARD);
    memset(b + MEMBER_GUARD + size, 0xa5, MEMBER_GUARD);
    return b;
}

void member_buffer_free(uint8_t *b, size_t size)
{
    for (size_t i = 0; b && i < MEMBER_GUARD; i++)
        assert(b[i] == 0xa5 && b[MEMBER_GUARD + size + i] == 0xa5);
    free(b);
}

static void op_clear(struct member_op *o)
{
    member_buffer_free(o->send, o->send_size);
    member_buffer_free(o->recv, o->recv_size);
    *o = (struct member_op){.op = NULL};
}

/* --------------------------------------------------------------- operations */

static bool contains(const uint64_t *ids, uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

/* The members of the scope: distinct, this one among them; or the view that the
 * program knows. */
static uint32_t read_scope(const struct member *u, struct member_op *o,
                           struct fuzz_input *in)
{
    const struct view *t = u->s->notified.view;
    uint32_t named = fuzz_u8(in) % MEMBER_IDS;
    uint32_t count = 0;
    for (uint32_t i = 0; i < named; i++) {
        uint64_t id = fuzz_u64(in);
        if (!contains(o->ids, count, id)) o->ids[count++] = id;
    }
    if (named == 0) return t->size < MEMBER_IDS ? t->size : 0;
    if (!contains(o->ids, count, u->s->id)) o->ids[count++] = u->s->id;
    o->request.call.members = o->ids;
    o->request.call.member_count = count;
    return count;
}

static uint32_t own_rank(const struct member *u, const struct op_request *q)
{
    for (uint32_t i = 0; i < q->call.member_count; i++)
        if (q->call.members[i] == u->s->id) return i;
    return u->s->notified.view->rank;
}

/* With a root, data go one way, and only between it and the others. */
static bool flows(const struct plan_request *p, uint32_t from, uint32_t to)
{
    if (p->flow == FLOW_ALL || p->flow == FLOW_EVEN) return true;
    return (p->flow == FLOW_TO_ROOT ? to : from) == p->root;
}

static void read_pairs(const struct member *u, struct member_op *o,
                       uint32_t world, struct fuzz_input *in)
{
    struct plan_request *p = &o->request.plan;
    uint32_t self = own_rank(u, &o->request);
    uint32_t count = fuzz_u8(in);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t send = fuzz_u16(in);
        uint64_t recv = fuzz_u16(in);
        if (i >= world) continue;
        o->arrays[0][i] = flows(p, self, i) ? (size_t)send : 0;
        o->arrays[2][i] = flows(p, i, self) ? (size_t)recv : 0;
    }
    if (p->flow == FLOW_EVEN) {
        p->count = o->arrays[0][self];
        for (uint32_t i = 0; i < world; i++)
            o->arrays[0][i] = o->arrays[2][i] = (size_t)p->count;
    }
    o->send_size = o->recv_size = 0;
    for (uint32_t i = 0; i < world; i++) {
        o->arrays[1][i] = o->send_size;
        o->arrays[3][i] = o->recv_size;
        o->send_size += o->arrays[0][i];
        o->recv_size += o->arrays[2][i];
    }
    p->send_bytes = o->arrays[0];
    p->send_displs = o->arrays[1];
    p->recv_bytes = o->arrays[2];
    p->recv_displs = o->arrays[3];
}

/* False: the API refuses such a call. */
static bool read_request(const struct member *u, struct member_op *o,
                         const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    struct op_request *q = &o->request;
    *q = (struct op_request){.call.tag = o->tag = fuzz_u64(&in)};
    q->plan.coll = (enum plan_coll)fuzz_below(&in, COLL_COUNT);
    uint8_t type = fuzz_u8(&in); /* of an all-to-all: its flow */
    q->call.dtype = (enum dtype)(type % DTYPE_COUNT);
    q->call.redop = (enum redop)fuzz_below(&in, REDOP_COUNT);
    uint8_t how = fuzz_u8(&in); /* codes, or 3 more: a sum for a root */
    uint32_t quant = how % 3;
    enum dtype code = (enum dtype)fuzz_below(&in, DTYPE_COUNT);
    uint32_t root = fuzz_u32(&in);
    q->plan.count = fuzz_u32(&in) % (MEMBER_BUFFER_MAX + 1);
    q->call.digest = fuzz_u64(&in);
    bool reduces = q->plan.coll == COLL_ALLREDUCE;
    q->plan.element = plan_coll_reduces(q->plan.coll)
                          ? (uint32_t)dtype_size(q->call.dtype)
                          : 1;
    uint32_t world = read_scope(u, o, &in);
    if (world == 0 || q->plan.coll == COLL_BARRIER) q->plan.count = 0;
    if (world == 0) return false;
    q->plan.root = root % world;
    size_t size = (size_t)q->plan.count * q->plan.element;
    o->send_size = o->recv_size = size;
    if (q->plan.coll == COLL_ALLGATHER) o->recv_size *= world;
    if (q->plan.coll == COLL_ALLTOALLV) {
        q->plan.count = 0;
        q->plan.flow = (enum plan_flow)(type % FLOW_COUNT);
        read_pairs(u, o, world, &in);
    }
    if (o->recv_size > MEMBER_BUFFER_MAX || o->send_size > MEMBER_BUFFER_MAX)
        return false;
    const struct quant codes = {(enum quant_algorithm)quant, q->call.dtype,
                                code};
    if (reduces && quant != QUANT_NONE && !quant_check(&codes, q->call.redop))
        q->call.quant = codes;
    if (reduces && how / 3 % 2) q->plan.flow = FLOW_TO_ROOT;
    return true;
}

static void give_buffers(const struct member *u, struct member_op *o,
                         bool in_place)
{
    struct op_request *q = &o->request;
    o->send = member_buffer(o->send_size);
    o->recv = member_buffer(o->recv_size);
    q->call.sendbuf = o->send + MEMBER_GUARD;
    q->call.recvbuf = o->recv + MEMBER_GUARD;
    uint32_t self = own_rank(u, q);
    if (q->plan.coll == COLL_BROADCAST) in_place |= q->plan.root == self;
    if (!in_place || q->plan.coll > COLL_ALLGATHER) return;
    size_t own = q->plan.coll == COLL_ALLGATHER ? self * o->send_size : 0;
    if (own + o->send_size > o->recv_size) return;
    q->call.sendbuf = o->recv + MEMBER_GUARD + own;
}

/* A sum for a root has no place with the others. */
static void take_place(const struct member *u, struct op_request *q)
{
    bool to_root =
        q->plan.coll == COLL_ALLREDUCE && q->plan.flow == FLOW_TO_ROOT;
    if (to_root && q->plan.root != own_rank(u, q)) q->call.recvbuf = NULL;
}

void member_launch(struct member *u, const struct tape_record *r)
{
    struct member_op *o = u->ops;
    while (o < u->ops + MEMBER_OPS && o->recv) o++;
    if (o == u->ops + MEMBER_OPS || u->fast) return;
    *o = (struct member_op){.op = NULL};
    if (!read_request(u, o, r)) return;
    give_buffers(u, o, r->arg & 1);
    take_place(u, &o->request);
    struct op_request *q = &o->request;
    if (q->call.quant.algorithm != QUANT_NONE)
        engine_quantize(q, q->call.quant.algorithm, q->call.quant.code);
    if (r->kind == MEMBER_FAST && session_fast(u->s, q, 0)) {
        u->fast = o;
        return;
    }
    if (session_launch(u->s, q, 0, &o->op) != pcclSuccess) op_clear(o);
}

void member_convert(struct member *u)
{
    struct member_op *o = u->fast;
    u->fast = NULL;
    if (!o) return;
    o->op = session_convert(u->s);
    if (!o->op) op_clear(o);
}

void member_poll(struct member *u)
{
    if (!u->fast) return;
    switch (fast_poll(u->s->engine)) {
    case LOOK_IDLE:
    case LOOK_MOVED:
        return;
    case LOOK_DONE:
        op_clear(u->fast);
        u->fast = NULL;
        return;
    case LOOK_ELSE:
        member_convert(u);
    }
}

/* Tag 0 of a tape may be anything: a low one names a slot as well. */
void member_take(struct member *u, uint64_t tag)
{
    for (uint32_t i = 0; i < MEMBER_OPS; i++) {
        struct member_op *o = &u->ops[i];
        uint32_t contributors;
        uint64_t tx, rx;
        if (!o->op || o->tag != tag || !op_is_done(o->op)) continue;
        uint32_t dispute = op_dispute(o->op);
        (void)session_take(u->s, o->op, &contributors, &tx, &rx);
        (void)session_dispute(u->s, dispute);
        op_clear(o);
        return;
    }
}

/* ------------------------------------------------------------- shared state */

/* Memory of a device is here, and is read with functions alone. The second
 * device fails. */
static uint8_t *device_take(void *user, uint64_t size)
{
    return user && size % 3 == 0 ? NULL : malloc(size);
}

static void device_give(void *user, uint8_t *host)
{
    (void)user;
    free(host);
}

static bool device_read(void *user, uint8_t *host, const uint8_t *data,
                        uint64_t size)
{
    memcpy(host, data, size);
    return !user;
}

static const struct state_device devices[2] = {
    {.take = device_take, .give = device_give, .read = device_read},
    {.user = (void *)(uintptr_t)devices,
     .take = device_take,
     .give = device_give,
     .read = device_read}};

/* A tensor: kind (1), pieces (1), and of each how many bytes (4) and the
 * difference between two of them (1). */
static size_t read_tensor(struct fuzz_input *in, uint8_t *to, size_t room)
{
    uint32_t pieces = fuzz_u8(in);
    size_t size = 0;
    uint8_t last = 0;
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t run = fuzz_u32(in);
        uint8_t step = fuzz_u8(in);
        size_t count = run < room - size ? run : room - size;
        for (size_t k = 0; k < count; k++) /* of many at a time */
            to[size + k] = (uint8_t)(last + step * (k + 1));
        last = (uint8_t)(last + step * count);
        size += count;
    }
    return size;
}

/* NULL: there is no such list. Else the memory of its tensors. */
static uint8_t *make_list(struct fuzz_input *in, struct state_list *list,
                          bool is_offer)
{
    struct state_tensor tensors[MEMBER_TENSORS];
    uint32_t count = fuzz_u8(in) % (MEMBER_TENSORS + 1);
    uint8_t *bytes = malloc(MEMBER_LIST_MAX);
    assert(bytes);
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t kind = fuzz_u8(in);
        size_t size = read_tensor(in, bytes + at, MEMBER_LIST_MAX - at);
        tensors[i] = (struct state_tensor){.name = kind & 1 ? "odd" : "t",
                                           .data = bytes + at,
                                           .count = size,
                                           .size = size};
        tensors[i].free = (kind & 2) != 0;
        if (is_offer && kind & 4) tensors[i].device = &devices[kind >> 3 & 1];
        at += size;
    }
    if (is_offer ? state_list_describe(list, tensors, count)
                 : state_list_make(list, tensors, count, 1))
        return bytes;
    free(bytes);
    return NULL;
}

void member_sync(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint64_t revision = fuzz_u64(&in);
    if (u->listed) return;
    u->tensors = make_list(&in, &u->list, false);
    if (!u->tensors) return;
    u->listed = true;
    int result =
        session_sync(u->s, &u->list, r->arg % SYNC_STRATEGY_COUNT, revision);
    if (result == pcclSuccess) return;
    state_list_free(&u->list);
    free(u->tensors);
    u->tensors = NULL;
    u->listed = false;
}

void member_sync_take(struct member *u)
{
    uint64_t revision, tx, rx;
    if (u->s->sync != SYNC_OVER) return;
    (void)session_sync_take(u->s, &revision, &tx, &rx);
    state_list_free(&u->list);
    free(u->tensors);
    u->tensors = NULL;
    u->listed = false;
}

static void forget_offer(struct member *u)
{
    if (u->offered) state_list_free(u->offered);
    free(u->offered);
    free(u->offered_tensors);
    u->offered = NULL;
    u->offered_tensors = NULL;
}

/* What was offered before is read until this call has returned. */
void member_offer(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    struct offer_terms terms = {.revision = fuzz_u64(&in)};
    terms.rate = fuzz_u64(&in);
    terms.share = 1 + (fuzz_u32(&in) - 1) % 1000;
    struct state_list *list = calloc(1, sizeof *list);
    assert(list);
    uint8_t *bytes = make_list(&in, list, true);
    if (bytes && session_offer(u->s, list, &terms) == pcclSuccess) {
        forget_offer(u);
        u->offered = list;
        u->offered_tensors = bytes;
        return;
    }
    if (bytes) state_list_free(list);
    free(bytes);
    free(list);
}

void member_offer_end(struct member *u)
{
    session_offer_end(u->s);
    forget_offer(u);
}

/* ----------------------------------------------------------------- messages */

void member_post(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint64_t to = fuzz_u64(&in);
    size_t head = r->arg;
    if (head > MESSAGE_HEADER_MAX) head = MESSAGE_HEADER_MAX;
    if (head > in.left) head = in.left;
    if (in.left > MESSAGE_MAX) in.left = MESSAGE_MAX;
    (void)message_post(&u->s->messages, to, in.at, head, in.at + head,
                       in.left - head);
}

static void rndv_clear(struct member *u, uint64_t member, uint64_t key)
{
    for (uint32_t i = 0; i < MEMBER_RNDVS; i++) {
        if (!u->rndvs[i].bytes || u->rndvs[i].member != member ||
            u->rndvs[i].key != key)
            continue;
        free(u->rndvs[i].bytes);
        u->rndvs[i].bytes = NULL;
    }
}

void member_event(struct member *u)
{
    struct message_event *event = message_take(&u->s->messages);
    if (!event) return;
    if (event->kind == EVENT_RECEIVED) rndv_clear(u, event->member, event->key);
    message_release(&u->s->messages, event);
}

void member_send_rndv(struct member *u, const struct tape_record *r)
{
    static const uint8_t bytes[RNDV_MAX];
    struct fuzz_input in = {r->bytes, r->size};
    uint64_t key = fuzz_u8(&in) % 4;
    size_t size = fuzz_u32(&in) % (RNDV_MAX + 1);
    if (r->arg & 128) size %= SENT_MAX;
    (void)message_send_rndv(&u->s->messages, r->arg & 127, key, bytes, size);
}

void member_recv_rndv(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint64_t key = fuzz_u8(&in) % 4;
    size_t size = fuzz_u32(&in) % (RNDV_MAX + 1);
    uint64_t from = r->arg & 127;
    uint32_t i = 0;
    if (r->arg & 128) size %= SENT_MAX;
    while (i < MEMBER_RNDVS && u->rndvs[i].bytes) i++;
    if (i == MEMBER_RNDVS) return;
    for (uint32_t k = 0; k < MEMBER_RNDVS; k++)
        if (u->rndvs[k].bytes && u->rndvs[k].member == from &&
            u->rndvs[k].key == key)
            return;
    uint8_t *bytes = malloc(size + 1);
    assert(bytes);
    if (message_recv_rndv(&u->s->messages, from, key, bytes, size) !=
        pcclSuccess) {
        free(bytes);
        return;
    }
    u->rndvs[i].bytes = bytes;
    u->rndvs[i].member = from;
    u->rndvs[i].key = key;
}

void member_cancel(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint64_t key = fuzz_u8(&in) % 4;
    uint64_t member = r->arg & 127;
    if (r->arg & 128) {
        (void)message_cancel_send(&u->s->messages, member, key);
        return;
    }
    if (message_cancel_recv(&u->s->messages, member, key) == pcclSuccess)
        rndv_clear(u, member, key);
}

/* ---------------------------------------------------------------------- end */

void member_calls_end(struct member *u)
{
    member_partials_end(u);
    for (uint32_t i = 0; i < MEMBER_OPS; i++)
        if (u->ops[i].recv) op_clear(&u->ops[i]);
    for (uint32_t i = 0; i < MEMBER_RNDVS; i++) free(u->rndvs[i].bytes);
    if (u->listed) state_list_free(&u->list);
    free(u->tensors);
    forget_offer(u);
}
