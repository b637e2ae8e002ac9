/* test_liar.c - a member that lies, as a real process (contract C8): it rings
 * without end, changes what it sends to members and to the master, and writes
 * anywhere into the memory that it shares. Operations of the others succeed;
 * those that it takes part in end, in the same way for all others. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READY = 1, RESULT, DONE };
enum { RANKS = 4, HONEST = RANKS - 1, STEPS = 60, COUNT = 200000 };
enum lie { LIE_RINGS, LIE_MEMORY, LIE_BYTES, LIE_MASTER };

struct run {
    enum lie lie;
    uint64_t seed;
};

static atomic_bool lying;
static enum lie lie;
static _Atomic uint64_t state;
static uint16_t master_port;

static uint64_t pick(uint64_t count)
{
    uint64_t x = atomic_load(&state);
    x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
    atomic_store(&state, x);
    return (x * 2685821657736338717u >> 16) % count;
}

/* ------------------------------------------------------- what a liar sends */

static uint16_t port_of_other(int fd)
{
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    if (getpeername(fd, (struct sockaddr *)&name, &size) != 0) return 0;
    if (name.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&name)->sin_port);
    if (name.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
    return 0;
}

/* Some bits or bytes, most of them early ones: there the headers are. */
static void spoil(uint8_t *bytes, size_t size)
{
    for (uint64_t n = 1 + pick(3); n > 0; n--) {
        size_t at = pick(2) ? pick(size) : pick(size < 64 ? size : 64);
        uint64_t bit = (uint64_t)1 << pick(8);
        uint64_t value = pick(2) ? pick(256) : bytes[at] ^ bit;
        bytes[at] = (uint8_t)(value & 0xff);
    }
}

/* In place of the C library's; a changed copy is sent in one of 20 cases. */
__attribute__((visibility("default"))) ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
    static ssize_t (*real)(int, const struct msghdr *, int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    bool due = atomic_load(&lying) && lie == LIE_BYTES &&
               port_of_other(fd) != master_port && pick(20) == 0;
    size_t size = 0;
    for (size_t i = 0; due && i < msg->msg_iovlen; i++)
        size += msg->msg_iov[i].iov_len;
    uint8_t *copy = size > 0 ? malloc(size) : NULL;
    if (!copy) return real(fd, msg, flags);
    size = 0;
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        memcpy(copy + size, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
        size += msg->msg_iov[i].iov_len;
    }
    spoil(copy, size);
    ssize_t sent = send(fd, copy, size, flags);
    int error = errno;
    free(copy);
    errno = error;
    return sent;
}

/* What it has told the master. */
static struct told {
    size_t size;
    uint8_t bytes[512];
} told[64];
static size_t told_count;

__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes,
                                                    size_t size, int flags)
{
    static ssize_t (*real)(int, const void *, size_t, int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "send");
    bool due = atomic_load(&lying) && lie == LIE_MASTER && size > 8 &&
               port_of_other(fd) == master_port && pick(20) == 0;
    if (size > 8 && size <= sizeof told[0].bytes && told_count < 64 &&
        master_port != 0 && port_of_other(fd) == master_port) {
        told[told_count].size = size;
        memcpy(told[told_count++].bytes, bytes, size);
    }
    uint8_t *copy = due ? malloc(size) : NULL;
    if (!copy) return real(fd, bytes, size, flags);
    memcpy(copy, bytes, size);
    spoil(copy + 8, size - 8); /* the frame stays one, so that it is read */
    ssize_t sent = real(fd, copy, size, flags);
    int error = errno;
    free(copy);
    errno = error;
    return sent;
}

