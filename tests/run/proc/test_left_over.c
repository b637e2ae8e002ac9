/* test_left_over.c - ranks that are killed at any step leave nothing behind
 * (rule L10e): no file in /dev/shm, in /tmp or in the folder that they run in.
 * The ranks have these folders for themselves, in a mount namespace. */
#define _GNU_SOURCE 1
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP = 1 };
enum { RANKS = 3, LARGE = 1 << 20 };
enum {
    CREATED,
    CONNECTED,
    GATHERED,
    SMALL,
    LARGE_SUM,
    SHARED,
    MESSAGE,
    LEAVING
};

static void synchronize(pcclComm_t *comm)
{
    float x[1000] = {0};
    pcclTensorInfo_t tensor = {.name = "x",
                               .data = x,
                               .count = 1000,
                               .datatype = pcclFloat,
                               .device_type = pcclDeviceCpu};
    pcclSharedState_t shared = {.revision = 1, .count = 1, .infos = &tensor};
    (void)pcclSynchronizeSharedState(
        comm, &shared, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL);
}

/* Large enough for CMA. */
static void send_round(pcclComm_t *comm)
{
    static char from[LARGE], to[2][LARGE];
    pcclMember_t members[RANKS];
    uint64_t epoch;
    int rank, size;
    if (pcclGetView(comm, &epoch, &rank, &size, members, RANKS) != pcclSuccess)
        return;
    for (int i = 0, k = 0; i < size; i++) {
        if (i == rank) continue;
        (void)pcclSendBulk(comm, members[i].id, 7, from, LARGE);
        (void)pcclExpectBulk(comm, members[i].id, 7, to[k++], LARGE);
    }
    pcclEvent_t event = {.kind = pcclEventNone};
    for (int k = 0; k < 2 * (size - 1); k++)
        (void)pcclTakeEvent(comm, 1000, &event);
}

/* Tells when it begins each step, and goes on at once: the killer comes at some
 * time within it. Where it meets the loss of another rank it does not care. */
static void body(struct seat *seat)
{
    struct vector small, large;
    seat_report(seat, STEP, CREATED);
    pcclComm_t *comm = seat_create(seat);
    seat_report(seat, STEP, CONNECTED);
    SEAT_EQUAL(seat, pcclConnect(comm), pcclSuccess);
    seat_report(seat, STEP, GATHERED);
    seat_gather(seat, comm, RANKS);
    vector_open(&small, seat, comm, 10, true);
    vector_open(&large, seat, comm, LARGE, true);
    seat_report(seat, STEP, SMALL);
    for (int i = 0; i < 50; i++) (void)vector_reduce(&small, i);
    seat_report(seat, STEP, LARGE_SUM);
    for (int i = 0; i < 5; i++) (void)vector_reduce(&large, i);
    seat_report(seat, STEP, SHARED);
    synchronize(comm);
    seat_report(seat, STEP, MESSAGE);
    send_round(comm);
    seat_report(seat, STEP, LEAVING);
    vector_close(&small);
    vector_close(&large);
    (void)pcclDestroyCommunicator(comm);
}

static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    bool empty = folder != NULL;
    for (const struct dirent *d; folder && (d = readdir(folder));) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        print_error("%s/%s is left over\n", path, d->d_name);
        empty = false;
    }
    if (folder) closedir(folder);
    return empty;
}

/* The folders are empty for this process and its children, and nobody else
 * sees them. The programs are open or loaded already. */
static bool hide(void)
{
    static const char *const paths[] = {"/dev/shm", "/tmp", "/var/tmp"};
    if (unshare(CLONE_NEWNS) != 0) return false;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return false;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (mount("none", paths[i], "tmpfs", 0, NULL) != 0) return false;
    return chdir("/tmp") == 0;
}

/* All ranks are killed in the step that the first one begins. */
static void kill_in(int step, int microseconds)
{
    struct cluster c;
    cluster_start(&c, "2");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, body, NULL);
    while (cluster_await(&c, 0, STEP) < step) continue;
    usleep((useconds_t)microseconds);
    for (int i = 0; i < RANKS; i++) cluster_signal(&c, i, SIGKILL);
    cluster_signal_master(&c, SIGKILL);
    cluster_stop(&c);
}

static void nothing_is_left(void **state)
{
    (void)state;
    if (!hide()) skip(); /* not root */
    assert_true(is_empty("/dev/shm") && is_empty("/tmp"));
    for (int step = CREATED; step <= LEAVING; step++)
        for (int time = 0; time < 2; time++) kill_in(step, 1500 * time);
    assert_true(is_empty("/dev/shm"));
    assert_true(is_empty("/tmp"));
    assert_true(is_empty("/var/tmp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_left)};
    return cmocka_run_group_tests_name("proc/left_over", tests, NULL, NULL);
}
