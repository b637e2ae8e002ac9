/* test_churn.c - tests of members that are stopped and continue, newcomers that
 * die or freeze at any moment of joining, and idle members. */
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READY = 1, LOST, EVICTED, PENDING, DONE };
enum { GO = 1, END };
enum { VECTOR_COUNT = 16384 };

static int start(void **state)
{
    *state = calloc(1, sizeof(struct cluster));
    return *state == NULL;
}

static int stop(void **state)
{
    cluster_stop(*state);
    free(*state);
    return 0;
}

/* -------------------------------------------------------- stopped members */

static void stopped_body(struct seat *seat)
{
    const bool *in_place = seat->arg;
    pcclComm_t *comm = seat_join(seat);
    struct vector v;
    seat_gather(seat, comm, 3);
    vector_open(&v, seat, comm, VECTOR_COUNT, *in_place);
    pcclResult_t rc = pcclSuccess;
    for (int step = 0; rc == pcclSuccess; step++) {
        rc = vector_reduce(&v, step);
        if (step == 3) seat_report(seat, READY, 0);
    }
    if (rc == pcclRankConnectionLost) {
        SEAT_EQUAL(seat, world_size(comm), 2);
        for (int step = 0; step < 3; step++)
            SEAT_EQUAL(seat, vector_reduce(&v, step), pcclSuccess);
        seat_report(seat, LOST, now_ms());
    } else { /* the stopped member: evicted, joins again */
        SEAT_EQUAL(seat, rc, pcclMasterConnectionFailed);
        SEAT_EQUAL(seat, vector_reduce(&v, 0), pcclMasterConnectionFailed);
        SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclUpdateTopologyFailed);
        seat_report(seat, EVICTED, 0);
        if (*in_place) { /* with a new communicator, or with the same one */
            SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
            v.comm = comm = seat_join(seat);
        } else {
            SEAT_EQUAL(seat, pcclConnect(comm), pcclSuccess);
        }
    }
    seat_gather(seat, comm, 3);
    for (int step = 0; step < 3; step++)
        SEAT_EQUAL(seat, vector_reduce(&v, step), pcclSuccess);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void stopped_is_evicted_and_rejoins(void **state)
{
    struct cluster *c = *state;
    for (int victim = 0; victim < 2; victim++) {
        bool in_place = victim == 0;
        cluster_start(c, "1");
        for (int i = 0; i < 3; i++) cluster_add(c, stopped_body, &in_place);
        for (int i = 0; i < 3; i++) (void)cluster_await(c, i, READY);
        int64_t begun = now_ms();
        cluster_signal(c, victim, SIGSTOP);
        for (int i = 0; i < 3; i++) {
            if (i == victim) continue;
            int64_t took = cluster_await(c, i, LOST) - begun;
            /* Silence counts from its last heartbeat, which a busy machine
             * delays; without a deadline it would be a millisecond. */
            assert_in_range(took, 250, PATIENCE_MS);
        }
        cluster_signal(c, victim, SIGCONT);
        (void)cluster_await(c, victim, EVICTED);
        for (int i = 0; i < 3; i++) cluster_finish(c, i);
        cluster_stop(c);
    }
}

/* --------------------------------------------------- newcomers, one moment */

/* Two members. GO: see a newcomer and report it; on the next order update and
 * reduce. The world must still have two members. */
static void host_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    struct vector v;
    seat_gather(seat, comm, 2);
    vector_open(&v, seat, comm, VECTOR_COUNT, true);
    seat_report(seat, READY, 0);
    while (seat_hear(seat) == GO) {
        for (bool pending = false; !pending;)
            SEAT_EQUAL(seat, pcclArePeersPending(comm, &pending), pcclSuccess);
        seat_report(seat, PENDING, 0);
        (void)seat_hear(seat);
        SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
        SEAT_EQUAL(seat, world_size(comm), 2);
        SEAT_EQUAL(seat, vector_reduce(&v, 1), pcclSuccess);
        seat_report(seat, DONE, 0);
    }
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void newcomer_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_report(seat, DONE, 0);
    (void)pcclDestroyCommunicator(comm);
}

static void order_hosts(struct cluster *c, int32_t order)
{
    for (int i = 0; i < 2; i++) cluster_order(c, i, order);
}

static void await_hosts(struct cluster *c, int kind)
{
    for (int i = 0; i < 2; i++) (void)cluster_await(c, i, kind);
}

static void finish_hosts(struct cluster *c, int32_t order)
{
    order_hosts(c, order);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

static void newcomer_killed_after_hello(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, host_body, NULL);
    await_hosts(c, READY);
    for (int round = 0; round < 5; round++) {
        int newcomer = cluster_add(c, newcomer_body, NULL);
        order_hosts(c, GO);
        await_hosts(c, PENDING);
        cluster_signal(c, newcomer, SIGKILL);
        order_hosts(c, GO);
        await_hosts(c, DONE);
    }
    finish_hosts(c, END);
}

