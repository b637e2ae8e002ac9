/* model_ledger.c - partial all-reduces at their master: which round a CALL is
 * for, and which reports count. Rules A1 to A3, A9, A11, A12.
 *
 * Written from the text of section A. A round is a list of facts, each noted
 * when the master hears it or says it; what follows from them is asked for in
 * model_owed.c. */
#include "model_ledger.h"

#include <string.h>

struct ledger *ledger_of(struct model *m, const struct process *p,
                         uint64_t number)
{
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct ledger *r = &m->averages[i];
        if (r->group == p->group && r->number == number && number > 0) return r;
    }
    return NULL;
}

struct habit *habit_of(struct model *m, struct process *p, uint64_t tag)
{
    for (uint32_t i = 0; i < TAGS_KEPT; i++) {
        struct habit *h = &p->habits[i];
        if (h->tag == 0) h->tag = tag;
        if (h->tag == tag) return h;
    }
    REFUSE(m, "more tags than the model has room for");
    return &p->habits[0];
}

bool anybody_waits(struct model *m, const struct ledger *r)
{
    for (uint32_t i = 0; i < r->member_count; i++)
        if (waits(m, r, i)) return true;
    return false;
}

/* ------------------------------------------------------------ which round */

/* Rule A1: in the order of their ranks. */
static struct ledger *open_round(struct model *m, const struct process *p,
                                 const struct trace *t)
{
    if (m->average_count == AVERAGES) {
        REFUSE(m, "more partial all-reduces than the model has room for");
        return NULL;
    }
    struct ledger *r = &m->averages[m->average_count++];
    memset(r, 0, sizeof *r);
    r->group = p->group;
    r->tag = t->names[0].tag;
    r->arguments = t->digest;
    r->elements = t->ids[0];
    r->opened_at = m->now;
    r->deadline = (int64_t)t->ids[1] * 1000000;
    r->gather = t->ids[2] > 0 ? (int64_t)t->ids[2] * 1000000 : r->deadline / 4;
    r->patience = (uint32_t)t->ids[3];
    const struct ids *view = &group_of(m, p->group)->view;
    for (uint32_t i = 0; i < view->count; i++) {
        r->members[r->member_count].id = view->of[i];
        if (is_here(m, r, r->member_count)) r->member_count++;
    }
    memset(&r->members[r->member_count], 0, sizeof r->members[0]);
    return r;
}

/* Rule A2. */
static struct ledger *round_for(struct model *m, const struct process *p,
                                const struct trace *t)
{
    struct ledger *undecided = NULL;
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct ledger *r = &m->averages[i];
        if (!is_of(r, p, t->names[0].tag)) continue;
        if (!r->decided && !anybody_waits(m, r)) continue; /* A1: never was */
        const struct attendee *x = &r->members[seat_of(r, p->id)];
        bool in = seat_of(r, p->id) < r->member_count;
        if (in && !x->missed && !x->called) return r;
        if (!r->decided) undecided = r;
    }
    return undecided ? undecided : open_round(m, p, t);
}

/* Rule A13: no round that there is is for it any more, but the undecided one
 * while it is that. */
void ledger_missed(struct model *m, const struct process *p, uint64_t tag)
{
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct ledger *r = &m->averages[i];
        uint32_t at = seat_of(r, p->id);
        if (is_of(r, p, tag) && at < r->member_count)
            r->members[at].missed = true;
        if (is_of(r, p, tag)) r->members[at].lapsed = false;
    }
}

/* Rule A9: of those that are later. */
void ledger_lapses(struct model *m, const struct process *p,
                   const struct ledger *r)
{
    for (struct ledger *l = m->averages; l < &m->averages[m->average_count];
         l++) {
        uint32_t at = seat_of(l, p->id);
        if (l > r && is_of(l, p, r->tag) && at < l->member_count)
            l->members[at].lapsed = true;
    }
}

/* Rule A3. */
static void differs(struct model *m, struct ledger *r, struct attendee *x)
{
    x->differs = true;
    if (r->decided) return;
    for (uint32_t i = 0; i < r->member_count; i++)
        if (waits(m, r, i)) r->members[i].differs = true;
    r->decided = r->disputed = true;
    r->decided_at = m->now;
}

static void calls(struct model *m, struct process *p, const struct trace *t)
{
    if (t->round <= p->calls_heard) return; /* A2: it has come already */
    p->calls_heard = t->round;
    struct habit *habit = habit_of(m, p, t->names[0].tag);
    if (habit->lapsed) {
        habit->lapsed = false;
        ledger_missed(m, p, habit->tag);
        p->owed_refusal = true;
        p->owed_tag = habit->tag;
        return;
    }
    struct ledger *r = round_for(m, p, t);
    if (!r) return;
    uint32_t at = seat_of(r, p->id);
    if (at == PARTIES) {
        REFUSE(m, "more members than the model has room for");
        return;
    }
    struct attendee *x = &r->members[at];
    if (at == r->member_count) { /* A1: those stand at the end */
        *x = (struct attendee){.id = p->id};
        r->member_count++;
    }
    if (x->failed) { /* A12 */
        p->owed_refusal = true;
        p->owed_tag = r->tag;
        return;
    }
    if (x->called)
        REFUSE(m, "A2: process %llu calls twice for a round",
               (unsigned long long)p->id);
    x->called = true;
    x->called_at = m->now;
    x->untaken = p->undecided; /* A14 */
    x->weight = t->ids[4];
    if (r->disputed || r->arguments != t->digest) differs(m, r, x);
}

/* ---------------------------------------------------------- what is reported
 */

/* Rule A11: from the owner, once, before the decision, of those that have
 * called. */
