/* model_average.c - partial all-reduces, as their master has them: which round
 * a CALL is for, what is reported, and what must have been done at the end of
 * an event. Rules A1 to A3, A9, A11, A12. */
#include "model_average.h"

#include <string.h>

/* ------------------------------------------------------------ which round */

struct average *average_of(struct model *m, uint32_t group, uint64_t number)
{
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct average *a = &m->averages[i];
        if (a->group == group && a->number == number && number != 0) return a;
    }
    return NULL;
}

static void drop(struct model *m, uint32_t i)
{
    m->average_count--;
    memmove(&m->averages[i], &m->averages[i + 1],
            (m->average_count - i) * sizeof m->averages[0]);
}

static struct average *open_round(struct model *m, const struct process *p,
                                  const struct trace *t)
{
    if (m->average_count == AVERAGES) {
        REFUSE(m, "more partial all-reduces than the model has room for");
        return NULL;
    }
    struct average *a = &m->averages[m->average_count++];
    const struct group *g = group_of(m, p->group);
    *a = (struct average){.group = p->group,
                          .tag = t->names[0].tag,
                          .arguments = t->digest,
                          .elements = t->ids[0],
                          .opened = m->now,
                          .deadline = (int64_t)t->ids[1] * 1000000,
                          .gather = (int64_t)t->ids[2] * 1000000,
                          .patience = (uint32_t)t->ids[3]};
    if (a->gather == 0) a->gather = a->deadline / 4;
    for (uint32_t i = 0; i < g->view.count; i++) {
        const struct process *q = process_of(m, g->view.of[i]);
        if (q && q->standing == MEMBER && !q->leaving)
            a->ids[a->count++] = q->id;
    }
    return a;
}

static uint64_t *lapse_of(struct process *p, uint64_t tag)
{
    for (uint32_t i = 0; i < TAGS_KEPT; i++)
        if (p->lapsed[i] == tag) return &p->lapsed[i];
    return NULL;
}

/* Rule A2. */
static struct average *find_round(struct model *m, const struct process *p,
                                  uint64_t tag)
{
    struct average *open = NULL;
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct average *a = &m->averages[i];
        if (a->group != p->group || a->tag != tag) continue;
        uint32_t at = place_in(a, p->id);
        if (at < a->count && !has(a->called | a->out, at)) return a;
        if (!decided(a)) open = a;
    }
    return open;
}

/* Rule A1: a round all of whose callers are gone never was. The master may have
 * handled the loss and the next call before the model is told that it is done.
 */
static void drop_unattended(struct model *m)
{
    for (uint32_t i = 0; i < m->average_count;) {
        const struct average *a = &m->averages[i];
        if (!decided(a) && waiting(m, a) == 0)
            drop(m, i);
        else
            i++;
    }
}

/* Rule A9: no round that is there is for it any more, but that it may call for
 * the undecided one. */
static void miss(struct model *m, struct process *p, uint64_t tag)
{
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct average *a = &m->averages[i];
        uint32_t at = place_in(a, p->id);
        bool its = a->group == p->group && a->tag == tag && at < a->count;
        if (its) a->out |= 1ull << at;
    }
    p->owed_refusal = true;
    p->owed_tag = tag;
}

/* Rule A3. */
static void dispute(struct model *m, struct average *a, uint32_t at)
{
    a->owed |= 1ull << at;
    if (decided(a)) return;
    a->owed |= waiting(m, a);
    a->state = DISPUTED;
    a->decided_at = m->now;
}

static void takes_call(struct model *m, struct process *p,
                       const struct trace *t)
{
    uint64_t tag = t->names[0].tag;
    if (t->round <= p->calls_heard) return; /* A2: it has come already */
    p->calls_heard = t->round;
    uint64_t *lapse = lapse_of(p, tag);
    if (lapse) {
        *lapse = 0;
        miss(m, p, tag);
        return;
    }
    drop_unattended(m);
    struct average *a = find_round(m, p, tag);
    if (!a) a = open_round(m, p, t);
    if (!a) return;
    uint32_t at = place_in(a, p->id);
    if (at == a->count && a->count == PARTIES) {
        REFUSE(m, "more members than the model has room for");
        return;
    }
    if (at < a->count && has(a->failed, at)) { /* A12 */
        p->owed_refusal = true;
        p->owed_tag = tag;
        return;
    }
    if (at == a->count) a->ids[a->count++] = p->id; /* A1 */
    if (has(a->called, at)) {
        REFUSE(m, "A2: process %llu calls twice for one round",
               (unsigned long long)p->id);
        return;
    }
    a->called |= 1ull << at;
    a->called_at[at] = m->now;
    a->weights[at] = t->ids[4];
    if (a->state == DISPUTED || a->arguments != t->digest) dispute(m, a, at);
}

/* ---------------------------------------------------------- what is reported
 */

/* Rule A11. */
static void takes_folded(struct average *a, uint32_t at, const struct trace *t)
{
    if (a->state != MOVING || t->value >= a->slice_count) return;
    struct slice *s = &a->slices[t->value];
    uint64_t set = t->set_count == 1 ? t->sets[0] : 0;
    if (s->owner != at || s->folded || !has(set, at) || set & ~a->called)
        return;
    s->folded = true;
    s->set = set;
    s->hash = t->digest;
    s->holders |= 1ull << at;
    if (s->claims != 0 && s->claimed == s->hash) s->holders |= s->claims;
}

static void takes_holds(struct average *a, uint32_t at, const struct trace *t)
{
    for (uint32_t i = 0; i + 1 < t->id_count; i += 2) {
        if (t->ids[i] >= a->slice_count) return;
        struct slice *s = &a->slices[t->ids[i]];
        uint64_t hash = t->ids[i + 1];
        if (s->folded && s->hash == hash) s->holders |= 1ull << at;
        if (s->folded || decided(a)) continue;
        if (s->claims == 0) s->claimed = hash;
        if (s->claimed == hash) s->claims |= 1ull << at;
    }
    if (a->reports) a->reported |= 1ull << at;
}

