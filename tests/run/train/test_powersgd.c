/* test_powersgd.c - PowerSGD among processes. In every step P Q'^T + mean(E')
 * is mean(E + G). Members are killed before the first sum and between the two,
 * one has numbers that are not finite, one joins; the others' calls time out,
 * round in another direction, or weigh differently. All end with the same bits.
 */
#include "../proc/cluster.h"
#include "pccl_train.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOUNDERS = 4,
    RANK = 4,
    TENSORS = 5,
    COUNT = 96 * 64 + 40 * 120 + 33 + 4 * 5 + 50 * 60,
    SPOILED = 3, /* rank 1 has a NaN */
    FLAT = 4,    /* a matrix is 0, another one has rank 1 */
    IDLE = 5,    /* rank 1 has the weight 0 */
    BEFORE = 6,  /* rank 2 dies before the first sum of this step */
    BETWEEN = 8, /* rank 3 dies between the sums */
    LOST = 10,   /* the test starts a newcomer */
    STEPS = 30,  /* in which it joins and goes along for some */
    REACHED = 1,
    WORST = 2,
    STATE = 3,
};

static const pcclTrainTensor_t tensors[TENSORS] = {{"in", 96, 64},
                                                   {"out", 40, 120},
                                                   {"bias", 1, 33},
                                                   {"tiny", 4, 5},
                                                   {"low", 50, 60}};

struct member {
    struct seat *seat;
    pcclComm_t *comm;
    pcclPowerSgd_t *sgd;
    pcclTensorInfo_t infos[8];
    pcclSharedState_t state;
    uint64_t step; /* shared, too */
    float data[COUNT];
    float *gradients[TENSORS];
    double worst;
};

/* ------------------------------------------------- death at the n-th launch */

static int launches_left = -1;

