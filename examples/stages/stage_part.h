/* stage_part.h - the layers of one stage: forward, backward, the update, and
 * what of an activation travels to the next stage.
 *
 * Without a subspace an activation travels as it is. With one, only layers and
 * the head are trained, and what layers add to the stream lies in the span of
 * an orthonormal basis U, width x k. So U^T (h - e) is all there is to know
 * about an activation h, where e is the embedding of its byte, which everybody
 * has. Gradients travel as U^T dh. */
#ifndef STAGE_PART_H
#define STAGE_PART_H

#include "../gpt/gpt_model.h"

#include <pccl_train.h>

struct stage_part {
    struct gpt *gpt; /* a whole model, of which it uses its layers */
    size_t stages, stage;
    size_t first, last; /* layers */
    size_t subspace;    /* k; 0: none */
    float *basis;       /* width x k */
    float *room;        /* of a batch: rows x width */
    size_t count;       /* numbers that are trained */
    size_t tensor_count;
    pcclTrainTensor_t tensors[GPT_TENSORS_MOST];
    float *weights[GPT_TENSORS_MOST], *gradients[GPT_TENSORS_MOST];
    pcclOptimizer_t *optimizer;
};

/* Stage `stage` of `stages`, at least one layer each. False: out of memory. */
bool stage_part_create(struct stage_part *part, struct gpt *gpt, size_t stages,
                       size_t stage, size_t subspace, uint64_t seed,
                       float rate);
void stage_part_free(struct stage_part *part);

bool stage_part_is_last(const struct stage_part *part);
/* Numbers that travel of one token. */
size_t stage_part_columns(const struct stage_part *part);

/* `in` and `out` are what travels, samples * context rows; the first stage has
 * no `in`. The texts are samples of context + 1 bytes. */
void stage_part_forward(struct stage_part *part,
                        const unsigned char *const *texts, size_t samples,
                        const float *in, float *out);
/* The last stage: returns the loss, summed over the samples. */
double stage_part_loss(struct stage_part *part,
                       const unsigned char *const *texts, size_t samples,
                       const float *in);
/* The same, adds the gradient and, unless it is the first stage, sets `back` to
 * the gradient of `in`. */
double stage_part_finish(struct stage_part *part,
                         const unsigned char *const *texts, size_t samples,
                         const float *in, float *back);
/* Another stage: computes forward again, adds the gradient, sets `back`. */
void stage_part_backward(struct stage_part *part,
                         const unsigned char *const *texts, size_t samples,
                         const float *in, const float *out_gradient,
                         float *back);

/* Copies the gradient to `to`, `count` numbers, and keeps it. */
void stage_part_pack(const struct stage_part *part, float *to);
void stage_part_clear(struct stage_part *part);
/* One step with a mean gradient of `count` numbers, which it changes. A
 * gradient that is not finite is skipped, as all members of the stage do. */
pcclResult_t stage_part_update(struct stage_part *part, float *mean);

#endif
