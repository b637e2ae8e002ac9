/* gpt_diloco.c - members train copies; their mean is an outer step.
 *
 * DiLoCo (Douillard et al., 2024) by pccl_train.h. With --codes what travels
 * has 8 bits a number. The asynchronous way trains on while the mean is under
 * way; examples/async_diloco.c explains its order of calls. A step is one inner
 * step of all members, so the samples are as many as in every other way. A lone
 * survivor drops its pseudo-gradient, and waits for company. */
#include "gpt_run.h"

#include <pccl_loop.h>
#include <stdlib.h>

/* Numbers that are averaged along. */
enum { LOSS, SENT, SHARE, STATS };

struct outer {
    struct gpt_run *run;
    pcclDiloco_t *diloco;
    pcclDilocoProgress_t at;
    pcclTensorInfo_t *infos;
    pcclSharedState_t state;
    float stats[STATS]; /* of this member's phase */
    float samples;      /* in it */
};

static void look(struct outer *o)
{
    o->at.size = sizeof o->at;
    gpt_run_check(o->run, pcclDilocoGetProgress(o->diloco, &o->at),
                  "pcclDilocoGetProgress");
}

static void begin(struct outer *o, struct gpt_run *run)
{
    *o = (struct outer){.run = run};
    pcclDilocoOptions_t options = {.size = sizeof options,
                                   .rate = run->args.outer_rate,
                                   .momentum = run->args.outer_momentum,
                                   .stat_count = STATS};
    if (run->args.codes)
        options.quantization =
            (pcclQuantizationOptions_t){pcclUint8, pcclQuantMinMax};
    const float *weights[GPT_TENSORS_MOST];
    for (size_t i = 0; i < run->gpt.tensor_count; i++)
        weights[i] = run->weights[i];
    gpt_run_check(run,
                  pcclDilocoCreate(run->tensors, run->gpt.tensor_count, weights,
                                   &options, &o->diloco),
                  "pcclDilocoCreate");
    size_t count;
    gpt_run_check(run, pcclDilocoListState(o->diloco, NULL, 0, &count),
                  "listing");
    o->infos = calloc(count + 1, sizeof *o->infos);
    if (!o->infos) gpt_run_check(run, pcclInternalError, "listing");
    gpt_run_check(run, pcclDilocoListState(o->diloco, o->infos, count, &count),
                  "listing");
    o->infos[count] = (pcclTensorInfo_t){
        .name = "sent", .data = &run->sent, .count = 1, .datatype = pcclDouble};
    o->state.infos = o->infos;
    o->state.count = count + 1;
    look(o);
}

static void end(struct outer *o)
{
    gpt_run_check(o->run, pcclDilocoDestroy(o->diloco), "pcclDilocoDestroy");
    free(o->infos);
}

static int64_t steps(const struct outer *o, uint64_t outer)
{
    return (int64_t)outer * o->run->args.inner;
}

/* The last one may begin when this many have. */
static uint64_t outer_steps(const struct gpt_run *run)
{
    return (uint64_t)((run->args.steps + run->args.inner - 1) /
                      run->args.inner);
}

/* The inner phase, from the outer weights. */
static void inner(struct outer *o)
{
    struct gpt_run *run = o->run;
    struct gpt *gpt = &run->gpt;
    double sum = 0;
    o->samples = 0;
    gpt_run_check(run, pcclDilocoGetWeights(o->diloco, run->weights),
                  "pcclDilocoGetWeights");
    look(o);
    gpt_run_look(run);
    for (int i = 0; i < run->args.inner; i++) {
        int64_t step = steps(o, o->at.begun) + i;
        float loss;
        float samples = (float)gpt_run_gradient(run, step, &loss);
        gpt_run_die(run, step);
        sum += (double)loss;
        o->samples += samples;
        for (size_t k = 0; k < gpt->count; k++) gpt->gradient[k] /= samples;
        gpt_run_update(run, step);
    }
    /* The means are over samples; of what does not belong to a sample the mean
     * over members is the ratio of two of them. */
    o->stats[LOSS] = (float)sum / o->samples;
    o->stats[SENT] = (float)run->unsaid / o->samples;
    o->stats[SHARE] = 1 / o->samples;
    run->said = run->unsaid;
    run->unsaid = 0;
}

/* True: there is no mean, and what was to be one is dropped. */
static bool left_alone(struct outer *o, pcclResult_t result,
                       const pcclReduceInfo_t *info)
{
    struct gpt_run *run = o->run;
    look(o);
    if (!gpt_run_left_alone(run, result, info->local_world_size)) return false;
    run->unsaid += run->said;
    run->said = 0;
    return true;
}

