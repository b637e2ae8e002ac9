/* gpt_run.c - what all ways of training share. */
#include "gpt_run.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Samples that are computed at once: what they leave fits into caches. */
#define AT_ONCE 4

/* ---------------------------------------------------- beginning and end */

void gpt_run_check(const struct gpt_run *run, pcclResult_t result,
                   const char *what)
{
    if (result == pcclSuccess) return;
    char detail[256] = "";
    (void)pcclTrainGetLastError(detail, sizeof detail);
    if (!*detail && run->comm)
        (void)pcclGetLastError(run->comm, detail, sizeof detail);
    fprintf(stderr, "%s: %s%s%s\n", what, pcclGetErrorString(result),
            *detail ? ": " : "", detail);
    exit(1);
}

void gpt_run_look(struct gpt_run *run)
{
    uint64_t epoch;
    if (!run->comm) return;
    gpt_run_check(
        run, pcclGetView(run->comm, &epoch, &run->rank, &run->world, NULL, 0),
        "pcclGetView");
}

static void list_tensors(struct gpt_run *run)
{
    struct gpt *gpt = &run->gpt;
    size_t at = 0;
    for (size_t i = 0; i < gpt->tensor_count; i++) {
        const struct gpt_tensor *t = &gpt->tensors[i];
        run->tensors[i] = (pcclTrainTensor_t){t->name, t->rows, t->columns};
        run->weights[i] = gpt->weights + at;
        run->gradients[i] = gpt->gradient + at;
        at += t->rows * t->columns;
    }
    run->tensors[gpt->tensor_count] = (pcclTrainTensor_t){"along", 1, GPT_ROOM};
    run->gradients[gpt->tensor_count] = gpt->gradient + at;
}

static void create_optimizer(struct gpt_run *run)
{
    pcclOptimizerOptions_t options = {.size = sizeof options,
                                      .kind = pcclOptimizerAdamW,
                                      .rate = run->args.rate,
                                      .momentum = 0.9f,
                                      .beta2 = 0.95f,
                                      .epsilon = 1e-8f,
                                      .decay = 0.1f};
    if (run->args.sgd) {
        options.kind = pcclOptimizerNesterov;
        options.momentum = 0;
    }
    gpt_run_check(run,
                  pcclOptimizerCreate(run->tensors, run->gpt.tensor_count,
                                      &options, &run->optimizer),
                  "pcclOptimizerCreate");
}

/* The master may start later than its members: see --patience. */
static void join(struct gpt_run *run)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
    pcclResult_t result = pcclInit();
    if (!result) result = pcclConnectFromEnv(NULL, &run->comm);
    for (int i = 0;
         result == pcclMasterConnectionFailed && i < 10 * run->args.patience;
         i++) {
        nanosleep(&pause, NULL);
        (void)pcclDestroyCommunicator(run->comm);
        run->comm = NULL;
        result = pcclConnectFromEnv(NULL, &run->comm);
    }
    gpt_run_check(run, result, "joining the run");
}

void gpt_run_begin(struct gpt_run *run, int argc, char **argv)
{
    *run = (struct gpt_run){.world = 1};
    const struct gpt_args *args = &run->args;
    if (!gpt_args_parse(&run->args, argc, argv)) exit(2);
    if (!gpt_text_load(&run->text, args->path, (size_t)args->context)) exit(1);
    const struct gpt_shape shape = {(size_t)args->layers, (size_t)args->heads,
                                    (size_t)args->width, (size_t)args->context};
    if (!gpt_create(&run->gpt, shape, AT_ONCE, (uint64_t)args->seed)) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    list_tensors(run);
    create_optimizer(run);
    setvbuf(stdout, NULL, _IOLBF, 0);
    const bool joins =
        strcmp(args->way, "alone") != 0 && strcmp(args->way, "speed") != 0;
    if (joins) join(run);
    gpt_run_look(run);
    run->first_rank = run->rank;
    run->members = run->world;
    printf("rank %d/%d: pid %d, %zu weights, %s\n", run->rank, run->world,
           (int)getpid(), run->gpt.count, gpt_product_kernel());
}

void gpt_run_end(struct gpt_run *run)
{
    gpt_run_look(run);
    if (strcmp(run->args.way, "speed") != 0)
        printf("rank %d/%d: done, loss %.6f\n", run->rank, run->world,
               (double)run->loss);
    if (run->comm)
        gpt_run_check(run, pcclDestroyCommunicator(run->comm),
                      "leaving the run");
    (void)pcclOptimizerDestroy(run->optimizer);
    gpt_free(&run->gpt);
    gpt_text_free(&run->text);
}

