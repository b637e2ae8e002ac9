/* diloco_common.c - training and reports of the DiLoCo examples. */
#include "diloco_common.h"

#include <getopt.h>
#include <inttypes.h>
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
    if (!*detail) (void)pcclTrainGetLastError(detail, sizeof detail);
    fprintf(stderr, "%s: %s%s%s\n", what, pcclGetErrorString(result),
            *detail ? ": " : "", detail);
    exit(1); /* the other members notice a loss and go on */
}

/* The weights of the model are one vector for the library. */
static void create_optimizers(struct diloco *d)
{
    const pcclTrainTensor_t weights = {"model", 1, d->model.count};
    const pcclOptimizerOptions_t inner = {.size = sizeof inner,
                                          .kind = pcclOptimizerAdamW,
                                          .rate = 3e-3f,
                                          .momentum = 0.9f,
                                          .beta2 = 0.99f,
                                          .epsilon = 1e-8f,
                                          .decay = 0.01f};
    const pcclDilocoOptions_t outer = {
        .size = sizeof outer, .rate = 0.5f, .momentum = 0.7f, .stat_count = 1};
    diloco_check(d, pcclOptimizerCreate(&weights, 1, &inner, &d->inner),
                 "pcclOptimizerCreate");
    diloco_check(d,
                 pcclDilocoCreate(&weights, 1,
                                  (const float *const[]){d->model.weights},
                                  &outer, &d->outer),
                 "pcclDilocoCreate");
    size_t *count = &d->state.count;
    diloco_check(d, pcclDilocoListState(d->outer, NULL, 0, count), "listing");
    d->state.infos = calloc(*count, sizeof *d->state.infos);
    diloco_check(d,
                 pcclDilocoListState(d->outer, d->state.infos, *count, count),
                 "listing");
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
    create_optimizers(d);
    diloco_look(d);
    join(d);
}

void diloco_end(struct diloco *d)
{
    int world, rank = rank_of(d, &world);
    printf("rank %d/%d: done, loss %.4f\n", rank, world,
           (double)d->at.stats[0]);
    diloco_check(d, pcclDestroyCommunicator(d->comm), "leaving the run");
    (void)pcclOptimizerDestroy(d->inner);
    (void)pcclDilocoDestroy(d->outer);
    free(d->state.infos);
    model_free(&d->model);
    text_free(&d->text);
}

/* -------------------------------------------------------------- training */

void diloco_inner(struct diloco *d)
{
    int world, rank = rank_of(d, &world);
    float loss = 0;
    float *weights = d->model.weights, *gradient = d->model.sums;
    diloco_check(d, pcclDilocoGetWeights(d->outer, &weights),
                 "pcclDilocoGetWeights");
    diloco_look(d);
    for (int i = 0; i < d->args.inner; i++) {
        d->model.state->step =
            (int64_t)d->at.begun * d->args.inner + i; /* selects the samples */
        model_gradient(&d->model, &d->text, d->args.batch * world, rank, world);
        const float samples = gradient[d->model.count + 1];
        loss += gradient[d->model.count] / samples;
        for (size_t k = 0; k < d->model.count; k++) gradient[k] /= samples;
        diloco_check(d,
                     pcclOptimizerStep(d->inner, &weights,
                                       (const float *const[]){gradient}),
                     "pcclOptimizerStep");
    }
    d->loss = loss / (float)d->args.inner;
}

bool diloco_left_alone(struct diloco *d, pcclResult_t result)
{
    diloco_look(d);
    if (result != pcclTooFewPeers) return false;
    d->alone = true;
    d->members = 1;
    printf("alone: a step is dropped\n");
    return true;
}

void diloco_look(struct diloco *d)
{
    d->at.size = sizeof d->at;
    diloco_check(d, pcclDilocoGetProgress(d->outer, &d->at),
                 "pcclDilocoGetProgress");
}

/* --------------------------------------------------------------- members */

void diloco_received(const struct diloco *d, uint64_t bytes)
{
    if (bytes > 0)
        printf("rank %d: received %" PRIu64 " bytes for step %" PRIu64 "\n",
               rank_of(d, &(int){0}), bytes, d->at.step);
}

void diloco_share(struct diloco *d, pcclSharedStateSyncStrategy_t strategy)
{
    pcclSharedStateSyncInfo_t info;
    diloco_check(
        d, pcclSynchronizeSharedState(d->comm, &d->state, strategy, &info),
        "pcclSynchronizeSharedState");
    d->state.revision++; /* revision of the next call */
    diloco_look(d);
    diloco_received(d, info.rx_bytes);
}

bool diloco_short(const struct diloco *d)
{
    if (d->alone && d->members < 2) return true;
    return d->members < d->args.min && d->at.step >= (uint64_t)d->args.min_step;
}

void diloco_gather(struct diloco *d)
{
    for (;;) {
        diloco_check(d, pcclUpdateTopology(d->comm), "pcclUpdateTopology");
        (void)rank_of(d, &d->members);
        if (!diloco_short(d)) break;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    d->alone = false;
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
    for (size_t i = 0; i < d->state.count; i++) {
        const pcclTensorInfo_t *t = &d->state.infos[i];
        size_t each = t->datatype == pcclUint64 ? sizeof(uint64_t) : 4;
        hash = hash_bytes(hash, t->data, t->count * each);
    }
    printf("outer %" PRIu64 " members %" PRIu64 " hash %016" PRIx64
           " loss %.4f\n",
           d->at.step, d->at.contributors, hash, (double)d->at.stats[0]);
}

void diloco_die(const struct diloco *d)
{
    if (d->first_rank == d->args.die_rank &&
        d->at.step == (uint64_t)d->args.die_step)
        raise(SIGKILL);
}
