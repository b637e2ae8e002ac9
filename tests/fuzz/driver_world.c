/* driver_world.c - see driver_world.h: the coordinator, and the ends of
 * streams. driver_mate.c has the mates. */
#include "driver_mate.h"
#include "sparse.h"

#include <assert.h>

enum { RECORD_MAX = 32 * 1024 };

const uint8_t world_key[SECURE_KEY_SIZE] = {7, 7, 7};
struct world_options world_options;
struct secure_keys world_keys;

/* The coordinator. */
static struct {
    struct master *m;
    struct world_control links[WORLD_LINKS]; /* not yet a link, or ... */
    uint32_t link_of[WORLD_LINKS];
    bool known[WORLD_LINKS];
    bool silent;
    uint32_t driver; /* index of the driver's connection; WORLD_LINKS: none */
    bool remembers;
    size_t record_size;
    uint8_t record[RECORD_MAX];
} coordinator;
static struct sparse master_memory;
static struct master_memory memory;

/* ------------------------------------------------------------ ends of streams
 */

void world_open(struct world_end *e, uint32_t stream, int side)
{
    *e = (struct world_end){stream, side, NULL};
    if (!world_options.keyed) return;
    e->secure =
        secure_open(&world_keys, side == 0 ? SECURE_DIALER : SECURE_ACCEPTOR);
    assert(e->secure);
}

void world_hang_up(struct world_end *e, bool reset)
{
    if (e->stream == NO_STREAM) return;
    kernel_hang_up(e->stream, e->side, reset);
    secure_close(e->secure);
    *e = (struct world_end){.stream = NO_STREAM};
}

static void push(struct world_end *e)
{
    const uint8_t *from;
    size_t size;
    while ((size = secure_out(e->secure, &from)) > 0) {
        size_t put = kernel_put(e->stream, e->side, from, size);
        (void)secure_sent(e->secure, put);
        if (put < size) return;
    }
}

/* Bytes that have come to the channel, in clear. */
static size_t receive(struct world_end *e, uint8_t *to, size_t size)
{
    size_t done = 0, room, got;
    do {
        uint8_t *in = secure_room(e->secure, &room);
        got = in ? kernel_get(e->stream, e->side, in, room) : 0;
        if (got > 0) secure_received(e->secure, got);
        size_t more = secure_read(e->secure, to + done, size - done);
        done += more;
        push(e);
        if (more == 0 && got == 0) return done;
    } while (done < size);
    return done;
}

size_t world_get(struct world_end *e, uint8_t *to, size_t size)
{
    if (e->stream == NO_STREAM) return 0;
    return e->secure ? receive(e, to, size)
                     : kernel_get(e->stream, e->side, to, size);
}

size_t world_put(struct world_end *e, const uint8_t *from, size_t size)
{
    if (e->stream == NO_STREAM) return 0;
    if (!e->secure) return kernel_put(e->stream, e->side, from, size);
    const struct secure_part part = {from, size};
    size_t done = secure_write(e->secure, &part, 1);
    push(e);
    return done;
}

/* The other end is gone, and all that it has sent is read. */
bool world_ended(const struct world_end *e)
{
    if (e->stream == NO_STREAM) return true;
    const struct kernel_pipe *in = &kernel_stream(e->stream)->pipe[!e->side];
    bool broken = e->secure && secure_state(e->secure) == SECURE_BROKEN;
    return (in->ended && in->count == 0) || broken;
}

/* A channel takes nothing before its greeting is over. */
static bool flush(struct world_control *c)
{
    size_t put = world_put(&c->end, c->out, c->waits);
    c->waits -= put;
    memmove(c->out, c->out + put, c->waits);
    return put > 0;
}

/* Who reads nothing misses something. */
static void queue(struct world_control *c, const void *bytes, size_t size)
{
    if (c->end.stream == NO_STREAM || size > sizeof c->out - c->waits) return;
    memcpy(c->out + c->waits, bytes, size);
    c->waits += size;
    (void)flush(c);
}

void world_send(struct world_control *c, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    queue(c, frame, wire_encode(msg, frame));
}

/* True: *msg is the next message. */
bool world_next(struct world_control *c, struct wire_msg *msg, size_t *used)
{
    static struct wire_store store;
    return wire_decode(c->in, c->size, &store, msg, used) == WIRE_OK;
}

