/* link_patience.c - time that does not count against other members, and silent
 * links. See link.h; rules M10c and M12, W1. */
#include "link.h"

static void forgive(struct links *n, pccl_ns *time, pccl_ns by)
{
    *time = n->now - *time > by ? *time + by : n->now;
}

void links_begin(struct links *n, pccl_ns now)
{
    n->now = now;
}

/* Rule M12: if no tick came for more than two of them, this member slept, and
 * what others sent meanwhile may not be read yet. */
void links_set_now(struct links *n, pccl_ns now)
{
    pccl_ns tick = PCCL_TIME_OF_TICK(n->deadline);
    pccl_ns slept = now - n->now - tick;
    n->now = now;
    if (slept <= tick) return;
    n->late += slept;
    for (uint32_t i = 0; i < n->conn_end; i++)
        if (n->conns[i]) {
            forgive(n, &n->conns[i]->last_recv, slept);
            n->conns[i]->deaf_at = PCCL_NEVER;
        }
    for (size_t i = 0; i < ARRAY_COUNT(n->table); i++)
        for (struct link *l = n->table[i]; l; l = l->next)
            forgive(n, &l->wanted_at, slept);
}

void links_excuse(struct links *n, const uint64_t *ids, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        struct link *l = link_find(n, ids[k], false);
        if (l) l->wanted_at = n->now;
        for (uint32_t i = 0; i < n->conn_end; i++) {
            struct conn *c = n->conns[i];
            if (!c || c->to != ids[k]) continue;
            c->last_recv = n->now;
            c->deaf_at = PCCL_NEVER;
        }
    }
}

/* A ping is sent each tenth of the deadline: three are missing. Through memory
 * none is sent (rule R7b). */
uint32_t links_quiet(const struct links *n, uint64_t *pairs, uint32_t most)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->conn_end && count + 2 <= most; i++) {
        const struct conn *c = n->conns[i];
        if (!c || c->state != CONN_OPEN || c->to == 0 || conn_has_no_path(c))
            continue;
        pccl_ns silent = n->now - c->last_recv;
        if (silent < PCCL_TIME_TO_MISS(n->deadline)) continue;
        pairs[count++] = c->to;
        pairs[count++] = (uint64_t)(silent / PCCL_MS);
    }
    return count;
}
