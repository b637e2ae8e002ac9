/* grid.c - a grid of shards and replicas: each member holds one shard of the
 * model, and the members with the same shard are a peer group, the replicas of
 * that shard. The gradients of a shard's tensors are averaged over its group,
 * several at once, as 8-bit codes with --quantize. In a training of FSDP inside
 * of hosts, the shard is the rank in its host.
 *
 *   pccl-master -n 6 --elastic grid --shards 2 --steps 200 --quantize
 *   pccl-master --join HOST:PORT -n 1 grid --shards 2 --shard 1 --steps 200
 *
 * The i-th member of a host holds shard i mod --shards, or --shard; so does the
 * one that --respawn puts in its place. Votes (who is admitted) are of all
 * groups; state and sums are of one. --die RANK:STEP kills a member. A lone
 * replica discards its steps until another one has come. */
#include <pccl_loop.h>

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 3, LARGEST = 4096 };
static const size_t sizes[TENSORS] = {64, 1000, LARGEST};
static const char *const names[TENSORS] = {"bias", "embedding", "matrix"};

struct run {
    pcclComm_t *comm;
    int64_t shards, shard, steps;
    int64_t die_rank, die_step;
    bool quantizes, accompanied;
    pcclLoop_t loop;
    uint64_t step; /* shared, as the weights are */
    float weights[TENSORS][LARGEST];
    float gradient[TENSORS][LARGEST];
    uint64_t random; /* of this member */
};

/* In [-1, 1). */
static float draw(struct run *r)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (float)(r->random >> 40) / (float)(1 << 23) - 1;
}

/* What the weights are to become: of this shard alone. */
static float target(const struct run *r, size_t tensor, size_t i)
{
    return sinf((float)(i + 7 * tensor) + (float)r->shard);
}

static float error_of(const struct run *r)
{
    float sum = 0;
    for (size_t t = 0; t < TENSORS; t++)
        for (size_t i = 0; i < sizes[t]; i++)
            sum += fabsf(r->weights[t][i] - target(r, t, i)) / (float)sizes[t];
    return sum / TENSORS;
}

/* A batch of this member: the gradient with noise. */
static void train(struct run *r)
{
    for (size_t t = 0; t < TENSORS; t++)
        for (size_t i = 0; i < sizes[t]; i++)
            r->gradient[t][i] =
                r->weights[t][i] - target(r, t, i) + draw(r) / 4;
}

/* The mean of the group's gradients. All tensors are under way together; what a
 * loss interrupts is repeated among the survivors. */
static pcclResult_t average(struct run *r, pcclReduceInfo_t *info)
{
    pcclReduceOpDescriptor_t ops[TENSORS] = {0};
    for (size_t t = 0; t < TENSORS; t++) {
        ops[t].sendbuf = ops[t].recvbuf = r->gradient[t];
        ops[t].descriptor = (pcclReduceDescriptor_t){
            .count = sizes[t], .op = pcclAvg, .tag = t};
        ops[t].descriptor.src_descriptor.datatype = pcclFloat;
        ops[t].descriptor.quantization_options.quantized_datatype =
            r->quantizes ? pcclUint8 : pcclFloat;
        ops[t].descriptor.quantization_options.algorithm =
            r->quantizes ? pcclQuantMinMax : pcclQuantNone;
    }
    return pcclAllReduceMultipleWithRetry(ops, TENSORS, r->comm, info, TENSORS);
}

/* Newcomers are admitted by the members of all groups at once; then each group
 * makes its shard equal. */
