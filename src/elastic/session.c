/* session.c - see session.h. Rule numbers: see src/README.md. */
#include "session.h"

#include "../../include/pccl.h"
#include "../base/buggify.h"
#include "../link/probe.h"

#include <stdlib.h>
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
                            uint32_t known)
{
    struct session *s = user;
    struct wire_msg msg = {.type = WIRE_DIAL_REQUEST, .epoch = s->view->epoch};
    if (s->master_lost || s->state != SESSION_MEMBER) return false;
    msg.call.peer = member;
    msg.call.dials = dials;
    msg.call.heard = known;
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
    if (s->state != SESSION_MEMBER || links_is_frozen(s->links)) return;
    /* Rule H7: a new master begins a round, and this ends in it. */
    if (session_waits_for_master(s)) return;
    if (s->master_lost) s->stranded = true;
    struct wire_msg msg = {.type = WIRE_REFRESH, .epoch = s->view->epoch};
    if (op) {
        struct wire_op name = op_name(op);
        msg.fault.scope = name.scope;
        msg.fault.tag = name.tag;
        msg.fault.seq = name.seq;
    }
    msg.fault.peer = peer;
    switch (fault) {
    case FAULT_BROKEN:
        msg.type = WIRE_SUSPECT;
        msg.fault.cause = !links_was_useless(s->links, peer);
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
    /* One report closes the epoch. Reports that carry a verdict are sent in
     * addition. */
    bool first = s->fault_epoch != s->view->epoch;
    bool news = fault == FAULT_MISMATCH || fault == FAULT_FAIL;
    s->fault_epoch = s->view->epoch;
    if (first || news) session_send(s, &msg);
}

static void on_sync_broken(void *user, uint64_t member)
{
    on_fault(user, FAULT_BROKEN, NULL, member);
}

bool session_init(struct session *s, const struct session_config *config)
{
    struct engine_events events = {
        .user = s, .fault = on_fault, .finished = on_finished};
    struct message_events message_events = {
        .user = s, .event = on_event, .ask = on_dial_request};
    s->out = config->events;
    s->view = view_none();
    notified_init(&s->notified);
    s->engine = engine_new(&config->driver, &events, config->pool_size,
                           config->deadline);
    if (!s->engine) return false;
    s->links = engine_links(s->engine);
    s->now = config->now;
    links_begin(s->links, config->now);
    message_init(&s->messages, s->links, &message_events);
    state_init(&s->sync_state, s->links, session_sync_over, s);
    s->sync_state.broken = on_sync_broken;
    session_partial_init(s);
    links_on_probed(s->links, session_probed, s);
    session_offer_open(s);
    return true;
}

void session_free(struct session *s)
{
    if (s->engine) {
        state_end(&s->sync_state);
        offer_end(&s->offer);
        partial_free(&s->partial);
        message_free(&s->messages);
    }
    engine_delete(s->engine);
    s->engine = NULL;
    view_release(s->next);
    view_release(s->view);
    s->next = NULL;
    s->view = view_none();
    notified_free(&s->notified);
    free(s->pending_aborts);
    s->pending_aborts = NULL;
    session_keep_free(s);
}

/* This membership is over: every waiting call ends. */
void session_gone(struct session *s, const char *reason)
{
    if (s->state == SESSION_GONE) return;
    if (reason && *reason) set_reason(s, reason);
    s->state = SESSION_GONE;
    struct engine *e = s->engine;
    links_close_all(s->links);
    message_stop(&s->messages, pcclMasterConnectionFailed);
    partial_stop(&s->partial, PARTIAL_GONE);
    for (uint32_t i = 0; i < engine_op_end(e); i++) {
        struct op *op = engine_op(e, i);
        if (!op || op_is_done(op)) continue;
        engine_finish(e, op, pcclMasterConnectionFailed);
    }
    session_sync_end(s, pcclMasterConnectionFailed, s->reason);
    s->out.changed(s->out.user);
}

/* ------------------------------------------------------------------- votes */

/* The group is in a vote that excludes all other calls. */
bool session_votes_topology(const struct session *s)
{
    return s->votes[VOTE_UPDATE] == VOTE_WAITING ||
           s->votes[VOTE_OPTIMIZE] == VOTE_WAITING;
}

bool session_busy(const struct session *s)
{
    return engine_op_end(s->engine) > 0;
}

int session_vote(struct session *s, enum vote_kind kind)
{
    if (s->state == SESSION_NEW || s->state == SESSION_JOINING)
        return pcclInvalidUsage;
    if (s->master_lost && !session_waits_for_master(s))
        session_gone(s, s->reason); /* rule M9 */
    if (s->state == SESSION_GONE) return pcclMasterConnectionFailed;
    if (s->votes[kind] != VOTE_IDLE) return pcclInvalidUsage;
    if (kind != VOTE_PENDING) {
        if (session_busy(s)) return pcclPendingAsyncOps;
        if (s->sync != SYNC_IDLE || session_votes_topology(s))
            return pcclInvalidUsage;
    }
    s->votes[kind] = VOTE_WAITING;
    if (kind == VOTE_OPTIMIZE) session_report_ways(s);
    s->vote_calls[kind] = ++s->calls;
    struct wire_msg vote = {
        .type = WIRE_VOTE, .round = s->calls, .epoch = s->view->epoch};
    vote.vote.kind = (uint8_t)kind;
    session_send(s, &vote);
    return pcclSuccess;
}

void session_send_leave(struct session *s)
{
    session_send(
        s, &(struct wire_msg){.type = WIRE_LEAVE, .leave.traits = s->traits});
}

void session_leave(struct session *s)
{
    s->leaving = true;
    session_send_leave(s);
    bool nobody = s->master_lost && !session_waits_for_master(s);
    if (s->state != SESSION_MEMBER || nobody) session_gone(s, "left");
}

void session_abort_run(struct session *s, int code)
{
    struct wire_msg msg = {.type = WIRE_ABORT};
    msg.abort.code = code;
    msg.abort.rank = (int32_t)s->notified.view->rank;
    session_send(s, &msg);
}

static void on_answer(struct session *s, const struct wire_msg *msg)
{
    enum vote_kind kind = (enum vote_kind)msg->vote.kind;
    if (s->votes[kind] != VOTE_WAITING) return;
    if (msg->round > 0) {
        s->answered[kind] = msg->round;
        s->answered_flag[kind] = msg->vote.flag;
    }
    s->votes[kind] = VOTE_ANSWERED;
    s->answers[kind] = msg->vote.flag;
    if (kind != VOTE_PENDING) session_call_over(s);
    /* Rule T2: an update notifies the program of all losses. */
    if (kind != VOTE_PENDING && msg->vote.flag != 0xff)
        notified_all(&s->notified, s->view);
    s->out.changed(s->out.user);
}

/* ------------------------------------------------------------- the master */

void session_hello(struct session *s, const struct wire_msg *hello)
{
    PCCL_ASSERT(s->state == SESSION_NEW);
    s->state = SESSION_JOINING;
    links_set_host(s->links, hello->hello.self.host);
    s->heartbeat_at = s->now;
    session_send(s, hello);
}

static void on_welcome(struct session *s, const struct wire_msg *msg)
{
    s->id = msg->welcome.id;
    links_set_self(s->links, s->id, &msg->welcome.key);
    if (msg->welcome.deadline_ms > 0)
        links_set_deadline(s->links, msg->welcome.deadline_ms * PCCL_MS);
    s->minimum = msg->welcome.minimum;
    s->term = msg->welcome.term;
    s->grace = msg->welcome.grace_ms * PCCL_MS;
    s->secret = msg->welcome.secret;
    s->master_count = msg->welcome.master_count;
    memcpy(s->masters, msg->welcome.masters, sizeof s->masters);
    if (s->waits.reports) session_heartbeat(s); /* tells the host's name */
}

/* Rules H1, H13: to who has lost its master. */
static bool is_of_next(enum wire_type type)
{
    return type == WIRE_RESUMED || type == WIRE_EVICT || type == WIRE_KEEP ||
           type == WIRE_KEPT || type == WIRE_KEEP_GET || type == WIRE_CLAIM;
}

void session_on_message(struct session *s, const struct wire_msg *msg)
{
    if (s->state == SESSION_GONE || s->state == SESSION_NEW) return;
    if (s->master_lost && !is_of_next(msg->type)) return;
    switch (msg->type) {
    case WIRE_KEEP:
    case WIRE_KEPT:
    case WIRE_KEEP_GET:
    case WIRE_CLAIM:
        session_on_record(s, msg);
        break;
    case WIRE_RESUMED:
        session_on_resumed(s, msg);
        break;
    case WIRE_WELCOME:
        on_welcome(s, msg);
        break;
    case WIRE_EVICT:
        s->elsewhere = msg->abort.code == WIRE_EVICT_ELSEWHERE;
        session_gone(s, s->leaving ? "left" : msg->abort.text);
        break;
    case WIRE_ANSWER:
        on_answer(s, msg);
        break;
    case WIRE_FLUSH:
        session_on_flush(s, msg);
        break;
    case WIRE_QUERY:
        session_on_query(s, msg);
        break;
    case WIRE_DONATE:
        session_on_donate(s, msg);
        break;
    case WIRE_RESULT:
        if (msg->round == s->round)
            engine_accept_donation(s->engine, msg->result.scope,
                                   msg->result.tag, msg->result.seq,
                                   msg->result.bytes, msg->result.size);
        break;
    case WIRE_PROPOSE:
        session_on_propose(s, msg);
        break;
    case WIRE_VERDICT:
        session_on_verdict(s, msg);
        break;
    case WIRE_INSTALL:
        session_on_install(s, msg);
        break;
    case WIRE_STATE:
        session_sync_on_message(s, msg);
        break;
    case WIRE_COVERAGE:
        partial_on_message(&s->partial, msg);
        break;
    case WIRE_PROBE:
        session_probe(s, msg);
        break;
    case WIRE_DIAL_REQUEST:
        message_dial_requested(&s->messages, msg->call.peer, msg->call.dials,
                               msg->call.heard);
        break;
    case WIRE_SILENT:
        links_excuse(s->links, msg->ids, msg->id_count);
        break;
    case WIRE_WANTED:
        session_on_wanted(s, msg);
        break;
    case WIRE_SAMPLES:
        session_on_samples(s, msg);
        break;
    case WIRE_HEARTBEAT:
    default:
        break;
    }
}

/* Without a master no repair and no vote is possible. Collectives that need
 * neither go on (architecture: the master may die). */
void session_master_gone(struct session *s, const char *reason)
{
    if (s->state == SESSION_GONE || (s->master_lost && !s->resuming)) return;
    s->master_lost = true;
    set_reason(s, reason);
    if (session_outlives_master(s)) return;
    bool waiting = false;
    for (int i = 0; i < VOTE_KIND_COUNT; i++)
        waiting |= s->votes[i] == VOTE_WAITING;
    waiting |= s->sync == SYNC_ASKED || partial_waits(&s->partial);
    waiting |= s->fault_epoch == s->view->epoch; /* for a round */
    if (s->state != SESSION_MEMBER || links_is_frozen(s->links) || waiting ||
        s->leaving)
        session_gone(s, reason);
}

/* Rule V4a. Repeated as long as it lasts; where the program is only faster
 * elsewhere than here it does no harm. */
static void report_blocked(struct session *s)
{
    struct wire_msg msg = {.type = WIRE_BLOCKED, .epoch = s->view->epoch};
    if (s->state != SESSION_MEMBER) return;
    pccl_ns age;
    bool votes = s->votes[VOTE_PENDING] == VOTE_WAITING ||
                 session_votes_topology(s) || s->sync_waits;
    msg.blocked.votes = engine_blocked(s->engine, s->now, &age) && votes;
    age /= PCCL_MS;
    msg.blocked.age_ms = age > UINT32_MAX ? UINT32_MAX : (uint32_t)age;
    if (msg.blocked.votes || age > 0) session_send(s, &msg);
}

void session_tick(struct session *s, pccl_ns now)
{
    s->now = now;
    engine_tick(s->engine, now);
    message_progress(&s->messages);
    state_tick(&s->sync_state);
    offer_tick(&s->offer);
    partial_tick(&s->partial);
    probe_tick(s->links);
    bool speaks = s->state == SESSION_JOINING || s->state == SESSION_MEMBER;
    if (speaks &&
        (now - s->heartbeat_at >= PCCL_TIME_TO_PING(links_deadline(s->links)) ||
         PCCL_BUGGIFY(beat_early))) {
        s->heartbeat_at = now;
        session_heartbeat(s);
        session_report_links(s);
        report_blocked(s);
    }
    session_samples_send(s);
    /* Rule M9: the removed member receives no report of its removal. */
    bool lacks =
        engine_lacks_link(s->engine) || message_lacks_link(&s->messages);
    if (!s->master_lost || session_waits_for_master(s) || !lacks)
        s->linked_at = now;
    if (session_waits_for_master(s) && now >= s->resume_until)
        session_gone(s, "no coordinator has come in place of the one that was "
                        "lost");
    if (now - s->linked_at >= links_deadline(s->links)) s->stranded = true;
    session_settle(s);
}
