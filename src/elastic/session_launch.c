/* session_launch.c - operations as the program sees them: the conditions that
 * a launch meets, and its result. Rules P1, T2, D10 of AGREEMENT.md. */
#include "session.h"

#include "../../include/pccl.h"

/* How a launch is over at once (rule P1). */
struct launch_end {
    int result;
    uint32_t loss;    /* epoch of the one that it meets; 0: none */
    bool has_verdict; /* which was kept, and is taken by this launch */
};

/* NULL: no memory. The launch has not happened, and takes no verdict. */
static struct op *finished_op(struct session *s, const struct op_request *r,
                              const struct launch_end *end)
{
    uint32_t loss = end->loss;
    struct op *op = engine_launch(s->engine, r, true);
    if (!op) return NULL;
    if (end->has_verdict) session_take_verdict(s, r, op);
    op_set_loss(op, loss);
    engine_finish(s->engine, op, end->result);
    return op;
}

bool session_scope_lives(const struct session *s, const uint64_t *ids,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!view_has(s->view, ids[i])) return false;
    }
    return true;
}

/* Rule P1: the conditions that a launch meets, in the order of the program's
 * history. */
static bool launch_is_over(const struct session *s, const struct op_request *r,
                           struct launch_end *end)
{
    *end = (struct launch_end){0};
    end->has_verdict = session_meets_verdict(s, r, &end->result);
    if (end->has_verdict) return true;
    end->result = pcclRankConnectionLost;
    if (r->call.members &&
        !session_scope_lives(s, r->call.members, r->call.member_count))
        return true;
    end->loss = r->call.members ? 0 : notified_oldest(&s->notified);
    if (end->loss > 0) return true;
    /* Rule M14b: by the view that the program knows, as its history says. */
    end->result = pcclTooFewPeers;
    if (!r->call.members && !s->goes_on && s->notified.view->world < s->minimum)
        return true;
    end->result = pcclRankConnectionFailed;
    return !s->view->ring && s->view->size > 1;
}

int session_launch(struct session *s, const struct op_request *r,
                   uint64_t view_epoch, struct op **out)
{
    if (s->state == SESSION_GONE) return pcclMasterConnectionFailed;
    if (s->state != SESSION_MEMBER) return pcclInvalidUsage;
    if (session_votes_topology(s) || s->sync != SYNC_IDLE)
        return pcclInvalidUsage;
    if (engine_find(s->engine, r->call.tag)) return pcclInvalidArgument;
    if (!r->call.members && view_epoch != 0 &&
        view_epoch != s->notified.view->epoch)
        return pcclRankConnectionLost;
    struct launch_end end;
    if (launch_is_over(s, r, &end))
        *out = finished_op(s, r, &end);
    else
        *out = engine_launch(s->engine, r, links_is_frozen(s->links));
    if (*out && op_phase(*out) == PHASE_QUEUED) session_queue_verdict(s, *out);
    return *out ? pcclSuccess : pcclInternalError;
}

bool session_fast(struct session *s, const struct op_request *r,
                  uint64_t view_epoch)
{
    if (s->state != SESSION_MEMBER || session_votes_topology(s) ||
        s->sync != SYNC_IDLE)
        return false;
    /* A closed epoch, a pending loss and a kept verdict need no look: no
     * operation has left a copy, or taken a number, then (D9a, D9d). */
    if (view_epoch != 0 && view_epoch != s->notified.view->epoch) return false;
    return fast_start(s->engine, r);
}

/* Marks those that the program has been told of. */
static bool any_gone(const struct notified *t, const uint64_t *ids,
                     uint32_t count, bool *lost)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        bool gone = !view_has(t->view, ids[i]);
        if (lost) lost[i] = gone;
        any |= gone;
    }
    return any;
}

bool session_take_loss(struct session *s, const uint64_t *ids, uint32_t count,
                       bool *lost)
{
    struct notified *t = &s->notified;
    if (any_gone(t, ids, count, lost)) return true;
    uint32_t loss = notified_loss_of(t, ids, count);
    if (loss == 0) return false;
    /* At once: the traits are those of all losses that the call tells of. */
    notified_advance(t, loss);
    session_loss_told(s, loss);
    return any_gone(t, ids, count, lost);
}

struct op *session_convert(struct session *s)
{
    struct op *op = fast_convert(s->engine);
    if (!op) session_gone(s, "out of memory for an operation under way");
    return op;
}

int session_fail(struct session *s, uint64_t tag)
{
    struct op *op = engine_find(s->engine, tag);
    if (!op || op_is_done(op)) return pcclInvalidUsage;
    if (s->state != SESSION_MEMBER || links_is_frozen(s->links) ||
        op_phase(op) == PHASE_QUEUED)
        return pcclPendingAsyncOps;
    engine_fail(s->engine, op, false);
    return pcclSuccess;
}

int session_take(struct session *s, struct op *op, uint32_t *contributors,
                 uint64_t *tx_bytes, uint64_t *rx_bytes)
{
    struct op_outcome out = engine_take(s->engine, op);
    *contributors = out.contributors;
    *tx_bytes = out.tx_bytes;
    *rx_bytes = out.rx_bytes;
    /* Rule T2: this result notifies the program, up to the loss that the
     * operation met and no further. */
    if (out.loss > 0) notified_advance(&s->notified, out.loss);
    if (out.loss > 0) session_loss_told(s, out.loss);
    return out.result;
}
