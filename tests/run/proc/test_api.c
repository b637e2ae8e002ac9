/* test_api.c - the calls of pccl.h in one process that runs the master too:
 * refusals, the table of results, threads. Connecting: test_connect.c. */
#include "house.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static void *update_thread(void *comm)
{
    return (void *)(intptr_t)pcclUpdateTopology(comm);
}

static const pcclReduceDescriptor_t FOUR_FLOATS = {
    .count = 4, .op = pcclSum, .tag = 5, .src_descriptor = {pcclFloat, 0}};

/* ------------------------------------------------------------- the results */

typedef pcclResult_t call_on(pcclComm_t *comm);

static pcclResult_t call_attribute(pcclComm_t *comm)
{
    int value;
    return pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value);
}

static pcclResult_t call_pending(pcclComm_t *comm)
{
    bool pending;
    return pcclArePeersPending(comm, &pending);
}

static pcclResult_t call_reduce(pcclComm_t *comm)
{
    float x[4] = {1, 2, 3, 4};
    return pcclAllReduce(x, x, &FOUR_FLOATS, comm, NULL);
}

static pcclResult_t call_reduce_async(pcclComm_t *comm)
{
    float x[4] = {1, 2, 3, 4};
    pcclAsyncReduceOp_t handle;
    pcclResult_t rc = pcclAllReduceAsync(x, x, &FOUR_FLOATS, comm, &handle);
    return rc == pcclSuccess ? pcclAwaitAsyncReduce(&handle, NULL) : rc;
}

static pcclResult_t call_await(pcclComm_t *comm)
{
    pcclAsyncReduceOp_t handle = {comm, 99};
    return pcclAwaitAsyncReduce(&handle, NULL);
}

static pcclResult_t call_many(pcclComm_t *comm)
{
    float x[4] = {1, 2, 3, 4};
    pcclReduceOpDescriptor_t op = {x, x, FOUR_FLOATS};
    return pcclAllReduceMultipleWithRetry(&op, 1, comm, NULL, 1);
}

static pcclResult_t call_sync(pcclComm_t *comm)
{
    float x[4] = {0};
    pcclTensorInfo_t info = {
        .name = "x", .data = x, .count = 4, .datatype = pcclFloat};
    pcclSharedState_t shared = {.count = 1, .infos = &info};
    return pcclSynchronizeSharedState(
        comm, &shared, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL);
}

static pcclResult_t call_view(pcclComm_t *comm)
{
    int size;
    return pcclGetView(comm, NULL, NULL, &size, NULL, 0);
}

static pcclResult_t call_collective(pcclComm_t *comm)
{
    pcclCollective_t op = {.size = sizeof op, .kind = pcclKindBarrier};
    return pcclCollective(&op, comm, NULL);
}

static pcclResult_t call_optimize(pcclComm_t *comm)
{
    return pcclOptimizeTopology(comm);
}

/* Every call on a connected communicator, and its result in a world of one. */
static const struct row {
    call_on *call;
    pcclResult_t alone;
} ROWS[] = {
    {call_attribute, pcclSuccess},     {pcclUpdateTopology, pcclSuccess},
    {call_pending, pcclSuccess},       {call_sync, pcclSuccess},
    {call_view, pcclSuccess},          {call_collective, pcclSuccess},
    {call_optimize, pcclInvalidUsage}, {call_reduce, pcclSuccess},
    {call_reduce_async, pcclSuccess},  {call_many, pcclSuccess},
    {call_await, pcclInvalidArgument},
};
enum { ROW_COUNT = sizeof ROWS / sizeof ROWS[0] };

/* Runs first: pcclInit cannot be undone. */
static void before_init(void **state)
{
    (void)state;
    pcclCommCreateParams_t params = {.master_address = cluster_address(1)};
    pcclComm_t *comm = NULL;
    assert_int_equal(pcclCreateCommunicator(&params, &comm),
                     pcclNotInitialized);
    assert_int_equal(pcclConnect(NULL), pcclNotInitialized);
    assert_int_equal(pcclDestroyCommunicator(NULL), pcclNotInitialized);
    for (int i = 0; i < ROW_COUNT; i++)
        assert_int_equal(ROWS[i].call(NULL), pcclNotInitialized);
    pcclBuildInfo_t info;
    OK(pcclGetBuildInfo(&info));
    REFUSED(pcclGetBuildInfo(NULL));
    OK(pcclInit());
    OK(pcclInit());
}

