/* clip.c - clipping by the norm of all tensors, or of a stage's. */
#include "train.h"
#include "train_step.h"

#include <math.h>

/* Without a copy of the list: the names do not matter. */
static pcclResult_t check_list(const pcclTrainTensor_t *tensors, size_t count,
                               float *const *gradients)
{
    static const char function[] = "pcclClip";
    if (!tensors || count == 0) return train_null(function, "the list");
    if (!gradients) return train_null(function, "gradients");
    for (size_t i = 0; i < count; i++) {
        const pcclTrainTensor_t *t = &tensors[i];
        if (!gradients[i])
            return train_fail(pcclInvalidArgument,
                              "%s: the data of tensor %zu is NULL", function,
                              i);
        if (t->rows == 0 || t->columns == 0 ||
            t->rows > SIZE_MAX / sizeof(float) / t->columns)
            return train_fail(pcclInvalidArgument,
                              "%s: tensor %zu cannot be %zu x %zu", function, i,
                              t->rows, t->columns);
    }
    return pcclSuccess;
}

static pcclResult_t clip(const pcclTrainTensor_t *tensors, size_t count,
                         float *const *gradients, float limit, float *norm_out)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares +=
            step_squares(gradients[i], tensors[i].rows * tensors[i].columns);
    double norm = sqrt(squares);
    if (norm_out) *norm_out = (float)norm;
    if (!isfinite(norm))
        return train_fail(pcclOperationFailed,
                          "the norm of the gradients is not finite");
    if (norm <= (double)limit) return pcclSuccess;
    float by = (float)((double)limit / norm);
    for (size_t i = 0; i < count; i++)
        train_scale(gradients[i], tensors[i].rows * tensors[i].columns, by);
    return pcclSuccess;
}

pcclResult_t pcclClip(const pcclTrainTensor_t *tensors, size_t count,
                      float *const *gradients, float limit, float *norm_out)
{
    if (!(limit > 0))
        return train_fail(pcclInvalidArgument,
                          "pcclClip: limit is not above 0");
    pcclResult_t rc = check_list(tensors, count, gradients);
    if (rc != pcclSuccess) return rc;
    fenv_t saved;
    train_float_begin(&saved);
    rc = clip(tensors, count, gradients, limit, norm_out);
    train_float_end(&saved);
    return rc;
}

pcclResult_t pcclClipStage(const pcclTrainTensor_t *tensors, size_t count,
                           float *const *gradients, uint32_t stages, bool tail,
                           float *norm_out)
{
    if (stages == 0)
        return train_fail(pcclInvalidArgument, "pcclClipStage: stages is 0");
    float limit = (float)((tail ? 5.0 : 1.0) / sqrt((double)stages));
    return pcclClip(tensors, count, gradients, limit, norm_out);
}
