/* all_reduce.c - a minimal program with the native API: pccl-master -n 4
 * all_reduce */
#include <pccl.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    const char *master = getenv("PCCL_MASTER"); /* set by pccl-master */
    pcclCommCreateParams_t params = {0};
    ccoip_socket_address_t *to = &params.master_address;
    uint8_t *ip = to->inet.ipv4.data;
    if (!master || sscanf(master, "%hhu.%hhu.%hhu.%hhu:%hu", &ip[0], &ip[1],
                          &ip[2], &ip[3], &to->port) != 5)
        return 2;

    pcclComm_t *comm = NULL;
    float x[2] = {1, 2};
    pcclReduceDescriptor_t sum = {.count = 2, .op = pcclSum};
    sum.src_descriptor.datatype = pcclFloat;
    pcclReduceInfo_t info = {0};
    pcclResult_t result = pcclInit();
    if (!result) result = pcclCreateCommunicator(&params, &comm);
    if (!result) result = pcclConnect(comm);
    if (!result) result = pcclAllReduce(x, x, &sum, comm, &info);
    while (result == pcclRankConnectionLost) /* a failed all-reduce leaves x
                                                unchanged: repeat it */
        result = pcclAllReduce(x, x, &sum, comm, &info);
    if (!result)
        printf("%g %g, sum of %u peers\n", x[0], x[1], info.local_world_size);
    else
        fprintf(stderr, "all_reduce: %s\n", pcclGetErrorString(result));
    if (comm) pcclDestroyCommunicator(comm);
    return result != pcclSuccess;
}
