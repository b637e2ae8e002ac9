/* test_diloco.c - outer steps among processes: weighted means against the same
 * in double, members that die, numbers that are not finite, members without a
 * weight, calls that time out, quantized pseudo-gradients. */
#include "../proc/cluster.h"
#include "pccl_train.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMBERS = 3,
    COUNT = 3000 + 100,
    SPOILED = 2, /* rank 1 has a NaN */
    NONE = 4,    /* nobody has a weight */
    FATAL = 6,   /* rank 2 dies before it launches */
    STEPS = 10,
    STATE = 1,
};

static const pcclTrainTensor_t tensors[] = {{"matrix", 60, 50},
                                            {"bias", 1, 100}};

static float change(int rank, int step, int i)
{
    return (float)((rank * 71 + step * 37 + i * 11) % 97 - 48) / 480;
}

static float weight_of(int rank, int step)
{
    return step == NONE ? 0 : (float)(rank + 1);
}

/* The same in double, of all members. */
struct expected {
    double weights[COUNT], momentum[COUNT], loss;
    int members;
};

static void expect(struct expected *e, int step)
{
    const int members = step >= FATAL ? MEMBERS - 1 : MEMBERS;
    for (int i = 0; i < COUNT; i++) {
        double sum = 0, weights = 0;
        for (int rank = 0; rank < members; rank++) {
            if (step == SPOILED && rank == 1) continue;
            sum += (double)(change(rank, step, i) * weight_of(rank, step));
            weights += (double)weight_of(rank, step);
        }
        sum /= weights;
        e->momentum[i] = 0.9 * e->momentum[i] + sum;
        e->weights[i] -= 0.7 * (sum + 0.9 * e->momentum[i]);
    }
    e->members = members;
}

static void inner(pcclDiloco_t *d, float *const *weights, int rank, int step)
{
    int at = 0;
    (void)pcclDilocoGetWeights(d, weights);
    for (int t = 0; t < 2; t++) {
        int count = (int)(tensors[t].rows * tensors[t].columns);
        for (int i = 0; i < count; i++, at++)
            weights[t][i] -= change(rank, step, at);
    }
    if (step == SPOILED && rank == 1) weights[1][50] = NAN;
}

static void check(const struct seat *seat, const float *weights,
                  const struct expected *e, bool quantized)
{
    double limit = quantized ? 0.01 : 1e-5, worst = 0;
    for (int i = 0; i < COUNT; i++)
        worst = fmax(worst, fabs((double)weights[i] - e->weights[i]));
    SEAT_CHECK(seat, worst < limit);
    if (quantized) SEAT_CHECK(seat, worst > 0);
}

static pcclResult_t step_until_done(pcclDiloco_t *d, float *const *weights,
                                    float loss, float weight, pcclComm_t *comm)
{
    pcclResult_t rc;
    do rc = pcclDilocoStep(d, weights, &loss, weight, comm, NULL);
    while (rc == pcclTimedOut);
    return rc;
}

static int64_t digest(const float *x)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < COUNT * sizeof *x; i++)
        hash = (hash ^ ((const unsigned char *)x)[i]) * 0x100000001b3u;
    return (int64_t)(hash >> 1);
}

static void body(struct seat *seat)
{
    static struct expected e;
    static float x[COUNT];
    const bool quantized = seat->arg != NULL;
    pcclDilocoOptions_t options = {.size = sizeof options,
                                   .rate = 0.7F,
                                   .momentum = 0.9F,
                                   .stat_count = 1,
                                   .tag = 3};
    if (quantized)
        options.quantization =
            (pcclQuantizationOptions_t){pcclUint8, pcclQuantMinMax};
    float *const weights[] = {x, x + 3000};
    pcclDiloco_t *d;
    SEAT_EQUAL(seat,
               pcclDilocoCreate(tensors, 2, (const float *const *)weights,
                                &options, &d),
               pcclSuccess);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, MEMBERS);
    if (seat->index == 0)
        SEAT_EQUAL(seat, pcclSetTimeLimit(comm, 1), pcclSuccess);
    for (int step = 0; step < STEPS; step++) {
        inner(d, weights, seat->index, step);
        if (step == FATAL && seat->index == 2) raise(SIGKILL);
        pcclResult_t rc = step_until_done(d, weights, (float)seat->index,
                                          weight_of(seat->index, step), comm);
        SEAT_EQUAL(seat, rc, step == NONE ? pcclOperationFailed : pcclSuccess);
        if (step == NONE) continue;
        expect(&e, step);
        check(seat, x, &e, quantized);
        pcclDilocoProgress_t p = {.size = sizeof p};
        SEAT_EQUAL(seat, pcclDilocoGetProgress(d, &p), pcclSuccess);
        SEAT_EQUAL(seat, p.step, step + 1 - (step > NONE));
        SEAT_EQUAL(seat, p.begun, p.step);
        SEAT_EQUAL(seat, p.contributors, e.members);
        if (step == 0) SEAT_CHECK(seat, fabsf(p.stats[0] - 8.0F / 6) < 1e-6F);
    }
    seat_report(seat, STATE, digest(x));
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclDilocoDestroy(d), pcclSuccess);
}

