/* test_sparta.c - sparse averages among processes. Without training K rounds
 * make all members equal, to the mean; each element takes part in one of them.
 * With means of gradients, and of weights, that lack a third of their parts,
 * the spread of the weights stays bounded, and grows without SPARTA. Members
 * die and have numbers that are not finite.
 *
 *     test_sparta --csv FILE     the spread, step by step, for sparta_plot.py
 */
#include "../proc/cluster.h"
#include "pccl_train.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMBERS = 4,
    PARTS = 8,
    MATRIX = 37 * 29,
    COUNT = MATRIX + 11,
    EQUAL = 1,
    SPREAD = 2,
    FINAL = 3,
};

static const pcclTrainTensor_t tensors[] = {{"matrix", 37, 29},
                                            {"bias", 1, 11}};

static float number(uint64_t seed)
{
    seed = (seed ^ (seed >> 31)) * 0x9e3779b97f4a7c15u;
    seed = (seed ^ (seed >> 29)) * 0xbf58476d1ce4e5b9u;
    return (float)(seed >> 40) / (float)(1 << 23) - 1;
}

static float initial(int rank, int i)
{
    return number(((uint64_t)rank << 32) + (uint64_t)i + 1);
}

/* Of partial all-reduces a third of the parts is missing, the same on all. */
static bool loses_parts;

struct member {
    struct seat *seat;
    pcclComm_t *comm;
    pcclSparta_t *sparta;
    float x[COUNT], stat;
    float *weights[2];
};

static void start(struct member *m, struct seat *seat, uint32_t every,
                  uint32_t deadline_ms)
{
    const pcclSpartaOptions_t options = {.size = sizeof options,
                                         .parts = PARTS,
                                         .every = every,
                                         .seed = 5,
                                         .tag = 9,
                                         .stat_count = 1,
                                         .deadline_ms = deadline_ms};
    m->seat = seat;
    m->weights[0] = m->x;
    m->weights[1] = m->x + MATRIX;
    SEAT_EQUAL(seat, pcclSpartaCreate(tensors, 2, &options, &m->sparta),
               pcclSuccess);
    m->comm = seat_join(seat);
    seat_gather(seat, m->comm, MEMBERS);
}

static void finish(struct member *m)
{
    SEAT_EQUAL(m->seat, pcclDestroyCommunicator(m->comm), pcclSuccess);
    SEAT_EQUAL(m->seat, pcclSpartaDestroy(m->sparta), pcclSuccess);
}

/* Losses and time limits are taken up; rounds of which nothing came are over.
 * Returns the members of the round. */
static uint32_t step(struct member *m)
{
    pcclReduceInfo_t info;
    pcclResult_t rc;
    do rc = pcclSpartaStep(m->sparta, m->weights, &m->stat, m->comm, &info);
    while (rc == pcclRankConnectionLost || rc == pcclTimedOut);
    if (rc != pcclOperationFailed || !loses_parts)
        SEAT_EQUAL(m->seat, rc, pcclSuccess);
    return info.local_world_size;
}

static int64_t digest(const float *x)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < COUNT * sizeof *x; i++)
        hash = (hash ^ ((const unsigned char *)x)[i]) * 0x100000001b3u;
    return (int64_t)(hash >> 1);
}

/* -------------------------------------------------------- without training */

/* Counts how often each element changed; those that did are the mean. */
static void look(struct member *m, const float *before, int *changes)
{
    int changed = 0;
    for (int i = 0; i < COUNT; i++) {
        if (m->x[i] == before[i]) continue;
        double mean = 0;
        for (int rank = 0; rank < MEMBERS; rank++)
            mean += (double)initial(rank, i) / MEMBERS;
        SEAT_CHECK(m->seat, fabs((double)m->x[i] - mean) < 1e-6);
        changes[i]++;
        changed++;
    }
    SEAT_CHECK(m->seat, changed >= COUNT / PARTS - 1);
    SEAT_CHECK(m->seat, changed <= COUNT / PARTS + 2);
}

static void body_equal(struct seat *seat)
{
    static struct member m;
    static float before[COUNT];
    static int changes[COUNT];
    start(&m, seat, 3, 0);
    for (int i = 0; i < COUNT; i++) m.x[i] = initial(seat->index, i);
    if (seat->index == 0)
        SEAT_EQUAL(seat, pcclSetTimeLimit(m.comm, 1), pcclSuccess);
    for (int s = 1; s <= 3 * PARTS; s++) {
        memcpy(before, m.x, sizeof before);
        m.stat = (float)seat->index;
        SEAT_EQUAL(seat, step(&m), s % 3 == 0 ? MEMBERS : 0);
        SEAT_CHECK(seat, m.stat == (s % 3 == 0 ? 1.5F : (float)seat->index));
        if (s % 3 == 0)
            look(&m, before, changes);
        else
            SEAT_EQUAL(seat, memcmp(before, m.x, sizeof before), 0);
    }
    for (int i = 0; i < COUNT; i++) SEAT_EQUAL(seat, changes[i], 1);
    seat_report(seat, EQUAL, digest(m.x));
    finish(&m);
}

