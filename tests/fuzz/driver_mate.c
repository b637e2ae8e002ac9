/* driver_mate.c - the mates of driver_world.h: sessions whose bytes go over the
 * streams of driver_kernel.h. */
#include "driver_mate.h"
#include "sparse.h"

#include "../../include/pccl.h"
#include "../world/host/hosted.h"
#include "../world/host/line.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

enum { TURNS = 4 };

static struct mate mates[MATES];
static struct sparse session_memory[MATES];

struct mate *world_mate(uint32_t number)
{
    return number < MATES && mates[number].s ? &mates[number] : NULL;
}

uint32_t mate_number(const struct mate *m)
{
    return (uint32_t)(m - mates);
}

/* -------------------------------------------------------------- the driver */

static uint32_t free_conn(const struct mate *m)
{
    for (uint32_t i = 0; i < MATE_CONNS; i++)
        if (m->conns[i].end.stream == NO_STREAM) return i;
    return NO_CONN;
}

static uint32_t dial(void *user, const struct wire_addr *addr)
{
    struct mate *m = user;
    uint32_t conn = free_conn(m);
    if (conn == NO_CONN) return NO_CONN;
    uint32_t stream = world_listens(addr->port)
                          ? kernel_pair(addr->port)
                          : kernel_call_driver(addr->port);
    if (stream == NO_STREAM) return NO_CONN;
    m->conns[conn] = (struct mate_conn){.dialing = true, .share.fd = -1};
    world_open(&m->conns[conn].end, stream, 0);
    return conn;
}

static void close_conn(void *user, uint32_t conn)
{
    struct mate *m = user;
    struct mate_conn *c = &m->conns[conn];
    world_hang_up(&c->end, false);
    if (c->mapped) shared_memory_free(&c->share);
    c->mapped = false;
}

static struct channel *share(void *user, uint32_t conn,
                             struct channel_offer *offer)
{
    struct mate_conn *c = &((struct mate *)user)->conns[conn];
    if (!shared_memory_make(&c->share, CHANNEL_SIZE, offer)) return NULL;
    c->mapped = true;
    return &c->share.channel;
}

static struct channel *join(void *user, uint32_t conn,
                            const struct channel_offer *offer)
{
    struct mate *m = user;
    struct mate_conn *c = &m->conns[conn];
    c->mapped = !m->refuses && shared_memory_open(&c->share, offer);
    return c->mapped ? &c->share.channel : NULL;
}

static void shared(void *user, uint32_t conn, bool taken)
{
    struct mate_conn *c = &((struct mate *)user)->conns[conn];
    if (taken) {
        shared_memory_settle(&c->share);
        return;
    }
    if (c->mapped) shared_memory_free(&c->share);
    c->mapped = false;
}

static uint8_t *region_export(void *user, struct channel_offer *offer)
{
    struct mate *m = user;
    if (!m->region.memory && !shared_region_make(&m->region, REGION_SIZE))
        return NULL;
    *offer = m->region.offer;
    return m->region.memory;
}

static const uint8_t *region_attach(void *user, uint32_t conn,
                                    const struct channel_offer *offer)
{
    struct shared_region *r = &((struct mate *)user)->conns[conn].share.lent;
    return shared_region_open(r, offer) ? r->memory : NULL;
}

static void to_master(void *user, const struct wire_msg *msg)
{
    world_send(&((struct mate *)user)->control, msg);
}

/* ------------------------------------------------------------ life of a mate
 */

static void say_hello(struct mate *m)
{
    struct wire_msg hello = {.type = WIRE_HELLO};
    hello.hello.pool = 1;
    hello.hello.join = kernel_has_thread(); /* later than the driver */
    hello.hello.self.host = world_options.distant ? 4 : 1234;
    hello.hello.self.host |= world_options.shares ? 0 : 1;
    hello.hello.self.hint = -1;
    hello.hello.self.pid = (uint32_t)getpid();
    hello.hello.self.addr.port = (uint16_t)(PORT_MATE + mate_number(m));
    session_hello(m->s, &hello);
}

void world_mate_joins(uint32_t number)
{
    struct mate *m = &mates[number % MATES];
    if (m->s) return;
    m->s = sparse_take(&session_memory[number % MATES], sizeof *m->s);
    for (uint32_t i = 0; i < MATE_CONNS; i++)
        m->conns[i] = (struct mate_conn){.end.stream = NO_STREAM};
    m->silent = m->refuses = m->listed = m->offers = false;
    struct session_config config = {
        .driver = {.user = m, .dial = dial, .close = close_conn},
        .events = {.user = m, .to_master = to_master},
        .pool_size = 1,
        .deadline = WORLD_DEADLINE,
        .now = kernel_now};
    if (world_options.shares) {
        config.driver.share = share;
        config.driver.join = join;
        config.driver.shared = shared;
        config.driver.region_export = region_export;
        config.driver.region_attach = region_attach;
    }
    assert(host_open(m->s, &config));
    m->control.size = m->control.waits = 0;
    m->control.end.stream = NO_STREAM;
    uint32_t stream = kernel_pair(PORT_MASTER);
    assert(stream != NO_STREAM);
    world_open(&m->control.end, stream, 0);
    say_hello(m);
}