static void before_connect(void **state)
{
    struct house *h = *state;
    for (int i = 0; i < ROW_COUNT; i++) {
        MISUSED(ROWS[i].call(h->a));
        REFUSED(ROWS[i].call(NULL));
    }
    REFUSED(pcclConnect(NULL));
    REFUSED(pcclDestroyCommunicator(NULL));
}

static void alone(void **state)
{
    struct house *h = *state;
    OK(pcclConnect(h->a));
    MISUSED(pcclConnect(h->a));
    for (int i = 0; i < ROW_COUNT; i++)
        assert_int_equal(ROWS[i].call(h->a), ROWS[i].alone);
    for (int i = 1; i <= 4; i++)
        assert_int_equal(attribute(h->a, (pcclAttribute_t)i), 1);
    bool pending = true;
    OK(pcclArePeersPending(h->a, &pending));
    assert_false(pending);
}

/* One member's collectives are copies: of every kind, quantized, out of place
 * and in place. */
static void alone_with_its_data(void **state)
{
    struct house *h = *state;
    static const float in[4] = {1, 2.5F, -3, 4e9F};
    float out[4] = {0};
    size_t bytes = sizeof in;
    size_t zero = 0;
    OK(pcclConnect(h->a));
    pcclReduceDescriptor_t d = FOUR_FLOATS;
    pcclReduceInfo_t info = {0};
    for (int op = pcclSum; op <= pcclMin; op++) {
        d.op = (pcclRedOp_t)op;
        memset(out, 0, sizeof out);
        OK(pcclAllReduce(in, out, &d, h->a, &info));
        assert_memory_equal(in, out, sizeof in);
        assert_int_equal(info.local_world_size, 1);
        OK(pcclAllReduce(out, out, &d, h->a, &info));
        assert_memory_equal(in, out, sizeof in);
    }
    d.op = pcclSum;
    d.quantization_options =
        (pcclQuantizationOptions_t){pcclUint8, pcclQuantMinMax};
    memset(out, 0, sizeof out);
    OK(pcclAllReduce(in, out, &d, h->a, &info));
    assert_memory_equal(in, out, sizeof in);
    for (int kind = pcclKindAllReduce; kind <= pcclKindReduceScatter; kind++) {
        pcclCollective_t op = {
            .size = sizeof op,
            .kind = (pcclCollectiveKind_t)kind,
            .sendbuf = in,
            .recvbuf = out,
            .count = kind % pcclKindReduceScatter == 0 ? 4 : bytes,
            .datatype = pcclFloat,
            .send_bytes = &bytes,
            .send_displs = &zero,
            .recv_bytes = &bytes,
            .recv_displs = &zero};
        OK(pcclCollective(&op, h->a, &info));
        assert_memory_equal(in, out, sizeof in);
        if (kind != pcclKindBroadcast && kind != pcclKindBarrier)
            memset(out, 0, sizeof out);
        else
            continue;
        OK(pcclCollective(&op, h->a, &info));
        assert_memory_equal(in, out, sizeof in);
    }
}

