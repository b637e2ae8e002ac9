/* test_partial.c - partial all-reduces between real processes: rounds that are
 * whole, the story of a member that dies in the middle and one that comes late,
 * members that are slow, too late, absent, or disagree. Every part is computed
 * anew from the set of its contributors. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READY = 1, MAP, RESULT };
enum { GO = 1 };
enum { PARTS = 16, RANKS = 4, NOTHING = -7 };
#define LONG_MS 120000u

struct round {
    pcclPartialPart_t parts[PARTS];
    uint64_t members[RANKS];
    uint8_t sets[PARTS];
    pcclPartialInfo_t info;
    float *send, *recv;
    size_t count;
};

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

static float value_of(int seat, size_t i)
{
    return (float)(1000 * (seat + 1)) + (float)(i % 97);
}

static double weight_of(int seat)
{
    return 1 + seat;
}

static pcclMember_t view[RANKS]; /* when all had come */
static int own_seat;

static pcclComm_t *join_all(const struct seat *seat, int size)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, size);
    SEAT_EQUAL(seat, pcclGetView(comm, NULL, NULL, NULL, view, RANKS),
               pcclSuccess);
    own_seat = seat->index;
    return comm;
}

/* The seat of member m of a round: its rank hint. */
static int seat_of(const struct round *r, int m)
{
    for (int i = 0; i < RANKS; i++) {
        if (view[i].id == r->members[m]) return view[i].hint;
    }
    return -1;
}

static bool contributes(const struct round *r, size_t part, int m)
{
    return r->sets[part] >> m & 1;
}

static void round_open(struct round *r, const struct seat *seat, size_t count,
                       bool in_place)
{
    r->count = count;
    r->recv = malloc((count + 1) * sizeof *r->recv);
    r->send = in_place ? r->recv : malloc((count + 1) * sizeof *r->send);
    SEAT_CHECK(seat, r->recv && r->send);
    for (size_t i = 0; i < count; i++) r->recv[i] = NOTHING;
    for (size_t i = 0; i < count; i++) r->send[i] = value_of(own_seat, i);
    r->info = (pcclPartialInfo_t){.size = sizeof r->info,
                                  .parts = r->parts,
                                  .part_room = PARTS,
                                  .members = r->members,
                                  .member_room = RANKS,
                                  .sets = r->sets,
                                  .set_room = PARTS};
}

static void round_close(struct round *r)
{
    if (r->send != r->recv) free(r->send);
    free(r->recv);
}

static pcclPartialDescriptor_t descriptor(size_t count, uint32_t deadline,
                                          uint32_t gather)
{
    return (pcclPartialDescriptor_t){.size = sizeof(pcclPartialDescriptor_t),
                                     .tag = 7,
                                     .count = count,
                                     .datatype = pcclFloat,
                                     .op = pcclAvg,
                                     .weight = weight_of(own_seat),
                                     .deadline_ms = deadline,
                                     .gather_ms = gather};
}

/* Sums are in the order of the members, and exact here. */
static void check_part(const struct seat *seat, const struct round *r, size_t p,
                       const float *before)
{
    const pcclPartialPart_t *part = &r->parts[p];
    double weight = 0;
    uint32_t contributors = 0;
    for (int m = 0; m < (int)r->info.member_count; m++) {
        if (!contributes(r, p, m)) continue;
        weight += weight_of(seat_of(r, m));
        contributors++;
    }
    SEAT_EQUAL(seat, part->contributors, contributors);
    SEAT_CHECK(seat, part->weight == weight);
    for (size_t i = part->begin; i < part->begin + part->count; i++) {
        double sum = 0;
        for (int m = 0; m < (int)r->info.member_count; m++) {
            int of = seat_of(r, m);
            if (contributes(r, p, m)) sum += weight_of(of) * value_of(of, i);
        }
        float want = contributors > 0 ? (float)(sum / weight) : before[i];
        SEAT_CHECK(seat, r->recv[i] == want);
    }
}

