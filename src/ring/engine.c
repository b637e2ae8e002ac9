/* engine.c - the life of a data plane, and its views. See engine.h. */
#include "op.h"

#include <stdlib.h>
#include <string.h>

bool engine_init(struct engine *e, const struct engine_output *out,
                 uint32_t pool_size, pccl_ns deadline)
{
    e->out = *out;
    e->links.deadline = deadline;
    e->cached = PLAN_CACHED;
    e->many = MANY;
    e->single_copy_world = PLAN_SINGLE_COPY_WORLD_MAX;
    e->links.pool_auto = pool_size == 0;
    e->links.pool_size = pool_size > 0 ? pool_size : 1;
    if (e->links.pool_size > POOL_MAX) e->links.pool_size = POOL_MAX;
    e->tags = calloc(TAGS_MAX, sizeof *e->tags);
    e->links.dirty = calloc(CONNS_MAX / 64, sizeof *e->links.dirty);
    return e->tags && e->links.dirty;
}

void engine_free(struct engine *e)
{
    state_end(e);
    for (uint32_t i = 0; i < e->op_end; i++) engine_release(e, &e->ops[i]);
    links_free(e);
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        if (!e->links.conns[i]) continue;
        pool_give(&e->links.pool, e->links.conns[i]->scratch);
        pool_give(&e->links.pool,
                  e->links.conns[i]->rx_block); /* half a message */
        free(e->links.conns[i]);
        e->links.conns[i] = NULL;
    }
    for (size_t i = 0; i < RESULTS_MAX; i++)
        pool_give(&e->links.pool, e->results[i].bytes);
    pool_give(&e->links.pool, e->fast.own);
    message_free(e);
    pool_trim(&e->links.pool);
    free(e->tags);
    free(e->links.dirty);
}

void engine_install(struct engine *e, const struct engine_view *view)
{
    e->links.epoch = view->epoch;
    e->links.world = view->world;
    e->rank = view->rank;
    e->links.members = view->members;
    e->ids = view->ids;
    e->order = view->order;
    e->ring = view->ring;
    e->mesh = view->mesh;
    e->one_host = view->world > 0 ? view->members[0].host : 0;
    for (uint32_t i = 1; i < view->world; i++) {
        if (view->members[i].host != e->one_host) e->one_host = 0;
    }
    e->has_hierarchy = view->sites && view->mesh && e->one_host == 0;
    if (e->has_hierarchy)
        hierarchy_init(&e->hierarchy, view->sites, view->world, view->rank);
    single_copy_install(e);
    e->links.frozen = false;
    e->fast.known = false;
    e->tag_count = 0; /* entries of older epochs count as free */
    e->tags_reported = false;
    op_drop_results(e);
    conn_resume(e);
}

/* A link on which an operation waits must show life within a deadline; pings
 * see to it, so silence means that the link is dead though both ends live. */
static void check_silence(struct engine *e, uint32_t number)
{
    struct conn *c = e->links.conns[number];
    bool stranger = c->state != CONN_OPEN;
    /* Nobody waits for one more, and giving it up may cost a round. */
    bool more = c->link && c->link->open > 0;
    pccl_ns limit =
        stranger && !more ? e->links.deadline / 2 : e->links.deadline;
    if (e->links.now - c->last_recv < limit) return;
    if (!stranger && c->peer && !message_waits(c->peer)) return;
    if (!stranger && !c->peer && !op_uses_link(e, c->link, NULL) &&
        !state_uses_link(e, c->link))
        return;
    e->out.close(e->out.user, number);
    engine_closed(e, number);
}

void engine_tick(struct engine *e, pccl_ns now)
{
    e->links.now = now;
    for (uint32_t i = 0; i < e->links.conn_end; i++) {
        struct conn *c = e->links.conns[i];
        if (!c || c->state == CONN_FREE) continue;
        if (c->state == CONN_OPEN &&
            now - c->last_sent >= e->links.deadline / 5) {
            c->ping = true;
            e->links.dirty[i / 64] |= (uint64_t)1 << (i % 64);
        }
        check_silence(e, i);
    }
    message_pump(e);
    state_tick(e);
    probe_tick(e);
}

bool engine_has_work(const struct engine *e)
{
    for (uint32_t i = 0; i < e->op_end; i++) {
        enum op_phase phase = e->ops[i].phase;
        if (phase == PHASE_RUNNING || phase == PHASE_COMPLETE) return true;
    }
    return false;
}

bool engine_expects_from(const struct engine *e, const struct op *op,
                         uint32_t number)
{
    const struct conn *c = e->links.conns[number];
    if (!op || !c || c->peer || c->state != CONN_OPEN) return true;
    bool alone = e->op_end == 1;
    for (uint32_t i = 0; i < op->ep_count; i++) {
        const struct endpoint *ep = &op->eps[i];
        if (ep->link == c->link && (!alone || engine_awaits(op, ep)))
            return true;
    }
    return false;
}

void engine_wait_begins(struct engine *e)
{
    e->in_a_row = 0;
}
