/* member.c - the driver of a member under test. See member.h. */
#include "member.h"

#include "../world/host/hosted.h"
#include "../world/host/line.h"
#include "sparse.h"

enum { FILL = 8, HOST = 2 };
#define DEADLINE (200 * PCCL_MS)

static struct sparse session_memory, own_region, other_region;
static struct member_channel channels[MEMBER_CHANNELS];
static struct channel *last_read; /* in `channels` */

/* ------------------------------------------------------------- the outside */

static void to_master(void *user, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    (void)user;
    (void)wire_encode(msg, frame);
}

static uint32_t dial(void *user, const struct wire_addr *addr)
{
    struct member *u = user;
    (void)addr;
    for (uint32_t i = 0; i < MEMBER_CONNS; i++) {
        if (u->conns[i].used) continue;
        u->conns[i].used = true;
        return i;
    }
    return NO_CONN;
}

static void close_conn(void *user, uint32_t conn)
{
    struct member *u = user;
    assert(conn < MEMBER_CONNS && u->conns[conn].used);
    if (u->conns[conn].channel) u->conns[conn].channel->end = NULL;
    u->conns[conn].used = false;
    u->conns[conn].channel = NULL;
}

static struct channel *take_channel(struct member *u, uint32_t conn,
                                    uint32_t side)
{
    for (uint32_t i = 0; i < MEMBER_CHANNELS && u->shares; i++) {
        struct member_channel *m = &channels[i];
        struct channel_offer offer;
        if (m->end) continue;
        if (!m->memory.memory &&
            !shared_memory_make(&m->memory, MEMBER_QUEUE, &offer))
            return NULL;
        struct channel_page *page = (void *)m->memory.memory;
        memset(page->sides, 0, sizeof page->sides);
        channel_init(&m->mine, page, m->memory.memory + CHANNEL_PAGE,
                     MEMBER_QUEUE, side);
        m->written = 0;
        m->end = &m->mine;
        u->conns[conn].channel = m;
        return m->end;
    }
    return NULL;
}

static struct channel *share(void *user, uint32_t conn,
                             struct channel_offer *offer)
{
    *offer = (struct channel_offer){.size = MEMBER_QUEUE};
    return take_channel(user, conn, 0);
}

static struct channel *join(void *user, uint32_t conn,
                            const struct channel_offer *offer)
{
    if (offer->size == 1) return NULL; /* as if it could not be opened */
    return take_channel(user, conn, 1);
}

static void shared(void *user, uint32_t conn, bool taken)
{
    struct member *u = user;
    if (taken || !u->conns[conn].channel) return;
    u->conns[conn].channel->end = NULL;
    u->conns[conn].channel = NULL;
}

static uint8_t *region_export(void *user, struct channel_offer *offer)
{
    struct member *u = user;
    *offer = (struct channel_offer){.size = REGION_SIZE};
    if (!u->links->region) return sparse_take(&own_region, REGION_SIZE);
    return u->links->region;
}

static const uint8_t *region_attach(void *user, uint32_t conn,
                                    const struct channel_offer *offer)
{
    struct member *u = user;
    (void)conn;
    if (offer->nonce == 1) return NULL;
    if (!u->region_used) (void)sparse_take(&other_region, REGION_SIZE);
    u->region_used = true;
    return other_region.memory;
}

static bool cma_read(void *user, uint32_t conn,
                     const struct wire_member *member, uint64_t address,
                     void *to, size_t size)
{
    (void)user;
    (void)conn;
    (void)member;
    if (address % 4 == 1) return false;
    memset(to, (int)address, size);
    return true;
}

static bool cma_works(void *user, uint32_t conn,
                      const struct wire_member *member)
{
    (void)user;
    (void)member;
    return conn % 4 != 3;
}

static bool cma_lends(void *user, const void *bytes, size_t size)
{
    (void)user;
    (void)bytes;
    return size % 8 != 7;
}

static bool cma_prefers(void *user, uint32_t conn, size_t size, bool alone)
{
    (void)user;
    (void)conn;
    return size % 2 == alone;
}