static void round_check(const struct seat *seat, const struct round *r)
{
    float *before = malloc((r->count + 1) * sizeof *before);
    size_t end = 0;
    bool some = false;
    SEAT_CHECK(seat, before != NULL);
    for (size_t i = 0; i < r->count; i++)
        before[i] = r->send == r->recv ? value_of(own_seat, i) : NOTHING;
    SEAT_CHECK(seat, r->info.part_count <= PARTS && r->info.set_size == 1);
    for (size_t p = 0; p < r->info.part_count; p++) {
        SEAT_EQUAL(seat, r->parts[p].begin, end);
        end += r->parts[p].count;
        check_part(seat, r, p, before);
        for (int m = 0; m < (int)r->info.member_count; m++)
            some |= contributes(r, p, m) && seat_of(r, m) == seat->index;
    }
    SEAT_EQUAL(seat, end, r->count);
    SEAT_EQUAL(seat, r->info.contributed, some);
    free(before);
}

/* Map and bits of a round as a number; without `contributed`. */
static int64_t round_digest(const struct round *r)
{
    uint64_t h = r->info.round;
    for (size_t p = 0; p < r->info.part_count; p++) {
        const pcclPartialPart_t *part = &r->parts[p];
        h = (h ^ r->sets[p] ^ part->begin << 8) * 0x9e3779b97f4a7c15u;
        for (size_t i = 0; part->contributors > 0 && i < part->count; i++) {
            uint32_t bits;
            memcpy(&bits, &r->recv[part->begin + i], sizeof bits);
            h = (h ^ bits) * 0x100000001b3u;
        }
    }
    return (int64_t)(h & INT64_MAX);
}

static pcclResult_t run(const struct seat *seat, pcclComm_t *comm,
                        struct round *r, const pcclPartialDescriptor_t *d)
{
    pcclResult_t rc = pcclAllReducePartial(r->send, r->recv, d, comm, &r->info);
    if (rc == pcclSuccess) round_check(seat, r);
    return rc;
}

/* ------------------------------------------------------------ whole rounds */

enum { WHOLE = 5 }; /* rounds */

static void whole_body(struct seat *seat)
{
    pcclComm_t *comm = join_all(seat, 3);
    /* Of the first one a part has more pieces than are asked for at a time. */
    static const size_t counts[WHOLE] = {8000009, 1000003, 2, 0, 50};
    for (size_t k = 0; k < WHOLE; k++) {
        struct round r;
        round_open(&r, seat, counts[k], k % 2 == 0);
        pcclPartialDescriptor_t d = descriptor(counts[k], LONG_MS, LONG_MS);
        SEAT_EQUAL(seat, run(seat, comm, &r, &d), pcclSuccess);
        SEAT_EQUAL(seat, r.info.member_count, 3);
        SEAT_EQUAL(seat, r.info.elements, counts[k]);
        SEAT_EQUAL(seat, r.info.contributed, counts[k] > 0);
        for (size_t p = 0; p < r.info.part_count; p++)
            SEAT_EQUAL(seat, r.parts[p].contributors, 3);
        seat_report(seat, MAP, round_digest(&r));
        round_close(&r);
    }
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

/* Rounds do not wait for their deadlines, which are beyond the test's limit. */
static void test_whole(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 3; i++) (void)cluster_add(c, whole_body, NULL);
    for (int k = 0; k < WHOLE; k++) {
        int64_t first = cluster_await(c, 0, MAP);
        for (int i = 1; i < 3; i++)
            assert_int_equal(cluster_await(c, i, MAP), first);
    }
    for (int i = 0; i < 3; i++) cluster_finish(c, i);
}

/* ---------------------------------------------------------------- the story */

enum { A, B, C, D };

/* A, B and C average. B dies in the middle, D comes late. */
static void story_body(struct seat *seat)
{
    pcclComm_t *comm = join_all(seat, 4);
    struct round r;
    round_open(&r, seat, 400000, seat->index == A);
    pcclPartialDescriptor_t d = descriptor(r.count, 20000, 1500);
    seat_report(seat, READY, 0);
    SEAT_EQUAL(seat, seat_hear(seat), GO);
    if (seat->index == B) {
        pcclPartialOp_t handle;
        (void)pcclAllReducePartialAsync(r.send, r.recv, &d, comm, &handle);
        (void)kill(getpid(), SIGKILL);
    }
    SEAT_EQUAL(seat, run(seat, comm, &r, &d), pcclSuccess);
    SEAT_CHECK(seat, seat->index != D || !r.info.contributed);
    seat_report(seat, MAP, round_digest(&r));
    seat_report(seat, RESULT, (int64_t)r.info.elements);
    SEAT_EQUAL(seat, seat_hear(seat), GO);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    round_close(&r);
}

