/* model_owed.c - partial all-reduces at their master: what follows from the
 * facts of a round. An order is right if the master owes it, and at the end of
 * an event it owes nothing. Rules A1, A3, A4, A6 to A10, A12. */
#include "model_ledger.h"

#include <string.h>

enum { REFUSAL_DIFFERS, REFUSAL_LATE }; /* others: it lacks memory, or room */

typedef bool asks(struct model *m, const struct ledger *r, uint32_t i);

static uint64_t set_of(struct model *m, const struct ledger *r, asks *is)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < r->member_count; i++)
        set |= (uint64_t)is(m, r, i) << i;
    return set;
}

static bool has_called(struct model *m, const struct ledger *r, uint32_t i)
{
    (void)m;
    return r->members[i].called;
}

static uint32_t bits_of(uint64_t set)
{
    return (uint32_t)__builtin_popcountll(set);
}

/* Members that are not gone, and have the part. */
static uint64_t holders_of(struct model *m, const struct ledger *r,
                           uint32_t part)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < r->member_count; i++)
        set |= (uint64_t)(holds(r, part, i) && !is_gone(m, r, i)) << i;
    return set;
}

static bool has_all(const struct ledger *r, uint32_t i)
{
    bool all = true;
    for (uint32_t k = 0; k < r->portion_count; k++)
        all &= !r->portions[k].committed || holds(r, k, i);
    return all;
}

static uint64_t contributors_of(const struct ledger *r)
{
    uint64_t set = 0;
    for (uint32_t k = 0; k < r->portion_count; k++)
        if (r->portions[k].committed) set |= r->portions[k].contributors;
    return set;
}

/* ---------------------------------------------------------------- decision */

/* Rule A4: all that the round waits for have called, or time is over. */
static bool is_gathered(struct model *m, const struct ledger *r)
{
    bool all = true;
    for (uint32_t i = 0; i < r->member_count; i++)
        all &= r->members[i].called || r->members[i].missed || is_gone(m, r, i);
    return all || m->now - r->opened_at >= r->gather;
}

/* Rule A7. */
static bool is_due(struct model *m, const struct ledger *r)
{
    bool complete = true, answered = true;
    for (uint32_t i = 0; i < r->member_count; i++) {
        if (!waits(m, r, i)) continue;
        answered &= r->members[i].answered;
        for (uint32_t k = 0; k < r->portion_count; k++)
            complete &= is_gone(m, r, r->portions[k].owner) || holds(r, k, i);
    }
    return complete || answered || m->now - r->opened_at >= r->deadline;
}

/* Rule A10. */
static void count_absences(struct model *m, const struct ledger *r)
{
    uint64_t in = contributors_of(r);
    for (uint32_t i = 0; i < r->member_count && in != 0; i++) {
        struct process *p = process_of(m, r->members[i].id);
        if (!p || !is_here(m, r, i)) continue;
        struct habit *h = habit_of(m, p, r->tag);
        h->absences = has(in, i) ? 0 : h->absences + 1;
        p->absent |= r->patience > 0 && h->absences >= r->patience;
    }
}

static void decide(struct model *m, struct ledger *r)
{
    uint64_t wait = set_of(m, r, waits);
    r->decided = true;
    r->decided_at = m->now;
    for (uint32_t k = 0; k < r->portion_count; k++) {
        uint32_t have = bits_of(holders_of(m, r, k) & wait);
        r->portions[k].committed = have > 0 && 2 * have >= bits_of(wait);
    }
    count_absences(m, r);
}

/* Rule A8: who had ended with it is gone, too. */
static void give_up(struct model *m, struct ledger *r)
{
    for (uint32_t k = 0; k < r->portion_count; k++) {
        struct portion *s = &r->portions[k];
        if (!s->committed || holders_of(m, r, k) != 0) continue;
        s->committed = false;
        s->given_up = true;
        for (uint32_t i = 0; i < r->member_count; i++)
            if (r->members[i].end && !is_gone(m, r, i))
                REFUSE(m, "A8: process %llu has a part that is given up",
                       (unsigned long long)r->members[i].id);
    }
}

