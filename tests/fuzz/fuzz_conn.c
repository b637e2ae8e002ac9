/* fuzz_conn.c - plays a tape on one member of several: connections by sockets
 * and shared memory, operations, messages, shared state, the coordinator's
 * rounds, and memory that other processes write. Nothing that others do may end
 * this process, or touch what is not theirs; its own calls are legal. */
#include "member.h"

#include <malloc.h>

/* ------------------------------------------------------------ one record */

static void dialed(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    const struct conn *c = u->links->conns[r->arg];
    bool success = fuzz_u8(&in) & 1;
    pccl_ns rtt = fuzz_u32(&in);
    if (!c || c->state != CONN_DIALED || c->tx_head_size > 0) return;
    if (success && rtt > 0) engine_measured(u->s->engine, r->arg, rtt);
    engine_dialed(u->s->engine, r->arg, success);
}

static void accepted(struct member *u, uint32_t conn)
{
    for (uint32_t i = 0; i < MEMBER_CONNS && u->conns[conn].used; i++) conn = i;
    if (u->conns[conn].used) return;
    u->conns[conn].used = true;
    if (!engine_accepted(u->s->engine, conn)) u->conns[conn].used = false;
}

static void vote(struct member *u, uint8_t kind)
{
    kind %= VOTE_KIND_COUNT;
    if (u->s->votes[kind] == VOTE_ANSWERED) u->s->votes[kind] = VOTE_IDLE;
    (void)session_vote(u->s, (enum vote_kind)kind);
}

/* What it then knows of the step. */
static void samples(struct member *u, struct fuzz_input *in)
{
    struct sample_report report = {.step = fuzz_u64(in)};
    report.count = fuzz_u64(in);
    report.target = fuzz_u64(in);
    session_report_samples(u->s, &report);
    struct sample_sum sum = sample_look(&u->s->samples);
    assert(sum.known && sum.step >= report.step);
}

/* WELCOME gave the grace that the loss is met with. */
static void resume(struct member *u, uint8_t bits)
{
    struct wire_msg msg = {.type = WIRE_RESUMED};
    if (bits & 1) {
        u->s->grace = 2 * PCCL_S;
        session_master_gone(u->s, "gone");
    }
    if (session_may_resume(u->s)) session_resume(u->s);
    if (!(bits & 2)) return;
    msg.resume.id = u->s->id;
    msg.resume.term = u->s->term + 1;
    msg.resume.grace_ms = bits & 8 ? 0 : 2000;
    msg.resume.installs = bits & 4;
    member_tell(u, &msg);
}

static bool play_outside(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    switch (r->kind) {
    case MEMBER_TICK:
        u->now += fuzz_u32(&in);
        session_tick(u->s, u->now);
        return true;
    case MEMBER_MASTER:
        member_decode(u, r->bytes, r->size);
        return true;
    case MEMBER_MASTER_GONE:
        session_master_gone(u->s, "gone");
        return true;
    case MEMBER_RESUME:
        resume(u, r->arg);
        return true;
    case MEMBER_SETTLE:
        session_settle(u->s);
        return true;
    case MEMBER_ACCEPTED:
        accepted(u, r->arg);
        return true;
    case MEMBER_DIALED:
        dialed(u, r);
        return true;
    case MEMBER_CLOSED:
        member_lose(u, r->arg);
        return true;
    case MEMBER_BYTES:
        member_receive(u, r->arg, r->bytes, r->size);
        return true;
    case MEMBER_DRY:
        if (!conn_is_free(u->links, r->arg))
            engine_rx_dry(u->s->engine, r->arg);
        return true;
    case MEMBER_SENT:
        member_drain(u, r->arg, fuzz_u32(&in));
        return true;
    case MEMBER_SAY:
        member_say(u, r);
        return true;
    case MEMBER_MASTER_SAYS:
        member_master_says(u, r);
        return true;
    case MEMBER_GREET:
        member_greet(u, r->arg, fuzz_u8(&in) % 8u, fuzz_u8(&in));
        return true;
    default:
        return false;
    }
}

