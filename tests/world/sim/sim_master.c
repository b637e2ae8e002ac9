/* sim_master.c - the simulated driver of the master: what its server does with
 * sockets, the switchboard's does with streams; its time. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "election.h"
#include "faults.h"
#include "scarce.h"
#include "witness.h"

/* Of the master's table of bandwidths: members, and the lost that it has not
 * noticed. */
enum { SLOTS_MAX = 4 * SIM_PROCS_MAX };

static void write_journal(struct sim *s, const struct master_memory *memory)
{
    size_t room = memory_size(memory);
    free(s->journal);
    s->journal = malloc(room);
    SIM_CHECK(s, s->journal != NULL, "no memory");
    s->journal_size = memory_encode(memory, s->journal, room);
}

/* A disk that is full now and then, in some universes (rule J1). */
static bool remember_out(void *user, const struct master_memory *memory)
{
    struct sim *s = user;
    uint64_t hour = (uint64_t)(s->now / (SIM_DEADLINE / 8));
    bool small = s->options.single == SINGLE_NONE && !s->options.lasting &&
                 !s->options.calm && sim_mix(s->seed, 131, 0, 0) % 4 == 0;
    if (small && !s->healing && s->now >= s->master_down_until &&
        sim_mix(s->seed, 131, hour, 1) % 3 == 0) {
        sim_coverage.not_kept++;
        s->waits_for_disk = true;
        return false;
    }
    s->waits_for_disk = false;
    if (s->options.masters == 0) {
        s->kept_round = memory->round;
        return true;
    }
    bool dies = sim_master_may_die(s, 12);
    if (dies && sim_pick(s, 2) == 0) s->dying = true;
    if (s->dying) return false;
    if (!s->options.replicas) write_journal(s, memory);
    if (memory->round > s->kept_round) s->kept_round = memory->round;
    if (memory->id > s->kept_id) s->kept_id = memory->id;
    if (memory->stamp > s->kept_stamp) s->kept_stamp = memory->stamp;
    s->dying = dies;
    sim_coverage.masters_kept += dies;
    return true;
}

static void master_send_out(void *user, const uint32_t *links, uint32_t count,
                            const struct wire_msg *msg)
{
    struct sim *s = user;
    bool round = msg->type == WIRE_INSTALL || msg->type == WIRE_VERDICT ||
                 msg->type == WIRE_ANSWER || msg->type == WIRE_KEEP;
    if (sim_master_may_die(s, round ? 20 : 400)) {
        s->dying = true;
        sim_coverage.masters_amid++;
        count = sim_pick(s, count + 1);
    } else if (s->dying) {
        return;
    }
    if (count == 0) return;
    sim_count_message(msg);
    sim_coverage.resumed += msg->type == WIRE_RESUMED;
    sim_coverage.resumed_kept +=
        msg->type == WIRE_RESUMED && s->options.replicas;
    sim_coverage.keep_claims +=
        msg->type == WIRE_KEEP && s->master->replicas.phase == REPLICAS_RENEWS;
    sim_coverage.resumed_installs +=
        msg->type == WIRE_RESUMED && msg->resume.installs;
    const struct succession *next = &s->master->succession;
    const struct master_group *g =
        &s->master->groups[s->master->peers[links[0]].group];
    sim_coverage.resumed_answers += msg->type == WIRE_ANSWER &&
                                    msg->round > 0 &&
                                    msg->round == next->told[msg->vote.kind];
    sim_coverage.resumed_ends += msg->type == WIRE_STATE && g->sync_id == 0 &&
                                 msg->sync.id > 0 && msg->sync.id == g->synced;
    if (msg->type == WIRE_PROPOSE && msg->view.update)
        sim_coverage.adopted +=
            optimize_has_better(s->master, s->master->peers[links[0]].group);
    if (msg->type == WIRE_FLUSH &&
        s->master->groups[s->master->peers[links[0]].group].phase ==
            GROUP_FLUSHING) {
        for (uint32_t i = 0; i < count; i++)
            sim_coverage.restart += s->master->peers[links[i]].proposed;
    }
    SIM_CHECK(s, msg->type != WIRE_INSTALL || s->kept_round >= msg->round,
              "a view is installed that the journal does not know");
    if (msg->type == WIRE_INSTALL && msg->round > s->installed)
        s->installed = msg->round;
    if (msg->type == WIRE_INSTALL && msg->view.update &&
        !s->master->succession.waits)
        oracle_update(s, links, count);
    for (uint32_t i = 0; i < count; i++) {
        sim_trace_message(s, "master ->", s->master->peers[links[i]].info.id,
                          msg);
        witness_to_proc(s, links[i], msg);
        SIM_CHECK(s, s->links[links[i]] >= 0,
                  "the master sends to a closed link");
    }
    /* After the model has seen it: either of them may object (--judge). */
    if (msg->type == WIRE_STATE) election_said(s, links, count, msg);
    if (msg->type == WIRE_SAMPLES) counted_told(s, links[0], msg);
    switchboard_send(s->board, links, count, msg);
}

