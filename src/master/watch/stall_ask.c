/* stall_ask.c - asks members for operations that others wait in and that they
 * do not tell about (rule W3). */
#include "stall.h"

#include "wait_graph.h"

/* The operations that somebody waits in, each once. */
struct wanted_list {
    uint32_t count;
    struct {
        uint32_t waiter; /* link */
        const struct wire_wait *wait;
    } entries[MASTER_LINKS_MAX];
};

/* A wait that its member has reported once is most often over soon: it is left
 * out, but for `all`. */
static void gather(const struct master *m, bool all, struct wanted_list *list)
{
    list->count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct peer_report *report = wait_report(m, i);
        for (uint32_t k = 0; report && k < report->wait_count; k++) {
            const struct wire_wait *w = &report->waits[k];
            if (w->kind != WAIT_COLLECTIVE || !w->blocks ||
                (w->age_ms == 0 && !all) || wait_is_repeated(m, i, w))
                continue;
            if (list->count == ARRAY_COUNT(list->entries)) return;
            list->entries[list->count].waiter = i;
            list->entries[list->count++].wait = w;
        }
    }
}

/* Those that the report of this member does not list. True: one of them is not
 * answered. The answers replace those to an earlier question. */
static bool choose(const struct master *m, const struct wanted_list *list,
                   uint32_t link, struct wire_msg *wanted, struct wire_op *ops)
{
    bool open = false;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct wire_wait *w = list->entries[i].wait;
        enum wait_part part = wait_part_of(m, link, list->entries[i].waiter, w);
        if (part == WAIT_PART_NONE || part == WAIT_PART_SAME) continue;
        if (wanted->op_count == WIRE_WANTED_MAX) break;
        open |= part == WAIT_PART_UNKNOWN;
        ops[wanted->op_count++] =
            (struct wire_op){.scope = w->scope, .tag = w->tag, .seq = w->seq};
    }
    return open;
}

void stall_ask(struct master *m, bool all)
{
    struct wanted_list list;
    gather(m, all, &list);
    for (uint32_t i = 0; i < m->link_end && (all || list.count > 0); i++) {
        const struct master_peer *p = &m->peers[i];
        struct wire_op ops[WIRE_WANTED_MAX];
        struct wire_msg wanted = {.type = WIRE_WANTED, .ops = ops};
        if (!wait_is_member(p) || wait_is_silent(m, i)) continue;
        wanted.epoch = m->groups[p->group].epoch;
        if (choose(m, &list, i, &wanted, ops) || all)
            master_send(m, i, &wanted);
    }
}