static void drop(struct model *m, uint32_t i)
{
    m->average_count--;
    memmove(&m->averages[i], &m->averages[i + 1],
            (m->average_count - i) * sizeof m->averages[0]);
}

/* All that is due of a tag, or of one of its rounds; tag 0: of all tags, in
 * their order, until that process is to be evicted. Rules A1, A7, A8. */
static void decide_due(struct model *m, const struct process *p, uint64_t tag,
                       uint64_t number)
{
    for (uint32_t i = 0; i < m->average_count;) {
        struct ledger *r = &m->averages[i];
        bool passed = p && (tag > 0 ? !is_of(r, p, tag) : p->absent);
        passed |= number > 0 && r->number != number;
        if (!passed && !r->decided && !anybody_waits(m, r)) {
            drop(m, i); /* it never was */
            continue;
        }
        if (!passed && r->cut && !r->decided && is_due(m, r)) decide(m, r);
        if (!passed && r->decided) give_up(m, r);
        i++;
    }
}

bool average_evicts(struct model *m, const struct process *p)
{
    decide_due(m, p, 0, 0);
    return p->absent;
}

/* --------------------------------------------------------- what it owes whom
 */

/* Rule A9. */
static bool is_outdated(const struct model *m, const struct ledger *r)
{
    uint32_t later = 0;
    const struct ledger *end = &m->averages[m->average_count];
    for (const struct ledger *x = r + 1; x < end; x++)
        later += x->group == r->group && x->tag == r->tag && x->decided;
    return later >= AVERAGES_KEPT;
}

/* Rule A9: all members have ended. */
static bool have_ended(struct model *m, const struct ledger *r)
{
    bool all = r->decided;
    for (uint32_t i = 0; i < r->member_count; i++) {
        const struct attendee *x = &r->members[i];
        bool out = x->end || x->refused || (x->missed && !x->called);
        all &= out || is_gone(m, r, i);
    }
    return all;
}

static bool is_over(struct model *m, const struct ledger *r)
{
    return have_ended(m, r) || (r->decided && is_outdated(m, r));
}

/* Before the decision; rules A4, A6, A7. FOLD and REPORT go to those that wait
 * when their time has come. */
static uint32_t owed_early(struct model *m, const struct ledger *r, uint32_t i)
{
    const struct attendee *x = &r->members[i];
    int64_t eighth = r->deadline / 8, age = m->now - r->opened_at;
    uint32_t owed = 0;
    bool news = x->saw_calls != set_of(m, r, has_called) ||
                x->saw_gone != set_of(m, r, is_gone);
    if (news && (r->cut || is_gathered(m, r))) owed |= OWED(ORDER_PLAN);
    if (!r->cut) return owed;
    if (age >= 4 * eighth && !r->folding && !x->fold) owed |= OWED(ORDER_FOLD);
    if (age >= 7 * eighth && !r->reporting && !x->report)
        owed |= OWED(ORDER_REPORT);
    return owed;
}

/* ... of those that it would have got before this event. */
static bool lacks_some(const struct ledger *r, uint32_t i)
{
    bool lacks = false;
    for (uint32_t k = 0; k < r->portion_count; k++)
        lacks |= r->portions[k].given_up && !holds(r, k, i);
    return lacks;
}

/* Bits, by order. */
static uint32_t owed_to(struct model *m, const struct ledger *r, uint32_t i)
{
    const struct attendee *x = &r->members[i];
    if (!waits(m, r, i)) {
        bool keeps = x->end && !x->released && !is_gone(m, r, i);
        return keeps && is_over(m, r) ? OWED(ORDER_RELEASE) : 0;
    }
    if (x->differs || x->late) return OWED(ORDER_REFUSE);
    if (!r->decided) return owed_early(m, r, i);
    int64_t since = x->called_at > r->decided_at ? x->called_at : r->decided_at;
    bool late = m->now - since >= r->deadline || is_outdated(m, r);
    /* Several are refused in one event, and what they have is given up. */
    if (has_all(r, i))
        return OWED(ORDER_END) |
               (late && lacks_some(r, i)) * OWED(ORDER_REFUSE);
    if (late) return OWED(ORDER_REFUSE);
    return x->fetch ? 0 : OWED(ORDER_FETCH);
}