static struct sim_proc *proc_of(struct sim *s, uint64_t id)
{
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        struct sim_proc *p = &s->procs[i];
        if (p->session->id == id) return p;
    }
    return NULL;
}

/* Rules M10, M11: who lives is waited for. */
static void check_eviction(struct sim *s, const struct master_peer *peer,
                           const char *reason)
{
    const struct sim_proc *p = proc_of(s, peer->info.id);
    bool left = strstr(reason, "left") || strstr(reason, "HELLO");
    /* For so long that the master has asked, and heard nothing else. */
    bool known = p && p->starved && !s->options.pause &&
                 s->now - p->starved_at > SIM_DEADLINE;
    SIM_CHECK(s, !known || left, "evicted for lack of CPU time: %s", reason);
    SIM_CHECK(s, !s->options.calm || left, "evicted without a fault: %s",
              reason);
    SIM_CHECK(s, !strstr(reason, "all-reduce twice") || s->options.garble,
              "A12: evicted for a call that has failed");
    SIM_CHECK(s,
              !strstr(reason, "cannot exchange") || !walls_has_relay(s, peer),
              "N10: evicted beside a relay: %s", reason);
}

static void look_out(void *user, const struct wire_member *peer)
{
    /* By what the peer said in HELLO: it may not have read its id yet. */
    struct sim *s = user;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        struct sim_proc *p = &s->procs[i];
        if (p->uid == peer->addr.port) p->looked = peer->id;
    }
}

static void note_out(void *user, const struct master_note *note)
{
    (void)user;
    sim_coverage.waited_for += note->kind == NOTE_SILENT;
    sim_coverage.keep_few += note->kind == NOTE_SUCCESSION &&
                             strstr(note->reason, "more than half") != NULL;
}

static void master_close_out(void *user, uint32_t link, const char *reason)
{
    struct sim *s = user;
    SIM_TRACE(s, "master closes %llu: %s",
              (unsigned long long)s->master->peers[link].info.id, reason);
    sim_coverage.evicted += strstr(reason, "silent") != NULL;
    sim_coverage.unanswered += strstr(reason, "did not answer") != NULL;
    if (strstr(reason, "download again")) fetch_refuses(s, link);
    sim_coverage.stopped += strstr(reason, "stopped") != NULL;
    check_eviction(s, &s->master->peers[link], reason);
    /* Else the INSTALL that it waits for was not sent. */
    if (!s->dying) witness_closed(s, link, reason);
    election_gone(s, link);
    int stream = s->links[link];
    SIM_CHECK(s, stream >= 0, "the master closes a link twice");
    s->links[link] = -1;
    s->streams[stream].end[1].conn = UINT32_MAX;
    switchboard_close(s->board, link);
}

