/* member_say.c - what the others say: frames of members and messages of the
 * coordinator that fit what the member under test is doing, but for a quirk now
 * and then. See member.h. */
#include "member.h"

#include "../../src/hash/hash.h"

/* ------------------------------------------------------ frames of operations
 */

static const struct op *some_op(const struct member *u, uint32_t number)
{
    for (uint32_t i = 0; i < MEMBER_OPS; i++) {
        const struct op *op = u->ops[(number + i) % MEMBER_OPS].op;
        if (op) return op;
    }
    return NULL;
}

static const struct endpoint *endpoint_of(const struct op *op,
                                          const struct link *l)
{
    for (uint32_t i = 0; l && i < op->ep_count; i++)
        if (op->eps[i].link == l) return &op->eps[i];
    return NULL;
}

/* The next transfer that has not come, or one of the first. */
static uint32_t next_index(const struct endpoint *ep, uint8_t which)
{
    uint32_t at = 0;
    while (which < 192 && at + 1 < ep->recvs && op_bit_get(ep->came, at)) at++;
    return which < 128 ? at : which % 8;
}

/* The frame that the partner of this connection owes the operation. */
static void of_op(const struct member *u, const struct link *l, struct frame *f,
                  uint8_t which, uint8_t index)
{
    const struct op *op = some_op(u, which);
    f->epoch = u->links->view->epoch;
    if (!op) {
        f->tag = which % 4;
        f->seq = 1;
        f->size = f->type == FRAME_DATA ? index : 0;
        return;
    }
    const struct endpoint *ep = endpoint_of(op, l);
    f->tag = op->r.tag;
    f->scope = op->scope_number;
    f->seq = op->seq;
    f->digest = ep ? ep->rx_digest : op->r.digest;
    f->index = f->type == FRAME_DATA ? 0 : index % 8;
    if (f->type != FRAME_DATA || !ep || ep->recvs == 0) return;
    struct plan_xfer x = {.size = 0};
    f->index = next_index(ep, index);
    if (f->index < ep->recvs) plan_recv(&op->plan, ep->rank, f->index, &x);
    if (!(f->flags & FLAG_SINGLE_COPY) && x.size <= FRAME_BODY_MAX)
        f->size = x.size;
}

/* ------------------------------------------------------- frames of state */

/* The answer to a question under way: what this member's own tensors say. */
static void of_state(const struct member *u, uint64_t from, struct frame *f,
                     uint8_t which)
{
    const struct state_sync *s = &u->s->sync_state;
    f->digest = s->id;
    if (f->type == FRAME_STATE_GET) {
        f->flags = which % (STATE_KIND_COUNT + 1);
        f->seq = which / 8 % 4;
        f->index = which < 128 ? 8u << which / 16 : HASH_BLOCK_SIZE;
        f->tag = which % 16 == 15 ? HASH_BLOCK_SIZE : 0;
        return;
    }
    for (uint32_t i = 0; i < s->flight_end; i++) {
        const struct state_flight *x = &s->flights[i];
        if (!x->used || (x->peer != from && which < 250)) continue;
        f->flags = x->piece.kind;
        f->seq = x->piece.tensor;
        f->tag = x->piece.offset;
        f->index = x->piece.size;
        f->size = x->piece.size;
        if (x->piece.kind != STATE_NAMES) return;
        f->index = f->size = u->list.names_size;
        return;
    }
}

/* Of the receiver's own list: with the digests of STATE set to it, it fits. */
static const uint8_t *state_body(const struct member *u, const struct frame *f)
{
    const struct state_list *l = &u->list;
    if (!u->listed || f->type != FRAME_STATE_DATA) return NULL;
    if (f->flags == STATE_NAMES && f->size <= l->names_size) return l->names;
    if (f->flags == STATE_BYTES && f->seq < l->count &&
        f->tag + f->size <= l->tensors[f->seq].size)
        return l->tensors[f->seq].data + f->tag;
    return NULL;
}

/* ----------------------------------------------------- frames of messages */

