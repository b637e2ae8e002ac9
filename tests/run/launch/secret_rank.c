/* secret_rank.c - a rank of two whose vector, messages and shared state are
 * texts that a listener would find: the largest of equal vectors crosses the
 * network as it is (captured.py). secret_rank FILE goes on until FILE exists
 * (strangers.py). */
#include <pccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 300000, SMALL = 1000 };

static pcclComm_t *comm;
static pcclMember_t members[2];
static int rank;
static uint8_t vector[SIZE], other[SIZE];

static void check(pcclResult_t result, const char *call)
{
    char why[256] = "";
    if (result == pcclSuccess) return;
    (void)pcclGetLastError(comm, why, sizeof why);
    fprintf(stderr, "secret_rank: %s: %d: %s\n", call, (int)result, why);
    exit(1);
}

static void fill(uint8_t *to, size_t size, const char *secret)
{
    size_t length = strlen(secret);
    for (size_t i = 0; i < size; i++) to[i] = (uint8_t)secret[i % length];
}

static void expect(const uint8_t *got, size_t size, const char *what)
{
    if (memcmp(got, vector, size) == 0) return;
    fprintf(stderr, "secret_rank: %s is wrong\n", what);
    exit(1);
}

static void largest(size_t count)
{
    const pcclReduceDescriptor_t d = {
        .count = count,
        .op = pcclMax,
        .src_descriptor = {pcclUint8, pcclDistributionNone}};
    check(pcclAllReduce(vector, other, &d, comm, NULL), "pcclAllReduce");
    expect(other, count, "a vector");
}

static void reduce(void)
{
    fill(vector, SIZE, "a vector that nobody else may see; ");
    largest(SIZE);
    largest(16);
}

/* A message and a bulk transfer in each direction. */
static void exchange(void)
{
    const uint64_t to = members[1 - rank].id;
    fill(vector, SIZE, "a message for one member alone; ");
    memset(other, 0, SIZE);
    check(pcclPostMessage(comm, to, "head", 4, vector, SMALL), "post");
    check(pcclExpectBulk(comm, to, 1, other, SIZE), "pcclExpectBulk");
    check(pcclSendBulk(comm, to, 1, vector, SIZE), "pcclSendBulk");
    for (int i = 0; i < 3; i++) {
        pcclEvent_t event;
        check(pcclTakeEvent(comm, -1, &event), "pcclTakeEvent");
        check(event.result, "an event");
        if (event.kind == pcclEventMessage)
            expect(event.body, event.body_size, "a message");
        check(pcclReleaseEvent(comm, &event), "pcclReleaseEvent");
    }
    expect(other, SIZE, "a bulk transfer");
}

static void synchronize(void)
{
    uint8_t state[SMALL] = {0};
    pcclTensorInfo_t info = {.name = "a tensor whose name is secret",
                             .data = state,
                             .count = SMALL,
                             .datatype = pcclUint8};
    pcclSharedState_t shared = {
        .revision = rank == 0, .count = 1, .infos = &info};
    fill(vector, SMALL, "weights that were expensive to find; ");
    if (rank == 0) memcpy(state, vector, SMALL);
    check(pcclSynchronizeSharedState(
              comm, &shared, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
              NULL),
          "pcclSynchronizeSharedState");
    expect(state, SMALL, "the shared state");
}

int main(int argc, char **argv)
{
    int size;
    check(pcclInit(), "pcclInit");
    check(pcclConnectFromEnv(NULL, &comm), "pcclConnectFromEnv");
    check(pcclGetView(comm, NULL, &rank, &size, members, 2), "pcclGetView");
    if (size != 2) return 2;
    reduce();
    exchange();
    synchronize();
    printf("rank %d is there\n", rank);
    (void)fflush(stdout);
    for (uint8_t over = 0; argc > 1 && !over; over = other[0]) {
        vector[0] = access(argv[1], F_OK) == 0;
        const pcclReduceDescriptor_t d = {
            .count = 1,
            .op = pcclMax,
            .src_descriptor = {pcclUint8, pcclDistributionNone}};
        check(pcclAllReduce(vector, other, &d, comm, NULL), "pcclAllReduce");
    }
    check(pcclDestroyCommunicator(comm), "pcclDestroyCommunicator");
    return 0;
}
