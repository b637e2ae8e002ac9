/* two_ends.h - two engines of one view: the test answers their dials, carries
 * the bytes, and loses what it likes. A connection has the number of its dial
 * at both ends. */
#ifndef CORE_TWO_ENDS_H
#define CORE_TWO_ENDS_H

#include "../unit.h"

#include "../../../src/ring/op.h"
#include "../../world/host/line.h"
#include "../install_view.h"

enum { ENGINES = 2 };

static struct engine *engines[ENGINES];
static struct wire_member members[ENGINES] = {{.id = 10}, {.id = 11}};
static uint64_t ids[ENGINES] = {10, 11};
static uint32_t dials, closes, faults;
static uint32_t closed[ENGINES]; /* bit set over connections */

static inline uint32_t end_dials(void *user, const struct wire_addr *addr)
{
    (void)user, (void)addr;
    return dials++;
}

static inline void end_closes(void *user, uint32_t conn)
{
    closes++;
    if (conn < 32) closed[user == &ids[1]] |= 1u << conn;
}

static inline void end_faults(void *user, enum engine_fault fault,
                              const struct op *op, uint64_t peer)
{
    (void)user, (void)fault, (void)op, (void)peer;
    faults++;
}

static inline void end_finishes(void *user, struct op *op)
{
    (void)user, (void)op;
}

/* Returns 0, as a setup does. */
static inline int open_ends(uint32_t fill)
{
    dials = faults = closes = 0;
    for (uint32_t i = 0; i < ENGINES; i++) {
        struct driver d = {
            .user = &ids[i], .dial = end_dials, .close = end_closes};
        struct engine_events o = {
            .user = &ids[i], .fault = end_faults, .finished = end_finishes};
        closed[i] = 0;
        engines[i] = calloc(1, sizeof *engines[i]);
        if (!engines[i] || !engine_init(engines[i], &d, &o, 1, PCCL_S))
            return 1;
        engines[i]->links.self = ids[i];
        engines[i]->links.fill_size = fill;
    }
    return 0;
}

static inline int close_ends(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ENGINES; i++) {
        engine_free(engines[i]);
        free(engines[i]);
    }
    return 0;
}

static inline enum conn_state state_at(uint32_t who, uint32_t conn)
{
    return engines[who]->links.conns[conn]->state;
}

/* The first bytes that `who` sends on a connection that it has dialed. */
static inline size_t greet(uint32_t who, uint32_t conn, uint8_t *hello)
{
    engine_dialed(engines[who], conn, true);
    return line_take(&engines[who]->links, conn, hello, RX_BUFFER_SIZE);
}

/* False: a protocol violation; the connection was closed. */
static inline bool heard(uint32_t who, uint32_t conn, const uint8_t *bytes,
                         size_t size)
{
    struct links *n = &engines[who]->links;
    return line_give(n, conn, bytes, size) == size && !conn_is_free(n, conn);
}

#endif
