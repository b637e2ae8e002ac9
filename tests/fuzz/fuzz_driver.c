/* fuzz_driver.c - one member as programs have it: all of src/peer/, with a
 * kernel, a coordinator and mates in the same thread (driver_kernel.h,
 * driver_world.h). The others do what the rules say, but for what a tape
 * wants: bytes that change on their way, words in shared memory, connections
 * that break, strangers, and calls of the kernel that fail. Each call of the
 * program ends; a sum that is returned is right unless somebody has lied; and
 * in the end no descriptor, thread or byte is left. */
#include "driver_calls.h"
#include "sparse.h"

#include "../../src/base/run_key.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STRANGERS = 6, TURNS = 3 };

/* The argument is what each says. */
enum driver_kind {
    DRIVER_CONFIG,   /* mates; bits (2), pool, limit in 10 ms, processors */
    DRIVER_CALL,     /* enum driver_call; its arguments */
    DRIVER_TURNS,    /* turns of the others */
    DRIVER_THREAD,   /* turns of the thread */
    DRIVER_TIME,     /* 10 ms */
    DRIVER_FAULT,    /* enum kernel_call; after, times, error */
    DRIVER_SPOIL,    /* bytes from now (2), change */
    DRIVER_MATE,     /* mate and enum mate_word; more */
    DRIVER_MASTER,   /* enum master_word */
    DRIVER_SAY,      /* bytes of the coordinator */
    DRIVER_MESSAGE,  /* a message of it: type, round, epoch, flag, ... */
    DRIVER_STRANGER, /* which; bytes, and then it hangs up if 128 */
    DRIVER_CUT,      /* a connection: how */
    DRIVER_BYTES,    /* a connection; bytes of its other end */
    DRIVER_MEMORY,   /* a channel; word, value (8) */
    DRIVER_PATH,     /* what TCP_INFO says (4 each) */
    DRIVER_TEXT,     /* which; what the kernel says of this process */
    DRIVER_KIND_COUNT
};

enum mate_word {
    MATE_DIES,
    MATE_JOINS,
    MATE_SILENT,
    MATE_HEARD,
    MATE_POSTS,  /* head, size (2) */
    MATE_SENDS,  /* key */
    MATE_WANTS,  /* key */
    MATE_OFFERS, /* revision */
    MATE_REFUSES,
    MATE_WORDS
};

enum config_bit {
    CONFIG_TCP = 1,
    CONFIG_SHM = 2,
    CONFIG_AT_ONCE = 4,
    CONFIG_DISTANT = 8,
    CONFIG_KEYED = 16,
    CONFIG_GRACE = 32,
    CONFIG_APART = 64, /* the program connects by itself */
    CONFIG_RELAYS = 128,
    CONFIG_MINIMUM = 256,
    CONFIG_ALONE = 512, /* the mates begin without the driver */
    CONFIG_FAR = 1024,
    CONFIG_SEVERAL = 2048,
};

static struct fuzz_input tape;
static uint32_t strangers[STRANGERS];
static char key_file[] = "/tmp/pccl-fuzz-driver-key-XXXXXX";
static bool has_key_file;

/* ----------------------------------------------- what the mates' programs do
 */

int __real_session_launch(struct session *s, const struct op_request *r,
                          uint64_t view_epoch, struct op **out);
int __wrap_session_launch(struct session *s, const struct op_request *r,
                          uint64_t view_epoch, struct op **out);
bool __real_session_fast(struct session *s, const struct op_request *r,
                         uint64_t view_epoch);
bool __wrap_session_fast(struct session *s, const struct op_request *r,
                         uint64_t view_epoch);
int __real_session_vote(struct session *s, enum vote_kind kind);
int __wrap_session_vote(struct session *s, enum vote_kind kind);
int __real_session_sync(struct session *s, struct state_list *list,
                        enum sync_strategy strategy, uint64_t revision);
int __wrap_session_sync(struct session *s, struct state_list *list,
                        enum sync_strategy strategy, uint64_t revision);
int __real_session_partial(struct session *s, const struct partial_request *r,
                           struct partial_call **out);
int __wrap_session_partial(struct session *s, const struct partial_request *r,
                           struct partial_call **out);