static void of_messages(const struct member *u, const struct p2p_link *l,
                        struct frame *f, uint8_t which)
{
    f->epoch = l->first_seq + (which % 4 == 0 ? l->sent : 0) - 1;
    f->seq = l->seq + 1;
    f->tag = which % 4;
    f->index = which / 4 % 4;
    f->digest = which % 16 == 15 ? 1u << 21 : (uint64_t)(which / 16) * 1000;
    for (uint32_t i = 0; i < MEMBER_RNDVS; i++) {
        const struct frame name = {.tag = u->rndvs[i].key,
                                   .index = which / 4 % 4};
        if (!u->rndvs[i].bytes || u->rndvs[i].member != l->id) continue;
        const struct rndv *b =
            p2p_link_find_rndv((struct p2p_link *)(uintptr_t)l, &name);
        if (!b) continue;
        f->tag = name.tag;
        f->digest = b->done;
        uint64_t left = b->size - b->done;
        if (f->type == FRAME_RNDV)
            f->size = left < RNDV_PIECE ? (uint32_t)left : RNDV_PIECE;
    }
    if (f->type == FRAME_MESSAGE) {
        f->index = which % (MESSAGE_HEADER_MAX + 1);
        f->size = f->index + which;
    }
}

/* -------------------------------------------------------- frames of guests */

/* A block of what is offered, which the guest has or not. */
static void of_guest(const struct member *u, struct frame *f, uint8_t which)
{
    const struct state_list *l = u->s->offer.list;
    f->type = which == 255 ? FRAME_PING : FRAME_BLOCK_GET;
    f->flags = 0;
    f->seq = l && l->count > 0 ? which % l->count : 0;
    f->tag = which / 16 % 2 * HASH_BLOCK_SIZE;
    if (!l || f->seq >= l->count) return;
    const struct state_tensor *t = &l->tensors[f->seq];
    if (f->tag >= t->size) f->tag = 0;
    uint64_t left = t->size - f->tag;
    f->index = left < HASH_BLOCK_SIZE ? (uint32_t)left : HASH_BLOCK_SIZE;
    if (which & 64 && f->index > 0)
        hash_blocks(t->data + f->tag, f->index, 0, 1, &f->digest, 1);
}

/* ---------------------------------------------------------------- any frame */

static void send_body(struct member *u, uint32_t conn, const struct frame *f,
                      uint8_t fill, struct fuzz_input *in)
{
    static uint8_t chunk[8192];
    const uint8_t *body = state_body(u, f);
    uint32_t left = f->size;
    if (in->left > 0 && in->left < left) left = (uint32_t)in->left; /* cut */
    memset(chunk, fill, sizeof chunk);
    while (left > 0 && conn < MEMBER_CONNS && u->conns[conn].used) {
        uint32_t part = left < sizeof chunk ? left : (uint32_t)sizeof chunk;
        if (body) memcpy(chunk, body, part);
        if (body) body += part;
        member_receive(u, conn, chunk, part);
        left -= part;
        if (body && !u->listed) return; /* over, and the body with it */
    }
}

static void quirk(struct frame *f, uint8_t bits)
{
    if (bits == 1) f->epoch++;
    if (bits == 2) f->epoch--;
    if (bits == 3) f->seq++;
    if (bits == 4) f->seq--;
    if (bits == 5) f->digest ^= 1;
    if (bits == 6) f->scope ^= 1;
    if (bits == 7) f->size += 4;
    if (bits == 8) f->index++;
    if (bits == 9) f->tag++;
    if (bits == 10 && f->size > 0) f->size--;
    if (bits == 11) f->flags = 0xff;
    if (bits == 12) f->digest = UINT64_MAX;
    if (bits == 13) f->tag = UINT64_MAX;
    if (bits == 14) f->index = UINT32_MAX;
    if (bits == 15) f->size = FRAME_BODY_MAX;
}

