/* comm_tell.c - see comm_tell.h. */
#include "comm.h"

#include "../base/log.h"
#include "../base/status.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A wait that is shorter is not told. */
#define WAIT_TOLD_AFTER (20 * 1000)

atomic_bool comm_tell_state;

static const char *const kinds[KIND_COUNT] = {"all-reduce",   "broadcast",
                                              "barrier",      "all-gather",
                                              "all-to-all-v", "reduce-scatter"};

static void put(pcclComm_t *c, const struct trace_event *event)
{
    if (trace_is_on() && trace_put(event) && c->session)
        io_loop_wake(&c->background.loop);
}

void comm_tell_open(pcclComm_t *c)
{
    log_set_rank(c->rank_hint);
    const char *why = trace_open(c->rank_hint);
    if (why) LOG(LOG_WARN, "%s", why);
    if (trace_is_on() || log_level_get() == LOG_TRACE)
        atomic_store(&comm_tell_state, true);
}

void comm_tell_flush(void)
{
    char line[256];
    if (trace_is_on()) trace_flush();
    if (trace_trouble(line, sizeof line)) LOG(LOG_WARN, "%s", line);
}

/* The rank as launched of a member, or its present rank; -1: unknown. */
static int32_t rank_of(const pcclComm_t *c, uint64_t id)
{
    const struct view *v = c->session->view;
    uint32_t rank = id != 0 ? view_find(v, id) : v->size;
    if (rank == v->size) return -1;
    int32_t hint = v->members[rank].hint;
    return hint >= 0 ? hint : (int32_t)rank;
}

/* ------------------------------------------------------------- operations */

static uint64_t bytes_of(const pcclCollective_t *op)
{
    switch (op->kind) {
    case pcclKindAllReduce:
    case pcclKindReduceScatter:
        if ((unsigned)op->datatype >= DTYPE_COUNT) return 0;
        return op->count * dtype_size((enum dtype)op->datatype);
    case pcclKindBroadcast:
    case pcclKindAllGather:
        return op->count;
    default:
        return 0;
    }
}

static const char *kind_name(pcclCollectiveKind_t kind)
{
    return (unsigned)kind < KIND_COUNT ? kinds[kind] : "unknown";
}

static void set_name(struct told_op *t, const char *caller)
{
    struct trace_event e;
    trace_set_name(&e, caller ? caller : kind_name(t->kind));
    memcpy(t->name, e.name, sizeof t->name);
}

static const char *caller_of(const pcclCollective_t *op)
{
    if (op->size < offsetof(pcclCollective_t, flow) || !op->arguments ||
        op->argument_count == 0)
        return NULL;
    const pcclArgument_t *first = op->arguments;
    bool known = first->name && first->text;
    return known && strcmp(first->name, "function") == 0 ? first->text : NULL;
}

struct told_op comm_tell_called(const pcclComm_t *c, const pcclCollective_t *op)
{
    struct told_op t = {.began = comm_now(),
                        .kind = op->kind,
                        .bytes = bytes_of(op),
                        .tag = op->tag,
                        .members = c->session->notified.view->size};
    set_name(&t, caller_of(op));
    return t;
}

struct told_op comm_tell_awaited(const pcclComm_t *c, const struct op *op,
                                 pcclCollectiveKind_t kind)
{
    struct told_op t = {.kind = kind,
                        .async = true,
                        .begun = true,
                        .members = c->session->notified.view->size};
    op_look(op, &t.look);
    t.tag = t.look.name.tag;
    t.bytes = t.look.bytes;
    const struct told_launch *launch = &c->told_launches[t.tag % TOLD_LAUNCHES];
    if (launch->tag == t.tag) t.began = launch->at;
    set_name(&t, t.look.caller);
    return t;
}

static struct trace_event event_of(const pcclComm_t *c, const struct told_op *t,
                                   char phase)
{
    struct trace_event e = {.phase = phase,
                            .category = TRACE_OPERATION,
                            .id = t->tag,
                            .bytes = t->bytes,
                            .tag = t->tag,
                            .group = c->params.peer_group,
                            .count = t->members,
                            .partner = -1,
                            .kind = kind_name(t->kind)};
    memcpy(e.name, t->name, sizeof e.name);
    return e;
}

void comm_tell_began(pcclComm_t *c, struct told_op *t)
{
    if (t->begun) return;
    struct trace_event e = event_of(c, t, t->async ? 'b' : 'B');
    e.at = t->began;
    t->begun = true;
    if (t->async)
        c->told_launches[t->tag % TOLD_LAUNCHES] =
            (struct told_launch){t->tag, t->began};
    put(c, &e);
}

static void log_ended(const struct told_op *t, int result, pccl_ns now)
{
    const struct plan_reason *r = &t->look.reason;
    char took[48] = "", chosen[192] = "", passed[192] = "";
    if (t->began > 0)
        (void)snprintf(took, sizeof took, ", %.1f us",
                       (double)(now - t->began) / 1000);
    if (r->algorithm)
        (void)snprintf(chosen, sizeof chosen, ", by %s (%s)", r->algorithm,
                       r->why);
    if (r->instead_of)
        (void)snprintf(passed, sizeof passed, ", as %s does not fit: %s",
                       r->instead_of, r->unfit);
    LOG(LOG_TRACE,
        "%s, tag %" PRIu64 ", number %u, %" PRIu64 " bytes: %s%s%s%s", t->name,
        t->tag, t->look.name.seq, t->bytes,
        result == 0 ? "success" : status_text(result), took, chosen, passed);
}

