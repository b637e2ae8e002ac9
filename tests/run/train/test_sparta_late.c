/* test_sparta_late.c - sparse averages with a deadline. One member calls only
 * when the others have finished a round, and takes their means; one dies within
 * a round, and parts are missing. What has come is the same on all, and after K
 * whole rounds all are equal. */
#include "../proc/cluster.h"
#include "pccl_train.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <string.h>

enum {
    MEMBERS = 4,
    LATE = 3,   /* the member that is late */
    VICTIM = 2, /* dies in round FATAL */
    FATAL = 1,
    PARTS = 4,
    COUNT = 5000,
    DEADLINE_MS = 400,
    ROUND = 1, /* reports */
    STATE = 2,
};

static const pcclTrainTensor_t tensor = {"weights", 50, 100};

static bool dies_now;

pcclResult_t
pcclAllReducePartialAsync(const void *sendbuf, void *recvbuf,
                          const pcclPartialDescriptor_t *descriptor,
                          pcclComm_t *comm, pcclPartialOp_t *handle_out)
{
    static pcclResult_t (*real)(const void *, void *,
                                const pcclPartialDescriptor_t *, pcclComm_t *,
                                pcclPartialOp_t *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pcclAllReducePartialAsync");
    pcclResult_t rc = real(sendbuf, recvbuf, descriptor, comm, handle_out);
    if (dies_now) raise(SIGKILL);
    return rc;
}

/* In the round of this number the first part is missing, on all members. */
enum { POOR_ROUND = 2 };

pcclResult_t pcclAwaitPartial(const pcclPartialOp_t *handle,
                              pcclPartialInfo_t *info_out)
{
    static pcclResult_t (*real)(const pcclPartialOp_t *, pcclPartialInfo_t *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pcclAwaitPartial");
    pcclResult_t rc = real(handle, info_out);
    static int rounds;
    if (rc == pcclSuccess && ++rounds == POOR_ROUND)
        info_out->parts[0].contributors = 0;
    return rc;
}

static int64_t digest(const float *x)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < COUNT * sizeof *x; i++)
        hash = (hash ^ ((const unsigned char *)x)[i]) * 0x100000001b3u;
    return (int64_t)(hash >> 1);
}

/* What is missing of a round. No other element has changed than came. */
static int64_t outcome(const pcclSparta_t *sparta, const struct seat *seat,
                       const float *before, const float *after)
{
    size_t changed = 0;
    pcclSpartaInfo_t info = {.size = sizeof info};
    SEAT_EQUAL(seat, pcclSpartaGetInfo(sparta, &info), pcclSuccess);
    SEAT_CHECK(seat, info.averaged <= info.chosen);
    SEAT_CHECK(seat, info.chosen >= COUNT / PARTS - 1);
    for (int i = 0; i < COUNT; i++) changed += before[i] != after[i];
    SEAT_CHECK(seat, changed <= info.averaged);
    return (int64_t)(info.chosen - info.averaged);
}

/* Rounds in a row of those that have each element once, all of them whole. */
static int whole_after(int whole, int round, int64_t missing)
{
    if (missing > 0) return 0;
    return whole > 0 || round % PARTS == 0 ? whole + 1 : 0;
}

/* The program of all: until PARTS of them were whole. */
static void body(struct seat *seat)
{
    static float x[COUNT], before[COUNT];
    const pcclSpartaOptions_t options = {.size = sizeof options,
                                         .parts = PARTS,
                                         .every = 1,
                                         .deadline_ms = DEADLINE_MS};
    float *const weights[] = {x};
    pcclSparta_t *sparta;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)((seat->index * 7919 + i * 31) % 1009) / 1009;
    SEAT_EQUAL(seat, pcclSpartaCreate(&tensor, 1, &options, &sparta),
               pcclSuccess);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, MEMBERS);
    int whole = 0;
    for (int round = 0; whole < PARTS; round++) {
        (void)seat_hear(seat); /* it is this member's turn */
        dies_now = seat->index == VICTIM && round == FATAL;
        memcpy(before, x, sizeof x);
        pcclResult_t rc = pcclSpartaStep(sparta, weights, NULL, comm, NULL);
        if (rc != pcclOperationFailed) SEAT_EQUAL(seat, rc, pcclSuccess);
        int64_t missing = outcome(sparta, seat, before, x);
        if (rc == pcclOperationFailed) missing = COUNT;
        whole = whole_after(whole, round, missing);
        seat_report(seat, ROUND, missing);
    }
    seat_report(seat, STATE, digest(x));
    (void)seat_hear(seat); /* the late one has its parts from the others */
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclSpartaDestroy(sparta), pcclSuccess);
}

static bool lives(int member, int round)
{
    return member != VICTIM || round <= FATAL;
}

/* The reports of a round, the late member's last: all must be equal. Returns
 * what is missing. */
static int64_t run_round(struct cluster *c, int round)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (i != LATE && lives(i, round)) cluster_order(c, i, round);
    }
    const int64_t missing = cluster_await(c, 0, ROUND);
    for (int i = 1; i < LATE; i++) {
        if (lives(i, round) && (i != VICTIM || round < FATAL))
            assert_int_equal(cluster_await(c, i, ROUND), missing);
    }
    cluster_order(c, LATE, round);
    assert_int_equal(cluster_await(c, LATE, ROUND), missing);
    return missing;
}

static void test_late(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < MEMBERS; i++) cluster_add(&c, body, NULL);
    bool was_poor = false;
    for (int round = 0, whole = 0; whole < PARTS; round++) {
        int64_t missing = run_round(&c, round);
        was_poor |= missing > 0;
        if (missing > 0)
            print_message("round %d: %lld elements are missing\n", round,
                          (long long)missing);
        whole = whole_after(whole, round, missing);
    }
    assert_true(was_poor);
    const int64_t first = cluster_await(&c, 0, STATE);
    for (int i = 1; i < MEMBERS; i++) {
        if (i == VICTIM) continue;
        assert_int_equal(cluster_await(&c, i, STATE), first);
    }
    for (int i = 0; i < MEMBERS; i++) {
        if (i == VICTIM) continue;
        cluster_order(&c, i, 0);
        cluster_finish(&c, i);
    }
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late),
    };
    return cmocka_run_group_tests_name("train/sparta_late", tests, NULL, NULL);
}
