/* session.c - see session.h. Rule numbers refer to master/PROTOCOL.md. */
#include "session.h"

#include "../../include/pccl.h"

#include <string.h>

static void set_reason(struct session *s, const char *reason)
{
    size_t size = strnlen(reason, WIRE_TEXT_MAX);
    memmove(s->reason, reason, size);
    s->reason[size] = '\0';
}

void session_send(struct session *s, const struct wire_msg *msg)
{
    if (!s->master_lost && s->state != SESSION_GONE)
        s->out.to_master(s->out.user, msg);
}

/* ------------------------------------------------------------ the engine */

static bool on_dial_request(void *user, uint64_t member, uint32_t dials,
                            uint32_t heard)
{
    struct session *s = user;
    struct wire_msg msg = {.type = WIRE_DIAL_REQUEST, .epoch = s->view->epoch};
    if (s->master_lost || s->state != SESSION_MEMBER) return false;
    msg.call.peer = member;
    msg.call.dials = dials;
    msg.call.heard = heard;
    session_send(s, &msg);
    return true;
}

static void on_finished(void *user, struct op *op)
{
    (void)op;
    struct session *s = user;
    s->out.changed(s->out.user);
}

static void on_event(void *user)
{
    struct session *s = user;
    s->out.changed(s->out.user);
}

static void on_fault(void *user, enum engine_fault fault, const struct op *op,
                     uint64_t peer)
{
    struct session *s = user;
    if (s->state != SESSION_MEMBER || s->engine.links.frozen) return;
    if (s->master_lost) s->stranded = true;
    struct wire_msg msg = {.type = WIRE_REFRESH, .epoch = s->view->epoch};
    if (op) {
        msg.fault.tag = op->r.tag;
        msg.fault.seq = op->seq;
    }
    msg.fault.peer = peer;
    switch (fault) {
    case FAULT_BROKEN:
        msg.type = WIRE_SUSPECT;
        break;
    case FAULT_MISMATCH:
        msg.fault.cause = REFRESH_MISMATCH;
        break;
    case FAULT_FAIL:
        msg.fault.cause = REFRESH_FAIL;
        break;
    case FAULT_UNREACHABLE:
        msg.fault.cause = REFRESH_UNREACHABLE;
        break;
    case FAULT_TAGS:
        msg.fault.cause = REFRESH_TAGS;
        break;
    }
    /* One report closes the epoch; those with a verdict are news beside it. */
    bool first = s->fault_epoch != s->view->epoch;
    bool news = fault == FAULT_MISMATCH || fault == FAULT_FAIL;
    s->fault_epoch = s->view->epoch;
    if (first || news) session_send(s, &msg);
}

bool session_init(struct session *s, const struct session_config *config)
{
    struct engine_events events = {
        .user = s, .fault = on_fault, .finished = on_finished};
    struct message_events message_events = {
        .user = s, .event = on_event, .ask = on_dial_request};
    s->out = config->events;
    s->view = &s->views[0];
    s->next = &s->views[1];
    s->notified.loss_first = 1; /* 0 means: no loss */
    bool fine = engine_init(&s->engine, &config->driver, &events,
                            config->pool_size, config->deadline);
    struct links *n = &s->engine.links;
    message_init(&s->messages, n, &message_events);
    state_init(&s->sync_state, n, session_sync_over, s);
    n->probe.report = session_probed;
    n->probe.user = s;
    return fine;
}

void session_free(struct session *s)
{
    state_end(&s->sync_state);
    message_free(&s->messages);
    engine_free(&s->engine);
}

/* Nothing more will come of this membership: every waiting call ends. */
void session_gone(struct session *s, const char *reason)
{
    if (s->state == SESSION_GONE) return;
    if (reason && *reason) set_reason(s, reason);
    s->state = SESSION_GONE;
    struct engine *e = &s->engine;
    links_close_all(&e->links);
    message_stop(&s->messages, pcclMasterConnectionFailed);
    for (uint32_t i = 0; i < e->op_end; i++) {
        struct op *op = &e->ops[i];
        if (op->phase == PHASE_FREE || op->phase == PHASE_DONE) continue;
        if (op->phase != PHASE_QUEUED) engine_restore(e, op);
        engine_finish(e, op, pcclMasterConnectionFailed);
    }
    session_sync_end(s, pcclMasterConnectionFailed, s->reason);
    s->out.changed(s->out.user);
}

