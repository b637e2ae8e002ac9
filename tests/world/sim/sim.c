/* sim.c - bytes, time and faults. See sim.h. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../host/hosted.h"
#include "averages.h"
#include "election.h"
#include "faults.h"
#include "scarce.h"
#include "witness.h"

/* Where there are more connections, time passes more slowly for each; all the
 * more where those of all pass through one member. */
enum { STREAMS_FEW = 256, STREAMS_RELAYED = 64 };

struct sim_coverage sim_coverage;
uint64_t sim_coverage_algorithms[SIM_ALGORITHMS_MAX];
bool sim_trace;
uint64_t sim_seed;
uint32_t sim_turn;

/* ---------------------------------------------------------------- streams */

/* Of bytes in flight between a process (0) and the master (1). */
static size_t control_limit(const struct sim *s, int side)
{
    return side == 1 && s->options.narrow > 0 ? s->options.narrow
                                              : SIZE_MAX / 2;
}

int sim_stream_new(struct sim *s, bool control)
{
    uint32_t i = 0;
    while (i < NET_STREAMS_MAX && s->streams[i].used) i++;
    SIM_CHECK(s, i < NET_STREAMS_MAX, "too many streams");
    if (i >= s->stream_end) s->stream_end = i + 1;
    struct net_stream *st = &s->streams[i];
    st->used = true;
    st->control = control;
    for (int k = 0; k < 2; k++) {
        if (control) st->pipe[k].open_at = s->master_cut_until;
        size_t span = s->options.pipe_max - s->options.pipe_min;
        st->pipe[k].limit =
            control ? control_limit(s, k)
                    : s->options.pipe_min +
                          sim_mix(s->random, i, (uint64_t)k, 0) % (span + 1);
    }
    return (int)i;
}

/* One end is gone; the other still reads the bytes in flight. */
void sim_stream_leave(struct sim *s, int stream, int side)
{
    struct net_stream *st = &s->streams[stream];
    st->end[side].proc = NET_NOBODY;
    st->pipe[side].ended = true;
    st->pipe[!side].ended = true;
    st->pipe[!side].count = 0;
    if (st->end[!side].proc == NET_NOBODY) {
        net_free(st);
        s->dialing[stream] = false;
    }
}

void sim_send_control(struct sim *s, int stream, int side,
                      const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct net_pipe *p = &s->streams[stream].pipe[side];
    if (p->ended) return;
    size_t size = wire_encode(msg, frame);
    for (uint32_t i = strange_message(s, stream, side, frame); i > 0; i--)
        SIM_CHECK(s, net_write(p, frame, size) == size, "control pipe full");
    if (p->open_at < s->now)
        p->open_at = s->now + sim_pick(s, s->options.delay_max + 1);
}

/* ----------------------------------------------------- messages with master */

size_t sim_chunk(struct sim *s, size_t available)
{
    uint32_t shift = s->options.burst ? 20 : sim_pick(s, 20);
    size_t size = 1 + sim_pick(s, 1u << shift);
    return size < available ? size : available;
}

/* Moves some control bytes of a stream into rx; false: nothing there. */
bool sim_pull_control(struct sim *s, struct net_pipe *from, struct net_pipe *rx)
{
    if (from->count == 0 || from->open_at > s->now) return false;
    rx->limit = SIZE_MAX / 2;
    size_t size = sim_chunk(s, from->count);
    net_write(rx, from->bytes + from->first, size);
    from->first += size;
    from->count -= size;
    return true;
}

enum wire_status sim_next_message(struct net_pipe *rx, struct wire_msg *msg)
{
    static struct wire_store store;
    size_t used = 0;
    if (rx->count == 0) return WIRE_MORE; /* nor is there any memory */
    enum wire_status status =
        wire_decode(rx->bytes + rx->first, rx->count, &store, msg, &used);
    rx->first += used;
    rx->count -= used;
    return status;
}

/* ----------------------------------------------------- a process's driver */

