/* fuzz_conn.c - any bytes from another member, in any pieces, into a session
 * that is one of two members and has operations in flight. Sizes that the
 * engine asks for are its own; only their content is not. */
#include "fuzz.h"

#include "../../include/pccl.h"
#include "../../src/base/cursor.h"
#include "../../src/elastic/session.h"
#include "../../src/ring/op.h"

#include <stdlib.h>
#include <string.h>

enum { SELF = 1, OTHER = 2, COUNT = 20000, TAGS = 3, FILL = 8 };

static float buffers[TAGS][COUNT];

struct universe {
    struct session *s;
    bool open; /* connection 0 */
    uint32_t closes;
    struct op *ops[TAGS];
    pccl_ns now;
};

static void to_master(void *user, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    (void)user;
    (void)wire_encode(msg, frame);
}

static uint32_t dial(void *user, const struct wire_addr *addr)
{
    struct universe *u = user;
    (void)addr;
    if (u->open) return NO_CONN;
    u->open = true;
    return 0;
}

static void closed(void *user, uint32_t conn)
{
    struct universe *u = user;
    assert(conn == 0 && u->open);
    u->open = false;
    u->closes++;
}

static void changed(void *user)
{
    (void)user;
}

static void receive(struct universe *u, const uint8_t *bytes, size_t size)
{
    while (size > 0 && u->open) {
        uint8_t *to = NULL;
        size_t room = engine_rx_window(u->s->engine, 0, &to);
        if (room == 0) return; /* held until an epoch that never comes */
        size_t part = size < room ? size : room;
        memcpy(to, bytes, part);
        bytes += part;
        size -= part;
        uint32_t before = u->closes;
        bool right = engine_rx(u->s->engine, 0, part);
        assert(right || u->closes > before);
        if (u->closes > before) return; /* perhaps dialed again */
    }
}

static void drain(struct universe *u)
{
    struct conn_part parts[2];
    for (int i = 0; i < 64 && u->open; i++) {
        uint32_t count = engine_tx_window(u->s->engine, 0, parts);
        size_t size = 0;
        for (uint32_t p = 0; p < count; p++) size += parts[p].size;
        if (size == 0) return;
        engine_tx(u->s->engine, 0, size);
    }
}

static void greet(struct universe *u)
{
    uint8_t bytes[2 * FRAME_SIZE + FRAME_HELLO_SIZE + FILL] = {0};
    struct frame f = {.type = FRAME_HELLO, .size = FRAME_HELLO_SIZE};
    struct frame fill = {.type = FRAME_FILL, .size = FILL};
    frame_encode(&f, bytes);
    frame_encode(&fill, bytes + FRAME_SIZE + FRAME_HELLO_SIZE);
    bytes[FRAME_SIZE + 23] = OTHER; /* the key is zero; from, to */
    bytes[FRAME_SIZE + 31] = SELF;
    receive(u, bytes, sizeof bytes);
}

static void join(struct universe *u)
{
    struct wire_msg hello = {.type = WIRE_HELLO};
    struct wire_member members[2] = {{.id = SELF}, {.id = OTHER}};
    struct wire_msg welcome = {.type = WIRE_WELCOME};
    struct wire_msg view = {.type = WIRE_PROPOSE, .round = 1};
    welcome.welcome.id = SELF;
    view.member_count = 2;
    view.members = members;
    view.ids = (const uint64_t[1]){0}; /* never NULL when decoded */
    view.view.ring = view.view.mesh = true;
    u->s->engine->links.fill_size = FILL;
    session_hello(u->s, &hello);
    session_on_message(u->s, &welcome);
    session_on_message(u->s, &view);
    assert(u->open); /* the lower id calls */
    engine_dialed(u->s->engine, 0, true);
    greet(u);
    session_settle(u->s);
    view.type = WIRE_INSTALL;
    view.view.world = 2;
    session_on_message(u->s, &view);
    assert(u->s->state == SESSION_MEMBER);
}

