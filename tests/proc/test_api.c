/* test_api.c - the calls of pccl.h in one process that runs the master too:
 * layouts, refusals, the table of results, threads. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ----------------------------------------------- layouts of PCCL 1.0's ABI */

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define AT(type, field, offset)                                                \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field)
#define IS(name, value) _Static_assert((name) == (value), #name)

SIZE(pcclResult_t, 4);
SIZE(ccoip_ipv4_address_t, 4);
SIZE(ccoip_ipv6_address_t, 16);
SIZE(ccoip_inet_address_t, 24);
AT(ccoip_inet_address_t, ipv4, 4);
AT(ccoip_inet_address_t, ipv6, 8);
SIZE(ccoip_socket_address_t, 28);
AT(ccoip_socket_address_t, port, 24);
SIZE(pcclCommCreateParams_t, 36);
AT(pcclCommCreateParams_t, peer_group, 28);
AT(pcclCommCreateParams_t, p2p_connection_pool_size, 32);
SIZE(pcclReduceInfo_t, 24);
AT(pcclReduceInfo_t, tx_bytes, 8);
AT(pcclReduceInfo_t, rx_bytes, 16);
SIZE(pcclReduceOperandDescriptor_t, 8);
AT(pcclReduceOperandDescriptor_t, distribution_hint, 4);
SIZE(pcclQuantizationOptions_t, 8);
AT(pcclQuantizationOptions_t, algorithm, 4);
SIZE(pcclReduceDescriptor_t, 40);
AT(pcclReduceDescriptor_t, op, 8);
AT(pcclReduceDescriptor_t, tag, 16);
AT(pcclReduceDescriptor_t, src_descriptor, 24);
AT(pcclReduceDescriptor_t, quantization_options, 32);
SIZE(pcclReduceOpDescriptor_t, 56);
AT(pcclReduceOpDescriptor_t, recvbuf, 8);
AT(pcclReduceOpDescriptor_t, descriptor, 16);
SIZE(pcclAsyncReduceOp_t, 16);
AT(pcclAsyncReduceOp_t, tag, 8);
SIZE(pcclRankUuid_t, 16);
SIZE(pcclTensorInfo_t, 40);
AT(pcclTensorInfo_t, data, 8);
AT(pcclTensorInfo_t, count, 16);
AT(pcclTensorInfo_t, datatype, 24);
AT(pcclTensorInfo_t, device_type, 28);
AT(pcclTensorInfo_t, allow_content_inequality, 32);
SIZE(pcclSharedState_t, 24);
AT(pcclSharedState_t, count, 8);
AT(pcclSharedState_t, infos, 16);
SIZE(pcclSharedStateSyncInfo_t, 16);
AT(pcclSharedStateSyncInfo_t, rx_bytes, 8);
SIZE(pcclBuildInfo_t, 1);

IS(inetIPv4, 0);
IS(inetIPv6, 1);
IS(pcclSuccess, 0);
IS(pcclNotInitialized, 1);
IS(pcclInternalError, 2);
IS(pcclInvalidArgument, 3);
IS(pcclInvalidUsage, 4);
IS(pcclTooFewPeers, 5);
IS(pcclMasterConnectionFailed, 6);
IS(pcclRankConnectionFailed, 7);
IS(pcclRankConnectionLost, 8);
IS(pcclNoSharedStateAvailable, 9);
IS(pcclPendingAsyncOps, 10);
IS(pcclUpdateTopologyFailed, 11);
IS(pcclTopologyOptimizationFailed, 12);
IS(pcclUint8, 0);
IS(pcclInt8, 1);
IS(pcclInt16, 2);
IS(pcclUint16, 3);
IS(pcclUint32, 4);
IS(pcclInt32, 5);
IS(pcclUint64, 6);
IS(pcclInt64, 7);
IS(pcclFloat16, 8);
IS(pcclBFloat16, 9);
IS(pcclFloat, 10);
IS(pcclDouble, 11);
IS(pcclDeviceCpu, 0);
IS(pcclDeviceCuda, 1);
IS(pcclSum, 0);
IS(pcclAvg, 1);
IS(pcclProd, 2);
IS(pcclMax, 3);
IS(pcclMin, 4);
IS(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, 1);
IS(PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, 2);
IS(PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS, 3);
IS(PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE, 4);
IS(PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, 0);
IS(PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY, 1);
IS(PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY, 2);
IS(pcclDistributionNone, 0);
IS(pcclDistributionNormal, 1);
IS(pcclDistributionUniform, 2);
IS(pcclQuantNone, 0);
IS(pcclQuantMinMax, 1);
IS(pcclQuantZeroPointScale, 2);

