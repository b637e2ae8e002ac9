/* algorithm_table.h - which algorithm a collective takes. Pure.
 *
 * All members choose alike: the choice depends on the request, without the
 * rank, and on what PCCL_ALGORITHM forces, which the digest of an operation
 * holds. */
#ifndef PCCL_ALGORITHM_TABLE_H
#define PCCL_ALGORITHM_TABLE_H

#include "algorithm.h"

enum choice_where {
    WHERE_ANY,
    WHERE_MEMORY,  /* all members share the memory of one host */
    WHERE_SOCKETS, /* ... are on one host, and share none */
    WHERE_HOSTS,   /* ... are on several hosts */
    WHERE_SITES,   /* ... of which some share a site (rule D15) */
};

/* A row: the first one that applies, and whose algorithm fits, is taken. */
struct choice {
    uint32_t colls; /* BIT(COLL_..) */
    enum choice_where where;
    uint64_t bytes_max; /* of the vector or block; 0: any */
    uint64_t total_max; /* ... times the other members; 0: any */
    uint32_t world_max; /* members; 0: any */
    const struct algorithm *algorithm;
    const char *why;
    const char *measured; /* where: a heading of tests/bench/NOTES.md */
};

const struct algorithm *algorithm_choose(const struct plan_request *r);

/* The row that is taken where nothing is forced. */
const struct choice *algorithm_row_of(const struct plan_request *r);

/* Of the table, for those who print it: rows by number, NULL after the last. */
const struct choice *algorithm_row(uint32_t i);
/* All algorithms but "local", by number, NULL after the last. */
const struct algorithm *algorithm_by_number(uint32_t i);

/* What PCCL_ALGORITHM says: NAME, or COLLECTIVE:NAME, or several of them with
 * commas; NAME alone is for all collectives that have it. Sets forced[coll] to
 * names that stay, or NULL. False: not understood. */
bool algorithm_parse(const char *text, const char *forced[COLL_COUNT]);
/* Why r->forced cannot be taken, in words; NULL: it can, or none is forced. */
const char *algorithm_unfit(const struct plan_request *r);
/* Names for it, each once, by number; NULL after the last. */
const char *algorithm_name(uint32_t i);
/* "allreduce", as PCCL_ALGORITHM has it. */
const char *algorithm_coll_name(enum plan_coll coll);

#endif
