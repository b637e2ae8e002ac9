/* witness.c - see witness.h. Translates, and decides nothing. */
#include "witness.h"

#include "faults.h"

#include "../../../include/pccl.h"
#include "../../../src/base/scope.h"
#include "../../../src/link/link.h"
#include "../model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*witness_tap)(const struct trace *t);
struct witness_note *witness_lenient;

struct witness {
    struct model *model;
    uint32_t uids[MASTER_LINKS_MAX]; /* by link; 0: never said HELLO */
};

struct witness *witness_new(struct sim *s)
{
    const char *off = getenv("SIM_MODEL");
    if (off && strcmp(off, "off") == 0) return NULL;
    struct witness *w = calloc(1, sizeof *w);
    SIM_CHECK(s, w, "no memory");
    w->model = model_new(SIM_DEADLINE);
    SIM_CHECK(s, w->model, "no memory");
    return w;
}

void witness_free(struct sim *s)
{
    struct witness *w = s->witness;
    s->witness = NULL;
    if (w) model_free(w->model);
    free(w);
}

static void refused(struct sim *s, const char *why)
{
    if (!why) return;
    if (!witness_lenient) sim_fail(s, "the model refuses this", "%s", why);
    SIM_TRACE(s, "the model: %s", why);
    witness_lenient->refused = true;
    (void)snprintf(witness_lenient->why, sizeof witness_lenient->why, "%s",
                   why);
    model_free(s->witness->model);
    s->witness->model = NULL;
}

/* The master does not look at its clock because somebody watches. */
void witness_tell(struct sim *s, struct trace *t)
{
    struct own_clock unseen = s->master_own;
    t->time = own_clock_at(&unseen, strange_now(s, &s->master_clock),
                           PCCL_TIME_TO_PING(SIM_DEADLINE));
    if (witness_tap) {
        witness_tap(t);
        return;
    }
    if (s->witness->model) refused(s, model_take(s->witness->model, t));
}

void witness_end(struct sim *s)
{
    struct trace end = {.kind = TRACE_END};
    if (!s->witness) return;
    witness_tell(s, &end);
    if (!witness_tap && s->witness->model)
        refused(s, model_end(s->witness->model));
}

/* --------------------------------------------------------------- messages */

/* A record and the memory of its lists. */
struct written {
    struct trace t;
    struct trace_name names[WIRE_OPS_MAX];
    uint64_t sets[WIRE_SETS_MAX];
    uint64_t added[SIM_PROCS_MAX];
    uint64_t ends[2];
};

static void write_lists(struct written *w, const struct wire_msg *m)
{
    w->t.name_count = m->op_count;
    for (uint32_t i = 0; i < m->op_count; i++)
        w->names[i] =
            (struct trace_name){m->ops[i].scope, m->ops[i].tag, m->ops[i].seq,
                                m->ops[i].state, m->ops[i].donor};
    w->t.id_count = m->id_count;
    w->t.ids = m->ids;
    w->t.set_count = m->set_count;
    for (uint32_t i = 0; i < m->set_count; i++) {
        w->sets[i] = 0;
        for (uint32_t k = 0; k < m->set_size && k < 8; k++)
            w->sets[i] |= (uint64_t)m->sets[i * m->set_size + k] << 8 * k;
    }
    w->t.added_count = m->member_count;
    for (uint32_t i = 0; i < m->member_count && i < SIM_PROCS_MAX; i++)
        w->added[i] = m->members[i].id;
}

static void write_name(struct written *w, uint64_t scope, uint64_t tag,
                       uint32_t seq)
{
    w->names[0] = (struct trace_name){.scope = scope, .tag = tag, .seq = seq};
    w->t.name_count = 1;
}

static uint32_t view_flags(const struct wire_msg *m)
{
    return (m->view.ring ? WITH_RING : 0u) |
           (m->view.update ? FOR_UPDATE : 0u) |
           (m->view.optimize ? FOR_OPTIMIZE : 0u);
}