static void cma_compared(void *user, uint32_t conn, size_t size)
{
    (void)user;
    (void)conn;
    assert(size >= CMA_TRY_MIN && size < CMA_MIN);
}

static uint64_t round_trip(void *user, uint64_t peer)
{
    (void)user;
    return peer % 16 == 15 ? 0 : peer % 4 == 0 ? RTT_VERY_HIGH : PCCL_MS;
}

/* ----------------------------------------------------------------- messages */

void member_decode(struct member *u, const uint8_t *bytes, size_t size)
{
    (void)host_hear(u->s, bytes, size);
}

void member_tell(struct member *u, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    member_decode(u, frame, wire_encode(msg, frame));
}

/* -------------------------------------------------------------------- bytes */

void member_lose(struct member *u, uint32_t conn)
{
    if (conn >= MEMBER_CONNS || !u->conns[conn].used) return;
    close_conn(u, conn);
    engine_closed(u->s->engine, conn);
}

/* As comm_shm_receive(). */
static void receive_shared(struct member *u, uint32_t conn)
{
    struct channel *c = conn_channel(u->links, conn);
    uint32_t turns = 16;
    if (c) last_read = c;
    while (c && turns-- > 0) {
        bool any = line_receive_shared(u->links, conn);
        if (conn_channel(u->links, conn) != c) return; /* closed */
        if (c->broken) {
            member_lose(u, conn);
            return;
        }
        if (!any) break;
        (void)channel_ring(c, CHANNEL_WANTS_ROOM);
    }
    if (c && conn_channel(u->links, conn) == c) {
        (void)channel_arm(c, CHANNEL_WANTS_DATA | CHANNEL_WANTS_ROOM);
        channel_disarm(c);
    }
}

/* As the other end writes. It knows what this end has read. */
static void write_shared(struct member *u, uint32_t conn, const uint8_t *bytes,
                         size_t size)
{
    struct member_channel *m = u->conns[conn].channel;
    for (int turns = 0; turns < 64 && size > 0; turns++) {
        if (!m || !m->end || u->conns[conn].channel != m) return;
        struct channel *c = m->end;
        uint64_t used = m->written - c->read;
        size_t room = used < MEMBER_QUEUE ? MEMBER_QUEUE - (size_t)used : 0;
        size_t part = size < room ? size : room;
        uint64_t base =
            atomic_load_explicit(&c->other->base, memory_order_relaxed);
        size_t at = (size_t)(m->written - base) & (MEMBER_QUEUE - 1);
        memcpy(c->in + at, bytes, part);
        m->written += part;
        atomic_store_explicit(&c->other->written, m->written,
                              memory_order_release);
        bytes += part;
        size -= part;
        if (u->fast) return;
        receive_shared(u, conn);
    }
}

/* Bytes that are not read wait in the socket, here for good. */
static void receive_socket(struct member *u, uint32_t conn,
                           const uint8_t *bytes, size_t size)
{
    size_t done = line_give(u->links, conn, bytes, size);
    if (done < size && conn_channel(u->links, conn))
        write_shared(u, conn, bytes + done, size - done);
}

void member_receive(struct member *u, uint32_t conn, const uint8_t *bytes,
                    size_t size)
{
    if (conn >= MEMBER_CONNS || !u->conns[conn].used) return;
    if (conn_is_free(u->links, conn)) return;
    if (conn_channel(u->links, conn))
        write_shared(u, conn, bytes, size);
    else if (u->links->conns[conn]->state != CONN_DIALED ||
             u->links->conns[conn]->tx_head_size > 0)
        receive_socket(u, conn, bytes, size);
}

static size_t send_shared(struct member *u, uint32_t conn,
                          const struct conn_part *parts, uint32_t count,
                          size_t most)
{
    struct channel *c = conn_channel(u->links, conn);
    uint8_t *to;
    size_t done = 0;
    size_t room = channel_room(c, &to);
    if (room < most) most = room;
    for (uint32_t i = 0; i < count && done < most; i++) {
        size_t part = parts[i].size;
        if (part > most - done) part = most - done;
        memcpy(to + done, parts[i].from, part);
        done += part;
    }
    if (done > 0) channel_write(c, done);
    (void)channel_ring(c, CHANNEL_WANTS_DATA);
    return done;
}

