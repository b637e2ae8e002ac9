/* model_caller.c - partial all-reduces at one process: what it says of them,
 * and how its calls end; and all processes that end the same round. Rules A2,
 * A6 to A8, A11, A12, H8. Its data: model_data.c. */
#include "model_state.h"

#include <string.h>

static struct caller *caller_of(struct process *p, uint64_t tag)
{
    for (uint32_t i = 0; i < p->caller_count; i++)
        if (p->callers[i].tag == tag) return &p->callers[i];
    return NULL;
}

struct caller *caller_by(struct process *p, uint64_t number)
{
    for (uint32_t i = 0; i < p->caller_count; i++) {
        struct caller *c = &p->callers[i];
        if (c->under_way && c->number == number && number > 0) return c;
    }
    return NULL;
}

/* --------------------------------------------------------------- what it says
 */

/* Its own number goes up, but for the calls that another master is to know. */
static void says_call(struct model *m, struct process *p, const struct trace *t)
{
    struct caller *c = caller_of(p, t->names[0].tag);
    if (!c || !c->under_way || c->sent || c->lost)
        REFUSE(m, "A2, H8: CALL without a call, or twice");
    else if (p->installs_due > 0)
        REFUSE(m, "H8: CALL before the INSTALL of H7");
    else
        c->sent = true;
    if (t->round <= p->call_last) REFUSE(m, "A2: calls are not counted");
    p->call_last = t->round;
}

/* Rule A6: once, of its own part, before anybody else knows. */
static void says_folded(struct model *m, struct process *p,
                        const struct trace *t)
{
    struct caller *c = caller_by(p, t->number);
    uint32_t part = t->value;
    if (!c || part >= c->part_count || c->owners[part] != c->self) {
        REFUSE(m, "A6: process %llu folds part %u, which is not its own",
               (unsigned long long)p->id, part);
        return;
    }
    if (c->folded) REFUSE(m, "A6: a part is folded twice");
    if (t->set_count == 1 && t->sets[0] & ~c->called)
        REFUSE(m, "A6: who has not called contributes");
    c->folded = true;
    if (!m->wrong) data_folded(m, p, c, t);
}

void caller_sends(struct model *m, struct process *p, const struct trace *t)
{
    struct caller *c;
    switch (t->flag) {
    case SAYS_CALL:
        says_call(m, p, t);
        return;
    case SAYS_FOLDED:
        says_folded(m, p, t);
        return;
    case SAYS_FAILED:
        c = caller_of(p, t->names[0].tag);
        if (!c || !c->under_way) REFUSE(m, "A12: FAILED without a call");
        if (c) c->failing = true;
        return;
    default:
        c = caller_by(p, t->number);
        if (c)
            data_held(m, p, c, t);
        else if (!p->keeps)
            REFUSE(m, "A7: HOLDS of a round that is not known");
        return;
    }
}

/* ----------------------------------------------------------- what it is told
 */

static void reads_plan(const struct process *p, struct caller *c,
                       const struct trace *t)
{
    c->number = t->number;
    c->term = p->term;
    c->self = t->size;
    c->part_count = t->part_count < PARTIES ? t->part_count : PARTIES;
    c->called = 0;
    c->gone = t->set_count > 0 ? t->sets[0] : 0;
    for (uint32_t i = 0; i < c->part_count; i++)
        c->owners[i] = t->parts[i].owner;
    for (uint32_t i = 0; 2 * i + 1 < t->id_count && i < PARTIES; i++)
        c->called |= (uint64_t)(t->ids[2 * i + 1] != 0) << i;
}

static void reads_end(struct process *p, struct caller *c,
                      const struct trace *t)
{
    c->ended = true;
    c->number = t->number;
    c->end = t->number;
    c->term = p->term;
    c->part_count = t->part_count < PARTIES ? t->part_count : PARTIES;
    for (uint32_t i = 0; i < c->part_count; i++)
        c->sets[i] = i < t->set_count ? t->sets[i] : 0;
}

void caller_reads(struct model *m, struct process *p, const struct trace *t)
{
    struct caller *c = caller_of(p, t->names[0].tag);
    if (!c || !c->under_way || c->ended) return;
    switch (t->flag) {
    case ORDER_PLAN:
        if (!c->failing && (c->number == 0 || c->number == t->number))
            reads_plan(p, c, t);
        if (c->number == t->number) data_planned(m, p, c);
        return;
    case ORDER_FOLD:
        c->folds = true;
        return;
    case ORDER_FETCH:
        c->number = t->number;
        for (uint32_t i = 0; i < t->set_count && i < PARTIES; i++)
            c->givers[i] |= t->sets[i];
        c->reports = true;
        return;
    case ORDER_REPORT:
        c->reports = true;
        return;
    case ORDER_END:
        if (!c->failing) reads_end(p, c, t);
        return;
    case ORDER_REFUSE:
        c->refused = true;
        return;
    case ORDER_RELEASE:
        c->released |= c->failing;
        return;
    default:
        return;
    }
}

