/* fuzz_gate.c - the connections of the coordinator: bytes of anybody in any
 * pieces, ends that read slowly, crowds, and connections that it relays. What
 * one end of a relayed pair sends is what the other one gets, and in the end
 * nothing is left. */
#include "../../src/master/server/switchboard.h"
#include "fuzz.h"
#include "sparse.h"

#include <assert.h>

enum { ENDS = 12, PIECE_MAX = 6000 };

/* The other end of a connection. */
struct end {
    struct master_conn *c; /* NULL: free */
    size_t reads;          /* bytes that it takes now */
    bool broken, finished;
    uint32_t sent, got; /* bytes of a relayed stream */
};

struct gate {
    struct master *m;
    struct switchboard *b;
    struct end ends[ENDS];
    pccl_ns now;
};

static struct sparse master_memory, board_memory;

/* ------------------------------------------------------------- the outside */

static void send_effect(void *user, const uint32_t *links, uint32_t count,
                        const struct wire_msg *msg)
{
    const struct gate *g = user;
    switchboard_send(g->b, links, count, msg);
}

static void close_effect(void *user, uint32_t link, const char *reason)
{
    const struct gate *g = user;
    assert(reason);
    switchboard_close(g->b, link);
}

static void relay_effect(void *user, uint32_t link, const struct wire_msg *msg)
{
    const struct gate *g = user;
    switchboard_relay(g->b, link, msg);
}

static void status_effect(void *user, uint32_t link, bool json)
{
    (void)user, (void)link, (void)json; /* the answer does not come */
}

static void step(void *user, struct master_event *event)
{
    struct gate *g = user;
    event->now = g->now;
    master_step(g->m, event);
}

static uint8_t byte_at(uint32_t place)
{
    return (uint8_t)(place * 29u + (place >> 8));
}

static enum conn_result flush(void *user, struct master_conn *c)
{
    (void)user;
    struct end *e = c->user;
    struct master_chunk parts[4];
    uint32_t count;
    assert(e->c == c);
    if (e->broken) return CONN_END;
    while ((count = master_conn_parts(c, parts, 4)) > 0) {
        size_t size = 0;
        for (uint32_t i = 0; i < count; i++) size += parts[i].size;
        if (e->reads == 0) return CONN_WAIT;
        if (size > e->reads) size = e->reads;
        for (size_t i = 0; c->relays && i < size; i++)
            assert(parts[0].bytes[i] == byte_at(e->got++));
        e->reads -= size;
        master_conn_sent(c, size);
    }
    return CONN_DONE;
}

static void finish(void *user, struct master_conn *c)
{
    (void)user;
    struct end *e = c->user;
    assert(e->c == c);
    e->finished = true;
}

static void end_effect(void *user, struct master_conn *c)
{
    (void)user;
    struct end *e = c->user;
    assert(e->c == c);
    e->c = NULL;
}

/* ------------------------------------------------------------------- events */

static void give(struct gate *g, struct end *e, const uint8_t *bytes,
                 size_t size, size_t step_size)
{
    while (size > 0 && e->c && !e->c->lost && master_conn_reads(e->c)) {
        size_t room;
        uint8_t *to = master_conn_room(e->c, &room);
        assert(to && room > 0);
        if (room > step_size) room = step_size;
        if (room > size) room = size;
        for (size_t i = 0; i < room; i++)
            to[i] = e->c->relays ? byte_at(e->sent++) : bytes[i];
        switchboard_received(g->b, e->c, room);
        bytes += room;
        size -= room;
    }
    switchboard_turn(g->b);
}

/* As the server does: a full house loses the oldest stranger. */
static void come(struct gate *g, struct end *e)
{
    const struct wire_addr addr = {.family = 4, .port = 1};
    if (e->c) return;
    if (switchboard_is_full(g->b)) {
        struct master_conn *c = switchboard_stranger(g->b);
        if (c) switchboard_lose(g->b, c, "made room");
        switchboard_turn(g->b);
        if (switchboard_is_full(g->b)) return;
    }
    *e = (struct end){.reads = 0};
    e->c = switchboard_accept(g->b, &addr, e);
    assert(e->c);
    switchboard_turn(g->b);
}

static void fill(const struct gate *g, struct fuzz_input *in,
                 struct wire_msg *msg)
{
    static const enum wire_type types[] = {
        WIRE_HELLO,      WIRE_RELAY,      WIRE_RELAY,
        WIRE_OFFERS_GET, WIRE_STATUS_GET, WIRE_HEARTBEAT,
        WIRE_READY,      WIRE_LEAVE,      WIRE_SAMPLES};
    uint8_t bits = fuzz_u8(in);
    msg->type = types[fuzz_below(in, ARRAY_COUNT(types))];
    msg->round = g->m->groups[0].round;
    msg->epoch = g->m->groups[0].epoch;
    if (msg->type == WIRE_HELLO) msg->hello.self.host = 2 + bits;
    if (msg->type == WIRE_SAMPLES) msg->samples.count = bits;
    if (msg->type != WIRE_RELAY) return;
    msg->relay.key = g->m->key;
    msg->relay.listens = bits & 1;
    msg->relay.from = bits & 1 ? 1 : 2;
    msg->relay.to = bits & 1 ? 2 : 1;
    if (bits > 250) msg->relay.from = bits;
}

