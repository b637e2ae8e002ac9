/* model_master.c - who is a member, the votes, and what the master must have
 * done when it has handled an event. Rules M1 to M8, V1 to V5, R2 to R4, R8. */
#include "model_state.h"

#include <string.h>

/* All live members that do not leave wait in it, or have been answered just
 * now; of one group, or of all (NULL). */
bool all_voted(const struct model *m, const struct group *g,
               enum trace_vote kind)
{
    uint32_t members = 0;
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (!p || p->standing != MEMBER || p->leaving) continue;
        if (g && p->group != g->number) continue;
        members++;
        if (!p->voted[kind] && !p->answers[kind]) return false;
    }
    return members > 0;
}

static uint32_t count_of(const struct model *m, enum standing standing)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->process_end; i++)
        count += m->processes[i] && m->processes[i]->standing == standing;
    return count;
}

static void force(struct group *g, const struct process *p,
                  const struct trace_name *name, uint8_t verdict)
{
    if (g->forced_count == CALLS) return;
    g->forced[g->forced_count].name = *name;
    g->forced[g->forced_count].name.state = verdict;
    g->forced[g->forced_count++].ranks = 1u << find_id(&g->view, p->id);
}

/* Rules R1, D10. While all are in an optimization the epoch is closed. */
static void complaint(struct model *m, struct group *g, const struct process *p,
                      const struct trace *t)
{
    static const uint8_t verdicts[] = {ABORT, INVALID, UNREACHABLE, FAILED};
    if (g->phase != OPEN || t->epoch != g->epoch || all_voted(m, g, OPTIMIZE))
        return;
    if (t->message == MESSAGE_REFRESH && t->flag <= FAIL &&
        verdicts[t->flag] != ABORT)
        force(g, p, &t->names[0], verdicts[t->flag]);
    g->cause = true;
    g->pairs |= t->message == MESSAGE_SUSPECT; /* R4e */
}

static void vote(struct model *m, struct process *p, const struct trace *t)
{
    uint32_t kind = t->flag;
    if (kind != PENDING && t->epoch < p->ended) return; /* F6 */
    if (kind >= VOTES || p->voted[kind])
        REFUSE(m, "V1: process %llu votes twice", (unsigned long long)p->id);
    else
        p->voted[kind] = true;
    p->in_sync = p->undecided = false; /* one that it gave up (S6b) */
}

void master_takes(struct model *m, struct process *p, const struct trace *t)
{
    p->heard = m->now;
    if (t->message == MESSAGE_RESUME) {
        heirs_ask(m, p, t);
        return;
    }
    if (t->message == MESSAGE_OTHER || t->message == MESSAGE_MEASURED) return;
    if (t->message == MESSAGE_HELLO) {
        if (p->standing != NOBODY) REFUSE(m, "M1: HELLO twice");
        p->standing = STRANGER;
        p->group = t->flag;
        p->hint = (int32_t)t->value;
        p->joins = t->joins;
        return;
    }
    bool known = p->standing == MEMBER ||
                 (p->standing == REGISTERED &&
                  (t->message == MESSAGE_READY || t->message == MESSAGE_LEAVE));
    if (!known) {
        REFUSE(m, "message %u of a process that is no member", t->message);
        return;
    }
    struct group *g = group_of(m, p->group);
    switch ((enum trace_message)t->message) {
    case MESSAGE_VOTE:
        vote(m, p, t);
        return;
    case MESSAGE_SUSPECT:
    case MESSAGE_REFRESH:
        complaint(m, g, p, t);
        return;
    case MESSAGE_BLOCKED:
        round_blocked(g, p, t);
        return;
    case MESSAGE_FLUSHED:
        round_lists(m, g, p, t);
        return;
    case MESSAGE_REPLY:
        round_replies(m, g, p, t);
        return;
    case MESSAGE_RESULT:
        round_receives(g, p, t);
        return;
    case MESSAGE_READY:
        if (g->phase != PROPOSED || t->round != g->round || p->ready) return;
        p->ready = true;
        for (uint32_t i = 0; i < t->id_count; i++)
            g->unlinked |= find_id(&g->next, t->ids[i]) < g->next.count;
        g->pairs |= g->unlinked;
        g->cause |= g->unlinked && all_ready(m, g);
        return;
    case MESSAGE_LEAVE:
        g->cause |= p->standing == MEMBER && !p->leaving && g->phase == OPEN;
        p->leaving = true;
        return;
    case MESSAGE_SYNC:
        sync_asked(m, p, t);
        return;
    case MESSAGE_HAS:
        sync_has(m, p, t);
        return;
    default:
        REFUSE(m, "message %u to the master", t->message);
    }
}