static void test_all_equal_after_all_parts(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < MEMBERS; i++) cluster_add(&c, body_equal, NULL);
    const int64_t first = cluster_await(&c, 0, EQUAL);
    for (int i = 1; i < MEMBERS; i++)
        assert_int_equal(cluster_await(&c, i, EQUAL), first);
    for (int i = 0; i < MEMBERS; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

/* ------------------------------------------------------------------ trouble */

/* Member 1 is all NaN and is healed, member 3 dies. */
static void body_trouble(struct seat *seat)
{
    static struct member m;
    start(&m, seat, 1, 0);
    for (int i = 0; i < COUNT; i++)
        m.x[i] = seat->index == 1 ? NAN : initial(seat->index, i);
    for (int s = 0; s < 2 * PARTS; s++) {
        if (s == PARTS + 3 && seat->index == 3) raise(SIGKILL);
        (void)step(&m);
    }
    for (int i = 0; i < COUNT; i++) {
        double mean = (double)initial(0, i) + (double)initial(2, i) +
                      (double)initial(3, i);
        SEAT_CHECK(seat, fabs((double)m.x[i] - mean / 3) < 1e-6);
    }
    for (int i = 0; i < COUNT; i++) m.x[i] = INFINITY;
    SEAT_EQUAL(seat, pcclSpartaStep(m.sparta, m.weights, &m.stat, m.comm, NULL),
               pcclOperationFailed);
    seat_report(seat, EQUAL, digest(m.x));
    finish(&m);
}

static void test_trouble(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < MEMBERS; i++) cluster_add(&c, body_trouble, NULL);
    const int64_t first = cluster_await(&c, 0, EQUAL);
    for (int i = 1; i < MEMBERS - 1; i++)
        assert_int_equal(cluster_await(&c, i, EQUAL), first);
    for (int i = 0; i < MEMBERS - 1; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

static void test_usage(void **state)
{
    (void)state;
    pcclSparta_t *s = NULL;
    pcclSpartaOptions_t options = {.size = sizeof options, .every = 1};
    float x[COUNT] = {0};
    float *const weights[] = {x, x + MATRIX};
    char text[256];
    assert_int_equal(pcclSpartaCreate(tensors, 2, &options, &s),
                     pcclInvalidArgument);
    assert_int_equal(pcclTrainGetLastError(text, sizeof text), pcclSuccess);
    assert_string_equal(text, "pcclSpartaCreate: parts is 0");
    options.parts = 5000; /* more than elements: most rounds have none */
    options.every = 0;
    assert_int_equal(pcclSpartaCreate(tensors, 2, &options, &s),
                     pcclInvalidArgument);
    options.every = 1;
    options.stat_count = 1;
    assert_int_equal(pcclSpartaCreate(tensors, 2, &options, &s), pcclSuccess);
    assert_int_equal(pcclSpartaStep(s, weights, x, NULL, NULL),
                     pcclInvalidArgument);
    assert_int_equal(pcclSpartaStep(s, weights, NULL, (pcclComm_t *)x, NULL),
                     pcclInvalidArgument);
    assert_int_equal(pcclSpartaDestroy(s), pcclSuccess);
    assert_int_equal(pcclSpartaDestroy(NULL), pcclSuccess);
}

/* ------------------------------------------------------------------- spread */

enum { STEPS = 320, EVERY = 2, DEADLINE_MS = 20000 };

pcclResult_t pcclAwaitPartial(const pcclPartialOp_t *handle,
                              pcclPartialInfo_t *info_out)
{
    static pcclResult_t (*real)(const pcclPartialOp_t *, pcclPartialInfo_t *);
    static uint64_t rounds;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pcclAwaitPartial");
    pcclResult_t rc = real(handle, info_out);
    if (rc != pcclSuccess || !loses_parts) return rc;
    rounds++;
    for (uint64_t i = 0; i < info_out->part_count; i++) {
        if (number(rounds * 256 + i) > 1.0F / 3)
            info_out->parts[i].contributors = 0;
    }
    return rc;
}

/* A step of training: the mean update of the group; where that is missing, the
 * member's own. */
static void train(struct member *m, int s)
{
    static float own[COUNT], mean[COUNT];
    pcclPartialPart_t parts[256];
    pcclPartialInfo_t info = {
        .size = sizeof info, .parts = parts, .part_room = 256};
    const pcclPartialDescriptor_t round = {.size = sizeof round,
                                           .tag = 77,
                                           .count = COUNT,
                                           .datatype = pcclFloat,
                                           .op = pcclAvg,
                                           .weight = 1,
                                           .deadline_ms = DEADLINE_MS};
    uint64_t key = ((uint64_t)m->seat->index + 1) << 40;
    for (int i = 0; i < COUNT; i++)
        own[i] = 0.01F * number(key + ((uint64_t)s << 20) + (uint64_t)i);
    pcclPartialOp_t handle;
    SEAT_EQUAL(m->seat,
               pcclAllReducePartialAsync(own, mean, &round, m->comm, &handle),
               pcclSuccess);
    SEAT_EQUAL(m->seat, pcclAwaitPartial(&handle, &info), pcclSuccess);
    for (size_t p = 0; p < info.part_count; p++) {
        const float *from = parts[p].contributors > 0 ? mean : own;
        for (size_t i = 0; i < parts[p].count; i++)
            m->x[parts[p].begin + i] += from[parts[p].begin + i];
    }
}

/* Root of the mean variance of an element among the members. */
static double spread_of(struct member *m)
{
    static double sums[2 * COUNT];
    pcclReduceDescriptor_t sum = {.count = sizeof sums / sizeof *sums,
                                  .op = pcclAvg,
                                  .tag = 1,
                                  .src_descriptor.datatype = pcclDouble};
    for (int i = 0; i < COUNT; i++) {
        sums[i] = (double)m->x[i];
        sums[COUNT + i] = sums[i] * sums[i];
    }
    SEAT_EQUAL(m->seat, pcclAllReduce(sums, sums, &sum, m->comm, NULL),
               pcclSuccess);
    double variance = 0;
    for (int i = 0; i < COUNT; i++)
        variance += sums[COUNT + i] - sums[i] * sums[i];
    return sqrt(fmax(0, variance) / COUNT);
}

static void body_spread(struct seat *seat)
{
    static struct member m;
    const bool averages = seat->arg != NULL;
    start(&m, seat, EVERY, DEADLINE_MS);
    loses_parts = true;
    for (int s = 0; s < STEPS; s++) {
        train(&m, s);
        if (averages) (void)step(&m);
        double spread = spread_of(&m);
        if (seat->index == 0)
            seat_report(seat, SPREAD, (int64_t)(1e9 * spread));
    }
    seat_report(seat, FINAL, 0);
    finish(&m);
}

static void measure(double *spread, const void *averages)
{
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < MEMBERS; i++) cluster_add(&c, body_spread, averages);
    for (int s = 0; s < STEPS; s++)
        spread[s] = 1e-9 * (double)cluster_await(&c, 0, SPREAD);
    for (int i = 0; i < MEMBERS; i++) {
        (void)cluster_await(&c, i, FINAL);
        cluster_finish(&c, i);
    }
    cluster_stop(&c);
}

static double spread_with[STEPS], spread_without[STEPS];

static double largest(const double *x, int from, int to)
{
    double most = 0;
    for (int i = from; i < to; i++) most = fmax(most, x[i]);
    return most;
}

/* An element has its turn within 2 * EVERY * PARTS steps, and in two of three
 * its mean comes, so the spread is that of some turns. Without, it grows as the
 * root of the steps: doubles from a quarter of them to all. */
static void test_spread(void **state)
{
    (void)state;
    measure(spread_with, "averages");
    measure(spread_without, NULL);
    const double early = largest(spread_with, EVERY * PARTS, STEPS / 4);
    const double late = largest(spread_with, 3 * STEPS / 4, STEPS);
    print_message("with SPARTA %.4f, then %.4f; without %.4f, then %.4f\n",
                  early, late, spread_without[STEPS / 4 - 1],
                  spread_without[STEPS - 1]);
    assert_true(late < 1.25 * early);
    assert_true(late < spread_without[STEPS - 1] / 2.5);
    assert_true(spread_without[STEPS - 1] >
                1.8 * spread_without[STEPS / 4 - 1]);
}

static int write_csv(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) return 1;
    fprintf(file, "step,with,without\n");
    for (int s = 0; s < STEPS; s++)
        fprintf(file, "%d,%.6g,%.6g\n", s + 1, spread_with[s],
                spread_without[s]);
    return fclose(file) != 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_equal_after_all_parts),
        cmocka_unit_test(test_trouble),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_spread),
    };
    int failed = cmocka_run_group_tests_name("train/sparta", tests, NULL, NULL);
    if (!failed && argc == 3 && strcmp(argv[1], "--csv") == 0)
        failed = write_csv(argv[2]);
    return failed;
}
