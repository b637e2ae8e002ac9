/* model_member.c - one process: its view, its operations, and what its program
 * is told. Rules F1, F2, F6, M9, P1, R2, R3, R5, T1 to T4, V4d. */
#include "model_state.h"

#include <stdlib.h>
#include <string.h>

void member_gone(struct process *p)
{
    p->state = GONE;
    p->due = MESSAGE_OTHER;
}

/* --------------------------------------------------------- the operations */

static struct running *find_tag(struct process *p, uint64_t tag)
{
    for (uint32_t i = 0; i < CALLS; i++)
        if (p->ops[i].used && p->ops[i].name.tag == tag) return &p->ops[i];
    return NULL;
}

/* Under way in this epoch: RUNNING or COMPLETE. */
static bool is_active(const struct running *o)
{
    return o->used && !o->queued && o->outcome == OPEN_END;
}

static struct sequence *sequence_of(struct process *p, uint64_t scope,
                                    uint64_t tag)
{
    for (uint32_t i = p->seq_count; i-- > 0;)
        if (p->seqs[i].tag == tag && p->seqs[i].scope == scope)
            return &p->seqs[i];
    return NULL;
}

/* Rule D1: the next number of the tag in the scope. */
static void start(struct model *m, struct process *p, struct running *o)
{
    struct sequence *s = sequence_of(p, o->name.scope, o->name.tag);
    if (!s && p->seq_count == p->seq_room) {
        uint32_t room = 2 * p->seq_room + 16;
        struct sequence *more = realloc(p->seqs, room * sizeof *more);
        if (!more) {
            REFUSE(m, "out of memory");
            return;
        }
        p->seqs = more;
        p->seq_room = room;
    }
    if (!s) {
        s = &p->seqs[p->seq_count++];
        *s = (struct sequence){.scope = o->name.scope, .tag = o->name.tag};
    }
    o->name.seq = s->next++;
    o->seen = ABSENT;
    o->verdict = ABORT;
    call_starts(m, p, o);
}

static bool lives(const struct ids *scope, const struct ids *view)
{
    for (uint32_t i = 0; i < scope->count; i++)
        if (find_id(view, scope->of[i]) == view->count) return false;
    return true;
}

static uint8_t outcome_of(uint8_t verdict)
{
    static const uint8_t outcomes[] = {OPEN_END,     INTERNAL,    BAD_ARGUMENT,
                                       BAD_USAGE,    NOT_REACHED, HAD_TO_FAIL,
                                       BAD_ARGUMENT, BAD_ARGUMENT};
    return verdict <= CROSSED ? outcomes[verdict] : OPEN_END;
}

/* Rule P1: what a launch meets, or OPEN_END. */
static uint8_t meets(struct process *p, struct running *o)
{
    bool whole = o->name.scope == 0;
    uint32_t i = 0;
    while (i < p->abort_count &&
           (p->aborts[i].fresh || !abort_fits(&p->aborts[i], o)))
        i++;
    bool older = whole && p->loss_count > 0 && i < p->abort_count &&
                 p->losses[0].number < p->aborts[i].loss;
    if (i < p->abort_count && !older) {
        uint8_t outcome = outcome_of(p->aborts[i].verdict);
        member_drops(p, i);
        return outcome;
    }
    if (!whole && !lives(&o->scope, &p->view)) return LOST_MEMBER;
    if (whole && p->loss_count > 0) {
        o->loss = p->losses[0].number;
        return LOST_MEMBER;
    }
    if (whole && p->notified.count < p->minimum) return TOO_FEW;
    return !p->ring && p->view.count > 1 ? NOT_REACHED : OPEN_END;
}