void world_mate_dies(uint32_t number)
{
    struct mate *m = world_mate(number);
    if (!m) return;
    for (uint32_t i = 0; i < MATE_CONNS; i++) close_conn(m, i);
    world_hang_up(&m->control.end, false);
    session_free(m->s);
    shared_region_free(&m->region);
    wishes_end(m);
    if (m->offers) state_list_free(&m->offered);
    m->s = NULL;
}

void mates_begin(void)
{
    wishes_begin();
    for (uint32_t i = 0; i < MATES; i++) mates[i].s = NULL;
}

/* ---------------------------------------------------------------- their bytes
 */

static void lost(struct mate *m, uint32_t conn)
{
    close_conn(m, conn);
    engine_closed(m->s->engine, conn);
}

static bool dialed(struct mate *m, uint32_t conn)
{
    struct mate_conn *c = &m->conns[conn];
    c->dialing = false;
    engine_measured(m->s->engine, conn, PCCL_MS);
    engine_dialed(m->s->engine, conn, true);
    return true;
}

static void ring(const struct mate *m, uint32_t conn, uint32_t what)
{
    struct channel *c = conn_channel(m->s->links, conn);
    const struct world_end *e = &m->conns[conn].end;
    if (c && channel_ring(c, what)) (void)kernel_put(e->stream, e->side, "", 1);
}

static bool read_shared(struct mate *m, uint32_t conn)
{
    const struct world_end *e = &m->conns[conn].end;
    uint8_t bells[64];
    bool any = line_receive_shared(m->s->links, conn);
    const struct channel *c = conn_channel(m->s->links, conn);
    if (c && c->broken) {
        lost(m, conn);
        return true;
    }
    if (any) ring(m, conn, CHANNEL_WANTS_ROOM);
    /* In a run with a key they are in clear (rule K9). */
    while (e->stream != NO_STREAM &&
           kernel_get(e->stream, e->side, bells, sizeof bells) > 0)
        continue;
    if (!any && e->stream != NO_STREAM && world_ended(e)) lost(m, conn);
    return any;
}

static size_t get(void *user, uint32_t conn, uint8_t *to, size_t room)
{
    return world_get(&((struct mate *)user)->conns[conn].end, to, room);
}

static bool read_conn(struct mate *m, uint32_t conn)
{
    if (conn_channel(m->s->links, conn)) return read_shared(m, conn);
    if (line_receive(m->s->links, conn, get, m) > 0) return true;
    conn_rx_dry(m->s->links, conn);
    if (world_ended(&m->conns[conn].end)) lost(m, conn);
    return false;
}

static size_t put(void *user, uint32_t conn, const uint8_t *bytes, size_t size)
{
    struct mate *m = user;
    return conn_sends_shared(m->s->links, conn)
               ? line_put_shared(conn_channel(m->s->links, conn), bytes, size)
               : world_put(&m->conns[conn].end, bytes, size);
}

static bool write_conn(struct mate *m, uint32_t conn)
{
    bool rings = conn_sends_shared(m->s->links, conn);
    size_t done = line_send(m->s->links, conn, put, m);
    if (done > 0 && rings) ring(m, conn, CHANNEL_WANTS_DATA);
    return done > 0;
}

/* It sleeps until the driver rings. */
static void arm(const struct mate *m, uint32_t conn)
{
    struct channel *c = NULL;
    if (m->conns[conn].end.stream != NO_STREAM)
        c = conn_channel(m->s->links, conn);
    if (c && m->conns[conn].mapped)
        (void)channel_arm(c, CHANNEL_WANTS_DATA | CHANNEL_WANTS_ROOM);
}

static bool move_conn(struct mate *m, uint32_t conn)
{
    struct mate_conn *c = &m->conns[conn];
    bool any = false;
    if (c->end.stream == NO_STREAM) return false;
    if (c->dialing) return dialed(m, conn);
    for (int i = 0; i < TURNS && c->end.stream != NO_STREAM; i++) {
        bool moved = write_conn(m, conn);
        if (c->end.stream != NO_STREAM) moved |= read_conn(m, conn);
        any |= moved;
        if (!moved) break;
    }
    arm(m, conn);
    return any;
}

