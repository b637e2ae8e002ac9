/* fetch.c - newcomers that download the state before they join, members that
 * offer it, and the conditions on both (rule S10).
 *
 * What such a newcomer does must harm nobody: all other conditions of the
 * universe hold as they do without it. */
#include "faults.h"

#include "../../../include/pccl.h"
#include "../../../src/link/link.h"

#include <stdlib.h>
#include <string.h>

enum { UID_FIRST = 1000 };

void fetch_choose(struct sim_options *o, uint64_t seed)
{
    uint64_t h = sim_mix(seed, 98, 0, 0);
    bool fits = o->sync > 0 && !o->calm && !o->scarce && !o->lasting &&
                o->single == SINGLE_NONE && o->narrow == 0;
    if (fits && h % 4 == 0) o->fetch = 500 + (uint32_t)(h >> 32) % 2500;
}

/* ----------------------------------------------------------------- members */

void fetch_forget(struct sim_proc *p)
{
    if (p->shared.offered) state_list_free(p->shared.offered);
    free(p->shared.offered);
    p->shared.offered = NULL;
}

static void offer(struct sim *s, struct sim_proc *p)
{
    struct sim_shared *x = &p->shared;
    struct state_tensor tensors[SIM_TENSORS];
    struct state_list *list = malloc(sizeof *list);
    struct offer_terms terms = {.revision = x->revision, .share = 1000};
    bool odd = sim_pick(s, 20) == 0;
    if (sim_pick(s, 3) == 0) terms.revision += sim_pick(s, 4); /* a lie */
    if (sim_pick(s, 4) == 0) terms.rate = 1000 + sim_pick(s, 100000000);
    if (sim_pick(s, 4) == 0) terms.share = 1 + sim_pick(s, 999);
    shared_tensors(s, p->uid, odd, x->bytes, tensors);
    bool ok = list && state_list_describe(list, tensors, SIM_TENSORS);
    SIM_CHECK(s, ok, "no memory");
    int result = session_offer(p->session, list, &terms);
    SIM_CHECK(s, result == pcclSuccess, "offer refused: %d", result);
    fetch_forget(p);
    x->offered = list;
}

static void offer_turn(struct sim *s, struct sim_proc *p)
{
    if (p->frozen || p->fast.op || p->session->state != SESSION_MEMBER) return;
    if (p->program.stage == STAGE_LEAVING) return;
    if (sim_pick(s, 8) > 0) {
        offer(s, p);
    } else {
        session_offer_end(p->session);
        fetch_forget(p);
    }
}

/* Rule S10d: nothing goes to a guest while members do something together. */
void fetch_watch(struct sim *s, const struct sim_proc *p, uint32_t conn)
{
    const struct session *x = p->session;
    const struct conn *c = x->links->conns[conn];
    if (!c->guest || c->tx_head_size != FRAME_SIZE) return;
    sim_coverage.fetch_full += x->offer.guest_count == OFFER_GUESTS_MAX;
    if (c->tx_head[2] != FRAME_BLOCK) return;
    SIM_CHECK(s,
              !engine_has_work(x->engine) && x->sync == SYNC_IDLE &&
                  !links_is_frozen(x->links) && !session_votes_topology(x),
              "S10d: process %u serves a guest while it is busy", p->uid);
    sim_coverage.fetch_served++;
}

/* ------------------------------------------------------------- the master */

/* Rule S10e, told once more: the revision of which half of those that offer
 * have it or a later one, and fewer than half an earlier one. */
static uint64_t current(const struct master *m, uint32_t group, bool *any)
{
    uint64_t best = 0;
    *any = false;
    for (uint32_t k = 0; k < m->link_end; k++) {
        const struct master_peer *q = &m->peers[k];
        uint32_t all = 0, least = 0;
        bool on = q->state == PEER_MEMBER && !q->leaving && q->offer.on;
        for (uint32_t j = 0; on && q->group == group && j < m->link_end; j++) {
            const struct master_peer *r = &m->peers[j];
            if (r->state != PEER_MEMBER || r->group != group || r->leaving ||
                !r->offer.on)
                continue;
            all++;
            least += r->offer.revision >= q->offer.revision;
        }
        if (all == 0) continue;
        *any = true;
        if (2 * least >= all && q->offer.revision > best)
            best = q->offer.revision;
    }
    return best;
}

