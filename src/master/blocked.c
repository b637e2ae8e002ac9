/* blocked.c - finds members that use a tag in scopes that wait for each other
 * (rule V6).
 *
 * A member has a tag in flight in one scope at a time. While it runs operation
 * R it cannot launch operation L of the same tag, of which it has received a
 * frame: L waits for R, which the member reports. A circle of such facts is a
 * disagreement of scopes that no member can end. */
#include "master.h"

#include <stdlib.h>
#include <string.h>

void blocked_clear(struct master_group *g)
{
    free(g->waits);
    g->waits = NULL;
    g->wait_count = 0;
}

/* Replaces the facts of a member by those of its report. */
static bool replace(struct master_group *g, uint32_t rank,
                    const struct wire_msg *msg)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->wait_count; i++) {
        if (g->waits[i].rank != rank) g->waits[kept++] = g->waits[i];
    }
    g->wait_count = kept;
    uint32_t more = msg->op_count / 2;
    struct master_wait *waits =
        realloc(g->waits, ((size_t)kept + more + 1) * sizeof *waits);
    if (!waits) return false;
    g->waits = waits;
    for (uint32_t i = 0; i < more; i++)
        waits[g->wait_count++] = (struct master_wait){
            .runs = msg->ops[2 * i], .lacks = msg->ops[2 * i + 1], rank};
    return true;
}

/* One member lacks the operation that another one runs, or has ended with an
 * error (V6g), or any operation of that tag that met a loss of a later epoch
 * than its program knows (V6f). */
static bool is_meant(const struct wire_op *runs, const struct wire_op *lacks)
{
    bool lost = runs->state == OP_RETURNED, ended = runs->state == OP_ENDED;
    if (lost != (lacks->state == OP_RETURNED)) return false;
    if (ended != (lacks->state == OP_KEPT)) return false;
    return lost ? runs->tag == lacks->tag && runs->seq > lacks->seq
                : wire_same_op(runs, lacks);
}

/* Whether the fact number `first` is in a circle; then `from` of each of them
 * is the number of the one before it. */
static bool finds_circle(struct master_group *g, uint32_t first)
{
    struct master_wait *w = g->waits;
    for (uint32_t i = 0; i < g->wait_count; i++) w[i].from = MASTER_NO_OP;
    bool changed = true;
    while (changed && w[first].from == MASTER_NO_OP) {
        changed = false;
        for (uint32_t i = 0; i < g->wait_count; i++) {
            for (uint32_t k = 0; k < g->wait_count && w[i].from == MASTER_NO_OP;
                 k++) {
                bool known = k == first || w[k].from != MASTER_NO_OP;
                if (!known || !is_meant(&w[k].runs, &w[i].lacks)) continue;
                w[i].from = k;
                changed = true;
            }
        }
    }
    return w[first].from != MASTER_NO_OP;
}

/* Rule V6f: what has ended is in no list, so the operations that wait for it
 * are named here. Both ends must be in the scope. */
static void end_misplaced(struct master_group *g, uint32_t first)
{
    uint32_t i = first;
    do {
        const struct master_wait *w = &g->waits[i];
        i = w->from;
        if (w->lacks.state != OP_RETURNED) continue;
        round_force(g, w->rank, g->waits[i].rank, &w->runs, VERDICT_MISPLACED);
    } while (i != first);
}

/* All facts of a circle hold at the time of the last report, however old they
 * are: an operation that a member lacks cannot end, so neither does the next
 * one. The lists of the flush show all that wait for each other, and prove it
 * (crossed.c). */
void blocked_reported(struct master *m, uint32_t link,
                      const struct wire_msg *msg)
{
    const struct master_peer *p = &m->peers[link];
    struct master_group *g = &m->groups[p->group];
    if (g->phase != GROUP_OPEN || msg->epoch != g->epoch) return;
    if (!replace(g, p->rank, msg)) return; /* it reports again */
    for (uint32_t i = 0; i < g->wait_count && !g->restart; i++) {
        if (g->waits[i].rank != p->rank || !finds_circle(g, i)) continue;
        end_misplaced(g, i);
        g->broken_at = m->now;
        g->restart = true;
    }
}