static bool accept_all(struct mate *m)
{
    uint16_t port = (uint16_t)(PORT_MATE + mate_number(m));
    uint32_t stream;
    bool any = false;
    while ((stream = kernel_take(port)) != NO_STREAM) {
        uint32_t conn = free_conn(m);
        any = true;
        if (conn == NO_CONN) {
            kernel_hang_up(stream, 1, true);
            continue;
        }
        m->conns[conn] = (struct mate_conn){.share.fd = -1};
        world_open(&m->conns[conn].end, stream, 1);
        if (!engine_accepted(m->s->engine, conn)) close_conn(m, conn);
    }
    return any;
}

/* A coordinator that is gone may be followed by another one. */
static bool hear_master(struct mate *m)
{
    struct world_control *c = &m->control;
    if (c->end.stream == NO_STREAM) {
        if (!session_may_resume(m->s) || !world_listens(PORT_MASTER))
            return false;
        uint32_t stream = kernel_pair(PORT_MASTER);
        if (stream == NO_STREAM) return false;
        c->size = c->waits = 0;
        world_open(&c->end, stream, 0);
        session_resume(m->s);
        return true;
    }
    bool any = world_fill(c);
    world_used(c, host_hear(m->s, c->in, c->size));
    if (!world_ended(&c->end)) return any;
    world_hang_up(&c->end, false);
    session_master_gone(m->s, "gone");
    return true;
}

/* Where the driver is no member, nobody calls but the mates. */
static void let_in(struct mate *m)
{
    const struct view *v = m->s->view;
    uint32_t lives = 0;
    for (uint32_t i = 0; i < MATES; i++) lives += mates[i].s != NULL;
    if (m->s->state == SESSION_MEMBER && v->size <= lives &&
        world_has_newcomer() && m->s->votes[VOTE_UPDATE] == VOTE_IDLE)
        (void)session_vote(m->s, VOTE_UPDATE);
}

bool mate_turn(struct mate *m)
{
    if (m->silent) return false;
    m->s->now = kernel_now;
    links_set_now(m->s->links, kernel_now);
    bool any = accept_all(m);
    message_progress(&m->s->messages);
    for (uint32_t i = 0; i < MATE_CONNS; i++) any |= move_conn(m, i);
    any |= hear_master(m);
    if (m->s->state == SESSION_MEMBER) any |= wishes_fulfil(m);
    let_in(m);
    session_settle(m->s);
    wishes_take(m);
    return any;
}

void mate_tick(struct mate *m)
{
    if (m->silent) return;
    session_tick(m->s, kernel_now);
}

/* ---------------------------------------------------------- what a tape wants
 */

void world_post(uint32_t number, uint64_t to, const uint8_t *bytes, size_t head,
                size_t size)
{
    struct mate *m = world_mate(number);
    if (!m || head > size || head > MESSAGE_HEADER_MAX) return;
    (void)message_post(&m->s->messages, to, bytes, head, bytes + head,
                       size - head);
}

size_t world_bulk_size(uint64_t key)
{
    return key + 1 < MATE_BULKS ? MATE_BULK_SIZE : MATE_BULK_LARGE;
}

void world_bulk(uint32_t number, uint64_t other, uint64_t key, bool sends)
{
    struct mate *m = world_mate(number);
    if (!m) return;
    key %= MATE_BULKS;
    static uint8_t large[MATE_BULK_LARGE];
    uint8_t *bytes = key + 1 < MATE_BULKS ? m->bulks[key] : large;
    if (sends)
        (void)message_send_rndv(&m->s->messages, other, key, bytes,
                                world_bulk_size(key));
    else
        (void)message_recv_rndv(&m->s->messages, other, key, bytes,
                                world_bulk_size(key));
}

void world_offer(uint32_t number, uint64_t revision)
{
    struct mate *m = world_mate(number);
    const struct offer_terms terms = {.revision = revision, .share = 1000};
    if (!m || m->offers || m->s->state != SESSION_MEMBER) return;
    mate_describe(m, &m->offered, false);
    m->offers = session_offer(m->s, &m->offered, &terms) == pcclSuccess;
    if (!m->offers) state_list_free(&m->offered);
}

struct shared_memory *world_shared(uint32_t which)
{
    for (uint32_t i = 0; i < MATES * MATE_CONNS; i++) {
        uint32_t at = (i + which) % (MATES * MATE_CONNS);
        struct mate *m = world_mate(at / MATE_CONNS);
        if (m && m->conns[at % MATE_CONNS].mapped)
            return &m->conns[at % MATE_CONNS].share;
    }
    return NULL;
}