pcclResult_t pcclCollectiveAsync(const pcclCollective_t *op, pcclComm_t *comm,
                                 pcclAsyncReduceOp_t *handle_out)
{
    static pcclResult_t (*real)(const pcclCollective_t *, pcclComm_t *,
                                pcclAsyncReduceOp_t *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pcclCollectiveAsync");
    if (launches_left >= 0 && launches_left-- == 0) raise(SIGKILL);
    return real(op, comm, handle_out);
}

/* ------------------------------------------------------------------ numbers */

static size_t count_of(int tensor)
{
    return tensors[tensor].rows * tensors[tensor].columns;
}

static float number(uint64_t seed)
{
    seed = (seed ^ (seed >> 31)) * 0x9e3779b97f4a7c15u;
    seed = (seed ^ (seed >> 29)) * 0xbf58476d1ce4e5b9u;
    return (float)(seed >> 40) / (float)(1 << 23) - 1;
}

static void fill(struct member *m)
{
    uint64_t key = (m->step * 64 + (uint64_t)m->seat->index) << 20;
    for (size_t i = 0; i < COUNT; i++) m->data[i] = number(key + i);
    if (m->step != FLAT) return;
    memset(m->gradients[0], 0, count_of(0) * sizeof(float));
    for (size_t i = 0; i < count_of(1); i++)
        m->gradients[1][i] = (float)(i / 120) * (float)(i % 120) / 1000;
}

static float weight_of(const struct member *m)
{
    if (m->step == IDLE && m->seat->index == 1) return 0;
    return (float)(1 + m->seat->index);
}

/* E of all tensors, 0 where there is none. */
static void errors_of(struct member *m, float *to)
{
    for (size_t i = 0; i < TENSORS; to += count_of((int)i), i++) {
        float *error;
        SEAT_EQUAL(m->seat, pcclPowerSgdGetError(m->sgd, i, &error),
                   pcclSuccess);
        if (error)
            memcpy(to, error, count_of((int)i) * sizeof *to);
        else
            memset(to, 0, count_of((int)i) * sizeof *to);
    }
}

static void sum_over_members(struct member *m, double *x)
{
    pcclReduceDescriptor_t sum = {.count = COUNT + 1,
                                  .op = pcclSum,
                                  .tag = 900,
                                  .src_descriptor.datatype = pcclDouble};
    pcclResult_t rc;
    do rc = pcclAllReduce(x, x, &sum, m->comm, NULL);
    while (rc == pcclRankConnectionLost || rc == pcclTimedOut);
    SEAT_EQUAL(m->seat, rc, pcclSuccess);
}

/* Weighted sums of E' and of E + G, as `before` has it; in `x` a last element
 * for the weights. */
static void check_identity(struct member *m, const float *before)
{
    static double left[COUNT + 1], right[COUNT + 1];
    static float after[COUNT];
    const double weight = (double)weight_of(m);
    errors_of(m, after);
    for (size_t i = 0; i < COUNT; i++) {
        left[i] = weight * (double)after[i];
        right[i] = weight * (double)before[i];
    }
    left[COUNT] = right[COUNT] = weight;
    SEAT_EQUAL(m->seat, pcclSetTimeLimit(m->comm, 0), pcclSuccess);
    sum_over_members(m, left);
    sum_over_members(m, right);
    for (size_t i = 0; i < COUNT; i++) {
        double off = fabs((double)m->data[i] + left[i] / left[COUNT] -
                          right[i] / right[COUNT]);
        SEAT_CHECK(m->seat, off < 1e-5); /* false for NaN */
        if (off > m->worst) m->worst = off;
    }
}

/* --------------------------------------------------------------------- step */

struct snapshot {
    float errors[COUNT], gradients[COUNT];
    unsigned char shared[8 * (64 + 120 + 60) * RANK];
};

static void look(struct member *m, struct snapshot *s)
{
    unsigned char *to = s->shared;
    memset(s, 0, sizeof *s);
    errors_of(m, s->errors);
    memcpy(s->gradients, m->data, sizeof m->data);
    for (size_t i = 0; i < m->state.count; i++) {
        const pcclTensorInfo_t *t = &m->infos[i];
        size_t size = t->count * (t->datatype == pcclUint64 ? 8 : 4);
        memcpy(to, t->data, size);
        to += size;
    }
}

static void check_unchanged(struct member *m, const struct snapshot *before)
{
    static struct snapshot now;
    look(m, &now);
    SEAT_EQUAL(m->seat, memcmp(&now, before, sizeof now), 0);
}

/* Until the members agree on success; nothing changes before. */
static pcclResult_t reduce(struct member *m, const struct snapshot *before)
{
    pcclResult_t rc;
    pcclReduceInfo_t info;
    for (;;) {
        rc = pcclPowerSgdReduce(m->sgd, m->gradients, weight_of(m), m->comm,
                                &info);
        if (rc == pcclSuccess) {
            SEAT_EQUAL(m->seat, info.local_world_size, world_size(m->comm));
            return rc;
        }
        check_unchanged(m, before);
        if (rc != pcclTimedOut && rc != pcclRankConnectionLost) return rc;
    }
}

static void check_spoiled(struct member *m, pcclResult_t rc)
{
    char text[256];
    SEAT_EQUAL(m->seat, rc, pcclOperationFailed);
    SEAT_EQUAL(m->seat, pcclTrainGetLastError(text, sizeof text), pcclSuccess);
    const char *want =
        m->seat->index == 1
            ? "tensor 'bias' is not finite, with its error"
            : "1 of 4 members have gradients that are not finite";
    SEAT_EQUAL(m->seat, strcmp(text, want), 0);
    m->data[96 * 64 + 40 * 120 + 5] = 0;
}

static void step(struct member *m)
{
    static struct snapshot before;
    static float sum[COUNT];
    const int index = m->seat->index;
    fill(m);
    if (index == 0)
        SEAT_EQUAL(m->seat, pcclSetTimeLimit(m->comm, 1), pcclSuccess);
    if (m->step == SPOILED) {
        if (index == 1) m->data[96 * 64 + 40 * 120 + 5] = NAN;
        look(m, &before);
        check_spoiled(m, reduce(m, &before));
    }
    if (m->step == BEFORE && index == 2) launches_left = 0;
    if (m->step == BETWEEN && index == 3) launches_left = 1;
    look(m, &before);
    for (size_t i = 0; i < COUNT; i++)
        sum[i] = before.errors[i] + before.gradients[i];
    SEAT_EQUAL(m->seat, reduce(m, &before), pcclSuccess);
    check_identity(m, sum);
    m->step++;
}

/* --------------------------------------------------------------- the member */

static void create(struct member *m, struct seat *seat)
{
    const pcclPowerSgdOptions_t options = {
        .size = sizeof options, .rank = RANK, .seed = 11, .tag = 5};
    m->seat = seat;
    float *at = m->data;
    for (int i = 0; i < TENSORS; at += count_of(i), i++) m->gradients[i] = at;
    SEAT_EQUAL(seat, pcclPowerSgdCreate(tensors, TENSORS, &options, &m->sgd),
               pcclSuccess);
    pcclPowerSgdInfo_t info = {.size = sizeof info};
    SEAT_EQUAL(seat, pcclPowerSgdGetInfo(m->sgd, &info), pcclSuccess);
    SEAT_EQUAL(seat, info.compressed, 3);
    SEAT_EQUAL(seat, info.elements, COUNT);
    m->infos[0] = (pcclTensorInfo_t){
        .name = "step", .data = &m->step, .count = 1, .datatype = pcclUint64};
    SEAT_EQUAL(seat,
               pcclPowerSgdListState(m->sgd, m->infos + 1, 7, &m->state.count),
               pcclSuccess);
    SEAT_EQUAL(seat, m->state.count++, 4); /* steps, and Q of three */
    m->state.infos = m->infos;
}

static void share(struct member *m)
{
    SEAT_EQUAL(m->seat, pcclSetTimeLimit(m->comm, 0), pcclSuccess);
    SEAT_EQUAL(m->seat,
               pcclSynchronizeSharedState(
                   m->comm, &m->state,
                   PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL),
               pcclSuccess);
    m->state.revision++;
}

static int64_t digest(const struct member *m)
{
    uint64_t hash = m->step;
    const unsigned char *bytes = (const unsigned char *)m->data;
    for (size_t i = 0; i < sizeof m->data; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return (int64_t)(hash >> 1);
}

static void body(struct seat *seat)
{
    static struct member m;
    const bool newcomer = seat->arg != NULL;
    if (seat->index == 1) fesetround(FE_UPWARD);
    create(&m, seat);
    m.comm = seat_join(seat);
    if (!newcomer) seat_gather(seat, m.comm, FOUNDERS);
    share(&m);
    while (m.step < STEPS) {
        if (m.step == LOST && seat->index == 0) seat_report(seat, REACHED, 1);
        if (m.step == LOST + 2 && !newcomer) {
            SEAT_EQUAL(seat, pcclSetTimeLimit(m.comm, 0), pcclSuccess);
            seat_gather(seat, m.comm, 3);
            share(&m);
        }
        step(&m);
    }
    seat_report(seat, WORST, (int64_t)(m.worst * 1e12));
    seat_report(seat, STATE, digest(&m));
    SEAT_EQUAL(seat, pcclDestroyCommunicator(m.comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclPowerSgdDestroy(m.sgd), pcclSuccess);
}

static void test_identity(void **state)
{
    (void)state;
    static const char newcomer[] = "newcomer";
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < FOUNDERS; i++) cluster_add(&c, body, NULL);
    (void)cluster_await(&c, 0, REACHED);
    const int last = cluster_add(&c, body, newcomer);
    print_message("worst deviation %.2g\n",
                  (double)cluster_await(&c, 0, WORST) * 1e-12);
    const int64_t first = cluster_await(&c, 0, STATE);
    for (int i = 1; i <= last; i += last - 1) {
        (void)cluster_await(&c, i, WORST);
        assert_int_equal(cluster_await(&c, i, STATE), first);
        cluster_finish(&c, i);
    }
    cluster_finish(&c, 0);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity),
    };
    return cmocka_run_group_tests_name("train/powersgd", tests, NULL, NULL);
}