int __wrap_session_launch(struct session *s, const struct op_request *r,
                          uint64_t view_epoch, struct op **out)
{
    int result = __real_session_launch(s, r, view_epoch, out);
    if (kernel_on && result == pcclSuccess)
        world_wish_op(r, s->notified.view->size);
    return result;
}

bool __wrap_session_fast(struct session *s, const struct op_request *r,
                         uint64_t view_epoch)
{
    bool begun = __real_session_fast(s, r, view_epoch);
    if (kernel_on && begun) world_wish_op(r, s->notified.view->size);
    return begun;
}

int __wrap_session_vote(struct session *s, enum vote_kind kind)
{
    int result = __real_session_vote(s, kind);
    if (kernel_on && result == pcclSuccess) world_wish_vote(kind);
    return result;
}

int __wrap_session_sync(struct session *s, struct state_list *list,
                        enum sync_strategy strategy, uint64_t revision)
{
    int result = __real_session_sync(s, list, strategy, revision);
    if (kernel_on && result == pcclSuccess) world_wish_sync(strategy);
    return result;
}

int __wrap_session_partial(struct session *s, const struct partial_request *r,
                           struct partial_call **out)
{
    int result = __real_session_partial(s, r, out);
    if (kernel_on && result == pcclSuccess) world_wish_partial(r);
    return result;
}

/* ---------------------------------------------------------- what happens */

static void mate(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    static const uint8_t bytes[MESSAGE_MAX];
    const pcclComm_t *c = program_comm();
    uint32_t number = r->arg % MATES;
    uint64_t driver = c && c->session ? c->session->id : 0;
    switch (r->arg / MATES % MATE_WORDS) {
    case MATE_DIES:
        world_mate_dies(number);
        return;
    case MATE_JOINS:
        world_mate_joins(number);
        return;
    case MATE_SILENT:
    case MATE_HEARD:
        if (world_mate(number))
            world_mate(number)->silent =
                r->arg / MATES % MATE_WORDS == MATE_SILENT;
        return;
    case MATE_POSTS: {
        size_t head = fuzz_u8(&in) % (MESSAGE_HEADER_MAX + 1);
        size_t size = head + fuzz_u16(&in) / 2;
        world_post(number, driver, bytes, head, size);
        return;
    }
    case MATE_SENDS:
    case MATE_WANTS:
        world_bulk(number, driver, fuzz_u8(&in),
                   r->arg / MATES % MATE_WORDS == MATE_SENDS);
        return;
    case MATE_REFUSES:
        if (world_mate(number)) world_mate(number)->refuses = true;
        return;
    default:
        world_offer(number, fuzz_u8(&in));
    }
}

static void coordinator(uint8_t what)
{
    if (what % 4 == 0) world_master_dies();
    if (what % 4 == 1) world_master_is_silent(true);
    if (what % 4 == 2) world_master_is_silent(false);
}

/* It names what there is, or nearly. */
static void message(const struct tape_record *r)
{
    static const enum wire_type types[] = {
        WIRE_HEARTBEAT, WIRE_EVICT,   WIRE_ANSWER,   WIRE_FLUSH,
        WIRE_QUERY,     WIRE_INSTALL, WIRE_STATE,    WIRE_DIAL_REQUEST,
        WIRE_SILENT,    WIRE_SAMPLES, WIRE_OFFERS,   WIRE_WELCOME,
        WIRE_RESUMED,   WIRE_CLAIM,   WIRE_KEEP_GET, WIRE_PROBE};
    struct fuzz_input in = {r->bytes, r->size};
    const pcclComm_t *c = program_comm();
    struct wire_msg msg = {.type = types[r->arg % ARRAY_COUNT(types)]};
    if (!c || !c->session) return;
    msg.round = c->session->round + fuzz_u8(&in) % 3;
    msg.epoch = c->session->view->epoch + fuzz_u8(&in) % 2;
    if (msg.type == WIRE_ANSWER) {
        msg.vote.kind = fuzz_u8(&in) % VOTE_KIND_COUNT;
        msg.vote.flag = fuzz_u8(&in);
    }
    if (msg.type == WIRE_DIAL_REQUEST) msg.fault.peer = fuzz_u8(&in);
    world_say_message(&msg);
}

