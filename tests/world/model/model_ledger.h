/* model_ledger.h - a partial all-reduce as a list of facts, for model_ledger.c
 * (what the master hears) and model_owed.c (what it owes to whom). */
#ifndef MODEL_LEDGER_H
#define MODEL_LEDGER_H

#include "model_state.h"

/* What the master owes a member, as bits; by enum trace_order. */
#define OWED(order) (1u << (order))

static inline bool has(uint64_t set, uint32_t i)
{
    return set >> i & 1;
}

/* Rule A1. */
static inline bool is_here(struct model *m, const struct ledger *r, uint32_t i)
{
    const struct process *p = process_of(m, r->members[i].id);
    return p && p->standing == MEMBER && !p->leaving;
}

static inline bool is_gone(struct model *m, const struct ledger *r, uint32_t i)
{
    return r->members[i].failed || !is_here(m, r, i);
}

/* From CALL to END or REFUSE. */
static inline bool waits(struct model *m, const struct ledger *r, uint32_t i)
{
    const struct attendee *x = &r->members[i];
    return x->called && !x->end && !x->refused && !is_gone(m, r, i);
}

/* Rules A7, A11: it has that part. One that is refused drops it. */
static inline bool holds(const struct ledger *r, uint32_t part, uint32_t i)
{
    const struct portion *s = &r->portions[part];
    return s->folded && s->named[i].any && s->named[i].hash == s->hash &&
           !r->members[i].refused;
}

static inline uint32_t seat_of(const struct ledger *r, uint64_t id)
{
    uint32_t i = 0;
    while (i < r->member_count && r->members[i].id != id) i++;
    return i;
}

static inline bool is_of(const struct ledger *r, const struct process *p,
                         uint64_t tag)
{
    return r->group == p->group && r->tag == tag;
}

/* model_ledger.c. NULL: there is none. */
struct ledger *ledger_of(struct model *m, const struct process *p,
                         uint64_t number);
struct habit *habit_of(struct model *m, struct process *p, uint64_t tag);
void ledger_lapses(struct model *m, const struct process *p,
                   const struct ledger *r);
void ledger_missed(struct model *m, const struct process *p, uint64_t tag);
bool anybody_waits(struct model *m, const struct ledger *r);

#endif
