/* diloco_common.c - training, optimizers and state of the DiLoCo examples. */
#include "diloco_common.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct option options[] = {
    {"outer", required_argument, NULL, 'o'},
    {"inner", required_argument, NULL, 'i'},
    {"batch", required_argument, NULL, 'b'},
    {"hidden", required_argument, NULL, 'h'},
    {"min", required_argument, NULL, 'm'},
    {"die", required_argument, NULL, 'd'},
    {"hashes", no_argument, NULL, 'p'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: %s [--outer STEPS] [--inner STEPS] [--batch N] [--hidden N]\n"
    "       [--min MEMBERS[:STEP]] [--die RANK:STEP] [--hashes] FILE\n";

/* ---------------------------------------------------------- command line */

/* Parses "N", or "N:M" if second is not NULL; true if N >= low. */
static bool numbers(const char *text, int low, int *first, int *second)
{
    char end = 0;
    int spare;
    int found = sscanf(text, "%d%c%d%c", first, &end, second ? second : &spare,
                       &(char){0});
    bool pair = second && found == 3 && end == ':' && *second >= 0;
    return (found == 1 || pair) && *first >= low && *first <= 1000000;
}

static bool args_parse(struct diloco_args *args, int argc, char **argv)
{
    *args = (struct diloco_args){.outer = 50,
                                 .inner = 20,
                                 .batch = 64,
                                 .hidden = 64,
                                 .min = 1,
                                 .die_rank = -1};
    bool ok = true;
    int option;
    while (ok && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'o':
            ok = numbers(optarg, 1, &args->outer, NULL);
            break;
        case 'i':
            ok = numbers(optarg, 1, &args->inner, NULL);
            break;
        case 'b':
            ok = numbers(optarg, 1, &args->batch, NULL);
            break;
        case 'h':
            ok = numbers(optarg, 1, &args->hidden, NULL);
            break;
        case 'm':
            ok = numbers(optarg, 1, &args->min, &args->min_step);
            break;
        case 'd':
            ok = numbers(optarg, 0, &args->die_rank, &args->die_step);
            break;
        case 'p':
            args->hashes = true;
            break;
        default:
            ok = false;
        }
    }
    if (!ok || optind != argc - 1) {
        fprintf(stderr, usage, argv[0]);
        return false;
    }
    args->path = argv[optind];
    return true;
}

/* ---------------------------------------------------- beginning and end */

void diloco_check(const struct diloco *d, pcclResult_t result, const char *what)
{
    if (result == pcclSuccess) return;
    char detail[256] = "";
    if (d->comm) (void)pcclGetLastError(d->comm, detail, sizeof detail);
    fprintf(stderr, "%s: %s%s%s\n", what, pcclGetErrorString(result),
            *detail ? ": " : "", detail);
    exit(1); /* the other members notice a loss and go on */
}

float *diloco_vector(const struct diloco *d)
{
    float *vector = calloc(d->count + 2, sizeof *vector);
    if (!vector) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return vector;
}

/* One tensor per value, so that no padding is compared. */
static void list_state(struct diloco *d)
{
    const pcclTensorInfo_t list[] = {
        {.name = "begun", .data = &d->begun, 1, pcclInt64},
        {.name = "step", .data = &d->step, 1, pcclInt64},
        {.name = "contributors", .data = &d->contributors, 1, pcclInt64},
        {.name = "loss", .data = &d->loss, 1, pcclFloat},
        {.name = "weights", .data = d->weights, d->count, pcclFloat},
        {.name = "momentum", .data = d->momentum, d->count, pcclFloat},
    };
    _Static_assert(sizeof list == sizeof d->tensors, "all are listed");
    memcpy(d->tensors, list, sizeof list);
    d->state.infos = d->tensors;
    d->state.count = sizeof list / sizeof *list;
}

static int rank_of(const struct diloco *d, int *world)
{
    int rank;
    diloco_check(d, pcclGetView(d->comm, &(uint64_t){0}, &rank, world, NULL, 0),
                 "pcclGetView");
    return rank;
}

static void join(struct diloco *d)
{
    pcclResult_t result = pcclInit();
    if (!result) result = pcclConnectFromEnv(NULL, &d->comm);
    diloco_check(d, result, "joining the run");
    d->first_rank = rank_of(d, &d->members);
}

void diloco_begin(struct diloco *d, int argc, char **argv)
{
    *d = (struct diloco){0};
    if (!args_parse(&d->args, argc, argv)) exit(2);
    if (!text_load(&d->text, d->args.path)) exit(1);
    if (!model_create(&d->model, (size_t)d->args.hidden)) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    d->count = d->model.count;
    d->first = diloco_vector(d);
    d->second = diloco_vector(d);
    d->weights = diloco_vector(d);
    d->momentum = diloco_vector(d);
    memcpy(d->weights, d->model.weights, d->count * sizeof(float));
    list_state(d);
    join(d);
}