void member_drain(struct member *u, uint32_t conn, size_t most)
{
    struct engine *e = u->s->engine;
    while (most > 0 && conn < MEMBER_CONNS && u->conns[conn].used && !u->fast) {
        struct conn_part parts[2];
        uint32_t count = engine_tx_window(e, conn, parts);
        size_t size = 0;
        for (uint32_t i = 0; i < count; i++) size += parts[i].size;
        if (size == 0) {
            if (!conn_is_free(u->links, conn)) engine_clear_dirty(e, conn);
            return;
        }
        if (size > most) size = most;
        if (conn_sends_shared(u->links, conn)) {
            struct channel *c = conn_channel(u->links, conn);
            size = send_shared(u, conn, parts, count, size);
            if (c->broken) {
                member_lose(u, conn);
                return;
            }
            if (size == 0) return;
            atomic_store_explicit(&c->other->read, c->written,
                                  memory_order_release);
        }
        engine_tx(e, conn, size);
        most -= size;
    }
}

void member_greet(struct member *u, uint32_t conn, uint64_t from, uint8_t flags)
{
    uint8_t bytes[2 * FRAME_SIZE + FRAME_HELLO_SIZE + FRAME_FILL_SIZE] = {0};
    uint32_t fill_size = u->links->fill_size;
    if (conn >= MEMBER_CONNS || !u->conns[conn].used || u->fast) return;
    const struct conn *c = u->links->conns[conn];
    if (!c || c->state == CONN_FREE) return;
    struct frame f = {.type = FRAME_HELLO,
                      .flags =
                          flags & (FLAG_SHARE | FLAG_MESSAGES | FLAG_GUEST),
                      .size = FRAME_HELLO_SIZE,
                      .seq = MEMBER_QUEUE};
    struct frame fill = {.type = FRAME_FILL, .size = fill_size};
    if (c->link) f.index = c->generation;
    if (f.flags & FLAG_MESSAGES) { /* one dial more than is known of */
        const struct p2p_link *l = p2p_link_find(&u->s->messages, from, false);
        f.index = l ? l->peer_dials + 1 : 1;
        f.epoch = l ? l->first_seq - 1 : 0;
    }
    frame_encode(&f, bytes);
    uint64_t words[4] = {u->links->key.word[0], u->links->key.word[1], from,
                         u->links->self};
    for (size_t i = 0; i < 32; i++)
        bytes[FRAME_SIZE + i] = (uint8_t)(words[i / 8] >> (56 - i % 8 * 8));
    frame_encode(&fill, bytes + FRAME_SIZE + FRAME_HELLO_SIZE);
    member_receive(u, conn, bytes,
                   2 * FRAME_SIZE + FRAME_HELLO_SIZE + (size_t)fill_size);
}

/* ------------------------------------------------------- foreign memory */

struct channel *member_channel_read(void)
{
    return last_read;
}

uint8_t *member_region(void)
{
    return other_region.memory;
}

/* An index that is wrong, or bytes anywhere. */
void member_scribble(struct member *u, uint32_t conn, struct fuzz_input *in)
{
    struct member_channel *m =
        conn < MEMBER_CONNS ? u->conns[conn].channel : NULL;
    if (!m || !m->end) return;
    struct channel *c = m->end;
    uint8_t what = fuzz_u8(in);
    uint64_t value = fuzz_u64(in);
    if (what & 8) value = fuzz_u8(in) - (uint64_t)8;
    switch (what % 8) {
    case 0:
        atomic_store(&c->other->written, m->written + value);
        break;
    case 1:
        atomic_store(&c->other->read, c->written + value);
        break;
    case 2:
        atomic_store(&c->other->base, value);
        break;
    case 3:
        atomic_store(&c->other->asleep, (uint32_t)value);
        break;
    case 4: /* its own indices are this end's memory no less */
        atomic_store(&c->own->written, value);
        atomic_store(&c->own->read, value);
        atomic_store(&c->own->base, value);
        break;
    default:
        for (size_t i = 0; i < 256 && in->left > 0; i++)
            m->memory.memory[(CHANNEL_PAGE + value + i) % m->memory.mapped] =
                fuzz_u8(in);
        break;
    }
    if (!u->fast && conn_channel(u->links, conn)) receive_shared(u, conn);
}

