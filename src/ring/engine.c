/* engine.c - the life of a data plane, and its views. See engine.h. */
#include "op.h"

#include <stdlib.h>

bool engine_init(struct engine *e, const struct driver *driver,
                 const struct engine_events *events, uint32_t pool_size,
                 pccl_ns deadline)
{
    e->out = *events;
    e->cached = PLAN_CACHED;
    e->many = MANY_OPS;
    e->input_large = INPUT_LARGE;
    e->input_block = INPUT_BLOCK;
    e->sums_least = SUMS_LEAST;
    e->sums_looks = SUMS_LOOKS;
    e->pull_least = PULL_LEAST;
    e->single_copy_world = HOST_MESH_MAX;
    op_use_links(e);
    e->tags = calloc(TAGS_MAX, sizeof *e->tags);
    return links_init(&e->links, driver, pool_size, deadline) && e->tags;
}

void engine_free(struct engine *e)
{
    for (uint32_t i = 0; i < e->op_end; i++) engine_release(e, &e->ops[i]);
    for (size_t i = 0; i < RESULTS_MAX; i++)
        pool_give(&e->links.pool, e->results[i].bytes);
    pool_give(&e->links.pool, e->fast.own);
    links_free(&e->links);
    links_free_pool(&e->links);
    free(e->tags);
}

void engine_install(struct engine *e, const struct view *view)
{
    links_install(&e->links, view);
    e->has_hierarchy = view->sites && view->mesh && view->one_host == 0;
    if (e->has_hierarchy)
        hierarchy_init(&e->hierarchy, view->sites, view->size, view->rank);
    single_copy_install(e);
    e->fast.known = false;
    e->tag_count = 0; /* entries of older epochs count as free */
    e->tags_reported = false;
    op_drop_results(e);
    conn_resume(&e->links);
}

void engine_tick(struct engine *e, pccl_ns now)
{
    links_tick(&e->links, now);
}

bool engine_has_work(const struct engine *e)
{
    for (uint32_t i = 0; i < e->op_end; i++) {
        enum op_phase phase = e->ops[i].phase;
        if (phase == PHASE_RUNNING || phase == PHASE_COMPLETE) return true;
    }
    return false;
}

void engine_expect(const struct engine *e, const struct op *op, uint64_t *set)
{
    bool alone = e->op_end == 1;
    for (uint32_t i = 0; i < op->ep_count; i++) {
        const struct endpoint *ep = &op->eps[i];
        if (alone && !engine_awaits(op, ep)) continue;
        for (const struct conn *c = ep->link->conns; c; c = c->next)
            set[c->number / 64] |= (uint64_t)1 << (c->number % 64);
    }
}

void engine_wait_begins(struct engine *e)
{
    e->in_a_row = 0;
}