/* -------------------------------------------------------------- training */

int gpt_run_gradient(struct gpt_run *run, int64_t step, float *loss_out)
{
    const unsigned char *samples[AT_ONCE];
    const struct gpt_args *args = &run->args;
    int count = 0, some = 0;
    double loss = 0;
    if (run->rank >= args->batch) {
        fprintf(stderr, "a batch of %d has nothing for rank %d\n", args->batch,
                run->rank);
        exit(1);
    }
    memset(run->gpt.gradient, 0, run->gpt.count * sizeof(float));
    for (int i = run->rank; i < args->batch; i += run->world) {
        samples[some++] =
            gpt_text_sample(&run->text, (uint64_t)args->seed, step, i);
        count++;
        if (some < AT_ONCE && i + run->world < args->batch) continue;
        loss += gpt_gradient(&run->gpt, samples, (size_t)some);
        some = 0;
    }
    *loss_out = (float)loss;
    return count;
}

/* Rises over a twentieth of the steps, then falls linearly to a tenth. Plain
 * arithmetic: members may have different libraries of functions. */
static float rate_at(const struct gpt_args *args, int64_t step)
{
    float rise = 1 + (float)args->steps / 20;
    float at = fminf(1, (float)step / (float)args->steps);
    float fall = 1 - 0.9f * at;
    if (args->sgd) return args->rate;
    return args->rate * fall * fminf(1, (float)(step + 1) / rise);
}

void gpt_run_update(struct gpt_run *run, int64_t step)
{
    const size_t count = run->gpt.tensor_count;
    pcclOptimizer_t *optimizer = run->optimizer;
    const float *gradients[GPT_TENSORS_MOST];
    for (size_t i = 0; i < count; i++) gradients[i] = run->gradients[i];
    if (!run->args.sgd)
        gpt_run_check(run,
                      pcclClip(run->tensors, count, run->gradients, 1, NULL),
                      "pcclClip");
    gpt_run_check(run,
                  pcclOptimizerSetRate(optimizer, rate_at(&run->args, step)),
                  "pcclOptimizerSetRate");
    gpt_run_check(run, pcclOptimizerStep(optimizer, run->weights, gradients),
                  "pcclOptimizerStep");
}

/* --------------------------------------------------------------- members */

bool gpt_run_left_alone(struct gpt_run *run, pcclResult_t result,
                        uint32_t members)
{
    run->members = result == pcclTooFewPeers ? 1 : (int)members;
    if (run->members > 1) run->accompanied = true;
    run->alone = result == pcclTooFewPeers ||
                 (result == pcclSuccess && members == 1 && run->accompanied);
    if (run->alone) printf("alone: a step is dropped\n");
    return run->alone;
}

bool gpt_run_short(const struct gpt_run *run, int64_t step)
{
    if (run->alone && run->members < 2) return true;
    return run->members < run->args.min && step >= run->args.min_step;
}

void gpt_run_gather(struct gpt_run *run, int64_t step)
{
    for (;;) {
        gpt_run_check(run, pcclUpdateTopology(run->comm), "pcclUpdateTopology");
        gpt_run_look(run);
        run->members = run->world;
        if (!gpt_run_short(run, step)) break;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    run->alone = false;
}

void gpt_run_report(struct gpt_run *run, int64_t step, int stride)
{
    const struct gpt_args *args = &run->args;
    if (run->rank != 0) return;
    /* Counts bytes that are not summed yet as if all members had sent as
     * much. */
    const double sent =
        run->sent + (double)(run->unsaid + run->said) * run->members;
    printf("step %" PRId64 " members %d loss %.6f sent %.0f\n", step,
           run->members, (double)run->loss, sent);
    bool due = step / args->every != (step - stride) / args->every;
    if (!due && step < args->steps) return;
    double sum = 0;
    for (int i = 0; i < args->held; i++) {
        const unsigned char *sample = gpt_text_held(&run->text, i, args->held);
        sum += gpt_loss(&run->gpt, &sample, 1);
    }
    printf("held %" PRId64 " loss %.6f\n", step, sum / args->held);
}

void gpt_run_die(const struct gpt_run *run, int64_t step)
{
    if (run->first_rank == run->args.die_rank && step == run->args.die_step)
        raise(SIGKILL);
}
