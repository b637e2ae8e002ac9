/* conn.c - one connection: bytes to frames and back. See engine.h. */
#include "../ring/op.h"

#include "../base/cursor.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t filler[64 * 1024];

static void hello_body(struct cursor *c, struct wire_key *key, uint64_t *from,
                       uint64_t *to)
{
    cursor_u64(c, &key->word[0]);
    cursor_u64(c, &key->word[1]);
    cursor_u64(c, from);
    cursor_u64(c, to);
}

bool engine_accepted(struct engine *e, uint32_t number)
{
    assert(number < CONNS_MAX);
    if (!e->links.conns[number])
        e->links.conns[number] = calloc(1, sizeof *e->links.conns[number]);
    struct conn *c = e->links.conns[number];
    if (!c) return false;
    assert(c->state == CONN_FREE);
    uint8_t *scratch = c->scratch;
    memset(c, 0, sizeof *c);
    c->scratch = scratch;
    c->state = CONN_ACCEPTED;
    c->last_recv = c->last_sent = e->links.now;
    if (number >= e->links.conn_end) e->links.conn_end = number + 1;
    return true;
}

void conn_dirty(struct engine *e, uint32_t number)
{
    e->links.dirty[number / 64] |= (uint64_t)1 << (number % 64);
}

/* Rule L1: who calls offers memory to a member of the same host. */
static void offer_memory(struct engine *e, uint32_t number, struct frame *f)
{
    struct conn *c = e->links.conns[number];
    uint64_t host = c->peer ? c->peer->host : c->link->host;
    if (!e->out.share || host != e->links.host) return;
    struct channel_offer offer;
    c->offered = e->out.share(e->out.user, number, &offer);
    if (!c->offered) return;
    f->flags |= FLAG_SHARE;
    f->seq = offer.size;
    f->tag = offer.nonce;
    f->digest = (uint64_t)offer.pid << 32 | offer.fd;
}

/* The other end's HELLO is here and right. */
static void settle_memory(struct engine *e, uint32_t number, bool dialed)
{
    struct conn *c = e->links.conns[number];
    const struct frame *f = &c->rx;
    bool share = (f->flags & FLAG_SHARE) != 0;
    if (dialed && c->offered) {
        if (share) c->channel = c->offered;
        c->offered = NULL;
        e->out.shared(e->out.user, number, share);
    } else if (!dialed && share && e->out.join) {
        struct channel_offer offer = {.pid = (uint32_t)(f->digest >> 32),
                                      .fd = (uint32_t)f->digest,
                                      .size = f->seq,
                                      .nonce = f->tag};
        c->channel = e->out.join(e->out.user, number, &offer);
    }
}

static void queue_hello(struct engine *e, uint32_t number)
{
    struct conn *c = e->links.conns[number];
    struct frame f = {.type = FRAME_HELLO, .size = FRAME_HELLO_SIZE};
    if (c->peer) message_hello(c->peer, &f);
    if (!c->peer) f.index = c->link->generation;
    if (c->state == CONN_DIALED) offer_memory(e, number, &f);
    if (c->channel) f.flags |= FLAG_SHARE;
    frame_encode(&f, c->tx_head);
    struct cursor body = {.out = c->tx_head + FRAME_SIZE,
                          .left = FRAME_HELLO_SIZE};
    struct wire_key key = e->links.key;
    uint64_t self = e->links.self;
    uint64_t to = c->peer ? c->peer->id : c->link->id;
    hello_body(&body, &key, &self, &to);
    c->tx_head_size = FRAME_SIZE + FRAME_HELLO_SIZE;
    c->tx_head_done = 0;
    c->greets = true;
    conn_dirty(e, number);
}

void engine_measured(struct engine *e, uint32_t number, pccl_ns rtt)
{
    const struct conn *c = e->links.conns[number];
    if (rtt >= RTT_HIGH) e->links.high_rtt = true;
    if (c->state != CONN_DIALED || !c->link) return;
    if (c->link->rtt == 0 || rtt < c->link->rtt) c->link->rtt = rtt;
}

