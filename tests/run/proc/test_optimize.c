/* test_optimize.c - tests that the ring follows the measured links (rules
 * O1..).
 *
 * Goal: pcclOptimizeTopology finds the one fast ring among slow edges, all
 * members agree on it, and collectives then send their bytes along it and
 * nowhere else. Method: real ranks on loopback whose sendmsg() is ours: it
 * identifies the peers by a connection's first frame, counts their bytes, and
 * limits the rate of slow edges. */
#include "cluster.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

enum {
    RANKS = 5,
    FDS = 1024,
    FRAME = 48, /* header of the frames between peers */
    HELLO = 1,
    PROBE = 8,
    SLOW_RATE = 500 * 1000, /* bytes/s; other edges are not limited */
    COUNT = 1024 * 1024,    /* floats */
};

enum { SAID_RING = 1, SAID_BYTES };

/* The successor of each member on the fast ring, by id - 1. */
static const int follows[RANKS] = {2, 3, 4, 0, 1};

/* ------------------------------------------------------- our own sendmsg() */

static struct {
    uint64_t to; /* member id, 0: not a connection between members */
    bool fast;
    double allowance, refilled_at;
} wires[FDS];

static uint64_t bytes_to[RANKS + 1];
static bool dies_in_probe;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t big_endian(const uint8_t *b)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value = value << 8 | b[i];
    return value;
}

/* HELLO: header, key (16 bytes), sender, receiver. */
static void look(int fd, const struct msghdr *msg)
{
    const struct iovec *v = msg->msg_iov;
    const uint8_t *b = v->iov_base;
    if (v->iov_len == FRAME && b[2] == PROBE && dies_in_probe)
        (void)raise(SIGKILL);
    if (v->iov_len < FRAME + 32) return;
    if (b[2] != HELLO) return;
    uint64_t from = big_endian(b + FRAME + 16);
    uint64_t to = big_endian(b + FRAME + 24);
    if (from < 1 || from > RANKS || to < 1 || to > RANKS) return;
    wires[fd].to = to;
    wires[fd].fast = follows[from - 1] == (int)to - 1;
    wires[fd].allowance = FRAME + 32;
    wires[fd].refilled_at = seconds();
}

static ssize_t trickle(int fd, const struct msghdr *msg)
{
    double now = seconds();
    wires[fd].allowance += (now - wires[fd].refilled_at) * SLOW_RATE;
    wires[fd].refilled_at = now;
    double most = SLOW_RATE / 100.;
    if (wires[fd].allowance > most) wires[fd].allowance = most;
    const struct iovec *v = msg->msg_iov;
    size_t size = v->iov_len;
    if ((double)size > wires[fd].allowance) size = (size_t)wires[fd].allowance;
    if (size == 0) {
        /* The socket stays writable: keep poll() from spinning. */
        struct timespec nap = {.tv_nsec = 1000000};
        (void)nanosleep(&nap, NULL);
        errno = EAGAIN;
        return -1;
    }
    ssize_t sent = send(fd, v->iov_base, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) wires[fd].allowance -= (double)sent;
    if (sent > 0) bytes_to[wires[fd].to] += (uint64_t)sent;
    return sent;
}

__attribute__((visibility("default"))) ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
    static ssize_t (*real)(int, const struct msghdr *, int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    if (fd < 0 || fd >= FDS) return real(fd, msg, flags);
    look(fd, msg);
    if (wires[fd].to == 0) return real(fd, msg, flags);
    if (!wires[fd].fast) return trickle(fd, msg);
    ssize_t sent = real(fd, msg, flags);
    if (sent > 0) bytes_to[wires[fd].to] += (uint64_t)sent;
    return sent;
}

/* ------------------------------------------------------------------- tests */

