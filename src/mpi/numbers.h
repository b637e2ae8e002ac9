/* numbers.h - argument arrays of int or 64-bit elements. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include "facade.h"

/* An argument array of either width. */
struct numbers {
    const int *narrow;
    const long *wide;
};

static inline struct numbers numbers_int(const int *p)
{
    return (struct numbers){p, NULL};
}
static inline struct numbers numbers_MPI_Count(const MPI_Count *p)
{
    return (struct numbers){NULL, p};
}
static inline struct numbers numbers_MPI_Aint(const MPI_Aint *p)
{
    return (struct numbers){NULL, p};
}
static inline bool numbers_null(struct numbers n)
{
    return !n.narrow && !n.wide;
}
static inline long numbers_at(struct numbers n, int i)
{
    return n.narrow ? n.narrow[i] : n.wide[i];
}

#endif