/* Rule S10f: after an OFFER or a HELLO nobody waits who is too old. */
void fetch_judge(struct sim *s, uint32_t link, enum wire_type type)
{
    const struct master *m = s->master;
    bool any;
    if (m->peers[link].state == PEER_FREE || s->options.fetch == 0 ||
        (type != WIRE_OFFER && type != WIRE_HELLO))
        return;
    uint32_t group = m->peers[link].group;
    uint64_t revision = current(m, group, &any);
    for (uint32_t i = 0; any && i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        const struct master_offer *o = &p->offer;
        if (p->state != PEER_REGISTERED || p->group != group || p->proposed ||
            !o->fetched)
            continue;
        SIM_CHECK(s,
                  o->revision >= revision ||
                      revision - o->revision <= o->max_stale,
                  "S10f: newcomer %llu is too old, and waits",
                  (unsigned long long)p->info.id);
    }
}

/* ... and nobody is refused who is not. */
void fetch_refuses(struct sim *s, uint32_t link)
{
    bool any;
    const struct master_peer *p = &s->master->peers[link];
    uint64_t revision = current(s->master, p->group, &any);
    SIM_CHECK(s,
              any && revision > p->offer.revision &&
                  revision - p->offer.revision > p->offer.max_stale,
              "S10f: a newcomer is refused that is not too old");
    sim_coverage.fetch_refused++;
}

/* -------------------------------------------------------------- a newcomer */

static void close_data(struct sim *s, struct sim_fetcher *f)
{
    if (f->data >= 0) sim_stream_leave(s, f->data, 0);
    f->data = -1;
}

static void close_control(struct sim *s, struct sim_fetcher *f)
{
    if (f->control >= 0) sim_stream_leave(s, f->control, 0);
    f->control = -1;
    f->rx.first = f->rx.count = 0;
}

static void end(struct sim *s, struct sim_fetcher *f)
{
    close_data(s, f);
    close_control(s, f);
    sim_coverage.fetch_lost += f->core->lost;
    prefetch_free(f->core);
    free(f->core);
    state_list_free(&f->list);
    free(f->bytes);
    free(f->rx.bytes);
    *f = (struct sim_fetcher){.used = false};
}

static void begin(struct sim *s)
{
    struct sim_fetcher *f = s->fetchers;
    struct state_tensor tensors[SIM_TENSORS];
    size_t size = shared_size(s);
    while (f < s->fetchers + SIM_FETCHERS_MAX && f->used) f++;
    bool early = !s->master->founded && sim_pick(s, 8) > 0;
    if (f == s->fetchers + SIM_FETCHERS_MAX || early) return;
    *f = (struct sim_fetcher){.used = true, .control = -1, .data = -1};
    f->group = sim_pick(s, s->options.groups);
    f->uid = UID_FIRST + sim_pick(s, 3);
    f->leave_at = s->now + sim_pick(s, 20u * (uint32_t)(SIM_DEADLINE / 4)) * 4;
    f->core = malloc(sizeof *f->core);
    f->bytes = malloc(size);
    SIM_CHECK(s, f->core && f->bytes, "no memory");
    /* As a member that comes back, or as a stranger. */
    const struct sim_proc *like = sim_from(s, sim_pick(s, s->slots));
    if (like && sim_pick(s, 2) == 0)
        memcpy(f->bytes, like->shared.bytes, size);
    else
        memset(f->bytes, (int)sim_pick(s, 256), size);
    shared_tensors(s, f->uid, false, f->bytes, tensors);
    uint64_t max_stale = sim_pick(s, 4);
    bool ok = state_list_describe(&f->list, tensors, SIM_TENSORS) &&
              prefetch_init(f->core, &f->list, max_stale, SIM_DEADLINE, s->now);
    SIM_CHECK(s, ok, "no memory");
    sim_coverage.fetch++;
}

static void ask_master(struct sim *s, struct sim_fetcher *f)
{
    struct prefetch *p = f->core;
    if (f->control < 0) {
        struct wire_msg ask = {.type = WIRE_OFFERS_GET};
        ask.offer.group = f->group;
        f->control = sim_stream_new(s, true);
        s->streams[f->control].end[0] = (struct net_end){NET_CALLER, 0};
        s->streams[f->control].uid[0] = s->streams[f->control].uid[1] =
            UINT32_MAX;
        sim_master_accept(s, f->control);
        sim_send_control(s, f->control, 0, &ask);
        f->asked_at = s->now;
        return;
    }
    struct net_pipe *pipe = &s->streams[f->control].pipe[1];
    struct wire_msg msg;
    (void)sim_pull_control(s, pipe, &f->rx);
    enum wire_status status = sim_next_message(&f->rx, &msg);
    if (status == WIRE_OK && msg.type == WIRE_OFFERS) {
        prefetch_servers(p, &msg);
        close_control(s, f);
        return;
    }
    bool over = status != WIRE_MORE || (pipe->ended && pipe->count == 0) ||
                s->now - f->asked_at > SIM_DEADLINE;
    if (!over) return;
    close_control(s, f);
    prefetch_unanswered(p);
}

