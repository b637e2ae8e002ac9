/* test_sync.c - tests of pcclSynchronizeSharedState as a program sees it
 * (contract §3), over real sockets. Rule numbers are those of STATE.md. */
#include "cast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 40000 }; /* floats: three blocks, the last one partly filled */
#define POPULAR PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR
#define RECEIVE PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY
#define SEND PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY

static float values[CAST_MAX][N];
static struct cast cast;

static int setup(void **state)
{
    (void)state;
    cast_open(&cast, 20000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cast_close(&cast);
    return 0;
}

static void fill(int i, float content)
{
    for (int k = 0; k < N; k++) values[i][k] = content + (float)(k % 101);
}

/* Actors 0..count-1 in one group with these contents and revisions. */
static void stage(int count, const float *contents, const uint64_t *revisions)
{
    cast_clear(&cast);
    for (int i = 0; i < count; i++) {
        if (!cast.actors[i].comm) cast_join(&cast, i, 0);
        fill(i, contents[i]);
        cast_tensor(&cast, i, "weights", values[i], N, pcclFloat);
        cast.actors[i].state.revision = revisions ? revisions[i] : 0;
    }
}

static void assert_outcome(int i, pcclResult_t result, uint64_t revision,
                           size_t rx)
{
    const struct actor *a = &cast.actors[i];
    if (a->result != result) print_message("actor %d: %s\n", i, a->error);
    assert_int_equal(a->result, result);
    if (result != pcclSuccess) return;
    assert_int_equal(a->state.revision, revision);
    assert_int_equal(a->info.rx_bytes, rx);
}

static void assert_content(int i, float content)
{
    for (int k = 0; k < N; k++)
        if (values[i][k] != content + (float)(k % 101))
            fail_msg("actor %d, element %d: %f", i, k, (double)values[i][k]);
}

static size_t sent(int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) total += cast.actors[i].info.tx_bytes;
    return total;
}

static void test_equal_moves_nothing(void **state)
{
    (void)state;
    stage(3, (float[]){1, 1, 1}, NULL);
    cast_run(&cast);
    for (int i = 0; i < 3; i++) assert_outcome(i, pcclSuccess, 0, 0);
    assert_int_equal(sent(3), 0);
    for (uint64_t step = 1; step < 20; step++) {
        for (int i = 0; i < 3; i++) {
            fill(i, (float)step);
            cast.actors[i].state.revision++;
        }
        cast_run(&cast);
        for (int i = 0; i < 3; i++) assert_outcome(i, pcclSuccess, step, 0);
    }
}

static void test_most_popular_wins(void **state)
{
    (void)state;
    stage(3, (float[]){9, 5, 5}, NULL);
    cast_run(&cast);
    assert_outcome(0, pcclSuccess, 0, sizeof values[0]);
    assert_outcome(1, pcclSuccess, 0, 0);
    assert_outcome(2, pcclSuccess, 0, 0);
    for (int i = 0; i < 3; i++) assert_content(i, 5);
    assert_int_equal(sent(3), sizeof values[0]);
}

static void test_tie_goes_to_the_lowest_rank(void **state)
{
    (void)state;
    stage(4, (float[]){7, 3, 3, 7}, NULL);
    cast_run(&cast);
    for (int i = 0; i < 4; i++) assert_content(i, 7);
    assert_outcome(1, pcclSuccess, 0, sizeof values[0]);
    stage(2, (float[]){1, 2}, (uint64_t[]){1, 1});
    stage(4, (float[]){1, 2, 2, 1}, (uint64_t[]){1, 1, 1, 1});
    cast_run(&cast);
    for (int i = 0; i < 4; i++) assert_content(i, 1);
}

