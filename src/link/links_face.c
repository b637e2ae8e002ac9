/* links_face.c - functions for the owner of the links and its driver. See
 * links.h. */
#include "link.h"

void links_set_host(struct links *n, uint64_t host)
{
    n->host = host;
}

void links_set_self(struct links *n, uint64_t self, const struct wire_key *key)
{
    n->self = self;
    n->key = *key;
}

void links_set_deadline(struct links *n, pccl_ns deadline)
{
    n->deadline = deadline;
}

uint64_t links_host(const struct links *n)
{
    return n->host;
}

pccl_ns links_deadline(const struct links *n)
{
    return n->deadline;
}

pccl_ns links_now(const struct links *n)
{
    return n->now;
}

bool links_missed(struct links *n)
{
    bool missed = n->missed;
    n->missed = false;
    return missed;
}

pccl_ns links_late(const struct links *n)
{
    return n->late;
}

uint32_t links_pool_size(const struct links *n)
{
    return n->pool_size;
}

bool links_is_frozen(const struct links *n)
{
    return n->frozen;
}

bool links_was_useless(struct links *n, uint64_t id)
{
    const struct link *l = link_find(n, id, false);
    return l && l->silent && !l->carried;
}

bool links_is_wanted(struct links *n, uint64_t id)
{
    const struct link *l = link_find(n, id, false);
    return l && l->wanted;
}

uint64_t links_round_trip(const struct links *n, uint64_t peer)
{
    const struct driver *d = &n->driver;
    return d->round_trip ? d->round_trip(d->user, peer) : 0;
}

bool links_has_round_trips(const struct links *n)
{
    return n->driver.round_trip != NULL;
}

void links_on_probed(struct links *n,
                     void (*report)(void *user, uint32_t step,
                                    const struct wire_edge *edge),
                     void *user)
{
    n->probe.report = report;
    n->probe.user = user;
}

/* ------------------------------------------------------------- connections */

static const struct conn *find(const struct links *n, uint32_t number)
{
    const struct conn *c = n->conns[number];
    return c && c->state != CONN_FREE ? c : NULL;
}

bool conn_is_free(const struct links *n, uint32_t number)
{
    return !find(n, number);
}

bool conn_is_open(const struct links *n, uint32_t number)
{
    const struct conn *c = find(n, number);
    return c && c->state == CONN_OPEN;
}

bool conn_is_parked(const struct links *n, uint32_t number)
{
    const struct conn *c = find(n, number);
    return c && c->parked;
}

bool conn_is_p2p(const struct links *n, uint32_t number)
{
    const struct conn *c = find(n, number);
    return c && c->peer;
}

bool conn_is_of_guest(const struct links *n, uint32_t number)
{
    const struct conn *c = find(n, number);
    return c && c->guest;
}

bool conn_is_of_link(const struct links *n, uint32_t number)
{
    const struct conn *c = find(n, number);
    return c && c->state == CONN_OPEN && c->link && !c->leg;
}

bool conn_is_relay(const struct links *n, uint32_t number)
{
    const struct conn *c = find(n, number);
    return c && c->leg;
}

bool conn_is_full(const struct links *n, uint32_t number)
{
    const struct conn *c = find(n, number);
    return c && c->peer && n->p2p.full(c->peer);
}

uint64_t conn_member(const struct links *n, uint32_t number)
{
    const struct conn *c = find(n, number);
    return c && c->state == CONN_OPEN && c->link ? c->link->id : 0;
}

struct channel *conn_channel(const struct links *n, uint32_t number)
{
    const struct conn *c = find(n, number);
    return c ? c->channel : NULL;
}

bool conn_sends_shared(const struct links *n, uint32_t number)
{
    const struct conn *c = find(n, number);
    return c && c->channel && !c->greets;
}
