/* stage_part.c - see stage_part.h. */
#include "stage_part.h"

#include "../gpt/gpt_layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- creation */

/* Random columns, made orthonormal one after the other in double precision:
 * exact arithmetic in one order, so that all processes have the same bits. */
static bool make_basis(struct stage_part *part, uint64_t seed)
{
    const size_t d = part->gpt->shape.width, k = part->subspace;
    double *column = calloc(d * k, sizeof *column); /* column after column */
    if (!column) return false;
    for (size_t i = 0; i < d * k; i++) {
        uint64_t bits = gpt_random(gpt_random(seed + 1) + i) >> 11;
        column[i] = (double)bits / (double)(1ULL << 52) - 1;
    }
    for (size_t i = 0; i < k; i++) {
        double *own = column + i * d, norm = 0;
        for (size_t j = 0; j < i; j++) {
            double along = 0;
            for (size_t n = 0; n < d; n++) along += own[n] * column[j * d + n];
            for (size_t n = 0; n < d; n++) own[n] -= along * column[j * d + n];
        }
        for (size_t n = 0; n < d; n++) norm += own[n] * own[n];
        norm = sqrt(norm);
        for (size_t n = 0; n < d; n++) {
            own[n] /= norm;
            part->basis[n * k + i] = (float)own[n];
        }
    }
    free(column);
    return true;
}

static struct gpt_matrix basis_of(const struct stage_part *part)
{
    return (struct gpt_matrix){part->basis, part->subspace, 1};
}

static struct gpt_matrix basis_transposed(const struct stage_part *part)
{
    return (struct gpt_matrix){part->basis, 1, part->subspace};
}

/* What layers add to the stream stays in the subspace: W = W U U^T. So do its
 * gradients, of which the rest is lost between stages and not within one:
 * AdamW would make something of it. */
static void project(struct stage_part *part, float *const *vectors)
{
    const size_t d = part->gpt->shape.width, k = part->subspace;
    for (size_t i = 0; k > 0 && i < part->tensor_count; i++) {
        const char *name = part->tensors[i].name;
        const size_t rows = part->tensors[i].rows;
        if (!strstr(name, ".mix") && !strstr(name, ".down")) continue;
        struct gpt_matrix w = {vectors[i], d, 1};
        gpt_product(part->room, k, w, basis_of(part), rows, k, d, false);
        struct gpt_matrix along = {part->room, k, 1};
        gpt_product(vectors[i], d, along, basis_transposed(part), rows, d, k,
                    false);
    }
}

/* With a subspace embeddings and the scales of norms are as at first. */
static bool is_trained(const struct stage_part *part,
                       const struct gpt_tensor *tensor)
{
    char *dot;
    const size_t layer = strtoul(tensor->name, &dot, 10);
    const bool whole = part->subspace == 0;
    if (dot != tensor->name)
        return layer >= part->first && layer < part->last &&
               (whole || tensor->rows > 1);
    if (strcmp(tensor->name, "head") == 0) return stage_part_is_last(part);
    if (strcmp(tensor->name, "norm") == 0)
        return whole && stage_part_is_last(part);
    return whole && part->stage == 0;
}

static void list_tensors(struct stage_part *part)
{
    const struct gpt *gpt = part->gpt;
    size_t at = 0;
    for (size_t i = 0; i < gpt->tensor_count; i++) {
        const struct gpt_tensor *t = &gpt->tensors[i];
        const size_t n = part->tensor_count;
        if (is_trained(part, t)) {
            part->tensors[n] =
                (pcclTrainTensor_t){t->name, t->rows, t->columns};
            part->weights[n] = gpt->weights + at;
            part->gradients[n] = gpt->gradient + at;
            part->count += t->rows * t->columns;
            part->tensor_count++;
        }
        at += t->rows * t->columns;
    }
}

bool stage_part_create(struct stage_part *part, struct gpt *gpt, size_t stages,
                       size_t stage, size_t subspace, uint64_t seed, float rate)
{
    const size_t layers = gpt->shape.layers, d = gpt->shape.width;
    const size_t rows = gpt->batch * gpt->shape.context;
    const pcclOptimizerOptions_t options = {.size = sizeof options,
                                            .kind = pcclOptimizerAdamW,
                                            .rate = rate,
                                            .momentum = 0.9f,
                                            .beta2 = 0.95f,
                                            .epsilon = 1e-8f,
                                            .decay = 0.1f};
    *part = (struct stage_part){.gpt = gpt,
                                .stages = stages,
                                .stage = stage,
                                .first = stage * layers / stages,
                                .last = (stage + 1) * layers / stages,
                                .subspace = subspace};
    list_tensors(part);
    /* Also for a matrix of 4 d rows of k numbers. */
    part->room = calloc((rows > 4 * d ? rows : 4 * d) * d, sizeof(float));
    part->basis = calloc(d * (subspace + 1), sizeof(float));
    if (!part->room || !part->basis ||
        (subspace > 0 && !make_basis(part, seed)) ||
        pcclOptimizerCreate(part->tensors, part->tensor_count, &options,
                            &part->optimizer) != pcclSuccess) {
        stage_part_free(part);
        return false;
    }
    project(part, part->weights);
    return true;
}

void stage_part_free(struct stage_part *part)
{
    (void)pcclOptimizerDestroy(part->optimizer);
    free(part->room);
    free(part->basis);
    *part = (struct stage_part){.gpt = NULL};
}

