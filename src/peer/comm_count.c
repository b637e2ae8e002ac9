/* comm_count.c - see comm_count.h. */
#include "comm.h"

static uint32_t active_operations(const struct session *s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < engine_op_end(s->engine); i++) {
        const struct op *op = engine_op(s->engine, i);
        count += op && op_is_active(op);
    }
    return count;
}

struct view_before count_before(const struct session *s)
{
    return (struct view_before){
        .epoch = s->view->epoch,
        .size = s->view->size,
        .frozen = links_is_frozen(s->links),
        .member = s->state == SESSION_MEMBER,
        .updates = s->votes[VOTE_UPDATE] == VOTE_WAITING,
        .optimizes = s->votes[VOTE_OPTIMIZE] == VOTE_WAITING};
}

/* A vote that waited has its answer now. */
static bool was_voted(const struct session *s, const struct view_before *before)
{
    return (before->updates && s->votes[VOTE_UPDATE] == VOTE_ANSWERED) ||
           (before->optimizes && s->votes[VOTE_OPTIMIZE] == VOTE_ANSWERED);
}

struct view_change count_view(struct counters *n, const struct session *s,
                              const struct view_before *before)
{
    struct view_change change = {.voted = was_voted(s, before)};
    bool gone = s->state != SESSION_MEMBER;
    change.closed = !gone && !before->frozen && links_is_frozen(s->links);
    if (gone || s->view->epoch == before->epoch) return change;
    change.installed = true;
    n->epochs++;
    if (!before->member) return change; /* its first one */
    change.lost = s->view->removed_count;
    change.joined = s->view->size + change.lost - before->size;
    n->losses += change.lost;
    n->joins += change.joined;
    if (change.voted) {
        n->updates++;
        return change;
    }
    pccl_ns took = s->installed_at - s->closed_at;
    n->recoveries++;
    n->restarts += active_operations(s);
    if (took > 0) n->recovery += took;
    if (took > n->recovery_longest) n->recovery_longest = took;
    return change;
}

void count_fast(struct counters *n, const struct session *s)
{
    uint64_t sent, received;
    if (!s->engine) return;
    fast_total(s->engine, &sent, &received);
    n->shared_sent += sent;
    n->shared_received += received;
}