void engine_dialed(struct engine *e, uint32_t number, bool success)
{
    struct conn *c = e->links.conns[number];
    assert(c && c->state == CONN_DIALED);
    if (success) {
        queue_hello(e, number);
        return;
    }
    e->out.close(e->out.user, number);
    engine_closed(e, number);
}

static void drop_stage(struct conn *c)
{
    if (c->tx_stage) c->tx_stage->used = false;
    c->tx_stage = NULL;
}

/* `answered`: the other end may have taken the call and sent data already. */
static void report_broken(struct engine *e, struct link *l, bool others,
                          bool dialed, bool answered)
{
    const struct op *op = NULL;
    if (!op_uses_link(e, l, &op)) return;
    if (dialed && others && !answered) return; /* one more had been nice */
    e->out.fault(e->out.user,
                 dialed && !others ? FAULT_UNREACHABLE : FAULT_BROKEN, op,
                 l->id);
}

/* Half an early frame is none. */
static void drop_half_unexpected(struct engine *e, struct conn *c,
                                 struct link *l)
{
    if (!c->rx_unexpected) return;
    struct unexpected **slot = &l->unexpected;
    while (*slot && *slot != c->rx_unexpected) slot = &(*slot)->next;
    assert(*slot);
    *slot = c->rx_unexpected->next;
    l->unexpected_end = &l->unexpected;
    while (*l->unexpected_end) l->unexpected_end = &(*l->unexpected_end)->next;
    l->unexpected_count--;
    l->unexpected_bytes -= c->rx_unexpected->frame.size;
    pool_give(&e->links.pool, c->rx_unexpected);
    c->rx_unexpected = NULL;
}

static void let_go(struct engine *e, struct conn *c)
{
    struct link *l = c->link;
    if (l) drop_half_unexpected(e, c, l);
    if (l && c->state == CONN_DIALED) l->dialing--;
    if (l && c->state == CONN_OPEN) l->open--;
    c->state = CONN_FREE;
    c->link = NULL;
    drop_stage(c);
    c->channel = c->offered = NULL;
    c->region = (struct conn_region){0};
    e->fast.known = false;
}

/* Rule R6: what the other end has sent on a connection that is lost, or sends
 * before it hears of it, is missed only if nothing else of the link works. */
static void close_rest(struct engine *e, const struct link *l)
{
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        struct conn *c = e->links.conns[i];
        if (!c || c->state == CONN_FREE || c->link != l) continue;
        e->out.close(e->out.user, i);
        let_go(e, c);
    }
}

void engine_closed(struct engine *e, uint32_t number)
{
    struct conn *c = e->links.conns[number];
    if (!c || c->state == CONN_FREE) return;
    struct link *l = c->link;
    bool was_open = c->state == CONN_OPEN;
    bool dialed = c->state == CONN_DIALED;
    bool answered = c->tx_head_size > 0;
    uint32_t generation = c->generation;
    let_go(e, c);
    if (c->peer) {
        message_closed(e, number, dialed);
        return;
    }
    if (!l) return;
    bool caller = link_dials(e, l);
    bool others = l->open > 0;
    if (dialed) l->failed++;
    if (caller && (was_open || answered)) close_rest(e, l);
    if (caller && l->open + l->dialing == 0)
        l->generation = ++e->links.generation;
    if (!caller && was_open && generation == l->generation) {
        l->generation++; /* its caller comes with a higher one */
        close_rest(e, l);
    }
    state_closed(e, l);
    probe_closed(e, l);
    if (!e->links.frozen) report_broken(e, l, others, dialed, answered);
    /* READY may have been said already, and the other end waits (R3). */
    if (e->links.frozen && l->wanted && was_open) link_dial(e, l);
}

/* ------------------------------------------------------------- receiving */

/* What the caller has closed must carry nothing any more, even if its end has
 * not come here yet (rule R3). */
static bool close_older(struct engine *e, uint32_t number)
{
    struct conn *c = e->links.conns[number];
    struct link *l = c->link;
    c->generation = c->rx.index;
    if (c->generation < l->generation) return false;
    l->generation = c->generation;
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        const struct conn *other = e->links.conns[i];
        if (!other || other->state != CONN_OPEN || other->link != l) continue;
        if (i == number || other->generation == l->generation) continue;
        e->out.close(e->out.user, i);
        engine_closed(e, i);
    }
    return true;
}

