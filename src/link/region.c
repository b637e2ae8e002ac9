/* region.c - members of one host send each other the place of their regions:
 * memory for single copies, which the others map. See link.h; rule L7. */
#include "link.h"

static bool is_channel_of_host(const struct links *n, const struct conn *c)
{
    return c && c->state == CONN_OPEN && c->channel && c->link &&
           c->link->host == n->host;
}

void region_offer(struct links *n)
{
    const struct driver *d = &n->driver;
    for (uint32_t i = 0; d->region_export && i < n->conn_end; i++) {
        struct conn *c = n->conns[i];
        if (!is_channel_of_host(n, c) || c->region.taken) continue;
        struct channel_offer offer;
        if (!n->region) n->region = d->region_export(d->user, &offer);
        if (!n->region) return;
        c->region.offers = true;
        conn_dirty(n, i);
    }
}

/* The next REGION of a connection; false: nothing to send. */
bool region_next_frame(struct links *n, struct conn *c, struct frame *f)
{
    if (!c->region.offers && !c->region.answers) return false;
    *f = (struct frame){.type = FRAME_REGION};
    if (c->region.answers) {
        f->flags = FLAG_ANSWER;
        c->region.answers = false;
        return true;
    }
    c->region.offers = false;
    struct channel_offer offer;
    if (!n->driver.region_export(n->driver.user, &offer)) return false;
    channel_offer_encode(&offer, f);
    return true;
}

bool region_accept(void *user, struct conn *c)
{
    struct links *n = user;
    const struct driver *d = &n->driver;
    const struct frame *f = &c->rx;
    if (!c->channel || f->size > 0) return false;
    if (f->flags & FLAG_ANSWER) {
        c->region.taken = n->region != NULL;
        return true;
    }
    struct channel_offer offer = channel_offer_decode(f);
    if (!c->region.memory && offer.size == REGION_SIZE && d->region_attach)
        c->region.memory = d->region_attach(d->user, c->number, &offer);
    if (!c->region.memory) return true; /* it goes on without */
    c->region.answers = true;
    conn_dirty(n, c->number);
    return true;
}

const uint8_t *region_of(const struct links *n, const struct link *l)
{
    for (uint32_t i = 0; i < n->conn_end; i++) {
        const struct conn *c = n->conns[i];
        if (c && c->state == CONN_OPEN && c->link == l && c->region.memory)
            return c->region.memory;
    }
    return NULL;
}
