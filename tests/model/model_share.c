/* model_share.c - partial all-reduces: what their master decides, and whom it
 * tells. Rules A4, A7 to A10. */
#include "model_average.h"

#include <string.h>

enum { REFUSAL_DIFFERS, REFUSAL_LATE }; /* others: it lacks memory, or room */

/* --------------------------------------------------------------- decision */

/* Rule A7: every caller that waits has every part whose owner is not gone; or
 * all have answered REPORT; or time is over. */
bool average_due(struct model *m, const struct average *a)
{
    uint64_t wait = waiting(m, a);
    bool complete = true;
    for (uint32_t i = 0; i < a->slice_count; i++)
        if (lives(m, a, a->slices[i].owner))
            complete &= (wait & ~a->slices[i].holders) == 0;
    return complete || (a->reports && (wait & ~a->reported) == 0) ||
           m->now - a->opened >= a->deadline;
}

/* Rule A10. */
static struct absence *absence_of(struct process *p, uint64_t tag)
{
    struct absence *free = &p->absences[0];
    for (uint32_t i = 0; i < TAGS_KEPT; i++) {
        if (p->absences[i].tag == tag) return &p->absences[i];
        if (p->absences[i].tag == 0) free = &p->absences[i];
    }
    free->tag = tag;
    return free;
}

static uint64_t contributors(const struct average *a)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < a->slice_count; i++)
        if (a->slices[i].committed) set |= a->slices[i].set;
    return set;
}

void average_decides(struct model *m, struct average *a)
{
    if (!average_due(m, a))
        REFUSE(m, "A7: round %llu is decided too early",
               (unsigned long long)a->number);
    uint64_t live = living(m, a);
    uint32_t wait = bits_of(waiting(m, a));
    bool any = false;
    a->state = SHARED;
    a->decided_at = m->now;
    for (uint32_t i = 0; i < a->slice_count; i++) {
        struct slice *s = &a->slices[i];
        uint32_t have = s->folded ? bits_of(s->holders & live) : 0;
        s->committed = have > 0 && 2 * have >= wait;
        any |= s->committed;
    }
    uint64_t in = contributors(a);
    for (uint32_t i = 0; i < a->count && any; i++) {
        struct process *p = process_of(m, a->ids[i]);
        struct absence *x = absence_of(p, a->tag);
        x->count = has(in, i) ? 0 : x->count + 1;
        p->absent |=
            lives(m, a, i) && a->patience > 0 && x->count >= a->patience;
    }
}

bool average_evicts(struct model *m, const struct process *p)
{
    for (uint32_t i = 0; i < m->average_count && !p->absent; i++) {
        struct average *a = &m->averages[i];
        bool open = a->group == p->group && a->state == MOVING;
        if (open && average_due(m, a)) average_decides(m, a);
    }
    return p->absent;
}

/* Rule A8: all holders are gone. Whoever had ended with it is gone, too. */
void average_gives_up(struct model *m, struct average *a)
{
    uint64_t live = living(m, a);
    for (uint32_t i = 0; i < a->slice_count; i++) {
        struct slice *s = &a->slices[i];
        if (!s->committed || s->holders & live) continue;
        s->committed = false;
        if (a->well & live)
            REFUSE(m, "A8: a part of round %llu is given up, and %llx have it",
                   (unsigned long long)a->number,
                   (unsigned long long)(a->well & live));
    }
}

bool average_has_all(const struct average *a, uint32_t at)
{
    for (uint32_t i = 0; i < a->slice_count; i++)
        if (a->slices[i].committed && !has(a->slices[i].holders, at))
            return false;
    return true;
}

/* Decisions of the tag after it. */
uint32_t average_later(const struct model *m, const struct average *a)
{
    uint32_t count = 0;
    for (uint32_t i = (uint32_t)(a - m->averages) + 1; i < m->average_count;
         i++) {
        const struct average *l = &m->averages[i];
        count += l->group == a->group && l->tag == a->tag && decided(l);
    }
    return count;
}

/* ------------------------------------------------------------- the orders */

/* Rule A4. */
bool average_gathered(struct model *m, const struct average *a)
{
    bool all = (living(m, a) & ~a->called & ~a->out) == 0;
    return all || m->now - a->opened >= a->gather;
}

