/* program_fast.c - operations on the fast path (rule D9).
 *
 * Between its calls nothing else happens in the process. But the others do
 * whatever they like: each look at the channels is an event of its own, and
 * where `fast_stops`, so is each frame that is written. Counts what the path
 * has met. */
#include "program.h"
#include "witness.h"

#include "../../../include/pccl.h"

#include <string.h>

enum { PATIENCE = 64, DIES_AMID = 48 };

/* In some universes with a tree: its members are more than are all linked. In
 * some others only the all-reduces go over a tree. */
void sim_choose_tree(struct sim_options *o, uint64_t seed)
{
    if (seed % 17 == 2 || seed % 17 == 9) o->algorithm = "allreduce:tree";
    if (seed % 11 != 7 && seed % 11 != 10) return;
    o->procs = o->quorum = 9 + (uint32_t)(seed / 11 % 5);
    o->alive_max = SIM_ALIVE_MAX;
    o->tree_width = (uint32_t)(seed % 16 == 12 ? 0 : 2 + (seed % 3 == 0));
}

/* In all universes of this kind, and in few others: with a grid, as each member
 * has a host of its own. */
void sim_choose_grid(struct sim_options *o, uint64_t seed, bool all,
                     bool others)
{
    if (!all && (others || seed % 101 != 57)) return;
    o->procs = o->quorum = 5 + (uint32_t)(seed % 9);
    o->alive_max = SIM_ALIVE_MAX;
    o->one_host = false;
    o->sites = SIM_ALIVE_MAX;
    o->mesh_max = 4;
}

/* Members are lost amid the large vectors of several sites (D15), amid those
 * that one member puts where all others of its host take them (D16), and amid
 * those that go over a grid (D22, D24). */
void sim_choose_lost(struct sim_options *o, uint64_t seed, bool others)
{
    bool sites = seed % 80 == 38, spread = seed % 80 == 70;
    bool grid = seed % 80 == 54;
    if (others || o->slow || o->storm || (!sites && !spread && !grid)) return;
    o->procs = o->quorum = grid ? 9 : SIM_FEW;
    if (grid) o->alive_max = SIM_ALIVE_MAX;
    if (grid) o->mesh_max = 4;
    o->one_host = o->pairwise = o->lends = spread;
    o->interleaved = false;
    o->sites = sites ? 2 : grid ? SIM_ALIVE_MAX : 0;
    o->large = true;
    o->pipe_max += 32768 - o->pipe_min;
    o->pipe_min = 32768;
    o->share = spread ? 65536 : 0;
    o->share_fails = false;
    o->amid = true;
    o->piece = 8192u << seed / 80 % 4;
    o->algorithm = sites ? "direct" : "single_copy";
    if (grid) o->algorithm = seed / 80 % 2 ? "grid_direct" : "grid_scatter";
    o->crash = o->leave = 0;
    o->join = 4000;
    o->steps += 40000;
}

/* ------------------------------------------------------------- the others */

static struct channel *channel_at(const struct sim_proc *p, uint32_t i,
                                  uint32_t *number)
{
    const struct engine *e = p->session->engine;
    *number = fast_conn(e, i);
    return *number == NO_CONN ? NULL : e->links.conns[*number]->channel;
}

static const struct fast_endpoint *endpoints(const struct fast_path *q)
{
    return q->spoked ? q->star.eps : q->eps;
}

/* Members of the same view, as this process knows it. */
static bool is_partner(const struct sim_proc *p, const struct sim_proc *q)
{
    const struct view *v = p->session->view;
    return q != p && view_find(v, q->session->id) < v->size;
}

static bool has_early(const struct fast_path *q)
{
    if (q->tree || q->spoked) return false;
    for (uint32_t i = 0; i < q->ep_count; i++) {
        if (q->eps[i].early) return true;
    }
    return false;
}