void average_takes(struct model *m, struct process *p, const struct trace *t)
{
    p->heard = m->now;
    if (t->flag == SAYS_CALL) {
        takes_call(m, p, t);
        return;
    }
    struct average *a = average_of(m, p->group, t->number);
    uint32_t at = a ? place_in(a, p->id) : 0;
    if (t->flag == SAYS_FAILED) { /* A12 */
        if (a && at < a->count) a->failed |= a->called & 1ull << at;
        p->owed_release = true;
        return;
    }
    if (!a || at == a->count || !has(waiting(m, a), at)) return;
    if (t->flag == SAYS_FOLDED)
        takes_folded(a, at, t);
    else
        takes_holds(a, at, t);
}

/* ------------------------------------------------------ after each event */

/* Rules A6, A7: who is told that it is time. An owner that has folded, and one
 * that owns no part, needs no FOLD. */
static void check_orders(struct model *m, const struct average *a)
{
    int64_t age = m->now - a->opened;
    uint64_t wait = a->state == MOVING ? waiting(m, a) : 0;
    for (uint32_t i = 0; i < a->slice_count; i++) {
        uint32_t owner = a->slices[i].owner;
        if (age >= a->deadline / 8 * 4 && has(wait & ~a->folds, owner) &&
            !a->slices[i].folded)
            REFUSE(m, "A6: no FOLD in round %llu",
                   (unsigned long long)a->number);
    }
    for (uint32_t i = 0; i < a->count; i++)
        if (age >= a->deadline / 8 * 7 && has(wait & ~a->reports, i) &&
            a->called_at[i] - a->opened < a->deadline / 8 * 7)
            REFUSE(m, "A7: no REPORT in round %llu",
                   (unsigned long long)a->number);
}

/* Rules A8, A9: the round is decided. */
static void check_waiting(struct model *m, const struct average *a, uint32_t at)
{
    unsigned long long id = a->ids[at];
    int64_t since =
        a->called_at[at] > a->decided_at ? a->called_at[at] : a->decided_at;
    if (average_has_all(a, at))
        REFUSE(m, "A8: process %llu has all parts, and no END", id);
    else if (!has(a->fetches, at))
        REFUSE(m, "A8: process %llu lacks parts, and has no FETCH", id);
    else if (m->now - since >= a->deadline)
        REFUSE(m, "A9: process %llu is not refused after a deadline", id);
}

static void settle(struct model *m, struct average *a)
{
    uint64_t wait = waiting(m, a);
    if (a->owed & living(m, a))
        REFUSE(m, "A3: a caller is not told that members disagree");
    if (a->state == GATHERING && average_gathered(m, a))
        REFUSE(m, "A4: no PLAN of tag %llu", (unsigned long long)a->tag);
    if (a->state == MOVING) {
        if (average_due(m, a)) average_decides(m, a);
        check_orders(m, a);
    }
    uint64_t live = living(m, a);
    for (uint32_t i = 0; i < a->count && a->state == MOVING; i++)
        if (has(wait, i) &&
            (a->planned[i].called != a->called || a->planned[i].live != live))
            REFUSE(m, "A4: no PLAN that says who has called and is gone");
    if (a->state != SHARED) return;
    average_gives_up(m, a);
    for (uint32_t i = 0; i < a->count; i++)
        if (has(wait, i)) check_waiting(m, a, i);
}

/* Rule A9. False: the round is there no more. */
static bool keeps(struct model *m, struct average *a)
{
    uint64_t due = living(m, a) & ~a->ended & ~(a->out & ~a->called);
    if (!decided(a)) return waiting(m, a) != 0; /* A1 */
    if (a->last && due != 0)
        REFUSE(m, "A9: END releases a round that somebody is in");
    uint32_t count = average_later(m, a);
    if (due == 0) return count == 0;
    if (count < AVERAGES_KEPT) return true;
    if (due & a->called)
        REFUSE(m, "A9: a caller waits for parts that are not kept");
    for (uint32_t i = 0; i < a->count; i++) {
        struct process *p = process_of(m, a->ids[i]);
        if (!has(due, i) || lapse_of(p, a->tag)) continue;
        uint64_t *slot = lapse_of(p, 0);
        if (slot) *slot = a->tag;
    }
    return false;
}

void average_settled(struct model *m)
{
    for (uint32_t i = 0; i < m->average_count && !m->wrong;) {
        struct average *a = &m->averages[i];
        if (decided(a) || waiting(m, a) != 0) settle(m, a);
        i++;
    }
    for (uint32_t i = 0; i < m->average_count && !m->wrong;) {
        if (keeps(m, &m->averages[i]))
            i++;
        else
            drop(m, i);
    }
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p || p->standing != MEMBER || p->leaving) continue;
        if (p->owed_refusal)
            REFUSE(m, "A9, A12: process %llu is not refused",
                   (unsigned long long)p->id);
        if (p->owed_release)
            REFUSE(m, "A12: FAILED of process %llu is not answered",
                   (unsigned long long)p->id);
        if (p->absent)
            REFUSE(m, "A10: process %llu is absent, and stays",
                   (unsigned long long)p->id);
    }
}

/* Rule H8: the rounds are the dead master's. */
void average_dies(struct model *m)
{
    m->average_count = 0;
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p) continue;
        p->calls_heard = 0;
        p->owed_refusal = p->owed_release = p->absent = false;
        memset(p->lapsed, 0, sizeof p->lapsed);
        memset(p->absences, 0, sizeof p->absences);
    }
}