/* --------------------------------------------------------------- launch */

static struct op *finished_op(struct session *s, const struct op_request *r,
                              int result, uint32_t loss)
{
    struct op *op = engine_launch(&s->engine, r, true);
    if (!op) return NULL;
    op->loss = loss;
    engine_finish(&s->engine, op, result);
    return op;
}

static bool scope_alive(const struct view *v, const struct op_request *r)
{
    for (uint32_t i = 0; i < r->member_count; i++) {
        if (view_find(v, r->members[i]) == v->size) return false;
    }
    return true;
}

/* Rule P1: what a launch meets, in the order of the program's history. */
static bool launch_is_over(struct session *s, const struct op_request *r,
                           int *result, uint32_t *loss)
{
    *loss = 0;
    if (session_take_verdict(s, r, result)) return true;
    *result = pcclRankConnectionLost;
    if (r->members && !scope_alive(s->view, r)) return true;
    if (!r->members && s->notified.loss_count > 0) {
        *loss = s->notified.loss_first;
        return true;
    }
    *result = pcclRankConnectionFailed;
    return !s->view->ring && s->view->size > 1;
}

int session_launch(struct session *s, const struct op_request *r,
                   uint64_t view_epoch, struct op **out)
{
    if (s->state == SESSION_GONE) return pcclMasterConnectionFailed;
    if (s->state != SESSION_MEMBER) return pcclInvalidUsage;
    if (session_votes_topology(s) || s->sync != SYNC_IDLE)
        return pcclInvalidUsage;
    if (engine_find(&s->engine, r->tag)) return pcclInvalidArgument;
    if (!r->members && view_epoch != 0 && view_epoch != s->notified.epoch)
        return pcclRankConnectionLost;
    int result;
    uint32_t loss;
    if (launch_is_over(s, r, &result, &loss))
        *out = finished_op(s, r, result, loss);
    else
        *out = engine_launch(&s->engine, r, s->engine.links.frozen);
    return *out ? pcclSuccess : pcclInternalError;
}

bool session_fast(struct session *s, const struct op_request *r,
                  uint64_t view_epoch)
{
    if (s->state != SESSION_MEMBER || session_votes_topology(s) ||
        s->sync != SYNC_IDLE || s->notified.loss_count > 0 ||
        s->engine.links.frozen)
        return false;
    if (session_keeps_verdict(s, r->tag)) return false;
    if (view_epoch != 0 && view_epoch != s->notified.epoch) return false;
    return fast_start(&s->engine, r);
}

int session_fail(struct session *s, uint64_t tag)
{
    struct op *op = engine_find(&s->engine, tag);
    if (!op || op->phase == PHASE_DONE) return pcclInvalidUsage;
    if (s->state != SESSION_MEMBER || s->engine.links.frozen ||
        op->phase == PHASE_QUEUED)
        return pcclPendingAsyncOps;
    if (!op->mismatch) on_fault(s, FAULT_FAIL, op, 0);
    op->mismatch = op->fails = true;
    return pcclSuccess;
}

int session_take(struct session *s, struct op *op, uint32_t *contributors,
                 uint64_t *tx_bytes, uint64_t *rx_bytes)
{
    assert(op->phase == PHASE_DONE);
    int result = op->result;
    *contributors = op->contributors;
    *tx_bytes = op->tx_bytes;
    *rx_bytes = op->rx_bytes;
    /* Rule T2: told by this result, and only up to the loss it met. */
    if (op->loss > 0) notified_advance(&s->notified, op->loss, s->id);
    engine_release(&s->engine, op);
    return result;
}

