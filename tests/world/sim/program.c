/* program.c - the steps that every process runs, in the same order.
 *
 * All decisions are a function of (seed, step), so that members agree without
 * communication. After an admission, an update and (by variant) a failure all
 * members agree on the step by an all-reduce MAX, the resync. */
#include "program.h"
#include "witness.h"

#include "../../../include/pccl.h"

#include <string.h>

enum { RESYNC_TAG = 1000 };

static void go(struct sim *s, struct sim_proc *p, enum sim_stage stage)
{
    p->program.stage = stage;
    p->program.progress_at = s->now;
    p->program.waiting = false;
}

static bool odd_one(const struct sim *s, const struct sim_proc *p, uint64_t key)
{
    uint32_t size = p->session->notified.view->size;
    return size > 1 && program_hash(s, p->program.step, key) % size ==
                           p->session->notified.view->rank;
}

/* One argument of this member differs from the others'. */
static void make_odd(const struct sim *s, const struct sim_program *g,
                     struct sim_spec *spec)
{
    uint64_t which = program_hash(s, g->step, 503) % 3;
    spec->quant.algorithm = QUANT_NONE;
    bool rooted = spec->coll == COLL_BROADCAST || spec->flow != FLOW_ALL;
    if (which == 0 && rooted)
        spec->root = (spec->root + 1) % spec->size;
    else if (which == 1)
        spec->coll =
            spec->coll == COLL_ALLREDUCE ? COLL_BROADCAST : COLL_ALLREDUCE;
    else
        spec->count++;
    spec_fit_flow(spec);
}

/* Some of the view instead of all of it (rule V4). */
static bool narrow_scope(const struct sim *s, const struct sim_proc *p,
                         struct sim_spec *spec)
{
    uint64_t h = program_hash(s, p->program.step, 506);
    struct sim_spec all = *spec;
    if (h % 2 == 0 || all.size < 3) return false;
    spec->size = 0;
    spec->scoped = true;
    for (uint32_t i = 0; i < all.size; i++) {
        bool in = i == all.self || i == (all.self + 1) % all.size ||
                  (h >> (i + 8) & 1 && i != (all.self + 2) % all.size);
        if (i == all.self) spec->self = spec->size;
        if (in) spec->ids[spec->size++] = all.ids[i];
    }
    spec->root %= spec->size;
    return true;
}

static void begin_launch(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    p->session->traits =
        (uint32_t)program_hash(s, g->step, 700 + p->session->id);
    g->count =
        program_special(s, g->step)
            ? 1
            : 1 + (uint32_t)(program_hash(s, g->step, 501) % SIM_OPS_MAX);
    if (s->options.large) g->count = 1 + g->count / 2;
    if (s->options.fast && program_hash(s, g->step, 507) % 4 > 0) g->count = 1;
    if (s->options.refuse) g->count = 1; /* an update may cross any of them */
    for (uint32_t i = 0; i < g->count; i++) {
        program_spec(s, p, i, &g->ops[i].spec);
        g->order[i] = (uint8_t)i;
        g->ops[i].op = NULL;
        g->ops[i].taken = false;
    }
    if (program_special(s, g->step)) {
        struct sim_spec *spec = &g->ops[0].spec;
        if (!s->options.mismatch && spec->coll > COLL_BROADCAST)
            spec->coll = COLL_ALLREDUCE;
        if (s->options.mismatch && spec->coll == COLL_BARRIER)
            spec->coll = COLL_BROADCAST;
        spec_fit_flow(spec);
        if (s->options.mismatch && odd_one(s, p, 502) &&
            !narrow_scope(s, p, spec))
            make_odd(s, g, spec);
    }
    for (uint32_t i = g->count; i > 1; i--) {
        uint32_t k = sim_pick(s, i);
        uint8_t keep = g->order[i - 1];
        g->order[i - 1] = g->order[k];
        g->order[k] = keep;
    }
    g->launched = 0;
    g->resync = false;
    go(s, p, STAGE_LAUNCH);
}

static void begin_resync(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    struct sim_op *o = &g->ops[0];
    g->apart = false;
    for (uint32_t i = 0; i < g->count; i++)
        g->apart |= g->ops[i].spec.scoped && g->ops[i].result != 0;
    o->spec = (struct sim_spec){.ident = SIM_RESYNC,
                                .tag = RESYNC_TAG,
                                .coll = COLL_ALLREDUCE,
                                .count = 1,
                                .dtype = DTYPE_I64,
                                .redop = REDOP_MAX,
                                .in_place = g->step % 2};
    const struct view *t = p->session->notified.view;
    for (uint32_t i = 0; i < t->size; i++) {
        if (t->members[i].id == p->session->id) o->spec.self = i;
        o->spec.ids[o->spec.size++] = t->members[i].id;
    }
    g->count = 1;
    g->launched = 0;
    g->order[0] = 0;
    g->resync = true;
    go(s, p, STAGE_LAUNCH);
}

