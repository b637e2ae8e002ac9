/* fuzz_mpi.c - plays a tape on one rank of an MPI world: messages of other
 * ranks with any header, transfers, losses, results of operations, and legal
 * calls of the program. Nothing that others do may end this process, make a
 * call wait for ever, or write what is not the program's receive buffer. See
 * mpi_run.h. */
#include "mpi_calls.h"

#include "../../src/mpi/coll.h"
#include "../../src/mpi/mpi_progress.h"
#include "../../src/mpi/p2p.h"
#include "../../src/mpi/partner.h"
#include "../../src/mpi/rank_use.h"
#include "../../src/mpi/revoke.h"
#include "../../src/mpi/transport.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

enum { MEMORY_MOST = 1 << 30 };

/* The linker has these in the library's place. */
_Noreturn void __wrap_env_abort(int code, const char *message);
void *__wrap_malloc(size_t size);
void *__real_malloc(size_t size);

/* What another rank announces may be more than there is. */
void *__wrap_malloc(size_t size)
{
    return size > MEMORY_MOST ? NULL : __real_malloc(size);
}

_Noreturn void __wrap_env_abort(int code, const char *message)
{
    fprintf(stderr, "the library ends the process with %d:\n", code);
    run_fail(message);
}

/* The fuzzer's tapes say when the library's thread has a turn. */
bool mpi_progress_start(void)
{
    return true;
}

void mpi_progress_stop(void)
{
}

void mpi_progress_crowd(uint32_t members, uint32_t processors)
{
    (void)members, (void)processors;
}

/* Nobody else has anything to do meanwhile. */
int sched_yield(void)
{
    return 0;
}

int nanosleep(const struct timespec *pause, struct timespec *left)
{
    (void)pause;
    (void)left;
    return 0;
}

const char *__asan_default_options(void);

/* Memory for what another rank announces may not be there. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* ------------------------------------------------------------------- a life */

static void set(const char *name, const char *const *values, uint32_t count,
                uint8_t which)
{
    const char *value = which < count ? values[which] : NULL;
    if (value)
        (void)setenv(name, value, 1);
    else
        (void)unsetenv(name);
}

/* What the environment says; bytes: policy, root, master, hint. */
static void settings(struct fuzz_input *in)
{
    static const char *const policies[] = {"return", "shrink", "force", "abort",
                                           ""};
    static const char *const roots[] = {"promote", "end"};
    static const char *const masters[] = {
        "127.0.0.1:7", "[::1]:7",          "127.0.0.1:7,[::1]:8",
        "nothing",     "127.0.0.1:",       "[::1:7",
        ":7",          "127.0.0.1:70000x", ",127.0.0.1:7,",
        "[]:7"};
    static const char *const hints[] = {"", "0", "3", "-5",
                                        "99999999999999999"};
    set("PCCL_ON_FAILURE", policies, 5, fuzz_u8(in) % 6);
    set("PCCL_LOST_ROOT", roots, 2, fuzz_u8(in) % 3);
    set("PCCL_MASTER", masters, 10, fuzz_u8(in) % 11);
    set("PCCL_RANK", hints, 5, fuzz_u8(in) % 6);
}

/* As the library does when it stops. */
static void world_forget(void)
{
    world_disconnect();
    comm_stop();
    groups_release_retired();
    struct group *view = atomic_exchange(&world.view, NULL);
    if (view) object_release(&view->object);
}

static void connect_again(void)
{
    char message[512];
    if (!world_connect(message, sizeof message)) {
        (void)setenv("PCCL_MASTER", "127.0.0.1:7", 1);
        if (!world_connect(message, sizeof message)) run_fail(message);
    }
    if (!comm_start()) run_fail("no memory");
    rank_use_start();
    (void)transport_progress(0);
}

static void life_begins(struct fuzz_input *in)
{
    static bool initialized;
    struct tape_record r = {.size = 0};
    if (in->left >= TAPE_HEAD && in->at[0] == RUN_CONFIG)
        (void)tape_next(in, &r);
    struct fuzz_input config = {r.bytes, r.size};
    uint8_t hosts = fuzz_u8(&config), members = fuzz_u8(&config);
    again_comm();
    again_transport();
    again_rank_use();
    again_partner();
    run_begin(r.arg, hosts, members ? members : 3);
    run_open(in);
    settings(&config);
    if (!initialized) {
        (void)setenv("PCCL_MASTER", "127.0.0.1:7", 1);
        (void)PMPI_Init(NULL, NULL);
        world_forget();
        initialized = true;
    }
    connect_again();
    (void)PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    (void)PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    calls_begin();
}

static void life_ends(void)
{
    run_end();
    calls_end();
    run_call(0, 0);
    for (int i = 0; i < 64; i++) (void)transport_progress(0);
    run_end();
    (void)transport_progress(0);
    if (coll_any_pending()) run_fail("a collective is left");
    if (p2p_busy()) run_fail("a receive is left");
    if (partners_wait()) run_fail("a message waits for one that is lost");
    if (transport_busy()) run_fail("a transfer is left");
    transport_stop();
    transport_end();
    p2p_stop();
    revoke_stop();
    rank_use_tell_end();
    world_forget();
    run_close();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    struct tape_record r;
    life_begins(&in);
    while (run_next(&r)) {
        if (run_is_call(r.kind % RUN_KIND_COUNT))
            calls_play(&r);
        else
            run_play(&r);
    }
    life_ends();
    return 0;
}