/* The post that is due on a connection, or a hint behind it, and whether it has
 * a mark (rule L11); and how many posts the other end has copied. */
static void scribble_post(struct member *u, uint32_t conn,
                          struct fuzz_input *in)
{
    struct channel *c = conn_channel(u->links, conn % MEMBER_CONNS);
    if (!c || !c->board) return;
    uint8_t what = fuzz_u8(in);
    uint64_t number = c->taken + 1 + what % 2;
    struct channel_mark *mark = &c->other->marks[number % BOARD_SLOTS];
    if (what & 2) atomic_store(&mark->post, number);
    if (what & 2) atomic_store(&mark->at, c->read + (what >> 5));
    if (what & 4) atomic_store(&c->other->taken, u->links->board.posts);
    if (what & 8) atomic_store(&c->other->taken, what);
    uint8_t *memory = other_region.memory;
    uint8_t *slot = memory + REGION_BOARD_AT + board_slot_at(number);
    size_t at = offsetof(struct board_slot, bytes), size = fuzz_u32(in);
    while (in->left > 0 && at < BOARD_STRIDE) slot[at++] = fuzz_u8(in);
    atomic_store(&((struct board_slot *)(void *)slot)->word,
                 number << BOARD_SIZE_BITS | size % (1u << BOARD_SIZE_BITS));
    if (!u->fast) receive_shared(u, conn % MEMBER_CONNS);
}

/* Heads that name what is under way here, posts, and places. */
void member_scribble_region(struct member *u, struct fuzz_input *in)
{
    uint8_t *memory = other_region.memory;
    if (!u->region_used) return;
    uint8_t what = fuzz_u8(in);
    struct single_copy_head *head =
        (struct single_copy_head *)(void *)memory + what % SINGLE_COPY_SLOTS;
    const struct op *op = NULL;
    if (what & 16) {
        scribble_post(u, what >> 5, in);
        return;
    }
    for (uint32_t i = 0; i < MEMBER_OPS && !op; i++) op = u->ops[i].op;
    if (op && (what & 8) == 0) {
        atomic_store(&head->scope, op->scope_number);
        atomic_store(&head->tag, op->r.tag);
        atomic_store(&head->number, (uint64_t)op->epoch << 32 | op->seq);
        return;
    }
    size_t at = fuzz_u32(in) % REGION_SIZE;
    while (in->left > 0 && at < REGION_SIZE) memory[at++] = fuzz_u8(in);
}

/* ---------------------------------------------------------------- beginning */

/* Facts of the engine as the simulator sets them: see recorder.c. */
static void configure(struct member *u, struct fuzz_input *in,
                      struct wire_msg *hello)
{
    struct engine *e = u->s->engine;
    char name[64] = "";
    uint8_t bits = fuzz_u8(in);
    u->links->fill_size = fuzz_u16(in) % FRAME_FILL_SIZE;
    e->many = fuzz_u8(in);
    if (bits & 2) e->cached = 0;
    if (bits & 4) e->single_copy_world = 0;
    /* An element at least, and a place of sixteen members at most. */
    e->piece = fuzz_u32(in) % (64 * 1024 + 1);
    if (e->piece > 0 && e->piece < 64) e->piece = 64;
    hello->hello.self.host = fuzz_u64(in);
    size_t size = fuzz_u8(in) % sizeof name;
    for (size_t i = 0; i < size; i++) name[i] = (char)fuzz_u8(in);
    if (name[0] != '\0') (void)engine_force(e, name);
    uint32_t piece = fuzz_u32(in);
    if (piece > 0 && piece <= PARTIAL_CHUNK) u->s->partial.piece = piece;
}

static uint32_t pool_of(const struct tape_record *config)
{
    return config ? config->arg % (POOL_MAX + 1) : 1;
}

