/* open_rank.c FILE - a rank that sums with whoever is there until FILE exists,
 * and says how it came to an end (open_run.sh). */
#include <pccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pcclComm_t *comm;

static int fail(const char *call, pcclResult_t result)
{
    char why[256] = "";
    (void)pcclGetLastError(comm, why, sizeof why);
    printf("%s: %d: %s\n", call, (int)result, why);
    return 3;
}

int main(int argc, char **argv)
{
    static const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};
    bool said = false;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    pcclResult_t result = pcclInit();
    if (result == pcclSuccess) result = pcclConnectFromEnv(NULL, &comm);
    if (result != pcclSuccess || argc < 2) return fail("connect", result);
    while (access(argv[1], F_OK) != 0) {
        float one[1000], sum[1000];
        for (size_t i = 0; i < 1000; i++) one[i] = 1;
        pcclReduceDescriptor_t d = {
            .count = 1000,
            .op = pcclSum,
            .src_descriptor = {pcclFloat, pcclDistributionNone}};
        result = pcclAllReduce(one, sum, &d, comm, NULL);
        if (result == pcclSuccess && !said && sum[0] == 2) {
            said = true;
            puts("summed");
        }
        if (result == pcclMasterConnectionFailed) return fail("sum", result);
        result = pcclUpdateTopology(comm);
        if (result == pcclMasterConnectionFailed) return fail("update", result);
        (void)nanosleep(&moment, NULL);
    }
    (void)pcclDestroyCommunicator(comm);
    puts("left");
    return 0;
}
