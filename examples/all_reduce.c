/* all_reduce.c - the native API in a few lines: pccl-master -n 4 all_reduce */
#include <pccl.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    const char *address = getenv("PCCL_MASTER"); /* pccl-master -n sets it */
    unsigned a, b, c, d, port;
    if (!address ||
        sscanf(address, "%3u.%3u.%3u.%3u:%5u", &a, &b, &c, &d, &port) != 5) {
        fprintf(stderr, "run me as: pccl-master -n 4 all_reduce\n");
        return 2;
    }
    pcclCommCreateParams_t params = {0};
    params.master_address.inet.ipv4 = (ccoip_ipv4_address_t){
        {(uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)d}};
    params.master_address.port = (uint16_t)port;

    pcclComm_t *comm;
    pcclResult_t result = pcclInit();
    if (!result) result = pcclCreateCommunicator(&params, &comm);
    if (!result) result = pcclConnect(comm);

    float x[4] = {1, 2, 3, 4};
    pcclReduceDescriptor_t sum = {.count = 4, .op = pcclSum};
    sum.src_descriptor.datatype = pcclFloat;
    pcclReduceInfo_t info = {0};
    if (!result) {
        do { /* again without a peer that was lost; x is as it was */
            result = pcclAllReduce(x, x, &sum, comm, &info);
        } while (result == pcclRankConnectionLost);
    }
    if (result) {
        fprintf(stderr, "all_reduce: %s\n", pcclGetErrorString(result));
        return 1;
    }
    printf("%g %g %g %g, the sum of %u peers\n", (double)x[0], (double)x[1],
           (double)x[2], (double)x[3], info.local_world_size);
    return pcclDestroyCommunicator(comm) != pcclSuccess;
}