static void relay_out(void *user, uint32_t link, const struct wire_msg *msg)
{
    struct sim *s = user;
    int stream = s->links[link];
    SIM_TRACE(s, "the master relays %llu to %llu",
              (unsigned long long)msg->relay.from,
              (unsigned long long)msg->relay.to);
    sim_coverage.relayed_master++;
    s->links[link] = -1;
    s->streams[stream].end[1].conn = UINT32_MAX;
    witness_lost(s, link);
    switchboard_relay(s->board, link, msg);
}

/* ------------------------------------------------------------ its connections
 */

/* As the server does (rule M15). */
static void tell_sleep(struct sim *s)
{
    (void)sim_master_now(s);
    struct master_event e = {.type = MASTER_SLEPT,
                             .gap = own_clock_take(&s->master_own)};
    if (e.gap == 0) return;
    e.now = sim_master_now(s);
    sim_coverage.slept++;
    SIM_TRACE(s, "the master slept for %lld", (long long)e.gap);
    master_step(s->master, &e);
}

/* It knows who has come (H13). */
static void serves(struct sim *s)
{
    const struct master *m = s->master;
    uint32_t last = 0;
    for (uint32_t i = 0; i < m->group_count; i++)
        if (m->groups[m->group_list[i]].epoch > last)
            last = m->groups[m->group_list[i]].epoch;
    if (m->succession.term == 1) sim_run_begins(s);
    /* Members came back that had been given up for dead, with all that they had
     * then (H11), after others had gone on, or had begun another run. The
     * oracle knows one history. */
    if (m->succession.waits && last < s->installed) s->over = true;
}

static void step_out(void *user, struct master_event *e)
{
    struct sim *s = user;
    if (e->type == MASTER_RECEIVED) {
        if (!s->dying) witness_at_master(s, e->link, e->msg);
        if (e->msg->type == WIRE_SYNC) election_asked(s, e->link, e->msg);
        if (e->msg->type == WIRE_SYNCED) election_reported(s, e->link, e->msg);
    }
    tell_sleep(s);
    e->now = sim_master_now(s);
    if (s->dying) return;
    uint32_t before = s->master->round_last;
    enum replicas_phase phase = s->master->replicas.phase;
    master_step(s->master, e);
    if (phase != REPLICAS_OFF && phase != REPLICAS_SERVES &&
        s->master->replicas.phase == REPLICAS_SERVES)
        serves(s);
    if (e->type == MASTER_RECEIVED) fetch_judge(s, e->link, e->msg->type);
    if (!s->dying) witness_settled(s);
    election_settled(s);
    sim_coverage.keep_waits += s->master->replicas.pending;
    for (uint32_t i = 0; i < s->master->group_count; i++) {
        const struct master_group *g =
            &s->master->groups[s->master->group_list[i]];
        sim_coverage.keep_decided += g->decided && g->restart;
    }
    uint32_t begun = s->master->round_last - before;
    if (begun > s->options.groups) sim_coverage.restart++;
}

static int stream_of(const struct master_conn *c)
{
    return (int)(intptr_t)c->user;
}

/* A process that is gone takes what comes. */
static enum conn_result flush_out(void *user, struct master_conn *c)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct sim *s = user;
    int stream = stream_of(c);
    struct net_pipe *p = &s->streams[stream].pipe[1];
    struct master_chunk part;
    /* What was sent before it died has left it. */
    while (master_conn_parts(c, &part, 1) > 0) {
        size_t room = p->limit - p->count;
        uint32_t times = 1;
        if (p->ended) room = part.size;
        if (room == 0) return CONN_WAIT;
        if (part.size > room) part.size = room;
        memcpy(frame, part.bytes, part.size);
        if (c->out_done == 0 && !c->relays)
            times = strange_message(s, stream, 1, frame);
        SIM_CHECK(s, times == 1, "the master stutters");
        if (!p->ended) (void)net_write(p, frame, part.size);
        if (!p->ended && p->open_at < s->now)
            p->open_at = s->now + sim_pick(s, s->options.delay_max + 1);
        master_conn_sent(c, part.size);
    }
    return CONN_DONE;
}