static void look_at_start(const struct sim *s, const struct sim_proc *p,
                          const struct sim_op *o)
{
    struct sim_coverage *c = &sim_coverage;
    const struct engine *e = p->session->engine;
    bool rewound = false, before = false, posted;
    const uint8_t *from;
    uint32_t number;
    struct channel *channel;
    for (uint32_t i = 0; (channel = channel_at(p, i, &number)) != NULL; i++) {
        uint64_t size = FRAME_SIZE + endpoints(&e->fast)[i].sends;
        /* Nothing is written yet, or not there. */
        if (!e->fast.has_sent || e->fast.posts) size = UINT64_MAX;
        rewound |=
            channel->base > 0 && channel->base + size == channel->written;
        before |= channel_look(channel, &from, &posted) > 0;
    }
    SIM_CHECK(s,
              !e->links.frozen && p->session->notified.loss_count == 0 &&
                  !sim_keeps_verdict(p->session, &o->spec),
              "process %u has begun a fast operation that is over", p->uid);
    c->fast_rewound += rewound;
    c->fast_before += before;
    c->fast_early += has_early(&e->fast);
    c->fast_broadcast += o->spec.coll == COLL_BROADCAST;
    c->fast_barrier += o->spec.coll == COLL_BARRIER;
    c->fast_allgather += o->spec.coll == COLL_ALLGATHER;
    c->fast_alltoall += o->spec.coll == COLL_ALLTOALLV;
    c->fast_scatter += o->spec.coll == COLL_REDUCE_SCATTER;
    c->fast_in_place += o->spec.coll == COLL_ALLREDUCE && o->spec.in_place;
    c->fast_letters += s->options.letters;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        const struct sim_proc *q = &s->procs[i];
        if (!is_partner(p, q)) continue;
        const struct engine *other = q->session->engine;
        /* The copy that makes room shows that all have installed it (D9a). */
        SIM_CHECK(s, other->links.view->epoch >= e->links.view->epoch,
                  "process %u has begun a fast operation of epoch %u before "
                  "process %u installed it",
                  p->uid, e->links.view->epoch, q->uid);
        c->fast_unable += other->links.view->epoch == e->links.view->epoch &&
                          other->fast.known && !other->fast.all.able &&
                          !other->fast.near.able;
    }
}

/* The fast path is not taken, although it could be but for the room. */
static void look_at_refusal(const struct sim_proc *p)
{
    const struct fast_path *q = &p->session->engine->fast;
    if (!q->known || !q->all.able || !q->cached || q->tree || q->spoked) return;
    for (uint32_t i = 0; i < q->all.count; i++) {
        const struct channel *c = q->all.eps[i].conn->channel;
        uint64_t used = c->written - c->seen_read;
        sim_coverage.fast_no_room +=
            c->size - used < FRAME_SIZE + q->all.eps[i].sends;
    }
}

static void look_around(const struct sim *s, struct sim_proc *p)
{
    struct sim_fast *f = &p->fast;
    const struct master_group *g = &s->master->groups[p->group];
    uint32_t number;
    f->slept |= s->now - f->turn_at > PCCL_TIME_OF_TICK(SIM_DEADLINE);
    f->turn_at = s->now;
    f->evicted |= !sim_is_member(s, p->session->id);
    f->closed |= g->epoch != p->session->engine->links.view->epoch ||
                 g->phase != GROUP_OPEN;
    for (uint32_t i = 0; channel_at(p, i, &number); i++) {
        int stream = p->conns[number].stream;
        f->ended |= s->streams[stream].pipe[!p->conns[number].side].ended;
    }
}

/* What keeps the path from its end, as fast_poll() sees it. */
static void look_at_frames(const struct sim_proc *p, enum look state)
{
    struct sim_coverage *c = &sim_coverage;
    const struct fast_path *q = &p->session->engine->fast;
    uint32_t some = 0;
    for (uint32_t i = 0; i < q->ep_count && !q->spoked; i++) {
        const struct fast_endpoint *ep = &q->eps[i];
        const uint8_t *from;
        struct frame f;
        some += ep->body != NULL;
        bool posted;
        size_t size = channel_look(ep->conn->channel, &from, &posted);
        if (ep->body || size == 0 || q->tree) continue;
        const uint8_t *head = ep->recvs > 0 ? q->head : q->empty;
        if (q->pairs) head = ep->head;
        c->fast_half_frame += size < FRAME_SIZE + ep->recvs;
        if (size < FRAME_SIZE || memcmp(from, head, FRAME_SIZE) == 0) continue;
        if (!frame_decode(from, &f)) continue;
        bool same = f.scope == 0 && f.tag == q->frame.tag &&
                    f.seq == q->frame.seq && f.epoch == q->frame.epoch;
        c->fast_met_control += f.type != FRAME_DATA;
        c->fast_met_other += f.type == FRAME_DATA && !same;
        c->fast_met_argument +=
            same && f.digest != (q->pairs ? ep->rx_digest : q->frame.digest);
        c->fast_met_flags += same && f.flags != q->frame.flags;
    }
    if (state != LOOK_IDLE) return;
    c->fast_patience_none += some == 0;
    c->fast_patience_some += some > 0;
}

/* ----------------------------------------------------------- amid its frames
 */

static _Atomic uint64_t *last_word(struct engine *e)
{
    const struct board *b = &e->links.board;
    struct board_slot *slot =
        (struct board_slot *)(void *)(b->memory + board_slot_at(b->posts));
    return &slot->word;
}

/* The frames are written, and nobody has seen them: they are shown one after
 * the other, a post to all at once. */