/* ------------------------------------------------------------ what it sends */

/* Rules V2 to V5. */
static void answer(struct model *m, const struct group *g, struct process *p,
                   const struct trace *t)
{
    uint32_t kind = t->flag;
    if (kind >= VOTES || !p->voted[kind] || p->standing != MEMBER) {
        REFUSE(m, "V2: an answer to no vote");
        return;
    }
    bool all = all_voted(m, kind == OPTIMIZE ? g : NULL, (enum trace_vote)kind);
    uint32_t right =
        kind != PENDING || count_of(m, REGISTERED) > 0 || too_few(m);
    if (kind == UPDATE && t->value != REFUSED && too_few(m))
        REFUSE(m, "M14: an update of too few is answered");
    p->voted[kind] = false;
    p->answers[kind] = all || t->value == REFUSED;
    if (t->value != REFUSED) {
        if (heirs_answered(m, p, t)) return;
        if (!all) REFUSE(m, "V2: an answer before all have voted");
        if (t->value != right)
            REFUSE(m, "V3: the answer is %u, not %u", t->value, right);
        if (kind == UPDATE && count_of(m, REGISTERED) > 0)
            REFUSE(m, "M3: an update that admits nobody");
        return;
    }
    bool alone = kind == OPTIMIZE; /* judged for the group: V5, S9 */
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *q = m->processes[i];
        alone |= is_live(q, g) && (q->in_sync || q->synced);
    }
    bool lacks = false;  /* V4b */
    bool crossed = true; /* V5 */
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *q = m->processes[i];
        if (!q || q->standing != MEMBER) continue;
        lacks |= q->lacks;
        if (q->leaving || (alone && q->group != p->group)) continue;
        bool waits = q->in_sync || q->synced;
        for (uint32_t k = 0; k < VOTES; k++)
            waits |= q->voted[k] || q->answers[k];
        crossed &= waits;
    }
    if (!(kind == PENDING && lacks) && (!crossed || all))
        REFUSE(m, "V4b, V5: a vote is refused without a reason");
    for (uint32_t i = 0; i < GROUPS && kind != PENDING; i++) {
        const struct group *other = &m->groups[i];
        bool judged = other->used && (other == g || !alone);
        if (judged && other->phase != OPEN)
            REFUSE(m, "V5: a vote is refused amid a round");
    }
}

/* Rule M5. */
static bool stands_before(const struct process *a, const struct process *b)
{
    uint32_t hint_a = a->joins ? UINT32_MAX : (uint32_t)a->hint;
    uint32_t hint_b = b->joins ? UINT32_MAX : (uint32_t)b->hint;
    if (hint_a != hint_b) return hint_a < hint_b;
    return a->id < b->id;
}

