/* faults.c - see faults.h. */
#include "faults.h"

static struct sim_proc *random_proc(struct sim *s)
{
    return sim_from(s, sim_pick(s, s->slots));
}

static uint32_t alive(const struct sim *s)
{
    return (uint32_t)__builtin_popcount(s->live);
}

static void noted(struct sim *s, pccl_ns until)
{
    if (until > s->last_fault) s->last_fault = until;
}

/* A launcher notifies the master when a process that it expected has ended. */
void sim_lower_quorum(struct sim *s)
{
    if (s->master->founded || s->master->quorum <= 1) return;
    struct master_event e = {.type = MASTER_QUORUM,
                             .quorum = s->master->quorum - 1};
    sim_master_event(s, &e);
}

/* The process that this process waits for in its transfer, if the transfer has
 * reached the moment of the death: tensor hashes or block hashes are asked
 * for, a body is half received, or some blocks have arrived. */
static uint64_t giver_of(const struct sim_proc *p, uint64_t moment)
{
    const struct state_sync *state = &p->session->sync_state;
    bool waits = state->phase == STATE_MOVING && state->outcome == STATE_OPEN &&
                 (state->receives || state->differs);
    if (!waits) return 0;
    if (moment > 2) return state->taken_count > 0 ? state->taken[0] : 0;
    for (uint32_t i = 0; i < state->flight_end; i++) {
        const struct state_flight *f = &state->flights[i];
        if (!f->used) continue;
        if (moment == 0 && f->piece.kind <= STATE_TENSORS) return f->peer;
        if (moment == 1 && f->piece.kind == STATE_BLOCKS) return f->peer;
        if (moment == 2 && f->receiving) return f->peer;
    }
    return 0;
}

/* Selects the process that dies in the transfer under way: in each transfer
 * one of its parties at one moment, so that the others have a chance to end
 * it. */
static struct sim_proc *party(struct sim *s)
{
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        struct sim_proc *p = &s->procs[i];
        uint64_t id = p->session->sync_state.id;
        uint64_t draw = sim_mix(s->seed, 91, id, 0);
        uint64_t moment = draw % 6;
        uint64_t giver = id > s->storm_id ? giver_of(p, moment) : 0;
        if (giver != 0 && moment < 3 && draw / 6 % 3 == 0) return p;
        for (uint32_t all = s->live, k; giver && sim_next(s, &all, &k);)
            if (s->procs[k].session->id == giver) return &s->procs[k];
    }
    return NULL;
}

/* Prefers a process on the fast path, where it is often used. */
static struct sim_proc *hasty_proc(struct sim *s)
{
    struct sim_proc *p = random_proc(s);
    for (uint32_t i = 0; s->options.fast && i < 12; i++) {
        if (p && p->fast.op) break;
        p = random_proc(s);
    }
    return p;
}

/* In a storm prefers a process that moves shared state. */
static struct sim_proc *unlucky_proc(struct sim *s)
{
    struct sim_proc *one = s->options.storm ? party(s) : NULL;
    if (one) {
        s->storm_id = one->session->sync_state.id;
        return one;
    }
    if (s->options.fast) return hasty_proc(s);
    struct sim_proc *p = random_proc(s);
    for (uint32_t i = 0; s->options.storm && i < 12; i++) {
        if (p && p->session->sync_state.phase == STATE_MOVING) break;
        p = random_proc(s);
    }
    return p;
}

void sim_crash(struct sim *s, struct sim_proc *p)
{
    if (alive(s) < 2) return;
    noted(s, s->now);
    sim_coverage.crash++;
    sim_coverage.crash_joining += p->session->state == SESSION_JOINING;
    if (!p->joiner) sim_lower_quorum(s);
    sim_proc_end(s, p, true);
}

static void crash(struct sim *s)
{
    uint32_t count = 1;
    bool many = !s->options.storm && sim_pick(s, 4) == 0;
    if (many) count = 1 + sim_pick(s, alive(s) + 1);
    if (count > 1) sim_coverage.crash_many++;
    struct sim_proc *relay = walls_relay(s);
    if (relay && sim_pick(s, 2) == 0) {
        sim_crash(s, relay);
        return;
    }
    while (count-- > 0 && alive(s) > 1) sim_crash(s, unlucky_proc(s));
}

