/* successor_member.c FILE - a member whose every mean is checked, and that is
 * told of the end by FILE (successor.py). It makes the state equal in every
 * tenth pass, so a coordinator dies in each kind of call. Prints "step N W"
 * after each step, W members; "end N HASH" at the end; else why it ended. */
#include <pccl_loop.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 20000 };

static pcclComm_t *comm;
static float state[COUNT + 1]; /* the last element counts the steps */
static float change[COUNT + 2];

static int fail(const char *call, pcclResult_t result)
{
    char why[256] = "";
    (void)pcclGetLastError(comm, why, sizeof why);
    printf("%s: %d: %s\n", call, (int)result, why);
    return 3;
}

/* Small integers, so that sums and means are exact. */
static float value(uint64_t step, uint64_t i)
{
    return (float)((step * 1009 + i) % 4096);
}

static uint64_t digest(void)
{
    uint64_t h = 1469598103934665603u;
    const unsigned char *at = (const unsigned char *)state;
    for (size_t i = 0; i < sizeof state; i++) h = (h ^ at[i]) * 1099511628211u;
    return h;
}

/* Returns whether it was the last step, or -1: a mean was wrong. */
static int apply(void)
{
    uint64_t step = (uint64_t)state[COUNT];
    for (uint64_t i = 1; i < COUNT; i++) {
        if (change[i] != value(step, i)) {
            printf("element %" PRIu64 " of step %" PRIu64 " is %g\n", i, step,
                   change[i]);
            return -1;
        }
        state[i] = state[i] / 2 + change[i];
    }
    state[COUNT] += 1;
    return change[0] > 0;
}

int main(int argc, char **argv)
{
    static const struct timespec moment = {.tv_nsec = 2 * 1000 * 1000};
    pcclTensorInfo_t tensor = {.name = "state",
                               .data = state,
                               .count = COUNT + 1,
                               .datatype = pcclFloat,
                               .device_type = pcclDeviceCpu};
    pcclSharedState_t shared = {.count = 1, .infos = &tensor};
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    pcclResult_t rc = pcclInit();
    if (rc == pcclSuccess) rc = pcclConnectFromEnv(NULL, &comm);
    if (rc != pcclSuccess || argc < 2) return fail("connect", rc);
    pcclLoop_t loop = {.comm = comm, .state = &shared};
    int last = 0;
    for (uint64_t pass = 0; !last; pass++) {
        rc = pcclLoopBegin(&loop);
        if (rc != pcclSuccess) return fail("begin", rc);
        uint64_t step = (uint64_t)state[COUNT];
        for (uint64_t i = 1; i < COUNT; i++) change[i] = value(step, i);
        change[0] = access(argv[1], F_OK) == 0;
        rc = pcclLoopMean(&loop, change, COUNT, 1);
        if (rc == pcclTooFewPeers) continue;
        if (rc != pcclSuccess) return fail("mean", rc);
        last = apply();
        if (last < 0) return 4;
        printf("step %" PRIu64 " %u\n", step, loop.members);
        loop.shares = step % 10 == 9;
        (void)nanosleep(&moment, NULL);
    }
    printf("end %" PRIu64 " %016" PRIx64 "\n", (uint64_t)state[COUNT],
           digest());
    (void)pcclDestroyCommunicator(comm);
    return 0;
}
