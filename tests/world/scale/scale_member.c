/* scale_member.c - the driver of a member, and its program. See scale.h. */
#include "scale.h"

#include "../../../include/pccl.h"
#include "../../../src/ring/engine.h"
#include "../host/hosted.h"
#include "../host/line.h"

#include <stdlib.h>
#include <string.h>

static uint32_t number_of(const struct scale_member *m)
{
    return (uint32_t)(m - scale.members);
}

static uint32_t take_conn(struct scale_member *m, struct scale_stream *st,
                          int side)
{
    uint32_t i = 0;
    while (i < m->conn_room && m->conns[i].stream) i++;
    if (i == m->conn_room) {
        uint32_t room = m->conn_room > 0 ? 2 * m->conn_room : 8;
        m->conns = realloc(m->conns, room * sizeof m->conns[0]);
        SCALE_CHECK(m->conns != NULL);
        memset(m->conns + i, 0, (room - i) * sizeof m->conns[0]);
        m->conn_room = room;
    }
    m->conns[i].stream = st;
    m->conns[i].side = side;
    if (st) st->conn[side] = i;
    return i;
}

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    struct scale_member *m = user;
    struct scale_stream *st =
        scale_connect(number_of(m), 0, (uint32_t)(addr->port - 1));
    return take_conn(m, st, 0);
}

static void on_close(void *user, uint32_t conn)
{
    struct scale_member *m = user;
    struct scale_stream *st = m->conns[conn].stream;
    SCALE_CHECK(st != NULL);
    m->conns[conn].stream = NULL;
    scale_leave(st, m->conns[conn].side);
}

static void to_master(void *user, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct scale_member *m = user;
    if (!m->control) return;
    size_t size = wire_encode(msg, frame);
    SCALE_CHECK(scale_write(m->control, 0, frame, size) == size);
}

void scale_member_begin(uint32_t number)
{
    SCALE_CHECK(number == scale.count && number < scale.room);
    struct scale_member *m = &scale.members[scale.count++];
    m->session = scale_zeros(sizeof *m->session);
    m->tick_at =
        scale.now + PCCL_TIME_OF_TICK(SCALE_DEADLINE) / 128 * (number % 128);
    struct session_config config = {
        .driver = {.user = m, .dial = on_dial, .close = on_close},
        .events = {.user = m, .to_master = to_master},
        .pool_size = 1,
        .deadline = SCALE_DEADLINE,
        .now = scale.now};
    SCALE_CHECK(host_open(m->session, &config));
    m->session->waits.reports = true;
    m->control = scale_connect(number, 0, SCALE_MASTER);
    struct wire_msg hello = {.type = WIRE_HELLO};
    hello.hello.pool = 1;
    hello.hello.join = scale.master->founded;
    hello.hello.self.hint = (int32_t)number;
    hello.hello.self.host = 2 * ((uint64_t)number + 1); /* of its own */
    hello.hello.self.addr = (struct wire_addr){
        .family = 4,
        .ip = {10, 0, (uint8_t)(number >> 8), (uint8_t)number},
        .port = (uint16_t)(number + 1)};
    session_hello(m->session, &hello);
}

void scale_member_kill(uint32_t number)
{
    struct scale_member *m = &scale.members[number];
    for (uint32_t i = 0; i < m->conn_room; i++) {
        if (!m->conns[i].stream) continue;
        scale_leave(m->conns[i].stream, m->conns[i].side);
        m->conns[i].stream = NULL;
    }
    scale_leave(m->control, 0);
    m->control = NULL;
    session_free(m->session);
    free(m->session);
    free(m->conns);
    free(m->result);
    free(m->state);
    m->session = NULL;
    m->conn_room = 0;
    m->conns = NULL;
    m->result = NULL;
    m->state = NULL;
}

void scale_member_dialed(struct scale_stream *st)
{
    uint32_t number = st->party[0];
    struct scale_member *to = &scale.members[st->party[1]];
    if (number == SCALE_NOBODY) return; /* given up */
    struct scale_member *from = &scale.members[number];
    struct engine *e = from->session->engine;
    if (!to->session) {
        engine_dialed(e, st->conn[0], false);
        return;
    }
    SCALE_CHECK(engine_accepted(to->session->engine, take_conn(to, st, 1)));
    engine_measured(e, st->conn[0], PCCL_MS / 10);
    engine_dialed(e, st->conn[0], true);
    scale_wake(number, NULL);
    scale_wake(st->party[1], NULL);
}

/* ------------------------------------------------------------------- bytes */

static bool control_read(struct scale_member *m)
{
    struct net_pipe *p = &m->control->pipe[1];
    size_t size = host_hear(m->session, p->bytes + p->first, p->count);
    p->first += size;
    p->count -= size;
    SCALE_CHECK(!p->ended);
    if (size > 0) scale_was_read(m->control, 0);
    return size > 0;
}

static size_t get(void *user, uint32_t conn, uint8_t *to, size_t room)
{
    const struct scale_member *m = user;
    struct scale_stream *st = m->conns[conn].stream;
    int side = m->conns[conn].side;
    size_t size = net_read(&st->pipe[!side], to, room);
    scale_was_read(st, side);
    return size;
}

static size_t put(void *user, uint32_t conn, const uint8_t *bytes, size_t size)
{
    const struct scale_member *m = user;
    return scale_write(m->conns[conn].stream, m->conns[conn].side, bytes, size);
}

/* The stream of a connection that is up, or NULL. */
static struct scale_stream *stream_of(const struct scale_member *m,
                                      uint32_t conn)
{
    struct scale_stream *st = m->conns[conn].stream;
    return st && !st->dials ? st : NULL;
}

