/* copy_choice.c - see copy_choice.h. */
#include "copy_choice.h"

#define MIB ((uint64_t)1 << 20)

static uint32_t class_of(size_t size)
{
    uint32_t class = 0;
    while (class + 1 < COPY_CLASSES && size >> (COPY_CLASS_MIN + 1 + class) > 0)
        class ++;
    return class;
}

static enum copy_way best_of(const struct copy_class *k)
{
    uint64_t first = k->cost[COPY_FIRST], second = k->cost[COPY_SECOND];
    bool better = second > 0 && second < first - first / 8;
    return better ? COPY_SECOND : COPY_FIRST;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* A disturbance makes a stretch longer and never shorter. So less counts at
 * once, and more only if it happens again. */
static void learn(struct copy_class *k, enum copy_way way, uint64_t cost)
{
    uint64_t *known = &k->cost[way];
    if (cost == 0) cost = 1;
    if (*known == 0 || cost < *known)
        *known = cost;
    else
        *known += (at_most(cost, 2 * *known) - *known) / 8;
}

static uint64_t usual_time(const struct copy_class *k, uint64_t bytes)
{
    return k->cost[best_of(k)] * bytes / MIB;
}

/* The stretch took so long. */
static void end(struct copy_choice *c, uint64_t time)
{
    struct copy_class *k = &c->classes[c->class];
    c->runs = false;
    if (c->bytes == 0) return;
    uint64_t usual = usual_time(k, c->bytes);
    learn(k, c->way, time * MIB / c->bytes);
    c->way = best_of(k); /* for the rest of the data */
    if (k->stretches < COPY_KNOWN) k->stretches++;
    if (k->cost[COPY_FIRST] > 0 && k->cost[COPY_SECOND] > 0)
        c->skip = (COPY_SAMPLE - 1) * c->bytes;
    if (!c->trial) {
        k->pause -= at_most(k->pause, COPY_SAMPLE * time);
        return;
    }
    time = at_most(time, COPY_NOISE * usual);
    k->factor =
        k->factor == 0 ? 1 : (uint32_t)at_most(2 * k->factor, COPY_PAUSE);
    k->pause = k->factor * time;
    if (time > usual) k->pause += COPY_LOSS * k->factor * (time - usual);
}

enum copy_way copy_best(const struct copy_choice *c, size_t size)
{
    return best_of(&c->classes[class_of(size)]);
}

enum copy_way copy_choose(struct copy_choice *c, size_t size, bool first,
                          pccl_ns (*now)(void))
{
    if (c->runs || !first) return c->way;
    c->class = class_of(size);
    const struct copy_class *k = &c->classes[c->class];
    c->way = best_of(k);
    if (c->skip > 0) return c->way;
    c->trial = k->stretches == COPY_KNOWN && k->pause == 0;
    if (c->trial) c->way = c->way == COPY_FIRST ? COPY_SECOND : COPY_FIRST;
    c->runs = true;
    c->bytes = 0;
    c->since = now();
    return c->way;
}

void copy_moved(struct copy_choice *c, size_t bytes, pccl_ns (*now)(void))
{
    if (!c->runs) {
        c->skip -= at_most(c->skip, bytes);
        return;
    }
    c->bytes += bytes;
    const struct copy_class *k = &c->classes[c->class];
    bool full = c->bytes >= COPY_STRETCH_MAX;
    if (!full && !c->trial) return;
    uint64_t time = (uint64_t)(now() - c->since);
    if (full || time > COPY_LIMIT * usual_time(k, c->bytes)) end(c, time);
}

void copy_over(struct copy_choice *c, pccl_ns now)
{
    if (c->runs) end(c, (uint64_t)(now - c->since));
}
