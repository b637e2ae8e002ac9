/* test_late_text.c - a member that comes to an operation, or to its result,
 * when the others have disagreed again is told on what this one failed (rule
 * F9). */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

enum { RANKS = 3, LATE = 0, ODD = 1, DONE = 1, GATE = 9 };

static int32_t in[16], out[16];

static pcclCollective_t sum(uint64_t tag)
{
    return (pcclCollective_t){.size = sizeof(pcclCollective_t),
                              .kind = pcclKindAllReduce,
                              .tag = tag,
                              .sendbuf = in,
                              .recvbuf = out,
                              .count = 10,
                              .datatype = pcclInt32,
                              .op = pcclSum};
}

static pcclCollective_t of_operators(uint64_t tag, int rank)
{
    pcclCollective_t c = sum(tag);
    c.op = rank == ODD ? pcclMax : pcclSum;
    return c;
}

static pcclCollective_t of_counts(uint64_t tag, int rank)
{
    pcclCollective_t c = sum(tag);
    c.count = rank == ODD ? 11 : 10;
    return c;
}

static void expect_text(const struct seat *seat, pcclComm_t *comm,
                        const char *what)
{
    char text[256];
    SEAT_EQUAL(seat, pcclGetLastError(comm, text, sizeof text), pcclSuccess);
    if (!strstr(text, what)) seat_fail(seat, __FILE__, __LINE__, text, 0, 0);
}

static void fails(const struct seat *seat, pcclComm_t *comm,
                  const pcclCollective_t *c, const char *what)
{
    SEAT_EQUAL(seat, pcclCollective(c, comm, NULL), pcclInvalidArgument);
    expect_text(seat, comm, what);
}

/* The others pass it when they have disagreed twice. */
static void gate(const struct seat *seat, pcclComm_t *comm)
{
    pcclCollective_t c = {
        .size = sizeof c, .kind = pcclKindBarrier, .tag = GATE};
    SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclSuccess);
}

static int join(struct seat *seat, pcclComm_t **comm)
{
    int rank = -1;
    *comm = seat_join(seat);
    seat_gather(seat, *comm, RANKS);
    SEAT_EQUAL(seat, pcclGetAttribute(*comm, PCCL_ATTRIBUTE_RANK, &rank),
               pcclSuccess);
    return rank;
}

static void leave(struct seat *seat, pcclComm_t *comm)
{
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    seat_report(seat, DONE, 0);
}

/* Both have the same name but for their number. */
static void awaits_late(struct seat *seat)
{
    pcclComm_t *comm;
    int rank = join(seat, &comm);
    pcclAsyncReduceOp_t handle;
    pcclCollective_t first = of_operators(3, rank);
    pcclCollective_t second = of_counts(3, rank);
    SEAT_EQUAL(seat, pcclCollectiveAsync(&first, comm, &handle), pcclSuccess);
    if (rank == LATE) gate(seat, comm);
    SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&handle, NULL), pcclInvalidArgument);
    expect_text(seat, comm, "disagree on the operator");
    fails(seat, comm, &second, "disagree on the count");
    if (rank != LATE) gate(seat, comm);
    leave(seat, comm);
}

static void launches_late(struct seat *seat)
{
    pcclComm_t *comm;
    int rank = join(seat, &comm);
    pcclCollective_t calls[] = {of_operators(3, rank), of_counts(3, rank),
                                of_counts(4, rank)};
    if (rank == LATE) gate(seat, comm);
    fails(seat, comm, &calls[0], "disagree on the operator");
    fails(seat, comm, &calls[1], "disagree on the count");
    fails(seat, comm, &calls[2], "(tag 4): members disagree on the count");
    if (rank != LATE) gate(seat, comm);
    leave(seat, comm);
}

static void run(seat_body *body)
{
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, body, NULL);
    for (int i = 0; i < RANKS; i++) (void)cluster_await(&c, i, DONE);
    cluster_stop(&c);
}

static void test_a_result_that_is_taken_late(void **state)
{
    (void)state;
    run(awaits_late);
}

static void test_a_launch_that_comes_late(void **state)
{
    (void)state;
    run(launches_late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_result_that_is_taken_late),
        cmocka_unit_test(test_a_launch_that_comes_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