bool world_fill(struct world_control *c)
{
    size_t got = world_get(&c->end, c->in + c->size, sizeof c->in - c->size);
    c->size += got;
    return flush(c) || got > 0;
}

void world_used(struct world_control *c, size_t size)
{
    c->size -= size;
    memmove(c->in, c->in + size, c->size);
}

/* --------------------------------------------------------- the coordinator */

static uint32_t index_of(uint32_t link)
{
    for (uint32_t i = 0; i < WORLD_LINKS; i++)
        if (coordinator.known[i] && coordinator.link_of[i] == link) return i;
    return WORLD_LINKS;
}

static void send_effect(void *user, const uint32_t *links, uint32_t count,
                        const struct wire_msg *msg)
{
    (void)user;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = index_of(links[i]);
        if (at < WORLD_LINKS) world_send(&coordinator.links[at], msg);
    }
}

static void close_effect(void *user, uint32_t link, const char *reason)
{
    (void)user, (void)reason;
    uint32_t at = index_of(link);
    if (at == WORLD_LINKS) return;
    coordinator.known[at] = false;
    world_hang_up(&coordinator.links[at].end, false);
}

/* Relays that it would be are not: the connection ends. */
static void relay_effect(void *user, uint32_t link, const struct wire_msg *msg)
{
    (void)msg;
    close_effect(user, link, "");
}

static bool remember_effect(void *user, const struct master_memory *m)
{
    (void)user;
    if (memory_size(m) > RECORD_MAX) return true;
    coordinator.record_size = memory_encode(m, coordinator.record, RECORD_MAX);
    return true;
}

static void step(struct master_event event)
{
    event.now = kernel_now;
    master_step(coordinator.m, &event);
}

static void open_master(bool anew)
{
    static const struct wire_addr masters[] = {
        {.family = 4, .ip = {127, 0, 0, 1}, .port = PORT_MASTER},
        {.family = 4, .ip = {127, 0, 0, 1}, .port = PORT_MASTER + 1}};
    struct master_config config = {
        .out = {.send = send_effect,
                .close = close_effect,
                .relay = relay_effect,
                .remember = world_options.grace ? remember_effect : NULL},
        .deadline = WORLD_DEADLINE,
        .quorum = world_options.mates + !world_options.first,
        .minimum = world_options.minimum,
        .relays = world_options.relays,
        .grace = world_options.grace ? 4 * WORLD_DEADLINE : 0,
        .masters = masters,
        .master_count = world_options.several ? 2 : 0,
        .key = {{1, 2}},
        .secret = {{3, 4}}};
    if (anew && coordinator.record_size > 0 &&
        memory_decode(&memory, coordinator.record, coordinator.record_size) &&
        memory_skip(&memory))
        config.memory = &memory;
    coordinator.m = sparse_take(&master_memory, sizeof *coordinator.m);
    assert(master_init(coordinator.m, &config));
    if (world_options.grace) (void)memory_keep(coordinator.m);
}

static void accept_one(uint32_t stream)
{
    static const struct wire_addr addr = {
        .family = 4, .ip = {127, 0, 0, 1}, .port = 9};
    uint32_t at = 0;
    while (at < WORLD_LINKS && coordinator.links[at].end.stream != NO_STREAM)
        at++;
    uint32_t link = master_free_link(coordinator.m);
    if (at == WORLD_LINKS || link == MASTER_NO_LINK) {
        kernel_hang_up(stream, 1, false);
        return;
    }
    world_open(&coordinator.links[at].end, stream, 1);
    coordinator.links[at].size = coordinator.links[at].waits = 0;
    coordinator.link_of[at] = link;
    coordinator.known[at] = true;
    step((struct master_event){
        .type = MASTER_CONNECTED, .link = link, .addr = addr});
}

static void lose(uint32_t at)
{
    world_hang_up(&coordinator.links[at].end, false);
    if (!coordinator.known[at]) return;
    coordinator.known[at] = false;
    step((struct master_event){.type = MASTER_CLOSED,
                               .link = coordinator.link_of[at]});
}