/* Inside a vote beside which nothing else is allowed. */
bool session_votes_topology(const struct session *s)
{
    return s->votes[VOTE_UPDATE] == VOTE_WAITING ||
           s->votes[VOTE_OPTIMIZE] == VOTE_WAITING;
}

bool session_busy(const struct session *s)
{
    return s->engine.op_end > 0;
}

int session_vote(struct session *s, enum vote_kind kind)
{
    if (s->state == SESSION_NEW || s->state == SESSION_JOINING)
        return pcclInvalidUsage;
    if (s->master_lost) session_gone(s, s->reason); /* rule M9 */
    if (s->state == SESSION_GONE) return pcclMasterConnectionFailed;
    if (s->votes[kind] != VOTE_IDLE) return pcclInvalidUsage;
    if (kind != VOTE_PENDING) {
        if (session_busy(s)) return pcclPendingAsyncOps;
        if (s->sync != SYNC_IDLE || session_votes_topology(s))
            return pcclInvalidUsage;
    }
    s->votes[kind] = VOTE_WAITING;
    if (kind == VOTE_OPTIMIZE) session_report_ways(s);
    struct wire_msg vote = {.type = WIRE_VOTE, .epoch = s->view->epoch};
    vote.vote.kind = (uint8_t)kind;
    session_send(s, &vote);
    return pcclSuccess;
}

void session_leave(struct session *s)
{
    struct wire_msg leave = {.type = WIRE_LEAVE};
    s->leaving = true;
    session_send(s, &leave);
    if (s->state != SESSION_MEMBER || s->master_lost) session_gone(s, "left");
}

void session_abort_run(struct session *s, int code)
{
    struct wire_msg msg = {.type = WIRE_ABORT};
    msg.abort.code = code;
    msg.abort.rank = (int32_t)s->notified.rank;
    session_send(s, &msg);
}

/* -------------------------------------------------------------- the flush */

/* Rule F2: stop, then say what is known. */
static void on_flush(struct session *s, const struct wire_msg *msg)
{
    s->round = msg->round;
    s->proposed = false;
    if (!s->engine.links.frozen) s->closed_at = s->engine.links.now;
    engine_freeze(&s->engine);
    struct wire_op ops[OPS_MAX];
    struct wire_msg reply = {.type = WIRE_FLUSHED,
                             .round = msg->round,
                             .epoch = s->view->epoch,
                             .ops = ops};
    reply.op_count = engine_list(&s->engine, msg->ids, msg->id_count, ops);
    session_send(s, &reply);
}

/* Rule V4: the master cannot know who has a part in a narrower operation. */
static void tell_scopes(struct session *s)
{
    const struct engine *e = &s->engine;
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *op = &e->ops[i];
        if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE) continue;
        if (op->whole) continue;
        struct wire_op one = {.tag = op->r.tag, .seq = op->seq};
        engine_query(e, &one);
        struct wire_msg told = {.type = WIRE_REPLY,
                                .epoch = s->view->epoch,
                                .ops = &one,
                                .op_count = 1,
                                .ids = op->scope,
                                .id_count = op->r.member_count};
        session_send(s, &told);
    }
}

static void on_query(struct session *s, const struct wire_msg *msg)
{
    struct wire_op ops[WIRE_OPS_MAX];
    struct wire_msg reply = {.type = WIRE_REPLY,
                             .round = msg->round,
                             .epoch = s->view->epoch,
                             .ops = ops};
    if (msg->op_count == 0) {
        tell_scopes(s);
        reply.op_count = engine_list(&s->engine, NULL, 0, ops);
    } else {
        reply.op_count = msg->op_count;
        for (uint32_t i = 0; i < msg->op_count; i++) {
            ops[i] = msg->ops[i];
            engine_query(&s->engine, &ops[i]);
        }
    }
    session_send(s, &reply);
}

