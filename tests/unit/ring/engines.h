/* engines.h - engines whose links the test moves by hand; it decides which
 * bytes each engine receives, and how far operations proceed. Three, unless
 * ENGINES names another number. */
#ifndef CORE_ENGINES_H
#define CORE_ENGINES_H

#include "../unit.h"

#include "../../../src/ring/op.h"
#include "../install_view.h"

#ifndef ENGINES
#define ENGINES 3
#endif
enum { WORLD = ENGINES, FLYING_MAX = 2 << 20 };

static uint32_t world = WORLD; /* of them in use */

static struct engine *engines[WORLD];
static struct wire_member members[WORLD];
static uint64_t ids[WORLD];
static bool deaf[WORLD][WORLD]; /* [to][from] */
static bool mute[WORLD][WORLD]; /* [from][to] */
static struct {
    uint8_t bytes[FLYING_MAX];
    size_t size;
} flying[WORLD][WORLD];  /* sent to an engine that receives nothing */
static uint64_t carried; /* bytes sent by all */

static uint32_t self_of(const void *user)
{
    return (uint32_t)((const uint64_t *)user - ids);
}

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    (void)user;
    return addr->port; /* the other end's number names a connection */
}

static bool may_close;
static uint32_t closed;

static void on_close(void *user, uint32_t conn)
{
    closed++;
    if (may_close) return;
    fail_msg("engine %u: connection %u closed", self_of(user), conn);
}

static void on_fault(void *user, enum engine_fault fault, const struct op *op,
                     uint64_t peer)
{
    (void)op;
    fail_msg("engine %u: fault %d with %d", self_of(user), (int)fault,
             (int)peer);
}

static void on_finished(void *user, struct op *op)
{
    (void)user;
    (void)op;
}

/* Moves the bytes that can move from a to b; false: there were none. */
static bool carry(uint32_t a, uint32_t b)
{
    struct conn_part parts[2];
    uint8_t *to;
    size_t kept = flying[b][a].size;
    if (!mute[a][b] && engine_tx_window(engines[a], b, parts) > 0) {
        assert_true(kept + parts[0].size <= sizeof flying[b][a].bytes);
        memcpy(flying[b][a].bytes + kept, parts[0].from, parts[0].size);
        flying[b][a].size += parts[0].size;
        carried += parts[0].size;
        engine_tx(engines[a], b, parts[0].size);
        return true;
    }
    size_t size = engine_rx_window(engines[b], a, &to);
    if (size > kept) size = kept;
    if (deaf[b][a] || size == 0) return false;
    memcpy(to, flying[b][a].bytes, size);
    memmove(flying[b][a].bytes, flying[b][a].bytes + size, kept - size);
    flying[b][a].size -= size;
    assert_true(engine_rx(engines[b], a, size));
    return true;
}

/* Runs at most so many rounds. */
static void settle_for(uint32_t rounds)
{
    bool moved = true;
    while (moved && rounds-- > 0) {
        moved = false;
        for (uint32_t a = 0; a < world; a++) {
            for (uint32_t b = 0; b < world; b++) moved |= a != b && carry(a, b);
        }
    }
}

static void settle(void)
{
    settle_for(UINT32_MAX);
}

/* Everything that is under way arrives twice, except more than an engine keeps
 * before a launch. False: nothing was. */
static bool settle_twice_once(void)
{
    uint64_t before = carried;
    memset(deaf, 1, sizeof deaf);
    settle();
    for (uint32_t i = 0; i < WORLD * WORLD; i++) {
        size_t size = flying[i / WORLD][i % WORLD].size;
        uint8_t *bytes = flying[i / WORLD][i % WORLD].bytes;
        if (2 * size > EAGER_LINK_MAX) continue;
        memcpy(bytes + size, bytes, size);
        flying[i / WORLD][i % WORLD].size = 2 * size;
    }
    memset(deaf, 0, sizeof deaf);
    memset(mute, 1, sizeof mute);
    settle();
    memset(mute, 0, sizeof mute);
    return carried > before;
}

__attribute__((unused)) static void settle_twice(void)
{
    while (settle_twice_once()) continue;
}

/* All engines are in one view and linked. */
static void install_all(uint32_t epoch)
{
    for (uint32_t i = 0; i < world; i++) {
        install_view(engines[i], epoch, members, world, i);
    }
}

static int setup(void **state)
{
    (void)state;
    memset(deaf, 0, sizeof deaf);
    memset(mute, 0, sizeof mute);
    for (uint32_t i = 0; i < WORLD * WORLD; i++)
        flying[i / WORLD][i % WORLD].size = 0;
    for (uint32_t i = 0; i < world; i++) {
        ids[i] = members[i].id = 10 + i;
        members[i].addr.port = (uint16_t)i;
        engines[i] = calloc(1, sizeof *engines[i]);
        struct driver d = {.user = &ids[i], .dial = on_dial, .close = on_close};
        struct engine_events o = {
            .user = &ids[i], .fault = on_fault, .finished = on_finished};
        if (!engines[i] || !engine_init(engines[i], &d, &o, 1, PCCL_S))
            return 1;
        engines[i]->links.self = ids[i];
    }
    install_all(1);
    for (uint32_t a = 0; a < world; a++) {
        for (uint32_t b = a + 1; b < world; b++) {
            links_want(&engines[a]->links, &members[b], 1);
            assert_true(engine_accepted(engines[b], a));
            engine_dialed(engines[a], b, true);
        }
    }
    settle();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < world; i++) {
        engine_free(engines[i]);
        free(engines[i]);
    }
    return 0;
}

#endif