static void hide(struct sim_proc *p)
{
    struct sim_fast *f = &p->fast;
    struct engine *e = p->session->engine;
    uint32_t number;
    struct channel *c;
    if (!e->fast.has_sent) return;
    if (e->fast.posts) {
        f->count = 1;
        f->word = atomic_exchange(last_word(e), 0);
        return;
    }
    for (; (c = channel_at(p, f->count, &number)) != NULL; f->count++)
        atomic_store(&c->own->written, c->written - FRAME_SIZE -
                                           endpoints(&e->fast)[f->count].sends);
}

/* True: something else may happen before it looks for the others' frames. */
static bool show(struct sim *s, struct sim_proc *p)
{
    struct sim_fast *f = &p->fast;
    uint32_t number;
    if (f->shown == f->count) return false;
    if (p->session->engine->fast.posts) {
        sim_coverage.fast_post_late++;
        atomic_store(last_word(p->session->engine), f->word);
        f->shown++;
        return true;
    }
    if (f->shown > 0) sim_coverage.fast_amid++;
    if (f->shown > 0 && s->options.crash > 0 && !s->healing &&
        sim_pick(s, DIES_AMID) == 0) {
        sim_crash(s, p);
        return true;
    }
    const struct channel *c = channel_at(p, f->shown++, &number);
    atomic_store(&c->own->written, c->written);
    return true;
}

/* In a tree it writes to a parent, or to all children; of pairs it sends DONE,
 * and from a root words or DONE.
 * It may die when some have their frames, and others not. */
static bool dies_amid(struct sim *s, struct sim_proc *p,
                      const uint64_t before[FAST_PARTNERS_MAX])
{
    uint64_t written = fast_written(p->session->engine);
    uint32_t number;
    const struct fast_path *q = &p->session->engine->fast;
    if (!(q->tree || q->pairs || q->spoked) || written == 0) return false;
    if (!s->options.fast_stops || s->options.crash == 0 || s->healing ||
        sim_pick(s, DIES_AMID) > 0)
        return false;
    const struct channel *c;
    uint32_t first = sim_pick(s, FAST_PARTNERS_MAX);
    for (uint32_t i = first; (c = channel_at(p, i, &number)) != NULL; i++) {
        atomic_store(&c->own->written, before[i]);
        p->fast.count = 1; /* not all is shown */
    }
    sim_crash(s, p);
    return true;
}

/* Notes what each channel has had. */
static enum look poll_fast(struct sim_proc *p,
                           uint64_t before[FAST_PARTNERS_MAX])
{
    struct engine *e = p->session->engine;
    const struct fast_path *q = &e->fast;
    bool heard[FAST_PARTNERS_MAX] = {false};
    uint32_t number;
    const struct channel *c;
    for (uint32_t i = 0; (c = channel_at(p, i, &number)) != NULL; i++) {
        before[i] = c->written;
        heard[i] = endpoints(q)[i].body != NULL;
    }
    bool held = q->holds;
    enum look state = fast_poll(e);
    /* All have been heard, and the next turn has begun. */
    bool all =
        (q->pairs || q->spoked) && (state == LOOK_DONE || q->holds != held);
    for (uint32_t i = 0; channel_at(p, i, &number) != NULL; i++) {
        const struct fast_endpoint *ep = &endpoints(q)[i];
        bool own = q->pairs || q->spoked;
        if ((ep->body || all) && !heard[i])
            witness_fast(p, ep->link->id,
                         own ? ep->rx_digest : q->frame.digest);
    }
    return state;
}

/* --------------------------------------------------------------- the calls */

bool program_fast(struct sim *s, struct sim_proc *p, struct sim_op *o,
                  const struct op_request *r, uint64_t view_epoch)
{
    struct sim_fast *f = &p->fast;
    /* Some members take it always, and some never. */
    uint32_t share = 3;
    if (s->options.fast)
        share = (uint32_t)(sim_mix(s->seed, 83, p->uid, 0) % 8) + 1;
    if (s->options.lends && s->seed % 3 > 0) share = 4;
    f->request = *r;
    if (sim_pick(s, 4) >= share) return false;
    if (!session_fast(p->session, &f->request, view_epoch)) {
        look_at_refusal(p);
        return false;
    }
    f->op = o;
    f->polls = f->count = f->shown = 0;
    f->turn_at = f->began = s->now;
    f->slept = f->closed = f->ended = f->evicted = false;
    look_at_start(s, p, o);
    if (s->options.fast_stops && sim_pick(s, 4) > 0) hide(p);
    return true;
}