static void on_donate(struct session *s, const struct wire_msg *msg)
{
    struct wire_msg reply = {.type = WIRE_RESULT, .round = msg->round};
    reply.result.tag = msg->result.tag;
    reply.result.seq = msg->result.seq;
    reply.result.bytes = engine_donation(&s->engine, msg->result.tag,
                                         msg->result.seq, &reply.result.size);
    if (reply.result.bytes) session_send(s, &reply);
}

/* ------------------------------------------------------- propose, install */

static void want(struct session *s, uint32_t rank, uint32_t connections)
{
    if (rank != s->next->rank)
        links_want(&s->engine.links, &s->next->members[rank], connections);
}

/* Rule R3: connect to the ring neighbours, and in small worlds to all. */
static void want_links(struct session *s)
{
    const struct view *v = s->next;
    if (!v->ring || v->size < 2) return;
    uint32_t at = v->rank;
    for (uint32_t i = 0; v->has_order && i < v->size; i++) {
        if (v->order[i] == v->rank) at = i;
    }
    uint32_t after = (at + 1) % v->size;
    uint32_t before = (at + v->size - 1) % v->size;
    uint32_t pool = s->engine.links.pool_size;
    want(s, v->has_order ? v->order[after] : after, pool);
    want(s, v->has_order ? v->order[before] : before, pool);
    for (uint32_t i = 0; v->mesh && i < v->size; i++) want(s, i, 1);
}

static void on_propose(struct session *s, const struct wire_msg *msg)
{
    if (!view_propose(s->next, s->view, msg, s->id)) {
        session_gone(s, "the master proposed a view that cannot be");
        return;
    }
    s->round = msg->round;
    s->proposed = true;
    s->ready_sent = false;
    s->removed_count = msg->id_count;
    for (uint32_t i = 0; i < msg->id_count; i++) s->removed[i] = msg->ids[i];
    if (!s->engine.links.frozen) {
        s->closed_at = s->engine.links.now;
        engine_freeze(&s->engine);
    }
    s->proposed_at = s->engine.links.now;
    links_unwant(&s->engine.links);
    links_set_directions(&s->engine.links, msg->pairs, msg->pair_count);
    want_links(s);
    /* Nobody can need them before INSTALL, and both ends see them so (O7). */
    if (msg->view.optimize) links_close_unwanted(&s->engine.links);
    session_settle(s);
}

/* Rule R3: READY when every wanted link is there, or cannot be made. */
void session_settle(struct session *s)
{
    if (s->stranded) session_gone(s, s->reason);
    if (!s->proposed || s->ready_sent) return;
    uint64_t failed[PEERS_MAX];
    struct wire_msg ready = {
        .type = WIRE_READY, .round = s->round, .ids = failed};
    for (uint32_t i = 0; i < s->next->size; i++) {
        struct link *l = link_find(&s->engine.links, s->next->ids[i], false);
        if (!l || !l->wanted) continue;
        enum link_status status = links_status(&s->engine.links, l->id);
        if (status == LINK_WAITS) return;
        if (status == LINK_FAILED) failed[ready.id_count++] = l->id;
    }
    s->ready_sent = true;
    session_send(s, &ready);
}

static const struct wire_op *verdict_on(const struct wire_msg *msg,
                                        uint64_t tag, uint32_t seq)
{
    for (uint32_t i = 0; i < msg->op_count; i++) {
        if (msg->ops[i].tag == tag && msg->ops[i].seq == seq)
            return &msg->ops[i];
    }
    return NULL;
}

/* What becomes of an operation that was under way when the epoch closed.
 * True: it goes on in the new view. */
