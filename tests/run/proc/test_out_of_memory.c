/* test_out_of_memory.c - one allocation of a member fails, the k-th of a
 * scripted run: the call that meets it succeeds or returns an error, the other
 * member gets a result or an error, and nobody aborts or hangs. One run for
 * every k.
 *
 * test_out_of_memory [STEP [FIRST [show]]] - every STEP-th k (default 1) from
 * FIRST on; "show" prints where it fails. This program's allocator is the
 * library's. */
#include "cluster.h"
#include "../../patience.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <execinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------ the allocator */

/* The names are those of glibc. */
/* NOLINTBEGIN */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
/* NOLINTEND */

static atomic_long count_down; /* 1: the next allocation fails */
static bool shows;             /* where it was */

static bool fails(void)
{
    long left = atomic_load_explicit(&count_down, memory_order_relaxed);
    if (left <= 0 || atomic_fetch_sub(&count_down, 1) != 1) return false;
    if (shows) {
        void *frames[24];
        int count = backtrace(frames, 24);
        backtrace_symbols_fd(frames, count, STDERR_FILENO);
    }
    errno = ENOMEM;
    return true;
}

#pragma GCC visibility push(default)
void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return size > 0 && fails() ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **memory, size_t align, size_t size)
{
    if (fails()) return ENOMEM;
    *memory = __libc_memalign(align, size);
    return *memory ? 0 : ENOMEM;
}
#pragma GCC visibility pop

/* --------------------------------------------------------------- the script */

enum {
    LARGE = 300000,
    TRIES = 6,
    ENDED = 0,     /* exit status of a member: as it should */
    NOT_MET = 3,   /* ... and it made fewer allocations than k */
    CONNECTED = 1, /* a word from the first member to the second */
};

static float in[LARGE], out[LARGE], weights[2][LARGE];
static const char *volatile step = "start";

struct member {
    int index;      /* 1: an allocation fails here */
    uint32_t group; /* of this run alone: no state of an earlier one */
    pcclComm_t *comm;
    int to_other, from_other;
};

static _Noreturn void wrong(const struct member *m, const char *what, int value)
{
    fprintf(stderr, "member %d, in %s: %s (%d)\n", m->index, step, what, value);
    _exit(1);
}

static void on_alarm(int signal)
{
    (void)signal;
    static const char text[] = "hangs in ";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    ignored = write(STDERR_FILENO, step, strlen(step));
    ignored = write(STDERR_FILENO, "\n", 1);
    (void)ignored;
    _exit(2);
}

/* Whether the script goes on. What has no memory may be called again. */
static bool goes_on(const struct member *m, pcclResult_t r)
{
    switch (r) {
    case pcclSuccess:
        return true;
    case pcclInternalError:
    case pcclRankConnectionLost:
    case pcclRankConnectionFailed:
    case pcclMasterConnectionFailed:
    case pcclUpdateTopologyFailed:
    case pcclTopologyOptimizationFailed:
    case pcclNoSharedStateAvailable:
    case pcclTooFewPeers:
    case pcclInvalidUsage: /* the other one waits elsewhere */
        return false;
    default:
        wrong(m, "a result that fits no failure", (int)r);
    }
}

static pcclCollective_t all_reduce(uint64_t tag, size_t count)
{
    return (pcclCollective_t){.size = sizeof(pcclCollective_t),
                              .kind = pcclKindAllReduce,
                              .tag = tag,
                              .sendbuf = in,
                              .recvbuf = out,
                              .count = count,
                              .datatype = pcclFloat,
                              .op = pcclSum};
}

static bool collective(const struct member *m, const char *name,
                       const pcclCollective_t *c)
{
    pcclResult_t r = pcclInternalError;
    step = name;
    for (int i = 0; i < TRIES && r == pcclInternalError; i++)
        r = pcclCollective(c, m->comm, NULL);
    return goes_on(m, r);
}

static bool sums(const struct member *m)
{
    static const size_t counts[] = {1, 700, 20000, LARGE};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        pcclCollective_t c = all_reduce(i, counts[i]);
        memset(out, 0, sizeof out);
        if (!collective(m, "a sum", &c)) return false;
        for (size_t k = 0; k < counts[i]; k++)
            if (out[k] != 3) wrong(m, "a wrong sum", (int)counts[i]);
        c.sendbuf = out;
        if (!collective(m, "a sum in place", &c)) return false;
        if (out[0] != 6) wrong(m, "a wrong sum in place", (int)counts[i]);
    }
    return true;
}

