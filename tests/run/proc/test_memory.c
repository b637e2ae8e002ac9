/* test_memory.c - memory does not grow: not with operations, not with members
 * that come and go, not with groups, scopes and messages. The allocator below
 * counts blocks of the whole process: a master, two members and the library's
 * threads. */
#include "house.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------ the allocator */

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&                    \
    !defined(__SANITIZE_THREAD__)
#define COUNTS 1
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *at, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *at);

static _Atomic long blocks; /* allocated and not freed */

#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    void *at = __libc_malloc(size);
    blocks += at != NULL;
    return at;
}

void *calloc(size_t count, size_t size)
{
    void *at = __libc_calloc(count, size);
    blocks += at != NULL;
    return at;
}

void *realloc(void *at, size_t size)
{
    void *now = __libc_realloc(at, size);
    blocks += (at == NULL) - (now == NULL && size == 0);
    return now;
}

void *aligned_alloc(size_t align, size_t size)
{
    void *at = __libc_memalign(align, size);
    blocks += at != NULL;
    return at;
}

int posix_memalign(void **out, size_t align, size_t size)
{
    *out = aligned_alloc(align, size);
    return *out ? 0 : ENOMEM;
}

void free(void *at)
{
    blocks -= at != NULL;
    __libc_free(at);
}

#pragma GCC visibility pop
#else
#define COUNTS 0
static long blocks;
#endif

/* Resident KiB of this process. */
static long resident(void)
{
    char text[128] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    long total = 0;
    long pages = 0;
    if (size <= 0 || sscanf(text, "%ld %ld", &total, &pages) != 2) return 0;
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static bool soaks;

static long scale(long usual, long soak)
{
    return soaks ? soak : usual;
}

/* --------------------------------------------------- newcomers that just die
 */

/* A process without threads forks one newcomer for each order, the number of
 * its group, and has seen its end before it forks the next one. */
static int orders = -1;
static pid_t nursery;

static int reduce(pcclComm_t *comm, uint64_t tag, const uint64_t *members,
                  size_t count)
{
    float in[16] = {1};
    float out[16];
    const pcclCollective_t op = {.size = sizeof op,
                                 .kind = pcclKindAllReduce,
                                 .tag = tag,
                                 .sendbuf = in,
                                 .recvbuf = out,
                                 .count = 16,
                                 .datatype = pcclFloat,
                                 .op = pcclSum,
                                 .members = members,
                                 .member_count = count};
    return (int)pcclCollective(&op, comm, NULL);
}

/* Joins, works with the others if they are in its group, writes to the first
 * of them, and ends without a word. */
static _Noreturn void newcomer(uint16_t port, uint32_t group)
{
    pcclCommCreateParams_t params = {.master_address = cluster_address(port),
                                     .peer_group = group,
                                     .p2p_connection_pool_size = 2};
    pcclComm_t *comm = NULL;
    pcclMember_t members[4];
    int size = 0;
    bool good = pcclInit() == pcclSuccess &&
                pcclCreateCommunicator(&params, &comm) == pcclSuccess &&
                pcclConnect(comm) == pcclSuccess &&
                pcclGetView(comm, NULL, NULL, &size, members, 4) == pcclSuccess;
    if (good && size > 1) {
        good = reduce(comm, 1, NULL, 0) == (int)pcclSuccess &&
               pcclPostMessage(comm, members[0].id, "head", 4, "body", 4) ==
                   pcclSuccess;
    }
    _exit(good ? 0 : 1);
}

static _Noreturn void nurse(int from)
{
    uint32_t order[2];
    int bad = 0;
    while (read(from, order, sizeof order) == (ssize_t)sizeof order) {
        pid_t child = fork();
        if (child == 0) newcomer((uint16_t)order[0], order[1]);
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status) bad = 1;
    }
    _exit(bad);
}

static int open_nursery(void **state)
{
    (void)state;
    int ends[2];
    /* No death here is noticed by silence, and the machine may be busy. */
    setenv("PCCL_DEADLINE", "60", 1);
    if (pipe2(ends, O_CLOEXEC) < 0) return -1;
    nursery = fork();
    if (nursery < 0) return -1;
    if (nursery == 0) {
        close(ends[1]);
        nurse(ends[0]);
    }
    close(ends[0]);
    orders = ends[1];
    return 0;
}

static int close_nursery(void **state)
{
    (void)state;
    int status = 1;
    close(orders);
    return waitpid(nursery, &status, 0) == nursery && status == 0 ? 0 : -1;
}

/* --------------------------------------------------------------- membership */

struct churn {
    struct house *house;
    pcclComm_t *comm;
    long rounds;
    bool leads; /* orders the newcomers */
};

static void take_events(pcclComm_t *comm)
{
    pcclEvent_t event = {.kind = pcclEventRoom};
    while (event.kind != pcclEventNone) {
        OK(pcclTakeEvent(comm, 0, &event));
        OK(pcclReleaseEvent(comm, &event));
    }
}

static void one_round(const struct churn *c, long round)
{
    bool other = round % 4 == 3; /* a newcomer in a group of its own */
    bool pending = false;
    if (c->leads) {
        uint32_t order[2] = {c->house->address.port,
                             other ? 1000 + (uint32_t)round : 0};
        assert_int_equal(write(orders, order, sizeof order), sizeof order);
    }
    while (!pending) OK(pcclArePeersPending(c->comm, &pending));
    OK(pcclUpdateTopology(c->comm));
    int result = pcclSuccess;
    while (!other && result == pcclSuccess)
        result = reduce(c->comm, 1, NULL, 0);
    if (!other) assert_int_equal(result, pcclRankConnectionLost);
    assert_int_equal(attribute(c->comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE),
                     2);
    take_events(c->comm);
}

