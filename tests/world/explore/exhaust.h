/* exhaust.h - all universes that can be reached from one, breadth first. */
#ifndef EXPLORE_EXHAUST_H
#define EXPLORE_EXHAUST_H

#include "universe.h"

struct exhaust_limits {
    uint64_t states;  /* 0: none */
    uint64_t seconds; /* 0: none */
    uint64_t memory;  /* bytes, 0: none */
};

enum exhaust_end {
    SEARCH_COMPLETE,
    SEARCH_LIMITED, /* a limit was met */
    SEARCH_FOUND,   /* a violation: exhaust_print_path() */
};

struct exhaust_result {
    enum exhaust_end end;
    uint64_t states, edges, ends, frontier;
    uint64_t outcomes; /* ends that programs can tell from each other */
    uint32_t depth;    /* of the last state that was looked at */
    uint32_t longest;  /* steps of time that a call waited after a fault */
    uint64_t memory;
    double seconds;
    char error[512];
};

struct exhaust_result exhaust_run(const struct universe *start,
                                  const struct exhaust_limits *limits);

/* The choices from the start to the violation, each with what it means, and as
 * one line for a replay. */
void exhaust_print_path(const struct universe *start);

/* Makes these choices. False: one of them violates a condition; or they lead to
 * where nothing happens any more, and that is wrong. */
bool exhaust_replay(const struct universe *start, const char *path, bool print);

/* The next state in a fixed order of choices, without programs and faults:
 * false if nothing happens. */
bool exhaust_drain(struct universe *w);

bool exhaust_is_fault(struct choice c);

#endif