static bool judge(struct session *s, struct op *op, const struct wire_msg *msg,
                  uint32_t loss)
{
    struct engine *e = &s->engine;
    bool queued = op->phase == PHASE_QUEUED;
    const struct wire_op *v =
        queued ? NULL : verdict_on(msg, op->r.tag, op->seq);
    if (v && v->state == VERDICT_COMMIT) {
        assert(op->phase == PHASE_COMPLETE);
        engine_finish(e, op, pcclSuccess);
        return false;
    }
    if (!queued) engine_restore(e, op);
    int result = v ? session_forced((enum op_verdict)v->state) : pcclSuccess;
    if (result != pcclSuccess) {
        engine_finish(e, op, result);
        return false;
    }
    bool lost = op->whole ? loss > 0 : !scope_alive(s->view, &op->r);
    bool ring = s->view->ring || s->view->size == 1;
    if (!lost && ring) return true;
    op->loss = op->whole && lost ? loss : 0;
    engine_finish(e, op,
                  lost ? pcclRankConnectionLost : pcclRankConnectionFailed);
    return false;
}

static void go_on(struct session *s, const bool *again)
{
    struct engine *e = &s->engine;
    for (uint32_t i = 0; i < OPS_MAX; i++) {
        struct op *op = &e->ops[i];
        if (!again[i]) continue;
        if (!engine_start(e, op)) {
            engine_finish(e, op, pcclInternalError);
        } else if (op->fails && op->phase != PHASE_DONE) {
            /* Rule D10: the epoch was closed before the master heard of it. */
            op->mismatch = true;
            on_fault(s, FAULT_FAIL, op, 0);
        }
    }
}

/* Rules R5, T1: the proposed view is in force. */
static void on_install(struct session *s, const struct wire_msg *msg)
{
    if (!s->proposed || msg->round != s->round) return;
    struct engine *e = &s->engine;
    bool update = msg->view.update || msg->view.optimize;
    session_keep_verdicts(s, msg);
    struct view *old = s->view;
    s->view = s->next;
    s->next = old;
    s->proposed = false;
    s->installed_at = e->links.now;
    s->view->epoch = msg->round;
    s->view->mesh = msg->view.mesh;
    s->view->world = msg->view.world;
    s->view->groups = msg->view.groups;
    s->view->largest = msg->view.largest;
    uint32_t loss = 0;
    if (s->removed_count > 0 && !update && s->state == SESSION_MEMBER) {
        notified_push(&s->notified, s->view, s->removed, s->removed_count);
        loss = s->notified.loss_first + s->notified.loss_count - 1;
    }
    bool again[OPS_MAX] = {false};
    for (uint32_t i = 0; i < e->op_end; i++) {
        enum op_phase phase = e->ops[i].phase;
        if (phase != PHASE_FREE && phase != PHASE_DONE)
            again[i] = judge(s, &e->ops[i], msg, loss);
    }
    for (uint32_t i = 0; i < s->removed_count; i++)
        links_drop(&e->links, s->removed[i]);
    struct engine_view view = {
        .epoch = s->view->epoch,
        .world = s->view->size,
        .rank = s->view->rank,
        .members = s->view->members,
        .ids = s->view->ids,
        .order = s->view->has_order ? s->view->order : NULL,
        .sites = s->view->has_sites ? s->view->sites : NULL,
        .ring = s->view->ring,
        .mesh = s->view->mesh};
    engine_install(e, &view);
    for (uint32_t i = 0; i < s->removed_count; i++)
        message_lose(&s->messages, s->removed[i]);
    if (update || s->state == SESSION_JOINING)
        notified_all(&s->notified, s->view);
    session_keep_blockers(s, msg);
    enum vote_kind kind = msg->view.optimize ? VOTE_OPTIMIZE : VOTE_UPDATE;
    if (update && s->votes[kind] == VOTE_WAITING) {
        s->votes[kind] = VOTE_ANSWERED;
        s->answers[kind] = kind == VOTE_UPDATE || s->view->ring;
    }
    s->state = SESSION_MEMBER;
    go_on(s, again);
    s->out.changed(s->out.user);
}

static void on_answer(struct session *s, const struct wire_msg *msg)
{
    enum vote_kind kind = (enum vote_kind)msg->vote.kind;
    if (s->votes[kind] != VOTE_WAITING) return;
    s->votes[kind] = VOTE_ANSWERED;
    s->answers[kind] = msg->vote.flag;
    if (msg->vote.flag == 0xff && msg->epoch == s->view->epoch)
        s->refused_epoch = s->view->epoch;
    /* Rule T3: an update tells everything. */
    if (kind != VOTE_PENDING && msg->vote.flag != 0xff)
        notified_all(&s->notified, s->view);
    s->out.changed(s->out.user);
}