static void freeze(struct sim *s)
{
    struct sim_proc *p = hasty_proc(s);
    if (!p || p->frozen) return;
    p->frozen = true;
    pccl_ns longest = (sim_pick(s, 4) == 0 ? 12 : 3) * SIM_DEADLINE;
    p->thaw_at = s->now + sim_pick(s, (uint32_t)longest);
    sim_coverage.freeze++;
    SIM_TRACE(s, "process %u freezes", p->uid);
}

/* It lives, and runs again at some time. */
static void starve(struct sim *s)
{
    struct sim_proc *p = hasty_proc(s);
    if (!p || p->frozen) return;
    p->frozen = p->starved = true;
    p->starved_at = s->now;
    p->thaw_at = s->now + sim_pick(s, 8 * (uint32_t)SIM_DEADLINE);
    noted(s, p->thaw_at); /* it is waited for (M10b) */
    sim_coverage.starved++;
    SIM_TRACE(s, "process %u starves", p->uid);
}

/* It lives, and does not answer the master. */
static void mute(struct sim *s)
{
    /* The last one: none of them. */
    static const enum wire_type answers[] = {
        WIRE_FLUSHED, WIRE_REPLY, WIRE_RESULT, WIRE_READY, WIRE_TYPE_COUNT};
    struct sim_proc *p = hasty_proc(s);
    if (!p || p->mute) return;
    p->mute = answers[sim_pick(s, ARRAY_COUNT(answers))];
    SIM_TRACE(s, "process %u never sends answer %u", p->uid, p->mute);
}

/* The master is stopped, or its network is down. TCP tries again within the
 * time of the outage. */
static void pause_master(struct sim *s)
{
    if (s->master_paused_until > s->now) return;
    uint32_t longest = 4 * (uint32_t)SIM_DEADLINE;
    pccl_ns until = s->now + sim_pick(s, longest);
    bool cut = sim_pick(s, 2) == 0;
    for (uint32_t i = 0; cut && i < s->stream_end; i++) {
        struct net_stream *st = &s->streams[i];
        if (!st->used || !st->control) continue;
        for (int side = 0; side < 2; side++)
            st->pipe[side].open_at =
                until + sim_pick(s, (uint32_t)(until - s->now) + 1);
    }
    /* After a stop the driver reads before it judges. */
    if (!cut) s->master_tick_at = until + PCCL_TIME_TO_PING(SIM_DEADLINE);
    if (!cut) s->master_paused_until = until;
    if (cut && until > s->master_cut_until) s->master_cut_until = until;
    noted(s, cut ? until + longest : until);
    sim_coverage.paused++;
    SIM_TRACE(s, "the master %s", cut ? "is cut off" : "pauses");
}

static void thaw(struct sim *s)
{
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        struct sim_proc *p = &s->procs[i];
        if (!p->frozen || p->thaw_at > s->now) continue;
        p->frozen = p->starved = false;
        noted(s, s->now);
        p->program.progress_at = s->now;
        SIM_TRACE(s, "process %u thaws", p->uid);
    }
}

static struct net_stream *random_stream(struct sim *s, bool control)
{
    if (s->stream_end == 0) return NULL;
    uint32_t first = sim_pick(s, s->stream_end);
    for (uint32_t i = 0; i < s->stream_end; i++) {
        uint32_t k = (first + i) % s->stream_end;
        struct net_stream *st = &s->streams[k];
        bool linked = st->end[0].proc >= 0 && st->end[1].proc >= NET_MASTER &&
                      (!control || st->end[1].conn != UINT32_MAX);
        if (st->used && st->control == control && linked && !s->dialing[k])
            return st;
    }
    return NULL;
}

/* One end notices a reset later than the other. Until then the bytes that it
 * writes are lost silently. */