static void run(const void *quantized)
{
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < MEMBERS; i++) cluster_add(&c, body, quantized);
    const int64_t first = cluster_await(&c, 0, STATE);
    assert_int_equal(cluster_await(&c, 1, STATE), first);
    cluster_finish(&c, 0);
    cluster_finish(&c, 1);
    cluster_stop(&c);
}

static void test_exact(void **state)
{
    (void)state;
    run(NULL);
}

static void test_quantized(void **state)
{
    (void)state;
    run("quantized");
}

/* -------------------------------------------------------------- other lists */

static void disagree(struct seat *seat)
{
    float x[6] = {0};
    const pcclTrainTensor_t mine = {"x", seat->index == 0 ? 2 : 3,
                                    seat->index == 0 ? 3 : 2};
    const pcclDilocoOptions_t options = {.size = sizeof options, .rate = 1};
    float *const weights[] = {x};
    pcclDiloco_t *d;
    SEAT_EQUAL(
        seat,
        pcclDilocoCreate(&mine, 1, (const float *const *)weights, &options, &d),
        pcclSuccess);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    SEAT_EQUAL(seat, pcclDilocoStep(d, weights, NULL, 1, comm, NULL),
               pcclInvalidArgument);
    char text[256];
    SEAT_EQUAL(seat, pcclTrainGetLastError(text, sizeof text), pcclSuccess);
    SEAT_CHECK(seat, strstr(text, "list of tensors") != NULL);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclDilocoDestroy(d), pcclSuccess);
}

static void test_lists_that_differ(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < 2; i++) cluster_add(&c, disagree, NULL);
    for (int i = 0; i < 2; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

/* ------------------------------------------------------- a lone survivor */

/* Member 1 dies after the first step. */
static void be_left(struct seat *seat)
{
    static float x[COUNT], before[COUNT];
    const bool goes_on = seat->arg != NULL;
    const pcclDilocoOptions_t options = {
        .size = sizeof options, .rate = 0.7F, .goes_on_alone = goes_on};
    float *const weights[] = {x, x + 3000};
    pcclDiloco_t *d;
    SEAT_EQUAL(seat,
               pcclDilocoCreate(tensors, 2, (const float *const *)weights,
                                &options, &d),
               pcclSuccess);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    pcclDilocoProgress_t p = {.size = sizeof p};
    for (uint64_t step = 0; step < 3; step++) {
        const bool alone = step > 0;
        if (alone && seat->index == 1) raise(SIGKILL);
        (void)pcclDilocoGetWeights(d, weights);
        memcpy(before, x, sizeof x);
        x[7] += 1;
        SEAT_EQUAL(seat, pcclDilocoStep(d, weights, NULL, 1, comm, NULL),
                   alone && !goes_on ? pcclTooFewPeers : pcclSuccess);
        (void)pcclDilocoGetProgress(d, &p);
        SEAT_EQUAL(seat, p.step, goes_on ? step + 1 : 1);
        SEAT_EQUAL(seat, p.begun, p.step);
        (void)pcclDilocoGetWeights(d, weights);
        SEAT_EQUAL(seat, memcmp(before, x, sizeof x) == 0, alone && !goes_on);
    }
    seat_report(seat, STATE, 1);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclDilocoDestroy(d), pcclSuccess);
}