void member_say(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint8_t header[FRAME_SIZE];
    uint32_t conn = r->arg;
    if (conn >= MEMBER_CONNS || !u->conns[conn].used) return;
    const struct conn *c = u->links->conns[conn];
    if (!c || c->state != CONN_OPEN) return;
    struct frame f = {.type = fuzz_u8(&in)};
    f.type = (uint8_t)(1 + f.type % (FRAME_TYPE_COUNT - 1));
    uint8_t flags = fuzz_u8(&in);
    f.flags = flags;
    uint8_t odd = fuzz_u8(&in);
    uint8_t which = fuzz_u8(&in);
    uint8_t index = fuzz_u8(&in);
    uint8_t fill = fuzz_u8(&in);
    if (c->guest) {
        of_guest(u, &f, which);
    } else if (c->peer) {
        of_messages(u, c->peer, &f, which);
    } else if (f.type <= FRAME_DONE) {
        of_op(u, c->link, &f, which, index);
    } else if (f.type == FRAME_STATE_GET || f.type == FRAME_STATE_DATA) {
        of_state(u, c->link ? c->link->id : 0, &f, which);
    } else if (f.type == FRAME_PART_GET || f.type == FRAME_PART_DATA) {
        member_partial_frame(u, c->link ? c->link->id : 0, &f, which, &fill);
    } else {
        f.seq = u->links->probe.order.step;
        f.index = f.type == FRAME_ECHO ? u->links->probe.echoes : index;
        f.size = f.type == FRAME_PROBE ? 100u * index : 0;
        f.digest = u->links->probe.received;
        f.tag = which;
        if (f.type == FRAME_REGION) f.seq = REGION_SIZE;
        if (f.type == FRAME_PING && c->link) f.index = c->link->attempt;
    }
    quirk(&f, odd);
    if (f.size > FRAME_BODY_MAX) f.size = FRAME_BODY_MAX;
    frame_encode(&f, header);
    member_receive(u, conn, header, sizeof header);
    send_body(u, conn, &f, fill, &in);
}

/* ---------------------------------------------------------- the fast path */

static void say_one(struct member *u, uint32_t conn, struct frame f,
                    uint8_t odd, struct fuzz_input *in)
{
    uint8_t header[FRAME_SIZE];
    quirk(&f, odd);
    if (f.size > FRAME_BODY_MAX) f.size = FRAME_BODY_MAX;
    frame_encode(&f, header);
    member_receive(u, conn, header, sizeof header);
    send_body(u, conn, &f, fuzz_u8(in), in);
}

static void say_endpoint(struct member *u, uint32_t i, uint8_t odd,
                         struct fuzz_input *in)
{
    const struct fast_path *q = &u->s->engine->fast;
    const struct fast_endpoint *ep = &q->eps[i];
    struct frame f = q->frame;
    if (q->pairs) {
        if (frame_decode(ep->head, &f)) say_one(u, ep->number, f, odd, in);
        return;
    }
    if (!q->tree) {
        f.size = ep->recvs;
        say_one(u, ep->number, f, odd, in);
        return;
    }
    for (uint32_t k = 0; k < ep->frames; k++) {
        struct plan_xfer x;
        plan_recv(&q->plan, plan_partner(&q->plan, i), k, &x);
        f.index = k;
        f.size = x.size;
        say_one(u, ep->number, f, odd, in);
    }
}

/* READY to the witness of a gather (D23c); blocks, words, DONE. */
static void say_spoke(struct member *u, uint32_t i, uint8_t odd,
                      struct fuzz_input *in)
{
    const struct fast_path *q = &u->s->engine->fast;
    const struct view *v = u->links->view;
    const struct fast_endpoint *ep = &q->star.eps[i];
    bool gather = q->r->plan.flow == FLOW_TO_ROOT;
    bool root = q->star.root == v->rank;
    struct frame f = q->frame;
    f.digest = ep->rx_digest;
    if (gather && !root && v->rank == (v->order ? v->order[0] : 0)) {
        f.type = FRAME_READY;
        say_one(u, ep->number, f, odd == 16 ? 9 : 0, in);
    }
    bool done = !gather && (root || q->holds);
    f.type = done ? FRAME_DONE : FRAME_DATA;
    f.index = done;
    f.size = done ? 0 : ep->recvs;
    if (!gather && !done) f.flags = FLAG_CONFIRM;
    if (done && odd == 17) f.flags = FLAG_CLEAN;
    say_one(u, ep->number, f, odd, in);
}

static void say_partner(struct member *u, uint32_t i, uint8_t odd,
                        struct fuzz_input *in)
{
    if (u->s->engine->fast.spoked)
        say_spoke(u, i, odd, in);
    else
        say_endpoint(u, i, odd, in);
}

/* Of all: until the operation needs no more, first what goes up a tree. */
void member_say_fast(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint8_t odd = fuzz_u8(&in);
    if (!u->fast) return;
    const struct fast_path *q = &u->s->engine->fast;
    const struct fast_endpoint *eps = q->spoked ? q->star.eps : q->eps;
    uint32_t count = q->spoked ? q->star.count : q->ep_count;
    if (r->arg < 128) {
        if (count > 0) say_partner(u, r->arg % count, odd, &in);
        return;
    }
    for (int round = 0; u->fast && round < 2; round++) {
        for (uint32_t i = 0; i < count; i++)
            if (!eps[i].body) say_partner(u, i, odd, &in);
        member_poll(u);
    }
}