static void launch(struct universe *u, struct fuzz_input *in)
{
    uint32_t tag = fuzz_below(in, TAGS);
    uint8_t bits = fuzz_u8(in);
    if (u->ops[tag]) {
        uint64_t bytes;
        uint32_t n;
        if (u->ops[tag]->phase != PHASE_DONE) return;
        (void)session_take(u->s, u->ops[tag], &n, &bytes, &bytes);
        u->ops[tag] = NULL;
        return;
    }
    struct op_request r = {.tag = tag,
                           .sendbuf = buffers[tag],
                           .recvbuf = buffers[tag],
                           .dtype = DTYPE_F32,
                           .redop = REDOP_SUM};
    r.plan.coll = bits & 1 ? COLL_BROADCAST : COLL_ALLREDUCE;
    r.plan.element = bits & 1 ? 1 : 4;
    r.plan.root = bits >> 1 & 1;
    r.plan.count = bits & 4 ? COUNT : COUNT / 1000;
    if ((bits & 25) == 24) engine_quantize(&r, QUANT_MINMAX, DTYPE_U8);
    if ((bits & 25) == 16)
        engine_quantize(&r, QUANT_ZERO_POINT_SCALE, DTYPE_I16);
    if (session_launch(u->s, &r, 0, &u->ops[tag]) != pcclSuccess)
        u->ops[tag] = NULL;
}

/* A header that fits what is in flight more often than chance would. */
static void say(struct universe *u, struct fuzz_input *in)
{
    static const uint8_t zeros[4096];
    uint8_t header[FRAME_SIZE];
    uint8_t bits = fuzz_u8(in);
    struct frame f = {.type = (uint8_t)(FRAME_DATA + bits % 6),
                      .flags = bits >> 2 & 3,
                      .epoch = bits >> 4 == 15 ? 2 : 1,
                      .tag = fuzz_below(in, TAGS),
                      .seq = 1 + fuzz_below(in, 16) / 15,
                      .index = fuzz_below(in, 4)};
    if (f.type == FRAME_DATA || f.type == FRAME_STATE_DATA)
        f.size = (uint32_t)fuzz_below(in, 12) * 4;
    if (f.size == 40) f.size = COUNT * 4 / 2;
    if (f.size == 44) { /* codes; of zeros and of anything */
        const struct quant q = {QUANT_MINMAX, DTYPE_F32,
                                bits & 64 ? DTYPE_U8 : DTYPE_I16};
        f.size = (uint32_t)quant_size(&q, bits & 128 ? COUNT : COUNT / 1000);
    }
    frame_encode(&f, header);
    receive(u, header, sizeof header);
    for (uint32_t left = f.size; left > 0;) {
        uint32_t part = left < sizeof zeros ? left : (uint32_t)sizeof zeros;
        receive(u, zeros, part);
        left -= part;
    }
}

static void act(struct universe *u, struct fuzz_input *in)
{
    size_t size;
    switch (fuzz_below(in, 8)) {
    case 0:
    case 1:
        launch(u, in);
        return;
    case 2:
        drain(u);
        return;
    case 3: /* anything */
        size = fuzz_u8(in);
        if (size > in->left) size = in->left;
        receive(u, in->at, size);
        in->at += size;
        in->left -= size;
        return;
    case 4:
        u->now += PCCL_MS * fuzz_u8(in);
        session_tick(u->s, u->now);
        session_settle(u->s);
        return;
    case 5: /* called again, by who knows whom */
        if (u->open) return;
        u->open = engine_accepted(u->s->engine, 0);
        if (fuzz_u8(in) & 1) greet(u);
        return;
    default:
        say(u, in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    struct universe u = {.s = calloc(1, sizeof *u.s)};
    struct session_config config = {
        .driver = {.user = &u, .dial = dial, .close = closed},
        .events = {.user = &u, .to_master = to_master, .changed = changed},
        .pool_size = 1,
        .deadline = PCCL_S};
    assert(u.s && session_init(u.s, &config));
    join(&u);
    while (in.left > 0) act(&u, &in);
    session_free(u.s);
    free(u.s);
    return 0;
}