static void proc_to_master(void *user, const struct wire_msg *msg)
{
    struct sim_proc *p = user;
    struct sim *s = p->sim;
    bool muted = msg->type == p->mute || p->mute == WIRE_TYPE_COUNT;
    bool call = msg->type == WIRE_VOTE || msg->type == WIRE_SYNC;
    if (p->mute && muted && msg->round > 0 && !call) {
        witness_mute(p);
        return;
    }
    sim_count_message(msg);
    program_gives(p, msg);
    sim_trace_message(s, "master <-", p->session->id, msg);
    if (p->control < 0) return;
    witness_to_master(p, msg);
    sim_send_control(s, p->control, 0, msg);
}

static uint32_t proc_conn(struct sim_proc *p, int stream, int side)
{
    for (uint32_t i = 0; i < SIM_CONNS_MAX; i++) {
        if (p->conns[i].stream >= 0) continue;
        p->conns[i].stream = stream;
        p->conns[i].side = side;
        p->conns[i].blocked = false;
        return i;
    }
    return NO_CONN;
}

static int slot_of(const struct sim *s, const struct sim_proc *p)
{
    return (int)(p - s->procs);
}

static uint32_t proc_dial(void *user, const struct wire_addr *addr)
{
    struct sim_proc *p = user;
    struct sim *s = p->sim;
    int stream = sim_stream_new(s, false);
    uint32_t conn = proc_conn(p, stream, 0);
    SIM_CHECK(s, conn != NO_CONN, "process %u has too many connections",
              p->uid);
    struct net_stream *st = &s->streams[stream];
    st->end[0] = (struct net_end){slot_of(s, p), conn};
    st->end[1] = (struct net_end){NET_DIALED, addr->port};
    st->uid[0] = p->uid;
    st->uid[1] = addr->port;
    s->dialing[stream] = true;
    s->dial_at[stream] = s->now + sim_pick(s, s->options.delay_max + 1);
    doors_dial(s, stream, addr);
    return conn;
}

static uint32_t proc_dial_master(void *user)
{
    struct sim_proc *p = user;
    struct sim *s = p->sim;
    int stream = sim_stream_new(s, true);
    uint32_t conn = proc_conn(p, stream, 0);
    SIM_CHECK(s, conn != NO_CONN, "process %u has too many connections",
              p->uid);
    struct net_stream *st = &s->streams[stream];
    st->end[0] = (struct net_end){slot_of(s, p), conn};
    st->end[1] = (struct net_end){NET_DIALED, 0};
    st->uid[0] = p->uid;
    s->dialing[stream] = true;
    s->dial_at[stream] = s->now + sim_pick(s, s->options.delay_max + 1);
    return conn;
}

static void proc_close(void *user, uint32_t conn)
{
    struct sim_proc *p = user;
    int stream = p->conns[conn].stream;
    SIM_CHECK(p->sim, stream >= 0, "connection %u closed twice", conn);
    p->conns[conn].stream = -1;
    memory_close(p, conn);
    sim_stream_leave(p->sim, stream, p->conns[conn].side);
}

/* The stream ended. */
static bool conn_lost(struct sim_proc *p, uint32_t conn)
{
    proc_close(p, conn);
    engine_closed(p->session->engine, conn);
    return true;
}

