/* test_odd_programs.c - programs that change what the library stands on: they
 * mask all signals, set the clock, change their root, close all descriptors,
 * end while another thread is in a call. The first three have no effect on a
 * run: it works, and notices the death of a member. The others cost the run
 * that member, which gets errors and can leave; nothing waits. */
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { READY = 1, LOST, DONE };
enum { RANKS = 3, ODD = 1, COUNT = 20000, FILES = 64 };

/* --------------------------------------------------------------- the clock */

static bool jumping;

/* By years, to and fro: what another process sets is seen by all. */
static time_t moved(time_t now)
{
    static _Atomic uint32_t calls;
    if (!jumping) return now;
    static const time_t year = 365 * 86400;
    return now + (time_t)(atomic_fetch_add(&calls, 1) % 7) * year - 3 * year;
}

#pragma GCC visibility push(default)

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (syscall(SYS_clock_gettime, clock, t) != 0) return -1;
    if (clock == CLOCK_REALTIME) t->tv_sec = moved(t->tv_sec);
    return 0;
}

time_t time(time_t *to)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    if (to) *to = t.tv_sec;
    return t.tv_sec;
}

#pragma GCC visibility pop

/* ------------------------------------------------------ what has no effect */

static void mask_all(void)
{
    sigset_t all;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static char root[64];

/* A sanitizer looks for leaks when a process exits, by /proc. */
static void end_now(int status, void *unused)
{
    (void)unused;
    _exit(status);
}

static void change_root(void)
{
    if (chroot(root) != 0 || chdir("/") != 0 || on_exit(end_now, NULL) != 0)
        _exit(1);
}

struct odd {
    void (*before)(void); /* it joins; or NULL */
    void (*then)(void);   /* it has joined */
};

static void synchronize(struct seat *seat, pcclComm_t *comm)
{
    float x[1000] = {0};
    x[7] = (float)seat->index;
    pcclTensorInfo_t tensor = {
        .name = "x", .data = x, .count = 1000, .datatype = pcclFloat};
    pcclSharedState_t shared = {.count = 1, .infos = &tensor};
    SEAT_EQUAL(seat,
               pcclSynchronizeSharedState(
                   comm, &shared,
                   PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL),
               pcclSuccess);
}

static void unharmed(struct seat *seat)
{
    const struct odd *odd = seat->arg;
    struct vector v;
    if (odd->before) odd->before();
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    if (odd->then) odd->then();
    vector_open(&v, seat, comm, COUNT, true);
    for (int step = 0; step < 20; step++)
        SEAT_EQUAL(seat, vector_reduce(&v, step), pcclSuccess);
    synchronize(seat, comm);
    seat_report(seat, READY, 0);
    (void)seat_hear(seat); /* RANKS - 1 is killed here */
    SEAT_EQUAL(seat, vector_reduce(&v, 20), pcclRankConnectionLost);
    SEAT_EQUAL(seat, vector_reduce(&v, 21), pcclSuccess);
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void run_unharmed(const struct odd *odd)
{
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, unharmed, odd);
    for (int i = 0; i < RANKS; i++) (void)cluster_await(&c, i, READY);
    cluster_signal(&c, RANKS - 1, SIGKILL);
    for (int i = 0; i < RANKS - 1; i++) cluster_order(&c, i, 1);
    for (int i = 0; i < RANKS - 1; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

static void all_signals_masked(void **state)
{
    (void)state;
    run_unharmed(&(struct odd){.before = mask_all});
    run_unharmed(&(struct odd){.then = mask_all});
}

static void the_clock_jumps(void **state)
{
    (void)state;
    jumping = true;
    run_unharmed(&(struct odd){0});
    jumping = false;
}

static void another_root(void **state)
{
    (void)state;
    if (geteuid() != 0) skip();
    (void)snprintf(root, sizeof root, "/tmp/pccl-odd-XXXXXX");
    assert_non_null(mkdtemp(root));
    run_unharmed(&(struct odd){.then = change_root});
    run_unharmed(&(struct odd){.before = change_root});
    assert_int_equal(rmdir(root), 0); /* nothing is in it */
}

/* ------------------------------------------------------ what costs a member */

/* All but those of the test. */
static void close_all(const struct seat *seat)
{
    long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < most && fd < 4096; fd++)
        if (fd != seat->report_fd && fd != seat->order_fd) (void)close(fd);
}

static void *take_event(void *comm)
{
    pcclEvent_t event;
    return (void *)(intptr_t)pcclTakeEvent(comm, -1, &event);
}

/* The program's own files have those numbers now. */
static void with_other_files(struct seat *seat, pcclComm_t *comm)
{
    struct vector v;
    pthread_t waiting;
    void *result = NULL;
    int files[FILES];
    vector_open(&v, seat, comm, COUNT, true);
    SEAT_EQUAL(seat, pthread_create(&waiting, NULL, take_event, comm), 0);
    close_all(seat);
    for (int i = 0; i < FILES; i++)
        SEAT_CHECK(seat, (files[i] = memfd_create("own", 0)) >= 0);
    seat_report(seat, READY, 0);
    (void)seat_hear(seat);
    pcclResult_t rc = pcclSuccess;
    for (int step = 0; rc == pcclSuccess || rc == pcclRankConnectionLost;
         step++)
        rc = vector_reduce(&v, step);
    SEAT_EQUAL(seat, pthread_join(waiting, &result), 0);
    SEAT_EQUAL(seat, (intptr_t)result, pcclMasterConnectionFailed);
    seat_report(seat, LOST, rc);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    for (int i = 0; i < FILES; i++) {
        struct stat found;
        if (fstat(files[i], &found) == 0 && S_ISREG(found.st_mode))
            SEAT_EQUAL(seat, found.st_size, 0);
    }
    vector_close(&v);
}

static void *reduce_for_ever(void *arg)
{
    struct vector *v = arg;
    for (int step = 0;; step++) (void)vector_reduce(v, step);
    return NULL;
}

static void end_beside_a_call(struct seat *seat, pcclComm_t *comm)
{
    static struct vector v;
    pthread_t thread;
    vector_open(&v, seat, comm, COUNT, true);
    SEAT_EQUAL(seat, pthread_create(&thread, NULL, reduce_for_ever, &v), 0);
    seat_report(seat, READY, 0);
    (void)seat_hear(seat);
    exit(0); /* with exit handlers */
}

typedef void odd_end(struct seat *seat, pcclComm_t *comm);

static void bereaved(struct seat *seat)
{
    odd_end *const *end = seat->arg;
    struct vector v;
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    if (seat->index == ODD) {
        (*end)(seat, comm);
        return;
    }
    vector_open(&v, seat, comm, COUNT, true);
    seat_report(seat, READY, 0);
    (void)seat_hear(seat);
    pcclResult_t rc = pcclSuccess;
    for (int step = 0; rc == pcclSuccess; step++) rc = vector_reduce(&v, step);
    SEAT_EQUAL(seat, rc, pcclRankConnectionLost);
    SEAT_EQUAL(seat, vector_reduce(&v, 0), pcclSuccess);
    SEAT_EQUAL(seat, world_size(comm), RANKS - 1);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void run_bereaved(odd_end *end, int wanted)
{
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, bereaved, &end);
    for (int i = 0; i < RANKS; i++) (void)cluster_await(&c, i, READY);
    for (int i = 0; i < RANKS; i++) cluster_order(&c, i, 1);
    if (wanted) assert_int_equal(cluster_await(&c, ODD, LOST), wanted);
    for (int i = 0; i < RANKS; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

static void all_descriptors_closed(void **state)
{
    (void)state;
    run_bereaved(with_other_files, pcclMasterConnectionFailed);
}

static void ended_beside_a_call(void **state)
{
    (void)state;
    run_bereaved(end_beside_a_call, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_signals_masked),
        cmocka_unit_test(the_clock_jumps),
        cmocka_unit_test(another_root),
        cmocka_unit_test(all_descriptors_closed),
        cmocka_unit_test(ended_beside_a_call),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
