/* test_step_samples.c - pcclReportProgress and pcclGetProgress between real
 * processes: members of different speeds end each step together; calls beside a
 * collective that waits return; what the dead had is gone, what newcomers are
 * told; and what is refused. Counts are checked, not times. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

enum { READY = 1, SEEN, DONE, STEPS = 12, TARGET = 90, CALLS = 2000 };

static pcclProgress_t look(const struct seat *seat, const pcclComm_t *comm)
{
    pcclProgress_t p = {.size = sizeof p};
    SEAT_EQUAL(seat, pcclGetProgress(comm, &p), pcclSuccess);
    SEAT_EQUAL(seat, p.size, sizeof p);
    return p;
}

/* Until the group is told to have that many of the step. */
static pcclProgress_t await(const struct seat *seat, const pcclComm_t *comm,
                            uint64_t step, uint64_t samples)
{
    int64_t until = now_ms() + PATIENCE_MS;
    pcclProgress_t p = look(seat, comm);
    while (p.step != step || p.samples != samples) {
        SEAT_CHECK(seat, now_ms() < until);
        (void)sched_yield();
        p = look(seat, comm);
    }
    return p;
}

static uint64_t sum_of(const struct seat *seat, pcclComm_t *comm,
                       uint64_t samples)
{
    pcclReduceDescriptor_t d = {
        .count = 1,
        .op = pcclSum,
        .src_descriptor = {pcclUint64, pcclDistributionNone}};
    SEAT_EQUAL(seat, pcclAllReduce(&samples, &samples, &d, comm, NULL),
               pcclSuccess);
    return samples;
}

/* ------------------------------------------------------- speeds of 1 and 8 */