static void write_resume(struct written *w, const struct wire_msg *m)
{
    w->t.number = m->resume.id;
    w->t.digest = m->resume.term;
    w->t.flag = m->resume.installs;
    if (m->type == WIRE_RESUMED) return;
    w->t.name_count = VOTES; /* what is over for its sender */
    for (uint32_t i = 0; i < VOTES; i++)
        w->names[i] = (struct trace_name){.seq = m->resume.answered[i],
                                          .state = m->resume.answer[i]};
    w->ends[0] = m->resume.sync_over;
    w->ends[1] = m->resume.sync_well;
    w->t.ids = w->ends;
    w->t.id_count = 2;
}

static uint32_t role_of(const struct wire_msg *m)
{
    static const uint8_t roles[SYNC_ROLE_COUNT] = {
        [SYNC_COMPLETE] = ROLE_COMPLETE, [SYNC_WAIT] = ROLE_WAIT,
        [SYNC_RECEIVE] = ROLE_RECEIVE,   [SYNC_DIFFERS] = ROLE_DIFFERS,
        [SYNC_NO_STATE] = ROLE_NO_STATE, [SYNC_AHEAD] = ROLE_AHEAD,
        [SYNC_FOREIGN] = ROLE_FOREIGN,   [SYNC_CONFLICT] = ROLE_CONFLICT,
        [SYNC_MIXED] = ROLE_MIXED,       [SYNC_CROSSED] = ROLE_CROSSED};
    return m->sync.role < SYNC_ROLE_COUNT ? roles[m->sync.role] : ROLE_CROSSED;
}

static const uint8_t types[WIRE_TYPE_COUNT] = {
    [WIRE_HELLO] = MESSAGE_HELLO,       [WIRE_VOTE] = MESSAGE_VOTE,
    [WIRE_SUSPECT] = MESSAGE_SUSPECT,   [WIRE_REFRESH] = MESSAGE_REFRESH,
    [WIRE_FLUSHED] = MESSAGE_FLUSHED,   [WIRE_REPLY] = MESSAGE_REPLY,
    [WIRE_READY] = MESSAGE_READY,       [WIRE_LEAVE] = MESSAGE_LEAVE,
    [WIRE_SYNC] = MESSAGE_SYNC,         [WIRE_BLOCKED] = MESSAGE_BLOCKED,
    [WIRE_RESULT] = MESSAGE_RESULT,     [WIRE_WELCOME] = MESSAGE_WELCOME,
    [WIRE_EVICT] = MESSAGE_EVICT,       [WIRE_ANSWER] = MESSAGE_ANSWER,
    [WIRE_FLUSH] = MESSAGE_FLUSH,       [WIRE_QUERY] = MESSAGE_QUERY,
    [WIRE_DONATE] = MESSAGE_DONATE,     [WIRE_PROPOSE] = MESSAGE_PROPOSE,
    [WIRE_VERDICT] = MESSAGE_VERDICT,   [WIRE_INSTALL] = MESSAGE_INSTALL,
    [WIRE_STATE] = MESSAGE_SYNCED,      [WIRE_PROBE] = MESSAGE_PROBE,
    [WIRE_MEASURED] = MESSAGE_MEASURED, [WIRE_RESUME] = MESSAGE_RESUME,
    [WIRE_RESUMED] = MESSAGE_RESUMED,   [WIRE_PARTIAL] = MESSAGE_PARTIAL,
    [WIRE_COVERAGE] = MESSAGE_COVERAGE, [WIRE_SAMPLES] = MESSAGE_SAMPLES,
    [WIRE_SYNCED] = MESSAGE_HAS};

