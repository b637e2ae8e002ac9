/* stall_ask.c - asks members for operations that others wait in and that they
 * do not tell about (rule W3). */
#include "stall.h"

#include "wait_graph.h"

#include <stdlib.h>

/* The questions to each member, by link. */
struct questions {
    const struct wait_graph *graph;
    uint32_t at; /* the operation at hand */
    struct question {
        bool open; /* one of them is not answered */
        uint32_t count;
        uint32_t ops[WIRE_WANTED_MAX]; /* of the graph */
    } of[MASTER_LINKS_MAX];
};

/* Those that the report of this member does not list. The answers replace those
 * to an earlier question. False: it is asked for as many as can be. */
static bool add(void *user, uint32_t link)
{
    struct questions *all = user;
    struct question *q = &all->of[link];
    enum wait_part part = wait_part(all->graph, link);
    if (part == WAIT_PART_NONE || part == WAIT_PART_SAME) return true;
    q->open |= part == WAIT_PART_UNKNOWN;
    q->ops[q->count++] = all->at;
    return q->count < WIRE_WANTED_MAX;
}

static void send(struct master *m, uint32_t link, const struct wait_graph *g,
                 const struct question *q)
{
    struct wire_op ops[WIRE_WANTED_MAX];
    struct wire_msg wanted = {.type = WIRE_WANTED, .ops = ops};
    wanted.epoch = m->groups[m->peers[link].group].epoch;
    for (; q && wanted.op_count < q->count; wanted.op_count++) {
        const struct wire_wait *w = g->ops[q->ops[wanted.op_count]].wait;
        ops[wanted.op_count] =
            (struct wire_op){.scope = w->scope, .tag = w->tag, .seq = w->seq};
    }
    master_send(m, link, &wanted);
}

/* A wait that its member has reported once is most often over soon: it is left
 * out, but for `all`. */
void stall_ask(struct master *m, bool all)
{
    struct wait_graph *g = wait_graph_new(m);
    struct questions *list = NULL;
    if (g && g->op_count > 0) list = calloc(1, sizeof *list);
    for (uint32_t i = 0; list && i < g->op_count; i++) {
        list->graph = g;
        list->at = i;
        if (g->ops[i].wait->age_ms > 0 || all)
            wait_graph_visit(g, &g->ops[i], add, list);
    }
    for (uint32_t i = 0; i < m->link_end && (list || all); i++) {
        const struct question *q = list ? &list->of[i] : NULL;
        if (!wait_is_member(&m->peers[i]) || wait_is_silent(m, i)) continue;
        if (all || q->open) send(m, i, g, q);
    }
    free(list);
    wait_graph_free(g);
}