static void train(struct seat *seat)
{
    uint64_t speed = seat->index == 0 ? 1 : 8;
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 3);
    for (uint64_t step = 1; step <= STEPS; step++) {
        pcclProgress_t p = {.size = sizeof p};
        uint64_t samples = 0;
        int64_t until = now_ms() + PATIENCE_MS;
        while (!p.reached) {
            /* What it has is enough with that of the others: it goes on to
             * say so, as fast as it can. */
            if (samples < TARGET) samples += speed;
            SEAT_EQUAL(seat, pcclReportProgress(comm, step, samples, TARGET),
                       pcclSuccess);
            p = look(seat, comm);
            SEAT_CHECK(seat, p.step >= step);
            SEAT_CHECK(seat, now_ms() < until);
            (void)sched_yield();
        }
        uint64_t sum = sum_of(seat, comm, samples);
        SEAT_CHECK(seat, sum >= TARGET);
        SEAT_CHECK(seat, p.step > step || p.samples <= sum);
        SEAT_CHECK(seat, p.members <= 3);
    }
    (void)sum_of(seat, comm, 0); /* nobody leaves before */
    seat_report(seat, DONE, 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_different_speeds(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "3");
    for (int i = 0; i < 3; i++) (void)cluster_add(&c, train, NULL);
    for (int i = 0; i < 3; i++) (void)cluster_await(&c, i, DONE);
    for (int i = 0; i < 3; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

/* ------------------------------------------- beside a collective that waits */

struct trainer {
    const struct seat *seat;
    pcclComm_t *comm;
};

static void *reports(void *arg)
{
    struct trainer *t = arg;
    for (uint64_t i = 1; i <= CALLS; i++) {
        SEAT_EQUAL(t->seat, pcclReportProgress(t->comm, 1, i, 0), pcclSuccess);
        (void)look(t->seat, t->comm);
    }
    (void)await(t->seat, t->comm, 1, CALLS);
    seat_report(t->seat, SEEN, 0);
    return NULL;
}

/* Its main thread waits in an all-reduce for the other member, which is called
 * when the second thread has done all that. */
static void waits(struct seat *seat)
{
    pthread_t thread;
    pcclComm_t *comm = seat_join(seat);
    struct trainer t = {seat, comm};
    seat_gather(seat, comm, 2);
    if (seat->index == 0)
        SEAT_EQUAL(seat, pthread_create(&thread, NULL, reports, &t), 0);
    else
        (void)seat_hear(seat);
    SEAT_EQUAL(seat, sum_of(seat, comm, 1), 2);
    if (seat->index == 0) SEAT_EQUAL(seat, pthread_join(thread, NULL), 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_beside_a_collective(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "3");
    for (int i = 0; i < 2; i++) (void)cluster_add(&c, waits, NULL);
    (void)cluster_await(&c, 0, SEEN);
    cluster_order(&c, 1, 1);
    for (int i = 0; i < 2; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

/* --------------------------------------------- losses, newcomers, the master
 */

static void member(struct seat *seat)
{
    pcclComm_t *comm = seat_create(seat);
    pcclProgress_t p = {.size = sizeof p};
    SEAT_EQUAL(seat, pcclReportProgress(comm, 1, 1, 1), pcclInvalidUsage);
    SEAT_EQUAL(seat, pcclGetProgress(comm, &p), pcclInvalidUsage);
    SEAT_EQUAL(seat, pcclConnect(comm), pcclSuccess);
    SEAT_EQUAL(seat, look(seat, comm).members, 0);
    seat_gather(seat, comm, 3);
    SEAT_EQUAL(seat, pcclReportProgress(comm, 7, PCCL_SAMPLES_MAX + 1, 1),
               pcclInvalidArgument);
    SEAT_EQUAL(seat, pcclGetProgress(comm, NULL), pcclInvalidArgument);
    p.size = sizeof p - 1;
    SEAT_EQUAL(seat, pcclGetProgress(comm, &p), pcclInvalidArgument);
    if (seat->index < 2) {
        uint64_t own = seat->index == 0 ? 20 : 50;
        SEAT_EQUAL(seat, pcclReportProgress(comm, 7, own, 100), pcclSuccess);
    }
    p = await(seat, comm, 7, 70);
    SEAT_EQUAL(seat, p.members, 2);
    SEAT_EQUAL(seat, p.target, 100);
    SEAT_EQUAL(seat, p.reached, false);
    seat_report(seat, READY, 0);
    if (seat->index == 1) (void)pause();
    p = await(seat, comm, 7, 20); /* without the dead one's */
    SEAT_EQUAL(seat, p.members, 1);
    seat_report(seat, SEEN, 0);
    do /* the world of before the loss had three, too */
        SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    while (world_size(comm) != 3);
    (void)seat_hear(seat);
    if (seat->index == 2) /* completes it, and is believed at once */
        SEAT_EQUAL(seat, pcclReportProgress(comm, 7, 80, 100), pcclSuccess);
    p = await(seat, comm, 7, 100);
    SEAT_EQUAL(seat, p.reached, true);
    SEAT_EQUAL(seat, p.members, 2);
    seat_report(seat, DONE, 0);
    (void)seat_hear(seat); /* the master is killed now */
    p = (pcclProgress_t){.size = sizeof p};
    int64_t until = now_ms() + PATIENCE_MS;
    while (pcclReportProgress(comm, 8, 1, 100) == pcclSuccess)
        SEAT_CHECK(seat, now_ms() < until);
    SEAT_EQUAL(seat, pcclReportProgress(comm, 8, 1, 100),
               pcclMasterConnectionFailed);
    SEAT_EQUAL(seat, pcclGetProgress(comm, &p), pcclMasterConnectionFailed);
    SEAT_EQUAL(seat, p.reached, true);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void newcomer(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    pcclProgress_t p = await(seat, comm, 7, 20);
    SEAT_EQUAL(seat, p.members, 1);
    SEAT_EQUAL(seat, p.reached, false);
    seat_report(seat, SEEN, 0);
    p = await(seat, comm, 7, 100);
    SEAT_EQUAL(seat, p.reached, true);
    seat_report(seat, DONE, 0);
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_who_counts(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "3");
    for (int i = 0; i < 3; i++) (void)cluster_add(&c, member, NULL);
    for (int i = 0; i < 3; i++) (void)cluster_await(&c, i, READY);
    cluster_signal(&c, 1, SIGKILL);
    (void)cluster_await(&c, 0, SEEN);
    (void)cluster_await(&c, 2, SEEN);
    int last = cluster_add(&c, newcomer, NULL);
    (void)cluster_await(&c, last, SEEN);
    cluster_order(&c, 0, 1);
    cluster_order(&c, 2, 1);
    (void)cluster_await(&c, 0, DONE);
    (void)cluster_await(&c, 2, DONE);
    (void)cluster_await(&c, last, DONE);
    cluster_signal_master(&c, SIGKILL);
    cluster_order(&c, 0, 1);
    cluster_order(&c, 2, 1);
    cluster_order(&c, last, 1);
    cluster_finish(&c, 0);
    cluster_finish(&c, 2);
    cluster_finish(&c, last);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_different_speeds),
        cmocka_unit_test(test_beside_a_collective),
        cmocka_unit_test(test_who_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