static void count_done(const struct sim *s, const struct sim_proc *p,
                       const struct sim_op *o)
{
    struct sim_coverage *c = &sim_coverage;
    const struct sim_fast *f = &p->fast;
    c->fast++;
    c->fast_at_once += f->polls == 0;
    c->fast_waited += f->polls > 0;
    c->fast_tree += p->session->engine->fast.tree;
    c->fast_posts += p->session->engine->fast.posts;
    c->fast_sums += p->session->engine->fast.sums;
    c->fast_tree_beside +=
        p->session->engine->fast.tree &&
        p->session->engine->fast.choices[f->request.plan.coll][0]->fast ==
            FAST_FLAT;
    c->fast_pairs += p->session->engine->fast.pairs;
    c->fast_closed_done += f->closed;
    c->fast_ended_done += f->ended;
    c->fast_evicted_done += f->evicted;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        const struct sim_proc *q = &s->procs[i];
        for (uint32_t k = 0; k < q->program.count; k++) {
            const struct sim_op *other = &q->program.ops[k];
            c->fast_mixed += other->op && !other->converted &&
                             other->key.ident == o->key.ident &&
                             other->key.epoch == o->key.epoch;
        }
    }
}

static void count_converted(const struct sim_proc *p, enum look state)
{
    struct sim_coverage *c = &sim_coverage;
    const struct sim_fast *f = &p->fast;
    look_at_frames(p, state);
    c->fast_converted++;
    c->fast_tree_converted +=
        p->session->engine->fast.tree && p->session->engine->fast.has_sent;
    c->fast_pairs_converted += p->session->engine->fast.pairs;
    c->fast_pairs_held +=
        p->session->engine->fast.pairs && p->session->engine->fast.holds;
    c->fast_early_converted += has_early(&p->session->engine->fast);
    c->fast_sums_converted += p->session->engine->fast.sums;
    c->fast_slept += f->slept;
    c->fast_closed += f->closed;
    c->fast_ended += f->ended;
    c->fast_evicted += f->evicted;
    c->fast_leaving += p->leave_soon;
}

bool program_quick(struct sim *s, struct sim_proc *p)
{
    struct sim_fast *f = &p->fast;
    struct sim_op *o = f->op;
    struct engine *e = p->session->engine;
    uint32_t patience = s->options.fast ? s->options.fast_patience : PATIENCE;
    look_around(s, p);
    if (show(s, p)) return true;
    uint64_t before[FAST_PARTNERS_MAX] = {0};
    enum look state = poll_fast(p, before);
    if (dies_amid(s, p, before)) return true;
    /* A real call has some milliseconds. A member that stays here for a
     * deadline is silent, and lost: not where no living member may be. */
    bool over = s->now - f->began >
                (s->options.spares ? SIM_DEADLINE / 4 : 2 * SIM_DEADLINE);
    if (state == LOOK_IDLE && !over && sim_pick(s, patience) > 0) {
        f->polls++;
        return false;
    }
    f->op = NULL;
    if (state == LOOK_DONE) {
        count_done(s, p, o);
        f->done[f->done_count++ % ARRAY_COUNT(f->done)] = e->fast.frame;
        o->result = pcclSuccess;
        o->fast = true;
        program_ends(s, p, o, p->session->notified.view->size);
        p->program.progress_at = s->now;
        return true;
    }
    count_converted(p, state);
    o->began = e->links.view->epoch;
    o->op = session_convert(p->session);
    SIM_CHECK(s, o->op != NULL || s->options.scarce, "no memory");
    o->converted = o->op != NULL;
    return true;
}

void program_fast_taken(const struct sim_proc *p, const struct sim_op *o)
{
    struct sim_coverage *c = &sim_coverage;
    int result = o->op->result;
    bool given = o->op->rx_bytes == 0 && o->op->epoch == o->began &&
                 p->session->view->epoch != o->began;
    c->fast_survived += result == pcclSuccess && o->op->epoch == o->began &&
                        p->session->view->epoch != o->began;
    c->fast_given += result == pcclSuccess && given && o->op->ep_count == 0;
    c->fast_again += o->op->epoch != o->began;
    c->fast_lost += result == pcclRankConnectionLost;
    c->fast_invalid += result == pcclInvalidArgument;
    c->fast_failed += result == pcclOperationFailed;
    c->fast_usage += result == pcclInvalidUsage;
}

void program_gives(const struct sim_proc *p, const struct wire_msg *msg)
{
    const struct sim_fast *f = &p->fast;
    if (msg->type != WIRE_RESULT) return;
    for (uint32_t i = 0; i < f->done_count && i < ARRAY_COUNT(f->done); i++)
        sim_coverage.fast_gives += msg->result.scope == 0 &&
                                   msg->result.tag == f->done[i].tag &&
                                   msg->result.seq == f->done[i].seq &&
                                   p->session->view->epoch == f->done[i].epoch;
}