static void *churn(void *arg)
{
    const struct churn *c = arg;
    for (long i = 0; i < c->rounds; i++) one_round(c, i);
    return NULL;
}

/* As many as a busy machine does in that time, if less. */
enum { CHURN_MS = 20000, SMALL_MS = 60000 };

static long run_churn(struct house *h, long rounds)
{
    enum { STEP = 40 };
    int64_t begun = now_ms();
    long done = 0;
    while (done < rounds && (soaks || now_ms() - begun < CHURN_MS)) {
        struct churn b = {.house = h, .comm = h->b, .rounds = STEP};
        struct churn a = {
            .house = h, .comm = h->a, .rounds = STEP, .leads = true};
        pthread_t thread = spawn(churn, &b);
        (void)churn(&a);
        (void)join(thread);
        done += STEP;
    }
    return done;
}

/* Blocks and KiB before and after the second of two runs, which return how
 * often they did it. */
static void assert_flat(long (*run)(struct house *h, long n), struct house *h,
                        long first, long most)
{
    (void)run(h, first);
    long had = blocks;
    long kept = resident();
    long then = run(h, most);
    print_message("%ld more: %ld blocks, %ld KiB, then %ld blocks, %ld KiB\n",
                  then, had, kept, (long)blocks, resident());
    /* Fewer than one block in 16 rounds; a page each would be 4 KiB. */
    if (COUNTS) assert_true(blocks - had <= then / 16);
    if (COUNTS) assert_true(resident() - kept <= 256 + then / 4);
}

/* Each newcomer changes the membership twice: 10^4 changes. */
static void members_come_and_die(void **state)
{
    assert_flat(run_churn, *state, 40, scale(5000, 50000));
}

/* ------------------------------------------------------ groups and operations
 */

struct work {
    pcclComm_t *comm;
    void (*one)(pcclComm_t *comm, long i);
    long first, end;
};

static void *work(void *arg)
{
    const struct work *w = arg;
    for (long i = w->first; i < w->end; i++) w->one(w->comm, i);
    return NULL;
}

static long run_work(struct house *h, void (*one)(pcclComm_t *comm, long i),
                     long rounds)
{
    static long done; /* of all: no tag comes twice */
    struct work a = {h->a, one, done, done + rounds};
    struct work b = {h->b, one, done, done + rounds};
    done += rounds;
    pthread_t thread = spawn(work, &b);
    (void)work(&a);
    (void)join(thread);
    return rounds;
}

/* A communicator of its own for each: a scope and a tag. */
static void in_scope(pcclComm_t *comm, long i)
{
    pcclMember_t members[4];
    uint64_t ids[2];
    int rank;
    OK(pcclGetView(comm, NULL, &rank, NULL, members, 4));
    for (int k = 0; k < 2; k++) ids[k] = members[i % 2 ? k : 1 - k].id;
    int result;
    do result = reduce(comm, 100 + (uint64_t)i, ids, 2);
    while (result == pcclPendingAsyncOps);
    assert_int_equal(result, pcclSuccess);
    assert_int_equal(reduce(comm, 5000000 + (uint64_t)i, &members[rank].id, 1),
                     pcclSuccess);
}

static long run_scopes(struct house *h, long rounds)
{
    return run_work(h, in_scope, rounds);
}

static void scopes_are_forgotten(void **state)
{
    assert_flat(run_scopes, *state, 1000, scale(10000, 200000));
}

enum { VECTOR_MAX = 1 << 18 };

/* Sizes on both sides of every algorithm's border, and messages beside. */
static void of_all_sizes(pcclComm_t *comm, long i)
{
    static _Thread_local float in[VECTOR_MAX];
    static _Thread_local float out[VECTOR_MAX];
    pcclMember_t members[4];
    int rank;
    OK(pcclGetView(comm, NULL, &rank, NULL, members, 4));
    OK(pcclPostMessage(comm, members[1 - rank].id, NULL, 0, in, 1000));
    const pcclCollective_t op = {.size = sizeof op,
                                 .kind = pcclKindAllReduce,
                                 .tag = 9,
                                 .sendbuf = i % 3 ? in : out,
                                 .recvbuf = out,
                                 .count = (size_t)1 << i % 19,
                                 .datatype = pcclFloat,
                                 .op = pcclSum};
    OK(pcclCollective(&op, comm, NULL));
    pcclEvent_t event;
    OK(pcclTakeEvent(comm, -1, &event));
    assert_int_equal(event.kind, pcclEventMessage);
    OK(pcclReleaseEvent(comm, &event));
}

static long run_sizes(struct house *h, long rounds)
{
    return run_work(h, of_all_sizes, rounds);
}

static void operations_of_all_sizes(void **state)
{
    assert_flat(run_sizes, *state, 200, scale(1000, 100000));
}

static void small(pcclComm_t *comm, long i)
{
    (void)i;
    assert_int_equal(reduce(comm, 8, NULL, 0), pcclSuccess);
}

static long run_small(struct house *h, long rounds)
{
    enum { STEP = 10000 };
    int64_t begun = now_ms();
    long done = 0;
    while (done < rounds && (soaks || now_ms() - begun < SMALL_MS))
        done += run_work(h, small, STEP);
    return done;
}

static void a_million_operations(void **state)
{
    assert_flat(run_small, *state, 100000, scale(1000000, 10000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TWO(members_come_and_die),
        TWO(scopes_are_forgotten),
        TWO(operations_of_all_sizes),
        TWO(a_million_operations),
    };
    const char *set = getenv("PCCL_SOAK");
    soaks = set && *set;
    unsetenv("PCCL_SOAK"); /* the library does not know it */
    /* Before there is any thread. */
    return cmocka_run_group_tests(tests, open_nursery, close_nursery);
}
