/* session_view.c - from one view to the next: flush, proposal, installation,
 * and the fate of the operations under way. Rules F1.., R3, R5, T1 of
 * AGREEMENT.md. */
#include "session.h"

#include "../base/append.h"
#include "../base/arguments.h"
#include "../base/buggify.h"

#include "../../include/pccl.h"

/* -------------------------------------------------------------- the flush */

/* The operations under way here, with the members of their scopes. */
static void send_list(struct session *s, struct wire_msg *msg)
{
    struct wire_op ops[OPS_MAX];
    if (!engine_list(s->engine, msg, ops)) {
        session_gone(s, "out of memory for the list of operations");
        return;
    }
    session_send(s, msg);
    engine_listed(s->engine, msg);
}

/* Rule F9: the arguments of the disputed operation, and what this member sends
 * to the other one of the pair. */
static void describe(const struct session *s, const struct wire_msg *flush,
                     struct wire_msg *reply, uint8_t *named)
{
    const uint64_t *pair = flush->flush.pair;
    const struct op *op = engine_find(s->engine, flush->flush.op.tag);
    if (!op || !op_is_active(op)) return;
    struct wire_op name = op_name(op);
    if (!wire_same_op(&name, &flush->flush.op)) return;
    uint64_t other = pair[0] == s->id ? pair[1] : 0;
    if (pair[1] == s->id) other = pair[0];
    reply->flushed.described = true;
    op_describe(s->engine, op, other, &reply->flushed.args, named);
}

/* Rule F2: the peer stops, then reports its operations. */
void session_on_flush(struct session *s, const struct wire_msg *msg)
{
    s->round = msg->round;
    view_release(s->next);
    s->next = NULL;
    if (!links_is_frozen(s->links)) s->closed_at = links_now(s->links);
    engine_freeze(s->engine);
    struct wire_msg reply = {.type = WIRE_FLUSHED,
                             .round = msg->round,
                             .epoch = s->view->epoch,
                             .flushed.traits = s->traits};
    uint8_t named[ARGUMENTS_SIZE];
    if (msg->flush.disputed) describe(s, msg, &reply, named);
    send_list(s, &reply);
}

void session_on_query(struct session *s, const struct wire_msg *msg)
{
    struct wire_op ops[WIRE_OPS_MAX];
    struct wire_msg reply = {.type = WIRE_REPLY,
                             .round = msg->round,
                             .epoch = s->view->epoch,
                             .ops = ops};
    reply.op_count = msg->op_count;
    for (uint32_t i = 0; i < msg->op_count; i++) {
        ops[i] = msg->ops[i];
        engine_query(s->engine, &ops[i]);
    }
    session_send(s, &reply);
}

void session_on_donate(struct session *s, const struct wire_msg *msg)
{
    struct wire_msg reply = {.type = WIRE_RESULT, .round = msg->round};
    reply.result.scope = msg->result.scope;
    reply.result.tag = msg->result.tag;
    reply.result.seq = msg->result.seq;
    reply.result.bytes =
        engine_donation(s->engine, msg->result.scope, msg->result.tag,
                        msg->result.seq, &reply.result.size);
    if (reply.result.bytes) session_send(s, &reply);
}

/* ------------------------------------------------------- propose, install */

static void want(struct session *s, uint32_t rank, uint32_t connections)
{
    if (rank != s->next->rank)
        links_want(s->links, &s->next->members[rank], connections);
}

static uint32_t rank_at(const struct view *v, uint32_t position)
{
    return v->order ? v->order[position] : position;
}

static void want_tree(struct session *s, uint32_t position)
{
    const struct view *v = s->next;
    struct tree_node node;
    uint32_t size;
    tree_find(v->size, engine_tree_width(s->engine), position, &node);
    want(s, rank_at(v, node.parent), 1);
    for (uint32_t i = 0; i < node.children; i++)
        want(s, rank_at(v, tree_child(&node, i, &size)), 1);
}

static void want_grid(struct session *s, uint32_t position)
{
    const struct view *v = s->next;
    struct grid_node node;
    grid_find(v->size, position, &node);
    uint32_t count = grid_partners(&node);
    for (uint32_t i = 0; i < count; i++)
        want(s, rank_at(v, grid_partner(&node, i)), 1);
}

