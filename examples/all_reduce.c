/* all_reduce.c - a minimal program with the native API: pccl-master -n 4
 * all_reduce */
#include <pccl.h>
#include <stdio.h>

int main(void)
{
    pcclComm_t *comm = NULL;
    float x[2] = {1, 2};
    pcclReduceDescriptor_t sum = {.count = 2, .op = pcclSum};
    sum.src_descriptor.datatype = pcclFloat;
    pcclReduceInfo_t info = {0};
    pcclResult_t result = pcclInit();
    if (!result) result = pcclConnectFromEnv(NULL, &comm);
    if (!result) result = pcclAllReduce(x, x, &sum, comm, &info);
    while (result == pcclRankConnectionLost) /* a failed all-reduce leaves x
                                                unchanged: repeat it */
        result = pcclAllReduce(x, x, &sum, comm, &info);
    char why[256] = "";
    if (comm) (void)pcclGetLastError(comm, why, sizeof why);
    if (!result)
        printf("%g %g, sum of %u peers\n", x[0], x[1], info.local_world_size);
    else
        fprintf(stderr, "all_reduce: %s %s\n", pcclGetErrorString(result), why);
    if (comm) pcclDestroyCommunicator(comm);
    return result != pcclSuccess;
}