static void write_fields(struct written *w, const struct wire_msg *m)
{
    struct trace *t = &w->t;
    switch (m->type) {
    case WIRE_SYNC:
    case WIRE_SYNCED:
    case WIRE_STATE:
        t->number = m->sync.id;
        t->joins = m->type == WIRE_SYNC && m->sync.again;
        if (m->type != WIRE_SYNC) t->flag = role_of(m);
        if (m->type == WIRE_STATE) t->value = m->sync.holders;
        return;
    case WIRE_HELLO:
        t->flag = m->hello.group;
        t->value = (uint32_t)m->hello.self.hint;
        t->joins = m->hello.join;
        return;
    case WIRE_WELCOME:
        t->number = m->welcome.id;
        t->digest = m->welcome.term;
        t->flag = m->welcome.grace_ms;
        t->value = m->welcome.minimum;
        return;
    case WIRE_RESUME:
    case WIRE_RESUMED:
        write_resume(w, m);
        return;
    case WIRE_VOTE:
    case WIRE_ANSWER:
        t->flag = m->vote.kind;
        t->value = m->vote.flag;
        return;
    case WIRE_SUSPECT:
    case WIRE_REFRESH:
        t->flag = m->fault.cause;
        t->number = m->fault.peer;
        write_name(w, m->fault.scope, m->fault.tag, m->fault.seq);
        return;
    case WIRE_BLOCKED:
        t->flag = m->blocked.votes;
        return;
    case WIRE_FLUSHED:
        t->value = m->flushed.traits;
        return;
    case WIRE_DONATE:
    case WIRE_RESULT:
        write_name(w, m->result.scope, m->result.tag, m->result.seq);
        if (m->type == WIRE_RESULT)
            t->number = sim_hash(m->result.bytes, m->result.size);
        return;
    case WIRE_INSTALL:
        t->value = m->view.traits;
        t->number = m->view.synced;
        t->flag = view_flags(m);
        return;
    case WIRE_PROPOSE:
        t->flag = view_flags(m);
        return;
    case WIRE_PARTIAL:
    case WIRE_COVERAGE:
        write_name(w, 0, m->partial.tag, 0);
        witness_partial(t, m);
        return;
    case WIRE_SAMPLES:
        witness_samples(t, m);
        return;
    case WIRE_PROBE:
        t->number = m->probe.peer;
        t->flag = m->probe.takes;
        return;
    case WIRE_MEASURED:
        t->number = m->edges[0].peer;
        t->flag = m->edges[0].kind == EDGE_FAILED;
        return;
    default:
        return;
    }
}

/* MEASURED without a round is of data that moved anyway. */
static bool is_of_interest(const struct wire_msg *m)
{
    if (m->type == WIRE_MEASURED && m->round == 0) return false;
    return types[m->type] != MESSAGE_OTHER;
}

/* STATE with some roles comes before the end. */
static uint8_t type_of(const struct wire_msg *m)
{
    bool moves = m->type == WIRE_STATE && m->sync.role >= SYNC_WAIT &&
                 m->sync.role <= SYNC_DIFFERS;
    return moves ? MESSAGE_MOVES : types[m->type];
}

static void message(struct sim *s, enum trace_kind kind, uint32_t uid,
                    pccl_ns now, const struct wire_msg *m)
{
    static struct written w;
    if (!s->witness || (!s->witness->model && !witness_tap)) return;
    if (uid == 0) return;
    bool known = is_of_interest(m);
    if (!known && kind != TRACE_AT_MASTER) return;
    w.t = (struct trace){.kind = (uint8_t)kind,
                         .process = uid,
                         .now = now,
                         .names = w.names,
                         .sets = w.sets,
                         .added = w.added};
    if (known) {
        w.t.message = type_of(m);
        w.t.round = m->round;
        w.t.epoch = m->epoch;
        bool lists = w.t.message == MESSAGE_MOVES ||
                     (m->type != WIRE_STATE && m->type != WIRE_SYNCED);
        if (lists) write_lists(&w, m);
        write_fields(&w, m);
    }
    witness_tell(s, &w.t);
}

void witness_accept(struct sim *s, uint32_t link, uint32_t uid)
{
    if (s->witness) s->witness->uids[link] = uid;
}

void witness_stranger(struct sim *s, uint32_t link, const struct wire_msg *m)
{
    if (!s->witness) return;
    s->witness->uids[link] = ++s->uid_last;
    message(s, TRACE_TO_MASTER, s->witness->uids[link], 0, m);
}

void witness_leaves(struct sim *s)
{
    if (!s->witness || !s->witness->model) return;
    model_free(s->witness->model);
    s->witness->model = NULL;
    sim_coverage.unjudged++;
}

void witness_to_master(const struct sim_proc *p, const struct wire_msg *m)
{
    message(p->sim, TRACE_TO_MASTER, p->uid, p->session->links->now, m);
}

void witness_at_master(struct sim *s, uint32_t link, const struct wire_msg *m)
{
    if (s->witness) message(s, TRACE_AT_MASTER, s->witness->uids[link], 0, m);
}

