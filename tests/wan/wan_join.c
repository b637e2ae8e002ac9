/* wan_join.c - wan-join: members train in rounds, and the last peer joins them;
 * how long is a round?
 *
 * wan-join none|sync|prefetch MIB SECONDS ROUNDS
 *
 * wan-emulator starts it (join.sh). Each round is SECONDS of computing, then an
 * update if a newcomer waits, a synchronization of the state of MIB, an
 * all-reduce of 1 MiB, and the outer step, which changes every block of the
 * state: as in DiLoCo the state stays as it is while the members compute. The
 * last peer arrives early in the second round: it never joins (none), it
 * joins, and gets the state in the synchronization (sync), or it downloads it
 * before (prefetch). */
#include "../../include/pccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 65536, GRADIENT = 1 << 18 };

struct run {
    int peer, peers, rounds;
    double seconds;
    const char *mode;
    pcclComm_t *comm;
    pcclTensorInfo_t tensor;
    pcclSharedState_t state;
    float *gradient;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void compute(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec =
                             (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0) continue;
}

static void need(const struct run *r, pcclResult_t rc, const char *what)
{
    char why[256] = "";
    if (rc == pcclSuccess) return;
    if (r->comm) (void)pcclGetLastError(r->comm, why, sizeof why);
    fprintf(stderr, "wan-join %d: %s: %s; %s\n", r->peer, what,
            pcclGetErrorString(rc), why);
    exit(1);
}

static int world(const struct run *r)
{
    int size = 0;
    need(r,
         pcclGetAttribute(r->comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &size),
         "world");
    return size;
}

/* The same on all members. */
static void outer_step(struct run *r)
{
    uint8_t *bytes = r->tensor.data;
    for (size_t at = 0; at < r->tensor.count; at += BLOCK)
        bytes[at] = (uint8_t)(bytes[at] + 1 + at / BLOCK);
}

/* What is done together, from the end of the computing on. */
static void end_round(struct run *r, size_t *received)
{
    pcclSharedStateSyncInfo_t info = {0, 0};
    const pcclReduceDescriptor_t d = {
        .count = GRADIENT, .op = pcclSum, .src_descriptor.datatype = pcclFloat};
    need(r,
         pcclSynchronizeSharedState(
             r->comm, &r->state,
             PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &info),
         "synchronization");
    *received = info.rx_bytes;
    need(r, pcclAllReduce(r->gradient, r->gradient, &d, r->comm, NULL),
         "all-reduce");
    outer_step(r);
    r->state.revision++;
}

/* From the round on that the revision tells. */
static void train(struct run *r)
{
    size_t received;
    for (int i = (int)r->state.revision - 1; i < r->rounds; i++) {
        bool pending = false;
        double start = now();
        need(r, pcclOfferState(r->comm, &r->state, NULL), "offer");
        compute(r->seconds);
        double stand = now();
        need(r, pcclArePeersPending(r->comm, &pending), "pending");
        if (pending) need(r, pcclUpdateTopology(r->comm), "update");
        end_round(r, &received);
        double end = now();
        if (r->peer == 1)
            printf("{\"mode\":\"%s\",\"round\":%d,\"members\":%d,"
                   "\"seconds\":%.2f,\"together\":%.2f}\n",
                   r->mode, i, world(r), end - start, end - stand);
        fflush(stdout);
    }
}

static void be_member(struct run *r)
{
    need(r, pcclConnect(r->comm), "connect");
    while (world(r) < r->peers - 1)
        need(r, pcclUpdateTopology(r->comm), "update");
    train(r);
}

static void be_newcomer(struct run *r)
{
    size_t received;
    pcclPrefetchInfo_t info = {0};
    compute(1.1 * r->seconds);
    if (strcmp(r->mode, "none") == 0) return;
    double start = now();
    pcclResult_t rc;
    do {
        if (strcmp(r->mode, "prefetch") == 0)
            need(r, pcclPrefetch(r->comm, &r->state, NULL, &info), "prefetch");
        double fetched = now();
        rc = pcclConnect(r->comm);
        printf("{\"mode\":\"%s\",\"fetched_bytes\":%zu,\"fetching\":%.2f,"
               "\"connected\":%s}\n",
               r->mode, info.rx_bytes, fetched - start,
               rc == pcclSuccess ? "true" : "false");
        fflush(stdout);
    } while (rc == pcclMasterConnectionFailed &&
             strcmp(r->mode, "prefetch") == 0);
    need(r, rc, "connect");
    end_round(r, &received);
    printf("{\"mode\":\"%s\",\"joined_after\":%.2f,\"sync_bytes\":%zu}\n",
           r->mode, now() - start, received);
    fflush(stdout);
    train(r);
}

static void create(struct run *r)
{
    pcclCommCreateParams_t params = {.peer_group = 0};
    const char *text = getenv("WAN_MASTER");
    char address[64];
    if (!text) exit(2);
    snprintf(address, sizeof address, "%s:48148", text);
    need(r, pcclInit(), "init");
    need(r, pcclParseAddress(address, 48148, &params.master_address),
         "address of the master");
    need(r, pcclCreateCommunicator(&params, &r->comm), "communicator");
}

int main(int argc, char **argv)
{
    const char *peer = getenv("WAN_PEER"), *peers = getenv("WAN_PEERS");
    if (argc != 5 || !peer || !peers) {
        fprintf(stderr, "usage: wan-join none|sync|prefetch MIB SECONDS "
                        "ROUNDS, under wan-emulator\n");
        return 2;
    }
    struct run r = {.mode = argv[1],
                    .peer = (int)strtol(peer, NULL, 10),
                    .peers = (int)strtol(peers, NULL, 10),
                    .seconds = strtod(argv[3], NULL),
                    .rounds = (int)strtol(argv[4], NULL, 10)};
    size_t size = (size_t)strtoul(argv[2], NULL, 10) << 20;
    bool member = r.peer < r.peers;
    r.gradient = calloc(GRADIENT, sizeof *r.gradient);
    r.tensor = (pcclTensorInfo_t){.name = "state",
                                  .data = malloc(size),
                                  .count = size,
                                  .datatype = pcclUint8};
    if (!r.gradient || !r.tensor.data) return 1;
    memset(r.tensor.data, member ? 1 : 2, size);
    r.state = (pcclSharedState_t){member ? 1 : 0, 1, &r.tensor};
    create(&r);
    if (member)
        be_member(&r);
    else
        be_newcomer(&r);
    need(&r, pcclDestroyCommunicator(r.comm), "end");
    return 0;
}