bool stage_part_is_last(const struct stage_part *part)
{
    return part->stage + 1 == part->stages;
}

size_t stage_part_columns(const struct stage_part *part)
{
    return part->subspace ? part->subspace : part->gpt->shape.width;
}

/* ---------------------------------------------------------- what travels */

static size_t rows_of(const struct stage_part *part, size_t samples)
{
    return samples * part->gpt->shape.context;
}

/* to = from U, rows x k, or from itself. */
static void squeeze(const struct stage_part *part, float *to, const float *from,
                    size_t samples)
{
    const size_t d = part->gpt->shape.width, n = rows_of(part, samples);
    const struct gpt_matrix all = {from, d, 1};
    if (part->subspace == 0)
        memcpy(to, from, n * d * sizeof *to);
    else
        gpt_product(to, part->subspace, all, basis_of(part), n, part->subspace,
                    d, false);
}

/* to = from U^T, rows x width, or from itself. */
static void expand(const struct stage_part *part, float *to, const float *from,
                   size_t samples)
{
    const size_t d = part->gpt->shape.width, n = rows_of(part, samples);
    const struct gpt_matrix few = {from, part->subspace, 1};
    if (part->subspace == 0)
        memcpy(to, from, n * d * sizeof *to);
    else
        gpt_product(to, d, few, basis_transposed(part), n, d, part->subspace,
                    false);
}

static void put_activation(struct stage_part *part, float *to, size_t samples)
{
    const size_t n = rows_of(part, samples) * part->gpt->shape.width;
    const float *h = gpt_input(part->gpt, part->last);
    if (part->subspace > 0) {
        gpt_embed(part->gpt, part->room, samples);
        for (size_t i = 0; i < n; i++) part->room[i] = h[i] - part->room[i];
        h = part->room;
    }
    squeeze(part, to, h, samples);
}

static void take_activation(struct stage_part *part, const float *from,
                            size_t samples)
{
    const size_t n = rows_of(part, samples) * part->gpt->shape.width;
    float *h = gpt_input(part->gpt, part->first);
    if (part->stage == 0) {
        gpt_embed(part->gpt, h, samples);
        return;
    }
    expand(part, h, from, samples);
    if (part->subspace == 0) return;
    gpt_embed(part->gpt, part->room, samples);
    for (size_t i = 0; i < n; i++) h[i] += part->room[i];
}

/* ------------------------------------------------------ forward, backward */

static void there(struct stage_part *part, const unsigned char *const *texts,
                  size_t samples, const float *in)
{
    gpt_take(part->gpt, texts, samples);
    take_activation(part, in, samples);
    gpt_forward(part->gpt, part->first, part->last, samples);
}

static void back(struct stage_part *part, size_t samples, float *to)
{
    gpt_backward(part->gpt, part->first, part->last, samples);
    if (part->stage > 0)
        squeeze(part, to, gpt_stream(part->gpt), samples);
    else
        gpt_embed_back(part->gpt, samples);
}

void stage_part_forward(struct stage_part *part,
                        const unsigned char *const *texts, size_t samples,
                        const float *in, float *out)
{
    there(part, texts, samples, in);
    put_activation(part, out, samples);
}

double stage_part_loss(struct stage_part *part,
                       const unsigned char *const *texts, size_t samples,
                       const float *in)
{
    there(part, texts, samples, in);
    return gpt_finish(part->gpt, samples);
}

double stage_part_finish(struct stage_part *part,
                         const unsigned char *const *texts, size_t samples,
                         const float *in, float *to)
{
    const double loss = stage_part_loss(part, texts, samples, in);
    gpt_finish_back(part->gpt, samples);
    back(part, samples, to);
    return loss;
}

void stage_part_backward(struct stage_part *part,
                         const unsigned char *const *texts, size_t samples,
                         const float *in, const float *out_gradient, float *to)
{
    there(part, texts, samples, in);
    expand(part, gpt_stream(part->gpt), out_gradient, samples);
    back(part, samples, to);
}

/* ---------------------------------------------------------------- update */

void stage_part_pack(const struct stage_part *part, float *to)
{
    for (size_t i = 0; i < part->tensor_count; i++) {
        const size_t n = part->tensors[i].rows * part->tensors[i].columns;
        memcpy(to, part->gradients[i], n * sizeof *to);
        to += n;
    }
}

void stage_part_clear(struct stage_part *part)
{
    memset(part->gpt->gradient, 0, part->gpt->count * sizeof(float));
}

pcclResult_t stage_part_update(struct stage_part *part, float *mean)
{
    float *at[GPT_TENSORS_MOST];
    const float *from[GPT_TENSORS_MOST];
    for (size_t i = 0; i < part->tensor_count; i++) {
        from[i] = at[i] = mean;
        mean += part->tensors[i].rows * part->tensors[i].columns;
    }
    project(part, at);
    pcclResult_t rc =
        pcclClipStage(part->tensors, part->tensor_count, at,
                      (uint32_t)part->stages, stage_part_is_last(part), NULL);
    if (rc == pcclOperationFailed) return pcclSuccess;
    if (rc == pcclSuccess)
        rc = pcclOptimizerStep(part->optimizer, part->weights, from);
    if (rc == pcclSuccess) project(part, part->weights);
    return rc;
}
