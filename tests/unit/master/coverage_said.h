/* coverage_said.h - what members say in a partial all-reduce to a coordinator,
 * and as text what it says to them. */
#ifndef CORE_COVERAGE_SAID_H
#define CORE_COVERAGE_SAID_H

#include "founded.h"

#include "../../../src/master/coverage/coverage.h"

#include <inttypes.h>

enum { DEADLINE = 800 }; /* ms, of a round */

static const char *const orders[] = {"plan", "fold",    "report", "fetch",
                                     "end",  "release", "refuse"};

static inline void say_set(const struct wire_msg *m, uint32_t row,
                           uint32_t members)
{
    for (uint32_t i = 0; i < members; i++) {
        if (m->sets[row * m->set_size + i / 8] >> i % 8 & 1) say("%u", i);
    }
}

static inline void say_parts(const struct wire_msg *m)
{
    bool plan = m->partial.word == PARTIAL_PLAN;
    bool end = m->partial.word == PARTIAL_END;
    uint32_t members = plan ? m->id_count / 2 : m->id_count;
    for (uint32_t i = 0; i < m->part_count; i++) {
        const struct wire_part *p = &m->parts[i];
        say(" %" PRIu64 "+%" PRIu64, p->begin, p->count);
        if (plan) say("@%u", p->owner);
        if (end && p->contributors == 0) say(" missing");
        if (plan || p->contributors == 0) continue;
        say(end ? " of " : " at ");
        say_set(m, i, members);
        if (end) say(" (%g)", p->weight);
    }
    if (!plan) return;
    say(" called ");
    for (uint32_t i = 0; i < members; i++)
        if (m->ids[2 * i + 1] != 0) say("%u", i);
    if (m->sets[0] != 0) say(" gone ");
    say_set(m, 0, members);
}

static inline void on_send(void *user, const uint32_t *links, uint32_t count,
                           const struct wire_msg *m)
{
    (void)user;
    if (m->type != WIRE_COVERAGE) return;
    say("%s ", orders[m->partial.word]);
    for (uint32_t i = 0; i < count; i++) say("%u", links[i]);
    if (m->partial.word == PARTIAL_REFUSE) say(" %u", m->partial.why);
    say_parts(m);
    if (m->partial.word == PARTIAL_END)
        say("%s%s", m->partial.contributed ? "" : " late",
            m->partial.last ? " last" : "");
    say("\n");
}

static inline int setup(void **state)
{
    (void)state;
    struct master_config c = {.out = {.send = on_send, .close = say_close},
                              .deadline = 1000 * PCCL_S,
                              .quorum = 3};
    return found(&c);
}

static uint32_t calls; /* of anybody: ascending for each */

static inline struct wire_msg call_of(uint64_t tag, double weight)
{
    struct wire_msg m = {.type = WIRE_PARTIAL};
    m.partial.word = PARTIAL_CALL;
    m.partial.tag = tag;
    m.partial.version = ++calls;
    m.partial.count = 12;
    m.partial.dtype = 10;
    m.partial.redop = 1;
    m.partial.weight = weight;
    m.partial.deadline_ms = DEADLINE;
    return m;
}

/* Weights are 1, 2, 4. */
static inline void call(uint32_t link)
{
    struct wire_msg m = call_of(5, 1u << link);
    step(MASTER_RECEIVED, link, &m);
}

static inline uint64_t number(void)
{
    const struct coverage_round *r = master->groups[0].averages;
    while (r && r->next) r = r->next;
    return r ? r->number : 0;
}

static inline void folded_by(uint32_t link, uint32_t part, uint8_t set,
                             uint64_t of)
{
    struct wire_msg m = {.type = WIRE_PARTIAL, .set_count = 1, .set_size = 1};
    m.partial.word = PARTIAL_FOLDED;
    m.partial.number = of;
    m.partial.part = part;
    m.partial.hash = 100 + part;
    m.sets = &set;
    step(MASTER_RECEIVED, link, &m);
}

static inline void folded(uint32_t link, uint32_t part, uint8_t set)
{
    folded_by(link, part, set, number());
}

static inline void holds_in(uint32_t link, const char *parts, uint64_t of)
{
    uint64_t ids[16];
    struct wire_msg m = {.type = WIRE_PARTIAL, .ids = ids};
    m.partial.word = PARTIAL_HOLDS;
    m.partial.number = of;
    for (; *parts; parts++) {
        ids[m.id_count++] = (uint64_t)(*parts - '0');
        ids[m.id_count++] = 100 + (uint64_t)(*parts - '0');
    }
    step(MASTER_RECEIVED, link, &m);
}

static inline void holds(uint32_t link, const char *parts)
{
    holds_in(link, parts, number());
}

static inline void failed(uint32_t link, uint64_t of)
{
    struct wire_msg m = {.type = WIRE_PARTIAL};
    m.partial.word = PARTIAL_FAILED;
    m.partial.number = of;
    step(MASTER_RECEIVED, link, &m);
}

/* So many eighths of the deadline later. */
static inline void later(int eighths)
{
    now += eighths * DEADLINE / 8 * PCCL_MS;
    step(MASTER_TICK, 0, NULL);
}

/* The first two of three members, while the third one is late. */
static inline void two_average(void)
{
    call(0);
    call(1);
    later(2);
    folded(0, 0, 3);
    folded(1, 1, 3);
    holds(0, "1");
    holds(1, "0");
}

#endif