static void all_reduce(struct seat *seat, pcclComm_t *comm)
{
    float *data = malloc(COUNT * sizeof *data);
    SEAT_CHECK(seat, data != NULL);
    for (size_t i = 0; i < COUNT; i++) data[i] = 1;
    pcclReduceOperandDescriptor_t operand = {
        .datatype = pcclFloat, .distribution_hint = pcclDistributionNone};
    pcclReduceDescriptor_t what = {.count = COUNT,
                                   .op = pcclSum,
                                   .tag = 1,
                                   .src_descriptor = operand,
                                   .quantization_options = {0}};
    pcclReduceInfo_t info;
    SEAT_EQUAL(seat, pcclAllReduce(data, data, &what, comm, &info),
               pcclSuccess);
    for (size_t i = 0; i < COUNT; i++) SEAT_CHECK(seat, data[i] == RANKS);
    free(data);
}

static void body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    SEAT_EQUAL(seat, pcclOptimizeTopology(comm), pcclSuccess);
    pcclMember_t members[RANKS];
    int ring[RANKS], rank = -1;
    size_t count = 0;
    uint64_t epoch;
    SEAT_EQUAL(seat, pcclGetView(comm, &epoch, &rank, NULL, members, RANKS),
               pcclSuccess);
    SEAT_EQUAL(seat, pcclGetRing(comm, ring, RANKS, &count), pcclSuccess);
    SEAT_EQUAL(seat, count, RANKS);
    int64_t code = 0;
    uint64_t next = 0;
    for (int i = 0; i < RANKS; i++) {
        uint64_t here = members[ring[i]].id;
        uint64_t there = members[ring[(i + 1) % RANKS]].id;
        SEAT_EQUAL(seat, there - 1, follows[here - 1]);
        if (here == members[rank].id) next = there;
        code = code * 10 + ring[i];
    }
    seat_report(seat, SAID_RING, code);

    memset(bytes_to, 0, sizeof bytes_to);
    all_reduce(seat, comm);
    for (uint64_t id = 1; id <= RANKS; id++) {
        bool most = bytes_to[id] > COUNT; /* of 1.6 vectors of 4 MiB */
        SEAT_EQUAL(seat, most, id == next);
        SEAT_CHECK(seat, id == next || bytes_to[id] < 16384);
    }
    seat_report(seat, SAID_BYTES, (int64_t)bytes_to[next]);
    SEAT_EQUAL(seat, pcclOptimizeTopology(comm), pcclSuccess);
    (void)seat_hear(seat);
    pcclDestroyCommunicator(comm);
}

static void test_the_fast_ring_is_found_and_used(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, body, NULL);
    int64_t ring = cluster_await(&c, 0, SAID_RING);
    for (int i = 1; i < RANKS; i++)
        assert_int_equal(cluster_await(&c, i, SAID_RING), ring);
    for (int i = 0; i < RANKS; i++) (void)cluster_await(&c, i, SAID_BYTES);
    for (int i = 0; i < RANKS; i++) cluster_order(&c, i, 0);
    for (int i = 0; i < RANKS; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

/* One member is killed while it measures: the others get a ring. */
static void mortal_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    dies_in_probe = seat->index == 2;
    SEAT_EQUAL(seat, pcclOptimizeTopology(comm), pcclSuccess);
    int ring[RANKS];
    size_t count = 0;
    SEAT_EQUAL(seat, pcclGetRing(comm, ring, RANKS, &count), pcclSuccess);
    SEAT_EQUAL(seat, world_size(comm), count);
    seat_report(seat, SAID_BYTES, (int64_t)count);
    (void)seat_hear(seat);
    pcclDestroyCommunicator(comm);
}

static void test_a_death_while_measuring(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, mortal_body, NULL);
    for (int i = 0; i < RANKS; i++) {
        if (i == 2) continue;
        assert_int_equal(cluster_await(&c, i, SAID_BYTES), RANKS - 1);
    }
    for (int i = 0; i < RANKS; i++)
        if (i != 2) cluster_order(&c, i, 0);
    for (int i = 0; i < RANKS; i++)
        if (i != 2) cluster_finish(&c, i);
    cluster_stop(&c);
}

int main(void)
{
    (void)setenv("PCCL_TRANSPORT", "tcp",
                 1); /* otherwise sendmsg() is not used */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fast_ring_is_found_and_used),
        cmocka_unit_test(test_a_death_while_measuring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