static void test_left_alone(void **state)
{
    (void)state;
    const char *const ways[] = {NULL, "goes on"};
    for (int i = 0; i < 2; i++) {
        struct cluster c;
        cluster_start(&c, "20");
        for (int k = 0; k < 2; k++) cluster_add(&c, be_left, ways[i]);
        assert_int_equal(cluster_await(&c, 0, STATE), 1);
        cluster_finish(&c, 0);
        cluster_stop(&c);
    }
}

/* -------------------------------------------------------- a second run */

/* Member 0 has calls in flight that member 1 never makes. Both leave; with
 * another communicator the calls begin anew. */
static void come_again(struct seat *seat)
{
    enum { ROWS = 40, COLUMNS = 30 };
    static float x[ROWS * COLUMNS], g[ROWS * COLUMNS];
    const pcclTrainTensor_t list = {"x", ROWS, COLUMNS};
    const pcclDilocoOptions_t outer = {
        .size = sizeof outer, .rate = 1, .tag = 1};
    const pcclPowerSgdOptions_t low = {.size = sizeof low, .rank = 2, .tag = 2};
    const pcclSpartaOptions_t sparse = {
        .size = sizeof sparse, .parts = 1, .every = 1, .tag = 3};
    float *const at[] = {x}, *const gradients[] = {g};
    pcclDiloco_t *d;
    pcclPowerSgd_t *s;
    pcclSparta_t *p;
    SEAT_EQUAL(seat,
               pcclDilocoCreate(&list, 1, (const float *const *)at, &outer, &d),
               pcclSuccess);
    SEAT_EQUAL(seat, pcclPowerSgdCreate(&list, 1, &low, &s), pcclSuccess);
    SEAT_EQUAL(seat, pcclSpartaCreate(&list, 1, &sparse, &p), pcclSuccess);
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = g[i] = (float)(i % 7);
    for (int run = 0; run < 2; run++) {
        const pcclResult_t want = run == 0 ? pcclTimedOut : pcclSuccess;
        pcclComm_t *comm = seat_join(seat);
        if (run == 0) seat_gather(seat, comm, 2);
        if (run == 0) SEAT_EQUAL(seat, pcclSetTimeLimit(comm, 1), pcclSuccess);
        SEAT_EQUAL(seat, pcclDilocoStep(d, at, NULL, 1, comm, NULL), want);
        SEAT_EQUAL(seat, pcclPowerSgdReduce(s, gradients, 1, comm, NULL), want);
        SEAT_EQUAL(seat, pcclSpartaStep(p, at, NULL, comm, NULL), want);
        for (int i = 0; run == 0 && i < ROWS * COLUMNS; i++)
            SEAT_CHECK(seat, x[i] == (float)(i % 7) && g[i] == x[i]);
        SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
        seat_report(seat, STATE, run);
        if (run == 0) (void)seat_hear(seat); /* the other one has left, too */
    }
    pcclDilocoProgress_t progress = {.size = sizeof progress};
    SEAT_EQUAL(seat, pcclDilocoGetProgress(d, &progress), pcclSuccess);
    SEAT_EQUAL(seat, progress.begun, 1);
    SEAT_EQUAL(seat, progress.step, 1);
    SEAT_EQUAL(seat, pcclDilocoDestroy(d), pcclSuccess);
    SEAT_EQUAL(seat, pcclPowerSgdDestroy(s), pcclSuccess);
    SEAT_EQUAL(seat, pcclSpartaDestroy(p), pcclSuccess);
}

static void only_look(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_new_communicator(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "20");
    cluster_add(&c, come_again, NULL);
    cluster_add(&c, only_look, NULL);
    assert_int_equal(cluster_await(&c, 0, STATE), 0);
    cluster_order(&c, 1, 0);
    cluster_finish(&c, 1);
    cluster_order(&c, 0, 0);
    assert_int_equal(cluster_await(&c, 0, STATE), 1);
    cluster_finish(&c, 0);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_quantized),
        cmocka_unit_test(test_lists_that_differ),
        cmocka_unit_test(test_left_alone),
        cmocka_unit_test(test_new_communicator),
    };
    return cmocka_run_group_tests_name("train/diloco", tests, NULL, NULL);
}