static bool open_conn(struct engine *e, uint32_t number)
{
    struct conn *c = e->links.conns[number];
    struct wire_key key = {{0, 0}};
    uint64_t from = 0;
    uint64_t to = 0;
    struct cursor body = {.in = c->hello, .left = FRAME_HELLO_SIZE};
    hello_body(&body, &key, &from, &to);
    e->fast.known = e->messages.mail.known = false;
    if (e->links.self == 0) {
        c->parked = c->stranger =
            true; /* WELCOME and PROPOSE are on their way */
        return true;
    }
    bool ours = key.word[0] == e->links.key.word[0] &&
                key.word[1] == e->links.key.word[1];
    if (!ours || to != e->links.self || from == e->links.self) return false;
    if (c->peer || (c->rx.flags & FLAG_MESSAGES)) {
        bool dialed = c->state == CONN_DIALED;
        if (!message_open(e, number, from)) return false;
        if (c->state != CONN_OPEN) return true;
        settle_memory(e, number, dialed);
        if (!dialed) queue_hello(e, number);
        return true;
    }
    if (c->state == CONN_DIALED) {
        if (from != c->link->id) return false;
        c->link->dialing--;
        settle_memory(e, number, true);
    } else {
        /* Rule R3: a lower id that is not in the view has been removed. */
        struct link *l = link_find(e, from, false);
        bool older = from < e->links.self;
        if (older && e->links.world > 0 && !engine_member(e, from))
            return false;
        if (l ? link_dials(e, l) : !older) {
            c->parked = c->stranger = true; /* perhaps its PROPOSE came first */
            return true;
        }
        c->link = link_find(e, from, true);
        if (!c->link) return false;
        if (!close_older(e, number)) {
            c->link = NULL;
            return false;
        }
        c->state = CONN_OPEN;
        settle_memory(e, number, false);
        queue_hello(e, number);
    }
    c->state = CONN_OPEN;
    c->last_recv = e->links.now;
    c->link->open++;
    c->link->failed = 0;
    link_dirty(e, c->link);
    return true;
}

static struct unexpected *keep_unexpected(struct engine *e, struct link *l,
                                          const struct frame *f)
{
    if (l->unexpected_count >= UNEXPECTED_MAX) return NULL;
    if (l->unexpected_bytes + f->size > EAGER_LINK_MAX + EAGER_MAX) return NULL;
    struct unexpected *k = pool_take(&e->links.pool, sizeof *k + f->size);
    if (!k) return NULL;
    k->next = NULL;
    k->frame = *f;
    k->complete = f->size == 0;
    *l->unexpected_end = k;
    l->unexpected_end = &k->next;
    l->unexpected_count++;
    l->unexpected_bytes += f->size;
    return k;
}

static bool begin_unknown(struct engine *e, struct conn *c)
{
    struct frame *f = &c->rx;
    c->sink = SINK_DISCARD;
    c->rx_to = NULL;
    if (engine_is_past(e, f->tag, f->seq)) return true;
    struct unexpected *k = keep_unexpected(e, c->link, f);
    if (!k) return false; /* more than rule D2 lets anybody send */
    if (f->size == 0) return true;
    c->sink = SINK_UNEXPECTED;
    c->rx_unexpected = k;
    c->rx_to = k->body;
    return true;
}