static void check_notified(struct model *m, const struct process *p,
                           const struct trace *t)
{
    if (t->epoch != p->notified_epoch || t->size != p->notified.count)
        REFUSE(m, "T1: process %llu is told epoch %u of %u, not %u of %u",
               (unsigned long long)p->id, t->epoch, t->size, p->notified_epoch,
               p->notified.count);
    if (t->value != p->notified_traits && t->kind != TRACE_RESULT)
        REFUSE(m, "T4: process %llu is told traits %x, not %x",
               (unsigned long long)p->id, t->value, p->notified_traits);
}

static void launch(struct model *m, struct process *p, const struct trace *t)
{
    struct running *o = NULL;
    for (uint32_t i = 0; i < CALLS && !o; i++)
        if (!p->ops[i].used) o = &p->ops[i];
    const struct trace_name *n = &t->names[0];
    for (uint32_t i = 0; i < CALLS && p->takes; i++)
        if (p->ops[i].used) REFUSE(m, "T2: a result of the batch is missing");
    p->takes = false;
    if (!o || find_tag(p, n->tag) || p->waits[UPDATE] || p->waits[OPTIMIZE]) {
        REFUSE(m, "V1, D1: a launch that is not allowed");
        return;
    }
    *o = (struct running){.used = true,
                          .name = {.scope = n->scope, .tag = n->tag},
                          .kind = (uint8_t)t->flag,
                          .root = (uint8_t)t->round,
                          .arguments = t->number};
    if (p->state != IN_VIEW) return; /* NO_MASTER follows */
    check_notified(m, p, t);
    o->scope = p->view;
    if (n->scope != 0) {
        o->scope.count = 0;
        for (uint32_t i = 0; i < t->id_count && i < WORLD; i++)
            o->scope.of[o->scope.count++] = t->ids[i];
        call_scope(m, n->scope, &o->scope);
    }
    o->outcome = meets(p, o);
    o->over = o->outcome != OPEN_END;
    o->queued = !o->over && p->frozen;
    if (o->queued) member_queues(p, o);
    if (!o->over && !o->queued) start(m, p, o);
}

/* The program takes a result. t->joins: of an operation without a launch. */
static void take(struct model *m, struct process *p, const struct trace *t)
{
    struct running *o = find_tag(p, t->names[0].tag);
    if (!o) {
        REFUSE(m, "a result of an operation that was not launched");
        return;
    }
    m->results++;
    p->takes = true; /* who takes one launches no more of this batch */
    bool may_go = p->master_lost || p->state != IN_VIEW;
    if (t->flag == NO_MASTER && (o->outcome == OPEN_END || o->queued)) {
        if (!may_go) REFUSE(m, "M9: the end of a member that is in the view");
        member_gone(p);
        o->used = false;
        return;
    }
    if (o->outcome == OPEN_END) {
        if (t->flag != SUCCESS || o->queued || o->seen != ABSENT)
            REFUSE(m, "result %u of operation %llu that runs, listed as %u",
                   t->flag, (unsigned long long)o->name.tag, o->seen);
        else if (p->frozen && !p->mute && p->state == IN_VIEW)
            REFUSE(m, "F1: a result between the list and INSTALL");
        else
            call_returns(m, p, o, t->joins);
    } else if (o->outcome != t->flag) {
        REFUSE(m, "operation %llu ends with %u, not %u",
               (unsigned long long)o->name.tag, t->flag, o->outcome);
    }
    if (t->flag == SUCCESS && t->value != o->scope.count)
        REFUSE(m, "C5: %u contributors of %u", t->value, o->scope.count);
    if (t->flag == SUCCESS) call_bytes(m, p, o, t->number);
    if (o->loss > 0) member_notify(p, o->loss);
    if (p->state == IN_VIEW) check_notified(m, p, t);
    o->used = false;
}

/* -------------------------------------------------- what it sends: the list */

static bool names_it(const struct trace *t, const struct trace_name *n,
                     uint8_t *state)
{
    for (uint32_t i = 0; i < t->name_count; i++) {
        if (!same_name(&t->names[i], n)) continue;
        *state = t->names[i].state;
        return true;
    }
    return false;
}

