/* train_diloco.c - outer steps of DiLoCo, at once or one phase late. */
#include "train.h"
#include "train_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pcclDiloco_t {
    struct train_tensors tensors;
    struct train_state state;
    pcclDilocoOptions_t options;
    /* Shared. */
    float *weights, *momentum, *stats;
    uint64_t begun, step, contributors;
    /* Pseudo-gradient, statistics and weight: what was taken, what is in
     * flight, and the mean. */
    float *taken;
    struct train_sum sum;
    uint64_t agreed;  /* digest of rate and momentum */
    pcclComm_t *comm; /* of the sum */
    bool has_taken, launched, has_landed;
    bool accompanied; /* what is launched, or the last step, has others */
};

static pcclResult_t check_options(const pcclDilocoOptions_t *o)
{
    static const char function[] = "pcclDilocoCreate";
    pcclResult_t rc = train_options(o, o ? o->size : 0, sizeof *o,
                                    o ? o->name : NULL, function);
    if (rc != pcclSuccess) return rc;
    const char *wrong = NULL;
    if (!(o->rate >= 0) || isinf(o->rate))
        wrong = "rate is negative or not finite";
    else if (!(o->momentum >= 0 && o->momentum < 1))
        wrong = "momentum is not in [0, 1)";
    else if (o->stat_count > UINT32_MAX)
        wrong = "stat_count is too large";
    if (!wrong) return pcclSuccess;
    return train_fail(pcclInvalidArgument, "%s: %s", function, wrong);
}

static bool list_state(pcclDiloco_t *d, const char *owner)
{
    struct train_state *s = &d->state;
    return train_state_add(s, owner, "begun", NULL, &d->begun, 1, pcclUint64) &&
           train_state_add(s, owner, "step", NULL, &d->step, 1, pcclUint64) &&
           train_state_add(s, owner, "contributors", NULL, &d->contributors, 1,
                           pcclUint64) &&
           (d->options.stat_count == 0 ||
            train_state_add(s, owner, "stats", NULL, d->stats,
                            d->options.stat_count, pcclFloat)) &&
           train_state_add_all(s, owner, "weights", &d->tensors, d->weights) &&
           train_state_add_all(s, owner, "momentum", &d->tensors, d->momentum);
}

/* What members must agree on, for the text if they do not. */
static void describe(pcclDiloco_t *d)
{
    struct train_sum *s = &d->sum;
    s->arguments[0] = (pcclArgument_t){.name = "list of tensors",
                                       .values = &d->tensors.digest,
                                       .value_count = 1};
    const float options[] = {d->options.rate, d->options.momentum};
    d->agreed = train_digest(0, options, sizeof options);
    s->arguments[1] = (pcclArgument_t){
        .name = "rate and momentum", .values = &d->agreed, .value_count = 1};
    s->arguments[2] = (pcclArgument_t){
        .name = "outer step", .values = &d->step, .value_count = 1};
    s->argument_count = 3;
}

static pcclResult_t prepare(pcclDiloco_t *d, const float *const *weights)
{
    const struct train_tensors *t = &d->tensors;
    size_t stats = d->options.stat_count;
    d->weights = train_vector(t->total);
    d->momentum = train_vector(t->total);
    d->stats = train_vector(stats);
    struct train_sum *s = &d->sum;
    s->exact = stats + 1;
    s->count = t->total + s->exact;
    s->tag = d->options.tag;
    s->quantization = d->options.quantization;
    d->taken = train_vector(s->count);
    s->send = train_vector(s->count);
    s->recv = train_vector(s->count);
    const char *name = d->options.name;
    bool ok = d->weights && d->momentum && d->stats && d->taken && s->send &&
              s->recv && list_state(d, name ? name : "diloco");
    d->options.name = NULL; /* the caller's */
    if (!ok) return train_no_memory();
    describe(d);
    for (size_t i = 0; i < t->count; i++)
        memcpy(d->weights + t->list[i].offset, weights[i],
               t->list[i].count * sizeof(float));
    return pcclSuccess;
}

pcclResult_t pcclDilocoCreate(const pcclTrainTensor_t *tensors, size_t count,
                              const float *const *weights,
                              const pcclDilocoOptions_t *options,
                              pcclDiloco_t **diloco_out)
{
    if (!diloco_out) return train_null("pcclDilocoCreate", "the result");
    pcclResult_t rc = check_options(options);
    if (rc != pcclSuccess) return rc;
    pcclDiloco_t *d = calloc(1, sizeof *d);
    if (!d) return train_no_memory();
    d->options = *options;
    rc = train_tensors_create(&d->tensors, tensors, count);
    if (rc == pcclSuccess)
        rc = train_tensors_data(&d->tensors, weights, "pcclDilocoCreate");
    if (rc == pcclSuccess) rc = prepare(d, weights);
    if (rc == pcclSuccess)
        *diloco_out = d;
    else
        (void)pcclDilocoDestroy(d);
    return rc;
}

