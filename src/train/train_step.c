/* train_step.c - plain loops, which compilers vectorize. */
#include "train_step.h"

#include <math.h>

void step_adam_w(float *restrict w, float *restrict m, float *restrict v,
                 const float *restrict g, size_t count,
                 const struct step_adam_w *by)
{
    const struct step_adam_w s = *by;
    for (size_t i = 0; i < count; i++) {
        m[i] = s.beta1 * m[i] + (1 - s.beta1) * g[i];
        v[i] = s.beta2 * v[i] + (1 - s.beta2) * g[i] * g[i];
        float size = sqrtf(v[i] / s.correct2) + s.epsilon;
        w[i] -= s.rate * (m[i] / s.correct1 / size + s.decay * w[i]);
    }
}

void step_nesterov(float *restrict w, float *restrict m,
                   const float *restrict g, size_t count, float rate,
                   float momentum)
{
    for (size_t i = 0; i < count; i++) {
        m[i] = momentum * m[i] + g[i];
        w[i] -= rate * (g[i] + momentum * m[i]);
    }
}

double step_squares(const float *x, size_t count)
{
    double sums[16] = {0};
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        for (size_t k = 0; k < 16; k++)
            sums[k] += (double)x[i + k] * (double)x[i + k];
    }
    for (size_t k = 0; i < count; i++, k++)
        sums[k] += (double)x[i] * (double)x[i];
    for (size_t k = 1; k < 16; k++) sums[0] += sums[k];
    return sums[0];
}