void witness_to_proc(struct sim *s, uint32_t link, const struct wire_msg *m)
{
    if (s->witness) message(s, TRACE_TO_PROCESS, s->witness->uids[link], 0, m);
}

void witness_at_proc(const struct sim_proc *p, const struct wire_msg *m)
{
    message(p->sim, TRACE_AT_PROCESS, p->uid, p->session->links->now, m);
}

/* ------------------------------------------------------------ other events */

static void event(struct sim *s, enum trace_kind kind, uint32_t uid,
                  uint32_t flag)
{
    struct trace t = {.kind = (uint8_t)kind, .process = uid, .flag = flag};
    bool known = uid > 0 || kind == TRACE_SETTLED || kind == TRACE_DIES;
    if (s->witness && known) witness_tell(s, &t);
}

void witness_dies(struct sim *s)
{
    event(s, TRACE_DIES, 0, 0);
}

void witness_settled(struct sim *s)
{
    event(s, TRACE_SETTLED, 0, s->waits_for_disk);
}

void witness_lost(struct sim *s, uint32_t link)
{
    if (s->witness) event(s, TRACE_LOST, s->witness->uids[link], 0);
}

void witness_closed(struct sim *s, uint32_t link, const char *reason)
{
    uint32_t why = strstr(reason, "left")              ? LEFT
                   : strstr(reason, "did not answer")  ? NO_ANSWER
                   : strstr(reason, "silent")          ? SILENT
                   : strstr(reason, "stopped")         ? SILENT
                   : strstr(reason, "did not say")     ? SILENT
                   : strstr(reason, "download again")  ? TOO_OLD
                   : strstr(reason, "cannot exchange") ? PAIRS
                   : strstr(reason, "contributed to")  ? NO_PART
                                                       : OTHER_REASON;
    if (s->witness) event(s, TRACE_CLOSED, s->witness->uids[link], why);
}

void witness_cut(const struct sim_proc *p)
{
    event(p->sim, TRACE_CUT, p->uid, 0);
}

void witness_mute(const struct sim_proc *p)
{
    sim_coverage.muted++;
    event(p->sim, TRACE_MUTE, p->uid, 0);
}

void witness_over(const struct sim_proc *p, bool crash)
{
    event(p->sim, TRACE_OVER, p->uid, crash);
}

/* ------------------------------------------------------------ the program */

static uint8_t call_kind(const struct sim_spec *spec)
{
    if (spec->flow == FLOW_TO_ROOT)
        return spec->coll == COLL_ALLREDUCE ? REDUCE : GATHER;
    if (spec->flow == FLOW_FROM_ROOT) return SCATTER;
    if (spec->flow == FLOW_EVEN) return EVEN;
    switch (spec->coll) {
    case COLL_ALLREDUCE:
    case COLL_REDUCE_SCATTER:
        return ALLREDUCE;
    case COLL_BROADCAST:
        return BROADCAST;
    case COLL_ALLGATHER:
        return ALLGATHER;
    case COLL_BARRIER:
        return BARRIER;
    default:
        return ALLTOALL;
    }
}

uint32_t witness_outcome(int result)
{
    switch (result) {
    case pcclSuccess:
        return SUCCESS;
    case pcclRankConnectionLost:
        return LOST_MEMBER;
    case pcclRankConnectionFailed:
        return NOT_REACHED;
    case pcclInvalidArgument:
        return BAD_ARGUMENT;
    case pcclInvalidUsage:
        return BAD_USAGE;
    case pcclOperationFailed:
        return HAD_TO_FAIL;
    case pcclMasterConnectionFailed:
        return NO_MASTER;
    case pcclTooFewPeers:
        return TOO_FEW;
    default:
        return INTERNAL;
    }
}

static void write_told(const struct sim_proc *p, struct trace *t)
{
    const struct notified *n = &p->session->notified;
    t->process = p->uid;
    t->epoch = n->view->epoch;
    t->size = n->view->size;
    t->value = n->traits;
}

void witness_told(const struct sim_proc *p)
{
    struct trace t = {.kind = TRACE_TOLD};
    if (!p->sim->witness) return;
    write_told(p, &t);
    witness_tell(p->sim, &t);
}