static void finish_out(void *user, struct master_conn *c)
{
    struct sim *s = user;
    s->streams[stream_of(c)].pipe[1].ended = true;
}

static void end_out(void *user, struct master_conn *c)
{
    struct sim *s = user;
    const struct net_stream *st = &s->streams[stream_of(c)];
    const struct net_pipe *in = &st->pipe[0];
    bool stranger = st->end[0].proc < 0;
    if (!c->lost) return; /* the universe is over */
    bool bad = strstr(c->lost, "sent ") != NULL;
    bool slow = strstr(c->lost, "slowly") != NULL;
    SIM_TRACE(s, "the connection of link %u: %s", c->link, c->lost);
    SIM_CHECK(s, !bad || in->spoilt || stranger, "the master cannot decode: %s",
              c->lost);
    SIM_CHECK(s, !slow || s->options.narrow > 0, "cut off without a cause");
    sim_coverage.garbled_master += bad && in->spoilt;
    sim_coverage.slow_reader += slow;
    sim_coverage.lingered += strstr(c->lost, "lingered") != NULL;
    if (slow) s->last_fault = s->now;
    if (c->link != MASTER_NO_LINK) {
        s->links[c->link] = -1;
        election_gone(s, c->link);
        witness_lost(s, c->link);
    }
    sim_stream_leave(s, stream_of(c), 1);
}

/* Those that linger until their process ends the connection. */
static void end_closing(struct sim *s)
{
    for (struct master_conn *c = s->board->closing.first; c; c = c->next) {
        const struct net_pipe *in = &s->streams[stream_of(c)].pipe[0];
        if (in->ended) switchboard_lose(s->board, c, "closed by the peer");
    }
}

void sim_master_ends_turn(struct sim *s)
{
    end_closing(s);
    switchboard_turn(s->board);
}

/* What comes over no connection. Also while a process has its turn: the master
 * has memory. */
void sim_master_event(struct sim *s, struct master_event *e)
{
    uint32_t turn = sim_turn;
    sim_turn = 0;
    step_out(s, e);
    sim_master_ends_turn(s);
    sim_turn = turn;
}

static bool read_conn(struct sim *s, struct master_conn *c)
{
    uint32_t link = c->link;
    struct net_pipe *pipe = &s->streams[stream_of(c)].pipe[0];
    if (!master_conn_reads(c)) return false;
    if (pipe->count > 0 && pipe->open_at <= s->now) {
        size_t left = sim_chunk(s, pipe->count);
        while (left > 0 && !c->lost && c->link == link &&
               master_conn_reads(c)) {
            size_t room;
            uint8_t *to = master_conn_room(c, &room);
            size_t size = net_read(pipe, to, room < left ? room : left);
            left -= size;
            switchboard_received(s->board, c, size);
        }
    } else if (pipe->count == 0 && pipe->ended) {
        bool half = c->in_size > c->in_done;
        sim_coverage.half_message += half;
        switchboard_lose(s->board, c, "closed by the peer");
    } else {
        return false;
    }
    sim_master_ends_turn(s);
    return true;
}

static bool master_read(struct sim *s, uint32_t link)
{
    struct master_conn *c = s->board->links[link];
    return c && read_conn(s, c);
}

static bool legs_read(struct sim *s)
{
    if (s->board->leg_count == 0) return false;
    uint32_t skip = sim_pick(s, s->board->leg_count);
    struct master_conn *c = s->board->legs.first;
    while (c && skip-- > 0) c = c->next;
    for (; c; c = c->next)
        if (read_conn(s, c)) return true;
    for (c = s->board->legs.first; c; c = c->next)
        if (read_conn(s, c)) return true;
    return false;
}

