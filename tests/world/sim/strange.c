/* strange.c - what no correct member and no TCP does, and what must harm nobody
 * else: frames that come twice, frames that are none, and callers that belong
 * to no run (contract C8). Clocks that run at different speeds. */
#include "faults.h"
#include "witness.h"

#include <string.h>

enum { GARBAGE_MAX = 200 };

/* ------------------------------------------------------------------ frames */

static struct sim_proc *any_proc(struct sim *s)
{
    uint32_t first = sim_pick(s, s->slots);
    for (uint32_t i = 0; i < s->slots; i++) {
        uint32_t slot = (first + i) % s->slots;
        if (sim_lives(s, slot) && !s->procs[slot].frozen)
            return &s->procs[slot];
    }
    return NULL;
}

void strange_stutter(struct sim *s)
{
    struct sim_proc *p = any_proc(s);
    if (!p) return;
    if (sim_pick(s, 4) == 0)
        p->strange.stutters_master = 1;
    else
        p->strange.stutters = 1 + sim_pick(s, 20);
}

void strange_garble(struct sim *s)
{
    struct sim_proc *p = any_proc(s);
    if (!p) return;
    uint32_t which = sim_pick(s, 8);
    if (which == 0)
        p->strange.garbles_master = 1;
    else if (which == 1)
        p->strange.master_garbles = 1;
    else
        p->strange.garbles = 1;
}

/* A header that no decoder may take. */
static void spoil(struct sim *s, uint8_t head[FRAME_SIZE])
{
    static const struct {
        uint8_t at, add;
    } ways[] = {{0, 1}, {1, 7}, {2, FRAME_TYPE_COUNT}, {24, 255}, {47, 1}};
    uint32_t k = sim_pick(s, ARRAY_COUNT(ways));
    head[ways[k].at] = (uint8_t)(head[ways[k].at] + ways[k].add);
    struct frame f;
    if (frame_decode(head, &f)) head[0]++;
}

/* At the beginning of a frame. True: there is nothing more to write. */
bool strange_write(struct sim *s, struct sim_proc *p, uint32_t conn,
                   const struct conn_part parts[2], uint32_t count)
{
    const struct conn *c = p->session->engine->links.conns[conn];
    bool begins = c->tx_head_size == FRAME_SIZE && c->tx_head_done == 0;
    if (!begins || (p->strange.stutters == 0 && p->strange.garbles == 0))
        return false;
    struct net_stream *st = &s->streams[p->conns[conn].stream];
    struct net_pipe *pipe = &st->pipe[p->conns[conn].side];
    size_t body = count > 1 ? parts[1].size : 0;
    size_t room = pipe->limit > pipe->count ? pipe->limit - pipe->count : 0;
    if (pipe->ended || body != c->tx_left || room < FRAME_SIZE + body)
        return false;
    if (p->strange.garbles > 0 && !pipe->spoilt) {
        uint8_t head[FRAME_SIZE];
        memcpy(head, parts[0].from, FRAME_SIZE);
        spoil(s, head);
        p->strange.garbles--;
        pipe->spoilt = true;
        pipe->sound = pipe->count + FRAME_SIZE;
        (void)net_write(pipe, head, FRAME_SIZE);
        engine_tx(p->session->engine, conn, FRAME_SIZE);
        SIM_TRACE(s, "process %u garbles a frame of type %u", p->uid,
                  parts[0].from[2]);
        return true;
    }
    if (p->strange.stutters == 0) return false;
    p->strange.stutters--;
    sim_coverage.stutter++;
    sim_coverage.stutter_data += parts[0].from[2] == FRAME_DATA;
    (void)net_write(pipe, parts[0].from, FRAME_SIZE);
    if (body > 0) (void)net_write(pipe, parts[1].from, body);
    witness_stutters(p, c, parts[0].from);
    SIM_TRACE(s, "process %u sends a frame of type %u twice", p->uid,
              parts[0].from[2]);
    return false;
}

/* Bytes are read: true when a spoilt header is among them. */
bool strange_spoilt(struct net_pipe *pipe, size_t size)
{
    if (!pipe->spoilt || pipe->sound == 0) return false;
    pipe->sound -= size < pipe->sound ? size : pipe->sound;
    return pipe->sound == 0;
}

/* The connection is closed, unless what it has read waits. */
void strange_refused(struct sim *s, const struct sim_proc *p, uint32_t conn,
                     int stream)
{
    const struct conn *c = p->session->engine->links.conns[conn];
    /* A dial that follows at once may have the numbers of what is closed. */
    bool open = p->conns[conn].stream == stream && !s->dialing[stream];
    if (open && (c->parked || c->stranger || c->peer)) return;
    SIM_CHECK(s, !open, "C8: a garbled frame was taken");
    sim_coverage.garbled++;
}

/* A message between a member and the master: how often it is sent, and whether
 * it is spoilt. */