static void arguments(void **state)
{
    struct house *h = *state;
    pcclCommCreateParams_t params = {.master_address = h->address};
    pcclComm_t *comm = NULL;
    int value = 0;
    float x[8] = {0};
    pcclAsyncReduceOp_t handle;
    REFUSED(pcclCreateCommunicator(NULL, &comm));
    REFUSED(pcclCreateCommunicator(&params, NULL));
    REFUSED(pcclGetAttribute(h->a, 0, &value));
    REFUSED(pcclGetAttribute(h->a, 7, &value));
    REFUSED(pcclGetAttribute(h->a, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, NULL));
    REFUSED(pcclArePeersPending(h->a, NULL));
    REFUSED(pcclAllReduce(x, x, NULL, h->a, NULL));
    REFUSED(pcclAllReduce(NULL, x, &FOUR_FLOATS, h->a, NULL));
    REFUSED(pcclAllReduce(x, NULL, &FOUR_FLOATS, h->a, NULL));
    REFUSED(pcclAllReduce(x, x + 1, &FOUR_FLOATS, h->a, NULL));
    REFUSED(pcclAllReduce(x + 3, x, &FOUR_FLOATS, h->a, NULL));
    REFUSED(pcclAllReduceAsync(x, x, NULL, h->a, &handle));
    REFUSED(pcclAllReduceAsync(x, x, &FOUR_FLOATS, h->a, NULL));
    REFUSED(pcclAwaitAsyncReduce(NULL, NULL));
    pcclReduceDescriptor_t bad[6] = {FOUR_FLOATS, FOUR_FLOATS, FOUR_FLOATS,
                                     FOUR_FLOATS, FOUR_FLOATS, FOUR_FLOATS};
    bad[0].op = (pcclRedOp_t)5;
    bad[1].op = (pcclRedOp_t)-1;
    bad[2].src_descriptor.datatype = (pcclDataType_t)12;
    bad[3].quantization_options.algorithm = (pcclQuantizationAlgorithm_t)3;
    bad[4].quantization_options.algorithm = pcclQuantMinMax;
    bad[4].quantization_options.quantized_datatype = (pcclDataType_t)12;
    bad[5].count = SIZE_MAX / 2;
    for (int i = 0; i < 6; i++) {
        REFUSED(pcclAllReduce(x, x, &bad[i], h->a, NULL));
        REFUSED(pcclAllReduceAsync(x, x, &bad[i], h->a, &handle));
    }
    pcclReduceOpDescriptor_t op = {x, x, FOUR_FLOATS};
    REFUSED(pcclAllReduceMultipleWithRetry(NULL, 1, h->a, NULL, 1));
    REFUSED(pcclAllReduceMultipleWithRetry(&op, 0, h->a, NULL, 1));
    REFUSED(pcclAllReduceMultipleWithRetry(&op, 1, h->a, NULL, 0));
    REFUSED(pcclAllReduceMultipleWithRetry(&op, 1, h->a, NULL, -1));
    pcclSharedState_t shared = {.count = 1};
    REFUSED(pcclSynchronizeSharedState(h->a, NULL, 0, NULL));
    REFUSED(pcclSynchronizeSharedState(h->a, &shared, 0, NULL));
    shared.count = 0;
    REFUSED(pcclSynchronizeSharedState(h->a, &shared,
                                       (pcclSharedStateSyncStrategy_t)3, NULL));
    REFUSED(pcclCreateMaster(h->address, NULL));
    REFUSED(pcclRunMaster(NULL));
    REFUSED(pcclInterruptMaster(NULL));
    REFUSED(pcclMasterAwaitTermination(NULL));
    REFUSED(pcclDestroyMaster(NULL));
}

/* ------------------------------------------------------------------ handles */

static void handles(void **state)
{
    struct house *h = *state;
    float x[4] = {1, 2, 3, 4};
    float y[4] = {10, 20, 30, 40};
    float other[4] = {0};
    pcclAsyncReduceOp_t a;
    pcclAsyncReduceOp_t b;
    pcclReduceInfo_t info;
    OK(pcclAllReduceAsync(x, x, &FOUR_FLOATS, h->a, &a));
    REFUSED(pcclAllReduceAsync(other, other, &FOUR_FLOATS, h->a, &b));
    REFUSED(pcclAllReduce(other, other, &FOUR_FLOATS, h->a, NULL));
    assert_int_equal(pcclUpdateTopology(h->a), pcclPendingAsyncOps);
    assert_int_equal(call_sync(h->a), pcclPendingAsyncOps);
    OK(pcclAllReduceAsync(y, y, &FOUR_FLOATS, h->b, &b));
    OK(pcclAwaitAsyncReduce(&b, &info));
    bool done = false;
    while (!done) OK(pcclTestAsync(&a, &done));
    /* Complete does not mean awaited. */
    assert_int_equal(pcclUpdateTopology(h->a), pcclPendingAsyncOps);
    assert_int_equal(call_sync(h->a), pcclPendingAsyncOps);
    OK(pcclAwaitAsyncReduce(&a, &info));
    assert_int_equal(info.local_world_size, 2);
    assert_int_equal(info.tx_bytes, 16);
    assert_int_equal(info.rx_bytes, 16);
    assert_true(x[3] == 44 && y[0] == 11);
    info.local_world_size = 7;
    assert_int_equal(pcclAwaitAsyncReduce(&a, &info), pcclInvalidArgument);
    assert_int_equal(info.local_world_size, 7);
    a.tag = 1234;
    assert_int_equal(pcclAwaitAsyncReduce(&a, NULL), pcclInvalidArgument);
    REFUSED(pcclTestAsync(&a, &done));
}

/* A wait ends with the operation, with its timeout, or with a message; the
 * operation must still be awaited. */
