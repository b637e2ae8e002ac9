/* test_share.c - tests that members of one host share memory if and only if
 * both allow it; results do not depend on the transport. */
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHARED = 1, DONE };
enum { RANKS = 3, STEPS = 20, SIZES = 4 };

struct variant {
    const char *transport[RANKS];
    bool hidden; /* no process may read another's memory */
    int shared[RANKS];
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

/* Number of partners with shared memory. */
static int count_shared(void)
{
    char line[512];
    int starts = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        starts += strstr(line, "memfd:pccl") && strstr(line, " 00000000 ");
    if (maps) fclose(maps);
    return starts; /* the first page is mapped only once */
}

/* Even root may then not read this process's memory. */
static void hide(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &head, caps) == 0) {
        caps[0].effective &= ~(1u << CAP_SYS_PTRACE);
        (void)syscall(SYS_capset, &head, caps);
    }
    (void)prctl(PR_SET_DUMPABLE, 0);
}

static void body(struct seat *seat)
{
    static const size_t counts[SIZES] = {1, 300, 20000, 700001};
    const struct variant *v = seat->arg;
    setenv("PCCL_TRANSPORT", v->transport[seat->index], 1);
    if (v->hidden) hide();
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    for (int s = 0; s < SIZES; s++) {
        struct vector vector;
        vector_open(&vector, seat, comm, counts[s], s % 2 == 0);
        for (int step = 0; step < STEPS; step++)
            SEAT_EQUAL(seat, vector_reduce(&vector, step), pcclSuccess);
        vector_close(&vector);
    }
    seat_report(seat, SHARED, count_shared());
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    SEAT_EQUAL(seat, count_shared(), 0);
    seat_report(seat, DONE, 0);
}

static void run(void **state, const struct variant *v)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < RANKS; i++) (void)cluster_add(c, body, v);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(cluster_await(c, i, SHARED), v->shared[i]);
    for (int i = 0; i < RANKS; i++) cluster_order(c, i, 1);
    for (int i = 0; i < RANKS; i++) {
        (void)cluster_await(c, i, DONE);
        cluster_finish(c, i);
    }
}

static void test_auto(void **state)
{
    run(state, &(struct variant){{"auto", "auto", "shm"}, false, {2, 2, 2}});
}

static void test_tcp(void **state)
{
    run(state, &(struct variant){{"tcp", "tcp", "tcp"}, false, {0, 0, 0}});
}

static void test_one_does_not(void **state)
{
    run(state, &(struct variant){{"auto", "tcp", "auto"}, false, {1, 0, 1}});
}

/* All members, because the dialer of a pair offers the memory, and the dialer
 * depends on the order of arrival. */
static void test_nobody_may_look(void **state)
{
    run(state, &(struct variant){{"auto", "auto", "auto"}, true, {0, 0, 0}});
}

/* Rank 1 tests the operation that it launched later, whose data are behind in
 * the shared memory: a waiting call must receive the earlier data first. */
static void crossing(struct seat *seat)
{
    enum { FLOATS = 10000 };
    static float in[FLOATS], out[2][FLOATS];
    pcclAsyncReduceOp_t handles[2];
    pcclReduceDescriptor_t d = {
        .count = FLOATS,
        .op = pcclSum,
        .src_descriptor = {.datatype = pcclFloat,
                           .distribution_hint = pcclDistributionNone}};
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    for (int i = 0; i < FLOATS; i++) in[i] = (float)i;
    for (int k = 0; k < 2; k++) {
        bool done = false;
        d.tag = (uint64_t)(seat->index == 0 ? k : !k);
        if (seat->index == 1 && k == 0) (void)seat_hear(seat);
        SEAT_EQUAL(
            seat, pcclAllReduceAsync(in, out[d.tag], &d, comm, &handles[d.tag]),
            pcclSuccess);
        while (seat->index == 1 && k == 0 && !done)
            SEAT_EQUAL(seat, pcclTestAsync(&handles[d.tag], &done),
                       pcclSuccess);
    }
    seat_report(seat, SHARED, count_shared());
    for (int k = 0; k < 2; k++) {
        SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&handles[k], NULL), pcclSuccess);
        for (int i = 0; i < FLOATS; i++)
            SEAT_CHECK(seat, out[k][i] == (float)(2 * i));
    }
    if (seat->index == 0) (void)seat_hear(seat); /* rank 1 has counted */
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    seat_report(seat, DONE, 0);
}

static void test_orders_may_cross(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) (void)cluster_add(c, crossing, NULL);
    assert_int_equal(cluster_await(c, 0, SHARED), 1);
    cluster_order(c, 1, 1);
    assert_int_equal(cluster_await(c, 1, SHARED), 1);
    cluster_order(c, 0, 1);
    for (int i = 0; i < 2; i++) {
        (void)cluster_await(c, i, DONE);
        cluster_finish(c, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_auto, start, stop),
        cmocka_unit_test_setup_teardown(test_tcp, start, stop),
        cmocka_unit_test_setup_teardown(test_one_does_not, start, stop),
        cmocka_unit_test_setup_teardown(test_nobody_may_look, start, stop),
        cmocka_unit_test_setup_teardown(test_orders_may_cross, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