struct sim_proc *sim_proc_start(struct sim *s, bool joiner, int32_t hint,
                                uint32_t group)
{
    uint32_t slot = 0;
    while (slot < s->slots && sim_lives(s, slot)) slot++;
    if (slot == s->slots) return NULL;
    struct sim_proc *p = &s->procs[slot];
    memset(p, 0, sizeof *p);
    sim_turn = 0; /* a turn in which another one ended is over */
    p->sim = s;
    s->live |= 1u << slot;
    p->joiner = joiner;
    p->uid = ++s->uid_last;
    p->group = group;
    p->hint = hint;
    p->tick_at = s->now;
    strange_clock(s, p->uid, &p->clock);
    for (uint32_t i = 0; i < SIM_CONNS_MAX; i++) p->conns[i].stream = -1;
    p->session = scarce_zeros(sizeof *p->session);
    SIM_CHECK(s, p->session != NULL, "no memory");
    struct session_config config = {
        .driver = {p, proc_dial, proc_close, proc_dial_master,
                   .round_trip = sim_round_trip},
        .events = {.user = p, .to_master = proc_to_master},
        .pool_size = s->options.pool,
        .deadline = SIM_DEADLINE,
        .now = strange_now(s, &p->clock)};
    if (s->options.share > 0) memory_outputs(&config.driver);
    memory_exchanges(&config.driver);
    SIM_CHECK(s, host_open(p->session, &config), "no memory");
    p->session->waits.reports = s->options.reports;
    p->session->partial.piece = 64;
    p->session->engine->links.fill_size = s->options.single ? 2 * SIM_HOLE : 8;
    /* Where time counts, a relay is no slower than the pipes are. */
    if (!s->options.single && !s->options.large)
        p->session->engine->links.relay.pipe = 300;
    if (s->options.interleaved) p->session->engine->cached = 0;
    if (s->options.sites) p->session->engine->many = p->uid % 4;
    if (!s->options.lends) p->session->engine->single_copy_world = 0;
    p->session->engine->piece = s->options.piece;
    memory_choose(s, p);
    p->session->engine->tree_width = s->options.tree_width;
    if (s->options.algorithm)
        (void)engine_force(p->session->engine, s->options.algorithm);
    witness_frames(p);
    shared_init(s, p);
    p->control = sim_stream_new(s, true);
    s->streams[p->control].end[0] = (struct net_end){slot_of(s, p), 0};
    s->streams[p->control].joins = p->uid;
    sim_master_accept(s, p->control);
    struct wire_msg hello = {.type = WIRE_HELLO};
    hello.hello.group = group;
    hello.hello.pool = (uint16_t)s->options.pool;
    hello.hello.join = joiner;
    hello.hello.self.hint = hint;
    if (s->options.sites > 0)
        hello.hello.self.host = 2 + 2 * (p->uid % s->options.sites);
    if (s->options.one_host) hello.hello.self.host = sim_host(s);
    hello.hello.self.addr.port = (uint16_t)p->uid;
    doors_announce(s, p->uid, &hello.hello.self.announced);
    fetch_hello(s, p, &hello);
    session_hello(p->session, &hello);
    p->program.progress_at = s->now;
    SIM_TRACE(s, "process %u starts, group %u", p->uid, group);
    return p;
}

void sim_proc_end(struct sim *s, struct sim_proc *p, bool crash)
{
    SIM_TRACE(s, "process %u (id %llu) %s", p->uid,
              (unsigned long long)p->session->id, crash ? "crashes" : "ends");
    sim_coverage.probe_lost += crash && p->session->engine->links.probe.on;
    uint64_t relayed;
    sim_coverage.relayed_lost +=
        crash && links_relays(p->session->links, &relayed) > 0;
    bool shown = p->fast.shown == p->fast.count;
    sim_coverage.fast_crash += crash && p->fast.op && shown;
    sim_coverage.fast_crash_amid += crash && p->fast.op && !shown;
    for (uint32_t i = 0; i < s->stream_end; i++) {
        struct net_stream *st = &s->streams[i];
        for (int side = 0; st->used && side < 2; side++) {
            if (st->end[side].proc != slot_of(s, p)) continue;
            struct net_pipe *out = &st->pipe[side];
            if (crash && out->count > 0)
                net_cut(out, sim_pick(s, (uint32_t)out->count + 1));
            sim_stream_leave(s, (int)i, side);
        }
    }
    witness_over(p, crash);
    program_free(p);
    if (crash) shared_killed(s, p);
    averages_end(p);
    session_free(p->session);
    memory_free(p);
    shared_free(p);
    scarce_free(p->session);
    free(p->rx.bytes);
    s->live &= ~(1u << slot_of(s, p));
}

