/* party_member.c - a member: its program, its session, and their driver. */
#include "party.h"

#include "../../../include/pccl.h"
#include "../../../src/ring/engine.h"
#include "../host/hosted.h"
#include "../host/line.h"

#include <stdlib.h>
#include <string.h>

enum { VECTOR_MAX = 64 };

struct slot {
    struct op *op;
    uint32_t epoch, size; /* notified, at the launch */
    uint64_t members;     /* as bits */
    uint64_t send[VECTOR_MAX], recv[VECTOR_MAX];
    bool over; /* it has succeeded */
};

struct member {
    uint32_t number;
    struct session *session;
    bool conns[MEMBER_CONNS_MAX];
    bool started, over, quit, left, voted;
    struct slot slots[MEMBER_OPS_MAX];
    uint32_t notified;
    uint32_t outcome_count;
    struct outcome outcomes[OUTCOMES_MAX];
};

/* ------------------------------------------------------------------- driver */

static void to_master(void *user, const struct wire_msg *msg)
{
    (void)user;
    party_effect(EFFECT_CONTROL, 0, party_encode(msg));
}

static uint32_t take_conn(struct member *m)
{
    for (uint32_t i = 0; i < MEMBER_CONNS_MAX; i++) {
        if (m->conns[i]) continue;
        m->conns[i] = true;
        return i;
    }
    party_fail("too many connections");
}

static uint32_t dial(void *user, const struct wire_addr *addr)
{
    struct member *m = user;
    uint32_t conn = take_conn(m);
    party_effect(EFFECT_DIAL, conn, addr->port - 1u);
    return conn;
}

static void close_conn(void *user, uint32_t conn)
{
    struct member *m = user;
    PARTY_CHECK(conn < MEMBER_CONNS_MAX && m->conns[conn],
                "connection %u is closed twice", conn);
    m->conns[conn] = false;
    party_effect(EFFECT_CLOSE, conn, 0);
}

void *member_new(uint32_t number)
{
    struct member *m = calloc(1, sizeof *m);
    PARTY_CHECK(m, "no memory");
    m->number = number;
    m->session = calloc(1, sizeof *m->session);
    PARTY_CHECK(m->session, "no memory");
    struct session_config config = {
        .driver = {.user = m, .dial = dial, .close = close_conn},
        .events = {.user = m, .to_master = to_master},
        .pool_size = 1,
        .deadline = EXPLORE_DEADLINE,
        .now = party_time(0)};
    PARTY_CHECK(host_open(m->session, &config), "no memory");
    struct engine *e = m->session->engine;
    e->links.fill_size = 8;
    if (party_config.algorithm)
        PARTY_CHECK(engine_force(e, party_config.algorithm),
                    "no such algorithm");
    return m;
}

static void start(struct member *m)
{
    struct wire_msg hello = {.type = WIRE_HELLO};
    hello.hello.pool = 1;
    hello.hello.self.hint = (int32_t)m->number;
    hello.hello.self.addr.family = 4;
    hello.hello.self.addr.port = (uint16_t)(m->number + 1);
    session_hello(m->session, &hello);
}

/* Bytes go where the links want them. What they do not want now stays. */
static void feed(struct member *m, uint32_t conn, uint32_t message)
{
    static uint8_t bytes[4096];
    size_t size;
    const void *from = intern_get(&party_messages, message, &size);
    PARTY_CHECK(size <= sizeof bytes, "a frame of %zu bytes", size);
    memcpy(bytes, from, size);
    size_t done = line_give(m->session->links, conn, bytes, size);
    if (done < size && m->conns[conn])
        party_effect(EFFECT_LEFT, conn,
                     intern_put(&party_messages, bytes + done, size - done));
}

/* Everything that a connection wants to send, frame by frame. */
static void send_frames(struct member *m, uint32_t conn)
{
    struct engine *e = m->session->engine;
    static uint8_t bytes[64 * 1024];
    size_t size = 0;
    while (m->conns[conn] && engine_may_send(e, conn)) {
        struct conn_part parts[2];
        uint32_t count = engine_tx_window(e, conn, parts);
        if (count == 0) engine_clear_dirty(e, conn);
        /* One by one: a frame may find the socket full (FLAG_FULL). */
        for (uint32_t i = 0; i < count; i++) {
            PARTY_CHECK(size + parts[i].size <= sizeof bytes, "too much data");
            memcpy(bytes + size, parts[i].from, parts[i].size);
            size += parts[i].size;
            engine_tx(e, conn, parts[i].size);
        }
    }
    for (size_t at = 0; at < size && m->conns[conn];) {
        struct frame f;
        PARTY_CHECK(size - at >= FRAME_SIZE && frame_decode(bytes + at, &f) &&
                        size - at >= FRAME_SIZE + f.size,
                    "connection %u sends no frame", conn);
        uint32_t message =
            intern_put(&party_messages, bytes + at, FRAME_SIZE + f.size);
        party_effect(EFFECT_DATA, conn, message);
        at += FRAME_SIZE + f.size;
    }
}