/* Over a relay it is linked when something needs it (N10a). */
static bool is_relayed(const struct view *v, uint32_t other)
{
    for (uint32_t i = 0; i < v->relay_count; i++) {
        const struct wire_relay *r = &v->relays[i];
        if ((r->a == v->rank && r->b == other) ||
            (r->b == v->rank && r->a == other))
            return true;
    }
    return false;
}

static uint32_t place_of(const struct view *v)
{
    uint32_t at = v->rank;
    for (uint32_t i = 0; v->order && i < v->size; i++)
        if (v->order[i] == v->rank) at = i;
    return at;
}

/* Connections that the proposal needs here. */
static uint32_t needed(const struct session *s)
{
    const struct view *v = s->next;
    uint32_t pool = links_pool_size(s->links);
    if (!v->ring || v->size < 2) return 0;
    uint32_t links = v->size - 1, neighbors = links < 2 ? links : 2;
    if (!v->mesh) links = neighbors;
    if (v->tree) {
        struct tree_node node;
        tree_find(v->size, engine_tree_width(s->engine), place_of(v), &node);
        links += node.children + 1;
    }
    if (v->grid) {
        struct grid_node node;
        grid_find(v->size, place_of(v), &node);
        links += grid_partners(&node);
    }
    return links + neighbors * (pool > 1 ? pool - 1 : 0);
}

/* What a connection takes once data have come: its receive buffer, and a
 * segment or its half of what both ends share. */
#define LINK_MEMORY ((uint64_t)520 * 1024)

/* Rule R3j. While it is made, a connection within a host has a descriptor of
 * its memory, too. */
static bool affords(struct session *s)
{
    enum { LOOK = 2 }; /* to ask the kernel who calls */
    uint32_t links = needed(s), need = links > 0 ? 2 * links + LOOK : 0;
    uint64_t have = s->out.afford ? s->out.afford(s->out.user, need) : need;
    if (s->state != SESSION_JOINING) return true;
    uint64_t bytes = (uint64_t)links * LINK_MEMORY;
    uint64_t left = s->out.memory ? s->out.memory(s->out.user) : bytes;
    char text[WIRE_TEXT_MAX] = "";
    if (have < need)
        append(text, sizeof text,
               "a world of %u members needs %u descriptors more in this "
               "process, and there may be %llu (ulimit -n)",
               s->next->size, need, (unsigned long long)have);
    else if (left < bytes)
        append(text, sizeof text,
               "a world of %u members needs %llu KiB of memory more in this "
               "process, and there are %llu (ulimit -v, the host, or its "
               "control group)",
               s->next->size, (unsigned long long)(bytes / 1024),
               (unsigned long long)(left / 1024));
    else
        return true;
    session_gone(s, text);
    return false;
}

/* Rules R3, R4d: connect to the ring neighbours, and in small worlds to all, in
 * others to the neighbours in the tree or in the grid. */
static void want_links(struct session *s)
{
    const struct view *v = s->next;
    if (!v->ring || v->size < 2) return;
    uint32_t at = place_of(v);
    uint32_t after = (at + 1) % v->size;
    uint32_t before = (at + v->size - 1) % v->size;
    uint32_t pool = links_pool_size(s->links);
    want(s, rank_at(v, after), pool);
    want(s, rank_at(v, before), pool);
    if (v->tree) want_tree(s, at);
    if (v->grid) want_grid(s, at);
    bool all = v->mesh || (v->survey && v->size <= SURVEY_ALL_MAX);
    for (uint32_t i = 0; all && i < v->size; i++)
        if (!is_relayed(v, i)) want(s, i, 1);
    for (uint32_t d = 2; v->survey && d <= v->size / 2; d *= 2) {
        after = (at + d) % v->size;
        before = (at + v->size - d) % v->size;
        want(s, rank_at(v, after), 1);
        want(s, rank_at(v, before), 1);
    }
}