/* Decides where the body goes. False: the peer breaks the protocol. */
static bool begin_frame(struct engine *e, uint32_t number)
{
    struct conn *c = e->links.conns[number];
    struct frame *f = &c->rx;
    c->rx_left = f->size;
    c->sink = SINK_DISCARD;
    if (f->type == FRAME_HELLO) {
        if (c->state == CONN_OPEN) return false;
        c->sink = SINK_HELLO;
        c->rx_to = c->hello;
        return true;
    }
    if (c->state != CONN_OPEN) return false;
    if (c->peer) return message_begin(e, number);
    if (f->type == FRAME_PING) return true;
    if (f->type == FRAME_REGION) return single_copy_on_region(e, number);
    if (frame_is_single_copy(f) && !c->region.region) return false;
    if (f->type == FRAME_PROBE || f->type == FRAME_ECHO)
        return probe_accept(e, c->link, f);
    if (f->type == FRAME_STATE_GET || f->type == FRAME_STATE_DATA) {
        if (!state_accept(e, c->link, f, &c->rx_to)) return false;
        if (c->rx_to) c->sink = SINK_STATE;
        return true;
    }
    if (f->type >= FRAME_MESSAGE) return false;
    if (f->epoch < e->links.epoch ||
        (f->epoch == e->links.epoch && e->links.frozen))
        return true;
    struct op *op = op_find(e, f->tag, f->seq);
    if (!op) return begin_unknown(e, c);
    if (op->phase == PHASE_DONE) return true;
    struct endpoint *ep = op_endpoint(op, c->link);
    if (!op_agrees(e, op, f, c->link->id)) return true;
    if (!ep) return false;
    if (f->type != FRAME_DATA) {
        op_control(e, op, ep, f);
        return true;
    }
    if (frame_is_single_copy(f)) {
        op_single_copy(e, op, ep, f);
        return true;
    }
    /* Codes are decoded by blocks, which a channel may cut anywhere. */
    bool direct = c->channel && !op->codes;
    if (!direct && !c->scratch)
        c->scratch = pool_take(&e->links.pool, FRAME_BODY_MAX);
    if (!direct && !c->scratch) return false;
    c->rx_to = NULL;
    enum op_accept a =
        op_accept(e, op, ep, f, direct ? NULL : c->scratch, &c->rx_to);
    if (a == ACCEPT_DISCARD) return true;
    c->sink = SINK_OP;
    c->rx_reduces = !c->rx_to;
    c->rx_streams = direct && plan_is_streamed(&op->plan, f->index);
    c->rx_op = op;
    c->rx_ep = ep;
    return true;
}

static bool end_frame(struct engine *e, uint32_t number)
{
    struct conn *c = e->links.conns[number];
    enum conn_sink sink = c->sink;
    struct op *op = c->rx_op;
    c->sink = SINK_NONE;
    c->rx_op = NULL;
    if (c->rx_numbered) {
        message_end(e, number);
        return true;
    }
    if (c->rx.type == FRAME_PROBE) probe_received(e, c->link, &c->rx);
    switch (sink) {
    case SINK_HELLO:
        return open_conn(e, number);
    case SINK_UNEXPECTED: {
        /* The operation may have been launched while the body came in. */
        struct unexpected *k = c->rx_unexpected;
        c->rx_unexpected = NULL;
        k->complete = true;
        op = op_find(e, k->frame.tag, k->frame.seq);
        if (op) engine_apply_unexpected(e, op, op_endpoint(op, c->link));
        return true;
    }
    case SINK_OP:
        op_received(e, op, c->rx_ep, &c->rx,
                    c->rx_reduces ? NULL : c->rx_to - c->rx.size);
        return true;
    case SINK_STATE:
        state_received(e, c->link, &c->rx);
        return true;
    case SINK_NONE:
    case SINK_DISCARD:
    case SINK_MESSAGE:
        break;
    }
    return true;
}

/* Moves staged bytes into the body; true when the body is complete. */
static bool fill_body(struct conn *c)
{
    uint32_t have = c->staged - c->parsed;
    uint32_t take = have < c->rx_left ? have : c->rx_left;
    if (c->sink != SINK_DISCARD && take > 0) {
        memcpy(c->rx_to, c->stage + c->parsed, take);
        c->rx_to += take;
    }
    c->parsed += take;
    c->rx_left -= take;
    return c->rx_left == 0;
}