/* -------------------------------------------------------- the coordinator */

static uint32_t list_ops(const struct member *u, struct fuzz_input *in,
                         struct wire_op *ops)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MEMBER_OPS && count < 8; i++) {
        uint8_t bits = fuzz_u8(in);
        if (!u->ops[i].op && bits < 192) continue;
        ops[count] = (struct wire_op){.tag = bits % 8, .seq = 1};
        if (u->ops[i].op) ops[count] = op_name(u->ops[i].op);
        if (bits % 16 == 15) ops[count].scope = 0;
        ops[count].state = bits % VERDICT_COUNT;
        count++;
    }
    return count;
}

/* The view of the last proposal, without some and with others. */
static void propose(const struct member *u, struct fuzz_input *in,
                    struct wire_msg *msg, uint64_t *ids,
                    struct wire_member *members, uint16_t *order)
{
    const struct view *v = u->s->view;
    uint8_t bits = fuzz_u8(in);
    uint8_t gone = fuzz_u8(in);
    uint8_t added = fuzz_u8(in);
    msg->epoch = v->epoch;
    for (uint32_t i = 0; i < v->size && i < 8; i++)
        if (gone >> i & 1 && (v->ids[i] != u->s->id || bits == 255))
            ids[msg->id_count++] = v->ids[i];
    if (v->size == 0)
        members[msg->member_count++] = (struct wire_member){.id = u->s->id};
    for (uint32_t i = 0; i < added % 4u; i++) {
        members[msg->member_count++] = (struct wire_member){
            .id = v->size > 0 && added / 4 % 8 == 7 ? v->ids[0]
                                                    : 5 + i + added / 16u,
            .host = 2 + 2 * (i & added / 8)};
    }
    msg->view.ring = (bits & 1) == 0;
    msg->view.mesh = (bits & 2) == 0;
    msg->view.update = (bits & 4) != 0;
    msg->view.optimize = (bits & 8) != 0;
    msg->view.survey = (bits & 16) != 0;
    uint32_t size = v->size - msg->id_count + msg->member_count;
    if (bits & 32 && size <= 16) {
        msg->order_count = size;
        for (uint32_t i = 0; i < size; i++)
            order[i] = (uint16_t)((i + bits / 64) % size);
        msg->order = order;
    }
    if (bits & 64 && size <= 16) {
        msg->site_count = size;
        for (uint32_t i = 0; i < size; i++)
            order[16 + i] = (uint16_t)(i * 2 / size + (bits == 127));
        msg->sites = order + 16;
    }
}

static void fill_state(const struct member *u, struct fuzz_input *in,
                       struct wire_msg *msg, uint64_t *ids)
{
    const struct view *v = u->s->view;
    uint8_t bits = fuzz_u8(in);
    uint8_t role = fuzz_u8(in);
    msg->sync.id = u->s->sync_state.id + (u->s->sync_state.id == 0) + bits / 64;
    msg->sync.role = role % SYNC_ROLE_COUNT;
    if (role >= 128) msg->sync.role = SYNC_WAIT + role % 3;
    msg->sync.structure = u->list.structure;
    msg->sync.content = bits & 1 ? u->list.content : bits;
    for (uint32_t i = 0; i < v->size && i < 8; i++)
        if (bits & 32 || v->ids[i] != u->s->id)
            ids[msg->id_count++] = v->ids[i];
    if ((bits & 32) == 0) ids[msg->id_count++] = u->s->id;
    msg->sync.holders = bits >> 1 & 3;
    msg->sync.receivers = bits >> 3 & 3;
}

/* Messages of the rounds. */
static void fill_round(const struct member *u, struct fuzz_input *in,
                       struct wire_msg *msg)
{
    uint8_t bits = fuzz_u8(in);
    const struct op *op = some_op(u, bits);
    struct wire_op name = {.tag = bits % 4, .seq = 1};
    if (op) name = op_name(op);
    switch (msg->type) {
    case WIRE_FLUSH:
        msg->round++;
        msg->flush.disputed = bits & 1;
        msg->flush.op = name;
        msg->flush.pair[0] = bits & 2 ? u->s->id : 1;
        msg->flush.pair[1] = bits & 4 ? u->s->id : 3;
        return;
    case WIRE_DONATE:
    case WIRE_RESULT:
        msg->result.scope = name.scope;
        msg->result.tag = name.tag;
        msg->result.seq = name.seq;
        if (msg->type == WIRE_DONATE) return;
        msg->result.size = op && bits < 192 ? (uint32_t)op_result_size(op) : 3;
        if (msg->result.size > in->left) msg->result.size = (uint32_t)in->left;
        msg->result.bytes = in->at;
        return;
    case WIRE_INSTALL:
        msg->view.update = bits & 1;
        msg->view.optimize = bits & 2;
        if (!u->s->next) return;
        msg->view.ring = u->s->next->ring;
        msg->view.mesh = u->s->next->mesh;
        msg->view.world = u->s->next->size;
        return;
    case WIRE_VERDICT:
        msg->verdict.about = bits % 4;
        msg->verdict.text[0] = bits & 8 ? 'x' : '\0';
        return;
    default:
        return;
    }
}

