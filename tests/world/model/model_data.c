/* model_data.c - the bytes of partial all-reduces: what each member gives, what
 * moves, and that the result is the sum of what its contributors gave. Rules
 * A5, A6, A8 and contract C2, C5.
 *
 * Answers are not compared byte by byte: a wrong one makes a wrong result. */
#include "model_ledger.h"

#include <stdlib.h>
#include <string.h>

void data_free(struct model *m)
{
    for (uint32_t i = 0; i < INPUTS_KEPT; i++) free(m->inputs[i].bytes);
    free(m->questions);
}

/* ---------------------------------------------------------- who is in it */

static struct roll *roll_of(struct model *m, const struct process *p,
                            uint64_t tag, uint64_t number, uint64_t term)
{
    for (uint32_t i = 0; i < ROLLS_KEPT; i++) {
        struct roll *r = &m->rolls[i];
        if (r->number == number && r->tag == tag && r->group == p->group &&
            number > 0 && (term == 0 || r->term == term))
            return r;
    }
    return NULL;
}

/* Somebody is in the round: slow ones outlast many of other tags. */
static bool is_awaited(const struct model *m, const struct roll *r)
{
    for (uint32_t i = 0; i < m->process_end; i++) {
        const struct process *p = m->processes[i];
        for (uint32_t k = 0; p && k < p->caller_count; k++) {
            const struct caller *c = &p->callers[k];
            if (c->under_way && c->number == r->number && c->tag == r->tag)
                return true;
        }
    }
    return false;
}

/* The master has cut the vector, or somebody joins the round (A1). */
void data_enrolled(struct model *m, const struct ledger *a)
{
    struct process of = {.group = a->group};
    struct roll *r = roll_of(m, &of, a->tag, a->number, m->term);
    if (!r) {
        r = &m->rolls[m->roll_next++ % ROLLS_KEPT];
        for (uint32_t i = 0; is_awaited(m, r) && i < ROLLS_KEPT; i++)
            r = &m->rolls[m->roll_next++ % ROLLS_KEPT];
        *r = (struct roll){.group = a->group,
                           .tag = a->tag,
                           .number = a->number,
                           .term = m->term,
                           .part_count = a->portion_count};
        for (uint32_t i = 0; i < a->portion_count; i++) {
            r->owners[i] = a->portions[i].owner;
            r->begins[i] = a->portions[i].begin;
            r->counts[i] = a->portions[i].count;
        }
    }
    r->count = a->member_count;
    for (uint32_t i = 0; i < r->count; i++) r->ids[i] = a->members[i].id;
}

static uint32_t place_on(const struct roll *r, uint64_t id)
{
    uint32_t i = 0;
    while (i < r->count && r->ids[i] != id) i++;
    return i;
}

/* ------------------------------------------------------ what a member gives */

void data_begins(struct model *m, struct process *p, struct caller *c,
                 const struct trace *t)
{
    uint32_t at = m->input_next++ % INPUTS_KEPT;
    for (uint32_t i = 0; m->inputs[at].held && i < INPUTS_KEPT; i++)
        at = m->input_next++ % INPUTS_KEPT;
    struct input *x = &m->inputs[at];
    free(x->bytes);
    *x = (struct input){.id = p->id,
                        .tag = c->tag,
                        .size = t->byte_count / 2,
                        .in_place = t->joins,
                        .held = true,
                        .bytes = malloc(t->byte_count + 1)};
    if (!x->bytes || t->size == 0 || t->byte_count % (2 * t->size) != 0) {
        REFUSE(m, "a call without a vector");
        return;
    }
    if (t->byte_count > 0) memcpy(x->bytes, t->bytes, t->byte_count);
    memcpy(&x->weight, &t->number, sizeof x->weight);
    c->input = at;
    c->fold = t->flag;
    c->element = t->size;
}

/* PLAN has come: before that it gives nothing (A5). */
void data_planned(struct model *m, const struct process *p,
                  const struct caller *c)
{
    m->inputs[c->input].number = c->number;
    m->inputs[c->input].term = p->term;
}

static const struct input *input_of(const struct model *m, uint64_t id,
                                    const struct caller *c)
{
    for (uint32_t i = 1; i <= INPUTS_KEPT; i++) { /* mostly a late one */
        const struct input *x = &m->inputs[(m->input_next - i) % INPUTS_KEPT];
        if (x->bytes && x->id == id && x->tag == c->tag &&
            x->number == c->number && x->term == c->term)
            return x;
    }
    return NULL;
}

/* ------------------------------------------------------------ what moves */