static void test_story(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 4; i++) (void)cluster_add(c, story_body, NULL);
    for (int i = 0; i < 4; i++) (void)cluster_await(c, i, READY);
    cluster_order(c, A, GO);
    cluster_order(c, B, GO);
    cluster_order(c, C, GO);
    int64_t map = cluster_await(c, A, MAP);
    int64_t elements = cluster_await(c, A, RESULT);
    assert_true(elements > 0);
    assert_int_equal(cluster_await(c, C, MAP), map);
    assert_int_equal(cluster_await(c, C, RESULT), elements);
    cluster_order(c, D, GO); /* the others have returned */
    assert_int_equal(cluster_await(c, D, MAP), map);
    assert_int_equal(cluster_await(c, D, RESULT), elements);
    for (int i = 0; i < 4; i++)
        if (i != B) cluster_order(c, i, GO);
    for (int i = 0; i < 4; i++)
        if (i != B) cluster_finish(c, i);
}

/* ------------------------------------------------------- slow, and too late */

enum { LATE_ROUNDS = 2, LOST_ROUNDS = 4 };

/* Each of them when the parent says so: a member that the system does not let
 * run is not rounds behind. */
static void many_rounds(const struct seat *seat, pcclComm_t *comm, int rounds,
                        uint32_t deadline, uint32_t gather)
{
    for (int k = 0; k < rounds; k++) {
        struct round r;
        SEAT_EQUAL(seat, seat_hear(seat), GO);
        round_open(&r, seat, 30000, true);
        pcclPartialDescriptor_t d = descriptor(r.count, deadline, gather);
        SEAT_EQUAL(seat, run(seat, comm, &r, &d), pcclSuccess);
        seat_report(seat, MAP, round_digest(&r));
        round_close(&r);
    }
}

/* The third member is so slow that the others are rounds ahead: it gets these
 * rounds, as long as they are kept. */
