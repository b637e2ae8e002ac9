/* choose.h - which collective carries out another one best: a gather whose
 * blocks everybody gets, a sum of which each member keeps its part. Those are
 * one message deep where the other way is two, or take the fast path; they cost
 * bytes. This table asks what to run, and algorithm_table.h how. Pure.
 *
 * All members choose alike: the choice depends on the request without the
 * rank. */
#ifndef PCCL_CHOOSE_H
#define PCCL_CHOOSE_H

#include "plan.h"

/* Conditions of both tables. */
enum choice_where {
    WHERE_ANY,
    WHERE_MEMORY,  /* all members share the memory of one host */
    WHERE_BOARDS,  /* they also show each other posts (rule L11) */
    WHERE_ROOM,    /* they also have a processor each */
    WHERE_CROWDED, /* they share memory, and lack one of these */
    WHERE_SOCKETS, /* all are on one host and share no memory */
    WHERE_HOST,    /* all are on one host */
    WHERE_HOSTS,   /* they are on several hosts */
    WHERE_GRID,    /* their pairs in a grid are linked (rule D20) */
    WHERE_SITES,   /* some of them share a site (rule D15) */
};

bool choice_is_where(enum choice_where where, const struct plan_request *r);

/* A row. The first row that applies is taken; without one, a collective is its
 * own way, and a scan transposes the vectors: an all-to-all, and another one
 * back. */
struct detour {
    uint32_t colls, flows; /* BIT(COLL_..), BIT(FLOW_..) */
    enum choice_where where;
    uint32_t world_min, world_max; /* members; 0: any */
    /* What `max` limits. */
    enum detour_of {
        OF_EACH,   /* bytes of a vector or block */
        OF_SHARE,  /* bytes divided by the members */
        OF_OTHERS, /* bytes times the other members */
        OF_ALL,    /* bytes times the members */
        OF_PAIRS   /* bytes times the square of the members */
    } of;
    uint64_t max; /* 0: any */
    enum detour_as {
        AS_ASKED,
        AS_ALL, /* everybody gets all: an all-reduce, of a scatter a broadcast,
                   else an all-gather */
        AS_STAR /* of a scan: to one member, and back from it */
    } as;
    const char *why;
    /* Heading of tests/bench/NOTES.md with the measurement, or NULL. */
    const char *measured;
};

/* Of `r` these count: coll, which may be COLL_SCAN, flow, world, one_host,
 * shared_memory, boards, roomy, and `count` bytes of a vector or block: of what
 * each member keeps of a reduce-scatter. Sets coll and flow to those of the way
 * that is taken. Returns the row, or NULL. */
const struct detour *choose_way(struct plan_request *r);

/* Rows by number, for printing; NULL after the last. */
const struct detour *choose_row(uint32_t i);

#endif