static void fill_rest(const struct member *u, struct fuzz_input *in,
                      struct wire_msg *msg)
{
    uint8_t bits = fuzz_u8(in);
    switch (msg->type) {
    case WIRE_WELCOME:
        msg->welcome.id = bits < 250 ? MEMBER_SELF : bits;
        if (u->s->id != 0 && bits < 250) msg->welcome.id = u->s->id;
        msg->welcome.deadline_ms = bits < 128 ? 0 : bits;
        return;
    case WIRE_ANSWER:
        msg->vote.kind = bits % VOTE_KIND_COUNT;
        msg->vote.flag = bits & 128 ? 0xff : bits >> 2 & 1;
        return;
    case WIRE_PROBE:
        msg->round = u->links->probe.order.step + 1;
        msg->probe.peer = 1 + bits % 4;
        msg->probe.gives = bits & 4;
        msg->probe.takes = bits & 8;
        msg->probe.bytes = bits & 16 ? 1u << 20 : 600u * (bits & 32);
        msg->probe.time_us = bits & 64 ? 10000 : 1;
        return;
    case WIRE_DIAL_REQUEST:
        msg->call.peer = 1 + bits % 5;
        msg->call.dials = bits / 8;
        msg->call.heard = bits / 32;
        return;
    case WIRE_SAMPLES:
        msg->samples.step = bits % 4;
        msg->samples.count = bits < 128 ? bits : UINT64_MAX - bits;
        msg->samples.reached = bits & 4;
        return;
    default:
        return;
    }
}

void member_master_says(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    struct wire_op ops[MEMBER_OPS];
    uint64_t ids[16] = {0};
    uint16_t order[32];
    struct wire_member members[5];
    struct wire_msg msg = {
        .ops = ops, .ids = ids, .members = members, .order = order};
    static const enum wire_type types[] = {
        WIRE_FLUSH,   WIRE_QUERY,   WIRE_DONATE,       WIRE_PROPOSE,
        WIRE_VERDICT, WIRE_INSTALL, WIRE_STATE,        WIRE_PROBE,
        WIRE_ANSWER,  WIRE_RESULT,  WIRE_DIAL_REQUEST, WIRE_SILENT,
        WIRE_WELCOME, WIRE_EVICT,   WIRE_HEARTBEAT,    WIRE_FLUSH,
        WIRE_PROPOSE, WIRE_INSTALL, WIRE_STATE,        WIRE_WANTED,
        WIRE_SAMPLES};
    if (r->arg >= 192) { /* of partial all-reduces */
        member_partial_order(u, &in);
        return;
    }
    msg.type = types[r->arg % ARRAY_COUNT(types)];
    uint8_t odd = fuzz_u8(&in);
    msg.round = u->s->round + (odd == 1) - (odd == 2);
    msg.epoch = u->s->view->epoch - (odd == 3);
    if (msg.type == WIRE_QUERY || msg.type == WIRE_VERDICT ||
        (msg.type == WIRE_WANTED && odd < 128))
        msg.op_count = odd == 4 ? 0 : list_ops(u, &in, ops);
    if (msg.type == WIRE_PROPOSE) propose(u, &in, &msg, ids, members, order);
    if (msg.type == WIRE_STATE) fill_state(u, &in, &msg, ids);
    fill_round(u, &in, &msg);
    fill_rest(u, &in, &msg);
    if (msg.type == WIRE_SILENT || (msg.type == WIRE_INSTALL && odd > 200)) {
        msg.id_count = 1 + odd % 4u;
        for (uint32_t i = 0; i < msg.id_count; i++) ids[i] = 1 + (odd + i) % 5u;
    }
    member_tell(u, &msg);
}
