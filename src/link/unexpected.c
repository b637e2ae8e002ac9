/* unexpected.c - unexpected messages: frames that came before the launch of
 * their operation stay with the link (rule D2). See link.h. */
#include "link.h"

#include "../base/buggify.h"

struct unexpected *link_keep_unexpected(struct links *n, struct link *l,
                                        const struct frame *f)
{
    if (l->unexpected_count >= UNEXPECTED_MAX || PCCL_BUGGIFY(unexpected_full))
        return NULL;
    if (l->unexpected_bytes + f->size > EAGER_LINK_MAX + EAGER_MAX) return NULL;
    struct unexpected *k = pool_take(&n->pool, sizeof *k + f->size);
    if (!k) return NULL;
    k->next = NULL;
    k->frame = *f;
    k->complete = f->size == 0;
    *l->unexpected_end = k;
    l->unexpected_end = &k->next;
    if (l->unexpected_count++ == 0) n->unexpected_links++;
    l->unexpected_bytes += f->size;
    return k;
}

void link_remove_unexpected(struct links *n, struct link *l,
                            struct unexpected **slot)
{
    struct unexpected *k = *slot;
    *slot = k->next;
    if (l->unexpected_end == &k->next) l->unexpected_end = slot;
    if (--l->unexpected_count == 0) n->unexpected_links--;
    l->unexpected_bytes -= k->frame.size;
}

void link_drop_half_unexpected(struct links *n, struct conn *c)
{
    struct link *l = c->link;
    if (!c->rx_unexpected) return;
    struct unexpected **slot = &l->unexpected;
    while (*slot && *slot != c->rx_unexpected) slot = &(*slot)->next;
    PCCL_ASSERT(*slot);
    link_remove_unexpected(n, l, slot);
    pool_give(&n->pool, c->rx_unexpected);
    c->rx_unexpected = NULL;
}

void link_drop_unexpected(struct links *n, struct link *l)
{
    struct unexpected *keep = NULL;
    while (l->unexpected) {
        struct unexpected *next = l->unexpected->next;
        /* A message that is still being received stays: its connection points
         * at it. */
        if (l->unexpected->complete) {
            pool_give(&n->pool, l->unexpected);
        } else {
            l->unexpected->next = keep;
            keep = l->unexpected;
        }
        l->unexpected = next;
    }
    for (struct unexpected *k = keep; k;) {
        struct unexpected *next = k->next;
        for (uint32_t i = 0; i < n->conn_end; i++) {
            struct conn *c = n->conns[i];
            if (!c || c->rx_unexpected != k) continue;
            c->rx_unexpected = NULL;
            c->rx_state = RX_DISCARD;
        }
        pool_give(&n->pool, k);
        k = next;
    }
    l->unexpected_end = &l->unexpected;
    if (l->unexpected_count > 0) n->unexpected_links--;
    l->unexpected_count = 0;
    l->unexpected_bytes = 0;
}