/* Rule F1: every operation under way, and nothing changes until INSTALL but by
 * a donation. An operation that is not listed was returned before. */
static void list(struct model *m, struct process *p, const struct trace *t)
{
    uint32_t listed = 0;
    for (uint32_t i = 0; i < CALLS && !m->wrong; i++) {
        struct running *o = &p->ops[i];
        uint8_t state = RETURNED;
        if (!is_active(o)) continue;
        bool named = names_it(t, &o->name, &state);
        listed += named;
        if (named && state != RUNNING && state != COMPLETE)
            REFUSE(m, "F1: state %u in a list", state);
        if (o->seen != ABSENT && o->seen != state)
            REFUSE(m, "F1: an operation changes while the epoch is closed");
        if (state == COMPLETE && !o->donated) call_held(m, p, o);
        if (!named) call_returns(m, p, o, false);
        if (named) o->seen = state;
    }
    if (listed != t->name_count)
        REFUSE(m, "F1: process %llu lists what it does not run",
               (unsigned long long)p->id);
}

/* Rule F4. */
static void reply(struct model *m, struct process *p, const struct trace *t)
{
    if (t->name_count != p->asked_count) REFUSE(m, "F8: half an answer");
    for (uint32_t i = 0; i < t->name_count && !m->wrong; i++) {
        const struct trace_name *n = &t->names[i];
        struct running *o = find_tag(p, n->tag);
        const struct sequence *s = sequence_of(p, n->scope, n->tag);
        bool past = s && s->next > n->seq;
        bool active = o && is_active(o) && same_name(&o->name, n);
        if (!same_name(n, &p->asked[i])) REFUSE(m, "F8: another answer");
        if (active && n->state == RETURNED && o->seen == ABSENT)
            call_returns(m, p, o, false);
        else if (active && p->frozen && o->seen != n->state)
            REFUSE(m, "F1: REPLY says %u, the list %u", n->state, o->seen);
        else if (active && n->state != RUNNING && n->state != COMPLETE)
            REFUSE(m, "F4: REPLY says %u of what runs", n->state);
        if (!active && n->state != (past ? RETURNED : ABSENT))
            REFUSE(m, "F4: REPLY says %u of what does not run", n->state);
        if (n->donor && n->state != RETURNED)
            REFUSE(m, "F5: a donor that has not returned it");
    }
}

/* Rule V4a. */
static void blocked(struct model *m, const struct process *p,
                    const struct trace *t)
{
    bool waits = p->syncs;
    for (uint32_t k = 0; k < VOTES; k++)
        waits |= p->waits[k] && !p->answered[k];
    if (p->state != IN_VIEW || t->epoch != p->epoch || (t->flag && !waits))
        REFUSE(m, "V4a: a report of a vote in which nobody waits");
}