/* Zeros what has no effect on anything: the last frame, bytes behind the end of
 * buffers, and connections that are closed. */
static void forget_conn(struct conn *c)
{
    if (c->rx_state == RX_HEADER) {
        free(c->scratch);
        c->scratch = NULL;
    }
    if (c->state == CONN_FREE) {
        uint8_t *scratch = c->scratch;
        memset(c, 0, sizeof *c);
        c->scratch = scratch;
        return;
    }
    memset(c->rx_buffer + c->rx_filled, 0, RX_BUFFER_SIZE - c->rx_filled);
    /* Before that, it counts whether a HELLO was sent, and the last frame. */
    if (c->state != CONN_OPEN) return;
    if (c->rx_state == RX_HEADER && !c->parked) {
        memset(&c->rx, 0, sizeof c->rx);
        c->rx_to = NULL;
        c->rx_owner = c->rx_part = NULL;
        c->rx_consume = NULL;
    }
    if (!conn_sent_all(c)) return;
    memset(c->tx_head, 0, sizeof c->tx_head);
    c->tx_head_size = c->tx_head_done = 0;
    c->tx_from = NULL;
    c->tx_client = NULL;
    c->tx_owner = c->tx_part = NULL;
    c->tx_busy = NULL;
}

/* The table of control frames, which is made again when it is needed. */
static void forget_link(struct link *l)
{
    if (l->control_count > 0) return;
    free(l->control);
    l->control = NULL;
    l->control_first = l->control_room = 0;
}

static void forget(struct member *m)
{
    struct engine *e = m->session->engine;
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        if (e->links.conns[i]) forget_conn(e->links.conns[i]);
    }
    for (uint32_t i = 0; i < ARRAY_COUNT(e->links.table); i++) {
        for (struct link *l = e->links.table[i]; l; l = l->next) forget_link(l);
    }
    memset(e->links.trash, 0, 4096);
    for (uint32_t i = 0; i < RESULTS_MAX; i++) {
        if (!e->results[i].bytes)
            memset(&e->results[i], 0, sizeof e->results[i]);
    }
    /* Turns matter between the two queues. */
    if (!e->shorts.first || !e->longs.first) e->turn = 0;
    e->turn %= 4;
}

/* ------------------------------------------------------------------ program */

/* A byte for each member: a sum tells who is in it, and of which launch. */
static uint64_t contribution(const struct slot *slot, uint32_t op, uint64_t id,
                             uint32_t element)
{
    uint64_t value = (1 + op + element + 5 * slot->epoch) % 251;
    return value << (8 * (id % 8));
}

static void launch(struct member *m, uint32_t k)
{
    struct session *s = m->session;
    struct slot *slot = &m->slots[k];
    const struct view *t = s->notified.view;
    slot->epoch = t->epoch;
    slot->size = t->size;
    slot->members = 0;
    for (uint32_t i = 0; i < t->size; i++)
        slot->members |= (uint64_t)1 << t->members[i].id;
    for (uint32_t i = 0; i < party_config.count; i++) {
        slot->send[i] = contribution(slot, k, s->id, i);
        slot->recv[i] = 0;
    }
    /* Every second operation is in place. */
    uint64_t *to = k % 2 ? slot->send : slot->recv;
    bool tags = party_config.mode == MODE_CONCURRENT || party_config.odd;
    struct op_request r = {.call.tag = tags ? k : 0,
                           .plan = {.coll = COLL_ALLREDUCE,
                                    .count = party_config.count,
                                    .element = 8},
                           .call.dtype = DTYPE_U64,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = slot->send,
                           .call.recvbuf = to,
                           .call.digest = 1 + k};
    int result = session_launch(s, &r, 0, &slot->op);
    PARTY_CHECK(result == pcclSuccess || s->state == SESSION_GONE,
                "launch of operation %u: result %d", k, result);
    if (result != pcclSuccess) slot->op = NULL;
}

/* C5 and C6: the sum of exactly the members that the program knew. C2: any
 * other outcome leaves the input as it was. */
