/* sim_master.c - the simulated driver of the master: its links, its time. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "election.h"
#include "faults.h"
#include "witness.h"

static void master_send_out(void *user, const uint32_t *links, uint32_t count,
                            const struct wire_msg *msg)
{
    struct sim *s = user;
    sim_count_message(msg);
    if (msg->type == WIRE_PROPOSE && msg->view.update)
        sim_coverage.adopted +=
            optimize_has_better(s->master, s->master->peers[links[0]].group);
    if (msg->type == WIRE_FLUSH &&
        s->master->groups[s->master->peers[links[0]].group].phase ==
            GROUP_FLUSHING) {
        for (uint32_t i = 0; i < count; i++)
            sim_coverage.restart += s->master->peers[links[i]].proposed;
    }
    if (msg->type == WIRE_INSTALL && msg->view.update)
        oracle_update(s, links, count);
    if (msg->type == WIRE_STATE) election_said(s, links, count, msg);
    for (uint32_t i = 0; i < count; i++) {
        sim_trace_message(s, "master ->", s->master->peers[links[i]].info.id,
                          msg);
        witness_to_proc(s, links[i], msg);
        int stream = s->links[links[i]];
        SIM_CHECK(s, stream >= 0, "the master sends to a closed link");
        sim_send_control(s, stream, 1, msg);
    }
}

static struct sim_proc *proc_of(struct sim *s, uint64_t id)
{
    for (uint32_t i = 0; i < SIM_PROCS_MAX; i++) {
        struct sim_proc *p = &s->procs[i];
        if (p->used && p->session->id == id) return p;
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
}

static void look_out(void *user, const struct wire_member *peer)
{
    /* By what the peer said in HELLO: it may not have read its id yet. */
    struct sim *s = user;
    for (uint32_t i = 0; i < SIM_PROCS_MAX; i++) {
        struct sim_proc *p = &s->procs[i];
        if (p->used && p->uid == peer->addr.port) p->looked = peer->id;
    }
}

static void note_out(void *user, const struct master_note *note)
{
    (void)user;
    sim_coverage.waited_for += note->kind == NOTE_SILENT;
}

static void master_close_out(void *user, uint32_t link, const char *reason)
{
    struct sim *s = user;
    SIM_TRACE(s, "master closes %llu: %s",
              (unsigned long long)s->master->peers[link].info.id, reason);
    sim_coverage.evicted += strstr(reason, "silent") != NULL;
    sim_coverage.unanswered += strstr(reason, "did not answer") != NULL;
    sim_coverage.stopped += strstr(reason, "stopped") != NULL;
    check_eviction(s, &s->master->peers[link], reason);
    witness_closed(s, link, reason);
    election_gone(s, link);
    int stream = s->links[link];
    SIM_CHECK(s, stream >= 0, "the master closes a link twice");
    s->links[link] = -1;
    s->link_rx[link].count = 0;
    sim_stream_leave(s, stream, 1);
}

static void master_event(struct sim *s, struct master_event *e)
{
    e->now = strange_now(s, &s->master_clock);
    uint32_t before = s->master->round_last;
    master_step(s->master, e);
    election_settled(s);
    witness_settled(s);
    uint32_t begun = s->master->round_last - before;
    if (begun > s->options.groups) sim_coverage.restart++;
}

static bool master_read(struct sim *s, uint32_t link)
{
    int stream = s->links[link];
    if (stream < 0) return false;
    struct net_pipe *pipe = &s->streams[stream].pipe[0];
    struct net_pipe *rx = &s->link_rx[link];
    enum wire_status status = WIRE_OK;
    if (sim_pull_control(s, pipe, rx)) {
        struct wire_msg msg;
        while (s->links[link] == stream &&
               (status = sim_next_message(rx, &msg)) == WIRE_OK) {
            struct master_event e = {
                .type = MASTER_RECEIVED, .link = link, .msg = &msg};
            witness_at_master(s, link, &msg);
            if (msg.type == WIRE_SYNC) election_asked(s, link, &msg);
            if (msg.type == WIRE_SYNCED) election_reported(s, link, &msg);
            master_event(s, &e);
        }
        if (status != WIRE_BAD) return true;
        SIM_CHECK(s, pipe->spoilt || s->streams[stream].end[0].proc < 0,
                  "the master cannot decode");
        sim_coverage.garbled_master += pipe->spoilt;
        pipe->ended = true;
        pipe->count = 0;
    }
    if (pipe->count > 0 || !pipe->ended) return false;
    s->links[link] = -1;
    rx->count = 0;
    sim_stream_leave(s, stream, 1);
    election_gone(s, link);
    witness_lost(s, link);
    struct master_event e = {.type = MASTER_CLOSED, .link = link};
    master_event(s, &e);
    return true;
}

void sim_master_accept(struct sim *s, int stream)
{
    uint32_t link = master_free_link(s->master);
    SIM_CHECK(s, link != MASTER_NO_LINK, "no link");
    s->links[link] = stream;
    s->link_rx[link].count = 0;
    if (link >= s->link_count) s->link_count = link + 1;
    s->streams[stream].end[1] = (struct net_end){NET_MASTER, link};
    int caller = s->streams[stream].end[0].proc;
    witness_accept(s, link, caller < 0 ? 0 : s->procs[caller].uid);
    struct master_event e = {.type = MASTER_CONNECTED, .link = link};
    e.addr.family = 4;
    master_event(s, &e);
}

static bool evidence_turn(struct sim *s)
{
    for (uint32_t i = 0; i < SIM_PROCS_MAX; i++) {
        struct sim_proc *p = &s->procs[i];
        if (!p->used || !p->looked) continue;
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
        master_event(s, &e);
        return true;
    }
    return false;
}

bool sim_master_turn(struct sim *s)
{
    if (s->master_paused_until > s->now) return false;
    if (evidence_turn(s)) return true;
    if (sim_search_turn(s)) return true;
    if (s->now >= s->master_tick_at) {
        struct master_event e = {.type = MASTER_TICK};
        s->master_tick_at = s->now + PCCL_TIME_TO_PING(SIM_DEADLINE);
        master_event(s, &e);
        return true;
    }
    if (s->link_count == 0) return false;
    uint32_t first = sim_pick(s, s->link_count);
    for (uint32_t i = 0; i < s->link_count; i++) {
        if (master_read(s, (first + i) % s->link_count)) return true;
    }
    return false;
}

void sim_master_start(struct sim *s)
{
    strange_clock(s, 0, &s->master_clock);
    s->master = calloc(1, sizeof *s->master);
    s->edges_size = bandwidth_size(PEERS_MAX);
    s->edges = calloc(1, s->edges_size);
    SIM_CHECK(s, s->master && s->edges, "no memory");
    struct master_config config = {
        .out = {s, master_send_out, master_close_out, note_out, sim_search,
                look_out},
        .edges = bandwidth_init(s->edges, s->edges_size, PEERS_MAX),
        .probe_bytes = 600,
        .probe_time = SIM_DEADLINE / 20,
        .small_world = s->options.optimize ? 2 : 0,
        .deadline = SIM_DEADLINE,
        .quorum = s->options.quorum,
        .key = {{s->seed, ~s->seed}}};
    master_init(s->master, &config);
}
