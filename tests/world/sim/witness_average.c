/* witness_average.c - what the model is told of partial all-reduces, of the
 * samples of a step, and of synchronizations. See witness.h. */
#include "witness.h"

#include "../../../include/pccl.h"
#include "../../../src/link/link.h"

#include <assert.h>
#include <string.h>

static uint64_t bits_of(double weight)
{
    uint64_t bits;
    memcpy(&bits, &weight, sizeof bits);
    return bits;
}

static uint64_t arguments_of(const struct wire_msg *m)
{
    const uint64_t all[] = {m->partial.count,     m->partial.dtype,
                            m->partial.redop,     m->partial.deadline_ms,
                            m->partial.gather_ms, m->partial.evict_after};
    return sim_hash((const uint8_t *)all, sizeof all);
}

void witness_partial(struct trace *t, const struct wire_msg *m)
{
    static uint64_t ids[5];
    static struct trace_part parts[WIRE_PARTS_MAX];
    t->flag = m->partial.word;
    t->number = m->partial.number;
    t->round = t->epoch = 0;
    if (m->type == WIRE_PARTIAL) {
        t->value = m->partial.part;
        t->digest = m->partial.hash;
        if (m->partial.word != PARTIAL_CALL) return;
        t->round = m->partial.version;
        t->digest = arguments_of(m);
        ids[0] = m->partial.count;
        ids[1] = m->partial.deadline_ms;
        ids[2] = m->partial.gather_ms;
        ids[3] = m->partial.evict_after;
        ids[4] = bits_of(m->partial.weight);
        t->ids = ids;
        t->id_count = ARRAY_COUNT(ids);
        return;
    }
    t->size = m->partial.self;
    t->value = m->partial.word == PARTIAL_REFUSE
                   ? m->partial.why
                   : m->partial.contributed + 2u * m->partial.last;
    t->part_count = m->part_count;
    t->parts = parts;
    for (uint32_t i = 0; i < m->part_count; i++) {
        const struct wire_part *x = &m->parts[i];
        parts[i] = (struct trace_part){.begin = x->begin,
                                       .count = x->count,
                                       .hash = x->hash,
                                       .owner = x->owner,
                                       .weight = x->weight,
                                       .contributors = x->contributors};
    }
}

void witness_samples(struct trace *t, const struct wire_msg *m)
{
    t->number = m->samples.step;
    t->digest = m->samples.count;
    t->ids = &m->samples.target;
    t->id_count = 1;
    t->value = m->samples.members;
    t->flag = m->samples.reached;
}

void witness_shared(const struct sim_proc *p, int result, uint64_t revision)
{
    const struct sim_shared *x = &p->shared;
    struct trace t = {.kind = TRACE_SHARED,
                      .process = p->uid,
                      .flag = witness_outcome(result),
                      .ids = &revision,
                      .id_count = 1,
                      .joins = x->liar || x->odd};
    if (!p->sim->witness) return;
    t.digest = sim_hash(x->bytes, x->size);
    witness_tell(p->sim, &t);
}

void witness_made(const struct sim_proc *p, const struct sample_report *r)
{
    struct trace t = {.kind = TRACE_MADE,
                      .process = p->uid,
                      .now = p->session->links->now,
                      .number = r->step,
                      .digest = r->count,
                      .ids = &r->target,
                      .id_count = 1};
    if (p->sim->witness) witness_tell(p->sim, &t);
}

void witness_sum(const struct sim_proc *p, const struct sample_sum *sum)
{
    struct trace t = {.kind = TRACE_SUM,
                      .process = p->uid,
                      .now = p->session->links->now,
                      .number = sum->step,
                      .digest = sum->count,
                      .flag = sum->reached,
                      .joins = sum->known};
    if (p->sim->witness) witness_tell(p->sim, &t);
}

/* Valid until the next call. */
static void write_vectors(struct trace *t, struct witness_vectors v)
{
    static uint8_t bytes[2 * WITNESS_VECTOR_MAX];
    assert(v.size <= WITNESS_VECTOR_MAX);
    memcpy(bytes, v.send, v.size);
    memcpy(bytes + v.size, v.recv, v.size);
    t->bytes = bytes;
    t->byte_count = 2 * v.size;
}

void witness_average(const struct sim_proc *p, const struct partial_request *r,
                     size_t element)
{
    struct trace_name name = {.tag = r->tag};
    struct trace t = {.kind = TRACE_AVERAGE,
                      .process = p->uid,
                      .flag = r->redop == REDOP_AVG ? MEAN_OF_F64 : SUM_OF_U32,
                      .size = (uint32_t)element,
                      .number = bits_of(r->weight),
                      .joins = r->send == r->recv,
                      .names = &name,
                      .name_count = 1};
    struct witness_vectors v = {r->send, r->recv, r->count * element};
    if (!p->sim->witness) return;
    write_vectors(&t, v);
    witness_tell(p->sim, &t);
}