void witness_launch(const struct sim_proc *p, const struct sim_op *o)
{
    const struct sim_spec *spec = &o->spec;
    if (!p->sim->witness) return;
    const uint64_t *ids = spec->scoped ? spec->ids : NULL;
    struct trace_name name = {.scope = scope_number(ids, spec->size),
                              .tag = spec->tag};
    struct trace t = {.kind = TRACE_LAUNCH,
                      .flag = call_kind(spec),
                      .round = spec->root,
                      .number = spec_arguments(spec),
                      .names = &name,
                      .name_count = 1,
                      .ids = ids,
                      .id_count = ids ? spec->size : 0};
    bool rooted = spec->coll == COLL_BROADCAST || spec->flow != FLOW_ALL;
    if (rooted && spec->scoped == false)
        t.round =
            (uint32_t)(view_find(p->session->view, spec->ids[spec->root]));
    write_told(p, &t);
    witness_tell(p->sim, &t);
}

void witness_result(const struct sim_proc *p, const struct sim_op *o,
                    uint32_t contributors, bool fast)
{
    if (!p->sim->witness) return;
    struct trace_name name = {.tag = o->spec.tag};
    struct trace t = {.kind = TRACE_RESULT,
                      .flag = witness_outcome(o->result),
                      .joins = fast,
                      .names = &name,
                      .name_count = 1};
    write_told(p, &t);
    t.value = contributors;
    /* Blocks of a reduce-scatter are no two results. */
    if (o->result == pcclSuccess && o->spec.coll != COLL_REDUCE_SCATTER)
        t.number = sim_hash(o->recv + SIM_GUARD, o->recv_size);
    witness_tell(p->sim, &t);
}

void witness_answer(const struct sim_proc *p, enum vote_kind kind,
                    uint32_t flag)
{
    struct trace t = {
        .kind = TRACE_ANSWER, .flag = (uint32_t)kind, .number = flag};
    if (!p->sim->witness) return;
    write_told(p, &t);
    witness_tell(p->sim, &t);
}

void witness_view(const struct sim_proc *p)
{
    const struct view *v = p->session->view;
    struct trace t = {.kind = TRACE_VIEW,
                      .process = p->uid,
                      .epoch = v->epoch,
                      .ids = v->ids,
                      .id_count = v->size};
    if (p->sim->witness) witness_tell(p->sim, &t);
}

/* ---------------------------------------------------------------- frames */

static bool frame_came(void *user, struct conn *c)
{
    struct sim_proc *p = user;
    const struct frame_route *own = &p->routes[c->rx.type];
    const struct frame *f = &c->rx;
    struct trace_name name = {.scope = f->scope, .tag = f->tag, .seq = f->seq};
    struct trace t = {.kind = TRACE_FRAME,
                      .process = p->uid,
                      .epoch = f->epoch,
                      .number = c->link->id,
                      .digest = f->digest,
                      .names = &name,
                      .name_count = 1};
    witness_tell(p->sim, &t);
    return !own->handler.end || own->handler.end(own->user, c);
}

void witness_fast(const struct sim_proc *p, uint64_t from, uint64_t digest)
{
    const struct frame *f = &p->session->engine->fast.frame;
    struct trace_name name = {.tag = f->tag, .seq = f->seq};
    struct trace t = {.kind = TRACE_FRAME,
                      .process = p->uid,
                      .epoch = f->epoch,
                      .number = from,
                      .digest = digest,
                      .names = &name,
                      .name_count = 1};
    if (p->sim->witness) witness_tell(p->sim, &t);
}

static bool frame_begins(void *user, struct conn *c)
{
    struct sim_proc *p = user;
    const struct frame_route *own = &p->routes[c->rx.type];
    return !own->handler.begin || own->handler.begin(own->user, c);
}

void witness_frames(struct sim_proc *p)
{
    static const enum frame_type kinds[] = {FRAME_DATA, FRAME_READY,
                                            FRAME_DONE};
    struct links *n = p->session->links;
    for (size_t i = 0; p->sim->witness && i < ARRAY_COUNT(kinds); i++) {
        struct frame_route *r = &n->routes[CONN_OF_LINK][kinds[i]];
        p->routes[kinds[i]] = *r;
        r->handler.begin = frame_begins;
        r->handler.end = frame_came;
        r->user = p;
    }
    witness_parts(p);
}