static bool conn_read(struct scale_member *m, uint32_t conn)
{
    struct links *n = m->session->links;
    const struct scale_stream *st;
    bool any = false;
    while ((st = stream_of(m, conn)) != NULL) {
        const struct net_pipe *p = &st->pipe[!m->conns[conn].side];
        if (p->count > 0) {
            if (line_receive(n, conn, get, m) == 0) return any;
            SCALE_CHECK(!conn_is_free(n, conn));
            any = true;
            continue;
        }
        if (!p->ended) {
            conn_rx_dry(n, conn);
            return any;
        }
        on_close(m, conn);
        conn_closed(n, conn);
        return true;
    }
    return any;
}

static bool conn_write(struct scale_member *m, uint32_t conn)
{
    struct links *n = m->session->links;
    bool any = false;
    while (stream_of(m, conn) && conn_may_send(n, conn)) {
        if (line_send(n, conn, put, m) == 0) break;
        any = true;
    }
    return any;
}

/* ----------------------------------------------------------------- program */

void scale_member_vote(uint32_t number)
{
    struct scale_member *m = &scale.members[number];
    m->call = CALL_VOTE;
    m->done = false;
    SCALE_CHECK(session_vote(m->session, VOTE_UPDATE) == pcclSuccess);
    scale_wake(number, NULL);
}

/* A sum of bytes that are 1, or with none of them a barrier. */
void scale_member_launch(uint32_t number, size_t bytes)
{
    struct scale_member *m = &scale.members[number];
    struct op_request r = {.plan = {.coll = COLL_BARRIER}, .call.digest = 1};
    free(m->result);
    m->result = bytes > 0 ? scale_zeros(bytes) : NULL;
    if (bytes > 0) {
        r.plan = (struct plan_request){
            .coll = COLL_ALLREDUCE, .count = bytes / 8, .element = 8};
        r.call.dtype = DTYPE_U64;
        r.call.redop = REDOP_SUM;
        r.call.sendbuf = scale.input;
        r.call.recvbuf = m->result;
    }
    m->call = CALL_OP;
    m->done = false;
    m->result_size = bytes;
    m->ended = session_launch(m->session, &r, 0, &m->op);
    if (m->ended != pcclSuccess) {
        m->op = NULL;
        m->done = true;
        m->call = CALL_NONE;
    }
    scale_wake(number, NULL);
}

void scale_member_sync(uint32_t number, size_t bytes)
{
    struct scale_member *m = &scale.members[number];
    bool first = m->state == NULL;
    if (first) m->state = scale_zeros(bytes + 1);
    if (first && scale.synced == 0) memset(m->state, 1, bytes);
    struct state_tensor tensor = {.name = "state",
                                  .data = m->state,
                                  .count = bytes,
                                  .size = bytes,
                                  .dtype = DTYPE_U8};
    m->result_size = bytes;
    SCALE_CHECK(state_list_make(&m->list, &tensor, 1, 1));
    m->call = CALL_SYNC;
    m->done = false;
    SCALE_CHECK(session_sync(m->session, &m->list, SYNC_ENFORCE_POPULAR,
                             scale.synced + 1) == pcclSuccess);
    scale_wake(number, NULL);
}

static void take_sync(struct scale_member *m)
{
    uint64_t revision, tx, rx;
    if (m->session->sync != SYNC_OVER) return;
    m->ended = session_sync_take(m->session, &revision, &tx, &rx);
    state_list_free(&m->list);
    m->call = CALL_NONE;
    m->done = true;
    scale.fetched += rx;
    for (size_t i = 0; i < m->result_size; i += 1 + i / 8)
        SCALE_CHECK(m->state[i] == 1);
}

static void take(struct scale_member *m)
{
    uint32_t contributors;
    uint64_t tx, rx;
    if (!op_is_done(m->op)) return;
    m->ended = session_take(m->session, m->op, &contributors, &tx, &rx);
    m->op = NULL;
    m->call = CALL_NONE;
    m->done = true;
    if (m->ended != pcclSuccess || !m->result) return;
    const uint64_t *out = (const uint64_t *)(const void *)m->result;
    for (size_t i = 0; i < m->result_size / 8; i += 1 + i / 8)
        SCALE_CHECK(out[i] == scale.input[i] * contributors);
    scale.sums++;
    free(m->result);
    m->result = NULL;
}

static void program(struct scale_member *m)
{
    struct session *s = m->session;
    if (m->call == CALL_OP) take(m);
    if (m->call == CALL_SYNC) take_sync(m);
    if (m->call == CALL_VOTE && s->votes[VOTE_UPDATE] == VOTE_ANSWERED) {
        s->votes[VOTE_UPDATE] = VOTE_IDLE;
        m->call = CALL_NONE;
        m->done = true;
    }
}

void scale_member_turn(uint32_t number)
{
    struct scale_member *m = &scale.members[number];
    bool any = true;
    while (any && m->session) {
        any = control_read(m);
        for (uint32_t i = 0; i < m->conn_room; i++) any |= conn_read(m, i);
        session_settle(m->session);
        program(m);
        for (uint32_t i = 0; i < m->conn_room; i++) any |= conn_write(m, i);
    }
}

void scale_member_tick(uint32_t number)
{
    struct scale_member *m = &scale.members[number];
    m->tick_at = scale.now + PCCL_TIME_OF_TICK(SCALE_DEADLINE);
    session_tick(m->session, scale.now);
    scale_wake(number, NULL);
}