static void test_revisions(void **state)
{
    (void)state;
    /* S3: the highest initial revision counts; the others are behind. */
    stage(3, (float[]){4, 8, 8}, (uint64_t[]){13, 0, 0});
    cast_run(&cast);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cast.actors[i].result, pcclSuccess);
        assert_int_equal(cast.actors[i].state.revision, 13);
        assert_content(i, 4);
    }
    /* One is behind with the same content, one with different content. */
    stage(3, (float[]){6, 6, 2}, (uint64_t[]){14, 3, 13});
    cast_run(&cast);
    assert_outcome(0, pcclSuccess, 14, 0);
    assert_outcome(1, pcclSuccess, 14, 0);
    assert_outcome(2, pcclSuccess, 14, sizeof values[0]);
    /* The majority is behind: the only one at the right revision wins. */
    stage(3, (float[]){2, 5, 2}, (uint64_t[]){14, 15, 14});
    cast_run(&cast);
    for (int i = 0; i < 3; i++) assert_content(i, 5);
    /* Ahead by two: it is refused and the others go on; then it may take part
     * again. */
    stage(3, (float[]){1, 1, 1}, (uint64_t[]){16, 17, 16});
    cast_run(&cast);
    assert_outcome(0, pcclSuccess, 16, 0);
    assert_outcome(1, pcclInvalidUsage, 0, 0);
    assert_non_null(strstr(cast.actors[1].error, "ahead"));
    assert_outcome(2, pcclSuccess, 16, 0);
    stage(3, (float[]){1, 3, 1}, (uint64_t[]){17, 17, 17});
    cast_run(&cast);
    for (int i = 0; i < 3; i++) assert_content(i, 1);
    /* None has incremented its revision: it increases all the same. */
    stage(3, (float[]){1, 1, 1}, (uint64_t[]){17, 17, 17});
    cast_run(&cast);
    for (int i = 0; i < 3; i++) assert_outcome(i, pcclSuccess, 18, 0);
}

static void strategies(int count, const pcclSharedStateSyncStrategy_t *s)
{
    for (int i = 0; i < count; i++) cast.actors[i].strategy = s[i];
    cast_run(&cast);
}

static void test_strategies(void **state)
{
    (void)state;
    uint64_t one[] = {1, 1, 1};
    uint64_t two[] = {2, 2, 2};
    /* More newcomers than members: the sender wins and is the only server. */
    stage(3, (float[]){6, 6, 4}, NULL);
    strategies(3, (pcclSharedStateSyncStrategy_t[]){RECEIVE, RECEIVE, SEND});
    assert_outcome(0, pcclSuccess, 0, sizeof values[0]);
    assert_outcome(1, pcclSuccess, 0, sizeof values[0]);
    for (int i = 0; i < 3; i++) assert_content(i, 4);
    assert_int_equal(cast.actors[0].info.tx_bytes, 0);
    assert_int_equal(cast.actors[1].info.tx_bytes, 0);
    assert_int_equal(cast.actors[2].info.tx_bytes, 2 * sizeof values[0]);
    /* A receiver with the elected content does not serve either. */
    stage(3, (float[]){6, 4, 4}, one);
    strategies(3, (pcclSharedStateSyncStrategy_t[]){RECEIVE, RECEIVE, SEND});
    assert_int_equal(cast.actors[1].info.tx_bytes, 0);
    assert_content(0, 4);
    /* Senders must agree: the one not elected is refused and unchanged. */
    stage(3, (float[]){6, 6, 5}, two);
    strategies(3, (pcclSharedStateSyncStrategy_t[]){SEND, SEND, SEND});
    assert_outcome(0, pcclSuccess, 2, 0);
    assert_outcome(1, pcclSuccess, 2, 0);
    assert_outcome(2, pcclInvalidUsage, 0, 0);
    assert_content(2, 5);
    assert_non_null(strstr(cast.actors[2].error, "only sends"));
    strategies(3, (pcclSharedStateSyncStrategy_t[]){RECEIVE, RECEIVE, RECEIVE});
    for (int i = 0; i < 3; i++)
        assert_outcome(i, pcclNoSharedStateAvailable, 0, 0);
}

/* The error names rank, process and address. */
static void assert_owner_is_named(const char *error, int rank)
{
    char owner[64];
    snprintf(owner, sizeof owner, "of rank %d (pid %d, 127.0.0.1:", rank,
             (int)getpid());
    if (!strstr(error, owner))
        fail_msg("%s does not stand in %s", owner, error);
}

/* One of two has another size: the election decides which one is wrong. */
static void test_of_two_the_outvoted_is_named(void **state)
{
    (void)state;
    stage(2, (float[]){1, 1}, NULL);
    cast.actors[0].infos[0].count = N - 1;
    cast_run(&cast);
    assert_outcome(0, pcclSuccess, 0, 0);
    assert_outcome(1, pcclInvalidArgument, 0, 0);
    assert_owner_is_named(cast.actors[1].error, 1);
    assert_non_null(strstr(cast.actors[1].error, "is \"weights\" (40000 x "));
    assert_non_null(strstr(cast.actors[1].error, "has \"weights\" (39999 x "));
}

