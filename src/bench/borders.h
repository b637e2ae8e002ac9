/* borders.h - sizes on both sides of each border of the table of algorithms. */
#ifndef PCCL_BORDERS_H
#define PCCL_BORDERS_H

#include "../ring/algorithm_table.h"

enum { BORDERS_MAX = 64 };

/* Fills in ascending sizes in bytes, multiples of `unit`: 0, one unit, the
 * largest size within each limit that a row of the table has for this
 * collective at this place and in this world, and the next size above it; the
 * same around the smallest and largest segment of a transfer; twice the
 * largest. Returns their number. */
size_t borders_find(enum plan_coll coll, enum choice_where where,
                    uint32_t world, uint64_t unit, uint64_t sizes[BORDERS_MAX]);

#endif
