/* test_contract.c - promises that no other test looks at alone: what the
 * library does to the process around it, how many operations there may be in
 * whatever order, and whom the attributes count. */
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READY = 1, DONE, WORLD };
enum { GO = 1 };
enum { COUNT = 200000, IN_FLIGHT_MAX = 256 };

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

static void await_all(struct cluster *c, int count, int kind)
{
    for (int i = 0; i < count; i++) (void)cluster_await(c, i, kind);
}

/* ---------------------------------------------------- the process around it */

static volatile sig_atomic_t pipe_signals;

static void on_pipe(int number)
{
    (void)number;
    pipe_signals++;
}

static void on_exit_of(int status, void *seat)
{
    (void)status;
    seat_tell(seat, DONE, -1);
}

static off_t size_of_stdout(void)
{
    struct stat st = {.st_size = -1};
    (void)fstat(STDOUT_FILENO, &st);
    return st.st_size;
}

/* Members and then the master are killed; with every line that can be logged.
 */
static void polite_body(struct seat *seat)
{
    int file = memfd_create("stdout", 0);
    SEAT_CHECK(seat, file >= 0 && dup2(file, STDOUT_FILENO) >= 0);
    signal(SIGPIPE, on_pipe);
    on_exit(on_exit_of, seat);
    setenv("PCCL_LOG_LEVEL", "TRACE", 1);
    file = memfd_create("stderr", 0);
    SEAT_CHECK(seat, file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 4);
    struct vector v;
    vector_open(&v, seat, comm, COUNT, seat->index % 2);
    pcclResult_t rc = pcclSuccess;
    seat_tell(seat, READY, 0);
    for (int step = 0; rc == pcclSuccess || rc == pcclRankConnectionLost;
         step += rc == pcclSuccess)
        rc = vector_reduce(&v, step);
    SEAT_CHECK(seat, rc == pcclTooFewPeers || rc == pcclMasterConnectionFailed);
    seat_tell(seat, WORLD, rc);
    (void)seat_hear(seat);
    for (int i = 0; i < 3; i++) (void)pcclUpdateTopology(comm);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    SEAT_EQUAL(seat, pipe_signals, 0);
    SEAT_EQUAL(seat, size_of_stdout(), 0);
    seat_tell(seat, DONE, 0);
    _exit(0);
}

static void no_signal_no_output_no_exit(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "2");
    for (int i = 0; i < 4; i++) cluster_add(c, polite_body, NULL);
    await_all(c, 4, READY);
    for (int i = 3; i > 0; i--) cluster_signal(c, i, SIGKILL);
    assert_int_equal(cluster_await(c, 0, WORLD), pcclTooFewPeers);
    cluster_signal_master(c, SIGKILL);
    cluster_order(c, 0, GO);
    assert_int_equal(cluster_await(c, 0, DONE), 0);
    cluster_finish(c, 0);
}

static void says(const struct seat *seat, const pcclComm_t *comm,
                 const char *part)
{
    char text[256] = "?";
    SEAT_EQUAL(seat, pcclGetLastError(comm, text, sizeof text), pcclSuccess);
    if (*part ? !strstr(text, part) : *text != '\0')
        seat_fail(seat, __FILE__, __LINE__, text, 0, 0);
}

/* -------------------------------------------------------- many, in any order
 */

static void many_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    static pcclAsyncReduceOp_t handles[IN_FLIGHT_MAX + 1];
    static float in[IN_FLIGHT_MAX + 1], out[IN_FLIGHT_MAX + 1];
    for (int k = 0; k <= IN_FLIGHT_MAX; k++) {
        /* Upwards here and downwards there; the last one has no room. */
        int tag = seat->index && k < IN_FLIGHT_MAX ? IN_FLIGHT_MAX - 1 - k : k;
        pcclReduceDescriptor_t d = {
            .count = 1, .tag = (uint64_t)tag, .src_descriptor = {pcclFloat, 0}};
        in[tag] = (float)(tag + seat->index);
        SEAT_EQUAL(
            seat,
            pcclAllReduceAsync(&in[tag], &out[tag], &d, comm, &handles[tag]),
            k < IN_FLIGHT_MAX ? pcclSuccess : pcclInternalError);
    }
    says(seat, comm, "256 operations are in flight");
    for (int k = 0; k < IN_FLIGHT_MAX; k++) {
        int tag = seat->index ? k : IN_FLIGHT_MAX - 1 - k;
        SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&handles[tag], NULL),
                   pcclSuccess);
        SEAT_EQUAL(seat, out[tag], 2 * tag + 1);
    }
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void as_many_as_there_is_room_for_in_any_order(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, many_body, NULL);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

/* -------------------------------------------------------------- error texts */

static void reasons_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    pcclMember_t me;
    float x = 1, y;
    SEAT_EQUAL(seat, pcclGetView(comm, NULL, NULL, NULL, &me, 1), pcclSuccess);
    const uint64_t ids[] = {me.id, me.id + 1, me.id};
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindAllReduce,
                           .sendbuf = &x,
                           .recvbuf = &y,
                           .count = 1,
                           .datatype = pcclFloat,
                           .members = ids,
                           .member_count = 3};
    SEAT_EQUAL(seat, pcclCollective(&op, comm, NULL), pcclInvalidArgument);
    says(seat, comm, "names a member twice");
    op.members = ids + 1;
    op.member_count = 1;
    SEAT_EQUAL(seat, pcclCollective(&op, comm, NULL), pcclInvalidArgument);
    says(seat, comm, "does not contain this peer");
    /* An older reason is not that of a failure that explains itself. */
    pcclReduceDescriptor_t d = {.count = 1, .src_descriptor = {pcclFloat, 0}};
    SEAT_EQUAL(seat, pcclAllReduce(&x, &y, &d, comm, NULL), pcclTooFewPeers);
    says(seat, comm, "");
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void failures_say_why(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    cluster_add(c, reasons_body, NULL);
    cluster_finish(c, 0);
}

/* ----------------------------------------------------- only accepted peers */

static void member_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    seat_tell(seat, READY, 0);
    (void)seat_hear(seat);
    bool pending = false;
    while (!pending)
        SEAT_EQUAL(seat, pcclArePeersPending(comm, &pending), pcclSuccess);
    SEAT_EQUAL(seat, world_size(comm), 2);
    seat_tell(seat, WORLD, 0);
    struct vector v;
    vector_open(&v, seat, comm, COUNT, true);
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, vector_reduce(&v, 0), pcclRankConnectionLost);
    SEAT_EQUAL(seat, world_size(comm), 1);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    SEAT_EQUAL(seat, world_size(comm), 2);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void newcomer_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    SEAT_EQUAL(seat, world_size(comm), 2);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

/* A newcomer that waits is not counted, after a loss neither. */
static void who_waits_is_not_counted(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, member_body, NULL);
    await_all(c, 2, READY);
    cluster_add(c, newcomer_body, NULL);
    for (int i = 0; i < 2; i++) cluster_order(c, i, GO);
    await_all(c, 2, WORLD);
    cluster_signal(c, 1, SIGKILL);
    cluster_order(c, 0, GO);
    cluster_finish(c, 0);
    cluster_finish(c, 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(no_signal_no_output_no_exit),
        TEST(as_many_as_there_is_room_for_in_any_order),
        TEST(failures_say_why),
        TEST(who_waits_is_not_counted),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    alarm(100);
    return cmocka_run_group_tests_name("proc/contract", tests, NULL, NULL);
}