static bool dial_ends(struct sim *s, struct sim_proc *p, uint32_t conn)
{
    int stream = p->conns[conn].stream;
    if (s->dial_at[stream] > s->now) return false;
    struct net_stream *st = &s->streams[stream];
    /* dropped (doors.c), also once all has healed */
    if (st->end[1].proc == NET_NOBODY && !st->silent) return false;
    if (!sim_passes(s, st->uid[0], st->uid[1]) ||
        !sim_passes(s, st->uid[1], st->uid[0]))
        return false;
    s->dialing[stream] = false;
    if (st->control) {
        sim_master_accept(s, stream);
        engine_measured(p->session->engine, conn, PCCL_MS);
        engine_dialed(p->session->engine, conn, true);
        return true;
    }
    uint32_t port = st->end[1].conn;
    struct sim_proc *to = NULL;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);)
        if (s->procs[i].uid == port) to = &s->procs[i];
    if (st->silent) { /* nobody reads, and nobody hangs up */
        engine_dialed(p->session->engine, conn, true);
        return true;
    }
    bool success = to && !sim_refused(s, p->uid, port);
    if (to && !success) sim_coverage.refused++;
    if (success) st->pending = s->dialed = true;
    st->end[1] = success ? (struct net_end){slot_of(s, to), NO_CONN}
                         : (struct net_end){NET_NOBODY, 0};
    SIM_TRACE(s, "dial %u -> %u: %s", p->uid, port, success ? "up" : "refused");
    sim_coverage.one_way += to && sim_walled(s, p->uid, port);
    sim_coverage.reversed += success && p->uid > port;
    bool distant = port % 4 == 0 && !s->options.single;
    pccl_ns rtt = distant ? RTT_VERY_HIGH : PCCL_MS;
    if (success) engine_measured(p->session->engine, conn, rtt);
    engine_dialed(p->session->engine, conn, success);
    return true;
}

static bool conn_read(struct sim *s, struct sim_proc *p, uint32_t conn)
{
    int stream = p->conns[conn].stream;
    int side = p->conns[conn].side;
    if (stream < 0) return false;
    if (s->dialing[stream]) return dial_ends(s, p, conn);
    struct net_stream *st = &s->streams[stream];
    struct net_pipe *pipe = &st->pipe[!side];
    struct engine *e = p->session->engine;
    bool empty = true;
    bool memory = e->links.conns[conn]->channel; /* no path (rule R7b) */
    bool passes = sim_passes(s, st->uid[!side], p->uid) &&
                  (!pipe->holed || pipe->before > 0);
    if (!memory && !passes) return false;
    if (p->program.stage != STAGE_LAUNCH) engine_wait_begins(e);
    if (memory) {
        if (memory_read(s, p, conn, &empty)) return true;
        if (memory_broken(s, p, conn)) return conn_lost(p, conn);
    }
    if (passes && pipe->open_at > s->now) return false;
    if (!passes || pipe->count == 0) {
        if (empty) engine_rx_dry(e, conn);
        if (!passes) return false;
        if (!pipe->ended || !empty || p->conns[conn].stream < 0) return false;
        return conn_lost(p, conn);
    }
    uint8_t *to = NULL;
    size_t window = engine_rx_window(e, conn, &to);
    if (e->links.conns[conn]->parked) sim_coverage.parked++;
    if (conn_is_relay(&e->links, conn)) {
        sim_coverage.relayed++;
        sim_coverage.relayed_full += window == 0;
    }
    if (window == 0) return false;
    size_t size = sim_chunk(s, window < pipe->count ? window : pipe->count);
    if (pipe->holed && size > pipe->before) size = pipe->before;
    if (pipe->holed) pipe->before -= size;
    net_read(pipe, to, size);
    bool spoilt = strange_spoilt(pipe, size);
    (void)engine_rx(e, conn, size);
    if (spoilt && !conn_is_relay(&e->links, conn))
        strange_refused(s, p, conn, stream);
    return true;
}

