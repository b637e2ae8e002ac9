/* test_retry.c - tests of the call that reduces many vectors and repeats those
 * that a loss has undone. */
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { DONE = 1 };
enum { MANY = 20, MANY_COUNT = 16384, MANY_DONE = 3 };

struct many {
    int max_in_flight;
    bool in_place;
    float *in[MANY], *out[MANY];
    pcclReduceOpDescriptor_t ops[MANY];
};

static void many_open(struct many *m, const struct seat *seat)
{
    for (int k = 0; k < MANY; k++) {
        m->in[k] = malloc(MANY_COUNT * sizeof(float));
        m->out[k] = m->in_place ? m->in[k] : malloc(MANY_COUNT * sizeof(float));
        SEAT_CHECK(seat, m->in[k] && m->out[k]);
        for (size_t i = 0; i < MANY_COUNT; i++)
            m->in[k][i] = vector_value(i, k) * (float)(seat->index + 1);
        m->ops[k] = (pcclReduceOpDescriptor_t){
            m->in[k],
            m->out[k],
            {.count = MANY_COUNT,
             .op = pcclSum,
             .tag = (uint64_t)k,
             .src_descriptor = {pcclFloat, pcclDistributionNone}}};
    }
}

static void many_close(struct many *m)
{
    for (int k = 0; k < MANY; k++) {
        if (!m->in_place) free(m->out[k]);
        free(m->in[k]);
    }
}

/* The last seat makes the steps of the call by hand and dies in between. */
static void many_die(struct many *m, pcclComm_t *comm)
{
    pcclAsyncReduceOp_t h[MANY];
    int launched = 0;
    for (int k = 0; k < MANY_DONE; k++) {
        for (; launched < k + m->max_in_flight; launched++)
            (void)pcclAllReduceAsync(m->in[launched], m->out[launched],
                                     &m->ops[launched].descriptor, comm,
                                     &h[launched]);
        (void)pcclAwaitAsyncReduce(&h[k], NULL);
    }
    (void)kill(getpid(), SIGKILL);
}

static void many_body(struct seat *seat)
{
    struct many m = *(const struct many *)seat->arg;
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 3);
    many_open(&m, seat);
    if (seat->index == 2) many_die(&m, comm);
    pcclReduceInfo_t info = {0};
    SEAT_EQUAL(seat,
               pcclAllReduceMultipleWithRetry(m.ops, MANY, comm, &info,
                                              m.max_in_flight),
               pcclSuccess);
    SEAT_EQUAL(seat, info.local_world_size, 2);
    int64_t of_three = 0; /* bit set of operations complete before the loss */
    for (int k = 0; k < MANY; k++) {
        bool three = m.out[k][0] == vector_value(0, k) * 6;
        of_three |= (int64_t)three << k;
        for (size_t i = 0; i < MANY_COUNT; i++)
            SEAT_EQUAL(seat, m.out[k][i],
                       vector_value(i, k) * (three ? 6.0F : 3.0F));
    }
    seat_report(seat, DONE, of_three);
    many_close(&m);
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

/* PCCL 1.0 returned success here with unreduced buffers. */
static void many_with_retry(void **state)
{
    struct cluster *c = *state;
    for (int i = 0; i < 4; i++) {
        struct many m = {.max_in_flight = i < 2 ? 1 : 8,
                         .in_place = i % 2 == 0};
        cluster_start(c, "20");
        for (int k = 0; k < 3; k++) cluster_add(c, many_body, &m);
        int64_t done = cluster_await(c, 0, DONE);
        assert_int_equal(cluster_await(c, 1, DONE), done);
        /* The dead member took no part in the last ones. */
        assert_int_equal(done >> (MANY_DONE - 1 + m.max_in_flight), 0);
        cluster_finish(c, 0);
        cluster_finish(c, 1);
        cluster_stop(c);
    }
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_with_retry, start, stop)};
    return cmocka_run_group_tests_name("proc/retry", tests, NULL, NULL);
}