/* Rules M2, M3, M5: survivors in their order, then newcomers. */
static void next_view(struct model *m, struct group *g, bool update,
                      struct ids *kept, struct ids *added)
{
    struct process *in[WORLD];
    uint32_t count = 0;
    kept->count = 0;
    for (uint32_t i = 0; i < g->view.count; i++) {
        struct process *p = process_of(m, g->view.of[i]);
        if (is_live(p, g) && !p->leaving) kept->of[kept->count++] = p->id;
    }
    for (uint32_t i = 0; update && i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p || p->standing != REGISTERED || p->group != g->number) continue;
        if (m->founded ? p->id > g->admitted : p->joins) continue;
        if (count == WORLD) break;
        uint32_t at = count++;
        for (; at > 0 && stands_before(p, in[at - 1]); at--)
            in[at] = in[at - 1];
        in[at] = p;
    }
    added->count = 0;
    for (uint32_t i = 0; i < count; i++) added->of[added->count++] = in[i]->id;
}

static bool equals(const struct ids *a, const uint64_t *of, uint32_t count,
                   bool ordered)
{
    bool same = a->count == count;
    for (uint32_t i = 0; same && i < count; i++)
        same = ordered ? a->of[i] == of[i] : find_id(a, of[i]) < a->count;
    return same;
}

/* An update of all groups begins; who registers later waits (M3a). */
static void admit(struct model *m)
{
    for (uint32_t i = 0; i < GROUPS; i++) {
        struct group *g = &m->groups[i];
        if (g->admits) continue;
        g->admits = true;
        g->admitted = m->id_last;
        g->update_at = m->now;
    }
}

/* Rule M2: nobody is left. */
static void no_view(struct model *m, struct group *g)
{
    heirs_forget(m, g);
    g->view.count = g->epoch = 0;
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (p && p->group == g->number && p->standing == DEAD)
            p->standing = OUT;
    }
    g->pairs = g->admits = g->late = false;
    g->op_count = g->forced_count = 0;
}

/* No member stays. */
static bool nobody_else(const struct model *m)
{
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (p && p->standing == MEMBER && !p->leaving) return false;
    }
    return true;
}

static void first_proposal(struct model *m, struct group *g,
                           const struct trace *t)
{
    struct ids kept, added;
    bool update = t->flag & FOR_UPDATE;
    if (t->round != g->round) round_begins(m, g, t);
    if (!round_complete(m, g))
        REFUSE(m, "R2: PROPOSE while the round is in phase %d", (int)g->phase);
    next_view(m, g, update && g->admits && !g->late, &kept, &added);
    if (kept.count + added.count == 0) no_view(m, g);
    if (update && !g->admits && !nobody_else(m) && too_few(m))
        REFUSE(m, "M14: an update of too few begins");
    if (update && !g->admits) admit(m);
    if (update && !nobody_else(m) && !all_voted(m, NULL, UPDATE))
        REFUSE(m, "M3: an update that not all have voted for");
    if (t->flag & FOR_OPTIMIZE && !all_voted(m, g, OPTIMIZE))
        REFUSE(m, "O2: an optimization that not all have voted for");
    next_view(m, g, update && !g->late, &kept, &added);
    if (m->perhaps && !equals(&added, t->added, t->added_count, true)) {
        m->founded = false;
        next_view(m, g, update && !g->late, &kept, &added);
    }
    m->perhaps = false;
    g->next = kept;
    for (uint32_t i = 0; i < added.count && g->next.count < WORLD; i++)
        g->next.of[g->next.count++] = added.of[i];
    for (uint32_t i = 0; i < g->next.count; i++)
        process_of(m, g->next.of[i])->proposed = true;
    for (uint32_t i = 0; i < m->process_end; i++)
        if (m->processes[i] && m->processes[i]->group == g->number)
            m->processes[i]->sent = false;
    g->phase = PROPOSED;
    g->flags = t->flag;
}