static bool read_link(uint32_t at)
{
    struct world_control *c = &coordinator.links[at];
    struct wire_msg msg;
    size_t used;
    if (c->end.stream == NO_STREAM) return false;
    bool any = world_fill(c);
    while (coordinator.known[at] && world_next(c, &msg, &used)) {
        step((struct master_event){.type = MASTER_RECEIVED,
                                   .link = coordinator.link_of[at],
                                   .msg = &msg});
        if (c->end.stream == NO_STREAM) return true;
        world_used(c, used);
    }
    bool full = c->size == sizeof c->in;
    if (!world_ended(&c->end) && !full) return any;
    lose(at);
    return true;
}

static bool master_turn(void)
{
    bool any = false;
    uint32_t stream;
    if (coordinator.silent || !coordinator.m) return false;
    while ((stream = kernel_take(PORT_MASTER)) != NO_STREAM) {
        accept_one(stream);
        any = true;
    }
    for (uint32_t i = 0; i < WORLD_LINKS; i++) any |= read_link(i);
    return any;
}

static void close_master(void)
{
    for (uint32_t i = 0; i < WORLD_LINKS; i++) {
        coordinator.known[i] = false;
        world_hang_up(&coordinator.links[i].end, false);
    }
    master_free(coordinator.m);
    coordinator.m = NULL;
}

/* The next one begins at once. */
void world_master_dies(void)
{
    close_master();
    open_master(true);
}

void world_master_is_silent(bool silent)
{
    coordinator.silent = silent;
}

static struct world_control *to_driver(void)
{
    for (uint32_t i = 0; i < WORLD_LINKS; i++) {
        struct world_control *c = &coordinator.links[i];
        if (c->end.stream == NO_STREAM || !coordinator.known[i]) continue;
        bool mates = false;
        for (uint32_t k = 0; k < MATES; k++) {
            const struct mate *m = world_mate(k);
            mates |= m && m->control.end.stream == c->end.stream;
        }
        if (!mates) return c;
    }
    return NULL;
}

void world_say(const void *bytes, size_t size)
{
    struct world_control *c = to_driver();
    if (c) queue(c, bytes, size);
}

void world_say_message(const struct wire_msg *msg)
{
    struct world_control *c = to_driver();
    if (c) world_send(c, msg);
}

bool world_has_newcomer(void)
{
    return coordinator.m && master_count(coordinator.m, PEER_REGISTERED) > 0;
}

/* -------------------------------------------------------------- the universe
 */

bool world_listens(uint16_t port)
{
    if (port == PORT_MASTER) return coordinator.m != NULL;
    return port >= PORT_MATE && port < PORT_MATE + MATES &&
           world_mate(port - PORT_MATE);
}

bool world_turn(void)
{
    bool any = kernel_connects();
    any |= master_turn();
    for (uint32_t i = 0; i < MATES; i++)
        if (world_mate(i)) any |= mate_turn(world_mate(i));
    return any;
}

void world_tick(void)
{
    const struct master *m = coordinator.m;
    if (m && !coordinator.silent && master_next_tick(m) <= kernel_now)
        step((struct master_event){.type = MASTER_TICK});
    for (uint32_t i = 0; i < MATES; i++)
        if (world_mate(i)) mate_tick(world_mate(i));
}

void world_begin(const struct world_options *options)
{
    world_options = *options;
    coordinator.silent = false;
    coordinator.record_size = 0;
    for (uint32_t i = 0; i < WORLD_LINKS; i++) {
        coordinator.links[i].end.stream = NO_STREAM;
        coordinator.links[i].end.secure = NULL;
        coordinator.known[i] = false;
    }
    secure_psk_of_key(&world_keys.own, world_key);
    open_master(false);
    mates_begin();
    for (uint32_t i = 0; i < world_options.mates; i++) world_mate_joins(i);
}

void world_end(void)
{
    for (uint32_t i = 0; i < MATES; i++)
        if (world_mate(i)) world_mate_dies(i);
    uint32_t stream;
    (void)kernel_connects();
    while ((stream = kernel_take(PORT_MASTER)) != NO_STREAM)
        kernel_hang_up(stream, 1, false);
    for (uint16_t i = 0; i < MATES; i++)
        while ((stream = kernel_take((uint16_t)(PORT_MATE + i))) != NO_STREAM)
            kernel_hang_up(stream, 1, false);
    close_master();
}