void member_sends(struct model *m, struct process *p, const struct trace *t)
{
    if (t->message == MESSAGE_HELLO) {
        if (p->state != NEW) REFUSE(m, "M1: HELLO twice");
        p->state = JOINING;
        p->group = t->flag;
        return;
    }
    if (t->message == MESSAGE_RESUME) {
        member_resumes(m, p, t);
        return;
    }
    if (p->state == GONE || p->master_lost)
        REFUSE(m, "a message %u of a process that is out", t->message);
    bool answers = t->message == MESSAGE_FLUSHED ||
                   t->message == MESSAGE_REPLY || t->message == MESSAGE_RESULT;
    bool due = p->due != MESSAGE_OTHER || (answers && !p->mute);
    if (due && (p->due != t->message || p->due_round != t->round))
        REFUSE(m, "R8c: message %u where answer %u is due", t->message, p->due);
    p->due = MESSAGE_OTHER;
    if (m->wrong) return;
    switch ((enum trace_message)t->message) {
    case MESSAGE_FLUSHED:
        if (!p->frozen || t->round != p->round || t->epoch != p->epoch)
            REFUSE(m, "F1: FLUSHED without FLUSH");
        list(m, p, t);
        return;
    case MESSAGE_REPLY:
        reply(m, p, t);
        return;
    case MESSAGE_RESULT:
        if (!same_name(&t->names[0], &p->donates) || t->round != p->round)
            REFUSE(m, "F5: RESULT without DONATE");
        return;
    case MESSAGE_READY:
        if (!p->has_proposal || p->said_ready || t->round != p->round)
            REFUSE(m, "R3d: READY without PROPOSE, or twice");
        p->said_ready = true;
        return;
    case MESSAGE_SUSPECT:
    case MESSAGE_REFRESH:
        if (p->state != IN_VIEW || t->epoch != p->epoch || p->frozen)
            REFUSE(m, "R1: a report while the epoch is closed");
        return;
    case MESSAGE_BLOCKED:
        blocked(m, p, t);
        return;
    case MESSAGE_VOTE:
        if (t->flag < VOTES && p->speaks && !p->answered[t->flag]) {
            p->again[t->flag] = p->waits[t->flag] = true;
            return;
        }
        if (t->flag >= VOTES || p->waits[t->flag]) REFUSE(m, "V1: votes twice");
        p->waits[t->flag] = true;
        for (uint32_t i = 0; i < CALLS && t->flag != PENDING; i++)
            if (p->ops[i].used) REFUSE(m, "V1: a vote amid operations");
        return;
    case MESSAGE_SYNC:
        if (p->syncs && !t->joins) REFUSE(m, "V1: synchronizes twice");
        p->syncs = true;
        return;
    case MESSAGE_LEAVE:
        p->leaves = true;
        if (p->state == JOINING) member_gone(p);
        return;
    default:
        return;
    }
}

/* ---------------------------------------------------------- what it receives
 */

static void takes_proposal(struct model *m, struct process *p,
                           const struct trace *t)
{
    p->next.count = 0;
    p->removed.count = 0;
    for (uint32_t i = 0; i < t->id_count && i < WORLD; i++)
        p->removed.of[p->removed.count++] = t->ids[i];
    for (uint32_t i = 0; i < p->view.count && t->epoch != 0; i++)
        if (find_id(&p->removed, p->view.of[i]) == p->removed.count)
            p->next.of[p->next.count++] = p->view.of[i];
    for (uint32_t i = 0; i < t->added_count && p->next.count < WORLD; i++)
        p->next.of[p->next.count++] = t->added[i];
    if (find_id(&p->next, p->id) == p->next.count)
        REFUSE(m, "R2: a proposal without its receiver");
    p->round = t->round;
    p->next_ring = t->flag & WITH_RING;
    p->has_proposal = p->frozen = true;
    p->said_ready = false;
    p->verdicts = p->passing = 0;
    p->refuses = false;
}

/* Rule F6. */
static void takes_verdicts(struct process *p, const struct trace *t)
{
    if (p->passing > 0) { /* H7: it has had this one */
        p->passing--;
        return;
    }
    p->verdicts++;
    for (uint32_t i = 0; i < t->name_count; i++) {
        const struct trace_name *n = &t->names[i];
        struct running *o = find_tag(p, n->tag);
        const struct sequence *s = sequence_of(p, n->scope, n->tag);
        uint8_t outcome = outcome_of(n->state);
        if (o && is_active(o) && same_name(&o->name, n)) {
            o->verdict = n->state;
            continue;
        }
        bool past = s && s->next > n->seq;
        if (past || n->state == COMMIT || outcome == OPEN_END) continue;
        p->refuses |= n->state == USAGE;
        if (o && o->queued && o->name.scope == n->scope && n->state != CROSSED)
            o->verdict = n->state;
        else if (p->abort_count < 4 * CALLS)
            p->aborts[p->abort_count++] =
                (struct pending_verdict){.scope = n->scope,
                                         .tag = n->tag,
                                         .loss = p->loss_next + 1,
                                         .verdict = n->state,
                                         .fresh = true};
    }
}