static void propose(struct model *m, struct group *g, struct process *p,
                    const struct trace *t)
{
    if (g->phase != PROPOSED || t->round != g->round) first_proposal(m, g, t);
    struct ids removed = {0};
    for (uint32_t i = 0; i < g->view.count; i++)
        if (find_id(&g->next, g->view.of[i]) == g->next.count)
            removed.of[removed.count++] = g->view.of[i];
    bool member = p->standing == MEMBER;
    uint32_t kept = member ? g->view.count - removed.count : 0;
    struct ids added = {0};
    for (uint32_t i = kept; i < g->next.count; i++)
        added.of[added.count++] = g->next.of[i];
    if (!p->proposed || p->sent || t->flag != g->flags ||
        t->epoch != (member ? g->epoch : 0))
        REFUSE(m, "R2: PROPOSE to a peer that is not in it, or twice");
    if (member && !equals(&removed, t->ids, t->id_count, false))
        REFUSE(m, "M6: round %u does not remove whom it has to", g->round);
    if (!equals(&added, t->added, t->added_count, true))
        REFUSE(m, "M2, M3, M5: round %u does not add whom it has to", g->round);
    p->sent = true;
    p->asked_at = m->now;
}

static void flush(struct model *m, struct group *g, struct process *p,
                  const struct trace *t)
{
    if (t->round != g->round) round_begins(m, g, t);
    struct ids dead = {0};
    for (uint32_t i = 0; i < g->view.count; i++) {
        const struct process *q = process_of(m, g->view.of[i]);
        if (q && q->standing == DEAD) dead.of[dead.count++] = q->id;
    }
    if (g->phase != FLUSHING || p->sent || !is_live(p, g) ||
        t->epoch != g->epoch || !equals(&dead, t->ids, t->id_count, false))
        REFUSE(m, "F1: FLUSH of round %u", t->round);
    p->sent = true;
    p->asked_at = m->now;
}

void master_gives(struct model *m, struct process *p, const struct trace *t)
{
    bool stranger =
        (p->standing == NOBODY || p->asks) && t->message == MESSAGE_EVICT;
    if (t->message == MESSAGE_RESUMED) {
        heirs_resumed(m, p, t);
        return;
    }
    if (p->inherits) {
        heirs_letter(m, p, t);
        return;
    }
    if (t->message != MESSAGE_WELCOME && t->message != MESSAGE_EVICT)
        heirs_take_over(m);
    if (!stranger &&
        (p->standing == OUT || p->standing == NOBODY || p->standing == DEAD)) {
        REFUSE(m, "message %u to a process that is out", t->message);
        return;
    }
    struct group *g = group_of(m, p->group);
    switch ((enum trace_message)t->message) {
    case MESSAGE_WELCOME:
        if (p->standing != STRANGER || t->number <= m->id_last)
            REFUSE(m, "M1: an id that is not new");
        heirs_term(m, t->digest);
        m->grace = (int64_t)t->flag * 1000000;
        m->minimum = t->value;
        p->id = m->id_last = t->number;
        p->standing = REGISTERED;
        return;
    case MESSAGE_ANSWER:
        answer(m, g, p, t);
        return;
    case MESSAGE_FLUSH:
        flush(m, g, p, t);
        return;
    case MESSAGE_QUERY:
        p->asked_at = m->now;
        round_asks(m, g, p, t);
        return;
    case MESSAGE_DONATE:
        p->asked_at = m->now;
        round_donates(m, g, p, t);
        return;
    case MESSAGE_RESULT:
        round_relays(m, g, p, t);
        return;
    case MESSAGE_PROPOSE:
        propose(m, g, p, t);
        return;
    case MESSAGE_VERDICT:
        if (!may_install(m, g) || !p->proposed)
            REFUSE(m, "F6: a verdict before all are ready");
        round_judges(m, g, p, t);
        return;
    case MESSAGE_INSTALL:
        round_installs(m, g, p, t);
        return;
    case MESSAGE_MOVES:
    case MESSAGE_SYNCED:
        sync_given(m, p, t);
        return;
    case MESSAGE_EVICT:
        p->evicted = true;
        heirs_left(m, p);
        return;
    default:
        REFUSE(m, "message %u of the master", t->message);
    }
}

/* --------------------------------------------------------------- departures */

