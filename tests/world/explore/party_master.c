/* party_master.c - the master and its driver. */
#include "party.h"

#include "../../../src/master/master.h"

#include <stdlib.h>
#include <string.h>

struct coordinator {
    struct master master;
    pccl_ns now;
};

static void send_out(void *user, const uint32_t *links, uint32_t count,
                     const struct wire_msg *msg)
{
    (void)user;
    uint32_t message = party_encode(msg);
    for (uint32_t i = 0; i < count; i++)
        party_effect(EFFECT_CONTROL, links[i], message);
}

static void close_out(void *user, uint32_t link, const char *reason)
{
    (void)user;
    (void)reason;
    party_effect(EFFECT_HANG_UP, link, 0);
}

void *coordinator_new(void)
{
    struct coordinator *c = calloc(1, sizeof *c);
    PARTY_CHECK(c, "no memory");
    c->now = party_time(0);
    struct master_config config = {
        .out = {.user = c, .send = send_out, .close = close_out},
        .deadline = EXPLORE_DEADLINE,
        .quorum = party_config.members,
        .key = {{1, 2}}};
    (void)master_init(&c->master, &config);
    return c;
}

static void zero(void *memory, size_t size)
{
    memset(memory, 0, size < 4096 ? size : 4096);
}

/* Zeros what has no effect on anything: the scratch of one emission, of which a
 * small world uses the beginning. */
static void forget(struct master *m)
{
    zero(m->probes, sizeof m->probes);
    zero(m->slots, sizeof m->slots);
    zero(m->links, sizeof m->links);
    zero(m->ids, sizeof m->ids);
    zero(m->order, sizeof m->order);
    zero(m->sites, sizeof m->sites);
    zero(m->sorted, sizeof m->sorted);
    zero(m->members, sizeof m->members);
    zero(m->ops, sizeof m->ops);
    zero(m->paths, sizeof m->paths);
    zero(&m->crossed, sizeof m->crossed);
    for (uint32_t i = 0; i < m->group_end; i++)
        zero(&m->groups[i].hints, sizeof m->groups[i].hints);
}

void coordinator_event(void *coordinator, const struct event *event)
{
    struct coordinator *c = coordinator;
    struct wire_msg msg;
    struct master_event e = {.link = event->at};
    switch (event->kind) {
    case EVENT_CONNECT:
        e.type = MASTER_CONNECTED;
        e.addr.family = 4;
        break;
    case EVENT_CONTROL:
        party_decode(event->number, &msg);
        e.type = MASTER_RECEIVED;
        e.msg = &msg;
        break;
    case EVENT_CONTROL_END:
        e.type = MASTER_CLOSED;
        break;
    default:
        e.type = MASTER_TICK;
        c->now = party_time(event->number);
        break;
    }
    e.now = c->now;
    master_step(&c->master, &e);
    const char *wrong = master_invalid(&c->master);
    PARTY_CHECK(!wrong, "the master: %s", wrong);
    if (!party_config.remembers) forget(&c->master);
}
