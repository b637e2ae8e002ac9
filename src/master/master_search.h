/* master_search.h - the thread in which rings are searched.
 *
 * One thread for all groups, so that the master's loop never waits: searches
 * that somebody waits for come first, and the one in the background goes on
 * when there are none. The ring found is a function of the search and its
 * seed alone, as steps are counted and not the time. */
#ifndef PCCL_MASTER_SEARCH_H
#define PCCL_MASTER_SEARCH_H

#include "master.h"

#include <ev.h>

struct searcher;

struct search_answer {
    uint32_t group, ticket;
    const uint16_t *order; /* NULL: none was found; borrowed for the call */
};

/* `found` is called in the loop, once per search, and for each better ring of
 * one in the background. NULL: out of memory or descriptors. No thread is
 * started yet. */
struct searcher *searcher_open(struct ev_loop *loop, void *user,
                               void (*found)(void *user,
                                             const struct search_answer *a));

/* False: out of memory or threads; nobody is told. A new search of a group
 * ends its search in the background. */
bool searcher_begin(struct searcher *s, const struct master_search *search);

/* Gives up what is under way; waits for a slice of it at most. */
void searcher_close(struct searcher *s);

#endif