static void check_debts(struct model *m, const struct ledger *r)
{
    static const char *const debts[] = {
        [ORDER_PLAN] = "A4: no PLAN that says who has called and is gone",
        [ORDER_FOLD] = "A6: no FOLD at half of the deadline",
        [ORDER_REPORT] = "A7: no REPORT at seven eighths",
        [ORDER_FETCH] = "A8: no FETCH to one that lacks parts",
        [ORDER_END] = "A8: no END to one that has all parts",
        [ORDER_RELEASE] = "A9: no RELEASE of what it keeps",
        [ORDER_REFUSE] = "A3, A9: no REFUSE",
    };
    for (uint32_t i = 0; i < r->member_count; i++) {
        uint32_t owed = owed_to(m, r, i);
        if (owed != 0)
            REFUSE(m, "%s: round %llu, process %llu",
                   debts[__builtin_ctz(owed)], (unsigned long long)r->number,
                   (unsigned long long)r->members[i].id);
    }
    if (r->last && !have_ended(m, r))
        REFUSE(m, "A9: END is a RELEASE, and somebody waits");
}

/* An earlier round of the tag counts those that are later (A9). */
static bool is_counted(const struct model *m, const struct ledger *r)
{
    for (const struct ledger *x = m->averages; x < r; x++)
        if (x->group == r->group && x->tag == r->tag) return true;
    return false;
}

/* Rule A9. False: the round is over. */
static bool goes_on(struct model *m, const struct ledger *r)
{
    if (have_ended(m, r)) return is_counted(m, r);
    if (!r->decided || !is_outdated(m, r)) return true;
    for (uint32_t i = 0; i < r->member_count; i++) {
        const struct attendee *x = &r->members[i];
        struct process *p = process_of(m, x->id);
        if (x->called || x->missed || is_gone(m, r, i) || !p) continue;
        habit_of(m, p, r->tag)->lapsed = true;
        ledger_lapses(m, p, r);
    }
    return false;
}

void average_settled(struct model *m)
{
    decide_due(m, NULL, 0, 0);
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct ledger *r = &m->averages[i];
        check_debts(m, r);
        for (uint32_t k = 0; k < r->member_count; k++) {
            r->folding |= r->members[k].fold;
            r->reporting |= r->members[k].report;
        }
        for (uint32_t k = 0; k < r->portion_count; k++)
            r->portions[k].given_up = false;
    }
    for (uint32_t i = 0; i < m->average_count && !m->wrong;) {
        if (goes_on(m, &m->averages[i]))
            i++;
        else
            drop(m, i);
    }
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        if (!p || p->standing != MEMBER || p->leaving) continue;
        const char *debt = p->owed_refusal   ? "A9, A12: no REFUSE"
                           : p->owed_release ? "A12: no answer to FAILED"
                           : p->absent       ? "A10: it is absent, and stays"
                                             : NULL;
        if (debt)
            REFUSE(m, "%s: process %llu", debt, (unsigned long long)p->id);
    }
}

/* --------------------------------------------------------------- the orders */

/* Rule A4. */
static void cut(struct model *m, struct ledger *r, const struct trace *t)
{
    uint64_t next = 0;
    uint32_t place = 0;
    for (uint32_t k = 0; k < t->part_count && k < PARTIES; k++) {
        const struct trace_part *x = &t->parts[k];
        if (x->owner < place || x->owner >= r->member_count ||
            !waits(m, r, x->owner))
            REFUSE(m, "A4: part %u has another owner", k);
        if (x->begin != next || x->count == 0)
            REFUSE(m, "A4: part %u begins elsewhere, or is empty", k);
        next += x->count;
        place = x->owner + 1;
        r->portions[k].begin = x->begin;
        r->portions[k].count = x->count;
        r->portions[k].owner = x->owner;
    }
    if (next != r->elements || t->part_count > PARTIES)
        REFUSE(m, "A4: the parts do not cover the vector");
    for (uint32_t k = 0; k < m->average_count; k++)
        if (m->averages[k].group == r->group && &m->averages[k] != r &&
            m->averages[k].number >= t->number && m->averages[k].tag == r->tag)
            REFUSE(m, "A1: rounds are not counted");
    r->portion_count = t->part_count;
    r->number = t->number;
    r->cut = true;
}