static void check_buffers(const struct member *m, uint32_t k, int result,
                          uint32_t contributors)
{
    const struct slot *slot = &m->slots[k];
    const uint64_t *to = k % 2 ? slot->send : slot->recv;
    bool success = result == pcclSuccess;
    PARTY_CHECK(!success || contributors == slot->size,
                "C5: operation %u has %u contributors, not %u", k, contributors,
                slot->size);
    for (uint32_t i = 0; i < party_config.count; i++) {
        uint64_t sum = 0, own = contribution(slot, k, m->session->id, i);
        for (uint64_t id = 0; id < 64; id++) {
            if (slot->members >> id & 1) sum += contribution(slot, k, id, i);
        }
        if (party_config.broken && k + 1 == party_config.ops) sum++;
        PARTY_CHECK(!success || to[i] == sum,
                    "C6: operation %u element %u is %llx, not %llx", k, i,
                    (unsigned long long)to[i], (unsigned long long)sum);
        PARTY_CHECK(slot->send[i] == own || (success && k % 2),
                    "C2: the input of operation %u has changed", k);
    }
}

static void check_result(const struct member *m, uint32_t k, int result)
{
    bool gone = m->session->state == SESSION_GONE;
    bool known =
        result == pcclSuccess || result == pcclRankConnectionLost ||
        (result == pcclRankConnectionFailed && party_config.unsteady) ||
        (result == pcclMasterConnectionFailed && gone) ||
        (result == pcclInvalidUsage && party_config.odd && k == 0);
    PARTY_CHECK(known, "operation %u ends with result %d", k, result);
    PARTY_CHECK(result != pcclRankConnectionLost || gone ||
                    m->session->notified.view->epoch > m->slots[k].epoch,
                "T2: operation %u is lost, and the view is the same", k);
}

static bool take(struct member *m, uint32_t k)
{
    struct slot *slot = &m->slots[k];
    struct session *s = m->session;
    if (!slot->op || !op_is_done(slot->op)) return false;
    uint32_t contributors;
    uint64_t tx, rx;
    int result = session_take(s, slot->op, &contributors, &tx, &rx);
    slot->op = NULL;
    check_result(m, k, result);
    check_buffers(m, k, result, contributors);
    PARTY_CHECK(m->outcome_count < OUTCOMES_MAX, "too many outcomes");
    m->outcomes[m->outcome_count++] = (struct outcome){
        .op = (uint8_t)k,
        .contributors = result == pcclSuccess ? (uint8_t)contributors : 0,
        .result = (uint16_t)result,
        .epoch = slot->epoch,
        .value = result == pcclSuccess ? slot->members : 0,
    };
    slot->over = result == pcclSuccess || result == pcclInvalidUsage;
    if (result == pcclRankConnectionFailed) m->over = true; /* gives up */
    memset(slot->send, 0, sizeof slot->send);
    memset(slot->recv, 0, sizeof slot->recv);
    m->notified = s->notified.view->epoch;
    return true;
}

static void quit(struct member *m)
{
    m->over = m->quit = true;
    party_effect(EFFECT_QUIT, 0, 0);
}

/* The last calls of a program: an update, and to leave. */
static void end_program(struct member *m)
{
    struct session *s = m->session;
    if (party_config.updates && !m->voted) {
        m->voted = true;
        int result = session_vote(s, VOTE_UPDATE);
        PARTY_CHECK(result == pcclSuccess || s->state == SESSION_GONE,
                    "vote: result %d", result);
        return;
    }
    if (m->voted && s->votes[VOTE_UPDATE] == VOTE_WAITING) return;
    if (m->voted && s->votes[VOTE_UPDATE] == VOTE_ANSWERED) {
        PARTY_CHECK(s->answers[VOTE_UPDATE] != 0xff || party_config.unsteady,
                    "V: the update is refused");
        s->votes[VOTE_UPDATE] = VOTE_IDLE;
        m->notified = s->notified.view->epoch;
    }
    m->over = true;
}

static void check_notified(const struct member *m)
{
    const struct session *s = m->session;
    bool voting = s->votes[VOTE_UPDATE] != VOTE_IDLE;
    PARTY_CHECK(s->notified.view->epoch == m->notified || m->voted || voting ||
                    s->state != SESSION_MEMBER,
                "T1: the view changed behind the program's back");
}

/* Member 0 votes instead of its first operation, and is refused as long as
 * another member lives. True: it is in the vote. */