static void stranger(const struct tape_record *r)
{
    uint32_t *s = &strangers[r->arg % STRANGERS];
    uint16_t port = kernel_own_port();
    if (*s == NO_STREAM && port != 0) *s = kernel_call_driver(port);
    if (*s == NO_STREAM) return;
    (void)kernel_put(*s, 0, r->bytes, r->size);
    if (!(r->arg & 128)) return;
    kernel_hang_up(*s, 0, r->arg & 64);
    *s = NO_STREAM;
}

/* As a network does it: both ends notice, or one. */
static void cut(const struct tape_record *r)
{
    int side;
    uint32_t number = kernel_any(r->arg / 4, &side);
    if (number == NO_STREAM) return;
    struct kernel_stream *s = kernel_stream(number);
    for (int i = 0; i < 2; i++) {
        if (i == side && r->arg % 4 == 1) continue;
        s->pipe[i].ended = true;
        s->pipe[i].reset |= (r->arg & 2) != 0;
        if (s->pipe[i].reset) s->pipe[i].count = 0;
    }
    if (s->connecting) s->error = ECONNREFUSED;
}

static void insert(const struct tape_record *r)
{
    int side;
    uint32_t number = kernel_any(r->arg, &side);
    if (number != NO_STREAM) (void)kernel_put(number, !side, r->bytes, r->size);
}

/* The words of either end. */
static void scribble(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    struct shared_memory *m = world_shared(r->arg);
    if (!m || !m->memory) return;
    struct channel_page *page = (struct channel_page *)(void *)m->memory;
    uint8_t what = fuzz_u8(&in);
    struct channel_side *side = &page->sides[what >> 4 & 1];
    uint64_t value = fuzz_u64(&in);
    if (what & 8) value = fuzz_u8(&in) - (uint64_t)8;
    switch (what % 4) {
    case 0:
        atomic_store(&side->written, atomic_load(&side->written) + value);
        return;
    case 1:
        atomic_store(&side->read, atomic_load(&side->read) + value);
        return;
    case 2:
        atomic_store(&side->base, value);
        return;
    default:
        atomic_store(&side->asleep, (uint32_t)value);
    }
}

/* What any kernel may do at any time, and no call of the program notices. */
static bool is_usual(enum kernel_call call, int error)
{
    switch (call) {
    case KERNEL_SHORT:
        return true;
    case KERNEL_RECV:
    case KERNEL_SEND:
        return error == EAGAIN || error == EINTR;
    case KERNEL_POLL:
        return error == EINTR;
    case KERNEL_ACCEPT:
        return error == EAGAIN || error == EINTR || error == EMFILE ||
               error == ENOMEM;
    default:
        return false;
    }
}

static void fail(const struct tape_record *r)
{
    static const int errors[] = {EAGAIN,     EINTR,  ECONNRESET,   ENOMEM,
                                 EMFILE,     ENFILE, ENOBUFS,      EIO,
                                 EADDRINUSE, EPIPE,  ECONNREFUSED, ETIMEDOUT};
    struct fuzz_input in = {r->bytes, r->size};
    uint8_t after = fuzz_u8(&in), times = fuzz_u8(&in) % 16;
    uint8_t which = fuzz_u8(&in);
    enum kernel_call call = (enum kernel_call)(r->arg % KERNEL_CALLS);
    int error =
        call == KERNEL_SHORT ? which : errors[which % ARRAY_COUNT(errors)];
    if (!is_usual(call, error)) program_is_troubled();
    kernel_fail(call, after, times, error);
}

static void set_text(const struct tape_record *r)
{
    char *text = kernel_texts[r->arg % 2];
    size_t size = r->size < KERNEL_TEXT - 1 ? r->size : KERNEL_TEXT - 1;
    memcpy(text, r->bytes, size);
    text[size] = '\0';
}

static void set_path(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    kernel_path.rtt_us = fuzz_u32(&in);
    kernel_path.least_us = fuzz_u32(&in);
    kernel_path.unacked = fuzz_u32(&in);
    kernel_path.segments = fuzz_u32(&in);
    kernel_path.again = fuzz_u32(&in);
}

static void pass(pccl_ns time)
{
    kernel_now += time;
    world_tick();
}

