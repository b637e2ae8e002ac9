/* train_step.h - the arithmetic of optimizers, element by element. It is
 * compiled without contraction, so that its bits do not depend on the machine.
 */
#ifndef PCCL_TRAIN_STEP_H
#define PCCL_TRAIN_STEP_H

#include <stddef.h>

struct step_adam_w {
    float rate, beta1, beta2, epsilon, decay;
    float correct1, correct2; /* 1 - beta^steps */
};

void step_adam_w(float *w, float *m, float *v, const float *g, size_t count,
                 const struct step_adam_w *by);
void step_nesterov(float *w, float *m, const float *g, size_t count, float rate,
                   float momentum);
/* The sum of squares, in the same order everywhere. */
double step_squares(const float *x, size_t count);

#endif