static void play_call(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    switch (r->kind) {
    case MEMBER_LAUNCH:
    case MEMBER_FAST:
        member_launch(u, r);
        return;
    case MEMBER_TAKE:
        member_take(u, fuzz_u64(&in));
        return;
    case MEMBER_FAIL:
        (void)session_fail(u->s, fuzz_u64(&in));
        return;
    case MEMBER_WAITS:
        engine_wait_begins(u->s->engine);
        return;
    case MEMBER_VOTE:
        vote(u, r->arg);
        return;
    case MEMBER_LEAVE:
        session_leave(u->s);
        return;
    case MEMBER_SYNC:
        member_sync(u, r);
        return;
    case MEMBER_SYNC_TAKE:
        member_sync_take(u);
        return;
    case MEMBER_POST:
        member_post(u, r);
        return;
    case MEMBER_EVENT:
        member_event(u);
        return;
    case MEMBER_PROGRESS:
        message_progress(&u->s->messages);
        (void)message_poll_set(&u->s->messages);
        (void)message_flush(&u->s->messages);
        return;
    case MEMBER_SEND:
        member_send_rndv(u, r);
        return;
    case MEMBER_RECV:
        member_recv_rndv(u, r);
        return;
    case MEMBER_CANCEL:
        member_cancel(u, r);
        return;
    case MEMBER_PARTIAL:
        member_partial(u, r);
        return;
    case MEMBER_PARTIAL_TAKE:
        member_partial_take(u, fuzz_u64(&in));
        return;
    case MEMBER_OFFER:
        member_offer(u, r);
        return;
    case MEMBER_OFFER_END:
        member_offer_end(u);
        return;
    case MEMBER_SAMPLES:
        samples(u, &in);
        return;
    default:
        return;
    }
}

/* While a fast operation is under way its caller does nothing else. */
static bool play_fast(struct member *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    switch (r->kind) {
    case MEMBER_POLL:
        member_poll(u);
        return true;
    case MEMBER_CONVERT:
        member_convert(u);
        return true;
    case MEMBER_SAY_FAST:
        member_say_fast(u, r);
        return true;
    case MEMBER_MEMORY:
        member_scribble(u, r->arg, &in);
        return true;
    case MEMBER_REGION:
        member_scribble_region(u, &in);
        return true;
    case MEMBER_BYTES:
        if (u->fast && conn_channel(u->links, r->arg)) {
            member_receive(u, r->arg, r->bytes, r->size);
            return true;
        }
        break;
    default:
        break;
    }
    if (u->fast) member_convert(u);
    return false;
}

/* What a member has most of, and touches little of, comes from the kernel as
 * zeros: the heap would zero all of it for each input. */
static void use_fresh_pages(void)
{
    static bool done;
    if (!done) (void)mallopt(M_MMAP_THRESHOLD, 1 << 21);
    done = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    static struct member u;
    use_fresh_pages();
    struct tape_record r;
    bool config = in.left >= TAPE_HEAD && in.at[0] == MEMBER_CONFIG;
    if (config) (void)tape_next(&in, &r);
    member_begin(&u, config ? &r : NULL);
    while (tape_next(&in, &r)) {
        r.kind %= MEMBER_KIND_COUNT;
        if (play_fast(&u, &r)) continue;
        if (!play_outside(&u, &r)) play_call(&u, &r);
    }
    member_end(&u);
    return 0;
}

/* ------------------------------------------------------------- for mutate.c */

const uint8_t tape_kinds = MEMBER_KIND_COUNT;

static size_t numbers(uint64_t *random, uint8_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++) to[i] = (uint8_t)tape_random(random);
    return count;
}

/* Small sizes of an all-to-all: as many bytes go as come, most often. */
static size_t make_pairs(uint64_t *random, uint8_t *to)
{
    size_t size = 1;
    to[0] = 8;
    for (uint8_t i = 0; i < to[0]; i++) {
        uint8_t bytes = (uint8_t)tape_pick(random, 32);
        bool odd = tape_pick(random, 16) == 0;
        to[size++] = bytes;
        to[size++] = odd;
        to[size++] = bytes;
        to[size++] = 0;
    }
    return size;
}

/* A launch of something small with one of few tags, more often than not. */
static size_t make_launch(uint64_t *random, uint8_t *to)
{
    size_t size = numbers(random, to, 34);
    memset(to, 0, 8);
    to[0] = (uint8_t)tape_pick(random, 4);
    if (tape_pick(random, 2)) to[10] = 0; /* sum */
    if (tape_pick(random, 4)) to[11] = 0; /* not quantized */
    memset(to + 17, 0, 4);
    to[17] = (uint8_t)tape_pick(random, 32);
    if (tape_pick(random, 4) == 0) to[18] = (uint8_t)tape_pick(random, 255);
    if (tape_pick(random, 16) == 0) to[19] = (uint8_t)tape_pick(random, 16);
    memset(to + 21, 0, 8);
    to[29] = 0;
    if (to[8] % COLL_COUNT == COLL_ALLTOALLV && tape_pick(random, 4) > 0)
        return 30 + make_pairs(random, to + 30);
    if (tape_pick(random, 6) > 0) return size;
    uint8_t count = (uint8_t)(1 + tape_pick(random, 3));
    to[29] = count;
    for (uint8_t i = 0; i < count; i++) {
        memset(to + 30 + 8 * i, 0, 8);
        to[30 + 8 * i] = (uint8_t)(1 + (tape_pick(random, 3) + i) % 4);
    }
    return 30 + 8 * (size_t)count;
}