static bool is_odd(struct member *m)
{
    struct session *s = m->session;
    if (!party_config.odd || m->number != 0 || m->slots[0].over) return false;
    if (s->votes[VOTE_UPDATE] == VOTE_IDLE) {
        int result = session_vote(s, VOTE_UPDATE);
        PARTY_CHECK(result == pcclSuccess || s->state == SESSION_GONE,
                    "vote: result %d", result);
        return true;
    }
    if (s->votes[VOTE_UPDATE] == VOTE_WAITING) return true;
    s->votes[VOTE_UPDATE] = VOTE_IDLE;
    m->notified = s->notified.view->epoch;
    bool refused = s->answers[VOTE_UPDATE] == 0xff;
    PARTY_CHECK(refused || s->notified.view->size == 1 || party_config.unsteady,
                "V4: an update of some");
    m->slots[0].over = refused;
    return true;
}

/* One step: one call, or the end of one. */
static void program(struct member *m)
{
    struct session *s = m->session;
    if (s->state == SESSION_GONE && m->started) {
        for (uint32_t k = 0; k < party_config.ops; k++) {
            if (take(m, k)) return;
            PARTY_CHECK(!m->slots[k].op, "an operation of one that is gone");
        }
    }
    if (s->state == SESSION_GONE && !m->quit) {
        quit(m);
        return;
    }
    if (s->state != SESSION_MEMBER || m->quit) return;
    if (!m->started) {
        m->started = true;
        m->notified = s->notified.view->epoch;
    }
    check_notified(m);
    if (m->over && party_config.leaves && !m->left) {
        m->left = true;
        session_leave(s);
    }
    if (m->over) return;
    for (uint32_t k = 0; k < party_config.ops; k++) {
        if (take(m, k)) return;
    }
    if (s->notified.view->size > 1 && is_odd(m)) return;
    for (uint32_t k = 0; k < party_config.ops && s->notified.view->size > 1;
         k++) {
        struct slot *slot = &m->slots[k];
        bool launched = slot->op != NULL;
        if (!slot->over && !launched) {
            launch(m, k);
            engine_wait_begins(s->engine);
            return;
        }
        if (launched && party_config.mode == MODE_SEQUENTIAL) return;
    }
    for (uint32_t k = 0; k < party_config.ops; k++) {
        if (m->slots[k].op) return;
    }
    end_program(m);
}

/* ------------------------------------------------------------------- events */

static void handle(struct member *m, const struct event *event)
{
    struct session *s = m->session;
    struct wire_msg msg;
    switch (event->kind) {
    case EVENT_START:
        start(m);
        break;
    case EVENT_CONTROL:
        party_decode(event->number, &msg);
        session_on_message(s, &msg);
        break;
    case EVENT_CONTROL_END:
        session_master_gone(s, "the connection to the master ended");
        break;
    case EVENT_DIALED:
        engine_dialed(s->engine, event->at, event->number > 0);
        break;
    case EVENT_ACCEPT: {
        uint32_t conn = take_conn(m);
        party_effect(EFFECT_ACCEPTED, conn, 0);
        PARTY_CHECK(engine_accepted(s->engine, conn), "no memory");
        break;
    }
    case EVENT_DATA:
        feed(m, event->at, event->number);
        break;
    case EVENT_DATA_END:
        close_conn(m, event->at);
        engine_closed(s->engine, event->at);
        break;
    case EVENT_TICK:
        session_tick(s, party_time(event->number));
        break;
    case EVENT_PROGRAM:
        program(m);
        break;
    case EVENT_LEAVE:
        session_leave(s);
        break;
    case EVENT_CONNECT:
        break;
    }
}

void member_event(void *member, const struct event *event)
{
    struct member *m = member;
    handle(m, event);
    session_settle(m->session);
    for (uint32_t i = 0; i < MEMBER_CONNS_MAX; i++) {
        if (m->conns[i]) send_frames(m, i);
    }
    if (!party_config.remembers) forget(m);
}

void member_facts(const void *member, struct facts *facts)
{
    const struct member *m = member;
    const struct session *s = m->session;
    facts->member = s->state == SESSION_MEMBER;
    facts->gone = s->state == SESSION_GONE;
    facts->left = s->leaving;
    facts->over = m->over;
    facts->waits = s->votes[VOTE_UPDATE] == VOTE_WAITING;
    for (uint32_t k = 0; k < MEMBER_OPS_MAX; k++)
        facts->waits |= m->slots[k].op != NULL;
    facts->epoch = s->view->epoch;
    facts->notified = s->notified.view->epoch;
    facts->id = s->id;
    if (facts->member) {
        facts->view = intern_hash(s->view->ids, s->view->size * 8, 5);
        for (uint32_t i = 0; i < s->view->size; i++)
            facts->live |= (uint64_t)1 << s->view->ids[i];
    }
    facts->outcome_count = m->outcome_count;
    memcpy(facts->outcomes, m->outcomes, sizeof facts->outcomes);
}
