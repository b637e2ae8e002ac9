/* gpt_ddp.c - every step is one step of all members, with one gradient.
 *
 * The samples of a step are the same, whoever computes them. Members that are
 * lost in a step take their samples along: the gradient is the mean over those
 * that are in it. A lone survivor drops the step, and waits for company.
 * Weights, moments and the step are the shared state, which a newcomer takes
 * from the others. */
#include "gpt_run.h"

#include <pccl_loop.h>
#include <stdlib.h>

/* What travels behind the gradient. */
enum { LOSS, SAMPLES, SENT, ALONG };
_Static_assert(ALONG <= GPT_ROOM, "room behind the gradient");

struct ddp {
    struct gpt_run *run;
    int64_t step;
    pcclPowerSgd_t *powersgd; /* NULL: gradients travel as they are */
    pcclSparta_t *sparta;     /* NULL: weights do not travel */
    pcclTensorInfo_t *infos;
    pcclSharedState_t state;
};

/* Sums of gradients, losses and samples. */
static pcclResult_t sum_up(struct ddp *d, pcclReduceInfo_t *info)
{
    struct gpt *gpt = &d->run->gpt;
    pcclReduceDescriptor_t sum = {.count = gpt->count + ALONG, .op = pcclSum};
    sum.src_descriptor.datatype = pcclFloat;
    if (!d->run->comm) return pcclSuccess;
    return pcclAllReduce(gpt->gradient, gpt->gradient, &sum, d->run->comm,
                         info);
}

static void scale(struct gpt *gpt, float factor)
{
    for (size_t i = 0; i < gpt->count + ALONG; i++) gpt->gradient[i] *= factor;
}

/* The same by PowerSGD, which makes means: 1 travels as the number of samples,
 * so that its mean says by how many samples the means are too small. */
static pcclResult_t compress(struct ddp *d, pcclReduceInfo_t *info)
{
    struct gpt *gpt = &d->run->gpt;
    float *along = gpt->gradient + gpt->count;
    const float samples = along[SAMPLES];
    along[SAMPLES] = 1;
    scale(gpt, 1 / samples);
    pcclResult_t result;
    do
        result = pcclPowerSgdReduce(d->powersgd, d->run->gradients, samples,
                                    d->run->comm, info);
    while (result == pcclRankConnectionLost);
    if (result != pcclSuccess) return result;
    float total = (float)info->local_world_size / along[SAMPLES];
    along[SAMPLES] = 1;
    scale(gpt, total);
    return result;
}

/* A part of the weights becomes its mean: members that had other bits, for
 * whatever reason, have the same ones again. */
static void average(struct ddp *d)
{
    struct gpt_run *run = d->run;
    pcclReduceInfo_t info = {.local_world_size = 0};
    pcclResult_t result;
    do result = pcclSpartaStep(d->sparta, run->weights, NULL, run->comm, &info);
    while (result == pcclRankConnectionLost);
    if (result == pcclTooFewPeers) return; /* the next sum says so too */
    gpt_run_check(run, result, "pcclSpartaStep");
    if (info.local_world_size > 0) run->unsaid += info.tx_bytes;
}

/* False: this member is alone, and the step is dropped. */
static bool one_step(struct ddp *d)
{
    struct gpt_run *run = d->run;
    struct gpt *gpt = &run->gpt;
    float *along = gpt->gradient + gpt->count;
    pcclReduceInfo_t info = {.local_world_size = 1};
    pcclResult_t result;
    gpt_run_look(run);
    along[SAMPLES] = (float)gpt_run_gradient(run, d->step, &along[LOSS]);
    along[SENT] = (float)run->unsaid; /* in the operations before this one */
    gpt_run_die(run, d->step);
    do /* after a loss all is as it was, and the members are fewer */
        result = d->powersgd ? compress(d, &info) : sum_up(d, &info);
    while (result == pcclRankConnectionLost);
    if (gpt_run_left_alone(run, result, info.local_world_size)) return false;
    gpt_run_check(run, result, "the sum of gradients");
    run->unsaid = info.tx_bytes;
    run->sent += (double)along[SENT];
    run->loss = along[LOSS] / along[SAMPLES];
    scale(gpt, 1 / along[SAMPLES]);
    gpt_run_update(run, d->step++);
    if (d->sparta) average(d);
    return true;
}