/* ---------------------------------------------------------------- fixtures */

#define OK(call) assert_int_equal((call), pcclSuccess)
#define REFUSED(call) assert_int_equal((call), pcclInvalidArgument)
#define MISUSED(call) assert_int_equal((call), pcclInvalidUsage)

/* A master and up to two communicators. */
struct house {
    pcclMasterInstance_t *master;
    ccoip_socket_address_t address;
    pcclComm_t *a, *b;
};

static pcclComm_t *create(const struct house *h, uint32_t group)
{
    pcclCommCreateParams_t params = {.master_address = h->address,
                                     .peer_group = group,
                                     .p2p_connection_pool_size = 2};
    pcclComm_t *comm = NULL;
    OK(pcclCreateCommunicator(&params, &comm));
    return comm;
}

static bool open_master(struct house *h, ccoip_socket_address_t at)
{
    h->address = at;
    OK(pcclCreateMaster(at, &h->master));
    if (pcclRunMaster(h->master) != pcclSuccess) return false;
    OK(pcclGetMasterPort(h->master, &h->address.port));
    return true;
}

static void *connect_thread(void *comm)
{
    return (void *)(intptr_t)pcclConnect(comm);
}

static void *update_thread(void *comm)
{
    return (void *)(intptr_t)pcclUpdateTopology(comm);
}

static pthread_t spawn(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
    return thread;
}

static int join(pthread_t thread)
{
    void *result = NULL;
    assert_int_equal(pthread_join(thread, &result), 0);
    return (int)(intptr_t)result;
}

/* Lets b into a's world, which a is alone in. */
static void admit(pcclComm_t *a, pcclComm_t *b)
{
    pthread_t newcomer = spawn(connect_thread, b);
    bool pending = false;
    while (!pending) OK(pcclArePeersPending(a, &pending));
    OK(pcclUpdateTopology(a));
    assert_int_equal(join(newcomer), pcclSuccess);
}

static int open_one(void **state)
{
    struct house *h = calloc(1, sizeof *h);
    OK(pcclInit());
    if (!open_master(h, cluster_address(0))) return -1;
    h->a = create(h, 0);
    *state = h;
    return 0;
}

static int open_two(void **state)
{
    if (open_one(state) != 0) return -1;
    struct house *h = *state;
    h->b = create(h, 0);
    OK(pcclConnect(h->a));
    admit(h->a, h->b);
    return 0;
}

static int close_house(void **state)
{
    struct house *h = *state;
    if (h->a) OK(pcclDestroyCommunicator(h->a));
    if (h->b) OK(pcclDestroyCommunicator(h->b));
    OK(pcclDestroyMaster(h->master));
    free(h);
    return 0;
}

static const pcclReduceDescriptor_t FOUR_FLOATS = {
    .count = 4, .op = pcclSum, .tag = 5, .src_descriptor = {pcclFloat, 0}};

static int attribute(const pcclComm_t *comm, pcclAttribute_t which)
{
    int value = -1;
    OK(pcclGetAttribute(comm, which, &value));
    return value;
}

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
    static float x[4];
    pcclAsyncReduceOp_t handle;
    return pcclAllReduceAsync(x, x, &FOUR_FLOATS, comm, &handle);
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

/* Every call on a connected communicator, and its result when alone. */
static const struct row {
    call_on *call;
    pcclResult_t alone;
} ROWS[] = {
    {call_attribute, pcclSuccess},
    {pcclUpdateTopology, pcclSuccess},
    {call_pending, pcclSuccess},
    {call_sync, pcclSuccess},
    {call_view, pcclSuccess},
    {call_collective, pcclSuccess},
    {pcclOptimizeTopology, pcclInvalidUsage},
    {call_reduce, pcclTooFewPeers},
    {call_reduce_async, pcclTooFewPeers},
    {call_many, pcclTooFewPeers},
    {call_await, pcclRankConnectionLost},
};
enum { ROW_COUNT = sizeof ROWS / sizeof ROWS[0] };