static void folded(struct ledger *r, uint32_t at, const struct trace *t)
{
    if (t->value >= r->portion_count || t->set_count != 1) return;
    struct portion *s = &r->portions[t->value];
    bool counts = s->owner == at && !s->folded && !r->decided;
    for (uint32_t i = 0; i < PARTIES; i++)
        if (has(t->sets[0], i))
            counts &= i < r->member_count && r->members[i].called;
    if (!counts) return;
    s->folded = true;
    s->contributors = t->sets[0];
    s->hash = t->digest;
    s->named[at].any = true;
    s->named[at].hash = t->digest;
}

/* Rule A11: before FOLDED has come, with the hash that was named first. */
static bool counts_early(const struct portion *s, uint64_t hash)
{
    for (uint32_t i = 0; i < PARTIES; i++)
        if (s->named[i].any) return s->named[i].hash == hash;
    return true;
}

static void has_parts(struct ledger *r, uint32_t at, const struct trace *t)
{
    for (uint32_t i = 0; i + 1 < t->id_count; i += 2) {
        if (t->ids[i] >= r->portion_count) return;
        struct portion *s = &r->portions[t->ids[i]];
        uint64_t hash = t->ids[i + 1];
        if (s->folded ? hash != s->hash : !counts_early(s, hash)) continue;
        s->named[at].any = true;
        s->named[at].hash = hash;
    }
    for (uint32_t i = 0; i < r->member_count; i++)
        r->members[at].answered |= r->members[i].report;
}

/* Rule A12: of its call, whose number it may not know yet. */
static void fails(struct model *m, struct process *p, const struct trace *t)
{
    p->owed_release = true;
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct ledger *r = &m->averages[i];
        uint32_t at = seat_of(r, p->id);
        if (!is_of(r, p, t->names[0].tag) || at == r->member_count) continue;
        bool its = t->number > 0 ? r->number == t->number : waits(m, r, at);
        if (!its || !r->members[at].called) continue;
        r->members[at].failed = true;
        ledger_missed(m, p, r->tag);
    }
}

void average_takes(struct model *m, struct process *p, const struct trace *t)
{
    p->heard = m->now;
    struct ledger *r = ledger_of(m, p, t->number);
    uint32_t at = r ? seat_of(r, p->id) : 0;
    bool counts = r && at < r->member_count && waits(m, r, at);
    if (t->flag == SAYS_CALL) calls(m, p, t);
    if (t->flag == SAYS_FAILED) fails(m, p, t);
    if (t->flag == SAYS_FOLDED && counts) folded(r, at, t);
    if (t->flag == SAYS_HOLDS && counts) has_parts(r, at, t);
}

/* ---------------------------------------------------------- the state (A14) */

static bool in_state(const struct attendee *x)
{
    return x->has && !x->untaken;
}

static bool lists(const struct trace *t, uint64_t tag)
{
    for (uint32_t i = 0; i < t->id_count; i++)
        if (t->ids[i] == tag) return true;
    return false;
}

/* Of each listed tag the last round that it has called for is not in it. */
void average_votes(struct model *m, struct process *p, const struct trace *t)
{
    for (uint32_t i = m->average_count; i-- > 0;) {
        struct ledger *r = &m->averages[i];
        uint32_t at = seat_of(r, p->id);
        bool last = true;
        if (r->group != p->group || at == r->member_count) continue;
        for (uint32_t k = i + 1; k < m->average_count; k++) {
            const struct ledger *l = &m->averages[k];
            uint32_t seat = seat_of(l, p->id);
            last &= !is_of(l, p, r->tag) || seat == l->member_count ||
                    !l->members[seat].called;
        }
        struct attendee *x = &r->members[at];
        x->untaken = x->called && last && lists(t, r->tag);
    }
}

/* NULL: the round is for none of the holders that its lists name. */
static const struct attendee *holder_of(const struct ledger *r,
                                        const struct trace *t)
{
    const struct attendee *first = NULL;
    for (uint32_t i = 0; i < r->member_count; i++) {
        bool holder = false;
        for (uint32_t k = 0; k < t->value && k < t->id_count; k++)
            holder |= t->ids[k] == r->members[i].id;
        if (holder && in_state(&r->members[i])) return &r->members[i];
        if (holder && !first) first = &r->members[i];
    }
    return first;
}

static void follows(struct model *m, const struct process *p, struct ledger *r,
                    const struct trace *t)
{
    uint32_t at = seat_of(r, p->id);
    struct attendee *x = &r->members[at];
    const struct attendee *holder = holder_of(r, t);
    bool in = holder && in_state(holder), waiting = waits(m, r, at);
    if (!x->called && !holder) {
        x->lapsed |= r->decided && !x->missed;
        return;
    }
    if (!x->called) {
        bool lost = holder->missed && !holder->called;
        x->lapsed = !in && (holder->lapsed || (lost && !x->missed));
        x->missed = in || lost;
        x->has = in;
        return;
    }
    x->late = in && waiting;
    x->has |= in;
    x->untaken &= !in;
}

/* What a round is for the holders it is for who receives their state. */
void average_follows(struct model *m, struct process *p, const struct trace *t)
{
    uint32_t tags = 0; /* that have been judged anew, as bits */
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct ledger *r = &m->averages[i];
        uint32_t at = seat_of(r, p->id);
        if (r->group != p->group || at == r->member_count) continue;
        follows(m, p, r, t);
        struct habit *h = habit_of(m, p, r->tag);
        bool first = !(tags >> (h - p->habits) & 1);
        tags |= 1u << (h - p->habits);
        h->lapsed = (!first && h->lapsed) || r->members[at].lapsed;
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
        memset(p->habits, 0, sizeof p->habits);
    }
}