static void end_step(struct sim *s, struct sim_proc *p)
{
    p->program.step++;
    p->program.steps_done++;
    go(s, p, STAGE_STEP);
}

static void begin_step(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    uint64_t h = program_hash(s, g->step, 503) % 8;
    g->odd_vote = s->options.odd_vote && program_special(s, g->step) &&
                  odd_one(s, p, 504);
    bool optimize =
        s->options.optimize && program_hash(s, g->step, 505) % 5 == 0;
    if (s->options.fast && program_hash(s, g->step, 508) % 4 > 0)
        begin_launch(s, p);
    else if (g->odd_vote && !optimize && h >= s->options.sync + 3 &&
             g->step % 3 == 0)
        go(s, p, STAGE_PENDING);
    else if (optimize)
        go(s, p, STAGE_OPTIMIZE);
    else if (g->odd_vote || (h == 0 && s->options.groups == 1))
        go(s, p, STAGE_UPDATE);
    else if (h < 3)
        go(s, p, STAGE_PENDING);
    else if (h < s->options.sync + 3)
        go(s, p, STAGE_SYNC);
    else
        begin_launch(s, p);
}

static bool vote(struct sim *s, struct sim_proc *p, enum vote_kind kind)
{
    struct sim_program *g = &p->program;
    struct session *x = p->session;
    if (!g->waiting) {
        int result = session_vote(x, kind);
        SIM_TRACE(s, "process %u (id %llu) votes %d: %d", p->uid,
                  (unsigned long long)x->id, (int)kind, result);
        SIM_CHECK(s, result == pcclSuccess || x->master_lost,
                  "vote refused: %d", result);
        if (result != pcclSuccess) {
            session_leave(x);
            return true;
        }
        g->waiting = true;
        return true;
    }
    if (x->votes[kind] != VOTE_ANSWERED) return false;
    x->votes[kind] = VOTE_IDLE;
    uint32_t flag = x->answers[kind];
    bool well = s->options.sync == 0 || s->options.well;
    witness_answer(p, kind, flag);
    SIM_CHECK(s, !s->options.spares || !well || flag != 0xff,
              "H6: a vote is refused that nobody disagrees with");
    oracle_answer(s, p, kind, flag);
    g->waiting = false;
    if (kind == VOTE_PENDING) {
        sim_count_pending(flag, g->odd_vote);
        if (flag == 0 || g->odd_vote)
            begin_launch(s, p); /* if odd, the call that the others wait in */
        else if (flag == 0xff)
            begin_resync(s, p);
        else
            go(s, p, STAGE_UPDATE);
    } else {
        begin_resync(s, p);
    }
    return true;
}

static void after_ops(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    bool lost = false;
    bool failed = false;
    bool unreachable = false;
    bool few = false;
    for (uint32_t i = 0; i < g->count; i++) {
        int r = g->ops[i].result;
        /* A member outside of the scope goes on. */
        if (r == pcclOperationFailed && g->ops[i].spec.scoped) continue;
        lost |= r == pcclRankConnectionLost && !g->ops[i].spec.scoped;
        unreachable |= r == pcclRankConnectionFailed;
        few |= r == pcclTooFewPeers;
        failed |= r != pcclSuccess && r != pcclRankConnectionLost;
    }
    if (few) { /* rule M14: the update waits for newcomers */
        go(s, p, STAGE_UPDATE);
        return;
    }
    bool special = !g->resync && program_special(s, g->step);
    bool variant = s->options.variant_resync && lost;
    /* Without refusals this is rare, and the program does not handle it. */
    if (unreachable && !s->options.refuse && !s->options.single) s->over = true;
    /* An update would try the pair again. */
    if (s->options.single) unreachable = false;
    if (!g->resync && (failed || special || variant)) {
        g->step++;
        if (unreachable)
            go(s, p, STAGE_UPDATE);
        else
            begin_resync(s, p);
        return;
    }
    if (g->resync) {
        if (g->ops[0].result == pcclSuccess)
            begin_launch(s, p);
        else if (unreachable)
            go(s, p, STAGE_UPDATE);
        else
            begin_resync(s, p);
        return;
    }
    if (!lost || s->options.variant_skip) {
        end_step(s, p);
        return;
    }
    uint32_t again = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->ops[i].result != pcclRankConnectionLost || g->ops[i].spec.scoped)
            continue;
        uint32_t index = (uint32_t)(g->ops[i].spec.ident % 8);
        program_spec(s, p, index, &g->ops[again].spec);
        /* Complete results stay complete. */
        g->order[again] = (uint8_t)again;
        again++;
    }
    sim_coverage.again++;
    g->count = again;
    g->launched = 0;
    go(s, p, STAGE_LAUNCH);
}