pcclResult_t pcclDilocoDestroy(pcclDiloco_t *diloco)
{
    pcclDiloco_t *d = diloco;
    if (!d) return pcclSuccess;
    train_tensors_free(&d->tensors);
    train_state_free(&d->state);
    free(d->weights);
    free(d->momentum);
    free(d->stats);
    free(d->taken);
    free(d->sum.send);
    free(d->sum.recv);
    free(d);
    return pcclSuccess;
}

pcclResult_t pcclDilocoListState(pcclDiloco_t *diloco, pcclTensorInfo_t *infos,
                                 size_t capacity, size_t *count_out)
{
    static const char function[] = "pcclDilocoListState";
    if (!diloco) return train_null(function, "diloco");
    return train_state_list(&diloco->state, infos, capacity, count_out,
                            function);
}

pcclResult_t pcclDilocoGetWeights(const pcclDiloco_t *diloco,
                                  float *const *weights)
{
    static const char function[] = "pcclDilocoGetWeights";
    const pcclDiloco_t *d = diloco;
    if (!d) return train_null(function, "diloco");
    pcclResult_t rc = train_tensors_data(
        &d->tensors, (const float *const *)weights, function);
    if (rc != pcclSuccess) return rc;
    for (size_t i = 0; i < d->tensors.count; i++) {
        const struct train_tensor *t = &d->tensors.list[i];
        memcpy(weights[i], d->weights + t->offset, t->count * sizeof(float));
    }
    return pcclSuccess;
}

pcclResult_t pcclDilocoGetProgress(const pcclDiloco_t *diloco,
                                   pcclDilocoProgress_t *progress)
{
    static const char function[] = "pcclDilocoGetProgress";
    if (!diloco) return train_null(function, "diloco");
    if (!progress) return train_null(function, "progress");
    if (progress->size < sizeof *progress)
        return train_fail(pcclInvalidArgument, "%s: size is %zu, not %zu",
                          function, progress->size, sizeof *progress);
    *progress = (pcclDilocoProgress_t){.size = sizeof *progress,
                                       .begun = diloco->begun,
                                       .step = diloco->step,
                                       .contributors = diloco->contributors,
                                       .stats = diloco->stats,
                                       .in_flight = diloco->launched};
    return pcclSuccess;
}

/* ------------------------------------------------------ parts of the step */

static void take(pcclDiloco_t *d, const float *const *weights,
                 const float *stats, float weight)
{
    const size_t total = d->tensors.total, count = d->sum.count;
    for (size_t i = 0; i < d->tensors.count; i++) {
        const struct train_tensor *t = &d->tensors.list[i];
        float *delta = d->taken + t->offset;
        const float *from = d->weights + t->offset;
        for (size_t k = 0; k < t->count; k++)
            delta[k] = (from[k] - weights[i][k]) * weight;
    }
    for (size_t k = 0; k < d->options.stat_count; k++)
        d->taken[total + k] = stats[k] * weight;
    d->taken[count - 1] = weight;
    if (weight == 0 || !train_finite(d->taken, count))
        memset(d->taken, 0, count * sizeof(float));
}

pcclResult_t pcclDilocoTake(pcclDiloco_t *diloco, const float *const *weights,
                            const float *stats, float weight)
{
    static const char function[] = "pcclDilocoTake";
    pcclDiloco_t *d = diloco;
    if (!d) return train_null(function, "diloco");
    pcclResult_t rc = train_tensors_data(&d->tensors, weights, function);
    if (rc != pcclSuccess) return rc;
    if (!stats && d->options.stat_count > 0)
        return train_null(function, "stats");
    if (!(weight >= 0) || isinf(weight))
        return train_fail(pcclInvalidArgument,
                          "%s: the weight is negative or not finite", function);
    if (d->has_taken)
        return train_fail(pcclInvalidUsage,
                          "%s: the last one is not launched yet", function);
    fenv_t saved;
    train_float_begin(&saved);
    take(d, weights, stats, weight);
    train_float_end(&saved);
    d->has_taken = true;
    d->begun++;
    return pcclSuccess;
}

static pcclResult_t launch(pcclDiloco_t *d)
{
    uint64_t agreed[] = {d->tensors.digest, d->agreed, d->step};
    d->sum.digest = train_digest(0, agreed, sizeof agreed);
    return train_sum_launch(&d->sum, d->comm);
}

/* They are not part of the run any more: */
static void drop_taken(pcclDiloco_t *d)
{
    d->begun -= d->has_taken;
    d->has_taken = false;
}