/* What does not go through the program; `amid`: inside one of its calls. */
static void happen(const struct tape_record *r, bool amid)
{
    switch (r->kind % DRIVER_KIND_COUNT) {
    case DRIVER_TURNS:
        for (uint32_t i = 0; i <= r->arg % 16u; i++) (void)world_turn();
        return;
    case DRIVER_THREAD:
        if (!amid) (void)kernel_turn();
        return;
    case DRIVER_TIME:
        program_is_troubled();
        pass(r->arg * 10 * PCCL_MS);
        return;
    case DRIVER_FAULT:
        fail(r);
        return;
    case DRIVER_SPOIL:
        if (r->size < 3) return;
        program_is_misled();
        kernel_spoil(r->bytes[0] + 256u * r->bytes[1], r->bytes[2]);
        return;
    case DRIVER_MATE:
        program_is_troubled();
        mate(r);
        return;
    case DRIVER_MASTER:
        program_is_troubled();
        coordinator(r->arg);
        return;
    case DRIVER_SAY:
        program_is_misled();
        world_say(r->bytes, r->size);
        return;
    case DRIVER_MESSAGE:
        program_is_misled();
        message(r);
        return;
    case DRIVER_STRANGER:
        stranger(r);
        return;
    case DRIVER_CUT:
        program_is_troubled();
        cut(r);
        return;
    case DRIVER_BYTES:
        program_is_misled();
        insert(r);
        return;
    case DRIVER_MEMORY:
        program_is_misled();
        scribble(r);
        return;
    case DRIVER_PATH:
        set_path(r);
        return;
    case DRIVER_TEXT:
        set_text(r);
        return;
    default:
        return;
    }
}

/* -------------------------------------------------------------- the outside */

/* The next record, if it is no call but pcclCancel, which may come amid. */
static bool play_one(void)
{
    struct tape_record r;
    if (tape.left < TAPE_HEAD) return false;
    uint8_t kind = tape.at[0] % DRIVER_KIND_COUNT;
    bool cancel = kind == DRIVER_CALL && tape.at[1] == CALL_CANCEL;
    if ((kind == DRIVER_CALL && !cancel) || !tape_next(&tape, &r)) return false;
    if (cancel)
        program_call(r.arg, &(struct fuzz_input){.left = 0});
    else
        happen(&r, true);
    return true;
}

/* Others go on; what is next on the tape happens; or time passes. */
static void go_on(pccl_ns until)
{
    kernel_now += 5000;
    if (world_turn() || play_one()) return;
    pccl_ns next = kernel_now + WORLD_DEADLINE / 8;
    kernel_now = next < until ? next : until;
    world_tick();
}

/* The driver polls, and has its lock. */
static void let_others(void)
{
    if (!world_turn()) (void)play_one();
}

/* --------------------------------------------------------------- begin, end */

static const char *token_file(void)
{
    if (has_key_file) return key_file;
    char line[RUN_KEY_LINE];
    struct run_key key = {.identity = ""};
    memcpy(key.bytes, world_key, sizeof key.bytes);
    size_t size = run_key_line(&key, line);
    int fd = mkstemp(key_file);
    assert(fd >= 0 && write(fd, line, size) == (ssize_t)size);
    (void)close(fd);
    has_key_file = true;
    return key_file;
}

static void remove_key_file(void)
{
    if (has_key_file) (void)unlink(key_file);
}

static void once(void)
{
    static bool done;
    if (done) return;
    done = true;
    /* All lines are made, and nobody reads them. */
    (void)setenv("PCCL_LOG_LEVEL", "TRACE", 0);
    (void)setenv("PCCL_LOG_FILE", "/dev/null", 0);
    (void)setenv("PCCL_MASTER_PATIENCE", "0.5", 1);
    (void)setenv("PCCL_MASTER_GRACE", "0.5", 1);
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
    (void)atexit(remove_key_file);
}