static void newcomer_stopped_after_hello(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "1");
    for (int i = 0; i < 2; i++) cluster_add(c, host_body, NULL);
    await_hosts(c, READY);
    int newcomer = cluster_add(c, newcomer_body, NULL);
    order_hosts(c, GO);
    await_hosts(c, PENDING);
    cluster_signal(c, newcomer, SIGSTOP);
    order_hosts(c, GO);
    await_hosts(c, DONE);
    finish_hosts(c, END);
}

/* ---------------------------------------------------- newcomers, any moment */

/* Members update and reduce until the test ends them; newcomers come and go. */
static void open_house_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    struct vector v;
    struct pollfd end = {.fd = seat->order_fd, .events = POLLIN};
    seat_gather(seat, comm, 2);
    vector_open(&v, seat, comm, 16, true);
    seat_report(seat, READY, 0);
    int last = 0;
    for (int step = 0; last == 0; step++) {
        SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
        pcclResult_t rc = vector_reduce(&v, step);
        SEAT_CHECK(seat, rc == pcclSuccess || rc == pcclRankConnectionLost);
        SEAT_CHECK(seat, world_size(comm) >= 2);
        /* The end is agreed on, like any common decision. */
        float say = (float)(poll(&end, 1, 0) > 0);
        float all = 0;
        pcclReduceDescriptor_t d = {
            .count = 1,
            .op = pcclMin,
            .tag = 8,
            .src_descriptor = {pcclFloat, pcclDistributionNone}};
        do rc = pcclAllReduce(&say, &all, &d, comm, NULL);
        while (rc == pcclRankConnectionLost);
        SEAT_EQUAL(seat, rc, pcclSuccess);
        last = all > 0;
    }
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

/* Once admitted it is idle: the members' operation lacks it until it is
 * killed. */
static void guest_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_report(seat, DONE, 0);
    (void)seat_hear(seat);
    (void)pcclDestroyCommunicator(comm);
}

static int64_t next_random(uint64_t *seed, int64_t limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(*seed >> 33) % limit;
}

/* Fork to admission takes some milliseconds: kills happen before HELLO, between
 * HELLO and the proposal, while links are made, and some later. */
static void newcomer_killed_at_any_moment(void **state)
{
    struct cluster *c = *state;
    uint64_t seed = 1;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, open_house_body, NULL);
    await_hosts(c, READY);
    for (int round = 0; round < 40; round++) {
        int guest = cluster_add(c, guest_body, NULL);
        if (round % 8 == 0)
            (void)cluster_await(c, guest, DONE);
        else
            (void)cluster_has_report(c, guest, (int)next_random(&seed, 12));
        cluster_signal(c, guest, SIGKILL);
    }
    finish_hosts(c, END);
}

/* Connects to the master and sends nothing. */
static void stranger_body(struct seat *seat)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(seat->port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    SEAT_EQUAL(seat, connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    seat_report(seat, READY, 0);
    (void)seat_hear(seat);
}

static void newcomer_killed_or_stopped_before_hello(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, open_house_body, NULL);
    await_hosts(c, READY);
    for (int round = 0; round < 6; round++) {
        int stranger = cluster_add(c, stranger_body, NULL);
        (void)cluster_await(c, stranger, READY);
        cluster_signal(c, stranger, round % 2 ? SIGKILL : SIGSTOP);
    }
    finish_hosts(c, END);
}

/* ------------------------------------------------------------- idle members */

/* A member with a longer deadline sends heartbeats at the rate of the run's. */
static void patient_body(struct seat *seat)
{
    pcclComm_t *comm = seat_create(seat);
    pcclCommOptions_t options = {
        .size = sizeof options, .rank_hint = -1, .deadline_ms = 600000};
    SEAT_EQUAL(seat, pcclSetOptions(comm, &options), pcclSuccess);
    SEAT_EQUAL(seat, pcclConnect(comm), pcclSuccess);
    seat_report(seat, READY, 0);
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void the_runs_deadline_counts(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "2");
    int member = cluster_add(c, patient_body, NULL);
    (void)cluster_await(c, member, READY);
    assert_false(cluster_has_report(c, member, 5000)); /* busy computing */
    cluster_order(c, member, GO);
    cluster_finish(c, member);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(stopped_is_evicted_and_rejoins),
        TEST(newcomer_killed_after_hello),
        TEST(newcomer_stopped_after_hello),
        TEST(newcomer_killed_at_any_moment),
        TEST(newcomer_killed_or_stopped_before_hello),
        TEST(the_runs_deadline_counts),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("proc/churn", tests, NULL, NULL);
}
