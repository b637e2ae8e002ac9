/* test_cancel.c - a way out of every call that waits: pcclCancel from another
 * thread and from a signal handler, time limits, and pcclDestroyCommunicator.
 * What the calls waited for goes on, and is taken up. */
#include "house.h"
#include "waiting_calls.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CANCELLED(call) assert_int_equal((call), pcclCancelled)

enum { COUNT = 1000, TAG = 5 };

static float x[COUNT], y[COUNT];

static pcclReduceDescriptor_t sum(uint64_t tag)
{
    return (pcclReduceDescriptor_t){.count = COUNT,
                                    .op = pcclSum,
                                    .tag = tag,
                                    .src_descriptor = {pcclFloat, 0}};
}

/* ------------------------------------------------------ calls that wait */

static pcclResult_t synchronize(pcclComm_t *comm, float *data)
{
    pcclTensorInfo_t info = {
        .name = "x", .data = data, .count = COUNT, .datatype = pcclFloat};
    pcclSharedState_t shared = {.count = 1, .infos = &info};
    return pcclSynchronizeSharedState(
        comm, &shared, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL);
}

static pcclResult_t call_sync(pcclComm_t *comm)
{
    return synchronize(comm, x);
}

static pcclResult_t call_sync_other(pcclComm_t *comm)
{
    return synchronize(comm, y);
}

static pcclResult_t call_reduce(pcclComm_t *comm)
{
    pcclReduceDescriptor_t d = sum(TAG);
    return pcclAllReduce(x, x, &d, comm, NULL);
}

static pcclResult_t call_reduce_other(pcclComm_t *comm)
{
    pcclReduceDescriptor_t d = sum(TAG);
    return pcclAllReduce(y, y, &d, comm, NULL);
}

static pcclResult_t await_tag(pcclComm_t *comm, uint64_t tag)
{
    pcclAsyncReduceOp_t handle = {comm, tag};
    return pcclAwaitAsyncReduce(&handle, NULL);
}

static pcclResult_t call_await(pcclComm_t *comm)
{
    return await_tag(comm, TAG);
}

struct call {
    pcclResult_t (*run)(pcclComm_t *comm);
    pcclComm_t *comm;
    atomic_int thread; /* 0: not started */
    pthread_t id;
};

static void *run_call(void *arg)
{
    struct call *c = arg;
    atomic_store(&c->thread, (int)syscall(SYS_gettid));
    return (void *)(intptr_t)c->run(c->comm);
}

static void start(struct call *c)
{
    atomic_store(&c->thread, 0);
    c->id = spawn(run_call, c);
}

/* ------------------------------------------------- each call, cancelled */

/* In its thread the call waits for h->b, and is cancelled. */
static void cancel(const struct house *h, pcclResult_t (*run)(pcclComm_t *comm))
{
    struct call c = {.run = run, .comm = h->a};
    start(&c);
    OK(pcclCancel(h->a));
    assert_int_equal(join(c.id), pcclCancelled);
    CANCELLED(run(h->a)); /* until pcclResume */
    OK(pcclResume(h->a));
}

/* Both members make the call, in b's case its own. */
static void both(const struct house *h, pcclResult_t (*run)(pcclComm_t *comm),
                 pcclResult_t (*other)(pcclComm_t *comm))
{
    struct call c = {.run = other, .comm = h->b};
    start(&c);
    OK(run(h->a));
    assert_int_equal(join(c.id), pcclSuccess);
}

static void fill(void)
{
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
}

