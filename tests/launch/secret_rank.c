/* secret_rank.c - a rank whose vector is a text that a listener would find: the
 * largest of equal vectors crosses the network as it is (captured.py). */
#include <pccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 300000 };

static pcclComm_t *comm;
static uint8_t vector[SIZE], largest[SIZE];

static void check(pcclResult_t result, const char *call)
{
    char why[256] = "";
    if (result == pcclSuccess) return;
    (void)pcclGetLastError(comm, why, sizeof why);
    fprintf(stderr, "secret_rank: %s: %d: %s\n", call, (int)result, why);
    exit(1);
}

int main(void)
{
    static const char secret[] = "a vector that nobody else may see; ";
    for (size_t i = 0; i < SIZE; i++)
        vector[i] = (uint8_t)secret[i % (sizeof secret - 1)];
    check(pcclInit(), "pcclInit");
    check(pcclConnectFromEnv(NULL, &comm), "pcclConnectFromEnv");
    pcclReduceDescriptor_t d = {
        .count = SIZE,
        .op = pcclMax,
        .src_descriptor = {pcclUint8, pcclDistributionNone}};
    check(pcclAllReduce(vector, largest, &d, comm, NULL), "pcclAllReduce");
    d.count = 16; /* and a small one */
    check(pcclAllReduce(vector, largest, &d, comm, NULL), "pcclAllReduce");
    if (memcmp(vector, largest, SIZE) != 0) return 1;
    check(pcclDestroyCommunicator(comm), "pcclDestroyCommunicator");
    return 0;
}