static void delay_notice(struct sim *s, struct net_stream *st)
{
    pccl_ns until = s->now + sim_pick(s, (uint32_t)(2 * SIM_DEADLINE));
    uint32_t late = sim_pick(s, 2);
    st->pipe[late].deaf_until = until;
    st->pipe[!late].open_at = until;
    noted(s, until);
    sim_coverage.reset_half++;
}

/* One connection of a link with others, while it carries an operation. */
static bool is_striped(const struct sim *s, const struct net_stream *st)
{
    int proc = st->end[0].proc;
    if (st->control || proc < 0) return false;
    const struct engine *e = s->procs[proc].session->engine;
    const struct conn *c = e->links.conns[st->end[0].conn];
    return c && c->state == CONN_OPEN && c->link && c->link->open > 1 &&
           op_uses_link(e, c->link, NULL);
}

static void reset(struct sim *s, bool control)
{
    struct net_stream *st = random_stream(s, control);
    if (!st) return;
    sim_coverage.striped_cut += is_striped(s, st);
    for (int side = 0; side < 2; side++) {
        struct net_pipe *p = &st->pipe[side];
        net_cut(p, sim_pick(s, (uint32_t)p->count + 1));
        p->ended = true;
    }
    if (!control && s->options.half_reset) delay_notice(s, st);
    if (control)
        sim_coverage.control_reset++;
    else
        sim_coverage.reset++;
    SIM_TRACE(s, "reset between %d and %d", st->end[0].proc, st->end[1].proc);
}

static void refuse(struct sim *s)
{
    struct sim_proc *a = random_proc(s);
    struct sim_proc *b = random_proc(s);
    if (!a || !b || a == b) return;
    uint32_t i = sim_pick(s, SIM_REFUSALS_MAX);
    s->refusals[i].a = a->uid;
    s->refusals[i].b = b->uid;
    pccl_ns longest =
        sim_pick(s, 3) == 0 ? 20 * SIM_DEADLINE : 4 * SIM_DEADLINE;
    s->refusals[i].until = s->now + sim_pick(s, (uint32_t)longest);
    noted(s, s->refusals[i].until);
    SIM_TRACE(s, "refusals between %u and %u", a->uid, b->uid);
    reset(s, false); /* some traffic must need the connection */
    for (uint32_t k = 0; k < s->stream_end; k++) {
        struct net_stream *st = &s->streams[k];
        int x = (int)(a - s->procs);
        int y = (int)(b - s->procs);
        bool ours = (st->end[0].proc == x && st->end[1].proc == y) ||
                    (st->end[0].proc == y && st->end[1].proc == x);
        if (!st->used || st->control || !ours) continue;
        st->pipe[0].ended = st->pipe[1].ended = true;
    }
}

static void stall(struct sim *s)
{
    struct net_stream *st = random_stream(s, sim_pick(s, 3) == 0);
    if (!st) return;
    pccl_ns until = s->now + sim_pick(s, (uint32_t)(2 * SIM_DEADLINE));
    uint32_t which = sim_pick(s, 3);
    for (uint32_t side = 0; side < 2; side++) {
        if (which != 2 && which != side) continue;
        st->pipe[side].open_at = until;
    }
    noted(s, until);
    sim_coverage.stall++;
}

static void leave(struct sim *s)
{
    struct sim_proc *p = unlucky_proc(s);
    if (!p || alive(s) < 2 || p->leave_soon) return;
    if (!p->joiner) sim_lower_quorum(s);
    p->leave_soon = true;
    sim_coverage.leave++;
}

static void join(struct sim *s)
{
    uint32_t count = 1 + sim_pick(s, 2);
    while (count-- > 0 && alive(s) < s->options.alive_max) {
        (void)sim_proc_start(s, true, -1, sim_pick(s, s->options.groups));
        sim_coverage.join++;
    }
}

/* Where the fast path is often used most faults happen on it. */
static bool is_slow_moment(const struct sim *s)
{
    if (!s->options.fast) return false;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);)
        if (s->procs[i].fast.op) return false;
    return true;
}

/* A member is in the midst of an all-reduce of several sites, of what it reads
 * where another one has put it, or of what goes over a grid. */
