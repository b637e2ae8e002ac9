/* search.c - the part of the master's driver that orders rings: searches that
 * take their time, and one in the background now and then. */
#include "sim.h"

#include "faults.h"

#include <stdlib.h>
#include <string.h>

static void solve(const struct master_search *q, uint16_t *order, bool *found)
{
    static struct topology_edge edges[SIM_PROCS_MAX * SIM_PROCS_MAX];
    size_t size = topology_search_size(q->n);
    void *memory = malloc(size);
    assert(memory);
    bandwidth_fill(q->edges, q->slots, q->n, q->view, edges);
    struct topology_instance in = {q->n, edges};
    struct topology_options options = {.seed = q->seed, .initial = q->initial};
    struct topology_search *t =
        topology_search_init(memory, size, &in, &options);
    while (topology_search_step(t, 1000)) continue;
    struct topology_result result;
    topology_search_result(t, &result, order);
    *found = result.verdict == TOPOLOGY_FOUND;
    free(memory);
}

bool sim_search(void *user, const struct master_search *q)
{
    struct sim *s = user;
    SIM_CHECK(s, q->n >= 2 && q->n <= SIM_PROCS_MAX, "a world of %u", q->n);
    uint32_t i = 0;
    while (i < SIM_SEARCHES_MAX && s->searches[i].at > 0) i++;
    if (i == SIM_SEARCHES_MAX || sim_pick(s, 20) == 0) return false;
    struct sim_search_job *j = &s->searches[i];
    *j = (struct sim_search_job){.group = q->group, .ticket = q->ticket};
    j->at = s->now + 1 + sim_pick(s, 4 * (uint32_t)PCCL_MS);
    if (!q->background) {
        solve(q, j->order, &j->found);
        sim_coverage.searched++;
        return true;
    }
    /* Any ring suffices to see its installation. */
    j->found = true;
    for (uint32_t k = 0; k < q->n; k++) {
        uint32_t at = sim_pick(s, k + 1);
        j->order[k] = j->order[at];
        j->order[at] = (uint16_t)k;
    }
    return true;
}

bool sim_search_turn(struct sim *s)
{
    for (uint32_t i = 0; i < SIM_SEARCHES_MAX; i++) {
        struct sim_search_job *j = &s->searches[i];
        if (j->at == 0 || j->at > s->now) continue;
        struct master_event e = {.type = MASTER_SEARCHED,
                                 .group = j->group,
                                 .ticket = j->ticket,
                                 .order = j->found ? j->order : NULL};
        j->at = 0;
        SIM_TRACE(s, "search %u ends", j->ticket);
        sim_master_event(s, &e);
        sim_coverage.improved += optimize_has_better(s->master, e.group);
        return true;
    }
    return false;
}