/* The table of operations: from RUNNING, COMPLETE and QUEUED at INSTALL. */
static void ends(struct model *m, struct process *p, struct running *o,
                 uint32_t loss)
{
    bool whole = o->name.scope == 0;
    if (o->verdict == COMMIT && !o->queued && o->seen == COMPLETE) {
        call_ends(m, p, o, SUCCESS);
        return;
    }
    uint8_t verdict = o->verdict;
    bool crossed = verdict == CROSSED || o->queued;
    if (crossed && member_drops_crossed(p, o->name.tag)) verdict = CROSSED;
    uint8_t outcome = outcome_of(verdict);
    bool lost = whole ? loss > 0 : !lives(&o->scope, &p->next);
    if (outcome == OPEN_END && lost) {
        outcome = LOST_MEMBER;
        o->loss = whole ? loss : 0;
    }
    if (outcome == OPEN_END && !p->next_ring && p->next.count > 1)
        outcome = NOT_REACHED;
    if (outcome == OPEN_END) return;
    if (o->queued) {
        o->outcome = outcome;
        o->queued = false;
        o->over = true;
    } else {
        call_ends(m, p, o, outcome);
    }
}

static void takes_install(struct model *m, struct process *p,
                          const struct trace *t)
{
    if (!p->has_proposal || t->round != p->round || !p->said_ready) {
        REFUSE(m, "R5: INSTALL of no proposal that process %llu is ready for",
               (unsigned long long)p->id);
        return;
    }
    bool all = t->flag & (FOR_UPDATE | FOR_OPTIMIZE);
    uint32_t loss = 0;
    if (p->removed.count > 0 && !all && p->state == IN_VIEW &&
        p->loss_count < LOSSES) {
        loss = ++p->loss_next;
        p->losses[p->loss_count++] =
            (struct pending){loss, t->round, t->value, p->removed};
    }
    for (uint32_t i = 0; i < CALLS && !m->wrong; i++) {
        struct running *o = &p->ops[i];
        if (is_active(o) || (o->used && o->queued)) ends(m, p, o, loss);
    }
    for (uint32_t i = 0; i < p->abort_count; i++) { /* V4d: one error */
        struct pending_verdict *a = &p->aborts[i];
        if (a->fresh && a->verdict == CROSSED) a->any_scope = true;
        a->fresh = false;
        if (a->any_scope) (void)member_drops_crossed(p, a->tag);
    }
    member_refused(p);
    sync_installed(p, t);
    p->installs_due -= p->installs_due > 0;
    p->view = p->next;
    p->ring = p->next_ring;
    p->epoch = t->round;
    p->has_proposal = p->frozen = false;
    p->seq_count = 0;
    if (all || p->state == JOINING) member_notify_all(p);
    uint32_t kind = t->flag & FOR_OPTIMIZE ? OPTIMIZE : UPDATE;
    if (all && p->waits[kind]) {
        p->answered[kind] = true;
        p->answer[kind] = kind == UPDATE || p->ring;
        member_called(p, kind);
    }
    p->state = IN_VIEW;
    for (uint32_t i = 0; i < CALLS && !m->wrong; i++) {
        struct running *o = &p->ops[i];
        if (!o->used || o->outcome != OPEN_END) continue;
        o->queued = o->donated = false;
        if (o->name.scope == 0) o->scope = p->view;
        start(m, p, o);
    }
}

static void owes(struct process *p, uint8_t message, uint32_t round)
{
    if (p->mute) return;
    p->due = message;
    p->due_round = round;
}