static uint64_t set_of(const struct partial_call *c, uint32_t part)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < c->set_size && i < 8; i++)
        set |= (uint64_t)c->sets[part * c->set_size + i] << 8 * i;
    return set;
}

void witness_averaged(const struct sim_proc *p, uint64_t tag, int result,
                      const struct partial_call *c, struct witness_vectors v)
{
    static struct trace_part parts[WIRE_PARTS_MAX];
    static uint64_t sets[WIRE_PARTS_MAX];
    struct trace_name name = {.tag = tag};
    struct trace t = {.kind = TRACE_AVERAGED,
                      .process = p->uid,
                      .flag = witness_outcome(result),
                      .names = &name,
                      .name_count = 1,
                      .parts = parts,
                      .sets = sets};
    if (!p->sim->witness) return;
    write_vectors(&t, v);
    if (result == pcclSuccess) {
        t.number = c->number;
        t.value = c->contributed;
        t.part_count = t.set_count = c->part_count;
    }
    for (uint32_t i = 0; i < t.part_count; i++) {
        const struct partial_part *x = &c->parts[i];
        sets[i] = set_of(c, i);
        parts[i] = (struct trace_part){
            .begin = x->begin,
            .count = x->count,
            .contributors = x->contributors,
            .weight = x->weight,
            .hash = sim_hash(v.recv + x->begin * c->element,
                             (size_t)(x->count * c->element))};
    }
    witness_tell(p->sim, &t);
}

/* -------------------------------------------------------------- their data */

static void part_frame(const struct sim_proc *p, const struct conn *c,
                       const struct frame *f, enum trace_kind kind)
{
    struct trace_name name = {.tag = f->tag};
    struct trace t = {.kind = (uint8_t)kind,
                      .process = p->uid,
                      .flag = f->flags == PARTIAL_INPUT ? CONTRIBUTION : RESULT,
                      .round = f->seq,
                      .value = (uint32_t)f->digest,
                      .size = f->size,
                      .number = c->link->id,
                      .digest = f->scope,
                      .joins =
                          kind == TRACE_ASKED && f->type == FRAME_PART_DATA,
                      .names = &name,
                      .name_count = 1};
    witness_tell(p->sim, &t);
}

/* An answer that comes twice is that to two questions. */
void witness_stutters(const struct sim_proc *p, const struct conn *c,
                      const uint8_t *head)
{
    struct frame f;
    if (!p->sim->witness || !frame_decode(head, &f)) return;
    if (f.type == FRAME_PART_DATA) part_frame(p, c, &f, TRACE_ASKED);
}

/* A question is answered when its own handler has it, so it is told before. */
static bool question_came(void *user, struct conn *c)
{
    struct sim_proc *p = user;
    const struct frame_route *own = &p->routes[c->rx.type];
    part_frame(p, c, &c->rx, TRACE_ASKED);
    return !own->handler.begin || own->handler.begin(own->user, c);
}

static bool piece_begins(void *user, struct conn *c)
{
    struct sim_proc *p = user;
    const struct frame_route *own = &p->routes[c->rx.type];
    return !own->handler.begin || own->handler.begin(own->user, c);
}

static bool piece_came(void *user, struct conn *c)
{
    struct sim_proc *p = user;
    const struct frame_route *own = &p->routes[c->rx.type];
    part_frame(p, c, &c->rx, TRACE_PIECE);
    return !own->handler.end || own->handler.end(own->user, c);
}

static bool question_ends(void *user, struct conn *c)
{
    struct sim_proc *p = user;
    const struct frame_route *own = &p->routes[c->rx.type];
    return !own->handler.end || own->handler.end(own->user, c);
}

void witness_parts(struct sim_proc *p)
{
    struct links *n = p->session->links;
    if (!p->sim->witness) return;
    struct frame_route *r = n->routes[CONN_OF_LINK];
    p->routes[FRAME_PART_GET] = r[FRAME_PART_GET];
    p->routes[FRAME_PART_DATA] = r[FRAME_PART_DATA];
    r[FRAME_PART_GET].handler.begin = question_came;
    r[FRAME_PART_GET].handler.end = question_ends;
    r[FRAME_PART_DATA].handler.begin = piece_begins;
    r[FRAME_PART_DATA].handler.end = piece_came;
    r[FRAME_PART_GET].user = r[FRAME_PART_DATA].user = p;
}
