/* model_average.h - one partial all-reduce as its master has it, for
 * model_average.c and model_share.c. Sets are of members, by their places in
 * the round. */
#ifndef MODEL_AVERAGE_H
#define MODEL_AVERAGE_H

#include "model_state.h"

static inline uint32_t place_in(const struct average *a, uint64_t id)
{
    uint32_t i = 0;
    while (i < a->count && a->ids[i] != id) i++;
    return i;
}

static inline bool has(uint64_t set, uint32_t i)
{
    return set >> i & 1;
}

/* Rule A1: it is neither dead nor leaving, and its call has not failed. */
static inline bool lives(struct model *m, const struct average *a, uint32_t i)
{
    const struct process *p = process_of(m, a->ids[i]);
    return p && p->standing == MEMBER && !p->leaving && !has(a->failed, i);
}

static inline uint64_t living(struct model *m, const struct average *a)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < a->count; i++)
        set |= (uint64_t)lives(m, a, i) << i;
    return set;
}

static inline uint64_t waiting(struct model *m, const struct average *a)
{
    return living(m, a) & a->called & ~a->ended;
}

static inline bool decided(const struct average *a)
{
    return a->state == SHARED || a->state == DISPUTED;
}

static inline uint32_t bits_of(uint64_t set)
{
    return (uint32_t)__builtin_popcountll(set);
}

/* model_average.c. NULL: there is none. */
struct average *average_of(struct model *m, uint32_t group, uint64_t number);

/* model_share.c: what the master decides, and says. */
bool average_due(struct model *m, const struct average *a);
void average_decides(struct model *m, struct average *a);
void average_gives_up(struct model *m, struct average *a);
bool average_has_all(const struct average *a, uint32_t at);
bool average_gathered(struct model *m, const struct average *a);
uint32_t average_later(const struct model *m, const struct average *a);

#endif