/* --------------------------------------------------------------- made tapes */

const uint8_t tape_kinds = RUN_KIND_COUNT;

static size_t put_u8(uint8_t *to, size_t at, uint32_t value)
{
    to[at] = (uint8_t)value;
    return at + 1;
}

/* Most are of the program's communicators, and of tags that it uses. */
static size_t make_letter(uint64_t *random, uint8_t *to)
{
    static const uint8_t channels[] = {0,  0,  0,   0,   64, 65,
                                       66, 67, 128, 129, 33};
    bool often = tape_pick(random, 3) > 0;
    size_t at =
        put_u8(to, 0, often ? tape_pick(random, 2) : tape_pick(random, 8));
    at = put_u8(to, at, channels[tape_pick(random, sizeof channels)]);
    at = put_u8(to, at, tape_pick(random, CALL_COMMS));
    at = put_u8(to, at, tape_pick(random, 4));
    at = put_u8(to, at,
                tape_pick(random, 4) ? tape_pick(random, 2)
                                     : tape_pick(random, 16));
    memset(to + at, 0, 16);
    to[at] = (uint8_t)tape_random(random);
    to[at + 1] = (uint8_t)tape_pick(random, 4);
    if (tape_pick(random, 8) == 0) tape_vary_number(random, to + at, 8);
    to[at + 8] = (uint8_t)tape_pick(random, 8);
    at += 16;
    size_t body = tape_pick(random, 4) * 4;
    if (tape_pick(random, 4) == 0) body = tape_pick(random, 300);
    for (size_t i = 0; i < body; i++)
        to[at + i] = (uint8_t)(tape_pick(random, 4) ? 0 : tape_random(random));
    return at + body;
}

static size_t make_say(uint64_t *random, uint8_t *to)
{
    size_t size = tape_pick(random, 3) ? 8 : tape_pick(random, 33);
    to[0] = (uint8_t)size;
    memset(to + 1, 0, size);
    if (size > 0) to[1] = (uint8_t)tape_pick(random, 8);
    if (size >= 8 && tape_pick(random, 3) == 0)
        tape_vary_number(random, to + 1 + 4 * tape_pick(random, 2), 4);
    return 1 + size;
}

static size_t make_op(uint64_t *random, uint8_t *to)
{
    uint32_t changes = tape_pick(random, 4);
    size_t at = put_u8(to, 0, tape_pick(random, 4));
    for (uint32_t i = 0; i < changes; i++) {
        memset(to + at, 0, 11);
        to[at] = (uint8_t)(4 * tape_pick(random, 32));
        to[at + 2] = (uint8_t)tape_pick(random, 4);
        to[at + 3] = (uint8_t)tape_pick(random, 4);
        if (tape_pick(random, 3) == 0) tape_vary_number(random, to + at + 3, 8);
        at += 11;
    }
    return at;
}

static size_t make_small(uint64_t *random, uint8_t *to, size_t size)
{
    for (size_t i = 0; i < size; i++) to[i] = (uint8_t)tape_random(random);
    return size;
}

size_t tape_make(uint8_t kind, uint64_t *random, uint8_t *to)
{
    static const uint8_t often[] = {
        RUN_LETTER, RUN_LETTER, RUN_LETTER, RUN_BULK,  RUN_OP,   RUN_SAY,
        RUN_LETTER, CALL_IRECV, CALL_MAKE,  CALL_TEST, CALL_ULFM};
    uint8_t *body = to + TAPE_HEAD;
    if (tape_pick(random, 3) > 0) kind = often[tape_pick(random, sizeof often)];
    if (kind == RUN_GONE && tape_pick(random, 4)) kind = RUN_OP;
    uint8_t arg = (uint8_t)tape_pick(random, 6);
    size_t size;
    switch (kind) {
    case RUN_LETTER:
        size = make_letter(random, body);
        break;
    case RUN_SAY:
        size = make_say(random, body);
        break;
    case RUN_OP:
        size = make_op(random, body);
        if (tape_pick(random, 3)) arg = 0;
        if (tape_pick(random, 2)) arg |= 128;
        break;
    case RUN_ORDER:
        arg = (uint8_t)tape_random(random);
        size = 0;
        break;
    default:
        size = make_small(random, body, 6);
        if (kind >= CALL_ISEND && tape_pick(random, 2)) body[5] = 0;
        if (kind == CALL_COLL && tape_pick(random, 4)) body[1] &= 7;
        break;
    }
    uint8_t head[TAPE_HEAD] = {kind, arg, (uint8_t)size, (uint8_t)(size >> 8)};
    memcpy(to, head, sizeof head);
    return TAPE_HEAD + size;
}

void tape_vary(uint8_t kind, uint64_t *random, uint8_t *bytes, size_t size)
{
    static const uint8_t letter[][2] = {{0, 1}, {1, 1}, {2, 1}, {3, 1},
                                        {4, 1}, {5, 8}, {13, 8}};
    size_t at = tape_pick(random, (uint32_t)size), width = 1;
    if (kind == RUN_LETTER) {
        const uint8_t *f = letter[tape_pick(random, 7)];
        at = f[0];
        width = f[1];
    } else if (kind == RUN_SAY || kind == RUN_OP) {
        width = (size_t)1 << tape_pick(random, 4);
    }
    if (at + width > size) at = 0;
    if (at + width > size) width = 1;
    tape_vary_number(random, bytes + at, width);
}
