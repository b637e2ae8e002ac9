/* joined.h - a member 10 of 10, 11 and 12 without a connection, and its
 * coordinator's messages: the fixture of tests of one session. */
#ifndef CORE_JOINED_H
#define CORE_JOINED_H

#include "../master/said.h"

#include "../../world/host/hosted.h"

enum { MEMBERS = 7 }; /* those that may be proposed */

static struct session *session;
static struct wire_member members[MEMBERS];

static inline uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    (void)user;
    return conn_is_free(session->links, addr->port) ? addr->port : NO_CONN;
}

static inline void hear(const struct wire_msg *m)
{
    session_on_message(session, m);
}

/* It has said HELLO, and is welcome. No link is ever made. */
static inline bool begin(const struct session_events *events,
                         void (*close)(void *user, uint32_t conn),
                         const struct wire_msg *welcome)
{
    session = calloc(1, sizeof *session);
    struct session_config c = {.driver = {.dial = on_dial, .close = close},
                               .events = *events,
                               .pool_size = 1,
                               .deadline = PCCL_S};
    if (!session || !host_open(session, &c)) return false;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[i].id = 10 + i;
        members[i].addr.port = (uint16_t)i;
    }
    said[0] = '\0';
    session_hello(session, &(struct wire_msg){.type = WIRE_HELLO});
    hear(welcome);
    return true;
}

/* The first view, of so many, is proposed, and perhaps installed. */
static inline void first_view(uint32_t count, bool mesh, bool installed)
{
    static const uint64_t none[1];
    struct wire_msg view = {.type = WIRE_PROPOSE,
                            .round = 1,
                            .ids = none,
                            .members = members,
                            .member_count = count,
                            .view = {.ring = true, .mesh = mesh}};
    hear(&view);
    view.type = WIRE_INSTALL;
    if (installed) hear(&view);
}

/* Returns 0, as a setup does. `send` and `close` may be NULL. */
static inline int join(void (*send)(void *user, const struct wire_msg *m),
                       void (*close)(void *user, uint32_t conn),
                       const struct wire_msg *welcome)
{
    const struct session_events events = {.to_master = send};
    if (!begin(&events, close, welcome)) return 1;
    first_view(3, true, true);
    return 0;
}

static const struct wire_msg welcome_10 = {.type = WIRE_WELCOME,
                                           .welcome = {.id = 10}};

/* The round after the last view, in which nobody is lost. */
static inline void next_epoch(uint32_t round, struct wire_op *verdict)
{
    static const uint64_t none[1];
    struct wire_msg m = {.type = WIRE_FLUSH,
                         .epoch = round - 1,
                         .round = round,
                         .ids = none,
                         .ops = verdict,
                         .op_count = verdict ? 1 : 0,
                         .view = {.ring = true, .mesh = true}};
    hear(&m);
    m.type = WIRE_PROPOSE;
    hear(&m);
    m.type = WIRE_VERDICT;
    if (verdict) hear(&m);
    m.type = WIRE_INSTALL;
    hear(&m);
}

static inline int teardown(void **state)
{
    (void)state;
    session_free(session);
    free(session);
    return 0;
}

#endif
