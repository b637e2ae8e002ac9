/* hello_loop.c - the loop of PCCL 1.0's documentation, call by call: admit who
 * waits, make the state equal, reduce, repeat after a loss. A program that has
 * this loop may lose members and gain new ones at any time. (pccl_loop.h has it
 * as two calls.)
 *
 *   pccl-master                               # somewhere: the coordinator
 *   hello_loop [--steps N] HOST[:PORT]        # each member, at any time
 *
 * or pccl-master -n 4 --elastic hello_loop. HOST is a name, an IPv4 address or
 * [an IPv6 address]. The state is one number: the sum of what all members have
 * contributed so far. */
#include <pccl.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
    pcclComm_t *comm;
    uint64_t step, total; /* the shared state */
    uint64_t revision;    /* of the next synchronization */
    bool accompanied;     /* this member has had company */
};

/* The members vote unanimously, so a newcomer begins with the second call. */
static pcclResult_t admit(pcclComm_t *comm, bool *changed)
{
    bool pending = false;
    pcclResult_t rc = pcclArePeersPending(comm, &pending);
    if (rc == pcclSuccess && pending) rc = pcclUpdateTopology(comm);
    *changed = pending;
    return rc;
}

static pcclResult_t share(struct run *r)
{
    pcclTensorInfo_t infos[] = {
        {"step", &r->step, 1, pcclUint64, pcclDeviceCpu, false},
        {"total", &r->total, 1, pcclUint64, pcclDeviceCpu, false}};
    pcclSharedState_t state = {r->revision, 2, infos};
    pcclSharedStateSyncInfo_t info;
    pcclResult_t rc = pcclSynchronizeSharedState(
        r->comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
        &info);
    r->revision = state.revision + 1;
    return rc;
}

/* A loss leaves the contribution as it was, so the survivors repeat. The last
 * of several members has nobody to reduce with: *alone, the step is discarded
 * and it waits for company. */
static pcclResult_t reduce(struct run *r, bool *alone)
{
    uint64_t contribution = 1;
    pcclReduceInfo_t info = {0};
    pcclReduceDescriptor_t sum = {.count = 1, .op = pcclSum};
    sum.src_descriptor.datatype = pcclUint64;
    pcclResult_t rc;
    do {
        rc = pcclAllReduce(&contribution, &contribution, &sum, r->comm, &info);
    } while (rc == pcclRankConnectionLost);
    if (rc != pcclSuccess) return rc;
    if (info.local_world_size > 1) r->accompanied = true;
    const bool was_alone = *alone;
    *alone = info.local_world_size == 1 && r->accompanied;
    if (*alone && !was_alone)
        printf("alone after step %" PRIu64 ": waits for company\n", r->step);
    if (*alone) return rc;
    r->total += contribution;
    r->step++;
    printf("step %" PRIu64 ": %u members, total %" PRIu64 "\n", r->step,
           info.local_world_size, r->total);
    return rc;
}

static pcclResult_t loop(struct run *r, uint64_t steps)
{
    bool shares = true, alone = false;
    pcclResult_t rc = pcclSuccess;
    while (rc == pcclSuccess && r->step < steps) {
        if (shares) rc = share(r);
        if (rc == pcclSuccess) rc = reduce(r, &alone);
        if (rc == pcclSuccess && r->step < steps) rc = admit(r->comm, &shares);
    }
    return rc;
}

static pcclResult_t join(struct run *r, const char *master)
{
    pcclCommCreateParams_t params = {0};
    pcclResult_t rc = pcclInit();
    if (rc != pcclSuccess) return rc;
    if (!master) return pcclConnectFromEnv(NULL, &r->comm);
    rc = pcclParseAddress(master, 48148, &params.master_address);
    if (rc == pcclSuccess) rc = pcclCreateCommunicator(&params, &r->comm);
    return rc == pcclSuccess ? pcclConnect(r->comm) : rc;
}

int main(int argc, char **argv)
{
    struct run r = {0};
    uint64_t steps = 20;
    const char *master = NULL;
    char why[256] = "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc)
            steps = strtoull(argv[++i], NULL, 10);
        else
            master = argv[i];
    }
    pcclResult_t rc = join(&r, master);
    if (rc == pcclSuccess) rc = loop(&r, steps);
    if (r.comm) (void)pcclGetLastError(r.comm, why, sizeof why);
    if (rc != pcclSuccess)
        fprintf(stderr, "hello_loop: %s: %s %s\n",
                master ? master : "PCCL_MASTER", pcclGetErrorString(rc), why);
    if (r.comm) (void)pcclDestroyCommunicator(r.comm);
    return rc != pcclSuccess;
}
