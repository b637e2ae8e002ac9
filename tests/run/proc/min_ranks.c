/* min_ranks.c - three ranks of pccl-master --min-ranks 2, of which two die: two
 * go on; the last one gets pcclTooFewPeers, its input as it was, and waits in
 * the update until the call is ended. Under the launcher, not CMocka. */
#include "../../patience.h"

#include <pccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) fail(__LINE__, #condition);                          \
    } while (0)

static pcclComm_t *comm;

static void fail(int line, const char *text)
{
    char why[256] = "";
    (void)pcclGetLastError(comm, why, sizeof why);
    fprintf(stderr, "min_ranks: line %d: %s: %s\n", line, text, why);
    exit(1);
}

static pcclResult_t sum(float *x, pcclReduceInfo_t *info)
{
    pcclReduceDescriptor_t d = {
        .count = 2,
        .op = pcclSum,
        .src_descriptor = {pcclFloat, pcclDistributionNone}};
    return pcclAllReduce(x, x, &d, comm, info);
}

static void *cancel(void *unused)
{
    (void)unused;
    CHECK(pcclCancel(comm) == pcclSuccess);
    return NULL;
}

/* The training waits; the call does not need to. */
static void wait_in_vain(void)
{
    pthread_t thread;
    bool pending = false;
    CHECK(pcclArePeersPending(comm, &pending) == pcclSuccess && pending);
    CHECK(pcclSetTimeLimit(comm, 50) == pcclSuccess);
    CHECK(pcclUpdateTopology(comm) == pcclTimedOut);
    CHECK(pcclSetTimeLimit(comm, PATIENCE_MS) == pcclSuccess);
    CHECK(pthread_create(&thread, NULL, cancel, NULL) == 0);
    CHECK(pcclUpdateTopology(comm) == pcclCancelled);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    int rank;
    float x[] = {1, 2};
    char why[256];
    pcclReduceInfo_t info;
    CHECK(pcclInit() == pcclSuccess);
    CHECK(pcclConnectFromEnv(NULL, &comm) == pcclSuccess);
    CHECK(pcclGetAttribute(comm, PCCL_ATTRIBUTE_RANK, &rank) == pcclSuccess);
    CHECK(sum(x, &info) == pcclSuccess && info.local_world_size == 3);
    if (rank == 2) (void)raise(SIGKILL);
    CHECK(sum(x, NULL) == pcclRankConnectionLost && x[0] == 3 && x[1] == 6);
    CHECK(sum(x, &info) == pcclSuccess && info.local_world_size == 2);
    if (rank == 1) (void)raise(SIGKILL);
    CHECK(sum(x, NULL) == pcclRankConnectionLost && x[0] == 6 && x[1] == 12);
    for (int i = 0; i < 3; i++)
        CHECK(sum(x, NULL) == pcclTooFewPeers && x[0] == 6 && x[1] == 12);
    CHECK(pcclGetLastError(comm, why, sizeof why) == pcclSuccess);
    CHECK(strcmp(why, "1 of at least 2 members are left: pcclUpdateTopology "
                      "waits for newcomers") == 0);
    wait_in_vain();
    CHECK(pcclDestroyCommunicator(comm) == pcclSuccess);
    return 0;
}