uint32_t strange_message(struct sim *s, int stream, int side, uint8_t *frame)
{
    struct net_stream *st = &s->streams[stream];
    if (st->end[0].proc < 0) return 1;
    struct sim_strange *x = &s->procs[st->end[0].proc].strange;
    uint32_t *garbles = side == 0 ? &x->garbles_master : &x->master_garbles;
    if (*garbles > 0) {
        --*garbles;
        frame[sim_pick(s, 3)] ^= 0xff;
        st->pipe[side].spoilt = true;
        return 1;
    }
    if (side == 1 || x->stutters_master == 0) return 1;
    x->stutters_master--;
    sim_coverage.stutter_master++;
    witness_leaves(s); /* to it, TCP delivers a message once */
    return 2;
}

/* ----------------------------------------------------------------- callers */

static struct sim_caller *free_caller(struct sim *s)
{
    for (uint32_t i = 0; i < SIM_CALLERS_MAX; i++)
        if (s->callers[i].until == 0) return &s->callers[i];
    return NULL;
}

static void say_hello(struct sim *s, int stream)
{
    struct wire_msg hello = {.type = WIRE_HELLO};
    hello.hello.join = true;
    hello.hello.self.hint = -1;
    hello.hello.self.addr.port = UINT16_MAX; /* where nobody listens */
    witness_stranger(s, s->streams[stream].end[1].conn, &hello);
    sim_send_control(s, stream, 0, &hello);
}

static void say_garbage(struct sim *s, struct net_pipe *pipe)
{
    uint8_t bytes[GARBAGE_MAX];
    uint32_t size = 1 + sim_pick(s, GARBAGE_MAX);
    for (uint32_t i = 0; i < size; i++) bytes[i] = (uint8_t)sim_pick(s, 256);
    if (sim_pick(s, 3) == 0) { /* a HELLO with another key */
        struct frame f = {.type = FRAME_HELLO, .size = FRAME_HELLO_SIZE};
        size = FRAME_SIZE + FRAME_HELLO_SIZE;
        frame_encode(&f, bytes);
    }
    (void)net_write(pipe, bytes, size);
}

/* Calls the master, or a member. */
static void call(struct sim *s)
{
    struct sim_caller *c = free_caller(s);
    struct sim_proc *p = any_proc(s);
    if (!c || !p) return;
    bool member = sim_pick(s, 2) == 0;
    int stream = sim_stream_new(s, !member);
    struct net_stream *st = &s->streams[stream];
    uint32_t says = sim_pick(s, 3);
    *c = (struct sim_caller){.stream = stream,
                             .since = s->now,
                             .member = member,
                             .until = s->now +
                                      sim_pick(s, 3 * (uint32_t)SIM_DEADLINE)};
    if (c->until == 0) c->until = 1;
    st->end[0] = (struct net_end){NET_CALLER, 0};
    st->uid[0] = st->uid[1] = UINT32_MAX;
    SIM_TRACE(s, "a stranger calls %s", member ? "a member" : "the master");
    if (member) {
        st->end[1] = (struct net_end){(int)(p - s->procs), NO_CONN};
        st->pending = s->dialed = true;
        c->frozen = s->options.freeze + s->options.starve > 0;
    } else {
        sim_master_accept(s, stream);
    }
    if (says == 1) say_garbage(s, &st->pipe[0]);
    if (says == 2 && !member && !st->pending) say_hello(s, stream);
    sim_coverage.strangers += !member;
    sim_coverage.callers += member;
}

/* In crowds where the master has few connections. */
void strange_call(struct sim *s)
{
    uint32_t count = s->options.narrow > 0 ? 1 + sim_pick(s, 12) : 1;
    while (count-- > 0) call(s);
}

/* Whoever says nothing, or nothing that makes sense, does not keep a
 * connection: a link's time for a member, a deadline for the master. */
static void hang_up(struct sim *s, struct sim_caller *c)
{
    struct net_stream *st = &s->streams[c->stream];
    bool closed = st->end[1].proc == NET_NOBODY || st->pipe[1].ended;
    pccl_ns since = s->now - c->since;
    SIM_CHECK(s, closed || !c->member || c->frozen || since < 2 * SIM_DEADLINE,
              "a stranger keeps a member's connection");
    sim_coverage.hung_up += closed;
    sim_stream_leave(s, c->stream, 0);
    c->until = 0;
}

void strange_turn(struct sim *s)
{
    for (uint32_t i = 0; s->options.strangers > 0 && i < SIM_CALLERS_MAX; i++) {
        struct sim_caller *c = &s->callers[i];
        if (c->until > 0 && (c->until <= s->now || s->healing)) hang_up(s, c);
    }
}

/* ------------------------------------------------------------------ clocks */

enum { CLOCK_SPREAD = 20 }; /* thousandths, to either side */

void strange_clock(struct sim *s, uint64_t who, struct sim_clock *c)
{
    uint64_t h = sim_mix(s->seed, 97, who, 0);
    *c = (struct sim_clock){.began = s->now, .rate = 1000};
    if (!s->options.clocks) {
        c->base = s->now;
        return;
    }
    c->base = (pccl_ns)(h % 1000000) * PCCL_S;
    c->rate += (int32_t)(h >> 40) % (2 * CLOCK_SPREAD + 1) - CLOCK_SPREAD;
    sim_coverage.clocks += c->rate != 1000;
}

pccl_ns strange_now(const struct sim *s, const struct sim_clock *c)
{
    return c->base + (s->now - c->began) * c->rate / 1000;
}
