/* algorithm_table.h - chooses the algorithm of a collective. Pure.
 *
 * All members choose alike: the choice depends on the request without the rank,
 * and on PCCL_ALGORITHM, which is part of the digest of an operation. */
#ifndef PCCL_ALGORITHM_TABLE_H
#define PCCL_ALGORITHM_TABLE_H

#include "algorithm.h"
#include "choose.h"

/* A row. The first row that applies, and whose algorithm fits, is taken. */
struct choice {
    uint32_t colls; /* BIT(COLL_..) */
    enum choice_where where;
    enum plan_flow flow; /* FLOW_ALL: any */
    uint64_t bytes_max;  /* of the vector or block; 0: any */
    uint64_t total_max;  /* of the vectors of all others; 0: any */
    uint32_t world_min;  /* members at least */
    uint32_t world_max;  /* members at most; 0: any */
    const struct algorithm *algorithm;
    const char *why;
    /* Where tests/bench/NOTES.md has the figures. */
    const char *measured;
};

const struct algorithm *algorithm_choose(const struct plan_request *r);

/* Chooses as algorithm_choose() does. For more bytes of a vector or block, up
 * to *most of them, the choice is this one as well, if the rest of the request
 * is equal. */
const struct algorithm *algorithm_choose_range(const struct plan_request *r,
                                               uint64_t *most);

/* Returns the row that is taken if no algorithm is forced. */
const struct choice *algorithm_row_of(const struct plan_request *r);

/* Tells what algorithm_choose() takes and why; the texts are those of
 * pccl-bench --algorithms. */
void algorithm_explain(const struct plan_request *r,
                       struct plan_reason *reason);

/* Rows of the table by number, for printing; NULL after the last. */
const struct choice *algorithm_row(uint32_t i);
/* All algorithms but "local", by number, NULL after the last. */
const struct algorithm *algorithm_by_number(uint32_t i);

/* Parses PCCL_ALGORITHM: NAME, or COLLECTIVE:NAME, or several of them with
 * commas. NAME alone applies to all collectives that have it. Sets forced[coll]
 * to static names or NULL. False: not understood. */
bool algorithm_parse(const char *text, const char *forced[COLL_COUNT]);
/* What to use in the place of one that is not understood any more, or NULL. */
const char *algorithm_gone(const char *text);
/* Returns why r->forced cannot be used, in words. NULL: it can, or none is
 * forced. */
const char *algorithm_unfit(const struct plan_request *r);
/* Names for PCCL_ALGORITHM, each once, by number; NULL after the last. */
const char *algorithm_name(uint32_t i);
/* Name of a collective in PCCL_ALGORITHM, as "allreduce". */
const char *algorithm_coll_name(enum plan_coll coll);

#endif