/* Several at a time, launched and awaited later. */
static bool async_sums(const struct member *m)
{
    enum { AT_ONCE = 4, COUNT = 5000 };
    pcclAsyncReduceOp_t handles[AT_ONCE];
    bool good = true;
    int launched = 0;
    step = "launches";
    for (; launched < AT_ONCE && good; launched++) {
        pcclCollective_t c = all_reduce(100 + (uint64_t)launched, COUNT);
        c.recvbuf = out + launched * COUNT;
        pcclResult_t r = pcclInternalError;
        for (int i = 0; i < TRIES && r == pcclInternalError; i++)
            r = pcclCollectiveAsync(&c, m->comm, &handles[launched]);
        good = goes_on(m, r);
        if (!good) break;
    }
    step = "awaits";
    for (int i = 0; i < launched; i++) {
        pcclResult_t r = pcclAwaitAsyncReduce(&handles[i], NULL);
        good = goes_on(m, r) && good;
        if (r == pcclSuccess && out[i * COUNT + COUNT - 1] != 3)
            wrong(m, "a wrong sum", i);
    }
    return good;
}

static bool others(const struct member *m)
{
    pcclCollective_t c = all_reduce(7, 100000);
    c.kind = pcclKindBroadcast;
    c.sendbuf = NULL;
    memset(out, m->index == 0 ? 5 : 0, sizeof out);
    if (!collective(m, "a broadcast", &c)) return false;
    c.kind = pcclKindAllGather;
    c.sendbuf = in;
    if (!collective(m, "an all-gather", &c)) return false;
    c = (pcclCollective_t){.size = sizeof c, .kind = pcclKindBarrier, .tag = 8};
    if (!collective(m, "a barrier", &c)) return false;
    pcclReduceDescriptor_t d = {.count = LARGE, .op = pcclSum, .tag = 9};
    d.src_descriptor.datatype = pcclFloat;
    d.quantization_options.algorithm = pcclQuantMinMax;
    d.quantization_options.quantized_datatype = pcclUint8;
    pcclResult_t r = pcclInternalError;
    step = "a quantized sum";
    for (int i = 0; i < TRIES && r == pcclInternalError; i++)
        r = pcclAllReduce(in, out, &d, m->comm, NULL);
    return goes_on(m, r);
}

static bool state(const struct member *m)
{
    for (uint64_t revision = 0; revision < 2; revision++) {
        pcclTensorInfo_t infos[2];
        memset(infos, 0, sizeof infos);
        for (int i = 0; i < 2; i++) {
            infos[i].name = i ? "b" : "a";
            infos[i].data = weights[i];
            infos[i].count = LARGE;
            infos[i].datatype = pcclFloat;
            infos[i].device_type = pcclDeviceCpu;
        }
        weights[0][5] = (float)m->index; /* differs */
        pcclSharedState_t s = {revision, 2, infos};
        pcclResult_t r = pcclInternalError;
        step = "a synchronization";
        for (int i = 0; i < TRIES && r == pcclInternalError; i++)
            r = pcclSynchronizeSharedState(
                m->comm, &s, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
                NULL);
        if (!goes_on(m, r)) return false;
    }
    return true;
}

static bool messages(const struct member *m)
{
    static uint8_t body[4000];
    pcclMember_t members[2];
    int me, size;
    if (pcclGetView(m->comm, NULL, &me, &size, members, 2) != pcclSuccess ||
        size != 2)
        return false;
    uint64_t other = members[1 - me].id;
    pcclResult_t r = pcclInternalError;
    step = "a message";
    for (int i = 0; i < TRIES && r == pcclInternalError; i++)
        r = pcclPostMessage(m->comm, other, "x", 1, body, sizeof body);
    return goes_on(m, r);
}