static void drop_launched(pcclDiloco_t *d)
{
    d->begun -= d->launched || d->has_landed;
    d->launched = d->has_landed = false;
}

pcclResult_t pcclDilocoLaunch(pcclDiloco_t *diloco, pcclComm_t *comm)
{
    static const char function[] = "pcclDilocoLaunch";
    pcclDiloco_t *d = diloco;
    if (!d) return train_null(function, "diloco");
    if (!comm) return train_null(function, "comm");
    if (!d->has_taken || d->launched)
        return train_fail(pcclInvalidUsage, "%s: %s", function,
                          d->launched ? "the last one has not landed"
                                      : "nothing was taken");
    int world = 1;
    (void)pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world);
    d->accompanied = world > 1 || d->contributors > 1;
    float *send = d->sum.send;
    d->sum.send = d->taken;
    d->comm = comm;
    pcclResult_t rc;
    do rc = launch(d);
    while (rc == pcclRankConnectionLost);
    if (rc != pcclSuccess) {
        d->sum.send = send;
        drop_taken(d);
        return rc;
    }
    d->taken = send;
    d->has_taken = d->has_landed = false;
    d->launched = true;
    return pcclSuccess;
}

pcclResult_t pcclDilocoLand(pcclDiloco_t *diloco, pcclReduceInfo_t *info)
{
    static const char function[] = "pcclDilocoLand";
    pcclDiloco_t *d = diloco;
    if (!d) return train_null(function, "diloco");
    if (!d->launched && !d->has_landed)
        return train_fail(pcclInvalidUsage, "%s: nothing was launched",
                          function);
    while (d->launched) {
        pcclResult_t rc = pcclSuccess;
        if (!train_sum_in_flight(&d->sum)) rc = launch(d);
        if (rc == pcclSuccess) rc = train_sum_await(&d->sum);
        if (rc == pcclRankConnectionLost) continue;
        if (rc == pcclCancelled || rc == pcclTimedOut) return rc;
        if (rc != pcclSuccess) {
            drop_taken(d);
            drop_launched(d);
            return rc;
        }
        d->launched = false;
        d->has_landed = true;
    }
    if (info) *info = d->sum.info;
    if (d->sum.info.local_world_size == 1 && d->accompanied &&
        !d->options.goes_on_alone) {
        drop_launched(d);
        return train_fail(pcclTooFewPeers,
                          "%s: all other members are lost, and a mean of one "
                          "is none: the pseudo-gradient is dropped",
                          function);
    }
    const float weights = d->sum.recv[d->sum.count - 1];
    if (weights > 0) return pcclSuccess;
    drop_launched(d);
    return train_fail(pcclOperationFailed,
                      "%s: no member had a pseudo-gradient", function);
}

pcclResult_t pcclDilocoApply(pcclDiloco_t *diloco)
{
    static const char function[] = "pcclDilocoApply";
    pcclDiloco_t *d = diloco;
    if (!d) return train_null(function, "diloco");
    if (!d->has_landed)
        return train_fail(pcclInvalidUsage, "%s: no mean has landed", function);
    fenv_t saved;
    train_float_begin(&saved);
    float *mean = d->sum.recv;
    const float weights = mean[d->sum.count - 1];
    for (size_t i = 0; i < d->sum.count - 1; i++) mean[i] /= weights;
    step_nesterov(d->weights, d->momentum, mean, d->tensors.total,
                  d->options.rate, d->options.momentum);
    train_float_end(&saved);
    memcpy(d->stats, mean + d->tensors.total,
           d->options.stat_count * sizeof(float));
    d->contributors = d->sum.info.local_world_size;
    d->step++;
    d->has_landed = false;
    return pcclSuccess;
}

pcclResult_t pcclDilocoStep(pcclDiloco_t *diloco, float *const *weights,
                            const float *stats, float weight, pcclComm_t *comm,
                            pcclReduceInfo_t *info)
{
    pcclDiloco_t *d = diloco;
    if (!d) return train_null("pcclDilocoStep", "diloco");
    pcclResult_t rc = pcclSuccess;
    train_sum_turn(&d->sum, comm);
    if (d->launched && !train_sum_in_flight(&d->sum)) drop_launched(d);
    if (!d->launched) {
        if (!d->has_taken)
            rc =
                pcclDilocoTake(d, (const float *const *)weights, stats, weight);
        if (rc == pcclSuccess) rc = pcclDilocoLaunch(d, comm);
        if (rc != pcclSuccess) return rc;
    }
    rc = pcclDilocoLand(d, info);
    if (rc == pcclSuccess) rc = pcclDilocoApply(d);
    if (rc == pcclSuccess) rc = pcclDilocoGetWeights(d, weights);
    return rc;
}