/* Runs first: pcclInit is for ever. */
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
    REFUSED(pcclGetAttribute(h->a, 5, &value));
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
    /* Finished is not awaited. */
    assert_int_equal(pcclUpdateTopology(h->a), pcclPendingAsyncOps);
    assert_int_equal(call_sync(h->a), pcclPendingAsyncOps);
    OK(pcclAwaitAsyncReduce(&a, &info));
    assert_int_equal(info.local_world_size, 2);
    assert_int_equal(info.tx_bytes, 16);
    assert_int_equal(info.rx_bytes, 16);
    assert_true(x[3] == 44 && y[0] == 11);
    info.local_world_size = 7;
    assert_int_equal(pcclAwaitAsyncReduce(&a, &info), pcclRankConnectionLost);
    assert_int_equal(info.local_world_size, 7);
    a.tag = 1234;
    assert_int_equal(pcclAwaitAsyncReduce(&a, NULL), pcclRankConnectionLost);
    REFUSED(pcclTestAsync(&a, &done));
}

/* A wait ends with the operation, with its time, or with a message; what it
 * waited for stays to be awaited. */
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
    /* Nobody calls for b: its library moves the data all the same. */
    while (!done) OK(pcclWaitAsync(&a, 1000, &done));
    OK(pcclAwaitAsyncReduce(&a, NULL));
    REFUSED(pcclWaitAsync(&a, 0, &done));
    OK(pcclAwaitAsyncReduce(&b, NULL));
    assert_true(x[0] == 11 && y[3] == 44);
}

/* Cancelled with its communicator; the peer is told that it lost one. */
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
    assert_int_equal(call_reduce(h->b), pcclTooFewPeers);
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

/* Reduces in threads of their own, questions from others. */
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

/* Several threads wait on one communicator; one drives, all get theirs. */
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

/* --------------------------------------------------------------- connecting */

/* A port of this machine at which nobody listens. */
static int reserve(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static void refused_then_accepted(void **state)
{
    (void)state;
    struct house h = {0};
    uint16_t port;
    int fd = reserve(&port);
    h.address = cluster_address(port);
    pcclComm_t *comm = create(&h, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pcclConnect(comm), pcclMasterConnectionFailed);
    MISUSED(pcclUpdateTopology(comm));
    char text[128] = "";
    OK(pcclGetLastError(comm, text, sizeof text));
    assert_non_null(strstr(text, "cannot reach the master at 127.0.0.1:"));
    close(fd);
    assert_true(open_master(&h, cluster_address(port)));
    OK(pcclConnect(comm));
    assert_int_equal(attribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 1);
    OK(pcclDestroyCommunicator(comm));
    OK(pcclDestroyMaster(h.master));
}

/* A listener that takes the connection and says nothing. */
static void silent_master(void **state)
{
    (void)state;
    struct house h = {0};
    uint16_t port;
    int fd = reserve(&port);
    assert_int_equal(listen(fd, 4), 0);
    h.address = cluster_address(port);
    pcclComm_t *comm = create(&h, 0);
    pcclCommOptions_t options = {
        .size = sizeof options, .rank_hint = -1, .deadline_ms = 300};
    OK(pcclSetOptions(comm, &options));
    int64_t begun = now_ms();
    assert_int_equal(pcclConnect(comm), pcclMasterConnectionFailed);
    assert_in_range(now_ms() - begun, 300, 3000);
    OK(pcclDestroyCommunicator(comm));
    close(fd);
}

static void master_vanishes(void **state)
{
    struct house *h = *state;
    OK(pcclInterruptMaster(h->master));
    OK(pcclMasterAwaitTermination(h->master));
    assert_int_equal(pcclUpdateTopology(h->a), pcclUpdateTopologyFailed);
    int64_t begun = now_ms();
    OK(pcclDestroyCommunicator(h->a));
    OK(pcclDestroyCommunicator(h->b));
    h->a = h->b = NULL;
    assert_in_range(now_ms() - begun, 0, 1500);
}

/* One process, two groups: they vote together and reduce apart. */
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
    assert_int_equal(call_reduce(h->a), pcclTooFewPeers);
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

#define ONE(name) cmocka_unit_test_setup_teardown(name, open_one, close_house)
#define TWO(name) cmocka_unit_test_setup_teardown(name, open_two, close_house)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_init),
        ONE(before_connect),
        ONE(alone),
        ONE(two_groups),
        TWO(arguments),
        TWO(handles),
        TWO(waits),
        TWO(destroyed_with_an_operation_in_flight),
        TWO(reduces_beside_questions),
        TWO(reduces_from_many_threads),
        TWO(master_vanishes),
        cmocka_unit_test(refused_then_accepted),
        cmocka_unit_test(silent_master),
        cmocka_unit_test(ipv6),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    alarm(100);
    return cmocka_run_group_tests_name("proc/api", tests, NULL, NULL);
}
