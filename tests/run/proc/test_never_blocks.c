/* test_never_blocks.c - functions that never block, as pccl.h says: they return
 * while the other member and the coordinator are stopped, and another thread
 * waits in a call on the same communicator, as it must. Deadlines are longer
 * than the patience of the test. With a short one, leaving ends as well. */
#include "cluster.h"
#include "waiting_calls.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READY = 1, DONE };
enum { WAITED_TAG = 5, TAG = 6, LARGE = 16 << 20 };

static uint64_t other; /* pcclMember_t.id */

/* ------------------------------------------------ calls that have to wait */

static pcclResult_t wait_nowhere(pcclComm_t *comm)
{
    return pcclCancel(comm) == pcclSuccess ? pcclCancelled : pcclInternalError;
}

static pcclResult_t wait_sync(pcclComm_t *comm)
{
    static float x[1000];
    pcclTensorInfo_t info = {
        .name = "x", .data = x, .count = 1000, .datatype = pcclFloat};
    pcclSharedState_t shared = {.count = 1, .infos = &info};
    return pcclSynchronizeSharedState(
        comm, &shared, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL);
}

static pcclReduceDescriptor_t sum(uint64_t tag, size_t count)
{
    return (pcclReduceDescriptor_t){.count = count,
                                    .op = pcclSum,
                                    .tag = tag,
                                    .src_descriptor = {pcclFloat, 0}};
}

static pcclResult_t wait_reduce(pcclComm_t *comm)
{
    static float x[LARGE / 4];
    pcclReduceDescriptor_t d = sum(WAITED_TAG, LARGE / 4);
    return pcclAllReduce(x, x, &d, comm, NULL);
}

static pcclResult_t wait_partial(pcclComm_t *comm)
{
    static float x[1000];
    pcclPartialDescriptor_t d = {.size = sizeof d,
                                 .tag = WAITED_TAG,
                                 .count = 1000,
                                 .datatype = pcclFloat,
                                 .op = pcclAvg,
                                 .weight = 1,
                                 .deadline_ms = 3000000};
    return pcclAllReducePartial(x, x, &d, comm, NULL);
}

static pcclResult_t (*const waits[])(pcclComm_t *) = {
    wait_nowhere, call_connect, call_update,  call_pending, call_optimize,
    wait_sync,    wait_reduce,  wait_partial, call_take};

/* --------------------------------------------- calls that return at once */

static void facts(const struct seat *seat, pcclComm_t *comm)
{
    pcclStatistics_t statistics = {.size = sizeof statistics};
    pcclProgress_t progress = {.size = sizeof progress};
    pcclCommOptions_t options = {.size = sizeof options};
    pcclMember_t members[2];
    uint64_t epoch;
    uint32_t traits;
    int value, rank, size;
    bool flag;
    (void)pcclGetAttribute(comm, PCCL_ATTRIBUTE_RANK, &value);
    (void)pcclGetView(comm, &epoch, &rank, &size, members, 2);
    (void)pcclSetTraits(comm, 1);
    (void)pcclGetTraits(comm, &traits);
    (void)pcclSetOptions(comm, &options);
    (void)pcclReportProgress(comm, 1, 1, 10);
    (void)pcclGetProgress(comm, &progress);
    SEAT_EQUAL(seat, pcclGetStatistics(comm, &statistics), pcclSuccess);
    SEAT_EQUAL(seat, pcclDrainRequested(&flag), pcclSuccess);
}

static void launches(pcclComm_t *comm)
{
    static float in[LARGE / 4], out[LARGE / 4], partial[1000];
    pcclReduceDescriptor_t d = sum(TAG, LARGE / 4);
    pcclCollective_t from_all = {.size = sizeof from_all,
                                 .kind = pcclKindBroadcast,
                                 .tag = TAG + 1,
                                 .recvbuf = in,
                                 .count = LARGE};
    pcclCollective_t choice = {
        .size = sizeof choice, .kind = pcclKindReduceScatter, .count = 100};
    pcclPartialDescriptor_t p = {.size = sizeof p,
                                 .tag = TAG,
                                 .count = 1000,
                                 .datatype = pcclFloat,
                                 .op = pcclAvg,
                                 .weight = 1,
                                 .deadline_ms = 3000000};
    pcclAsyncReduceOp_t handle;
    pcclPartialOp_t round;
    bool done, lost;
    if (pcclAllReduceAsync(in, out, &d, comm, &handle) == pcclSuccess)
        for (int i = 0; i < 100; i++) (void)pcclTestAsync(&handle, &done);
    if (pcclCollectiveAsync(&from_all, comm, &handle) == pcclSuccess)
        for (int i = 0; i < 100; i++) (void)pcclTestAsync(&handle, &done);
    (void)pcclChooseCollective(&choice, comm);
    (void)pcclTakeLoss(comm, &other, 1, &lost);
    (void)pcclFailCollective(comm, TAG);
    (void)pcclAllReducePartialAsync(partial, partial, &p, comm, &round);
}