static void open_session(struct member *u, const struct tape_record *config)
{
    struct session_config c = {.driver = {.user = u,
                                          .dial = dial,
                                          .close = close_conn,
                                          .share = share,
                                          .join = join,
                                          .shared = shared,
                                          .region_export = region_export,
                                          .region_attach = region_attach,
                                          .cma_read = cma_read,
                                          .cma_works = cma_works,
                                          .cma_lends = cma_lends,
                                          .cma_prefers = cma_prefers,
                                          .cma_compared = cma_compared,
                                          .round_trip = round_trip},
                               .events = {.user = u, .to_master = to_master},
                               .pool_size = pool_of(config),
                               .deadline = DEADLINE};
    u->shares = !config || (config->size > 0 && (config->bytes[0] & 1));
    if (!u->shares) {
        c.driver.share = NULL;
        c.driver.join = NULL;
        c.driver.shared = NULL;
        c.driver.region_export = NULL;
        c.driver.region_attach = NULL;
    }
    assert(host_open(u->s, &c));
    u->s->waits.reports = true;
    u->s->engine->sums_least = 0; /* rule D9f */
    u->s->engine->pull_least = 1; /* rule D27 */
    u->s->engine->sums_looks = 2;
    u->links = u->s->links;
    u->s->now = u->links->now = u->now;
}

/* Links to all others, through shared memory: this member has dialed them, and
 * those of lower ids dial as well, whose dial is the one that stays. */
static void link_all(struct member *u)
{
    for (uint32_t i = 0; i < MEMBER_CONNS; i++) {
        const struct conn *c = u->links->conns[i];
        if (!c || c->state != CONN_DIALED) continue;
        engine_dialed(u->s->engine, i, true);
        member_drain(u, i, SIZE_MAX);
        member_greet(u, i, c->to, FLAG_SHARE);
    }
    for (uint64_t id = 1; id < MEMBER_SELF; id++) {
        uint32_t conn = dial(u, NULL);
        if (!engine_accepted(u->s->engine, conn)) continue;
        member_greet(u, conn, id, FLAG_SHARE);
    }
    for (uint32_t i = 0; i < MEMBER_CONNS; i++) member_drain(u, i, SIZE_MAX);
}

static void join_view(struct member *u, uint32_t world)
{
    struct wire_member members[MEMBER_WORLD_MAX];
    struct wire_msg welcome = {.type = WIRE_WELCOME};
    struct wire_msg view = {.type = WIRE_PROPOSE, .round = 1};
    welcome.welcome.id = MEMBER_SELF;
    for (uint32_t i = 0; i < world; i++)
        members[i] = (struct wire_member){.id = i + 1u, .host = HOST};
    view.member_count = world;
    view.members = members;
    view.view.ring = view.view.mesh = true;
    member_tell(u, &welcome);
    member_tell(u, &view);
    link_all(u);
    session_settle(u->s);
    view.type = WIRE_INSTALL;
    view.view.world = world;
    member_tell(u, &view);
    assert(u->s->state == SESSION_MEMBER);
}

void member_begin(struct member *u, const struct tape_record *config)
{
    struct wire_msg hello = {.type = WIRE_HELLO};
    *u = (struct member){.now = PCCL_S};
    u->s = sparse_take(&session_memory, sizeof *u->s);
    for (size_t i = 0; i < MEMBER_CHANNELS; i++) channels[i].end = NULL;
    open_session(u, config);
    hello.hello.self.host = HOST;
    u->links->fill_size = FILL;
    if (config) {
        struct fuzz_input in = {config->bytes, config->size};
        configure(u, &in, &hello);
    }
    session_hello(u->s, &hello);
    if (!config) {
        join_view(u, MEMBER_OTHERS + 1);
    } else if (config->size > 0 && (config->bytes[0] & 8)) {
        join_view(u, 2 + config->bytes[0] / 16u % (MEMBER_WORLD_MAX - 1));
    }
}

void member_end(struct member *u)
{
    session_free(u->s);
    member_calls_end(u);
}