/* Rule N10. */
static void set_ways(struct session *s)
{
    const struct view *v = s->next;
    struct relay_way ways[WIRE_RELAYS_MAX];
    for (uint32_t i = 0; i < v->relay_count; i++) {
        const struct wire_relay *r = &v->relays[i];
        ways[i] = (struct relay_way){.a = v->ids[r->a], .b = v->ids[r->b]};
        if (r->relay == WIRE_RELAY_MASTER) continue;
        ways[i].relay = v->ids[r->relay];
        ways[i].member = v->members[r->relay];
    }
    links_set_ways(s->links, ways, v->relay_count);
}

void session_on_propose(struct session *s, const struct wire_msg *msg)
{
    const char *why;
    view_release(s->next);
    s->next = view_propose(s->view, msg, s->id, &why);
    if (!s->next) {
        session_gone(s, why);
        return;
    }
    if (!affords(s)) {
        view_release(s->next);
        s->next = NULL;
        return;
    }
    s->round = msg->round;
    s->ready_sent = false;
    s->verdicts = s->verdicts_again = 0;
    s->dispute = 0;
    s->refuses = false;
    if (!links_is_frozen(s->links)) {
        s->closed_at = links_now(s->links);
        engine_freeze(s->engine);
    }
    s->proposed_at = links_now(s->links);
    s->late_at = links_late(s->links);
    links_unwant(s->links);
    if (msg->view.update) links_retry(s->links);
    set_ways(s);
    want_links(s);
    links_resume(s->links);
    /* No member can need them before INSTALL, and both ends see them so
     * (O7). */
    if (msg->view.optimize) links_close_unwanted(s->links);
    session_settle(s);
}

/* Rule R3: READY when every wanted link is there, or cannot be made. */
void session_settle(struct session *s)
{
    if (s->stranded) session_gone(s, s->reason);
    if (s->master_lost) return;
    if (!s->next || s->ready_sent || PCCL_BUGGIFY(ready_late)) return;
    uint64_t failed[PEERS_MAX];
    struct wire_msg ready = {
        .type = WIRE_READY, .round = s->round, .ids = failed};
    for (uint32_t i = 0; i < s->next->size; i++) {
        uint64_t id = s->next->ids[i];
        if (!links_is_wanted(s->links, id)) continue;
        enum link_status status = links_status(s->links, id);
        if (status == LINK_WAITS) return;
        if (status == LINK_FAILED) failed[ready.id_count++] = id;
    }
    s->ready_sent = true;
    ready.ready.late = links_missed(s->links) ||
                       links_late(s->links) - s->late_at >=
                           PCCL_TIME_TO_LINK(links_deadline(s->links)) / 4;
    session_send(s, &ready);
}

/* The fate of an operation that was under way when the epoch closed: the epoch
 * of the loss, or 0, and the size of the view before. True: it goes on in the
 * new view. */
static bool judge(struct session *s, struct op *op, uint32_t loss,
                  uint32_t size_before)
{
    struct engine *e = s->engine;
    bool queued = op_phase(op) == PHASE_QUEUED;
    enum op_verdict verdict = op_verdict_of(op);
    if (verdict == VERDICT_COMMIT && op_phase(op) == PHASE_COMPLETE) {
        engine_finish(e, op, pcclSuccess);
        return false;
    }
    /* Rule V4d: one error of the tag. */
    bool crossed = verdict == VERDICT_CROSSED || queued;
    if (crossed && session_drop_crossed(s, op_name(op).tag))
        verdict = VERDICT_CROSSED;
    int result = session_forced(verdict);
    if (result != pcclSuccess) {
        op_set_dispute(op,
                       session_disputed(s, op_name(op).scope, op_name(op).tag));
        engine_finish(e, op, result);
        return false;
    }
    uint32_t count;
    const uint64_t *scope = op_scope(op, &count);
    bool whole = op_is_whole(op);
    bool lost = whole ? loss > 0 : !session_scope_lives(s, scope, count);
    bool ring = s->view->ring || s->view->size == 1;
    /* Only an update adds members, or removes them without a loss, and nobody
     * has voted for one who has an operation under way. */
    bool resized = whole && s->view->size != size_before;
    if (!lost && !resized && ring) return true;
    op_set_loss(op, whole && lost ? loss : 0);
    engine_finish(e, op,
                  lost ? pcclRankConnectionLost : pcclRankConnectionFailed);
    return false;
}