void data_over(struct caller *c)
{
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < PARTIES; i++) free(c->streams[k][i].has);
    memset(c->streams, 0, sizeof c->streams);
}

static uint64_t key_of(uint64_t asks, uint64_t answers, const struct trace *t)
{
    const uint64_t all[] = {asks,    answers,  t->names[0].tag, t->digest,
                            t->flag, t->round, t->value};
    uint64_t h = 1;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        h = (h ^ all[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h > 0 ? h : 1;
}

/* NULL: out of memory. */
static struct question *question_of(struct model *m, uint64_t key)
{
    if (2 * m->question_count >= m->question_room) {
        uint32_t old_room = m->question_room;
        struct question *old = m->questions;
        m->question_room = old_room > 0 ? 4 * old_room : 1024;
        m->questions = calloc(m->question_room, sizeof *m->questions);
        for (uint32_t i = 0; m->questions && i < old_room; i++) {
            uint32_t at = (uint32_t)old[i].key & (m->question_room - 1);
            while (m->questions[at].key) at = (at + 1) & (m->question_room - 1);
            m->questions[at] = old[i];
        }
        free(old);
        if (!m->questions) m->question_count = m->question_room = 0;
        if (!m->questions) return NULL;
    }
    uint32_t at = (uint32_t)key & (m->question_room - 1);
    while (m->questions[at].key && m->questions[at].key != key)
        at = (at + 1) & (m->question_room - 1);
    m->question_count += m->questions[at].key == 0;
    m->questions[at].key = key;
    return &m->questions[at];
}

/* END of the round has come to it. */
static bool has_ended(const struct process *p, const struct trace *t)
{
    for (uint32_t i = 0; i < p->caller_count; i++)
        if (p->callers[i].tag == t->names[0].tag)
            return p->callers[i].end >= t->digest;
    return false;
}

/* Rules A5, A8: of whom it asks. Its call may be over by now. */
static void check_asked(struct model *m, const struct process *p,
                        const struct roll *r, const struct trace *t)
{
    struct process *asks = process_of(m, t->number);
    const struct caller *c = asks ? caller_by(asks, t->digest) : NULL;
    uint32_t at = place_on(r, p->id);
    if (!c || c->tag != t->names[0].tag || c->ended) return;
    if (t->flag == CONTRIBUTION && !has(c->called, at))
        REFUSE(m, "A5: %llu asks %llu, which has not called",
               (unsigned long long)t->number, (unsigned long long)p->id);
    if (t->flag == RESULT && r->owners[t->round] != at &&
        !has(c->givers[t->round], at))
        REFUSE(m, "A5, A8: %llu asks %llu, which need not have part %u",
               (unsigned long long)t->number, (unsigned long long)p->id,
               t->round);
}

/* Rule A5: of contributions. One that is lost with a link is asked again of the
 * same member; a result may be asked of another one, and is not counted. */
static void await(struct model *m, struct question *q, const struct roll *r,
                  uint64_t of, const struct trace *t)
{
    struct process *asks = process_of(m, t->number);
    struct caller *c = asks ? caller_by(asks, t->digest) : NULL;
    uint32_t at = place_on(r, of);
    if (!c || at == r->count) return;
    q->awaited = true;
    if (++c->awaits[at] > CHUNKS_ASKED)
        REFUSE(m, "A5: %llu asks %llu for %u chunks at a time",
               (unsigned long long)t->number, (unsigned long long)of,
               c->awaits[at]);
}

static void answered(struct model *m, const struct process *p,
                     struct question *q, struct caller *c,
                     const struct trace *t)
{
    struct roll *r = roll_of(m, p, t->names[0].tag, t->digest, 0);
    uint32_t at = r ? place_on(r, t->number) : PARTIES;
    q->awaited = false;
    if (c && at < PARTIES && c->awaits[at] > 0) c->awaits[at]--;
}

/* Rule A5: an owner asks for contributions to its part, and a caller for
 * results, of a member of the round. The sender may be done with it by now. */
void data_asked(struct model *m, struct process *p, const struct trace *t)
{
    struct roll *r = roll_of(m, p, t->names[0].tag, t->digest, 0);
    uint32_t from = r ? place_on(r, t->number) : 0;
    bool fits = r && from < r->count && t->round < r->part_count;
    if (!t->joins && !fits) {
        REFUSE(m, "A5: %llu asks for part %u of a round that it is not in",
               (unsigned long long)t->number, t->round);
        return;
    }
    if (!t->joins && t->flag == CONTRIBUTION && r->owners[t->round] != from)
        REFUSE(m, "A5: %llu asks for contributions to part %u of another",
               (unsigned long long)t->number, t->round);
    if (!t->joins) check_asked(m, p, r, t);
    struct question *q = question_of(m, key_of(t->number, p->id, t));
    if (!q) {
        REFUSE(m, "out of memory");
        return;
    }
    q->open++;
    if (!t->joins && !q->awaited && t->flag == CONTRIBUTION)
        await(m, q, r, p->id, t);
    q->late += t->flag == CONTRIBUTION && has_ended(p, t);
}

/* Rule A5: asked again, it answers the same, or no. Rule A6: a question that
 * has come after END is answered by no. */
static void check_answer(struct model *m, struct question *q,
                         const struct trace *t)
{
    if (t->size > 0 && q->size > 0 && q->size != t->size)
        REFUSE(m, "A5: %llu gives another answer than before",
               (unsigned long long)t->number);
    if (t->size > 0 && q->open == q->late)
        REFUSE(m, "A6: %llu contributes after END",
               (unsigned long long)t->number);
    if (t->size > 0) q->size = t->size;
    q->open--;
    if (q->late > q->open) q->late = q->open;
}

static void fill(struct model *m, struct stream *s, uint64_t whole,
                 const struct trace *t)
{
    if (!s->has) {
        s->has = calloc(1, whole);
        s->size = whole;
    }
    if (!s->has || (uint64_t)t->value + t->size > s->size) {
        REFUSE(m, "A5: bytes beyond the end of part %u", t->round);
        return;
    }
    for (uint32_t i = 0; i < t->size; i++) {
        s->here += !s->has[t->value + i];
        s->has[t->value + i] = 1;
    }
}

/* ... and is answered. A call that has ended takes nothing more. */
void data_came(struct model *m, struct process *p, const struct trace *t)
{
    struct question *q = question_of(m, key_of(p->id, t->number, t));
    if (!q || q->open == 0)
        REFUSE(m, "A5: %llu answers what it was not asked",
               (unsigned long long)t->number);
    else
        check_answer(m, q, t);
    struct caller *c = caller_by(p, t->digest);
    if (q && q->awaited) answered(m, p, q, c, t);
    if (!c || t->size == 0 || c->tag != t->names[0].tag) return;
    struct roll *r = roll_of(m, p, c->tag, c->number, c->term);
    uint32_t from = r ? place_on(r, t->number) : 0;
    if (!r || from == r->count || t->round >= r->part_count) {
        REFUSE(m, "A5: data of no part");
        return;
    }
    bool own = r->ids[r->owners[t->round]] == p->id;
    if (t->flag == CONTRIBUTION && !own)
        REFUSE(m, "A5: a contribution to part %u at one that does not own it",
               t->round);
    if (t->flag == RESULT && !(r->folded >> t->round & 1))
        REFUSE(m, "A6: a result of part %u before its owner has told it",
               t->round);
    uint32_t stream = t->flag == CONTRIBUTION ? from : t->round;
    fill(m, &c->streams[t->flag][stream], r->counts[t->round] * c->element, t);
}

static bool is_whole(const struct stream *s)
{
    return s->has && s->here == s->size;
}

/* Rule A6: of those that are whole. */
void data_folded(struct model *m, const struct process *p,
                 const struct caller *c, const struct trace *t)
{
    struct roll *r = roll_of(m, p, c->tag, c->number, c->term);
    uint64_t set = t->set_count == 1 ? t->sets[0] : 0;
    for (uint32_t i = 0; i < PARTIES && !m->wrong; i++)
        if (has(set, i) && i != c->self &&
            !is_whole(&c->streams[CONTRIBUTION][i]))
            REFUSE(m,
                   "A6: part %u has the contribution of %u, which has not "
                   "come as a whole",
                   t->value, i);
    for (uint32_t i = 0; i < PARTIES && !m->wrong; i++) {
        if (has(set, i) || !has(c->called, i)) continue;
        if (is_whole(&c->streams[CONTRIBUTION][i]))
            REFUSE(m, "A6: part %u lacks the contribution of %u, which is here",
                   t->value, i);
        else if (!c->folds && !has(c->gone, i))
            REFUSE(m, "A6: part %u is folded without %u, and before FOLD",
                   t->value, i);
    }
    if (r) r->folded |= 1ull << t->value;
}

/* Rules A7, A8: a part is held that has come as a whole, or is the own one. It
 * is said once, and once more if the master wants to know of all. */
void data_held(struct model *m, const struct process *p, struct caller *c,
               const struct trace *t)
{
    bool news = c->reports;
    struct roll *r = roll_of(m, p, c->tag, c->number, c->term);
    for (uint32_t i = 0; i + 1 < t->id_count && !m->wrong; i += 2) {
        uint64_t part = t->ids[i];
        bool own = part < PARTIES && r && c->folded && part < r->part_count &&
                   r->ids[r->owners[part]] == p->id;
        if (part >= PARTIES || (!own && !is_whole(&c->streams[RESULT][part]))) {
            REFUSE(m, "A7: process %llu holds part %llu, which has not come",
                   (unsigned long long)p->id, (unsigned long long)part);
            return;
        }
        news |= !has(c->told, (uint32_t)part);
        c->told |= 1ull << part;
    }
    if (!news) REFUSE(m, "A7: HOLDS without news");
    c->reports = false;
}

/* ------------------------------------------------------------- the result */

/* Rule A6, contract C5: in the order of A1. */
static void fold(const struct caller *c, const struct input *const *of,
                 uint32_t count, uint64_t element, uint8_t *out)
{
    double sum = 0, weights = 0;
    uint32_t wraps = 0;
    for (uint32_t i = 0; i < count; i++) {
        double d;
        uint32_t n;
        const uint8_t *from = of[i]->bytes + element * c->element;
        if (c->fold == MEAN_OF_F64) {
            memcpy(&d, from, sizeof d);
            sum += of[i]->weight * d;
            weights += of[i]->weight;
        } else {
            memcpy(&n, from, sizeof n);
            wraps += n;
        }
    }
    sum /= weights;
    if (c->fold == MEAN_OF_F64)
        memcpy(out, &sum, sizeof sum);
    else
        memcpy(out, &wraps, sizeof wraps);
}

static void check_part(struct model *m, const struct roll *r,
                       const struct caller *c, uint32_t part,
                       const struct trace *t)
{
    const struct trace_part *x = &t->parts[part];
    const struct input *of[PARTIES];
    uint32_t count = 0;
    double weights = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (!has(t->sets[part], i)) continue;
        of[count] = input_of(m, r->ids[i], c);
        if (!of[count] || of[count]->size * 2 != t->byte_count) {
            REFUSE(m, "A7: %llu contributes to part %u, and has given nothing",
                   (unsigned long long)r->ids[i], part);
            return;
        }
        weights += of[count++]->weight;
    }
    if (x->contributors != count || x->weight != weights)
        REFUSE(m, "C5: part %u has %u contributors of weight %g, not %u of %g",
               part, x->contributors, x->weight, count, weights);
    const uint8_t *out = t->bytes + t->byte_count / 2;
    for (uint64_t k = x->begin; k < x->begin + x->count && !m->wrong; k++) {
        uint8_t right[8];
        if ((k + 1) * c->element > t->byte_count / 2) {
            REFUSE(m, "A4: a part beyond the vector");
            return;
        }
        fold(c, of, count, k, right);
        if (memcmp(out + k * c->element, right, c->element) != 0)
            REFUSE(m, "A6: element %llu is not the sum of what was given",
                   (unsigned long long)k);
    }
}

/* Contract C2: what has not become a result is as it was. */
static void check_untouched(struct model *m, const struct input *x,
                            const struct trace *t, uint64_t begin, uint64_t end)
{
    if (end > x->size || memcmp(t->bytes + x->size + begin,
                                x->bytes + x->size + begin, end - begin) != 0)
        REFUSE(m, "C2: what is no result was written");
}

void data_ended(struct model *m, const struct process *p,
                const struct caller *c, const struct trace *t)
{
    struct input *x = &m->inputs[c->input];
    x->held = false;
    if (t->byte_count != 2 * x->size || x->id != p->id) {
        REFUSE(m, "a call ends with another vector");
        return;
    }
    if (!x->in_place && x->size > 0 && memcmp(t->bytes, x->bytes, x->size) != 0)
        REFUSE(m, "C2: a contribution was written");
    if (t->flag != SUCCESS) {
        if (x->size > 0) check_untouched(m, x, t, 0, x->size);
        return;
    }
    const struct roll *r = roll_of(m, p, c->tag, c->number, c->term);
    uint64_t next = 0;
    for (uint32_t i = 0; i < t->part_count && r && !m->wrong; i++) {
        const struct trace_part *part = &t->parts[i];
        uint64_t end = part->begin + part->count;
        if (part->begin != next) REFUSE(m, "A4: a gap before part %u", i);
        next = end;
        if (t->sets[i] != 0)
            check_part(m, r, c, i, t);
        else
            check_untouched(m, x, t, part->begin * c->element,
                            end * c->element);
    }
    if (!r || next * c->element != x->size)
        REFUSE(m, "A4: the parts do not cover the vector");
}
