/* test_loop.c - the loop of pccl_loop.h: weighted means, a member that dies, a
 * newcomer, calls that time out. All members end with the same state. */
#include "cluster.h"
#include "pccl_loop.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <string.h>

enum {
    FOUNDERS = 3,
    COUNT = 1000,
    CALM = 10,     /* steps in which nothing happens */
    FATAL = 15,    /* rank 1 dies */
    ALONE = 20,    /* the test starts a newcomer */
    COMPLETE = 25, /* the others wait for it */
    STEPS = 40,
    REACHED = 1,
    STATE = 2,
};

struct state {
    int64_t step;
    float weights[COUNT];
};

/* Members with fewer samples count less, those without not at all. */
static float samples(int rank)
{
    return (float)(rank == 2 ? 0 : 2 * rank + 1);
}

static float change(int rank, int i)
{
    return rank == 2 ? NAN : (float)(i + 100 * rank);
}

static void check_mean(const struct seat *seat, const float *x)
{
    for (int i = 0; i < COUNT; i++) {
        float mean = (change(0, i) * samples(0) + change(1, i) * samples(1)) /
                     (samples(0) + samples(1));
        SEAT_CHECK(seat, fabsf(x[i] - mean) < .01F);
    }
    SEAT_EQUAL(seat, x[COUNT], samples(0) + samples(1));
}

static int64_t digest(const struct state *s)
{
    uint64_t hash = (uint64_t)s->step;
    const unsigned char *bytes = (const unsigned char *)s->weights;
    for (size_t i = 0; i < sizeof s->weights; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return (int64_t)(hash >> 1);
}

static int rank_of(const struct seat *seat, const pcclComm_t *comm)
{
    int rank = -1;
    SEAT_EQUAL(seat, pcclGetAttribute(comm, PCCL_ATTRIBUTE_RANK, &rank),
               pcclSuccess);
    return rank;
}

/* A call that times out is made again. */
static void begin(const struct seat *seat, pcclLoop_t *loop)
{
    pcclResult_t rc;
    do rc = pcclLoopBegin(loop);
    while (rc == pcclTimedOut);
    SEAT_EQUAL(seat, rc, pcclSuccess);
}

static void step(const struct seat *seat, pcclLoop_t *loop, struct state *s)
{
    static float x[COUNT + 1];
    int rank = rank_of(seat, loop->comm);
    for (int i = 0; i < COUNT; i++) x[i] = change(rank, i);
    if (s->step == FATAL && seat->index == 1) raise(SIGKILL);
    pcclResult_t rc;
    do rc = pcclLoopMean(loop, x, COUNT, samples(rank));
    while (rc == pcclTimedOut);
    SEAT_EQUAL(seat, rc, pcclSuccess);
    if (s->step < CALM) SEAT_EQUAL(seat, loop->members, FOUNDERS);
    if (s->step < CALM) check_mean(seat, x);
    for (int i = 0; i < COUNT; i++)
        s->weights[i] += x[i] + (float)loop->members;
    s->step++;
}

static void body(struct seat *seat)
{
    static struct state s;
    pcclTensorInfo_t tensors[] = {
        {.name = "step", .data = &s.step, .count = 1, .datatype = pcclInt64},
        {.name = "weights",
         .data = s.weights,
         .count = COUNT,
         .datatype = pcclFloat}};
    pcclSharedState_t state = {.count = 2, .infos = tensors};
    pcclComm_t *comm = seat_join(seat);
    if (!seat->arg) seat_gather(seat, comm, FOUNDERS);
    SEAT_EQUAL(seat, pcclSetTimeLimit(comm, seat->index == 0 ? 1 : 0),
               pcclSuccess);
    pcclLoop_t loop = {.comm = comm, .state = &state, .tag = 77};
    begin(seat, &loop);
    if (seat->arg)
        SEAT_EQUAL(seat, loop.received, sizeof s.step + sizeof s.weights);
    for (bool told = false; s.step < STEPS; begin(seat, &loop)) {
        bool waits = s.step == COMPLETE && world_size(comm) < FOUNDERS;
        if (s.step == ALONE && seat->index == 0 && !told)
            seat_report(seat, REACHED, told = true);
        if (!waits) step(seat, &loop, &s);
    }
    seat_report(seat, STATE, digest(&s));
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_all_end_alike(void **state)
{
    (void)state;
    static const char newcomer[] = "newcomer";
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < FOUNDERS; i++) cluster_add(&c, body, NULL);
    (void)cluster_await(&c, 0, REACHED);
    cluster_add(&c, body, newcomer);
    int64_t first = cluster_await(&c, 0, STATE);
    assert_int_equal(cluster_await(&c, 2, STATE), first);
    assert_int_equal(cluster_await(&c, FOUNDERS, STATE), first);
    cluster_finish(&c, 0);
    cluster_finish(&c, 2);
    cluster_finish(&c, FOUNDERS);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_end_alike),
    };
    return cmocka_run_group_tests_name("proc/loop", tests, NULL, NULL);
}
