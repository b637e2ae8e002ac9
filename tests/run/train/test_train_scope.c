/* test_train_scope.c - sums of PowerSGD and SPARTA among some of the members:
 * those of one stage. Members 0 and 2 are one, 1 and 3 the other; each pair has
 * its own mean, the last of a pair dies, and the other one goes on alone. */
#include "../proc/cluster.h"
#include "pccl_train.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>

enum { MEMBERS = 4, ROWS = 16, COLUMNS = 24, COUNT = ROWS * COLUMNS };
enum { DONE = 1, LOST = 2 };

static const pcclTrainTensor_t tensor = {"w", ROWS, COLUMNS};

struct member {
    struct seat *seat;
    pcclComm_t *comm;
    uint64_t stage[2]; /* ids */
    uint64_t own;
    size_t count;
    pcclPowerSgd_t *sgd;
    pcclSparta_t *sparta;
};

static void start(struct member *m, struct seat *seat)
{
    pcclMember_t members[MEMBERS];
    const pcclPowerSgdOptions_t power = {
        .size = sizeof power, .rank = 2, .seed = 5, .tag = 10};
    const pcclSpartaOptions_t sparta = {
        .size = sizeof sparta, .parts = 1, .every = 1, .seed = 6, .tag = 20};
    m->seat = seat;
    m->comm = seat_join(seat);
    seat_gather(seat, m->comm, MEMBERS);
    SEAT_EQUAL(seat, pcclGetView(m->comm, NULL, NULL, NULL, members, MEMBERS),
               pcclSuccess);
    for (int i = 0; i < MEMBERS; i++) {
        if (members[i].hint == seat->index) m->own = members[i].id;
        if (members[i].hint % 2 == seat->index % 2)
            m->stage[m->count++] = members[i].id;
    }
    SEAT_EQUAL(seat, m->count, 2);
    SEAT_EQUAL(seat, pcclPowerSgdCreate(&tensor, 1, &power, &m->sgd),
               pcclSuccess);
    SEAT_EQUAL(seat, pcclSpartaCreate(&tensor, 1, &sparta, &m->sparta),
               pcclSuccess);
}

static void set_scope(const struct member *m, const uint64_t *ids, size_t count)
{
    SEAT_EQUAL(m->seat, pcclPowerSgdSetScope(m->sgd, ids, count), pcclSuccess);
    SEAT_EQUAL(m->seat, pcclSpartaSetScope(m->sparta, ids, count), pcclSuccess);
}

/* A matrix of rank 1, times a factor: PowerSGD loses nothing of it. */
static void fill(float *x, float factor)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = factor * (float)(1 + i / COLUMNS) * (float)(1 + i % COLUMNS);
}

static void check(const struct member *m, const float *x, float factor)
{
    float wanted[COUNT];
    fill(wanted, factor);
    for (int i = 0; i < COUNT; i++)
        SEAT_CHECK(m->seat, fabsf(x[i] - wanted[i]) <= 1e-3f * wanted[i]);
}

static pcclResult_t reduce(const struct member *m, float *x)
{
    float *at[] = {x};
    return pcclPowerSgdReduce(m->sgd, at, 1, m->comm, NULL);
}

static pcclResult_t step(const struct member *m, float *x)
{
    float *at[] = {x};
    return pcclSpartaStep(m->sparta, at, NULL, m->comm, NULL);
}

static void body(struct seat *seat)
{
    static float x[COUNT];
    struct member m = {.count = 0};
    const int stage = seat->index % 2;
    const float own = (float)(1 + seat->index);
    const float mean = stage == 0 ? 2 : 3; /* of 1 and 3, of 2 and 4 */
    start(&m, seat);
    SEAT_EQUAL(seat, pcclPowerSgdSetScope(m.sgd, NULL, 2), pcclInvalidArgument);
    SEAT_EQUAL(seat, pcclSpartaSetScope(m.sparta, m.stage, 0),
               pcclInvalidArgument);
    SEAT_EQUAL(seat, pcclPowerSgdSetScope(NULL, NULL, 0), pcclInvalidArgument);
    set_scope(&m, m.stage, 2);
    fill(x, own);
    SEAT_EQUAL(seat, reduce(&m, x), pcclSuccess);
    check(&m, x, mean);
    fill(x, own);
    SEAT_EQUAL(seat, step(&m, x), pcclSuccess);
    check(&m, x, mean);
    seat_report(seat, DONE, 0);
    (void)seat_hear(seat); /* 3 is killed here */
    fill(x, own);
    pcclResult_t rc = reduce(&m, x);
    if (stage == 0) {
        SEAT_EQUAL(seat, rc, pcclSuccess);
        check(&m, x, mean);
    } else {
        SEAT_EQUAL(seat, rc, pcclRankConnectionLost);
        check(&m, x, own); /* as it was */
        SEAT_EQUAL(seat, step(&m, x), pcclRankConnectionLost);
        set_scope(&m, &m.own, 1);
        SEAT_EQUAL(seat, reduce(&m, x), pcclSuccess);
        check(&m, x, own);
        SEAT_EQUAL(seat, step(&m, x), pcclSuccess);
    }
    seat_report(seat, LOST, 0);
    (void)pcclPowerSgdDestroy(m.sgd);
    (void)pcclSpartaDestroy(m.sparta);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(m.comm), pcclSuccess);
}

static void test_scope(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < MEMBERS; i++) cluster_add(&c, body, NULL);
    for (int i = 0; i < MEMBERS; i++) (void)cluster_await(&c, i, DONE);
    cluster_signal(&c, 3, SIGKILL);
    for (int i = 0; i < MEMBERS - 1; i++) cluster_order(&c, i, 1);
    for (int i = 0; i < MEMBERS - 1; i++) {
        (void)cluster_await(&c, i, LOST);
        cluster_finish(&c, i);
    }
    cluster_stop(&c);
}

/* A round with a deadline is of all members. */
static void test_deadline(void **state)
{
    (void)state;
    const pcclSpartaOptions_t options = {
        .size = sizeof options, .parts = 1, .every = 1, .deadline_ms = 100};
    const uint64_t some[] = {1};
    pcclSparta_t *sparta = NULL;
    assert_int_equal(pcclSpartaCreate(&tensor, 1, &options, &sparta),
                     pcclSuccess);
    assert_int_equal(pcclSpartaSetScope(sparta, some, 1), pcclInvalidUsage);
    assert_int_equal(pcclSpartaSetScope(NULL, NULL, 0), pcclInvalidArgument);
    assert_int_equal(pcclSpartaDestroy(sparta), pcclSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scope),
        cmocka_unit_test(test_deadline),
    };
    return cmocka_run_group_tests_name("train/scope", tests, NULL, NULL);
}