static size_t make_sync(uint64_t *random, uint8_t *to)
{
    static const uint32_t runs[] = {1, 3, 100, 2000, 65536, 65537, 150000};
    memset(to, 0, 9);
    to[8] = (uint8_t)(1 + tape_pick(random, 4));
    size_t size = 9;
    for (uint8_t i = 0; i < to[8]; i++) {
        uint32_t run = runs[tape_pick(random, 7)];
        to[size++] = tape_pick(random, 8) == 0;
        to[size++] = 1;
        for (int k = 0; k < 4; k++) to[size++] = (uint8_t)(run >> (8 * k));
        to[size++] = (uint8_t)tape_pick(random, 4);
    }
    return size;
}

static size_t make_offer(uint64_t *random, uint8_t *to)
{
    memset(to, 0, 20);
    to[0] = (uint8_t)tape_pick(random, 4);
    if (tape_pick(random, 4) == 0) /* rate */
        for (uint32_t i = tape_pick(random, 8); i > 0; i--)
            to[7 + i] = (uint8_t)tape_random(random);
    to[16] = (uint8_t)tape_pick(random, 3);
    to[17] = (uint8_t)(tape_pick(random, 3) ? 4 : 0); /* share */
    uint8_t sync[64];
    size_t size = make_sync(random, sync);
    for (uint8_t i = 0; i < sync[8] && tape_pick(random, 4) == 0; i++)
        sync[9 + 7 * i] |= (uint8_t)(4 + 8 * tape_pick(random, 2));
    memcpy(to + 20, sync + 8, size - 8);
    return 20 + size - 8;
}

static size_t make_partial(uint64_t *random, uint8_t *to)
{
    static const double weights[] = {1, 2.5, 1e290, 1e-300};
    memset(to, 0, 34);
    to[0] = (uint8_t)tape_pick(random, 4);
    to[8] = (uint8_t)tape_pick(random, DTYPE_COUNT);
    to[9] = (uint8_t)tape_pick(random, 2);
    to[10] = (uint8_t)tape_random(random);
    to[11] = (uint8_t)tape_pick(random, 3);
    memcpy(to + 14, &weights[tape_pick(random, 4)], 8);
    to[23] = (uint8_t)(1 + tape_pick(random, 16)); /* deadline */
    to[30] = (uint8_t)tape_pick(random, 3);
    return 34;
}

static size_t make_frame(uint64_t *random, uint8_t *to)
{
    struct frame f = {
        .type = (uint8_t)(1 + tape_pick(random, FRAME_TYPE_COUNT - 1)),
        .flags = (uint8_t)tape_pick(random, 64),
        .epoch = tape_pick(random, 3),
        .tag = tape_pick(random, 5),
        .seq = tape_pick(random, 4),
        .index = tape_pick(random, 4),
        .digest = tape_pick(random, 3)};
    if (tape_pick(random, 4) == 0) f.size = tape_pick(random, 100);
    frame_encode(&f, to);
    return FRAME_SIZE + numbers(random, to + FRAME_SIZE, f.size);
}

static size_t make_say(uint64_t *random, uint8_t *body)
{
    size_t size = numbers(random, body, 6);
    if (tape_pick(random, 4)) body[2] = 0;
    if (tape_pick(random, 4)) body[1] &= FLAG_CONFIRM | FLAG_SINGLE_COPY;
    if (tape_pick(random, 2)) body[0] = (uint8_t)(1 + tape_pick(random, 3));
    if (tape_pick(random, 4) == 0)
        body[0] = (uint8_t)(FRAME_PART_GET - 1 + tape_pick(random, 2));
    return size;
}