static void slow_body(struct seat *seat)
{
    pcclComm_t *comm = join_all(seat, 3);
    seat_report(seat, READY, 0);
    many_rounds(seat, comm, LATE_ROUNDS, 4000, 100);
    if (seat->index < 2) many_rounds(seat, comm, LOST_ROUNDS, 4000, 100);
    if (seat->index == 2) {
        struct round r;
        SEAT_EQUAL(seat, seat_hear(seat), GO);
        round_open(&r, seat, 30000, true);
        pcclPartialDescriptor_t d = descriptor(r.count, 4000, 100);
        SEAT_EQUAL(seat, run(seat, comm, &r, &d), pcclInvalidUsage);
        char text[256];
        SEAT_EQUAL(seat, pcclGetLastError(comm, text, sizeof text),
                   pcclSuccess);
        SEAT_CHECK(seat, strstr(text, "missed") != NULL);
        SEAT_CHECK(seat, r.recv[5] == value_of(own_seat, 5));
        seat_report(seat, RESULT, 0);
        round_close(&r);
    }
    many_rounds(seat, comm, 1, LONG_MS, LONG_MS);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

/* Rounds of the first two members. */
static void two_average(struct cluster *c, int64_t *maps, int rounds)
{
    for (int k = 0; k < rounds; k++) {
        cluster_order(c, 0, GO);
        cluster_order(c, 1, GO);
        maps[k] = cluster_await(c, 0, MAP);
        assert_int_equal(cluster_await(c, 1, MAP), maps[k]);
    }
}

static void test_slow(void **state)
{
    struct cluster *c = *state;
    int64_t maps[LOST_ROUNDS];
    cluster_start(c, "20");
    for (int i = 0; i < 3; i++) (void)cluster_add(c, slow_body, NULL);
    for (int i = 0; i < 3; i++) (void)cluster_await(c, i, READY);
    two_average(c, maps, LATE_ROUNDS);
    for (int k = 0; k < LATE_ROUNDS; k++) {
        cluster_order(c, 2, GO);
        assert_int_equal(cluster_await(c, 2, MAP), maps[k]);
    }
    two_average(c, maps, LOST_ROUNDS);
    cluster_order(c, 2, GO);
    (void)cluster_await(c, 2, RESULT);
    for (int i = 0; i < 3; i++) cluster_order(c, i, GO);
    maps[0] = cluster_await(c, 0, MAP);
    assert_int_equal(cluster_await(c, 1, MAP), maps[0]);
    assert_int_equal(cluster_await(c, 2, MAP), maps[0]);
    for (int i = 0; i < 3; i++) cluster_finish(c, i);
}

/* ------------------------------------- the state has the rounds (rule A14) */

static uint64_t state_sum; /* of all rounds */

static void add_round(const struct seat *seat, pcclComm_t *comm,
                      uint32_t deadline, uint32_t gather)
{
    uint64_t one = 1, sum = 0;
    pcclPartialDescriptor_t d = descriptor(1, deadline, gather);
    d.datatype = pcclUint64;
    d.op = pcclSum;
    SEAT_EQUAL(seat, seat_hear(seat), GO);
    SEAT_EQUAL(seat, pcclAllReducePartial(&one, &sum, &d, comm, NULL),
               pcclSuccess);
    state_sum += sum;
    seat_report(seat, MAP, (int64_t)state_sum);
}

/* The third member calls for nothing before it gets the state of the others. */
static void received_body(struct seat *seat)
{
    pcclComm_t *comm = join_all(seat, 3);
    bool late = seat->index == 2;
    seat_report(seat, READY, 0);
    for (int k = 0; !late && k < LATE_ROUNDS; k++)
        add_round(seat, comm, 4000, 100);
    pcclTensorInfo_t t = {"sum",      &state_sum,    1,
                          pcclUint64, pcclDeviceCpu, false};
    pcclSharedState_t shared = {0, 1, &t};
    SEAT_EQUAL(seat, seat_hear(seat), GO);
    SEAT_EQUAL(seat,
               pcclSynchronizeSharedState(
                   comm, &shared,
                   late ? PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY
                        : PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY,
                   NULL),
               pcclSuccess);
    seat_report(seat, RESULT, (int64_t)state_sum);
    add_round(seat, comm, LONG_MS, LONG_MS);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_received(void **state)
{
    struct cluster *c = *state;
    int64_t sums[LATE_ROUNDS];
    cluster_start(c, "20");
    for (int i = 0; i < 3; i++) (void)cluster_add(c, received_body, NULL);
    for (int i = 0; i < 3; i++) (void)cluster_await(c, i, READY);
    two_average(c, sums, LATE_ROUNDS);
    for (int i = 0; i < 3; i++) cluster_order(c, i, GO);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cluster_await(c, i, RESULT), sums[LATE_ROUNDS - 1]);
    for (int i = 0; i < 3; i++) cluster_order(c, i, GO);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cluster_await(c, i, MAP), sums[LATE_ROUNDS - 1] + 3);
    for (int i = 0; i < 3; i++) cluster_finish(c, i);
}

/* ------------------------------------------------------------ the eviction */

static void absent_body(struct seat *seat)
{
    pcclComm_t *comm = join_all(seat, 3);
    struct round r;
    round_open(&r, seat, 1000, true);
    pcclPartialDescriptor_t d = descriptor(r.count, 8000, 1500);
    d.evict_after = 2;
    seat_report(seat, READY, 0);
    SEAT_EQUAL(seat, seat_hear(seat), GO);
    if (seat->index == 2) {
        SEAT_EQUAL(seat, run(seat, comm, &r, &d), pcclMasterConnectionFailed);
        seat_report(seat, RESULT, 0);
    }
    for (int k = 0; k < 2 && seat->index != 2; k++) {
        for (size_t i = 0; i < r.count; i++) r.send[i] = value_of(own_seat, i);
        SEAT_EQUAL(seat, run(seat, comm, &r, &d), pcclSuccess);
    }
    if (seat->index != 2) seat_report(seat, RESULT, 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    round_close(&r);
}

static void test_absent(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 3; i++) (void)cluster_add(c, absent_body, NULL);
    for (int i = 0; i < 3; i++) (void)cluster_await(c, i, READY);
    cluster_order(c, 0, GO);
    cluster_order(c, 1, GO);
    (void)cluster_await(c, 0, RESULT);
    (void)cluster_await(c, 1, RESULT);
    cluster_order(c, 2, GO);
    (void)cluster_await(c, 2, RESULT);
    for (int i = 0; i < 3; i++) cluster_finish(c, i);
}

/* ------------------------------------------------------------ disagreement */