void diloco_end(struct diloco *d)
{
    int world, rank = rank_of(d, &world);
    printf("rank %d/%d: done, loss %.4f\n", rank, world, (double)d->loss);
    diloco_check(d, pcclDestroyCommunicator(d->comm), "leaving the run");
    free(d->first);
    free(d->second);
    free(d->weights);
    free(d->momentum);
    model_free(&d->model);
    text_free(&d->text);
}

/* -------------------------------------------------------------- training */

/* AdamW (Loshchilov & Hutter, ICLR 2019). */
static void adam_step(struct diloco *d)
{
    const float rate = 3e-3f, keep1 = 0.9f, keep2 = 0.99f, decay = 0.01f;
    const float samples = d->model.sums[d->count + 1];
    float n = (float)++d->adam_steps;
    float bias1 = 1 - powf(keep1, n), bias2 = 1 - powf(keep2, n);
    for (size_t i = 0; i < d->count; i++) {
        float g = d->model.sums[i] / samples;
        d->first[i] = keep1 * d->first[i] + (1 - keep1) * g;
        d->second[i] = keep2 * d->second[i] + (1 - keep2) * g * g;
        float size = sqrtf(d->second[i] / bias2) + 1e-8f;
        float *w = &d->model.weights[i];
        *w -= rate * (d->first[i] / bias1 / size + decay * *w);
    }
}

void diloco_inner(struct diloco *d, float *delta)
{
    int world, rank = rank_of(d, &world);
    float loss = 0;
    memcpy(d->model.weights, d->weights, d->count * sizeof(float));
    for (int i = 0; i < d->args.inner; i++) {
        d->model.state->step =
            d->begun * d->args.inner + i; /* selects the samples */
        model_gradient(&d->model, &d->text, d->args.batch * world, rank, world);
        loss += d->model.sums[d->count] / d->model.sums[d->count + 1];
        adam_step(d);
    }
    for (size_t i = 0; i < d->count; i++)
        delta[i] = d->weights[i] - d->model.weights[i];
    delta[d->count] = loss / (float)d->args.inner;
    d->begun++;
}

pcclReduceDescriptor_t diloco_mean(const struct diloco *d)
{
    return (pcclReduceDescriptor_t){.count = d->count + 1,
                                    .op = pcclAvg,
                                    .src_descriptor.datatype = pcclFloat};
}

/* Sutskever et al., ICML 2013, with the gradient at the current point. */
void diloco_outer(struct diloco *d, const float *delta, int contributors)
{
    const float rate = 0.5f, kept = 0.7f;
    for (size_t i = 0; i < d->count; i++) {
        d->momentum[i] = kept * d->momentum[i] + delta[i];
        d->weights[i] -= rate * (delta[i] + kept * d->momentum[i]);
    }
    d->loss = delta[d->count];
    d->contributors = contributors;
    d->step++;
}

/* --------------------------------------------------------------- members */

void diloco_received(const struct diloco *d, uint64_t bytes)
{
    if (bytes > 0)
        printf("rank %d: received %" PRIu64 " bytes for step %" PRId64 "\n",
               rank_of(d, &(int){0}), bytes, d->step);
}

void diloco_share(struct diloco *d, pcclSharedStateSyncStrategy_t strategy)
{
    pcclSharedStateSyncInfo_t info;
    diloco_check(
        d, pcclSynchronizeSharedState(d->comm, &d->state, strategy, &info),
        "pcclSynchronizeSharedState");
    d->state.revision++; /* revision of the next call */
    diloco_received(d, info.rx_bytes);
}

bool diloco_short(const struct diloco *d)
{
    return d->members < d->args.min && d->step >= d->args.min_step;
}

void diloco_gather(struct diloco *d)
{
    for (;;) {
        diloco_check(d, pcclUpdateTopology(d->comm), "pcclUpdateTopology");
        (void)rank_of(d, &d->members);
        if (!diloco_short(d)) return;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
}

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

void diloco_report(const struct diloco *d)
{
    int rank = rank_of(d, &(int){0});
    if (!d->args.hashes && rank != 0) return;
    uint64_t hash = 0xcbf29ce484222325u;
    hash = hash_bytes(hash, &d->step, sizeof d->step);
    hash = hash_bytes(hash, d->weights, d->count * sizeof *d->weights);
    hash = hash_bytes(hash, d->momentum, d->count * sizeof *d->momentum);
    printf("outer %" PRId64 " members %" PRId64 " hash %016" PRIx64
           " loss %.4f\n",
           d->step, d->contributors, hash, (double)d->loss);
}

void diloco_die(const struct diloco *d)
{
    if (d->first_rank == d->args.die_rank && d->step == d->args.die_step)
        raise(SIGKILL);
}