/* Rule M6. */
void master_loses(struct model *m, struct process *p)
{
    struct group *g = group_of(m, p->group);
    bool member = p->standing == MEMBER;
    if (p->asks || p->standing == HEIR) { /* it may come again */
        p->asks = false;
        return;
    }
    p->inherits = false;
    bool decided = g->decided && p->proposed; /* J5 */
    bool out = p->standing == DEAD || p->standing == OUT;
    if (out && p->resuming) return; /* of RESUME, which has not come */
    if (out) REFUSE(m, "M6: a connection ends twice");
    if (!decided && member && p->leaving &&
        find_id(&g->view, p->id) == g->view.count)
        p->standing = OUT;
    else
        p->standing = member || decided ? DEAD : OUT;
    if (p->standing == DEAD || p->proposed) g->cause = true;
    p->proposed = decided;
}

/* ---------------------------------------------------------------- settled */

static void settle_group(struct model *m, struct group *g)
{
    uint32_t live = 0, staying = 0;
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (!p || p->group != g->number) continue;
        bool owed = g->phase == FLUSHING ? is_live(p, g) : p->proposed;
        bool sends = g->phase == FLUSHING || g->phase == PROPOSED;
        if (sends && owed && !p->sent)
            REFUSE(m, "R2: round %u leaves out process %llu", g->round,
                   (unsigned long long)p->id);
        live += is_live(p, g);
        staying += is_live(p, g) && !p->leaving;
    }
    if (!m->no_disk) round_deserted(m, g);
    if (live == 0 && g->cause && !g->decided) {
        no_view(m, g);
        g->cause = false;
        g->phase = OPEN;
        return;
    }
    if (g->cause && !g->decided && flush_needed(m, g))
        REFUSE(m, "R1: the epoch is not closed");
    if (g->phase == OPEN || m->wrong) return;
    bool complete = round_complete(m, g);
    if (complete && staying > 0 && !all_voted(m, g, OPTIMIZE) &&
        flush_needed(m, g))
        REFUSE(m, "R2: nothing is missing, and no view is proposed");
    bool all = g->phase == PROPOSED && all_ready(m, g);
    bool flushes = g->unlinked && flush_needed(m, g); /* else: a search */
    bool waits = m->no_disk && !flushes;
    if (all && !waits && (flushes || may_install(m, g)))
        REFUSE(m, "R5: all are ready, and the view is not installed");
    if (m->no_disk) round_decided(m, g);
}

/* Everything that depends on more than one peer is decided at once. */
void master_settled(struct model *m)
{
    if (heirs_settled(m)) return;
    sync_settled(m);
    for (uint32_t i = 0; i < GROUPS && !m->wrong; i++)
        if (m->groups[i].used) settle_group(m, &m->groups[i]);
    /* A group without anybody has its update behind it at once. */
    for (uint32_t i = 0; i < GROUPS; i++)
        if (is_empty(m, &m->groups[i])) m->groups[i].admits = false;
    bool pending = all_voted(m, NULL, PENDING);
    bool given[VOTES] = {false};
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        for (int k = 0; p && k < VOTES; k++) given[k] |= p->answers[k];
    }
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p) continue;
        if (p->standing == STRANGER) REFUSE(m, "M1: HELLO without WELCOME");
        bool left = p->standing == MEMBER && p->voted[PENDING];
        if (left && (pending || given[PENDING]))
            REFUSE(m, "V2: process %llu is not answered",
                   (unsigned long long)p->id);
        left = p->standing == MEMBER && p->voted[UPDATE];
        if (left && given[UPDATE] && all_voted(m, NULL, UPDATE))
            REFUSE(m, "V2: one of all is not answered");
        memset(p->answers, 0, sizeof p->answers);
        p->synced = false;
    }
    m->installs = m->unsettled = false;
    bool open = all_voted(m, NULL, UPDATE) && !too_few(m);
    for (uint32_t i = 0; i < GROUPS; i++)
        open &= !m->groups[i].used || m->groups[i].phase == OPEN;
    if (open) admit(m);
}
