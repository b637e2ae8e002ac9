/* coverage_state.c - which rounds the shared state of a group has (rule A14),
 * for the vote on it: what each member says, and then what the elected one has
 * said. */
#include "coverage.h"

#include <stdlib.h>
#include <string.h>

/* What others than this member have said, or what it alone has. */
static void keep(struct master_group *g, uint64_t id, bool own)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->said_count; i++) {
        if ((g->said[i].id == id) == own) g->said[kept++] = g->said[i];
    }
    g->said_count = kept;
}

void coverage_said(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    struct master_group *g = &m->groups[p->group];
    uint32_t count = msg->id_count / 2;
    keep(g, p->info.id, false);
    if (msg->id_count % 2 != 0 || count > WIRE_TAGS_MAX) {
        master_drop(m, link, "its state has rounds that cannot be");
        return;
    }
    if (count == 0) return;
    struct master_said *said =
        realloc(g->said, (g->said_count + count) * sizeof *said);
    if (!said) {
        master_drop(m, link, "the coordinator is out of memory");
        return;
    }
    g->said = said;
    for (uint32_t i = 0; i < count; i++)
        said[g->said_count++] =
            (struct master_said){.id = p->info.id,
                                 .tag = msg->ids[2 * i],
                                 .number = msg->ids[2 * i + 1]};
}

void coverage_elected(struct master_group *g, uint64_t id)
{
    keep(g, id, true);
}

uint32_t coverage_in_state(const struct master_group *g,
                           uint64_t ids[2 * WIRE_TAGS_MAX])
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < g->said_count; i++) {
        ids[end++] = g->said[i].tag;
        ids[end++] = g->said[i].number;
    }
    return end;
}

void coverage_said_clear(struct master_group *g)
{
    free(g->said);
    g->said = NULL;
    g->said_count = 0;
}