static void cut(struct model *m, struct average *a, const struct trace *t)
{
    uint64_t next = 0, wait = waiting(m, a);
    if (!average_gathered(m, a))
        REFUSE(m, "A4: PLAN while members may still call");
    if (t->part_count > bits_of(wait))
        REFUSE(m, "A4: %u parts for %u that wait", t->part_count,
               bits_of(wait));
    for (uint32_t i = 0; i < t->part_count && !m->wrong; i++) {
        const struct trace_part *x = &t->parts[i];
        bool owns = x->owner < a->count && has(wait, x->owner);
        if (!owns || x->begin != next || x->count == 0)
            REFUSE(m, "A4: part %u of %u begins at %llu", i, x->owner,
                   (unsigned long long)x->begin);
        if (owns) wait &= ~((2ull << x->owner) - 1); /* in their order */
        next += x->count;
        a->slices[i] = (struct slice){
            .begin = x->begin, .count = x->count, .owner = x->owner};
    }
    if (next != a->elements) REFUSE(m, "A4: the parts do not cover the vector");
    a->slice_count = t->part_count;
    a->state = MOVING;
}

static void check_parts(struct model *m, const struct average *a,
                        const struct trace *t)
{
    bool same = t->part_count == a->slice_count;
    for (uint32_t i = 0; same && i < a->slice_count; i++)
        same = t->parts[i].begin == a->slices[i].begin &&
               t->parts[i].count == a->slices[i].count &&
               t->parts[i].owner == a->slices[i].owner;
    if (!same) REFUSE(m, "A4: the parts of a round change");
}

static void plan(struct model *m, struct average *a, uint32_t at,
                 const struct trace *t)
{
    if (a->state == GATHERING) cut(m, a, t);
    if (a->state != MOVING || t->id_count != 2 * a->count ||
        t->set_count != 1) {
        REFUSE(m, "A4: PLAN of another round");
        return;
    }
    check_parts(m, a, t);
    uint64_t live = living(m, a);
    for (uint32_t i = 0; i < a->count; i++) {
        bool called = has(a->called, i);
        if (t->ids[2 * i] != a->ids[i] ||
            t->ids[2 * i + 1] != (called ? a->weights[i] : 0))
            REFUSE(m, "A1, A4: PLAN has another caller at place %u", i);
        if (has(t->sets[0], i) == has(live, i))
            REFUSE(m, "A4: PLAN says another one is gone at place %u", i);
    }
    if (a->planned[at].called == a->called && a->planned[at].live == live)
        REFUSE(m, "A4: PLAN comes again, and nobody has called or is gone");
    a->planned[at] = (struct planned){a->called, live};
    data_enrolled(m, a);
}

static void fetch(struct model *m, struct average *a, uint32_t at,
                  const struct trace *t)
{
    uint64_t live = living(m, a);
    a->fetches |= 1ull << at;
    if (average_has_all(a, at)) REFUSE(m, "A8: FETCH to one who has all parts");
    if (t->set_count != a->slice_count) REFUSE(m, "A8: FETCH of other parts");
    for (uint32_t i = 0; i < a->slice_count && !m->wrong; i++) {
        const struct slice *s = &a->slices[i];
        const struct trace_part *x = &t->parts[i];
        if ((x->contributors > 0) != s->committed ||
            (s->committed && x->hash != s->hash) ||
            t->sets[i] != (s->holders & live))
            REFUSE(m, "A7, A8: FETCH says something else of part %u", i);
    }
}

static void end(struct model *m, struct average *a, uint32_t at,
                const struct trace *t)
{
    if (!average_has_all(a, at)) REFUSE(m, "A8: END to one who lacks a part");
    if (t->set_count != a->slice_count) REFUSE(m, "A8: END of other parts");
    for (uint32_t i = 0; i < a->slice_count && !m->wrong; i++) {
        const struct slice *s = &a->slices[i];
        uint64_t set = s->committed ? s->set : 0;
        if (t->sets[i] != set || t->parts[i].contributors != bits_of(set))
            REFUSE(m, "A7: END has other contributors to part %u", i);
    }
    if ((t->value & 1) != has(contributors(a), at))
        REFUSE(m, "A7: END is wrong on who has contributed");
    a->ended |= 1ull << at;
    a->well |= 1ull << at;
    a->last |= t->value >> 1 & 1;
}

static void refuse_late(struct model *m, struct process *p,
                        const struct trace *t)
{
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct average *a = &m->averages[i];
        uint32_t at = place_in(a, p->id);
        if (a->group != p->group || a->tag != t->names[0].tag ||
            at == a->count || !has(waiting(m, a), at))
            continue;
        if (a->state == MOVING && average_due(m, a)) average_decides(m, a);
        int64_t since =
            a->called_at[at] > a->decided_at ? a->called_at[at] : a->decided_at;
        if (a->state != SHARED || (m->now - since < a->deadline &&
                                   average_later(m, a) < AVERAGES_KEPT))
            continue;
        a->ended |= 1ull << at;
        for (uint32_t k = 0; k < a->slice_count; k++)
            a->slices[k].holders &= ~(1ull << at); /* it drops them */
        return;
    }
    REFUSE(m, "A9: process %llu is refused", (unsigned long long)p->id);
}

