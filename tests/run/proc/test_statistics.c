/* test_statistics.c - tests what pcclGetStatistics counts: operations by kind
 * and result, bytes by the way that they took, views, losses and joins. */
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READY = 1, DONE, SMALL = 50, LARGE = 200 * 1000, MEMBERS = 3 };

static pcclStatistics_t statistics(const struct seat *seat, pcclComm_t *comm)
{
    pcclStatistics_t s = {.size = sizeof s};
    SEAT_EQUAL(seat, pcclGetStatistics(comm, &s), pcclSuccess);
    SEAT_EQUAL(seat, s.size, sizeof s);
    return s;
}

static pcclResult_t reduce(pcclComm_t *comm, float *data, size_t count)
{
    pcclReduceDescriptor_t d = {
        .count = count,
        .op = pcclSum,
        .src_descriptor = {pcclFloat, pcclDistributionNone}};
    return pcclAllReduce(data, data, &d, comm, NULL);
}

static void check_kind(const struct seat *seat, const pcclStatistics_t *s,
                       pcclCollectiveKind_t kind, uint64_t succeeded,
                       uint64_t lost)
{
    const pcclOperationCounts_t *n = &s->operations[kind];
    SEAT_EQUAL(seat, n->started, succeeded + lost);
    SEAT_EQUAL(seat, n->succeeded, succeeded);
    SEAT_EQUAL(seat, n->lost, lost);
    SEAT_EQUAL(seat, n->failed, 0);
}

/* Before anything has happened, and of a struct that is older or newer. */
static void check_empty(const struct seat *seat, pcclComm_t *comm)
{
    pcclStatistics_t s = statistics(seat, comm);
    pcclStatistics_t zero = {.size = sizeof zero};
    SEAT_CHECK(seat, memcmp(&s, &zero, sizeof s) == 0);
    SEAT_EQUAL(seat, pcclGetStatistics(comm, NULL), pcclInvalidArgument);
    s.size = sizeof s.size;
    SEAT_EQUAL(seat, pcclGetStatistics(comm, &s), pcclInvalidArgument);
    struct {
        pcclStatistics_t known;
        uint64_t more;
    } newer = {.known.size = sizeof newer, .more = 7};
    SEAT_EQUAL(seat, pcclGetStatistics(comm, &newer.known), pcclSuccess);
    SEAT_EQUAL(seat, newer.known.size, sizeof newer.known);
    SEAT_EQUAL(seat, newer.more, 7);
    s.size = offsetof(pcclStatistics_t, epochs);
    s.epochs = 7;
    SEAT_EQUAL(seat, pcclGetStatistics(comm, &s), pcclSuccess);
    SEAT_EQUAL(seat, s.size, offsetof(pcclStatistics_t, epochs));
    SEAT_EQUAL(seat, s.epochs, 7);
}

static void run_operations(const struct seat *seat, pcclComm_t *comm,
                           float *data)
{
    pcclCollective_t barrier = {
        .size = sizeof barrier, .kind = pcclKindBarrier, .tag = 3};
    for (int i = 0; i < SMALL; i++) {
        SEAT_EQUAL(seat, reduce(comm, data, 4), pcclSuccess);
        SEAT_EQUAL(seat, pcclCollective(&barrier, comm, NULL), pcclSuccess);
    }
    SEAT_EQUAL(seat, reduce(comm, data, LARGE), pcclSuccess);
    pcclCollective_t blocks = {.size = sizeof blocks,
                               .kind = pcclKindReduceScatter,
                               .tag = 4,
                               .sendbuf = data,
                               .recvbuf = data,
                               .count = 16,
                               .datatype = pcclFloat,
                               .op = pcclMax};
    SEAT_EQUAL(seat, pcclCollective(&blocks, comm, NULL), pcclSuccess);
    blocks.datatype = (pcclDataType_t)99;
    SEAT_EQUAL(seat, pcclCollective(&blocks, comm, NULL), pcclInvalidArgument);
}

