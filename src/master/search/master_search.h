/* master_search.h - a thread that searches rings.
 *
 * One thread for all groups, so that the master's loop never waits. Awaited
 * searches come first; background searches run when there are none. The result
 * depends only on the search and its seed, because the search is limited by
 * steps, not by time. */
#ifndef PCCL_MASTER_SEARCH_H
#define PCCL_MASTER_SEARCH_H

#include "../master.h"

#include <ev.h>

struct searcher;

struct search_answer {
    uint32_t group, ticket;
    const uint16_t *order; /* NULL: no ring found; borrowed for the call */
};

/* `found` is called in the loop: once per search, and for each better ring of a
 * background search. NULL: out of memory or descriptors. The thread starts with
 * the first search. */
struct searcher *searcher_open(struct ev_loop *loop, void *user,
                               void (*found)(void *user,
                                             const struct search_answer *a));

/* False: out of memory or threads; `found` is not called. A new search of a
 * group ends the background search of that group. */
bool searcher_begin(struct searcher *s, const struct master_search *search);

/* Cancels all searches; waits for one slice at most. */
void searcher_close(struct searcher *s);

#endif