/* A message in pieces. While it comes, the coordinator relays a pair: how it
 * comes to do so is fuzz_master's matter. */
static void say(struct gate *g, struct end *e, struct fuzz_input *in)
{
    static uint8_t bytes[WIRE_FRAME_MAX];
    struct master_group *group = &g->m->groups[0];
    struct wire_msg msg = {.round = 0};
    uint8_t step_size = fuzz_u8(in);
    fill(g, in, &msg);
    size_t size = wire_encode(&msg, bytes);
    uint32_t edges = group->edge_count, groups = g->m->group_count;
    struct master_edge before = group->edges[0];
    if (msg.type == WIRE_RELAY && edges == 0 && groups < 2) {
        group->edges[0] = (struct master_edge){.a = 1, .b = 2, .relayed = true};
        group->edge_count = 1;
        g->m->group_list[0] = 0;
        g->m->group_count = 1;
    }
    /* In one step: nothing else happens meanwhile. */
    if (msg.type == WIRE_RELAY) step_size = 0;
    give(g, e, bytes, size, step_size > 0 ? step_size : SIZE_MAX);
    if (msg.type == WIRE_RELAY && edges == 0 && groups < 2) {
        group->edges[0] = before;
        group->edge_count = edges;
        g->m->group_count = groups;
    }
}

static void pass(struct gate *g, struct fuzz_input *in)
{
    struct master_event tick = {.type = MASTER_TICK};
    g->now += fuzz_u32(in) % (300 * PCCL_MS);
    step(g, &tick);
    switchboard_linger(g->b, g->now);
    switchboard_turn(g->b);
    assert(switchboard_next_linger(g->b) > g->now);
}

static void play(struct gate *g, struct fuzz_input *in)
{
    static uint8_t raw[PIECE_MAX];
    uint8_t what = fuzz_u8(in);
    struct end *e = &g->ends[fuzz_u8(in) % ENDS];
    size_t size = fuzz_u16(in);
    switch (what % 8) {
    case 0:
        come(g, e);
        return;
    case 1:
    case 2:
        say(g, e, in);
        return;
    case 3:
        if (size > sizeof raw) size %= sizeof raw;
        memset(raw, 0, size);
        for (size_t i = 0; i < size && i < 32 && in->left > 0; i++)
            raw[i] = fuzz_u8(in);
        give(g, e, raw, size, what < 128 ? SIZE_MAX : 1u + what);
        return;
    case 4:
    case 5:
        e->reads += size;
        e->broken |= what > 250;
        if (e->c) switchboard_touch(g->b, e->c);
        break;
    case 6:
        if (e->c) switchboard_lose(g->b, e->c, "closed by the peer");
        break;
    default:
        pass(g, in);
        return;
    }
    switchboard_turn(g->b);
}

static void begin(struct gate *g, struct fuzz_input *in)
{
    const struct switchboard_output out = {g, step, flush, finish, end_effect};
    struct switchboard_limits limits = {.conns_max = 2 + fuzz_below(in, ENDS)};
    *g = (struct gate){.now = PCCL_S};
    limits.out_frames_max = 1 + fuzz_below(in, 8);
    g->m = sparse_take(&master_memory, sizeof *g->m);
    g->b = sparse_take(&board_memory, sizeof *g->b);
    const struct master_config config = {.out = {.user = g,
                                                 .send = send_effect,
                                                 .close = close_effect,
                                                 .relay = relay_effect,
                                                 .status = status_effect},
                                         .relays = true,
                                         .deadline = 200 * PCCL_MS,
                                         .key = {{1, 2}}};
    master_init(g->m, &config);
    switchboard_init(g->b, g->m, &out, &limits);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct gate g;
    struct fuzz_input in = {bytes, size};
    if (in.left > 1024) in.left = 1024;
    begin(&g, &in);
    while (in.left > 0) play(&g, &in);
    for (uint32_t i = 0; i < ENDS; i++)
        if (g.ends[i].c)
            switchboard_lose(g.b, g.ends[i].c, "closed by the peer");
    switchboard_turn(g.b);
    for (uint32_t i = 0; i < ENDS; i++) assert(!g.ends[i].c);
    assert(g.b->conn_count == 0 && g.b->leg_count == 0);
    assert(master_count(g.m, PEER_FREE) == g.m->link_end);
    switchboard_free(g.b);
    master_free(g.m);
    return 0;
}