static void test_other_tensors_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t count;
        pcclDataType_t type;
        bool more, fewer, inequal;
    } wrong[] = {{"weihgts", N, pcclFloat, false, false, false},
                 {"weights", N - 1, pcclFloat, false, false, false},
                 {"weights", N, pcclInt32, false, false, false},
                 {"weights", N, pcclFloat, false, false, true},
                 {"weights", N, pcclFloat, true, false, false},
                 {"weights", N, pcclFloat, false, true, false}};
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
        uint64_t r = 2 * k;
        stage(3, (float[]){1, 1, 2}, (uint64_t[]){r, r, r});
        struct actor *a = &cast.actors[1];
        a->infos[0].name = wrong[k].name;
        a->infos[0].count = wrong[k].count;
        a->infos[0].datatype = wrong[k].type;
        a->infos[0].allow_content_inequality = wrong[k].inequal;
        if (wrong[k].more)
            cast_tensor(&cast, 1, "momentum", values[5], 3, pcclFloat);
        if (wrong[k].fewer) a->state.count = 0;
        cast_run(&cast);
        assert_outcome(0, pcclSuccess, r, 0);
        assert_outcome(1, pcclInvalidArgument, 0, 0);
        assert_outcome(2, pcclSuccess, r, sizeof values[0]);
        const char *named = wrong[k].more ? "momentum" : wrong[k].name;
        assert_non_null(strstr(a->error, named));
        assert_owner_is_named(a->error, 1);
        for (int i = 0; i < 3; i += 2) {
            char heard[256];
            pcclGetLastError(cast.actors[i].comm, heard, sizeof heard);
            assert_string_equal(heard, a->error);
        }
        assert_content(1, 1);
        /* It is still a member. */
        stage(3, (float[]){1, 2, 1}, (uint64_t[]){r + 1, r + 1, r + 1});
        cast_run(&cast);
        assert_content(1, 1);
        assert_outcome(1, pcclSuccess, r + 1, sizeof values[0]);
    }
}

/* Every type, odd sizes, unaligned, empty, and one that may differ. */
static void test_all_types(void **state)
{
    (void)state;
    static const size_t width[12] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    static const char *typed[12] = {"0", "1", "2", "3", "4",  "5",
                                    "6", "7", "8", "9", "10", "11"};
    static uint8_t bytes[2][14][200000];
    cast_clear(&cast);
    size_t total = 0;
    for (int i = 0; i < 2; i++) {
        cast_join(&cast, i, 0);
        for (int t = 0; t < 14; t++)
            for (size_t k = 0; k < sizeof bytes[0][0]; k++)
                bytes[i][t][k] = (uint8_t)(k * 31 + (size_t)(t + 77 * i));
        for (int t = 0; t < 12; t++) {
            size_t count = (size_t)(t * t * 150 + 1);
            cast_tensor(&cast, i, typed[t], bytes[i][t] + t % 7 + 1, count,
                        (pcclDataType_t)t);
            if (i == 0) total += count * width[t];
        }
        cast_tensor(&cast, i, "empty", NULL, 0, pcclFloat);
        cast_tensor(&cast, i, "own", bytes[i][13], 1000, pcclUint8);
        cast.actors[i].infos[13].allow_content_inequality = true;
    }
    cast_run(&cast);
    assert_outcome(0, pcclSuccess, 0, 0);
    assert_outcome(1, pcclSuccess, 0, total);
    assert_int_equal(sent(2), total);
    for (int t = 0; t < 12; t++) {
        size_t at = (size_t)(t % 7 + 1);
        size_t size = (size_t)(t * t * 150 + 1) * width[t];
        assert_memory_equal(bytes[0][t] + at, bytes[1][t] + at, size);
        assert_int_equal(bytes[1][t][at - 1],
                         (uint8_t)((at - 1) * 31 + (size_t)(t + 77)));
        assert_int_equal(bytes[1][t][at + size],
                         (uint8_t)((at + size) * 31 + (size_t)(t + 77)));
    }
    assert_int_not_equal(bytes[0][13][5], bytes[1][13][5]);
}