static void list_state(struct ddp *d)
{
    struct gpt_run *run = d->run;
    size_t at = 0, moments = 0, factors = 0, rounds = 0;
    gpt_run_check(run,
                  pcclOptimizerListState(run->optimizer, NULL, 0, &moments),
                  "listing");
    if (d->powersgd)
        gpt_run_check(run,
                      pcclPowerSgdListState(d->powersgd, NULL, 0, &factors),
                      "listing");
    if (d->sparta)
        gpt_run_check(run, pcclSpartaListState(d->sparta, NULL, 0, &rounds),
                      "listing");
    d->infos = calloc(3 + moments + factors + rounds, sizeof *d->infos);
    if (!d->infos) gpt_run_check(run, pcclInternalError, "listing");
    d->infos[at++] = (pcclTensorInfo_t){
        .name = "step", .data = &d->step, .count = 1, .datatype = pcclInt64};
    d->infos[at++] = (pcclTensorInfo_t){
        .name = "sent", .data = &run->sent, .count = 1, .datatype = pcclDouble};
    d->infos[at++] = (pcclTensorInfo_t){.name = "weights",
                                        .data = run->gpt.weights,
                                        .count = run->gpt.count,
                                        .datatype = pcclFloat};
    gpt_run_check(run,
                  pcclOptimizerListState(run->optimizer, d->infos + at, moments,
                                         &moments),
                  "listing");
    at += moments;
    if (d->powersgd)
        gpt_run_check(run,
                      pcclPowerSgdListState(d->powersgd, d->infos + at, factors,
                                            &factors),
                      "listing");
    at += factors;
    if (d->sparta)
        gpt_run_check(
            run, pcclSpartaListState(d->sparta, d->infos + at, rounds, &rounds),
            "listing");
    d->state.infos = d->infos;
    d->state.count = at + rounds;
}

static void train(struct ddp *d)
{
    struct gpt_run *run = d->run;
    list_state(d);
    pcclLoop_t loop = {.comm = run->comm, .state = &d->state};
    while (d->step < run->args.steps) {
        if (run->comm && gpt_run_short(run, d->step)) {
            gpt_run_gather(run, d->step);
            loop.shares = true; /* newcomers have come in there */
        }
        if (run->comm)
            gpt_run_check(run, pcclLoopBegin(&loop), "pcclLoopBegin");
        run->unsaid += loop.received; /* what one receives another one sent */
        loop.received = 0;
        if (!one_step(d)) continue;
        gpt_run_look(run);
        gpt_run_report(run, d->step, 1);
    }
    free(d->infos);
}

void gpt_ddp(struct gpt_run *run)
{
    struct ddp d = {.run = run};
    train(&d);
}

/* Gradients by PowerSGD; with SPARTA, every fifth step, a twentieth of the
 * weights. */
static void train_compressed(struct gpt_run *run, bool sparse)
{
    struct ddp d = {.run = run};
    const uint64_t seed = (uint64_t)run->args.seed;
    const pcclPowerSgdOptions_t power = {
        .size = sizeof power,
        .rank = (uint32_t)run->args.power_rank,
        .seed = seed,
    };
    const pcclSpartaOptions_t sparta = {
        .size = sizeof sparta, .parts = 20, .every = 5, .seed = seed};
    gpt_run_check(run,
                  pcclPowerSgdCreate(run->tensors, run->gpt.tensor_count + 1,
                                     &power, &d.powersgd),
                  "pcclPowerSgdCreate");
    if (sparse)
        gpt_run_check(run,
                      pcclSpartaCreate(run->tensors, run->gpt.tensor_count,
                                       &sparta, &d.sparta),
                      "pcclSpartaCreate");
    train(&d);
    (void)pcclPowerSgdDestroy(d.powersgd);
    (void)pcclSpartaDestroy(d.sparta);
}

void gpt_powersgd(struct gpt_run *run)
{
    train_compressed(run, false);
}

void gpt_stack(struct gpt_run *run)
{
    train_compressed(run, true);
}
