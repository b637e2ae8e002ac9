/* hosted.h - the host of a session in tests: a member of a world that has no
 * sockets. line.h moves the bytes of its links. */
#ifndef PCCL_TESTS_HOSTED_H
#define PCCL_TESTS_HOSTED_H

#include "../../../src/elastic/session.h"

static inline uint32_t host_dials_nobody(void *user,
                                         const struct wire_addr *addr)
{
    (void)user, (void)addr;
    return NO_CONN;
}

static inline void host_closes(void *user, uint32_t conn)
{
    (void)user, (void)conn;
}

static inline void host_says_nothing(void *user, const struct wire_msg *msg)
{
    (void)user, (void)msg;
}

static inline void host_waits(void *user)
{
    (void)user;
}

/* Begins a session in zeroed memory. What the configuration leaves out has no
 * effect: nobody is dialed, nobody hears it. False: out of memory. */
static inline bool host_open(struct session *s,
                             const struct session_config *config)
{
    struct session_config c = *config;
    if (!c.driver.dial) c.driver.dial = host_dials_nobody;
    if (!c.driver.close) c.driver.close = host_closes;
    if (!c.events.to_master) c.events.to_master = host_says_nothing;
    if (!c.events.changed) c.events.changed = host_waits;
    return session_init(s, &c);
}

/* Bytes of the coordinator. Returns how many were whole messages. */
static inline size_t host_hear(struct session *s, const uint8_t *bytes,
                               size_t size)
{
    static struct wire_store store;
    struct wire_msg msg;
    size_t done = 0, used;
    while (done < size && wire_decode(bytes + done, size - done, &store, &msg,
                                      &used) == WIRE_OK) {
        session_on_message(s, &msg);
        done += used;
    }
    return done;
}

#endif