/* Takes over what an outer step has brought. */
static void stepped(struct outer *o)
{
    struct gpt_run *run = o->run;
    look(o);
    run->loss = o->at.stats[LOSS];
    run->sent += (double)(o->at.stats[SENT] / o->at.stats[SHARE]) *
                 (double)o->at.contributors;
    if (o->at.begun == o->at.step) run->said = 0;
}

void gpt_diloco(struct gpt_run *run)
{
    struct outer o;
    begin(&o, run);
    pcclLoop_t loop = {.comm = run->comm, .state = &o.state};
    while (o.at.step < outer_steps(run)) {
        pcclReduceInfo_t info = {.local_world_size = 0};
        if (gpt_run_short(run, steps(&o, o.at.step))) {
            gpt_run_gather(run, steps(&o, o.at.step));
            loop.shares = true; /* newcomers have come in there */
        }
        gpt_run_check(run, pcclLoopBegin(&loop), "pcclLoopBegin");
        run->unsaid += loop.received; /* what one receives another one sent */
        inner(&o);
        pcclResult_t result = pcclDilocoStep(o.diloco, run->weights, o.stats,
                                             o.samples, run->comm, &info);
        if (left_alone(&o, result, &info)) continue;
        gpt_run_check(run, result, "pcclDilocoStep");
        run->unsaid = info.tx_bytes;
        stepped(&o);
        gpt_run_look(run);
        gpt_run_report(run, steps(&o, o.at.step), run->args.inner);
    }
    end(&o);
}

/* ----------------------------------------------------------- asynchronous */

static void share(struct outer *o, pcclSharedStateSyncStrategy_t strategy)
{
    pcclSharedStateSyncInfo_t info;
    gpt_run_check(
        o->run,
        pcclSynchronizeSharedState(o->run->comm, &o->state, strategy, &info),
        "pcclSynchronizeSharedState");
    o->state.revision++; /* of the next one */
    o->run->unsaid += info.rx_bytes;
    look(o);
}

/* Waits until the mean over all members is here. False: this member is alone,
 * and there is none. */
static bool land(struct outer *o)
{
    pcclReduceInfo_t info = {.local_world_size = 0};
    if (!o->at.in_flight) return !o->run->alone;
    pcclResult_t result = pcclDilocoLand(o->diloco, &info);
    if (left_alone(o, result, &info)) return false;
    gpt_run_check(o->run, result, "pcclDilocoLand");
    o->run->unsaid += info.tx_bytes;
    return true;
}

/* Admits newcomers. True if the membership may have changed. */
static bool admit(struct outer *o)
{
    bool pending; /* the same on all members */
    const int64_t step = steps(o, o->at.step);
    gpt_run_check(o->run, pcclArePeersPending(o->run->comm, &pending),
                  "pcclArePeersPending");
    if (!pending && !gpt_run_short(o->run, step)) return false;
    (void)land(o); /* what it drops is not owed */
    gpt_run_gather(o->run, step);
    return true;
}

static void take(struct outer *o)
{
    const float *weights[GPT_TENSORS_MOST];
    for (size_t i = 0; i < o->run->gpt.tensor_count; i++)
        weights[i] = o->run->weights[i];
    gpt_run_check(o->run,
                  pcclDilocoTake(o->diloco, weights, o->stats, o->samples),
                  "pcclDilocoTake");
}

void gpt_async(struct gpt_run *run)
{
    struct outer o;
    begin(&o, run);
    const uint64_t last = outer_steps(run);
    bool newcomer = true; /* at the beginning of a run all members are */
    if (gpt_run_short(run, 0)) gpt_run_gather(run, 0);
    while (o.at.step < last) {
        bool changed = newcomer || admit(&o);
        if (changed) share(&o, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR);
        bool owed = o.at.begun > o.at.step, more = o.at.begun < last;
        if (more) {
            inner(&o);
            take(&o);
        }
        if (owed && !newcomer) owed = land(&o);
        if (owed && !newcomer) {
            gpt_run_check(run, pcclDilocoApply(o.diloco), "pcclDilocoApply");
            stepped(&o);
        }
        if (owed && changed)
            share(&o, newcomer ? PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY
                               : PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY);
        if (more)
            gpt_run_check(run, pcclDilocoLaunch(o.diloco, run->comm),
                          "pcclDilocoLaunch");
        look(&o);
        if (owed) {
            gpt_run_check(run, pcclDilocoGetWeights(o.diloco, run->weights),
                          "pcclDilocoGetWeights");
            gpt_run_look(run);
            gpt_run_report(run, steps(&o, o.at.step), run->args.inner);
        }
        newcomer = false;
    }
    end(&o);
}