size_t tape_make(uint8_t kind, uint64_t *random, uint8_t *to)
{
    static const uint8_t often[] = {
        MEMBER_SAY,     MEMBER_SAY,    MEMBER_SAY,          MEMBER_LAUNCH,
        MEMBER_FAST,    MEMBER_POLL,   MEMBER_MASTER_SAYS,  MEMBER_MASTER_SAYS,
        MEMBER_SENT,    MEMBER_GREET,  MEMBER_MEMORY,       MEMBER_RECV,
        MEMBER_SYNC,    MEMBER_TICK,   MEMBER_TAKE,         MEMBER_REGION,
        MEMBER_PARTIAL, MEMBER_RESUME, MEMBER_PARTIAL_TAKE, MEMBER_OFFER,
        MEMBER_SAY_FAST};
    uint8_t *body = to + TAPE_HEAD;
    if (tape_pick(random, 2)) kind = often[tape_pick(random, sizeof often)];
    uint8_t arg = (uint8_t)tape_pick(random, kind == MEMBER_CONFIG ? 3 : 6);
    size_t size = numbers(random, body, tape_pick(random, 24));
    switch (kind) {
    case MEMBER_LAUNCH:
    case MEMBER_FAST:
        size = make_launch(random, body);
        break;
    case MEMBER_SYNC:
        size = make_sync(random, body);
        break;
    case MEMBER_OFFER:
        size = make_offer(random, body);
        break;
    case MEMBER_SAMPLES:
        memset(body, 0, size = 24);
        body[0] = (uint8_t)tape_pick(random, 4);
        body[8] = (uint8_t)tape_random(random);
        body[16] = (uint8_t)tape_random(random);
        break;
    case MEMBER_PARTIAL:
        size = make_partial(random, body);
        break;
    case MEMBER_BYTES:
        size = make_frame(random, body);
        break;
    case MEMBER_SAY:
        size = make_say(random, body);
        break;
    case MEMBER_MASTER_SAYS:
        arg = (uint8_t)tape_random(random);
        if (tape_pick(random, 4) && size > 0 && arg < 192) body[0] = 0;
        break;
    case MEMBER_TAKE:
    case MEMBER_FAIL:
    case MEMBER_PARTIAL_TAKE:
        memset(body, 0, size = 8);
        body[0] = (uint8_t)tape_pick(random, 4);
        break;
    case MEMBER_SENT:
        memset(body, tape_pick(random, 3) ? 0x7f : 0, size = 4);
        body[0] = (uint8_t)tape_random(random);
        break;
    case MEMBER_POST:
        memset(body, 0, 8);
        body[0] = (uint8_t)tape_pick(random, 5);
        size = 8 + tape_pick(random, 200);
        break;
    case MEMBER_TICK:
        size = 4;
        body[3] = (uint8_t)tape_pick(random, 6);
        break;
    case MEMBER_SAY_FAST:
        if (tape_pick(random, 4)) body[0] = 0;
        arg |= tape_pick(random, 2) ? 128 : 0;
        break;
    case MEMBER_SEND:
    case MEMBER_RECV:
    case MEMBER_CANCEL:
        arg |= tape_pick(random, 2) ? 128 : 0;
        break;
    default:
        break;
    }
    uint8_t copy[TAPE_HEAD] = {kind, arg, (uint8_t)size, (uint8_t)(size >> 8)};
    memcpy(to, copy, sizeof copy);
    return TAPE_HEAD + size;
}

/* One field of the header of a frame, or of a message's first fields. */
void tape_vary(uint8_t kind, uint64_t *random, uint8_t *bytes, size_t size)
{
    static const uint8_t fields[][2] = {{2, 1},  {3, 1},  {4, 4},
                                        {8, 8},  {16, 4}, {20, 4},
                                        {24, 4}, {28, 8}, {36, 8}};
    size_t at = 0;
    if (kind == MEMBER_BYTES) {
        uint32_t skip = tape_pick(random, 4);
        for (size_t i = 0; i + FRAME_SIZE <= size; i++) {
            if (bytes[i] != FRAME_MAGIC || bytes[i + 1] != FRAME_VERSION)
                continue;
            at = i;
            if (skip-- == 0) break;
        }
        const uint8_t *f = fields[tape_pick(random, 9)];
        if (at + FRAME_SIZE <= size && bytes[at] == FRAME_MAGIC) {
            tape_vary_number(random, bytes + at + f[0], f[1]);
            return;
        }
    }
    if (kind == MEMBER_MASTER && size > WIRE_HEADER_SIZE) {
        at = WIRE_HEADER_SIZE + tape_pick(random, 64);
        if (tape_pick(random, 8) == 0) at = 3; /* type */
    } else {
        at = tape_pick(random, (uint32_t)size);
    }
    size_t width = (size_t)1 << tape_pick(random, 4);
    if (at + width > size) at = size - 1;
    if (at + width > size) width = 1;
    tape_vary_number(random, bytes + at, width);
}
