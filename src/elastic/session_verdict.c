/* session_verdict.c - verdicts other than commit and abort, and the verdicts
 * that wait for a launch. Rule numbers: see src/README.md. */
#include "session.h"

#include "../../include/pccl.h"
#include "../base/scope.h"

#include <stdlib.h>
#include <string.h>

int session_forced(enum op_verdict verdict)
{
    switch (verdict) {
    case VERDICT_INVALID:
    case VERDICT_CROSSED:
        return pcclInvalidArgument;
    case VERDICT_USAGE:
        return pcclInvalidUsage;
    case VERDICT_UNREACHABLE:
        return pcclRankConnectionFailed;
    case VERDICT_FAILED:
        return pcclOperationFailed;
    case VERDICT_COMMIT: /* of a result that no donor has delivered: F8 */
        return pcclInternalError;
    case VERDICT_ABORT:
    case VERDICT_COUNT:
        break;
    }
    return pcclSuccess;
}

/* The oldest pending verdict for the tag in the scope, of those that are in
 * force or of the fresh ones; pending_abort_count: there is none. */
static uint32_t find_pending_abort(const struct session *s, uint64_t scope,
                                   uint64_t tag, bool fresh)
{
    uint32_t i = 0;
    for (; i < s->pending_abort_count; i++) {
        const struct pending_abort *a = &s->pending_aborts[i];
        bool fits = a->scope == scope || a->any_scope;
        if (a->tag == tag && a->fresh == fresh && fits) break;
    }
    return i;
}

static uint32_t find_for(const struct session *s, const struct op_request *r)
{
    if (s->pending_abort_count == 0) return 0;
    return find_pending_abort(
        s, scope_number(r->call.members, r->call.member_count), r->call.tag,
        false);
}

static void drop_pending_abort(struct session *s, uint32_t i)
{
    s->pending_abort_count--;
    memmove(s->pending_aborts + i, s->pending_aborts + i + 1,
            (s->pending_abort_count - i) * sizeof s->pending_aborts[0]);
}

/* Rule P1: an older loss comes first. */
bool session_meets_verdict(const struct session *s, const struct op_request *r,
                           int *result)
{
    uint32_t i = find_for(s, r);
    if (i == s->pending_abort_count) return false;
    bool lost = !r->call.members && s->notified.loss_count > 0;
    if (lost && notified_oldest(&s->notified) <= s->pending_aborts[i].epoch)
        return false;
    *result = session_forced((enum op_verdict)s->pending_aborts[i].verdict);
    return true;
}

void session_take_verdict(struct session *s, const struct op_request *r,
                          struct op *op)
{
    uint32_t i = find_for(s, r);
    op_set_dispute(op, s->pending_aborts[i].dispute);
    drop_pending_abort(s, i);
}

void session_loss_told(struct session *s, uint32_t epoch)
{
    for (uint32_t i = s->pending_abort_count; i-- > 0;) {
        const struct pending_abort *a = &s->pending_aborts[i];
        if (a->scope == 0 && a->epoch < epoch && !a->fresh && !a->any_scope)
            drop_pending_abort(s, i);
    }
}

/* Rule F6. Of CROSSED: session_drop_crossed(), at INSTALL. */
void session_queue_verdict(struct session *s, struct op *op)
{
    struct wire_op name = op_name(op);
    uint32_t i = find_pending_abort(s, name.scope, name.tag, true);
    if (i == s->pending_abort_count) return;
    enum op_verdict verdict = (enum op_verdict)s->pending_aborts[i].verdict;
    if (verdict == VERDICT_CROSSED) return;
    op_set_verdict(op, verdict);
    drop_pending_abort(s, i);
}

/* No verdict may be dropped: the launch would wait for members that have ended
 * the operation. A member that never launches what others launch and fail again
 * and again is out in the end, and nobody else. */
static void add_pending_abort(struct session *s, const struct wire_op *v)
{
    if (s->pending_abort_count == s->pending_abort_room) {
        uint32_t room = 2 * s->pending_abort_room + 16;
        struct pending_abort *more = NULL;
        if (s->pending_abort_count < PENDING_ABORTS_MAX)
            more = realloc(s->pending_aborts, room * sizeof *more);
        if (!more) {
            session_gone(s, "too many operations have failed that this peer "
                            "has not launched");
            return;
        }
        s->pending_aborts = more;
        s->pending_abort_room = room;
    }
    s->pending_aborts[s->pending_abort_count++] =
        (struct pending_abort){.scope = v->scope,
                               .tag = v->tag,
                               .epoch = s->view->epoch,
                               .verdict = v->state,
                               .fresh = true};
}