static void differ_body(struct seat *seat)
{
    pcclComm_t *comm = join_all(seat, 3);
    struct round r;
    round_open(&r, seat, 100, true);
    pcclPartialDescriptor_t d = descriptor(r.count, LONG_MS, LONG_MS);
    d.count = seat->index == 1 ? 99 : 100;
    SEAT_EQUAL(seat, run(seat, comm, &r, &d), pcclInvalidArgument);
    char text[256];
    SEAT_EQUAL(seat, pcclGetLastError(comm, text, sizeof text), pcclSuccess);
    SEAT_CHECK(seat, strstr(text, "count") && strstr(text, "99"));
    for (size_t i = 0; i < r.count; i++)
        SEAT_CHECK(seat, r.recv[i] == value_of(own_seat, i));
    d.count = 100;
    SEAT_EQUAL(seat, run(seat, comm, &r, &d), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    round_close(&r);
}

static void test_differ(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 3; i++) (void)cluster_add(c, differ_body, NULL);
    for (int i = 0; i < 3; i++) cluster_finish(c, i);
}

/* ---------------------------------------------------- arguments; the master */

static void refused(const struct seat *seat, pcclComm_t *comm,
                    const pcclPartialDescriptor_t *d)
{
    float x[4] = {0};
    pcclPartialOp_t handle;
    SEAT_EQUAL(seat, pcclAllReducePartial(x, x, d, comm, NULL),
               pcclInvalidArgument);
    SEAT_EQUAL(seat, pcclAllReducePartialAsync(x, x, d, comm, &handle),
               pcclInvalidArgument);
}

static void refuse_arguments(const struct seat *seat, pcclComm_t *comm)
{
    pcclPartialDescriptor_t good = descriptor(2, LONG_MS, 0);
    pcclPartialDescriptor_t d = good;
    refused(seat, comm, NULL);
    d.size--;
    refused(seat, comm, &d);
    d = good;
    d.op = pcclMax;
    refused(seat, comm, &d);
    d = good;
    d.datatype = pcclInt32;
    refused(seat, comm, &d);
    d = good;
    d.weight = 0;
    refused(seat, comm, &d);
    d.weight = (double)NAN;
    refused(seat, comm, &d);
    d.weight = (double)INFINITY;
    refused(seat, comm, &d);
    d = good;
    d.deadline_ms = 0;
    refused(seat, comm, &d);
    d = good;
    d.gather_ms = LONG_MS + 1;
    refused(seat, comm, &d);
    d = good;
    d.count = SIZE_MAX;
    refused(seat, comm, &d);
}

static void alone_body(struct seat *seat)
{
    pcclComm_t *comm = join_all(seat, 1);
    pcclPartialOp_t handle;
    struct round r;
    refuse_arguments(seat, comm);
    round_open(&r, seat, 10, false);
    pcclPartialDescriptor_t d = descriptor(r.count, LONG_MS, 0);
    SEAT_EQUAL(seat,
               pcclAllReducePartialAsync(r.send, r.recv, &d, comm, &handle),
               pcclSuccess);
    SEAT_EQUAL(seat,
               pcclAllReducePartialAsync(r.send, r.recv, &d, comm, &handle),
               pcclInvalidArgument);
    SEAT_EQUAL(seat, pcclAwaitPartial(&handle, &r.info), pcclSuccess);
    round_check(seat, &r);
    SEAT_EQUAL(seat, r.parts[0].contributors, 1);
    SEAT_EQUAL(seat, pcclAwaitPartial(&handle, NULL), pcclInvalidArgument);
    seat_report(seat, READY, 0);
    SEAT_EQUAL(seat, seat_hear(seat), GO);
    SEAT_EQUAL(seat, run(seat, comm, &r, &d), pcclMasterConnectionFailed);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    round_close(&r);
}

static void test_alone(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    (void)cluster_add(c, alone_body, NULL);
    (void)cluster_await(c, 0, READY);
    cluster_signal_master(c, SIGKILL);
    cluster_order(c, 0, GO);
    cluster_finish(c, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole, start, stop),
        cmocka_unit_test_setup_teardown(test_story, start, stop),
        cmocka_unit_test_setup_teardown(test_slow, start, stop),
        cmocka_unit_test_setup_teardown(test_received, start, stop),
        cmocka_unit_test_setup_teardown(test_absent, start, stop),
        cmocka_unit_test_setup_teardown(test_differ, start, stop),
        cmocka_unit_test_setup_teardown(test_alone, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