/* Until the other one is there, or says nothing any more. */
static bool gathers(const struct member *m)
{
    struct pollfd gone = {.fd = m->from_other};
    step = "an update";
    while (world_size(m->comm) < 2) {
        pcclResult_t r = pcclInternalError;
        for (int i = 0; i < TRIES && r == pcclInternalError; i++)
            r = pcclUpdateTopology(m->comm);
        if (!goes_on(m, r)) return false;
        if (poll(&gone, 1, 0) > 0 && world_size(m->comm) < 2) return false;
    }
    return true;
}

static bool connects(struct member *m, uint16_t port)
{
    pcclCommCreateParams_t params = {.master_address = cluster_address(port),
                                     .p2p_connection_pool_size = 1};
    pcclCommOptions_t options = {.size = sizeof options, .rank_hint = m->index};
    params.peer_group = m->group;
    pcclResult_t r = pcclInternalError;
    step = "a connect";
    if (pcclInit() != pcclSuccess) wrong(m, "pcclInit", 0);
    for (int i = 0; i < TRIES && r != pcclSuccess; i++) {
        r = pcclCreateCommunicator(&params, &m->comm);
        if (r != pcclSuccess && r != pcclInternalError)
            wrong(m, "create", (int)r);
    }
    (void)pcclSetOptions(m->comm, &options);
    r = pcclInternalError;
    for (int i = 0; i < TRIES && r != pcclSuccess; i++) {
        r = pcclConnect(m->comm);
        (void)goes_on(m, r);
    }
    return r == pcclSuccess;
}

static _Noreturn void run(struct member *m, uint16_t port, long k)
{
    signal(SIGALRM, on_alarm);
    alarm(PATIENCE_S);
    for (int i = 0; i < LARGE; i++) in[i] = (float)(m->index + 1);
    char word = CONNECTED;
    if (m->index == 1) {
        /* The first one is a member before this one comes. */
        step = "waiting for the first member";
        if (read(m->from_other, &word, 1) != 1) wrong(m, "the first left", 0);
        atomic_store(&count_down, k);
    }
    bool good = connects(m, port);
    if (m->index == 0 && !good) wrong(m, "the first cannot connect", 0);
    if (m->index == 0 && write(m->to_other, &word, 1) != 1)
        wrong(m, "the second left", 0);
    if (good && gathers(m) && sums(m) && async_sums(m) && others(m) &&
        state(m) && messages(m))
        (void)sums(m);
    step = "the end";
    pcclResult_t r = pcclDestroyCommunicator(m->comm);
    if (r != pcclSuccess) wrong(m, "destroy", (int)r);
    long left = atomic_exchange(&count_down, 0);
    _exit(m->index == 1 && left > 0 ? NOT_MET : ENDED);
}

/* ----------------------------------------------------------------- the test */

static long stride = 1, first = 1;

/* One run in which the k-th allocation fails; false: there are fewer. */
static bool run_one(uint16_t port, long k)
{
    int there[2], back[2], status[2];
    pid_t pids[2];
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    for (int i = 0; i < 2; i++) {
        fflush(NULL);
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] > 0) continue;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct member m = {.index = i,
                           .group = (uint32_t)k,
                           .to_other = i == 0 ? there[1] : back[1],
                           .from_other = i == 0 ? back[0] : there[0]};
        close(i == 0 ? there[0] : there[1]);
        close(i == 0 ? back[1] : back[0]);
        run(&m, port, k);
    }
    close(there[0]);
    close(there[1]);
    close(back[0]);
    close(back[1]);
    for (int i = 1; i >= 0; i--)
        assert_int_equal(waitpid(pids[i], &status[i], 0), pids[i]);
    bool good = status[0] == 0 && (status[1] == 0 || status[1] == NOT_MET << 8);
    if (!good)
        fail_msg("allocation %ld fails: members end with %#x and %#x", k,
                 (unsigned)status[0], (unsigned)status[1]);
    return status[1] == 0;
}

static void test_every_allocation(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "2");
    long k = first;
    int misses = 0;
    /* Threads make the count differ a little from run to run. */
    while (misses < 2) {
        misses = run_one(c.port, k) ? 0 : misses + 1;
        k += stride;
    }
    cluster_stop(&c);
    print_message("%ld allocations\n", k - 2 * stride);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    if (argc > 1) stride = strtol(argv[1], NULL, 10);
    if (argc > 2) first = strtol(argv[2], NULL, 10);
    shows = argc > 3;
    if (stride < 1 || first < 1) return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