static void check_operations(const struct seat *seat, pcclComm_t *comm)
{
    const char *transport = getenv("PCCL_TRANSPORT");
    bool tcp = transport && strcmp(transport, "tcp") == 0;
    pcclStatistics_t s = statistics(seat, comm);
    check_kind(seat, &s, pcclKindAllReduce, SMALL + 1, 0);
    check_kind(seat, &s, pcclKindBarrier, SMALL, 0);
    check_kind(seat, &s, pcclKindAllToAllV, 0, 0);
    const pcclOperationCounts_t *n = &s.operations[pcclKindReduceScatter];
    SEAT_EQUAL(seat, n->started, 2);
    SEAT_EQUAL(seat, n->succeeded, 1);
    SEAT_EQUAL(seat, n->failed, 1);
    uint64_t sent = tcp ? s.tcp_sent_bytes : s.shared_sent_bytes;
    uint64_t received = tcp ? s.tcp_received_bytes
                            : s.shared_received_bytes + s.mapped_received_bytes;
    SEAT_CHECK(seat, sent >= SMALL * 2 * (MEMBERS - 1) * 16);
    SEAT_CHECK(seat, received > LARGE * sizeof(float));
    if (tcp) SEAT_EQUAL(seat, s.shared_sent_bytes + s.mapped_received_bytes, 0);
    SEAT_EQUAL(seat, s.losses, 0);
    SEAT_EQUAL(seat, s.recoveries, 0);
    SEAT_CHECK(seat, s.epochs >= 1 && s.epochs == s.updates + 1);
}

static void check_loss(const struct seat *seat, pcclComm_t *comm)
{
    pcclStatistics_t s = statistics(seat, comm);
    check_kind(seat, &s, pcclKindAllReduce, SMALL + 2, 1);
    SEAT_EQUAL(seat, s.losses, 1);
    SEAT_CHECK(seat, s.recoveries >= 1);
    SEAT_CHECK(seat, s.recovery_ns >= s.recovery_longest_ns);
    SEAT_CHECK(seat, s.recovery_longest_ns > 0);
    SEAT_EQUAL(seat, s.epochs, 1 + s.updates + s.recoveries);
    SEAT_EQUAL(seat, s.waits > 0, s.wait_ns > 0);
}

/* Numbers never fall; all fields are words. */
static void check_growth(const struct seat *seat, const pcclStatistics_t *from,
                         const pcclStatistics_t *to)
{
    uint64_t before[sizeof *from / 8], after[sizeof *to / 8];
    memcpy(before, from, sizeof before);
    memcpy(after, to, sizeof after);
    for (size_t i = 0; i < sizeof after / 8; i++)
        SEAT_CHECK(seat, after[i] >= before[i]);
}

static void body(struct seat *seat)
{
    float *data = calloc(LARGE, sizeof *data);
    SEAT_CHECK(seat, data != NULL);
    pcclComm_t *comm = seat_create(seat);
    check_empty(seat, comm);
    SEAT_EQUAL(seat, pcclConnect(comm), pcclSuccess);
    seat_gather(seat, comm, MEMBERS);
    run_operations(seat, comm, data);
    check_operations(seat, comm);
    pcclStatistics_t before = statistics(seat, comm);
    seat_report(seat, READY, 0);
    if (seat->index == MEMBERS - 1) (void)pause();
    SEAT_EQUAL(seat, reduce(comm, data, LARGE), pcclRankConnectionLost);
    SEAT_EQUAL(seat, reduce(comm, data, LARGE), pcclSuccess);
    check_loss(seat, comm);
    seat_report(seat, DONE, 0);
    seat_gather(seat, comm, MEMBERS);
    pcclStatistics_t s = statistics(seat, comm);
    SEAT_EQUAL(seat, s.joins, before.joins + 1);
    check_growth(seat, &before, &s);
    (void)seat_hear(seat); /* before that nobody leaves */
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    free(data);
}

static void newcomer(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    pcclStatistics_t s = statistics(seat, comm);
    SEAT_EQUAL(seat, s.epochs, 1);
    SEAT_EQUAL(seat, s.joins, 0);
    seat_report(seat, DONE, 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_counts(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "3");
    for (int i = 0; i < MEMBERS; i++) (void)cluster_add(&c, body, NULL);
    for (int i = 0; i < MEMBERS; i++) (void)cluster_await(&c, i, READY);
    cluster_signal(&c, MEMBERS - 1, SIGKILL);
    for (int i = 0; i < MEMBERS - 1; i++) (void)cluster_await(&c, i, DONE);
    int last = cluster_add(&c, newcomer, NULL);
    (void)cluster_await(&c, last, DONE);
    for (int i = 0; i < MEMBERS - 1; i++) cluster_order(&c, i, 1);
    for (int i = 0; i < MEMBERS - 1; i++) cluster_finish(&c, i);
    cluster_finish(&c, last);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