/* Connections that could not take more, and now can. */
static bool master_write(struct sim *s)
{
    bool any = false;
    for (uint32_t k = 0; k < 3; k++) {
        struct master_conn *c = k == 0   ? s->board->open.first
                                : k == 1 ? s->board->closing.first
                                         : s->board->legs.first;
        for (; c; c = c->next) {
            const struct net_pipe *p = &s->streams[stream_of(c)].pipe[1];
            struct master_chunk part;
            if (master_conn_parts(c, &part, 1) == 0 || c->lost) continue;
            if (!p->ended && p->count >= p->limit) continue;
            switchboard_touch(s->board, c);
            any = true;
        }
    }
    if (any) sim_master_ends_turn(s);
    return any;
}

/* Rule M1. A newcomer's HELLO would be there by the time that this takes. */
static void make_room(struct sim *s)
{
    struct master_conn *c = switchboard_stranger(s->board);
    if (!c || !switchboard_is_full(s->board)) return;
    if (s->streams[(intptr_t)c->user].end[0].proc >= 0) return;
    switchboard_lose(s->board, c, "made room for a newer connection");
    sim_master_ends_turn(s);
}

/* Whom the backlog holds while the switchboard is full. */
static bool accept_one(struct sim *s)
{
    bool any = false;
    for (uint32_t i = 0; s->called && i < s->stream_end; i++) {
        struct net_stream *st = &s->streams[i];
        bool waits = st->used && st->control && st->pending;
        any |= waits;
        if (waits) make_room(s);
        if (!waits || switchboard_is_full(s->board)) continue;
        st->pending = false;
        struct wire_addr addr = {.family = 4};
        uint32_t link = master_free_link(s->master);
        s->links[link] = (int)i;
        if (link >= s->link_count) s->link_count = link + 1;
        st->end[1] = (struct net_end){NET_MASTER, link};
        /* Also of a process that has ended while it waited. */
        witness_accept(s, link, st->joins);
        SIM_CHECK(s, switchboard_accept(s->board, &addr, (void *)(intptr_t)i),
                  "no memory");
        sim_master_ends_turn(s);
        return true;
    }
    s->called = any;
    return false;
}

void sim_master_accept(struct sim *s, int stream)
{
    s->streams[stream].pending = s->called = true;
    s->streams[stream].end[1] = (struct net_end){NET_MASTER, UINT32_MAX};
    if (s->master_down_until > s->now || s->dying) return;
    make_room(s);
    if (!switchboard_is_full(s->board)) {
        uint32_t turn = sim_turn;
        sim_turn = 0;
        (void)accept_one(s);
        sim_turn = turn;
        return;
    }
    /* Until strangers are thrown out, and have lingered. */
    sim_coverage.backlog++;
    s->last_fault = s->now + 3 * SIM_DEADLINE;
}

static bool evidence_turn(struct sim *s)
{
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        struct sim_proc *p = &s->procs[i];
        if (!p->looked) continue;
        if (p->unseen) {
            p->looked = 0;
            continue;
        }
        struct master_event e = {.type = MASTER_EVIDENCE,
                                 .id = p->looked,
                                 .evidence = p->starved  ? EVIDENCE_RUNNABLE
                                             : p->frozen ? EVIDENCE_STOPPED
                                                         : EVIDENCE_NONE};
        p->looked = 0;
        sim_master_event(s, &e);
        return true;
    }
    return false;
}

bool sim_master_turn(struct sim *s)
{
    if (s->master_down_until > s->now) return false;
    if (s->master_paused_until > s->now) return false;
    if (evidence_turn(s)) return true;
    if (sim_search_turn(s)) return true;
    if (s->now >= s->master_tick_at) {
        struct master_event e = {.type = MASTER_TICK};
        s->master_tick_at = s->now + PCCL_TIME_TO_PING(SIM_DEADLINE);
        s->master_own.due = sim_master_now(s) + PCCL_TIME_TO_PING(SIM_DEADLINE);
        switchboard_linger(s->board, sim_master_now(s));
        sim_master_event(s, &e);
        return true;
    }
    if (accept_one(s) || master_write(s)) return true;
    if (s->link_count == 0) return false;
    if (sim_pick(s, 4) > 0 && legs_read(s)) return true;
    uint32_t first = sim_pick(s, s->link_count);
    for (uint32_t i = 0; i < s->link_count; i++) {
        if (master_read(s, (first + i) % s->link_count)) return true;
    }
    return false;
}