/* Once more, changed or not. */
static void tell_again(void)
{
    for (int fd = 3; fd < 256 && told_count > 0; fd++) {
        struct told t = told[pick(told_count)];
        if (port_of_other(fd) != master_port) continue;
        if (pick(2)) spoil(t.bytes + 8, t.size - 8);
        (void)send(fd, t.bytes, t.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

/* ------------------------------------------------------------ its threads */

static void *ring(void *unused)
{
    static char bytes[65536];
    while (true) {
        for (int fd = 3; fd < 256; fd++) {
            uint16_t port = port_of_other(fd);
            if (port == 0 || port == master_port) continue;
            (void)send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    }
    return unused;
}

/* Who waits for what was changed on the way waits for a live member, without a
 * limit. This one ends it. */
static void *cut(void *unused)
{
    while (true) {
        usleep(100 * 1000);
        for (int fd = 3; fd < 256; fd++) {
            uint16_t port = port_of_other(fd);
            if (port != 0 && port != master_port) (void)shutdown(fd, SHUT_RDWR);
        }
    }
    return unused;
}

/* Any word, or an index: changed, or changed for a moment. */
static void *scribble(void *unused)
{
    struct {
        uint64_t *at;
        size_t words;
    } parts[256];
    while (true) {
        char line[512];
        size_t count = 0;
        FILE *maps = fopen("/proc/self/maps", "re");
        while (maps && count < 256 && fgets(line, sizeof line, maps)) {
            unsigned long from, to;
            if (!strstr(line, " rw-s ") || !strstr(line, "pccl (deleted)") ||
                sscanf(line, "%lx-%lx", &from, &to) != 2)
                continue;
            parts[count].at = (uint64_t *)from;
            parts[count++].words = (to - from) / sizeof(uint64_t);
        }
        if (maps) (void)fclose(maps);
        /* While this thread writes, a connection may be closed and its memory
         * unmapped: the liar may crash, as liars do. */
        for (int i = 0; i < 2000 && count > 0; i++) {
            size_t k = pick(count);
            size_t most = parts[k].words;
            if (pick(2) && most > 128) most = 128;
            uint64_t *at = parts[k].at + pick(most);
            uint64_t was = *at;
            *at = pick(2) ? was + pick(256) - 128 : pick(UINT64_MAX);
            if (pick(4) > 0) *at = was;
        }
        usleep(1000);
    }
    return unused;
}

static void begin_to_lie(const struct seat *seat)
{
    const struct run *r = seat->arg;
    pthread_t thread;
    lie = r->lie;
    atomic_store(&state, 88172645463325252u + r->seed * 7919);
    void *(*body)(void *) = lie == LIE_RINGS    ? ring
                            : lie == LIE_MEMORY ? scribble
                            : lie == LIE_BYTES  ? cut
                                                : NULL;
    atomic_store(&lying, true);
    if (body) SEAT_EQUAL(seat, pthread_create(&thread, NULL, body, NULL), 0);
}

/* ---------------------------------------------------------------- the run */

struct place {
    pcclComm_t *comm;
    int rank;
    pcclMember_t members[RANKS];
    uint64_t honest[HONEST];
};

static pcclResult_t sum(const struct place *p, bool all, uint64_t tag,
                        size_t count, const float *in, float *out)
{
    pcclCollective_t c = {.size = sizeof c,
                          .kind = pcclKindAllReduce,
                          .tag = tag,
                          .sendbuf = in,
                          .recvbuf = out,
                          .count = count,
                          .datatype = pcclFloat,
                          .op = pcclSum,
                          .members = all ? NULL : p->honest,
                          .member_count = all ? 0 : HONEST};
    return pcclCollective(&c, p->comm, NULL);
}

static void take_place(const struct seat *seat, struct place *p)
{
    const struct run *r = seat->arg;
    uint64_t epoch;
    int size;
    master_port = seat->port;
    setenv("PCCL_TRANSPORT", r->lie == LIE_BYTES ? "tcp" : "shm", 1);
    p->comm = seat_join(seat);
    seat_gather(seat, p->comm, RANKS);
    SEAT_EQUAL(seat,
               pcclGetView(p->comm, &epoch, &p->rank, &size, p->members, RANKS),
               pcclSuccess);
    seat_report(seat, READY, p->rank);
    int liar = seat_hear(seat);
    for (int i = 0, k = 0; i < RANKS; i++)
        if (i != liar) p->honest[k++] = p->members[i].id;
}

/* Each step: a sum of the honest ones, whose value counts, and one of all. */
static void body(struct seat *seat)
{
    struct place p;
    bool lies = seat->index == 0;
    float *in = malloc(COUNT * sizeof *in);
    float *out = malloc(COUNT * sizeof *out);
    SEAT_CHECK(seat, in && out);
    for (int i = 0; i < COUNT; i++) in[i] = 1;
    take_place(seat, &p);
    if (lies) begin_to_lie(seat);
    for (uint64_t step = 0; step < STEPS; step++) {
        size_t count = step % 4 == 3 ? COUNT : step % 4 == 2 ? 3000 : 1;
        if (!lies) {
            SEAT_EQUAL(seat, sum(&p, false, 1000 + step, count, in, out),
                       pcclSuccess);
            SEAT_EQUAL(seat, out[0], HONEST);
            SEAT_EQUAL(seat, out[count - 1], HONEST);
        }
        if (lies && lie == LIE_MASTER && step % 8 == 4) tell_again();
        pcclResult_t rc = sum(&p, true, step, count, in, out);
        if (lies && rc == pcclMasterConnectionFailed) _exit(0);
        if (!lies) seat_report(seat, RESULT, rc);
    }
    if (lies) _exit(0);
    seat_report(seat, DONE, 0);
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(p.comm), pcclSuccess);
    free(in);
    free(out);
}

static void run(struct cluster *c, enum lie what, uint64_t seed)
{
    struct run r = {what, seed};
    int64_t liar = 0;
    cluster_start(c, "2");
    for (int i = 0; i < RANKS; i++) cluster_add(c, body, &r);
    for (int i = 0; i < RANKS; i++) {
        int64_t rank = cluster_await(c, i, READY);
        if (i == 0) liar = rank;
    }
    for (int i = 0; i < RANKS; i++) cluster_order(c, i, (int32_t)liar);
    for (int step = 0; step < STEPS; step++) {
        int64_t rc = cluster_await(c, 1, RESULT);
        for (int i = 2; i < RANKS; i++)
            assert_int_equal(cluster_await(c, i, RESULT), rc);
    }
    for (int i = 1; i < RANKS; i++) (void)cluster_await(c, i, DONE);
    for (int i = 1; i < RANKS; i++) cluster_order(c, i, 1);
    for (int i = 1; i < RANKS; i++) cluster_finish(c, i);
    cluster_stop(c);
}

static int start(void **state_)
{
    *state_ = calloc(1, sizeof(struct cluster));
    return *state_ == NULL;
}

static int stop(void **state_)
{
    cluster_stop(*state_);
    free(*state_);
    return 0;
}

static void rings_without_end(void **state_)
{
    run(*state_, LIE_RINGS, 1);
}

static void writes_anywhere(void **state_)
{
    for (uint64_t seed = 1; seed <= 4; seed++) run(*state_, LIE_MEMORY, seed);
}

static void changes_its_frames(void **state_)
{
    for (uint64_t seed = 1; seed <= 3; seed++) run(*state_, LIE_BYTES, seed);
}

static void changes_its_messages(void **state_)
{
    for (uint64_t seed = 1; seed <= 4; seed++) run(*state_, LIE_MASTER, seed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(rings_without_end),
        TEST(writes_anywhere),
        TEST(changes_its_frames),
        TEST(changes_its_messages),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("proc/liar", tests, NULL, NULL);
}