static bool take_one(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    uint32_t first = sim_pick(s, g->count);
    bool all = true;
    for (uint32_t i = 0; i < g->count; i++) {
        struct sim_op *o = &g->ops[(first + i) % g->count];
        if (o->taken) continue;
        if (o->op->phase == PHASE_DONE) {
            program_take(s, p, o);
            g->progress_at = s->now;
            return true;
        }
        all = false;
    }
    if (!all) return false;
    after_ops(s, p);
    return true;
}

static bool synchronize(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    if (!g->waiting) {
        g->waiting = shared_begin(s, p);
        if (!g->waiting && p->session->master_lost) session_leave(p->session);
        return true;
    }
    if (p->session->sync != SYNC_OVER) return false;
    bool crossed = strstr(p->session->sync_error, "another call") != NULL;
    shared_end(s, p);
    if (crossed && p->session->state == SESSION_MEMBER) {
        g->step++;
        begin_resync(s, p);
        return true;
    }
    end_step(s, p);
    return true;
}

/* A process that is evicted, has left or has no master starts again, or
 * ends. */
static bool gone(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    for (uint32_t i = 0; i < g->count; i++) {
        struct sim_op *o = &g->ops[i];
        if (!o->op) continue;
        SIM_CHECK(s, o->op->phase == PHASE_DONE, "an operation of the gone");
        program_take(s, p, o);
    }
    if (p->session->sync == SYNC_OVER) shared_end(s, p);
    SIM_TRACE(s, "process %u is gone: %s", p->uid, p->session->reason);
    SIM_CHECK(s,
              !s->options.spares || p->session->leaving ||
                  s->options.averages || /* A10 */
                  p->session->view->epoch == 0,
              "H7: a member that lives is lost: %s", p->session->reason);
    sim_coverage.scarce_gone += strstr(p->session->reason, "memory") != NULL;
    uint32_t group = p->group, again = !p->session->leaving || s->healing;
    if (!p->joiner && !p->leave_soon) sim_lower_quorum(s);
    sim_proc_end(s, p, false);
    if (s->options.single != SINGLE_NONE && !s->healing) {
        s->evictions++;
        return true;
    }
    if (again && (s->healing || sim_pick(s, 3) > 0))
        (void)sim_proc_start(s, true, -1, group);
    return true;
}

static void wait_for_all(struct sim *s, struct sim_proc *p)
{
    for (uint32_t i = 0; i < p->program.count; i++)
        if (p->program.ops[i].op && !p->program.ops[i].taken)
            op_set_awaited(p->program.ops[i].op, true);
    go(s, p, STAGE_TAKE);
}

/* What is withheld comes last: the others may have to end the rest before they
 * can launch it again (fail.c). */
static bool launch_next(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    uint8_t *next = &g->order[g->launched], *last = &g->order[g->count - 1];
    if (fail_withholds(s, p, &g->ops[*next])) {
        uint8_t withheld = *next;
        *next = *last;
        *last = withheld;
        return next != last;
    }
    if (program_launch(s, p, &g->ops[*next])) g->launched++;
    return true;
}

bool program_turn(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    struct session *x = p->session;
    if (x->state == SESSION_GONE) return gone(s, p);
    if (p->leave_soon && g->stage != STAGE_LEAVING) {
        session_leave(x);
        go(s, p, STAGE_LEAVING);
        return true;
    }
    bool allowed = g->stage == STAGE_UPDATE || g->stage == STAGE_OPTIMIZE ||
                   g->stage == STAGE_JOIN;
    oracle_told(s, p, allowed);
    switch (g->stage) {
    case STAGE_JOIN:
        if (x->state != SESSION_MEMBER) return false;
        begin_resync(s, p);
        return true;
    case STAGE_STEP:
        begin_step(s, p);
        return true;
    case STAGE_PENDING:
        return vote(s, p, VOTE_PENDING);
    case STAGE_UPDATE:
        return vote(s, p, VOTE_UPDATE);
    case STAGE_OPTIMIZE:
        return vote(s, p, VOTE_OPTIMIZE);
    case STAGE_SYNC:
        return synchronize(s, p);
    case STAGE_LAUNCH:
        if (g->launched < g->count) return launch_next(s, p);
        wait_for_all(s, p);
        return true;
    case STAGE_TAKE:
        return take_one(s, p) || fail_asks(s, p);
    case STAGE_RESYNC:
    case STAGE_LEAVING:
        return false;
    }
    return false;
}