static void waits(void **state)
{
    struct house *h = *state;
    float x[4] = {1, 2, 3, 4};
    float y[4] = {10, 20, 30, 40};
    pcclAsyncReduceOp_t a;
    pcclAsyncReduceOp_t b;
    bool done = true;
    OK(pcclAllReduceAsync(x, x, &FOUR_FLOATS, h->a, &a));
    OK(pcclWaitAsync(&a, 0, &done));
    assert_false(done);
    OK(pcclWaitAsync(&a, 1, &done));
    assert_false(done);
    REFUSED(pcclWaitAsync(NULL, 0, &done));
    REFUSED(pcclWaitAsync(&a, -1, &done));
    OK(pcclAllReduceAsync(y, y, &FOUR_FLOATS, h->b, &b));
    /* No thread makes calls for b: its library makes progress all the same. */
    while (!done) OK(pcclWaitAsync(&a, 1000, &done));
    OK(pcclAwaitAsyncReduce(&a, NULL));
    REFUSED(pcclWaitAsync(&a, 0, &done));
    OK(pcclAwaitAsyncReduce(&b, NULL));
    assert_true(x[0] == 11 && y[3] == 44);
}

/* Cancelled with its communicator; the peer gets the loss. */
static void destroyed_with_an_operation_in_flight(void **state)
{
    struct house *h = *state;
    float x[4] = {1, 2, 3, 4};
    pcclAsyncReduceOp_t handle;
    OK(pcclAllReduceAsync(x, x, &FOUR_FLOATS, h->a, &handle));
    OK(pcclDestroyCommunicator(h->a));
    h->a = NULL;
    assert_true(x[0] == 1 && x[3] == 4);
    assert_int_equal(call_reduce(h->b), pcclRankConnectionLost);
    assert_int_equal(call_reduce(h->b), pcclSuccess);
    assert_int_equal(attribute(h->b, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 1);
}

/* ------------------------------------------------------------------ threads */

struct side {
    pcclComm_t *comm;
    int bad;
    atomic_bool done;
};

static void *reduce_thread(void *arg)
{
    struct side *s = arg;
    float x[256];
    pcclReduceDescriptor_t d = FOUR_FLOATS;
    d.count = 256;
    for (int step = 0; step < 300; step++) {
        for (int i = 0; i < 256; i++) x[i] = (float)(i + step);
        s->bad += pcclAllReduce(x, x, &d, s->comm, NULL) != pcclSuccess;
        for (int i = 0; i < 256; i++) s->bad += x[i] != (float)(2 * (i + step));
    }
    atomic_store(&s->done, true);
    return NULL;
}

static void *pending_thread(void *arg)
{
    struct side *s = arg;
    for (int i = 0; i < 100; i++) {
        bool pending = true;
        s->bad += pcclArePeersPending(s->comm, &pending) != pcclSuccess;
        s->bad += pending;
    }
    return NULL;
}

/* Reductions in several threads, inquiries in others. */
static void reduces_beside_questions(void **state)
{
    struct house *h = *state;
    struct side s[4] = {
        {.comm = h->a}, {.comm = h->b}, {.comm = h->a}, {.comm = h->b}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = spawn(i < 2 ? reduce_thread : pending_thread, &s[i]);
    for (int i = 0; i < 4; i++) {
        (void)join(threads[i]);
        assert_int_equal(s[i].bad, 0);
    }
}

struct tagged {
    pcclComm_t *comm;
    uint64_t tag;
    int bad;
};

static void *tagged_thread(void *arg)
{
    struct tagged *t = arg;
    float x[64];
    pcclReduceDescriptor_t d = FOUR_FLOATS;
    d.count = 64;
    d.tag = t->tag;
    for (int step = 0; step < 100; step++) {
        for (int i = 0; i < 64; i++) x[i] = (float)(i + (int)t->tag);
        t->bad += pcclAllReduce(x, x, &d, t->comm, NULL) != pcclSuccess;
        t->bad += x[63] != (float)(2 * (63 + (int)t->tag));
    }
    return NULL;
}

/* Several threads wait on one communicator; one makes progress for all. */
static void reduces_from_many_threads(void **state)
{
    struct house *h = *state;
    struct tagged t[8];
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        t[i] = (struct tagged){i % 2 ? h->a : h->b, (uint64_t)i / 2, 0};
        threads[i] = spawn(tagged_thread, &t[i]);
    }
    for (int i = 0; i < 8; i++) {
        (void)join(threads[i]);
        assert_int_equal(t[i].bad, 0);
    }
}

/* ---------------------------------------------------------------- messages */

/* Its memory can be given back when the run that it came by is over, and
 * another one cannot be joined. */
static void message_outlives_its_run(void **state)
{
    struct house *h = *state;
    pcclMember_t members[2];
    pcclEvent_t event;
    int rank;
    OK(pcclGetView(h->b, NULL, &rank, NULL, members, 2));
    OK(pcclPostMessage(h->b, members[1 - rank].id, "head", 4, "body", 4));
    OK(pcclTakeEvent(h->a, -1, &event));
    assert_int_equal(event.kind, pcclEventMessage);
    OK(pcclInterruptMaster(h->master));
    OK(pcclMasterAwaitTermination(h->master));
    assert_int_equal(pcclUpdateTopology(h->a), pcclUpdateTopologyFailed);
    assert_int_equal(pcclConnect(h->a), pcclMasterConnectionFailed);
    assert_memory_equal(event.body, "body", 4);
    OK(pcclReleaseEvent(h->a, &event));
    assert_int_equal(event.kind, pcclEventNone);
}

/* ------------------------------------------------------------------ worlds */

static void *sum_to_root_thread(void *side)
{
    struct side *s = side;
    float in[4] = {1, 2, 3, 4}, out[4] = {-1, -1, -1, -1};
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindAllReduce,
                           .flow = pcclFlowToRoot,
                           .sendbuf = in,
                           .recvbuf = out,
                           .count = 4,
                           .datatype = pcclFloat,
                           .op = pcclSum};
    int rank;
    s->bad = pcclGetView(s->comm, NULL, &rank, NULL, NULL, 0) != pcclSuccess;
    s->bad += pcclCollective(&op, s->comm, NULL) != pcclSuccess;
    s->bad += out[3] != (rank == 0 ? 8 : -1);
    return NULL;
}