static void refusal(struct model *m, struct process *p, const struct trace *t)
{
    uint64_t tag = t->names[0].tag;
    if (t->value > REFUSAL_LATE) { /* all that it can do without memory */
        p->owed_refusal = false;
        for (uint32_t i = m->average_count; i-- > 0;) {
            struct average *a = &m->averages[i];
            uint32_t at = place_in(a, p->id);
            if (a->group == p->group && a->tag == tag && at < a->count)
                a->ended |= a->called & 1ull << at;
        }
        return;
    }
    if (t->value == REFUSAL_LATE && p->owed_refusal && p->owed_tag == tag) {
        p->owed_refusal = false;
        return;
    }
    for (uint32_t i = 0; i < m->average_count; i++) {
        struct average *a = &m->averages[i];
        uint32_t at = place_in(a, p->id);
        if (a->group != p->group || a->tag != tag || at == a->count ||
            !has(a->owed, at) || t->value != REFUSAL_DIFFERS)
            continue;
        a->owed &= ~(1ull << at);
        a->ended |= 1ull << at;
        return;
    }
    if (t->value == REFUSAL_DIFFERS)
        REFUSE(m, "A3: process %llu is told of a difference",
               (unsigned long long)p->id);
    else
        refuse_late(m, p, t);
}

/* The round that the order is of: it may be the first one of it. */
static struct average *ordered(struct model *m, const struct process *p,
                               const struct trace *t)
{
    struct average *a = average_of(m, p->group, t->number);
    if (a || t->number == 0 || t->flag != ORDER_PLAN) return a;
    for (uint32_t i = 0; i < m->average_count; i++) {
        a = &m->averages[i];
        if (a->group != p->group || a->tag != t->names[0].tag || a->number > 0)
            continue;
        if (decided(a)) continue;
        for (uint32_t k = 0; k < m->average_count; k++)
            if (m->averages[k].group == a->group &&
                m->averages[k].tag == a->tag &&
                m->averages[k].number >= t->number)
                REFUSE(m, "A1: rounds are not counted");
        a->number = t->number;
        return a;
    }
    return NULL;
}

static void release(struct model *m, struct process *p, struct average *a,
                    uint32_t at)
{
    if (p->owed_release) {
        p->owed_release = false;
        return;
    }
    uint64_t due = a ? living(m, a) & ~a->ended & ~(a->out & ~a->called) : 0;
    if (!a || at == a->count || a->state != SHARED ||
        (due != 0 && average_later(m, a) < AVERAGES_KEPT))
        REFUSE(m, "A9: RELEASE while somebody waits");
}

void average_gives(struct model *m, struct process *p, const struct trace *t)
{
    if (t->flag == ORDER_REFUSE) {
        refusal(m, p, t);
        return;
    }
    struct average *a = ordered(m, p, t);
    uint32_t at = a ? place_in(a, p->id) : 0;
    if (t->flag == ORDER_RELEASE) {
        release(m, p, a, at);
        return;
    }
    if (!a || at == a->count || !has(waiting(m, a), at)) {
        REFUSE(m, "A4, A8: order %u to process %llu, which does not wait",
               t->flag, (unsigned long long)p->id);
        return;
    }
    bool shares = t->flag == ORDER_FETCH || t->flag == ORDER_END;
    if (shares && a->state == MOVING) average_decides(m, a);
    if (shares) average_gives_up(m, a);
    if (shares) check_parts(m, a, t);
    if (shares) data_enrolled(m, a);
    if (shares ? a->state != SHARED
               : t->flag != ORDER_PLAN && a->state != MOVING)
        REFUSE(m, "A7: order %u in another state of the round", t->flag);
    if (t->flag == ORDER_PLAN) plan(m, a, at, t);
    if (t->flag == ORDER_FETCH) fetch(m, a, at, t);
    if (t->flag == ORDER_END) end(m, a, at, t);
    if (t->flag == ORDER_FOLD || t->flag == ORDER_REPORT) {
        int64_t eighths = t->flag == ORDER_FOLD ? 4 : 7;
        if (m->now - a->opened < a->deadline / 8 * eighths)
            REFUSE(m, "A6, A7: order %u too early", t->flag);
        uint64_t *had = t->flag == ORDER_FOLD ? &a->folds : &a->reports;
        if (has(*had, at)) REFUSE(m, "A6, A7: order %u comes again", t->flag);
        *had |= 1ull << at;
    }
}