static void go_on(struct session *s, const bool *again)
{
    for (uint32_t i = 0; i < OPS_MAX; i++) {
        if (!again[i]) continue;
        struct op *op = engine_op(s->engine, i);
        bool started = engine_start(s->engine, op);
        if (!started && !engine_start_failing(s->engine, op))
            engine_finish(s->engine, op, pcclInternalError);
        if (started && op_fails(op) && !op_is_done(op))
            /* Rule D10: the epoch was closed before the master received it. */
            engine_fail(s->engine, op, true);
    }
}

/* Rule T1: the program's world follows the view by losses, and by what the
 * program voted for. */
static bool may_install(const struct session *s, const struct wire_msg *msg)
{
    if (s->state == SESSION_JOINING) return true;
    if (msg->view.optimize) return s->votes[VOTE_OPTIMIZE] == VOTE_WAITING;
    if (msg->view.update) return s->votes[VOTE_UPDATE] == VOTE_WAITING;
    return s->next->added == 0;
}

/* Rule H6. Of what it waits for it keeps its own number: the INSTALL of a will
 * comes without the answers that went before it. */
static void raise_numbers(struct session *s, const struct wire_msg *msg)
{
    for (int i = 0; i < VOTE_KIND_COUNT; i++) {
        if (s->votes[i] == VOTE_WAITING) continue;
        /* The INSTALL of a will may be older than an answer. */
        if (s->answered[i] >= msg->view.answered[i]) continue;
        s->answered_flag[i] = ANSWER_UNKNOWN;
        s->answered[i] = msg->view.answered[i];
    }
    session_sync_raise(&s->sync_over, msg->view.synced);
    if (s->sync != SYNC_ASKED)
        session_sync_raise(&s->sync_ended, msg->view.synced);
}

/* Rules R5, T1: the proposed view is in force. */
void session_on_install(struct session *s, const struct wire_msg *msg)
{
    if (!s->next || msg->round != s->round) return;
    if (!may_install(s, msg)) {
        session_gone(s, "the master installed a view without this "
                        "member's vote");
        return;
    }
    bool update = msg->view.update || msg->view.optimize;
    uint32_t size_before = s->view->size, loss = 0;
    view_complete(s->next, msg);
    view_release(s->view);
    const struct view *v = s->view = s->next;
    s->next = NULL;
    s->installed_at = links_now(s->links);
    if (v->removed_count > 0 && !update && s->state == SESSION_MEMBER) {
        if (!notified_push(&s->notified, v)) {
            bool many = s->notified.loss_count == PEERS_MAX;
            session_gone(s, many ? "the master removed more members than there "
                                   "are"
                                 : "out of memory for a loss");
            return;
        }
        loss = v->epoch;
    }
    bool again[OPS_MAX] = {false};
    for (uint32_t i = 0; i < engine_op_end(s->engine); i++) {
        struct op *op = engine_op(s->engine, i);
        if (op && !op_is_done(op)) again[i] = judge(s, op, loss, size_before);
    }
    session_end_verdicts(s);
    for (uint32_t i = 0; i < v->removed_count; i++)
        links_drop(s->links, v->removed[i]);
    links_prune(s->links);
    engine_install(s->engine, v);
    for (uint32_t i = 0; i < v->removed_count; i++)
        message_lose(&s->messages, v->removed[i]);
    if (update || s->state == SESSION_JOINING) notified_all(&s->notified, v);
    session_keep_blockers(s, msg);
    enum vote_kind kind = msg->view.optimize ? VOTE_OPTIMIZE : VOTE_UPDATE;
    if (update && s->votes[kind] == VOTE_WAITING) {
        s->votes[kind] = VOTE_ANSWERED;
        s->answers[kind] = kind == VOTE_UPDATE || s->view->ring;
        session_call_over(s);
    }
    s->state = SESSION_MEMBER;
    raise_numbers(s, msg);
    go_on(s, again);
    session_resume_view(s);
    s->out.changed(s->out.user);
}