static void test_one_changed_row_costs_one_block(void **state)
{
    (void)state;
    const size_t size = 64u << 20;
    uint8_t *a = calloc(1, size);
    uint8_t *b = calloc(1, size);
    assert_true(a && b);
    cast_clear(&cast);
    cast_join(&cast, 0, 0);
    cast_join(&cast, 1, 0);
    cast_tensor(&cast, 0, "big", a, size, pcclUint8);
    cast_tensor(&cast, 1, "big", b, size, pcclUint8);
    memset(b + 12345678, 7, 4096);
    cast_run(&cast);
    assert_outcome(1, pcclSuccess, 0, 65536);
    assert_memory_equal(a, b, size);
    free(a);
    free(b);
}

static void test_groups_are_independent(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) cast_join(&cast, i, (uint32_t)i / 2);
    stage(4, (float[]){1, 2, 3, 4}, (uint64_t[]){0, 0, 40, 40});
    cast_run(&cast);
    assert_content(1, 1);
    assert_content(3, 3);
    assert_int_equal(cast.actors[0].state.revision, 0);
    assert_int_equal(cast.actors[2].state.revision, 40);
    /* One group does not wait for the other. */
    stage(4, (float[]){1, 1, 3, 3}, (uint64_t[]){1, 1, 41, 41});
    cast.actors[2].act = cast.actors[3].act = CAST_IDLE;
    cast_run(&cast);
    assert_outcome(0, pcclSuccess, 1, 0);
}

static void test_newcomers_receive(void **state)
{
    (void)state;
    stage(2, (float[]){1, 1}, NULL);
    cast_run(&cast);
    for (int round = 1; round < 5; round++) {
        int count = 2 + round;
        float contents[CAST_MAX];
        uint64_t revisions[CAST_MAX];
        for (int i = 0; i < count; i++) {
            contents[i] = i == count - 1 ? 99 : (float)round;
            revisions[i] = i == count - 1 ? 0 : (uint64_t)round;
        }
        stage(count, contents, revisions);
        cast_run(&cast);
        for (int i = 0; i < count; i++) assert_content(i, (float)round);
        assert_outcome(count - 1, pcclSuccess, (uint64_t)round,
                       sizeof values[0]);
    }
    /* The founders leave; the record of the content remains. */
    cast_leave(&cast, 0);
    cast_leave(&cast, 1);
    cast_clear(&cast);
    for (int i = 2; i < 6; i++) {
        cast_tensor(&cast, i, "weights", values[i], N, pcclFloat);
        cast.actors[i].state.revision = 5;
    }
    cast_run(&cast);
    for (int i = 2; i < 6; i++) assert_outcome(i, pcclSuccess, 5, 0);
}

static void test_resume_needs_revision_and_content(void **state)
{
    (void)state;
    stage(2, (float[]){8, 8}, (uint64_t[]){3, 3});
    cast_run(&cast);
    cast_leave(&cast, 0);
    cast_leave(&cast, 1);
    stage(2, (float[]){7, 7}, (uint64_t[]){3, 3}); /* a wrong checkpoint */
    cast_run(&cast);
    assert_outcome(0, pcclInvalidUsage, 0, 0);
    assert_non_null(strstr(cast.actors[0].error, "had when all had left"));
    assert_content(1, 7);
    stage(2, (float[]){8, 8}, (uint64_t[]){4, 4}); /* a wrong number */
    cast_run(&cast);
    assert_outcome(1, pcclInvalidUsage, 0, 0);
    stage(2, (float[]){8, 8}, (uint64_t[]){2, 2});
    cast_run(&cast);
    assert_outcome(1, pcclNoSharedStateAvailable, 0, 0);
    stage(2, (float[]){0, 8}, (uint64_t[]){0, 3}); /* one fresh, one right */
    cast_run(&cast);
    assert_outcome(0, pcclSuccess, 3, sizeof values[0]);
    assert_outcome(1, pcclSuccess, 3, 0);
    assert_content(0, 8);
    stage(2, (float[]){9, 9}, (uint64_t[]){4, 4});
    cast_run(&cast);
    assert_outcome(0, pcclSuccess, 4, 0);
}