/* Rule H8. Those that its master knew are lost, and it may have missed a round
 * of each other tag: a call that has been told its end is under way no more,
 * although the program has not taken its result. */
void caller_cut(struct process *p)
{
    for (uint32_t i = 0; i < p->caller_count; i++) {
        struct caller *c = &p->callers[i];
        bool told = c->ended || c->refused || c->released || c->lost;
        c->missed = !c->under_way || told;
        c->lost |= !c->missed;
    }
}

/* ----------------------------------------------------------------- the program
 */

static void begins(struct model *m, struct process *p, const struct trace *t)
{
    uint64_t tag = t->names[0].tag;
    struct caller *c = caller_of(p, tag);
    if (!c && p->caller_count == TAGS_KEPT) {
        REFUSE(m, "more tags than the model has room for");
        return;
    }
    if (!c) c = &p->callers[p->caller_count++];
    if (c->under_way) REFUSE(m, "a tag is called twice at a time");
    data_over(c);
    *c = (struct caller){
        .tag = tag, .under_way = true, .lost = c->missed, .end = c->end};
    data_begins(m, p, c, t);
    p->call_due = !c->lost && !p->mute && !p->master_lost &&
                  p->installs_due == 0 && p->state == IN_VIEW;
}

/* It has ended with these parts, and some of those who have had others live. */
static bool is_known(struct model *m, const struct shared *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct process *p = process_of(m, s->of[i]);
        if (p && p->standing == MEMBER && !p->leaving) return true;
    }
    return false;
}

/* Contract: all that live have the same parts, of the same contributors, and
 * the same bytes. A part that nobody has who lives may be missing (A8). */
static void compare(struct model *m, struct shared *s, const struct trace *t)
{
    bool other = s->part_count != t->part_count;
    for (uint32_t i = 0; !other && i < s->part_count; i++) {
        bool given_up = t->sets[i] == 0 && s->sets[i] != 0;
        if (given_up && !is_known(m, s)) {
            s->sets[i] = 0;
            s->hashes[i] = t->parts[i].hash;
        }
        other = s->sets[i] != t->sets[i] ||
                (s->sets[i] != 0 && s->hashes[i] != t->parts[i].hash);
    }
    if (other)
        REFUSE(m, "A7: round %llu ends with other parts at %u",
               (unsigned long long)t->number, t->process);
}

static void shares(struct model *m, const struct process *p,
                   const struct caller *c, const struct trace *t)
{
    struct shared *s = NULL;
    if (p->standing != MEMBER || p->leaving || p->term != c->term) return;
    for (uint32_t i = 0; i < SHARED_KEPT && !s; i++) {
        struct shared *x = &m->shared[i];
        if (x->number == c->number && x->term == c->term &&
            x->group == p->group && x->tag == c->tag)
            s = x;
    }
    if (s) {
        compare(m, s, t);
    } else {
        s = &m->shared[m->shared_next++ % SHARED_KEPT];
        *s = (struct shared){.group = p->group,
                             .tag = c->tag,
                             .number = c->number,
                             .term = c->term,
                             .part_count = c->part_count};
        memcpy(s->sets, c->sets, sizeof s->sets);
        for (uint32_t i = 0; i < c->part_count; i++)
            s->hashes[i] = t->parts[i].hash;
    }
    if (s->count < WORLD) s->of[s->count++] = p->id;
}

static void ends(struct model *m, struct process *p, const struct trace *t)
{
    struct caller *c = caller_of(p, t->names[0].tag);
    if (!c || !c->under_way) {
        REFUSE(m, "a partial all-reduce ends that was not called");
        return;
    }
    m->results++;
    p->keeps = true;
    if (t->flag != SUCCESS) {
        bool out = p->state == GONE || p->master_lost;
        bool failed = c->failing && (c->released || p->master_lost || c->lost);
        bool right = t->flag == NO_MASTER      ? out
                     : t->flag == INTERNAL     ? failed || c->refused
                     : t->flag == BAD_ARGUMENT ? c->refused
                                               : c->refused || c->lost;
        if (!right && !out)
            REFUSE(m, "A12: a call of %llu ends with %u",
                   (unsigned long long)p->id, t->flag);
    } else if (!c->ended || c->number != t->number || c->failing) {
        REFUSE(m, "A8: process %llu succeeds without END",
               (unsigned long long)p->id);
    } else {
        bool same = t->part_count == c->part_count;
        for (uint32_t i = 0; same && i < c->part_count; i++)
            same = t->sets[i] == c->sets[i];
        if (!same) REFUSE(m, "A7: a call ends with other contributors");
        if (!m->wrong) shares(m, p, c, t);
    }
    if (!m->wrong) data_ended(m, p, c, t);
    data_over(c);
    *c = (struct caller){.tag = c->tag, .missed = c->missed, .end = c->end};
}

void caller_program(struct model *m, struct process *p, const struct trace *t)
{
    if (t->kind == TRACE_AVERAGE)
        begins(m, p, t);
    else
        ends(m, p, t);
}