static void messages(pcclComm_t *comm)
{
    static uint8_t out[LARGE], in[LARGE], body[1000];
    pcclWait_t wait = {.size = sizeof wait,
                       .kind = pcclWaitReceive,
                       .member = other,
                       .call = "MPI_Recv"};
    while (pcclPostMessage(comm, other, "x", 1, body, sizeof body) ==
           pcclSuccess)
        continue;
    (void)pcclSendBulk(comm, other, 1, out, LARGE);
    (void)pcclExpectBulk(comm, other, 2, in, LARGE);
    (void)pcclWaitBegins(comm, &wait);
    (void)pcclWaitEnds(comm, &wait);
}

/* ------------------------------------------------------------- the members */

struct call {
    pcclResult_t (*run)(pcclComm_t *comm);
    pcclComm_t *comm;
    atomic_int thread; /* 0: not started */
};

static void *run(void *arg)
{
    struct call *c = arg;
    atomic_store(&c->thread, (int)syscall(SYS_gettid));
    return (void *)(intptr_t)c->run(c->comm);
}

static void body(struct seat *seat)
{
    struct call call = {.run = *(pcclResult_t(*const *)(pcclComm_t *))seat->arg,
                        .comm = seat_join(seat)};
    pcclMember_t members[2];
    pthread_t thread;
    void *result = NULL;
    seat_gather(seat, call.comm, 2);
    SEAT_EQUAL(seat, pcclGetView(call.comm, NULL, NULL, NULL, members, 2),
               pcclSuccess);
    other = members[1 - seat->index].id;
    if (call.run == call_connect) call.comm = seat_create(seat);
    seat_report(seat, READY, 0);
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, pthread_create(&thread, NULL, run, &call), 0);
    if (call.run != wait_nowhere) wait_until_asleep(&call.thread);
    facts(seat, call.comm);
    launches(call.comm);
    messages(call.comm);
    facts(seat, call.comm);
    SEAT_EQUAL(seat, pcclCancel(call.comm), pcclSuccess);
    SEAT_EQUAL(seat, pthread_join(thread, &result), 0);
    SEAT_EQUAL(seat, (intptr_t)result, pcclCancelled); /* it did wait */
    seat_report(seat, DONE, 0);
    (void)seat_hear(seat); /* destroying takes deadlines */
}

static void test_every_function_beside_every_call(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct cluster c;
        cluster_start(&c, PATIENT);
        for (int r = 0; r < 2; r++) cluster_add(&c, body, &waits[i]);
        for (int r = 0; r < 2; r++) (void)cluster_await(&c, r, READY);
        cluster_signal(&c, 1, SIGSTOP);
        cluster_signal_master(&c, SIGSTOP);
        cluster_order(&c, 0, 1);
        (void)cluster_await(&c, 0, DONE);
        cluster_stop(&c);
    }
}

/* Its messages are not acknowledged, and the coordinator does not release it.
 */
static void leaver(struct seat *seat)
{
    pcclMember_t members[2];
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    SEAT_EQUAL(seat, pcclGetView(comm, NULL, NULL, NULL, members, 2),
               pcclSuccess);
    other = members[1 - seat->index].id;
    seat_report(seat, READY, 0);
    (void)seat_hear(seat);
    messages(comm);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_leaving_ends(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "1");
    for (int r = 0; r < 2; r++) cluster_add(&c, leaver, NULL);
    for (int r = 0; r < 2; r++) (void)cluster_await(&c, r, READY);
    cluster_signal(&c, 1, SIGSTOP);
    cluster_signal_master(&c, SIGSTOP);
    cluster_order(&c, 0, 1);
    cluster_finish(&c, 0);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_function_beside_every_call),
        cmocka_unit_test(test_leaving_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