static const char *last_error(const pcclComm_t *comm)
{
    static char text[256];
    (void)pcclGetLastError(comm, text, sizeof text);
    return text;
}

/* No tensors at all are equal; compared to some tensors they are a
 * difference. */
static void test_no_tensors(void **state)
{
    (void)state;
    stage(3, (float[]){1, 1, 1}, NULL);
    for (int i = 0; i < 3; i++) cast.actors[i].state.count = 0;
    cast_run(&cast);
    for (int i = 0; i < 3; i++) assert_outcome(i, pcclSuccess, 0, 0);
    for (int i = 0; i < 3; i++) cast.actors[i].state.revision = 1;
    cast.actors[2].state.infos = NULL;
    for (int i = 0; i < 2; i++) cast.actors[i].state.count = 1;
    cast_run(&cast);
    for (int i = 0; i < 2; i++) assert_outcome(i, pcclSuccess, 1, 0);
    assert_int_equal(cast.actors[2].result, pcclInvalidArgument);
    assert_non_null(strstr(cast.actors[2].error, "weights"));
}

static void test_misuse(void **state)
{
    (void)state;
    stage(1, (float[]){1}, NULL);
    pcclComm_t *comm = cast.actors[0].comm;
    pcclSharedState_t *s = &cast.actors[0].state;
    pcclTensorInfo_t *t = &cast.actors[0].infos[0];
    pcclSharedStateSyncInfo_t info;
    assert_int_equal(pcclSynchronizeSharedState(comm, s, POPULAR, NULL), 0);
    assert_int_equal(pcclSynchronizeSharedState(NULL, s, POPULAR, NULL),
                     pcclInvalidArgument);
    assert_int_equal(pcclSynchronizeSharedState(comm, NULL, POPULAR, NULL),
                     pcclInvalidArgument);
    assert_int_equal(pcclSynchronizeSharedState(
                         comm, s, (pcclSharedStateSyncStrategy_t)3, NULL),
                     pcclInvalidArgument);
    t->device_type = pcclDeviceCuda;
    assert_int_equal(pcclSynchronizeSharedState(comm, s, POPULAR, &info),
                     pcclInvalidArgument);
    t->device_type = pcclDeviceCpu;
    t->datatype = (pcclDataType_t)12;
    assert_int_equal(pcclSynchronizeSharedState(comm, s, POPULAR, &info),
                     pcclInvalidArgument);
    t->datatype = pcclFloat;
    t->data = NULL;
    assert_int_equal(pcclSynchronizeSharedState(comm, s, POPULAR, &info),
                     pcclInvalidArgument);
    assert_non_null(strstr(last_error(comm), "weights"));
    t->data = values[0];
    s->revision = UINT64_MAX;
    assert_int_equal(pcclSynchronizeSharedState(comm, s, POPULAR, &info),
                     pcclInvalidArgument);
    assert_non_null(strstr(last_error(comm), "revision"));
    s->revision = 1;
    s->count = (size_t)1 << 32;
    assert_int_equal(pcclSynchronizeSharedState(comm, s, POPULAR, &info),
                     pcclInvalidArgument);
    assert_non_null(strstr(last_error(comm), "4294967296"));
    s->count = 1;
    assert_int_equal(pcclSynchronizeSharedState(comm, s, POPULAR, &info), 0);
    assert_int_equal(info.rx_bytes, 0);
    s->count = 0;
    s->revision = 2;
    assert_int_equal(pcclSynchronizeSharedState(comm, s, POPULAR, &info), 0);
}

static void test_names_are_unique(void **state)
{
    (void)state;
    stage(1, (float[]){1}, NULL);
    pcclComm_t *comm = cast.actors[0].comm;
    pcclSharedState_t *s = &cast.actors[0].state;
    cast_tensor(&cast, 0, "bias", values[1], 3, pcclFloat);
    cast_tensor(&cast, 0, "weights", values[2], 3, pcclFloat);
    assert_int_equal(pcclSynchronizeSharedState(comm, s, POPULAR, NULL),
                     pcclInvalidArgument);
    const char *error = last_error(comm);
    assert_non_null(strstr(error, "entries 0 and 2"));
    assert_non_null(strstr(error, "weights"));
    /* Unnamed tensors are reported by their index. */
    cast.actors[0].infos[0].name = cast.actors[0].infos[2].name = NULL;
    assert_int_equal(pcclSynchronizeSharedState(comm, s, POPULAR, NULL), 0);
}

