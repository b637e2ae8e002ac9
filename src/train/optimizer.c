/* optimizer.c - AdamW, and SGD with Nesterov momentum. */
#include "train.h"
#include "train_step.h"

#include <math.h>
#include <stdlib.h>

struct pcclOptimizer_t {
    struct train_tensors tensors;
    struct train_state state;
    pcclOptimizerOptions_t options;
    float *first, *second; /* moments; AdamW has both */
    /* For the corrections of AdamW's moments: 1 - beta^steps is made of powers
     * that are multiplied up, as pow() differs between libraries. */
    uint64_t steps;
    double power1, power2;
};

static pcclResult_t check_options(const pcclOptimizerOptions_t *o)
{
    static const char function[] = "pcclOptimizerCreate";
    pcclResult_t rc = train_options(o, o ? o->size : 0, sizeof *o,
                                    o ? o->name : NULL, function);
    if (rc != pcclSuccess) return rc;
    const char *wrong = NULL;
    if (o->kind != pcclOptimizerAdamW && o->kind != pcclOptimizerNesterov)
        wrong = "kind is none of pcclOptimizerKind_t";
    else if (!(o->rate >= 0) || isinf(o->rate))
        wrong = "rate is negative or not finite";
    else if (!(o->momentum >= 0 && o->momentum < 1))
        wrong = "momentum is not in [0, 1)";
    else if (o->kind == pcclOptimizerAdamW && !(o->beta2 >= 0 && o->beta2 < 1))
        wrong = "beta2 is not in [0, 1)";
    else if (o->kind == pcclOptimizerAdamW &&
             (!(o->epsilon > 0) || isinf(o->epsilon)))
        wrong = "epsilon is not a number above 0";
    else if (o->kind == pcclOptimizerAdamW &&
             (!(o->decay >= 0) || isinf(o->decay)))
        wrong = "decay is negative or not finite";
    if (!wrong) return pcclSuccess;
    return train_fail(pcclInvalidArgument, "%s: %s", function, wrong);
}

static bool list_state(pcclOptimizer_t *o)
{
    const char *owner = o->options.name ? o->options.name : "optimizer";
    struct train_state *s = &o->state;
    if (!train_state_add(s, owner, "steps", NULL, &o->steps, 1, pcclUint64))
        return false;
    if (!train_state_add_all(s, owner, "first", &o->tensors, o->first))
        return false;
    if (o->options.kind != pcclOptimizerAdamW) return true;
    return train_state_add(s, owner, "power1", NULL, &o->power1, 1,
                           pcclDouble) &&
           train_state_add(s, owner, "power2", NULL, &o->power2, 1,
                           pcclDouble) &&
           train_state_add_all(s, owner, "second", &o->tensors, o->second);
}

pcclResult_t pcclOptimizerCreate(const pcclTrainTensor_t *tensors, size_t count,
                                 const pcclOptimizerOptions_t *options,
                                 pcclOptimizer_t **optimizer_out)
{
    if (!optimizer_out) return train_null("pcclOptimizerCreate", "the result");
    pcclResult_t rc = check_options(options);
    if (rc != pcclSuccess) return rc;
    pcclOptimizer_t *o = calloc(1, sizeof *o);
    if (!o) return train_no_memory();
    o->options = *options;
    o->power1 = o->power2 = 1;
    rc = train_tensors_create(&o->tensors, tensors, count);
    if (rc == pcclSuccess) {
        o->first = train_vector(o->tensors.total);
        if (options->kind == pcclOptimizerAdamW)
            o->second = train_vector(o->tensors.total);
        if (!o->first || (options->kind == pcclOptimizerAdamW && !o->second) ||
            !list_state(o))
            rc = train_no_memory();
        o->options.name = NULL; /* the caller's */
    }
    if (rc == pcclSuccess)
        *optimizer_out = o;
    else
        (void)pcclOptimizerDestroy(o);
    return rc;
}

pcclResult_t pcclOptimizerDestroy(pcclOptimizer_t *optimizer)
{
    if (!optimizer) return pcclSuccess;
    train_tensors_free(&optimizer->tensors);
    train_state_free(&optimizer->state);
    free(optimizer->first);
    free(optimizer->second);
    free(optimizer);
    return pcclSuccess;
}

static void step_adam(pcclOptimizer_t *o, float *const *weights,
                      const float *const *gradients)
{
    o->power1 *= (double)o->options.momentum;
    o->power2 *= (double)o->options.beta2;
    const struct step_adam_w by = {.rate = o->options.rate,
                                   .beta1 = o->options.momentum,
                                   .beta2 = o->options.beta2,
                                   .epsilon = o->options.epsilon,
                                   .decay = o->options.decay,
                                   .correct1 = (float)(1 - o->power1),
                                   .correct2 = (float)(1 - o->power2)};
    for (size_t i = 0; i < o->tensors.count; i++) {
        const struct train_tensor *t = &o->tensors.list[i];
        step_adam_w(weights[i], o->first + t->offset, o->second + t->offset,
                    gradients[i], t->count, &by);
    }
}

pcclResult_t pcclOptimizerStep(pcclOptimizer_t *optimizer,
                               float *const *weights,
                               const float *const *gradients)
{
    static const char function[] = "pcclOptimizerStep";
    pcclOptimizer_t *o = optimizer;
    if (!o) return train_null(function, "optimizer");
    pcclResult_t rc = train_tensors_data(
        &o->tensors, (const float *const *)weights, function);
    if (rc == pcclSuccess)
        rc = train_tensors_data(&o->tensors, gradients, function);
    if (rc != pcclSuccess) return rc;
    fenv_t saved;
    train_float_begin(&saved);
    if (o->options.kind == pcclOptimizerAdamW) {
        step_adam(o, weights, gradients);
    } else {
        for (size_t i = 0; i < o->tensors.count; i++) {
            const struct train_tensor *t = &o->tensors.list[i];
            step_nesterov(weights[i], o->first + t->offset, gradients[i],
                          t->count, o->options.rate, o->options.momentum);
        }
    }
    o->steps++;
    train_float_end(&saved);
    return pcclSuccess;
}

pcclResult_t pcclOptimizerSetRate(pcclOptimizer_t *optimizer, float rate)
{
    static const char function[] = "pcclOptimizerSetRate";
    if (!optimizer) return train_null(function, "optimizer");
    if (!(rate >= 0) || isinf(rate))
        return train_fail(pcclInvalidArgument,
                          "%s: rate is negative or not finite", function);
    optimizer->options.rate = rate;
    return pcclSuccess;
}

pcclResult_t pcclOptimizerListState(pcclOptimizer_t *optimizer,
                                    pcclTensorInfo_t *infos, size_t capacity,
                                    size_t *count_out)
{
    static const char function[] = "pcclOptimizerListState";
    if (!optimizer) return train_null(function, "optimizer");
    return train_state_list(&optimizer->state, infos, capacity, count_out,
                            function);
}
