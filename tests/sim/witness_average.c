/* witness_average.c - what the model is told of partial all-reduces, and of the
 * samples of a step. See witness.h. */
#include "witness.h"

#include "../../include/pccl.h"

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

void witness_average(const struct sim_proc *p, uint64_t tag)
{
    struct trace_name name = {.tag = tag};
    struct trace t = {.kind = TRACE_AVERAGE,
                      .process = p->uid,
                      .names = &name,
                      .name_count = 1};
    if (p->sim->witness) witness_tell(p->sim, &t);
}

static uint64_t set_of(const struct partial_call *c, uint32_t part)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < c->set_size && i < 8; i++)
        set |= (uint64_t)c->sets[part * c->set_size + i] << 8 * i;
    return set;
}

void witness_averaged(const struct sim_proc *p, uint64_t tag, int result,
                      const struct partial_call *c, const uint8_t *out)
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
            .hash = sim_hash(out + x->begin * c->element,
                             (size_t)(x->count * c->element))};
    }
    witness_tell(p->sim, &t);
}