static void check_parts(struct model *m, const struct ledger *r,
                        const struct trace *t)
{
    bool same = t->part_count == r->portion_count;
    for (uint32_t k = 0; same && k < r->portion_count; k++)
        same = t->parts[k].begin == r->portions[k].begin &&
               t->parts[k].count == r->portions[k].count &&
               t->parts[k].owner == r->portions[k].owner;
    if (!same) REFUSE(m, "A4: the parts of a round change");
}

static void says_plan(struct model *m, struct ledger *r, uint32_t at,
                      const struct trace *t)
{
    if (!r->cut) cut(m, r, t);
    check_parts(m, r, t);
    uint64_t gone = set_of(m, r, is_gone);
    bool same = t->id_count == 2 * r->member_count && t->size == at;
    for (uint32_t i = 0; same && i < r->member_count; i++) {
        const struct attendee *x = &r->members[i];
        same = t->ids[2 * i] == x->id &&
               t->ids[2 * i + 1] == (x->called ? x->weight : 0);
    }
    if (!same) REFUSE(m, "A1, A4: PLAN of other members, or callers");
    if (t->set_count != 1 || t->sets[0] != gone)
        REFUSE(m, "A4: PLAN says that others are gone");
    r->members[at].saw_calls = set_of(m, r, has_called);
    r->members[at].saw_gone = gone;
}

static void says_fetch(struct model *m, struct ledger *r, uint32_t at,
                       const struct trace *t)
{
    r->members[at].fetch = true;
    check_parts(m, r, t);
    for (uint32_t k = 0; k < r->portion_count && !m->wrong; k++) {
        const struct portion *s = &r->portions[k];
        const struct trace_part *x = &t->parts[k];
        bool same = t->set_count == r->portion_count &&
                    (x->contributors > 0) == s->committed &&
                    (!s->committed ||
                     (x->hash == s->hash && t->sets[k] == holders_of(m, r, k)));
        if (!same) REFUSE(m, "A8: FETCH is wrong about part %u", k);
    }
}

/* Summed in the order of A1. */
static double weight_of(const struct ledger *r, uint64_t set)
{
    double sum = 0, weight;
    for (uint32_t i = 0; i < r->member_count; i++) {
        memcpy(&weight, &r->members[i].weight, sizeof weight);
        if (has(set, i)) sum += weight;
    }
    return sum;
}

static void says_end(struct model *m, struct ledger *r, uint32_t at,
                     const struct trace *t)
{
    check_parts(m, r, t);
    for (uint32_t k = 0; k < r->portion_count && !m->wrong; k++) {
        const struct portion *s = &r->portions[k];
        uint64_t set = s->committed ? s->contributors : 0;
        if (t->set_count != r->portion_count || t->sets[k] != set ||
            t->parts[k].contributors != bits_of(set) ||
            t->parts[k].weight != weight_of(r, set))
            REFUSE(m, "A7: END has other contributors to part %u", k);
    }
    if ((t->value & 1) != has(contributors_of(r), at))
        REFUSE(m, "A7: END is wrong on who has contributed");
    r->members[at].end = r->members[at].has = true;
    r->members[at].released = t->value & 2;
    r->last |= r->members[at].released;
}

