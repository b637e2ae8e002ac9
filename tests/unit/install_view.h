/* install_view.h - puts a view of some members into force in an engine. */
#ifndef INSTALL_VIEW_H
#define INSTALL_VIEW_H

#include "../../src/link/link.h"
#include "../../src/ring/ring.h"

#include <stdlib.h>
#include <string.h>

/* A view of members that are all linked. */
static inline struct view *view_of(uint32_t epoch,
                                   const struct wire_member *list,
                                   uint32_t size, uint32_t rank)
{
    struct view *v = view_new(size, 0, 0);
    if (!v) abort();
    if (size > 0) memcpy(v->members, list, size * sizeof *list);
    view_index(v);
    v->epoch = epoch;
    v->rank = rank;
    v->ring = v->mesh = true;
    v->order = v->sites = NULL;
    return v;
}

static inline void install_view(struct engine *e, uint32_t epoch,
                                const struct wire_member *list, uint32_t size,
                                uint32_t rank)
{
    struct view *v = view_of(epoch, list, size, rank);
    engine_install(e, v);
    view_release(v);
}

/* The view in force, for a test that changes it as if it had been so from the
 * start. */
static inline struct view *view_in(struct engine *e)
{
    return (struct view *)(uintptr_t)engine_links(e)->view;
}

#endif
