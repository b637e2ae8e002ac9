/* gpt_layers.h - the layers of the model, forward and backward.
 *
 * x is rows x width, one token a row. Backward functions add to the gradients
 * of weights. */
#ifndef GPT_LAYERS_H
#define GPT_LAYERS_H

#include "gpt_matrix.h"

/* y = x w, w is in x out. */
void gpt_linear(real *y, const real *x, const real *w, size_t rows, size_t in,
                size_t out);
/* dw += x^T dy and, if dx is not NULL, dx = dy w^T. */
void gpt_linear_back(real *dx, real *dw, const real *dy, const real *x,
                     const real *w, size_t rows, size_t in, size_t out);

/* y = x / rms(x) * gain, where rms is that of the row. scale gets 1 / rms. */
void gpt_norm(real *y, real *scale, const real *x, const real *gain,
              size_t rows, size_t width);
/* dx += what comes through the norm. */
void gpt_norm_back(real *dx, real *dgain, const real *dy, const real *x,
                   const real *gain, const real *scale, size_t rows,
                   size_t width);

/* GELU in its approximation by tanh (Hendrycks & Gimpel, 2016). */
void gpt_gelu(real *y, const real *x, size_t count);
void gpt_gelu_back(real *dx, const real *dy, const real *x, size_t count);

/* Causal attention in `samples` texts of `context` tokens. */
struct gpt_attention {
    size_t samples, context, heads, width; /* of a head: width / heads */
};
/* qkv  samples * context rows of 3 * width: queries, keys, values.
 * p    samples * heads matrices, context x context: gets the probabilities. */
void gpt_attend(const struct gpt_attention *shape, real *y, real *p,
                const real *qkv);
/* dp  as p, scratch. */
void gpt_attend_back(const struct gpt_attention *shape, real *dqkv, real *dp,
                     const real *dy, const real *p, const real *qkv);

/* Cross-entropy of rows of `symbols` scores. Returns its sum over the rows, in
 * nats; the scores become the gradient of weight * sum. */
double gpt_cross_entropy(real *scores, const unsigned char *next, size_t rows,
                         size_t symbols, real weight);

#endif
