/* dispute.c - an operation whose members disagree on its arguments: asks for
 * their arguments in the flush, and keeps them. Rule F9 of AGREEMENT.md. */
#include "master.h"

#include <stdlib.h>
#include <string.h>

void dispute_begin(struct master_group *g, const struct wire_op *name,
                   uint64_t reporter, uint64_t other)
{
    dispute_end(g);
    g->dispute = (struct master_dispute){
        .open = true, .op = *name, .pair = {reporter, other}};
}

static void forget(struct master_dispute *d)
{
    for (uint32_t i = 0; i < d->count; i++)
        free((void *)(uintptr_t)d->reports[i].args.named);
    d->count = 0;
}

/* Answers to an earlier flush of the epoch may be of members that are gone. */
void dispute_ask(struct master_group *g, struct wire_msg *flush)
{
    forget(&g->dispute);
    flush->flush.disputed = g->dispute.open;
    flush->flush.op = g->dispute.op;
    memcpy(flush->flush.pair, g->dispute.pair, sizeof g->dispute.pair);
}

/* The text lacks what there is no memory for. */
static void keep(struct master_dispute *d,
                 const struct master_described *report)
{
    uint32_t size = report->args.named_size;
    if (d->count == d->room) {
        uint32_t room = d->room > 0 ? 2 * d->room : 16;
        struct master_described *more =
            realloc(d->reports, room * sizeof *d->reports);
        if (!more) return;
        d->reports = more;
        d->room = room;
    }
    struct master_described *kept = &d->reports[d->count];
    uint8_t *named = size > 0 ? malloc(size) : NULL;
    *kept = *report;
    kept->args.named = named;
    kept->args.named_size = named ? size : 0;
    if (named) memcpy(named, report->args.named, size);
    d->count++;
}

void dispute_answer(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    const struct master_peer *p = &m->peers[link];
    struct master_dispute *d = &m->groups[p->group].dispute;
    bool lists = false;
    for (uint32_t i = 0; i < msg->op_count && d->open; i++)
        lists |= wire_same_op(&msg->ops[i], &d->op);
    if (!lists || !msg->flushed.described) return;
    const struct master_described report = {.link = link,
                                            .rank = p->rank,
                                            .id = p->info.id,
                                            .args = msg->flushed.args};
    keep(d, &report);
}

void dispute_end(struct master_group *g)
{
    struct master_dispute *d = &g->dispute;
    forget(d);
    free(d->reports);
    *d = (struct master_dispute){0};
}