static void begin(const struct tape_record *config)
{
    struct fuzz_input in = {config->bytes, config->size};
    uint16_t bits = fuzz_u16(&in);
    uint8_t pool = fuzz_u8(&in) % 4, limit = fuzz_u8(&in);
    uint8_t processors = fuzz_u8(&in);
    const char *why;
    once();
    kernel_begin(go_on, let_others, world_listens);
    kernel_at_once = bits & CONFIG_AT_ONCE;
    kernel_processors = 1 + processors % 6;
    if (bits & CONFIG_FAR) kernel_path.rtt_us = kernel_path.least_us = 40000;
    if ((bits & CONFIG_KEYED) && !secure_is_available(&why))
        bits &= (uint16_t)~CONFIG_KEYED;
    (void)setenv("PCCL_TRANSPORT",
                 bits & CONFIG_TCP   ? "tcp"
                 : bits & CONFIG_SHM ? "shm"
                                     : "auto",
                 1);
    shared_memory_reserve(false);
    for (uint32_t i = 0; i < STRANGERS; i++) strangers[i] = NO_STREAM;
    (void)snprintf(kernel_texts[0], KERNEL_TEXT, "7 (fuzz) R 1 7");
    (void)snprintf(kernel_texts[1], KERNEL_TEXT, "900 50 3");
    const struct world_options world = {.mates = config->arg % (MATES + 1u),
                                        .shares = !(bits & CONFIG_TCP),
                                        .distant = bits & CONFIG_DISTANT,
                                        .keyed = bits & CONFIG_KEYED,
                                        .grace = bits & CONFIG_GRACE,
                                        .several = bits & CONFIG_SEVERAL,
                                        .relays = bits & CONFIG_RELAYS,
                                        .minimum =
                                            bits & CONFIG_MINIMUM ? 2 : 0,
                                        .first = bits & CONFIG_ALONE};
    const struct program_options program = {
        .pool = pool,
        .limit_ms = 100 + 10u * limit,
        .token_file = bits & CONFIG_KEYED ? token_file() : NULL,
        .goes_on = bits & CONFIG_MINIMUM};
    world_begin(&world);
    program_begin(&program);
    if (!(bits & CONFIG_APART))
        program_call(CALL_CONNECT, &(struct fuzz_input){.left = 0});
}

static void play(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    if (r->kind % DRIVER_KIND_COUNT == DRIVER_CALL)
        program_call(r->arg, &in);
    else
        happen(r, false);
    for (int i = 0; i < TURNS; i++) {
        (void)world_turn();
        (void)kernel_turn();
    }
}

/* The lowest free descriptor: the same if nothing stays open. */
static int descriptor(void)
{
    int fd = dup(STDIN_FILENO);
    if (fd >= 0) (void)close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static bool again; /* the log is open */
    struct tape_record r = {.arg = 2, .size = 0};
    int before = descriptor();
    tape = (struct fuzz_input){bytes, size};
    if (size >= TAPE_HEAD && bytes[0] == DRIVER_CONFIG) tape_next(&tape, &r);
    begin(&r);
    while (tape_next(&tape, &r)) play(&r);
    program_end();
    for (uint32_t i = 0; i < STRANGERS; i++)
        if (strangers[i] != NO_STREAM) kernel_hang_up(strangers[i], 0, false);
    world_end();
    kernel_end();
    assert(!again || descriptor() == before);
    again = true;
    return 0;
}

/* ------------------------------------------------------------- for mutate.c */

const uint8_t tape_kinds = DRIVER_KIND_COUNT;

size_t tape_make(uint8_t kind, uint64_t *random, uint8_t *to)
{
    uint8_t body[64];
    uint8_t arg = (uint8_t)tape_random(random);
    size_t size = tape_pick(random, 12);
    if (tape_pick(random, 2)) kind = DRIVER_CALL;
    if (kind == DRIVER_TIME) arg %= 32;
    if (kind == DRIVER_CALL) size = 8;
    for (size_t i = 0; i < size; i++) body[i] = (uint8_t)tape_random(random);
    if (kind == DRIVER_CALL) {
        arg %= CALL_KINDS;
        body[0] %= 8; /* tags, members, kinds */
        if (tape_pick(random, 2)) body[2] %= 4;
    }
    if (kind == DRIVER_FAULT) body[0] %= 8;
    return tape_put(to, kind, arg, body, (uint16_t)size);
}

void tape_vary(uint8_t kind, uint64_t *random, uint8_t *bytes, size_t size)
{
    size_t at = tape_pick(random, (uint32_t)size);
    size_t width = (size_t)1 << tape_pick(random, 4);
    (void)kind;
    if (at + width > size) width = 1;
    tape_vary_number(random, bytes + at, width);
}