static bool conn_write(struct sim *s, struct sim_proc *p, uint32_t conn)
{
    int stream = p->conns[conn].stream;
    if (stream < 0 || s->dialing[stream]) return false;
    struct engine *e = p->session->engine;
    if (!engine_may_send(e, conn) && !p->conns[conn].blocked) return false;
    int side = p->conns[conn].side;
    struct net_stream *st = &s->streams[stream];
    struct net_pipe *pipe = &st->pipe[side];
    struct conn_part parts[2];
    bool begins = conn_sent_all(e->links.conns[conn]);
    uint32_t count = engine_tx_window(e, conn, parts);
    if (begins && count > 0) fetch_watch(s, p, conn);
    if (count == 0) {
        engine_clear_dirty(e, conn);
        p->conns[conn].blocked = false;
        return false;
    }
    if (e->links.conns[conn]->channel && !e->links.conns[conn]->greets)
        return memory_write(s, p, conn);
    if (strange_write(s, p, conn, parts, count)) return true;
    size_t total = parts[0].size + (count > 1 ? parts[1].size : 0);
    size_t want = sim_chunk(s, total);
    if (st->uid[!side] <= SIM_PROCS_MAX && p->uid <= SIM_PROCS_MAX &&
        s->small[p->uid][st->uid[!side]] && total > SIM_HOLE && !pipe->holed) {
        pipe->holed = true;
        pipe->before = pipe->count;
    }
    bool untold = !sim_passes(s, st->uid[!side], p->uid);
    if (pipe->ended && (untold || pipe->deaf_until > s->now)) {
        engine_tx(e, conn, want);
        return true;
    }
    if (pipe->ended) return conn_lost(p, conn);
    size_t head = want < parts[0].size ? want : parts[0].size;
    bool idle = pipe->count == 0;
    size_t done = net_write(pipe, parts[0].from, head);
    if (done == head && want > head)
        done += net_write(pipe, parts[1].from, want - head);
    p->conns[conn].blocked = true; /* until the window is empty */
    if (done == 0) return false;
    if (idle && pipe->open_at < s->now && sim_pick(s, 8) == 0)
        pipe->open_at = s->now + sim_pick(s, s->options.delay_max + 1);
    engine_tx(e, conn, done);
    return true;
}

static bool control_read(struct sim *s, struct sim_proc *p)
{
    if (p->control < 0) return false;
    struct net_pipe *pipe = &s->streams[p->control].pipe[1];
    if (sim_pull_control(s, pipe, &p->rx)) {
        struct wire_msg msg;
        enum wire_status status;
        while ((status = sim_next_message(&p->rx, &msg)) == WIRE_OK) {
            sim_trace_message(s, "read by", p->session->id, &msg);
            /* Who has given up hears nothing: for the model it is not read. */
            if (p->session->state != SESSION_GONE) witness_at_proc(p, &msg);
            averages_reads(s, p, &msg);
            session_on_message(p->session, &msg);
        }
        SIM_CHECK(s, status != WIRE_BAD || pipe->spoilt,
                  "process %u cannot decode", p->uid);
        sim_coverage.garbled_member += status == WIRE_BAD;
        if (status != WIRE_BAD) return true;
        pipe->ended = true;
        pipe->count = 0;
    }
    if (pipe->count > 0 || !pipe->ended || pipe->open_at > s->now) return false;
    sim_stream_leave(s, p->control, 0);
    p->control = -1;
    witness_cut(p);
    session_master_gone(p->session, "the connection to the master ended");
    sim_coverage.master_lost += p->session->state == SESSION_MEMBER;
    return true;
}

/* All processes that have dialed: links of many connections would not be made
 * in time if each took a turn. */
static bool proc_accept(struct sim *s, struct sim_proc *p)
{
    bool any = false, others = false;
    if (!s->dialed) return false;
    for (uint32_t i = 0; i < s->stream_end; i++) {
        struct net_stream *st = &s->streams[i];
        if (!st->used || !st->pending || st->control) continue;
        others |= st->end[1].proc != slot_of(s, p);
        if (st->end[1].proc != slot_of(s, p)) continue;
        st->pending = false;
        uint32_t conn = proc_conn(p, (int)i, 1);
        SIM_CHECK(s, conn != NO_CONN, "too many connections");
        st->end[1].conn = conn;
        bool taken = engine_accepted(p->session->engine, conn);
        SIM_CHECK(s, taken || s->options.scarce, "no memory");
        if (!taken) proc_close(p, conn);
        any = true;
    }
    s->dialed = others;
    return any;
}