static bool parse(struct engine *e, uint32_t number)
{
    struct conn *c = e->links.conns[number];
    for (;;) {
        if (c->sink == SINK_NONE) {
            if (c->staged - c->parsed < FRAME_SIZE) break;
            if (c->stranger || (c->peer && message_full(c->peer))) break;
            if (!frame_decode(c->stage + c->parsed, &c->rx)) return false;
            bool later = c->rx.type != FRAME_HELLO &&
                         c->rx.type != FRAME_PING &&
                         c->rx.epoch > e->links.epoch;
            c->parked = later && c->state == CONN_OPEN && !c->peer;
            if (c->parked) break;
            c->parsed += FRAME_SIZE;
            if (!begin_frame(e, number)) return false;
        }
        if (!fill_body(c)) break;
        if (!end_frame(e, number)) return false;
        if (c->state == CONN_FREE) return true; /* a fault closed it */
    }
    memmove(c->stage, c->stage + c->parsed, c->staged - c->parsed);
    c->staged -= c->parsed;
    c->parsed = 0;
    return true;
}

size_t engine_rx_window(struct engine *e, uint32_t number, uint8_t **to)
{
    struct conn *c = e->links.conns[number];
    if (!c || c->state == CONN_FREE || c->parked) return 0;
    if (c->peer && c->sink == SINK_NONE && message_full(c->peer)) return 0;
    if (c->sink == SINK_NONE || c->staged > 0) {
        *to = c->stage + c->staged;
        /* What follows a HELLO may come another way; and what comes through a
         * channel goes to its place at once. */
        if (c->state != CONN_OPEN || c->channel) return FRAME_SIZE - c->staged;
        return STAGE_SIZE - c->staged;
    }
    *to = c->rx_to;
    if (c->sink != SINK_DISCARD) return c->rx_left;
    *to = e->links.trash;
    return c->rx_left < sizeof e->links.trash ? c->rx_left
                                              : sizeof e->links.trash;
}

static bool reject(struct engine *e, uint32_t number)
{
    e->out.close(e->out.user, number);
    engine_closed(e, number);
    return false;
}

bool engine_rx(struct engine *e, uint32_t number, size_t size)
{
    struct conn *c = e->links.conns[number];
    /* Who says a HELLO byte by byte has no longer for it. */
    if (c->state == CONN_OPEN) c->last_recv = e->links.now;
    if (c->sink == SINK_NONE || c->staged > 0) {
        c->staged += (uint32_t)size;
        assert(c->staged <= STAGE_SIZE);
    } else {
        assert(size <= c->rx_left);
        if (c->sink != SINK_DISCARD && c->rx_to) c->rx_to += size;
        c->rx_left -= (uint32_t)size;
        if (c->rx_left > 0) return true;
        if (!end_frame(e, number)) return reject(e, number);
        return true;
    }
    return parse(e, number) || reject(e, number);
}

/* A new epoch: frames that were ahead of it can be read now. */
void conn_resume(struct engine *e)
{
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        struct conn *c = e->links.conns[i];
        if (!c || c->state == CONN_FREE || !c->parked) continue;
        bool stranger = c->stranger;
        c->parked = c->stranger = false;
        if ((stranger && !open_conn(e, i)) || !parse(e, i)) (void)reject(e, i);
    }
}

void conn_resume_one(struct engine *e, uint32_t number)
{
    if (!parse(e, number)) (void)reject(e, number);
}

void conn_reject(struct engine *e, uint32_t number)
{
    (void)reject(e, number);
}

void engine_rx_dry(struct engine *e, uint32_t number)
{
    const struct conn *c = e->links.conns[number];
    if (c && c->peer && c->peer->gone) (void)reject(e, number);
}

/* The epoch is closed: what is half received is thrown away. What is half
 * sent goes on: the receiver may not have heard of the flush (rule F2). */
void conn_stop_receiving(struct engine *e, const struct op *op)
{
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        struct conn *c = e->links.conns[i];
        if (!c || c->state == CONN_FREE) continue;
        if (c->sink != SINK_OP || c->rx_op != op) continue;
        c->sink = SINK_DISCARD;
        c->rx_op = NULL;
    }
}

/* The operation's buffers go back to their owner. What is half sent is filled
 * up: by now every receiver has flushed and discards it (rule F2). */
void conn_forget_op(struct engine *e, const struct op *op)
{
    conn_stop_receiving(e, op);
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        struct conn *c = e->links.conns[i];
        if (!c || c->state == CONN_FREE || c->tx_op != op) continue;
        c->tx_op = NULL;
        c->tx_from = NULL;
    }
}