pccl_ns sim_master_now(struct sim *s)
{
    return own_clock_at(&s->master_own, strange_now(s, &s->master_clock),
                        PCCL_TIME_TO_PING(SIM_DEADLINE));
}

void sim_master_start(struct sim *s)
{
    s->master_own = (struct own_clock){.due = PCCL_NEVER};
    strange_clock(s, 0, &s->master_clock);
    s->master = scarce_zeros(sizeof *s->master);
    s->edges_size = bandwidth_size(SLOTS_MAX);
    s->edges = calloc(1, s->edges_size);
    s->board = scarce_zeros(sizeof *s->board);
    SIM_CHECK(s, s->master && s->edges && s->board, "no memory");
    struct master_config config = {
        .out = {.user = s,
                .send = master_send_out,
                .close = master_close_out,
                .note = note_out,
                .search = sim_search,
                .look = look_out,
                .remember = remember_out,
                .relay = relay_out},
        .grace = s->options.masters > 0 ? SIM_GRACE : 0,
        .replicas = s->options.replicas,
        .alone = s->options.replicas, /* as the launcher has it (M2d) */
        .secret = {{s->seed * 3, s->seed + 5}},
        .relays = s->options.relays,
        .edges = bandwidth_init(s->edges, s->edges_size, SLOTS_MAX),
        .probe_bytes = 600,
        .probe_time = SIM_DEADLINE / 20,
        .small_world = s->options.optimize ? 2 : 0,
        .deadline = SIM_DEADLINE,
        .quorum = s->options.quorum,
        .minimum = s->options.minimum,
        .key = {{s->seed, ~s->seed}}};
    struct switchboard_output out = {s, step_out, flush_out, finish_out,
                                     end_out};
    struct switchboard_limits limits = {0};
    if (s->options.narrow > 0) {
        limits.out_frames_max = 4 + s->options.narrow % 8;
        limits.conns_max = SIM_FEW + 5;
    }
    static struct master_memory memory;
    if (s->journal) {
        SIM_CHECK(s, memory_decode(&memory, s->journal, s->journal_size),
                  "the journal cannot be read");
        config.memory = &memory;
    }
    SIM_CHECK(s, master_init(s->master, &config), "no memory, or a bad will");
    s->master->mesh_max = s->options.mesh_max;
    s->master->tree_width = s->options.tree_width;
    if (s->options.replicas) {
        /* If it has to begin another run, the oracle knows them apart. */
        s->master->round_last = s->kept_round + 3 * MEMORY_ROUNDS_SKIPPED;
        s->master->id_last = s->kept_id + 3 * MEMORY_IDS_SKIPPED;
        s->ids_from = s->master->id_last;
        s->master->sync_last = s->kept_stamp + 3 * MEMORY_IDS_SKIPPED;
    }
    switchboard_init(s->board, s->master, &out, &limits);
}

/* After the faults nobody is cut off for a queue that is too short. */
void sim_master_widen(struct sim *s)
{
    struct switchboard_limits *l = &s->board->limits;
    l->out_frames_max = CONN_OUT_FRAMES_MAX;
    l->conns_max = SWITCHBOARD_CONNS_MAX;
    s->options.narrow = 0;
    for (struct master_conn *c = s->board->open.first; c; c = c->next)
        c->out_frames_max = CONN_OUT_FRAMES_MAX;
    for (uint32_t i = 0; i < s->stream_end; i++)
        if (s->streams[i].control) s->streams[i].pipe[1].limit = SIZE_MAX / 2;
}

void sim_master_free(struct sim *s)
{
    switchboard_free(s->board);
    master_free(s->master);
    scarce_free(s->board);
    scarce_free(s->master);
    free(s->edges);
}