/* Rule F6: a verdict on an operation that is not launched here waits for the
 * launch, or ends the vote that this peer is in instead. */
static void keep_verdict(struct session *s, const struct wire_op *v)
{
    struct op *op = engine_find(s->engine, v->tag);
    if (v->state == VERDICT_COMMIT || v->state == VERDICT_ABORT) return;
    bool queued = v->state != VERDICT_CROSSED && op &&
                  op_phase(op) == PHASE_QUEUED && op_name(op).scope == v->scope;
    s->refuses |= v->state == VERDICT_USAGE;
    if (queued)
        op_set_verdict(op, (enum op_verdict)v->state);
    else
        add_pending_abort(s, v);
}

/* Rule F9. */
static void keep_text(struct session *s, const struct wire_msg *msg)
{
    if (msg->verdict.about >= msg->op_count || !*msg->verdict.text) return;
    s->disputed = msg->ops[msg->verdict.about];
    s->dispute = ++s->disputes;
    memcpy(s->dispute_texts[s->dispute % DISPUTES_KEPT], msg->verdict.text,
           sizeof msg->verdict.text);
}

uint32_t session_disputed(const struct session *s, uint64_t scope, uint64_t tag)
{
    /* The text about scopes is about all of them (V4). */
    bool same =
        s->disputed.scope == scope || s->disputed.state == VERDICT_CROSSED;
    return same && s->disputed.tag == tag ? s->dispute : 0;
}

const char *session_dispute(const struct session *s, uint32_t number)
{
    bool kept = number > 0 && s->disputes - number < DISPUTES_KEPT;
    return kept ? s->dispute_texts[number % DISPUTES_KEPT] : NULL;
}

/* The INSTALL of the same round follows. */
void session_on_verdict(struct session *s, const struct wire_msg *msg)
{
    if (!s->next || msg->round != s->round) return;
    if (s->verdicts_again > 0) {
        s->verdicts_again--;
        return;
    }
    s->verdicts++;
    keep_text(s, msg);
    for (uint32_t i = 0; i < msg->op_count; i++) {
        const struct wire_op *v = &msg->ops[i];
        struct op *op = engine_find(s->engine, v->tag);
        struct wire_op name = {0};
        if (op && op_is_active(op)) name = op_name(op);
        if (op && op_is_active(op) && wire_same_op(&name, v))
            op_set_verdict(op, (enum op_verdict)v->state);
        else if (!engine_is_past(s->engine, v->scope, v->tag, v->seq))
            keep_verdict(s, v);
    }
}

bool session_drop_crossed(struct session *s, uint64_t tag)
{
    uint32_t before = s->pending_abort_count;
    for (uint32_t i = s->pending_abort_count; i-- > 0;) {
        const struct pending_abort *a = &s->pending_aborts[i];
        if (a->fresh && a->verdict == VERDICT_CROSSED && a->tag == tag)
            drop_pending_abort(s, i);
    }
    return s->pending_abort_count < before;
}

/* Rule F6: what others had launched before they came to that call, this peer
 * launches no more. */
void session_call_over(struct session *s)
{
    s->pending_abort_count = 0;
}

/* Rule F6. */
static void refuse_call(struct session *s)
{
    s->refuses = false;
    for (int kind = 0; kind < VOTE_KIND_COUNT; kind++) {
        if (kind == VOTE_PENDING || s->votes[kind] != VOTE_WAITING) continue;
        s->votes[kind] = VOTE_ANSWERED;
        s->answers[kind] = 0xff;
        session_call_over(s);
    }
    session_sync_refuse(s);
}

/* Rules V4d, F6. */
void session_end_verdicts(struct session *s)
{
    if (s->refuses) refuse_call(s);
    for (uint32_t i = 0; i < s->pending_abort_count; i++) {
        struct pending_abort *a = &s->pending_aborts[i];
        if (!a->fresh) continue;
        a->fresh = false;
        a->dispute = session_disputed(s, a->scope, a->tag);
        if (a->verdict != VERDICT_CROSSED) continue;
        a->any_scope = true;
        (void)session_drop_crossed(s, a->tag);
    }
}