void member_reads(struct model *m, struct process *p, const struct trace *t)
{
    if (p->due != MESSAGE_OTHER && !p->mute)
        REFUSE(m, "R8c: process %llu owes answer %u", (unsigned long long)p->id,
               p->due);
    if (p->state == GONE) return; /* rule R3h */
    switch ((enum trace_message)t->message) {
    case MESSAGE_WELCOME:
        p->id = t->number;
        p->term = t->digest;
        p->outlives = t->flag > 0;
        p->minimum = t->value;
        return;
    case MESSAGE_RESUMED:
        member_resumed(m, p, t);
        return;
    case MESSAGE_ANSWER:
        if (t->flag >= VOTES || !p->waits[t->flag]) return;
        p->answered[t->flag] = true;
        p->answer[t->flag] = (uint8_t)t->value;
        if (t->value != REFUSED) p->had[t->flag] = t->round;
        member_called(p, t->flag);
        if (t->value != REFUSED && t->flag != PENDING) member_notify_all(p);
        return;
    case MESSAGE_MOVES:
    case MESSAGE_SYNCED:
        sync_read(p, t);
        member_synced(p);
        return;
    case MESSAGE_FLUSH:
        p->frozen = true;
        p->has_proposal = false;
        p->round = t->round;
        owes(p, MESSAGE_FLUSHED, t->round);
        return;
    case MESSAGE_QUERY:
        p->asked_count = t->name_count < 2 * CALLS ? t->name_count : 2 * CALLS;
        if (p->asked_count > 0)
            memcpy(p->asked, t->names, p->asked_count * sizeof p->asked[0]);
        owes(p, MESSAGE_REPLY, t->round);
        return;
    case MESSAGE_DONATE:
        p->donates = t->names[0];
        owes(p, MESSAGE_RESULT, t->round);
        return;
    case MESSAGE_RESULT: {
        struct running *o = find_tag(p, t->names[0].tag);
        if (!o || !is_active(o) || !same_name(&o->name, &t->names[0])) return;
        if (t->round != p->round || o->seen != RUNNING) return;
        o->seen = COMPLETE;
        o->donated = true;
        return;
    }
    case MESSAGE_PROPOSE:
        takes_proposal(m, p, t);
        return;
    case MESSAGE_VERDICT:
        if (p->has_proposal && t->round == p->round) takes_verdicts(p, t);
        return;
    case MESSAGE_INSTALL:
        takes_install(m, p, t);
        return;
    case MESSAGE_EVICT:
        member_gone(p);
        return;
    case MESSAGE_COVERAGE:
        caller_reads(m, p, t);
        return;
    default:
        return;
    }
}

/* ----------------------------------------------------------- the program */

static void takes_answer(struct model *m, struct process *p,
                         const struct trace *t)
{
    if (t->flag >= VOTES || !p->answered[t->flag] ||
        p->answer[t->flag] != t->number)
        REFUSE(m, "V2: process %llu has no such answer",
               (unsigned long long)p->id);
    else
        p->waits[t->flag] = p->answered[t->flag] = false;
    if (p->state == IN_VIEW) check_notified(m, p, t);
}

void member_program(struct model *m, struct process *p, const struct trace *t)
{
    switch ((enum trace_kind)t->kind) {
    case TRACE_CUT:
        member_cut(p);
        return;
    case TRACE_LAUNCH:
        launch(m, p, t);
        return;
    case TRACE_RESULT:
        take(m, p, t);
        return;
    case TRACE_ANSWER:
        m->results++; /* a process alone may have no other call */
        takes_answer(m, p, t);
        return;
    case TRACE_TOLD:
        if (p->state == IN_VIEW) check_notified(m, p, t);
        return;
    case TRACE_VIEW:
        if (t->epoch != p->epoch || t->id_count != p->view.count ||
            memcmp(t->ids, p->view.of, t->id_count * sizeof t->ids[0]) != 0)
            REFUSE(m, "R5: process %llu has another view of epoch %u",
                   (unsigned long long)p->id, t->epoch);
        return;
    case TRACE_OVER:
        if (p->due != MESSAGE_OTHER && !p->mute && !t->flag)
            REFUSE(m, "R8c: an answer is missing");
        member_gone(p);
        return;
    default:
        REFUSE(m, "an event of kind %u", t->kind);
    }
}
