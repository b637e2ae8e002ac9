/* founded.h - a coordinator whose members have founded the first view, and a
 * text of its messages that a test compares: the fixture of tests in which one
 * group is there from the beginning. Link i is id i + 1 and rank i. */
#ifndef CORE_FOUNDED_H
#define CORE_FOUNDED_H

#include "said.h"

#include "../../../src/master/master.h"

static struct master *master;
static pccl_ns now; /* time of the next event */

static inline void step(enum master_event_type type, uint32_t link,
                        const struct wire_msg *m)
{
    struct master_event e = {.type = type, .link = link, .now = now, .msg = m};
    master_step(master, &e);
}

static inline void say_close(void *user, uint32_t link, const char *reason)
{
    (void)user;
    say("close %u: %s\n", link, reason);
}

/* Everybody who has been proposed is ready. */
static inline void all_are_ready(void)
{
    struct wire_msg ready = {.type = WIRE_READY, .round = master->round_last};
    for (uint32_t i = 0; i < master->link_end; i++)
        if (master->peers[i].proposed) step(MASTER_RECEIVED, i, &ready);
}

static inline void sent_unseen(void *user, const uint32_t *links,
                               uint32_t count, const struct wire_msg *m)
{
    (void)user, (void)links, (void)count, (void)m;
}

static inline void closed_unseen(void *user, uint32_t link, const char *reason)
{
    (void)user, (void)link, (void)reason;
}

/* A master without a peer; `send` and `close` may be left out. */
static inline bool serve(const struct master_config *config)
{
    struct master_config c = *config;
    if (!c.out.send) c.out.send = sent_unseen;
    if (!c.out.close) c.out.close = closed_unseen;
    master = calloc(1, sizeof *master);
    now = 1;
    said[0] = '\0';
    return master && master_init(master, &c);
}

static inline void comes(uint32_t link, const struct wire_msg *hello)
{
    step(MASTER_CONNECTED, link, NULL);
    step(MASTER_RECEIVED, link, hello);
}

/* A master with `quorum` members. Returns 0, as a setup does. */
static inline int found(const struct master_config *config)
{
    if (!serve(config)) return 1;
    for (uint32_t i = 0; i < config->quorum; i++)
        comes(i, &(struct wire_msg){.type = WIRE_HELLO,
                                    .hello = {.self.hint = (int32_t)i}});
    all_are_ready();
    said[0] = '\0';
    return master_count(master, PEER_MEMBER) == config->quorum ? 0 : 1;
}

static inline int teardown(void **state)
{
    (void)state;
    master_free(master);
    free(master);
    return 0;
}

#endif