static void still_members(const struct house *h)
{
    fill();
    both(h, call_reduce, call_reduce_other);
    assert_true(x[1] == 2 && y[COUNT - 1] == COUNT);
    assert_int_equal(attribute(h->a, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 2);
}

static void cancelled_votes(void **state)
{
    struct house *h = *state;
    static pcclResult_t (*const votes[])(pcclComm_t *) = {
        call_update, call_pending, call_optimize};
    for (int i = 0; i < 3; i++) {
        cancel(h, votes[i]);
        if (votes[i] != call_pending) {
            char text[256];
            MISUSED(call_reduce(h->a));
            OK(pcclGetLastError(h->a, text, sizeof text));
            assert_non_null(strstr(text, "call it again"));
            MISUSED(call_sync(h->a));
            MISUSED(votes[2 - i](h->a));
        }
        both(h, votes[i], votes[i]);
        still_members(h);
    }
}

static void cancelled_synchronization(void **state)
{
    struct house *h = *state;
    fill();
    cancel(h, call_sync);
    REFUSED(call_sync_other(h->a));
    MISUSED(call_update(h->a));
    MISUSED(call_reduce(h->a));
    both(h, call_sync, call_sync_other);
    assert_memory_equal(x, y, sizeof x);
    still_members(h);
}

static void cancelled_reduction(void **state)
{
    struct house *h = *state;
    struct call c = {.run = call_reduce, .comm = h->a};
    fill();
    start(&c);
    OK(pcclCancel(h->a));
    assert_int_equal(join(c.id), pcclCancelled);
    CANCELLED(call_await(h->a));
    OK(pcclResume(h->a));
    REFUSED(call_reduce(h->a)); /* the tag is in flight */
    both(h, call_await, call_reduce_other);
    assert_true(x[1] == 2 && y[COUNT - 1] == COUNT);
    REFUSED(call_await(h->a)); /* it was awaited */
    still_members(h);
}

/* The other way on: it fails, for both. */
static void cancelled_and_failed(void **state)
{
    struct house *h = *state;
    fill();
    OK(pcclCancel(h->a));
    CANCELLED(call_reduce(h->a));
    OK(pcclResume(h->a));
    OK(pcclFailCollective(h->a, TAG));
    assert_int_equal(call_await(h->a), pcclOperationFailed);
    assert_true(x[1] == 1 && x[COUNT - 1] == COUNT - 1);
    assert_int_equal(call_reduce_other(h->b), pcclOperationFailed);
    still_members(h);
}

static void cancelled_events(void **state)
{
    struct house *h = *state;
    cancel(h, call_take);
    pcclEvent_t event;
    pcclMember_t members[2];
    OK(pcclGetView(h->b, NULL, NULL, NULL, members, 2));
    OK(pcclPostMessage(h->b, members[0].id, "a", 1, "bc", 2));
    OK(pcclTakeEvent(h->a, -1, &event));
    assert_int_equal(event.kind, pcclEventMessage);
    OK(pcclReleaseEvent(h->a, &event));
    bool done;
    pcclAsyncReduceOp_t handle;
    pcclReduceDescriptor_t d = sum(TAG);
    OK(pcclAllReduceAsync(x, x, &d, h->a, &handle));
    OK(pcclCancel(h->a));
    CANCELLED(pcclWaitAsync(&handle, 1000000, &done));
    OK(pcclResume(h->a));
    both(h, call_await, call_reduce_other);
}

/* The newcomer withdraws, and comes again. */
static void cancelled_connect(void **state)
{
    struct house *h = *state;
    OK(pcclConnect(h->a));
    h->b = create(h, 0);
    struct call c = {.run = call_connect, .comm = h->b};
    bool pending = false;
    start(&c);
    while (!pending) OK(pcclArePeersPending(h->a, &pending));
    OK(pcclCancel(h->b));
    assert_int_equal(join(c.id), pcclCancelled);
    CANCELLED(pcclConnect(h->b));
    while (pending) OK(pcclArePeersPending(h->a, &pending));
    OK(pcclUpdateTopology(h->a));
    assert_int_equal(attribute(h->a, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 1);
    MISUSED(call_update(h->b));
    OK(pcclResume(h->b));
    admit(h->a, h->b);
    still_members(h);
}

/* A listener that answers nothing, and one whose queue is full: the connection
 * itself takes as long as the deadline. */
static void cancelled_dial(void **state)
{
    (void)state;
    ccoip_socket_address_t at = cluster_address(0);
    OK(pcclInit());
    struct sockaddr_in to = {.sin_family = AF_INET};
    socklen_t size = sizeof to;
    memcpy(&to.sin_addr, at.inet.ipv4.data, 4);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&to, &size), 0);
    at.port = ntohs(to.sin_port);
    int others[8];
    for (int i = 0; i < 8; i++) {
        pcclCommCreateParams_t params = {.master_address = at};
        pcclCommOptions_t options = {
            .size = sizeof options, .rank_hint = -1, .deadline_ms = 1000000};
        pcclComm_t *comm;
        OK(pcclCreateCommunicator(&params, &comm));
        OK(pcclSetOptions(comm, &options));
        struct call c = {.run = call_connect, .comm = comm};
        start(&c);
        if (i % 2) wait_until_asleep(&c.thread);
        OK(pcclCancel(comm));
        assert_int_equal(join(c.id), pcclCancelled);
        OK(pcclResume(comm));
        OK(pcclSetTimeLimit(comm, 1));
        assert_int_equal(pcclConnect(comm), pcclTimedOut);
        OK(pcclDestroyCommunicator(comm));
        others[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(others[i], (struct sockaddr *)&to, sizeof to);
    }
    for (int i = 0; i < 8; i++) close(others[i]);
    close(listener);
}

/* ----------------------------------------------------------- time limits */

static void time_limits(void **state)
{
    struct house *h = *state;
    static pcclResult_t (*const calls[])(pcclComm_t *) = {
        call_update, call_pending, call_optimize, call_sync};
    for (int i = 0; i < 4; i++) {
        OK(pcclSetTimeLimit(h->a, 10));
        assert_int_equal(calls[i](h->a), pcclTimedOut);
        OK(pcclSetTimeLimit(h->a, 0));
        both(h, calls[i], calls[i]);
    }
    OK(pcclSetTimeLimit(h->a, 10));
    fill();
    assert_int_equal(call_reduce(h->a), pcclTimedOut);
    assert_int_equal(call_await(h->a), pcclTimedOut);
    assert_int_equal(call_take(h->a), pcclTimedOut);
    OK(pcclSetTimeLimit(h->a, INT64_MAX));
    both(h, call_await, call_reduce_other);
    assert_true(x[1] == 2 && y[COUNT - 1] == COUNT);
}

/* What a batch leaves in flight, its results say. */
static void batch(void **state)
{
    struct house *h = *state;
    pcclReduceOpDescriptor_t ops[4];
    pcclResult_t results[4];
    pcclReduceInfo_t infos[4];
    fill();
    for (uint64_t i = 0; i < 4; i++)
        ops[i] = (pcclReduceOpDescriptor_t){x + i, x + i, sum(i)};
    for (int i = 0; i < 4; i++) ops[i].descriptor.count = 1;
    ops[3].descriptor.op = (pcclRedOp_t)99;
    OK(pcclSetTimeLimit(h->a, 10));
    assert_int_equal(
        pcclAllReduceMultipleWithResults(ops, 4, h->a, results, infos, 2),
        pcclTimedOut);
    assert_int_equal(results[0], pcclTimedOut);
    assert_int_equal(results[1], pcclTimedOut);
    assert_int_equal(results[2], pcclRankConnectionLost);
    assert_int_equal(results[3], pcclRankConnectionLost);
    OK(pcclSetTimeLimit(h->a, 0));
    pcclAsyncReduceOp_t handle;
    for (int i = 0; i < 2; i++)
        OK(pcclAllReduceAsync(y + i, y + i, &ops[i].descriptor, h->b, &handle));
    for (uint64_t i = 0; i < 2; i++) {
        OK(await_tag(h->a, i));
        OK(await_tag(h->b, i));
    }
    REFUSED(await_tag(h->a, 2));
    assert_true(x[1] == 2 && y[1] == 2);
    /* The fourth one is wrong here; what came before it is done. */
    for (int i = 0; i < 3; i++)
        OK(pcclAllReduceAsync(y + i, y + i, &ops[i].descriptor, h->b, &handle));
    REFUSED(pcclAllReduceMultipleWithResults(ops, 4, h->a, results, infos, 4));
    for (uint64_t i = 0; i < 3; i++) {
        OK(results[i]);
        assert_int_equal(infos[i].local_world_size, 2);
        OK(await_tag(h->b, i));
    }
    REFUSED(results[3]);
    assert_int_equal(infos[3].local_world_size, 0);
    REFUSED(pcclAllReduceMultipleWithResults(ops, 4, h->a, NULL, infos, 4));
}

/* ---------------------------------------------------------------- signals */

static pcclComm_t *signalled;

static void on_signal(int number)
{
    (void)number;
    (void)pcclCancel(signalled);
}

/* The handler runs in the thread that waits, and in one that does not. */
static void from_a_signal_handler(void **state)
{
    struct house *h = *state;
    static pcclResult_t (*const calls[])(pcclComm_t *) = {
        call_update, call_sync, call_take, call_reduce};
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction old;
    signalled = h->a;
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    for (int i = 0; i < 8; i++) {
        struct call c = {.run = calls[i / 2], .comm = h->a};
        start(&c);
        wait_until_asleep(&c.thread);
        pthread_kill(i % 2 ? c.id : pthread_self(), SIGUSR1);
        assert_int_equal(join(c.id), pcclCancelled);
        OK(pcclResume(h->a));
        if (c.run == call_reduce)
            both(h, call_await, call_reduce_other);
        else if (c.run != call_take)
            both(h, c.run, c.run);
    }
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

/* -------------------------------------------------------------- destroyed */

static void destroyed_under_a_call(void **state)
{
    struct house *h = *state;
    static pcclResult_t (*const calls[])(pcclComm_t *) = {
        call_update, call_sync, call_take, call_reduce, call_connect};
    OK(pcclDestroyCommunicator(h->a));
    OK(call_update(h->b));
    for (int i = 0; i < 5; i++) {
        h->a = create(h, 0);
        if (calls[i] != call_connect) admit(h->b, h->a);
        struct call c = {.run = calls[i], .comm = h->a};
        struct call beside = {.run = call_pending, .comm = h->a};
        start(&c);
        wait_until_asleep(&c.thread);
        if (calls[i] != call_connect) {
            start(&beside);
            wait_until_asleep(&beside.thread);
        }
        OK(pcclDestroyCommunicator(h->a));
        assert_int_equal(join(c.id), pcclCancelled);
        if (calls[i] != call_connect)
            assert_int_equal(join(beside.id), pcclCancelled);
        /* To the other one it is a loss, or nothing. */
        pcclResult_t rc = call_reduce(h->b);
        if (rc == pcclRankConnectionLost) rc = call_reduce(h->b);
        OK(rc);
        OK(call_update(h->b));
        assert_int_equal(attribute(h->b, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 1);
    }
    h->a = NULL;
}

static void arguments(void **state)
{
    struct house *h = *state;
    REFUSED(pcclCancel(NULL));
    REFUSED(pcclResume(NULL));
    REFUSED(pcclSetTimeLimit(NULL, 1));
    OK(pcclCancel(h->a)); /* also before it is connected */
    CANCELLED(pcclConnect(h->a));
    MISUSED(call_update(h->a));
    OK(pcclResume(h->a));
    OK(pcclConnect(h->a));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ONE(arguments),
        TWO(cancelled_votes),
        TWO(cancelled_synchronization),
        TWO(cancelled_reduction),
        TWO(cancelled_and_failed),
        TWO(cancelled_events),
        ONE(cancelled_connect),
        cmocka_unit_test(cancelled_dial),
        TWO(time_limits),
        TWO(batch),
        TWO(from_a_signal_handler),
        TWO(destroyed_under_a_call),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("proc/cancel", tests, NULL, NULL);
}