static void sum_to_root(const struct house *h)
{
    struct side s[2] = {{.comm = h->a}, {.comm = h->b}};
    pthread_t other = spawn(sum_to_root_thread, &s[1]);
    (void)sum_to_root_thread(&s[0]);
    (void)join(other);
    assert_int_equal(s[0].bad + s[1].bad, 0);
}

/* The epochs of the next run count to the same, with other ranks. */
static void another_run(void **state)
{
    struct house *h = *state;
    uint64_t epoch, again;
    sum_to_root(h);
    OK(pcclGetView(h->a, &epoch, NULL, NULL, NULL, 0));
    OK(pcclInterruptMaster(h->master));
    OK(pcclMasterAwaitTermination(h->master));
    assert_int_equal(pcclUpdateTopology(h->a), pcclUpdateTopologyFailed);
    assert_int_equal(pcclUpdateTopology(h->b), pcclUpdateTopologyFailed);
    OK(pcclDestroyMaster(h->master));
    assert_true(open_master(h, h->address));
    OK(pcclConnect(h->b));
    admit(h->b, h->a);
    OK(pcclGetView(h->a, &again, NULL, NULL, NULL, 0));
    assert_int_equal(again, epoch);
    sum_to_root(h);
}

/* One process, two groups: they vote together and reduce separately. */
static void two_groups(void **state)
{
    struct house *h = *state;
    OK(pcclConnect(h->a));
    h->b = create(h, 9);
    admit(h->a, h->b);
    assert_int_equal(attribute(h->a, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 2);
    assert_int_equal(attribute(h->b, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE), 1);
    assert_int_equal(attribute(h->b, PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS),
                     2);
    assert_int_equal(
        attribute(h->a, PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE), 1);
    assert_int_equal(call_reduce(h->a), pcclSuccess);
    pthread_t other = spawn(update_thread, h->b);
    OK(pcclUpdateTopology(h->a));
    assert_int_equal(join(other), pcclSuccess);
}

static void ipv6(void **state)
{
    (void)state;
    struct house h = {0};
    ccoip_socket_address_t at = {.inet = {.protocol = inetIPv6}};
    at.inet.ipv6.data[15] = 1;
    if (!open_master(&h, at)) {
        OK(pcclDestroyMaster(h.master));
        skip();
    }
    h.a = create(&h, 0);
    h.b = create(&h, 0);
    OK(pcclConnect(h.a));
    admit(h.a, h.b);
    struct side s[2] = {{.comm = h.a}, {.comm = h.b}};
    pthread_t other = spawn(reduce_thread, &s[1]);
    (void)reduce_thread(&s[0]);
    (void)join(other);
    assert_int_equal(s[0].bad + s[1].bad, 0);
    OK(pcclDestroyCommunicator(h.a));
    OK(pcclDestroyCommunicator(h.b));
    OK(pcclDestroyMaster(h.master));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_init),
        ONE(before_connect),
        ONE(alone),
        ONE(alone_with_its_data),
        ONE(two_groups),
        TWO(arguments),
        TWO(handles),
        TWO(waits),
        TWO(destroyed_with_an_operation_in_flight),
        TWO(reduces_beside_questions),
        TWO(reduces_from_many_threads),
        TWO(message_outlives_its_run),
        TWO(another_run),
        cmocka_unit_test(ipv6),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("proc/api", tests, NULL, NULL);
}