static pcclResult_t run_step(struct run *r, int launched)
{
    pcclReduceInfo_t info = {0};
    pcclResult_t rc = pcclLoopBegin(&r->loop);
    if (rc != pcclSuccess || (int64_t)r->step >= r->steps) return rc;
    if (launched == r->die_rank && (int64_t)r->step == r->die_step)
        (void)raise(SIGKILL);
    train(r);
    rc = average(r, &info);
    if (rc == pcclTooFewPeers) return pcclSuccess; /* than --min-ranks */
    if (rc != pcclSuccess) return rc;
    if (info.local_world_size > 1) r->accompanied = true;
    if (info.local_world_size == 1 && r->accompanied)
        return pcclSuccess; /* a lone replica: the step is discarded */
    for (size_t t = 0; t < TENSORS; t++)
        for (size_t i = 0; i < sizes[t]; i++)
            r->weights[t][i] -= r->gradient[t][i] / 8;
    r->step++;
    int rank = 0;
    (void)pcclGetAttribute(r->comm, PCCL_ATTRIBUTE_RANK, &rank);
    if (rank == 0 && r->step % 20 == 0)
        printf("shard %" PRId64 ": step %" PRIu64 ", %u replicas, error %.4f\n",
               r->shard, r->step, info.local_world_size, (double)error_of(r));
    return pcclSuccess;
}

/* False: an option is not understood. */
static bool parse(struct run *r, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *end = "";
        if (strcmp(argv[i], "--quantize") == 0) {
            r->quantizes = true;
            continue;
        }
        if (i + 1 == argc) return false;
        const char *option = argv[i++];
        int64_t number = strtoll(argv[i], &end, 10);
        if (strcmp(option, "--shards") == 0)
            r->shards = number;
        else if (strcmp(option, "--shard") == 0)
            r->shard = number;
        else if (strcmp(option, "--steps") == 0)
            r->steps = number;
        else if (strcmp(option, "--die") != 0 || *end != ':')
            return false;
        else
            r->die_rank = number, r->die_step = strtoll(end + 1, &end, 10);
        if (*end != '\0' || end == argv[i]) return false;
    }
    return r->shards > 0 && r->shard < r->shards && r->steps > 0;
}

static pcclResult_t join(struct run *r, int *launched)
{
    pcclCommCreateParams_t params = {0};
    const char *rank = getenv("LOCAL_RANK"); /* pccl-master sets it */
    if (r->shard < 0) r->shard = rank ? strtoll(rank, NULL, 10) % r->shards : 0;
    params.peer_group = (uint32_t)r->shard;
    pcclResult_t rc = pcclInit();
    if (!rc) rc = pcclConnectFromEnv(&params, &r->comm);
    if (!rc)
        rc = pcclGetAttribute(r->comm, PCCL_ATTRIBUTE_LAUNCH_RANK, launched);
    return rc;
}

int main(int argc, char **argv)
{
    static struct run r = {
        .shards = 2, .shard = -1, .steps = 200, .die_rank = -2};
    char why[256] = "";
    int launched = 0;
    if (!parse(&r, argc, argv)) {
        fprintf(stderr, "usage: grid [--shards N] [--shard I] [--steps N] "
                        "[--quantize] [--die RANK:STEP]\n");
        return 2;
    }
    pcclTensorInfo_t tensors[TENSORS + 1] = {
        {"step", &r.step, 1, pcclUint64, pcclDeviceCpu, false}};
    for (size_t t = 0; t < TENSORS; t++)
        tensors[1 + t] = (pcclTensorInfo_t){names[t],  r.weights[t],  sizes[t],
                                            pcclFloat, pcclDeviceCpu, false};
    pcclSharedState_t state = {.count = TENSORS + 1, .infos = tensors};
    pcclResult_t rc = join(&r, &launched);
    r.random = (uint64_t)launched + 2;
    r.loop = (pcclLoop_t){.comm = r.comm, .state = &state};
    while (!rc && (int64_t)r.step < r.steps) rc = run_step(&r, launched);
    if (!rc)
        printf("launched as %d: shard %" PRId64 ", error %.4f, w = %a\n",
               launched, r.shard, (double)error_of(&r),
               (double)r.weights[TENSORS - 1][LARGEST - 1]);
    if (r.comm) (void)pcclGetLastError(r.comm, why, sizeof why);
    if (rc) fprintf(stderr, "grid: %s %s\n", pcclGetErrorString(rc), why);
    if (r.comm) (void)pcclDestroyCommunicator(r.comm);
    return rc != pcclSuccess;
}