static void dial(struct sim *s, struct sim_fetcher *f)
{
    struct prefetch *p = f->core;
    struct sim_proc *to = NULL;
    close_data(s, f);
    f->attempt = p->attempt;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);)
        if (s->procs[i].uid == p->server.addr.port) to = &s->procs[i];
    if (to && sim_pick(s, 8) > 0) {
        f->data = sim_stream_new(s, false);
        struct net_stream *st = &s->streams[f->data];
        st->end[0] = (struct net_end){NET_CALLER, 0};
        st->end[1] = (struct net_end){(int)(to - s->procs), NO_CONN};
        st->uid[0] = st->uid[1] = UINT32_MAX;
        st->pending = s->dialed = true;
    }
    prefetch_dialed(p, f->data >= 0);
}

static void move(struct sim *s, struct sim_fetcher *f)
{
    struct prefetch *p = f->core;
    struct net_stream *st = &s->streams[f->data];
    const uint8_t *from;
    uint8_t *to;
    size_t size = prefetch_tx_window(p, &from);
    if (p->state != PREFETCH_RUNS) return;
    if (size > 0 && !st->pipe[0].ended)
        size = net_write(&st->pipe[0], from, sim_chunk(s, size));
    if (size > 0) prefetch_tx(p, size);
    size = prefetch_rx_window(p, &to);
    if (size > st->pipe[1].count) size = st->pipe[1].count;
    if (size > 0) {
        size = sim_chunk(s, size);
        net_read(&st->pipe[1], to, size);
        sim_coverage.fetch_device += p->in_body && p->stage;
        prefetch_rx(p, size);
        sim_coverage.fetch_same += p->rx.type == FRAME_BLOCK && p->rx.size == 0;
    } else if (st->pipe[1].ended && st->pipe[1].count == 0) {
        prefetch_closed(p);
    }
}

/* It has all: the process takes its bytes, and says so in HELLO. */
static void join(struct sim *s, struct sim_fetcher *f)
{
    const struct prefetch *p = f->core;
    uint32_t live = (uint32_t)__builtin_popcount(s->live);
    SIM_CHECK(s,
              p->revision <= prefetch_oldest(p) ||
                  p->revision - prefetch_oldest(p) <= p->max_stale,
              "S10f: it is done with blocks that are too old");
    sim_coverage.fetch_done++;
    sim_coverage.fetch_old += prefetch_oldest(p) < p->revision;
    if (live >= s->options.alive_max || s->healing) return;
    s->joins = f;
    (void)sim_proc_start(s, true, -1, f->group);
    s->joins = NULL;
    sim_coverage.fetch_joined++;
}

void fetch_hello(struct sim *s, struct sim_proc *p, struct wire_msg *hello)
{
    const struct sim_fetcher *f = s->joins;
    if (!f) return;
    memcpy(p->shared.bytes, f->bytes, p->shared.size);
    p->shared.fetched = true;
    hello->hello.fetched = true;
    hello->hello.revision = prefetch_oldest(f->core);
    hello->hello.max_stale = f->core->max_stale;
}

static void turn(struct sim *s, struct sim_fetcher *f)
{
    struct prefetch *p = f->core;
    if (s->healing || s->now >= f->leave_at) {
        sim_coverage.fetch_left++;
        end(s, f);
        return;
    }
    prefetch_tick(p, s->now);
    if (f->data >= 0 && (p->state != PREFETCH_RUNS || p->attempt != f->attempt))
        close_data(s, f);
    switch (p->state) {
    case PREFETCH_WAITS:
        return;
    case PREFETCH_ASKS:
        ask_master(s, f);
        return;
    case PREFETCH_DIALS:
        dial(s, f);
        return;
    case PREFETCH_RUNS:
        move(s, f);
        return;
    case PREFETCH_DONE:
        join(s, f);
        break;
    case PREFETCH_NOBODY:
        sim_coverage.fetch_nobody++;
        break;
    case PREFETCH_UNLIKE:
    case PREFETCH_FAILED:
        break;
    }
    end(s, f);
}

void fetch_turn(struct sim *s)
{
    if (s->options.fetch == 0) return;
    if (!s->healing && sim_pick(s, 1000000) < s->options.fetch) begin(s);
    for (uint32_t i = 0; i < SIM_FETCHERS_MAX; i++) {
        struct sim_fetcher *f = &s->fetchers[i];
        if (f->used && (s->healing || sim_pick(s, 4) == 0)) turn(s, f);
    }
    if (s->healing || sim_pick(s, 128) > 0) return;
    struct sim_proc *p = sim_from(s, sim_pick(s, s->slots));
    if (p) offer_turn(s, p);
}

void fetch_free(struct sim *s)
{
    for (uint32_t i = 0; i < SIM_FETCHERS_MAX; i++)
        if (s->fetchers[i].used) end(s, &s->fetchers[i]);
}
