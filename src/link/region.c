/* region.c - members of one host send each other the place of their regions:
 * memory for single copies, which the others map. See link.h; rules L7, D27. */
#include "link.h"

static bool is_channel_of_host(const struct links *n, const struct conn *c)
{
    return c && c->state == CONN_OPEN && c->channel && c->link &&
           c->link->host == n->host;
}

/* A member that is left out learns anew, when it is back, which posts are for
 * it (L11d). */
void region_offer(struct links *n)
{
    const struct driver *d = &n->driver;
    for (uint32_t i = 0; d->region_export && i < n->conn_end; i++) {
        struct conn *c = n->conns[i];
        if (!is_channel_of_host(n, c)) continue;
        if (!links_member(n, c->link->id)) {
            c->region.taken = false;
            continue;
        }
        struct channel_offer offer;
        if (c->region.taken) continue;
        if (!n->region) n->region = d->region_export(d->user, &offer);
        if (!n->region) return;
        n->board.memory = n->region + REGION_BOARD_AT;
        c->region.offers = true;
        conn_dirty(n, i);
    }
}

/* Rule D27b. */
static bool can_pull(const struct links *n, const struct conn *c)
{
    const struct driver *d = &n->driver;
    return d->cma_works && c->link->known && !c->region.unreadable &&
           d->cma_works(d->user, c->number, &c->link->member);
}

/* The next REGION of a connection; false: nothing to send. */
bool region_next_frame(struct links *n, struct conn *c, struct frame *f)
{
    if (!c->region.offers && !c->region.answers) return false;
    *f = (struct frame){.type = FRAME_REGION};
    if (c->region.answers) {
        f->flags = FLAG_ANSWER | (can_pull(n, c) ? FLAG_CMA : 0);
        c->region.answers = false;
        return true;
    }
    c->region.offers = false;
    struct channel_offer offer;
    if (!n->driver.region_export(n->driver.user, &offer)) return false;
    channel_offer_encode(&offer, f);
    f->scope = n->board.posts;
    return true;
}

/* Maps the other end's region, of which it has a copy of one post. */
static bool attach(struct links *n, struct conn *c)
{
    const struct driver *d = &n->driver;
    struct channel_offer offer = channel_offer_decode(&c->rx);
    if (offer.size != REGION_SIZE || !d->region_attach) return false;
    if (!c->region.post) c->region.post = pool_take(&n->pool, BOARD_POST_MAX);
    if (!c->region.post) return false;
    c->region.memory = d->region_attach(d->user, c->number, &offer);
    return c->region.memory != NULL;
}

bool region_accept(void *user, struct conn *c)
{
    struct links *n = user;
    const struct frame *f = &c->rx;
    if (!c->channel || f->size > 0) return false;
    if (f->flags & FLAG_ANSWER) {
        c->region.taken = n->region != NULL;
        c->region.pulls = c->region.taken && (f->flags & FLAG_CMA);
        return true;
    }
    if (!c->region.memory && !attach(n, c))
        return true; /* it goes on without */
    channel_attach(c->channel, c->region.memory + REGION_BOARD_AT,
                   c->region.post, f->scope);
    c->region.answers = true;
    conn_dirty(n, c->number);
    return true;
}

struct conn *region_conn(const struct link *l)
{
    for (struct conn *c = l->conns; c; c = c->next)
        if (c->state == CONN_OPEN && c->region.memory) return c;
    return NULL;
}

const uint8_t *region_of(const struct link *l)
{
    const struct conn *c = region_conn(l);
    return c ? c->region.memory : NULL;
}

bool region_pull(struct links *n, struct conn *c, uint64_t from, void *to,
                 size_t size)
{
    const struct driver *d = &n->driver;
    if (c->link->known && d->cma_read &&
        d->cma_read(d->user, c->number, &c->link->member, from, to, size))
        return true;
    c->region.unreadable = c->region.answers = true;
    conn_dirty(n, c->number);
    return false;
}