static bool is_amid(const struct sim *s)
{
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        const struct sim_program *g = &s->procs[i].program;
        for (uint32_t k = 0; k < g->count; k++) {
            const struct op *op = g->ops[k].taken ? NULL : g->ops[k].op;
            if (!op || op_phase(op) != PHASE_RUNNING) continue;
            const struct algorithm *a = op->plan.algorithm;
            if ((a == &allreduce_direct && op->plan.r.hierarchy) ||
                (a == &spread_single_copy && op->mapped_bytes > 0) ||
                a == &allreduce_grid || a == &broadcast_grid)
                return true;
        }
    }
    return false;
}

static bool happens(struct sim *s, uint32_t rate)
{
    if (rate > 0 && is_slow_moment(s)) rate = rate / 32 + 1;
    if (rate == 0 || sim_pick(s, 1000000) >= rate) return false;
    noted(s, s->now);
    return true;
}

void sim_faults(struct sim *s)
{
    const struct sim_options *o = &s->options;
    thaw(s);
    strange_turn(s);
    fetch_turn(s);
    lasting_turn(s);
    if (s->healing) return;
    /* A transfer ends soon. */
    uint32_t storm = o->storm && party(s) ? 1000 : 1;
    if (happens(s, o->crash * storm)) crash(s);
    if (o->amid && alive(s) > 4 && is_amid(s) && happens(s, 20000))
        sim_crash(s, unlucky_proc(s));
    if (happens(s, o->freeze)) freeze(s);
    if (happens(s, o->starve)) starve(s);
    if (happens(s, o->mute)) mute(s);
    if (happens(s, o->pause)) pause_master(s);
    if (happens(s, o->reset)) reset(s, false);
    if (happens(s, o->control_reset)) reset(s, true);
    if (happens(s, o->refuse)) refuse(s);
    if (happens(s, o->stall)) stall(s);
    if (happens(s, o->leave)) leave(s);
    if (happens(s, o->join)) join(s);
    if (o->masters > 0 && s->master->founded &&
        s->now >= s->master_down_until && happens(s, o->masters))
        s->dying = true;
    if (happens(s, o->stutter)) strange_stutter(s);
    if (happens(s, o->garble)) strange_garble(s);
    if (happens(s, o->strangers)) strange_call(s);
}

void sim_heal(struct sim *s)
{
    s->healing = true;
    s->last_fault = s->now;
    if (s->options.masters > 0) s->last_fault += 2 * SIM_GRACE;
    if (s->master_down_until > s->now) /* it ticks as soon as it runs */
        s->master_down_until = s->master_tick_at = s->now;
    if (s->master_paused_until > s->now)
        s->master_tick_at = s->now + PCCL_TIME_TO_PING(SIM_DEADLINE);
    s->master_paused_until = s->master_cut_until = 0;
    lasting_heal(s);
    /* Without a relay those that are left may never be linked. */
    if (!s->options.relays) s->options.walls = false;
    sim_master_widen(s);
    for (uint32_t i = 0; i < SIM_REFUSALS_MAX; i++) s->refusals[i].until = 0;
    for (uint32_t i = 0; i < s->stream_end; i++) {
        for (int side = 0; side < 2; side++) {
            struct net_pipe *p = &s->streams[i].pipe[side];
            if (p->open_at > s->now) p->open_at = s->now;
            if (p->deaf_until > s->now) p->deaf_until = s->now;
        }
    }
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        struct sim_proc *p = &s->procs[i];
        p->thaw_at = s->now;
        p->mute = 0;
        p->strange = (struct sim_strange){0};
        p->program.steps_done = 0;
    }
    thaw(s);
    if (alive(s) == 0) (void)sim_proc_start(s, true, -1, 0);
    while (!s->master->founded && s->master->quorum > 1) sim_lower_quorum(s);
    if (!s->master->founded) (void)sim_proc_start(s, false, -1, 0);
    while (alive(s) < s->options.minimum) (void)sim_proc_start(s, true, -1, 0);
    SIM_TRACE(s, "faults stop");
}