/* ------------------------------------------------------------- the master */

void session_hello(struct session *s, const struct wire_msg *hello)
{
    assert(s->state == SESSION_NEW);
    s->state = SESSION_JOINING;
    s->engine.links.host = hello->hello.self.host;
    s->heartbeat_at = s->now;
    session_send(s, hello);
}

static void on_welcome(struct session *s, const struct wire_msg *msg)
{
    s->id = msg->welcome.id;
    s->engine.links.self = s->id;
    s->engine.links.key = msg->welcome.key;
    if (msg->welcome.deadline_ms > 0)
        s->engine.links.deadline = msg->welcome.deadline_ms * PCCL_MS;
}

void session_on_message(struct session *s, const struct wire_msg *msg)
{
    if (s->state == SESSION_GONE || s->state == SESSION_NEW) return;
    switch (msg->type) {
    case WIRE_WELCOME:
        on_welcome(s, msg);
        break;
    case WIRE_EVICT:
        session_gone(s, s->leaving ? "left" : msg->abort.text);
        break;
    case WIRE_ANSWER:
        on_answer(s, msg);
        break;
    case WIRE_FLUSH:
        on_flush(s, msg);
        break;
    case WIRE_QUERY:
        on_query(s, msg);
        break;
    case WIRE_DONATE:
        on_donate(s, msg);
        break;
    case WIRE_RESULT:
        if (msg->round == s->round)
            engine_accept_donation(&s->engine, msg->result.tag, msg->result.seq,
                                   msg->result.bytes, msg->result.size);
        break;
    case WIRE_PROPOSE:
        on_propose(s, msg);
        break;
    case WIRE_INSTALL:
        on_install(s, msg);
        break;
    case WIRE_STATE:
        session_sync_on_message(s, msg);
        break;
    case WIRE_PROBE:
        session_probe(s, msg);
        break;
    case WIRE_DIAL_REQUEST:
        message_called(&s->messages, msg->call.peer, msg->call.dials,
                       msg->call.heard);
        break;
    case WIRE_HEARTBEAT:
    default:
        break;
    }
}

/* Without a master nothing can be repaired or voted, but collectives that
 * need neither go on (architecture: the master may die). */
void session_master_gone(struct session *s, const char *reason)
{
    if (s->state == SESSION_GONE || s->master_lost) return;
    s->master_lost = true;
    set_reason(s, reason);
    bool waiting = false;
    for (int i = 0; i < VOTE_KIND_COUNT; i++)
        waiting |= s->votes[i] == VOTE_WAITING;
    waiting |= s->sync == SYNC_ASKED;
    if (s->state != SESSION_MEMBER || s->engine.links.frozen || waiting ||
        s->leaving)
        session_gone(s, reason);
}

void session_tick(struct session *s, pccl_ns now)
{
    s->now = now;
    engine_tick(&s->engine, now);
    message_pump(&s->messages);
    state_tick(&s->sync_state);
    probe_tick(&s->engine.links);
    bool speaks = s->state == SESSION_JOINING || s->state == SESSION_MEMBER;
    if (speaks && now - s->heartbeat_at >= s->engine.links.deadline / 5) {
        struct wire_msg beat = {.type = WIRE_HEARTBEAT};
        s->heartbeat_at = now;
        session_send(s, &beat);
        session_report_links(s);
    }
    /* Rule M9: nobody will tell us that the others have removed us. */
    bool lacks =
        engine_lacks_link(&s->engine) || message_lacks_link(&s->messages);
    if (!s->master_lost || !lacks) s->linked_at = now;
    if (now - s->linked_at >= s->engine.links.deadline) s->stranded = true;
    session_settle(s);
}