void conn_forget_state(struct engine *e, const struct link *l, bool sending)
{
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        struct conn *c = e->links.conns[i];
        if (!c || c->state == CONN_FREE || (l && c->link != l)) continue;
        if (c->sink == SINK_STATE) c->sink = SINK_DISCARD;
        if (!sending || !c->tx_state) continue;
        c->tx_from = NULL;
        drop_stage(c);
    }
}

/* The buffers change before everybody has flushed, or was removed: nobody may
 * take the rest of a frame for data. */
void conn_cut_sending(struct engine *e, const struct op *op)
{
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        struct conn *c = e->links.conns[i];
        if (c && c->state != CONN_FREE && c->tx_op == op) (void)reject(e, i);
    }
}

/* --------------------------------------------------------------- sending */

static bool next_frame(struct engine *e, struct conn *c)
{
    struct link *l = c->link;
    struct frame f;
    if (c->peer) {
        if (!message_next(e, c, &f)) return false;
    } else if (c->ping) {
        f = (struct frame){.type = FRAME_PING, .epoch = e->links.epoch};
    } else if (state_next_send(e, l, &f, &c->tx_from, &c->tx_stage)) {
        c->tx_state = c->tx_from != NULL;
    } else if (l->control_count > 0) {
        f = l->control[l->control_first];
        l->control_first = (l->control_first + 1) % CONTROL_MAX;
        l->control_count--;
    } else if (single_copy_next_frame(e, c, &f) || probe_next_send(e, l, &f)) {
        c->tx_from = NULL;
    } else if (e->links.frozen ||
               !op_next_send(e, c, &f, &c->tx_from, &c->tx_op, &c->tx_ep)) {
        c->tx_starved = true;
        return false;
    } else {
        if (c->tx_cut && !c->tx_starved) f.flags |= FLAG_FULL;
        c->tx_cut = c->tx_starved = false;
    }
    c->ping = false;
    frame_encode(&f, c->tx_head);
    c->tx_head_size = FRAME_SIZE;
    c->tx_head_done = 0;
    c->tx_left = f.size;
    return true;
}

bool engine_may_send(const struct engine *e, uint32_t number)
{
    return (e->links.dirty[number / 64] >> (number % 64)) & 1;
}

void engine_clear_dirty(struct engine *e, uint32_t number)
{
    e->links.dirty[number / 64] &= ~((uint64_t)1 << (number % 64));
}

uint32_t engine_tx_window(struct engine *e, uint32_t number,
                          struct engine_part parts[2])
{
    struct conn *c = e->links.conns[number];
    if (!c || c->state == CONN_FREE) return 0;
    if (c->tx_head_done == c->tx_head_size && c->tx_left == 0) {
        if (c->state != CONN_OPEN || !next_frame(e, c)) return 0;
    }
    uint32_t count = 0;
    if (c->tx_head_done < c->tx_head_size) {
        parts[count].from = c->tx_head + c->tx_head_done;
        parts[count++].size = c->tx_head_size - c->tx_head_done;
    }
    if (c->tx_left > 0) {
        uint32_t size = c->tx_left;
        if (!c->tx_from && size > sizeof filler) size = sizeof filler;
        parts[count].from = c->tx_from ? c->tx_from : filler;
        parts[count++].size = size;
    }
    return count;
}

void engine_tx(struct engine *e, uint32_t number, size_t size)
{
    struct conn *c = e->links.conns[number];
    c->last_sent = e->links.now;
    uint32_t head = c->tx_head_size - c->tx_head_done;
    if (head > size) head = (uint32_t)size;
    c->tx_head_done += head;
    uint32_t body = (uint32_t)size - head;
    assert(body <= c->tx_left);
    c->tx_left -= body;
    if (c->tx_from) c->tx_from += body;
    if (c->tx_left > 0 || c->tx_head_done < c->tx_head_size) {
        c->tx_cut = true;
        return;
    }
    c->greets = false;
    struct op *op = c->tx_op;
    c->tx_op = NULL;
    c->tx_from = NULL;
    if (c->tx_item) message_sent(c);
    c->tx_state = false;
    drop_stage(c);
    if (op) op_sent(e, op, c->tx_ep);
}