/* Its number is that of a round, or the first one that a round gets. */
static struct ledger *ordered(struct model *m, const struct process *p,
                              const struct trace *t)
{
    struct ledger *r = ledger_of(m, p, t->number);
    if (r || t->flag != ORDER_PLAN || t->number == 0) return r;
    for (uint32_t i = 0; i < m->average_count; i++) {
        r = &m->averages[i];
        if (is_of(r, p, t->names[0].tag) && !r->decided && !r->cut) return r;
    }
    return NULL;
}

/* REFUSE names a tag, and no round. */
static struct ledger *refused(struct model *m, const struct process *p,
                              const struct trace *t)
{
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct ledger *r = &m->averages[i];
        uint32_t at = seat_of(r, p->id);
        if (!is_of(r, p, t->names[0].tag) || at == r->member_count ||
            !waits(m, r, at))
            continue;
        bool owed = owed_to(m, r, at) & OWED(ORDER_REFUSE);
        uint32_t why = r->members[at].differs ? REFUSAL_DIFFERS : REFUSAL_LATE;
        if (t->value > REFUSAL_LATE || (owed && t->value == why)) return r;
    }
    return NULL;
}

/* What it need not say: FETCH, when that has changed; RELEASE to one that was
 * refused and has dropped what it had. */
static bool may_come(struct model *m, const struct ledger *r, uint32_t i,
                     uint32_t order)
{
    const struct attendee *x = &r->members[i];
    if (order == ORDER_FETCH)
        return x->fetch && r->decided && waits(m, r, i) && !has_all(r, i);
    return order == ORDER_RELEASE && x->refused && !x->released &&
           !r->disputed && is_over(m, r);
}

/* The round of which this order may go out to it, or NULL. */
static struct ledger *allowed(struct model *m, const struct process *p,
                              const struct trace *t)
{
    if (t->flag == ORDER_REFUSE) return refused(m, p, t);
    struct ledger *r = ordered(m, p, t);
    uint32_t at = r ? seat_of(r, p->id) : 0;
    if (!r || at == r->member_count) return NULL;
    bool owed = owed_to(m, r, at) & OWED(t->flag);
    return owed || may_come(m, r, at, t->flag) ? r : NULL;
}

/* What answers a message, and is of no round. */
static bool answers(struct process *p, const struct trace *t)
{
    bool refusal = t->flag == ORDER_REFUSE && t->value >= REFUSAL_LATE &&
                   p->owed_refusal && p->owed_tag == t->names[0].tag;
    bool release = t->flag == ORDER_RELEASE && p->owed_release;
    p->owed_refusal &= !refusal;
    p->owed_release &= !release;
    return refusal || release;
}

void average_gives(struct model *m, struct process *p, const struct trace *t)
{
    uint64_t tag = t->names[0].tag;
    if (answers(p, t)) return;
    /* An order owed before a decision in this event may still go out. */
    if (t->number > 0 && t->flag > ORDER_REPORT)
        decide_due(m, p, tag, t->number);
    struct ledger *r = allowed(m, p, t);
    if (!r && t->flag > ORDER_REPORT) {
        decide_due(m, p, tag, 0);
        r = allowed(m, p, t);
    }
    if (!r) {
        REFUSE(m, "A3, A4, A6 to A9: order %u of round %llu to process %llu",
               t->flag, (unsigned long long)t->number,
               (unsigned long long)p->id);
        return;
    }
    uint32_t at = seat_of(r, p->id);
    struct attendee *x = &r->members[at];
    if (t->flag == ORDER_PLAN) says_plan(m, r, at, t);
    if (t->flag == ORDER_FETCH) says_fetch(m, r, at, t);
    if (t->flag == ORDER_END) says_end(m, r, at, t);
    x->fold |= t->flag == ORDER_FOLD;
    x->report |= t->flag == ORDER_REPORT;
    x->released |= t->flag == ORDER_RELEASE;
    x->refused |= t->flag == ORDER_REFUSE;
    if (t->flag == ORDER_REFUSE && t->value <= REFUSAL_LATE && !r->disputed &&
        !x->late)
        ledger_missed(m, p, tag);
    if (t->flag <= ORDER_END) data_enrolled(m, r);
}