static bool proc_io(struct sim *s, struct sim_proc *p, bool write)
{
    uint32_t end = p->session->engine->links.conn_end;
    if (!write && control_read(s, p)) return true;
    if (end == 0) return false;
    uint32_t conn = sim_pick(s, end);
    for (uint32_t i = 0; i < end; i++, conn = conn + 1 < end ? conn + 1 : 0) {
        if (write ? conn_write(s, p, conn) : conn_read(s, p, conn)) return true;
    }
    return false;
}

static void settle(struct sim *s, struct sim_proc *p)
{
    session_settle(p->session);
    oracle_told(s, p, false);
}

static bool proc_turn(struct sim *s, struct sim_proc *p)
{
    if (p->frozen) return false;
    if (sim_dial_again(s, p)) return true;
    if (p->fast.op) return program_quick(s, p);
    if (letters_turn(s, p) || averages_turn(s, p)) return true;
    bool done = false;
    bool program = false;
    if (s->now >= p->tick_at) {
        p->tick_at = s->now + PCCL_TIME_OF_TICK(SIM_DEADLINE) / 2 +
                     sim_pick(s, PCCL_TIME_OF_TICK(SIM_DEADLINE));
        session_tick(p->session, strange_now(s, &p->clock));
        sim_watch(p);
        done = true;
    } else {
        uint32_t what = sim_pick(s, 16);
        if (what < 6)
            done = proc_io(s, p, false);
        else if (what < 11)
            done = proc_io(s, p, true);
        else if (what < 12)
            done = proc_accept(s, p);
        else
            program =
                !p->idle && (!s->options.slow || sim_pick(s, SIM_SLOW) == 0);
    }
    if (program) {
        done = program_turn(s, p);
        if (!sim_lives(s, (uint32_t)slot_of(s, p))) return true;
    } else {
        settle(s, p);
    }
    oracle_view(s, p);
    counted_turn(s, p);
    sim_check_progress(s, p);
    return done;
}

/* -------------------------------------------------------------------- steps */

/* Where time counts, every process gets the same share of it. */
static uint32_t first_proc(struct sim *s)
{
    uint32_t first = sim_pick(s, s->slots);
    for (int i = 0; i < 64 && s->options.single && !sim_lives(s, first); i++)
        first = sim_pick(s, s->slots);
    return first;
}

static bool anybody_works(struct sim *s)
{
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        struct sim_proc *p = &s->procs[i];
        if (p->frozen || p->fast.op) continue;
        if (!proc_io(s, p, false) && !proc_io(s, p, true) && !proc_accept(s, p))
            continue;
        settle(s, p);
        oracle_view(s, p);
        return true;
    }
    return false;
}

void sim_step(struct sim *s)
{
    if (s->dying) sim_master_dies(s);
    uint32_t who = sim_pick(s, s->slots / 2 + 1);
    bool done = false;
    if (who == 0) {
        done = sim_master_turn(s);
    } else {
        struct sim_proc *p = sim_from(s, first_proc(s));
        sim_turn = p ? p->uid : 0;
        done = p && proc_turn(s, p);
        sim_turn = 0;
    }
    /* Time advances only when no process has work. A number of vain attempts
     * tells that somebody may have none, not that nobody has. */
    uint32_t share = s->slots / (2 * (SIM_FEW + 1)), patience = 48 * share;
    uint32_t few = s->options.walls ? STREAMS_RELAYED : STREAMS_FEW;
    share += s->stream_end / few; /* else no link is made in time */
    s->idle = done ? 0 : s->idle + 1;
    if (s->idle > patience && anybody_works(s)) s->idle = 0;
    s->now += sim_pick(s, s->idle > patience ? 150000 : 5000 / share);
    s->steps++;
    sim_faults(s);
}