void comm_tell_ended(pcclComm_t *c, struct told_op *t, int result)
{
    pccl_ns now = comm_now();
    log_ended(t, result, now);
    struct trace_event e = event_of(c, t, t->async ? 'e' : 'E');
    e.at = now;
    e.scope = t->look.name.scope;
    e.seq = t->look.name.seq;
    e.epoch = t->look.epoch;
    e.result = (int16_t)result;
    e.algorithm = t->look.reason.algorithm;
    e.why = t->look.reason.why;
    e.instead_of = t->look.reason.instead_of;
    e.unfit = t->look.reason.unfit;
    if (t->began > 0) e.took = now - t->began;
    if (!t->begun) {
        e.phase = 'X';
        e.at = t->began;
        e.partner = rank_of(c, t->look.partner);
    }
    put(c, &e);
}

/* ------------------------------------------------------------------ waits */

static void begin_wait(pcclComm_t *c, struct told_wait *w, uint32_t missing)
{
    struct trace_event e = {.at = w->since,
                            .phase = 'B',
                            .category = TRACE_WAIT,
                            .partner = rank_of(c, w->partner),
                            .count = missing - 1};
    (void)snprintf(e.name, sizeof e.name, "wait for rank %d", (int)e.partner);
    w->begun = true;
    put(c, &e);
}

static void end_wait(pcclComm_t *c, struct told_wait *w, pccl_ns now)
{
    struct trace_event e = {.at = now, .phase = 'E', .category = TRACE_WAIT};
    if (w->begun) put(c, &e);
    *w = (struct told_wait){.since = now};
}

void comm_tell_wait(pcclComm_t *c, const struct op *op, bool sleeps)
{
    struct told_wait *w = &c->told_wait;
    struct op_look look = {.missing = 0};
    if (op) op_look(op, &look);
    if (look.partner == 0 && w->partner == 0) return;
    pccl_ns now = comm_now();
    if (look.partner != w->partner) end_wait(c, w, now);
    w->partner = look.partner;
    bool tells = sleeps || now - w->since > WAIT_TOLD_AFTER;
    if (w->partner != 0 && !w->begun && tells) begin_wait(c, w, look.missing);
}

void comm_tell_blocked(pcclComm_t *c, const char *call, uint64_t partner)
{
    char name[64];
    struct trace_event e = {.at = comm_now(),
                            .phase = 'B',
                            .category = TRACE_WAIT,
                            .partner = rank_of(c, partner)};
    (void)snprintf(name, sizeof name, "%s waits", call);
    trace_set_name(&e, name);
    put(c, &e);
}

void comm_tell_unblocked(pcclComm_t *c)
{
    struct trace_event e = {
        .at = comm_now(), .phase = 'E', .category = TRACE_WAIT};
    put(c, &e);
}

/* ------------------------------------------------------------------- views */

static struct trace_event view_event(const pcclComm_t *c, char phase,
                                     enum trace_category category)
{
    const struct session *s = c->session;
    return (struct trace_event){.phase = phase,
                                .category = (uint8_t)category,
                                .id = s->round,
                                .epoch = s->view->epoch,
                                .count = s->view->size,
                                .partner = -1};
}

static const char change_name[] = "change of the view";

static void tell_installed(pcclComm_t *c, const struct view_change *change)
{
    const struct session *s = c->session;
    const struct view *v = s->view;
    struct trace_event e = view_event(c, 'e', TRACE_CHANGE);
    e.id = c->told_change;
    e.at = s->installed_at;
    e.lost = change->lost;
    e.joined = change->joined;
    trace_set_name(&e, change_name);
    if (c->told_change != 0) put(c, &e);
    c->told_change = 0;
    e.phase = 'i';
    e.category = TRACE_VIEW;
    (void)snprintf(e.name, sizeof e.name, "epoch %u", v->epoch);
    put(c, &e);
    LOG(LOG_DEBUG, "epoch %u: rank %u of %u; %u lost, %u joined%s", v->epoch,
        v->rank, v->size, change->lost, change->joined,
        change->voted ? "" : ", not asked for");
}

void comm_tell_view(pcclComm_t *c, const struct view_change *change)
{
    if (change->closed) {
        struct trace_event e = view_event(c, 'b', TRACE_CHANGE);
        e.at = c->session->closed_at;
        /* Unlike every other: a round may be begun anew. */
        e.id = c->told_change = c->session->round;
        trace_set_name(&e, change_name);
        put(c, &e);
    }
    if (!change->installed) return;
    log_set_epoch(c->session->view->epoch);
    tell_installed(c, change);
}

/* ------------------------------------------------------------------- calls */

void comm_tell_call(pcclComm_t *c, const char *name, uint64_t partner,
                    uint64_t bytes)
{
    struct trace_event e = {.at = comm_now(),
                            .phase = 'B',
                            .category = TRACE_CALL,
                            .partner = c->session ? rank_of(c, partner) : -1,
                            .bytes = bytes};
    trace_set_name(&e, name);
    put(c, &e);
}

void comm_tell_return(pcclComm_t *c)
{
    struct trace_event e = {
        .at = comm_now(), .phase = 'E', .category = TRACE_CALL};
    put(c, &e);
}