enum { MANY = 5000 };
static char names[MANY][8];
static float small[2][MANY][3];
static pcclTensorInfo_t many[2][MANY];

/* Some are empty, the others have 4 to 12 bytes. */
static void test_thousands_of_tensors(void **state)
{
    (void)state;
    stage(2, (float[]){1, 1}, NULL);
    size_t differ = 0;
    for (int k = 0; k < MANY; k++) {
        (void)snprintf(names[k], sizeof names[k], "t%d", k);
        for (int i = 0; i < 2; i++) {
            size_t count = (size_t)k % 4;
            bool other = i == 1 && k % 3 == 0;
            for (int n = 0; n < 3; n++) small[i][k][n] = (float)(k + n + other);
            many[i][k] =
                (pcclTensorInfo_t){.name = names[k],
                                   .data = count > 0 ? small[i][k] : NULL,
                                   .count = count,
                                   .datatype = pcclFloat};
            if (other) differ += 4 * count;
        }
    }
    for (int i = 0; i < 2; i++) {
        cast.actors[i].state.infos = many[i];
        cast.actors[i].state.count = MANY;
    }
    cast_run(&cast);
    assert_outcome(0, pcclSuccess, 0, 0);
    assert_outcome(1, pcclSuccess, 0, differ);
    for (int k = 0; k < MANY; k++)
        assert_memory_equal(small[0][k], small[1][k], (size_t)(k % 4) * 4);
}

/* S9, V4: peers in different calls get an error instead of a deadlock. */
static void test_crossed_calls(void **state)
{
    (void)state;
    cast_close(&cast);
    cast_open(&cast, 2000); /* half of it passes before they are refused */
    stage(3, (float[]){1, 1, 1}, NULL);
    cast_run(&cast);
    cast.actors[1].act = CAST_UPDATE;
    cast_run(&cast);
    for (int i = 0; i < 3; i++) assert_outcome(i, pcclInvalidUsage, 0, 0);
    for (int i = 0; i < 3; i++) cast.actors[i].act = CAST_SYNC;
    cast.actors[2].act = CAST_REDUCE;
    cast_run(&cast);
    for (int i = 0; i < 3; i++) assert_outcome(i, pcclInvalidUsage, 0, 0);
    for (int i = 0; i < 3; i++) {
        cast.actors[i].act = CAST_SYNC;
        cast.actors[i].state.revision = 1;
    }
    cast_run(&cast);
    for (int i = 0; i < 3; i++) assert_outcome(i, pcclSuccess, 1, 0);
}

static void test_unawaited_operation(void **state)
{
    (void)state;
    stage(1, (float[]){1}, NULL);
    pcclComm_t *comm = cast.actors[0].comm;
    pcclCollective_t op = {
        .size = sizeof op, .kind = pcclKindBarrier, .tag = 9};
    pcclAsyncReduceOp_t handle;
    assert_int_equal(pcclCollectiveAsync(&op, comm, &handle), pcclSuccess);
    assert_int_equal(
        pcclSynchronizeSharedState(comm, &cast.actors[0].state, POPULAR, NULL),
        pcclPendingAsyncOps);
    assert_int_equal(pcclAwaitAsyncReduce(&handle, NULL), pcclSuccess);
    assert_int_equal(
        pcclSynchronizeSharedState(comm, &cast.actors[0].state, POPULAR, NULL),
        pcclSuccess);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_equal_moves_nothing),
        TEST(test_most_popular_wins),
        TEST(test_tie_goes_to_the_lowest_rank),
        TEST(test_revisions),
        TEST(test_strategies),
        TEST(test_other_tensors_are_named),
        TEST(test_of_two_the_outvoted_is_named),
        TEST(test_all_types),
        TEST(test_one_changed_row_costs_one_block),
        TEST(test_groups_are_independent),
        TEST(test_newcomers_receive),
        TEST(test_resume_needs_revision_and_content),
        TEST(test_no_tensors),
        TEST(test_misuse),
        TEST(test_names_are_unique),
        TEST(test_thousands_of_tensors),
        TEST(test_crossed_calls),
        TEST(test_unawaited_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
