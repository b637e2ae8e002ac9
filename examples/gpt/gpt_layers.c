/* gpt_layers.c - the layers of the model: products, norms, attention, loss.
 *
 * The threads of OpenMP share rows, or heads of attention. Sums over rows are
 * made by one thread, so that the number of threads changes no result. */
#include "gpt_layers.h"

#include <string.h>
#include <tgmath.h>

static struct gpt_matrix plain(const real *at, size_t columns)
{
    return (struct gpt_matrix){at, columns, 1};
}

static struct gpt_matrix transposed(const real *at, size_t columns)
{
    return (struct gpt_matrix){at, 1, columns};
}

void gpt_linear(real *y, const real *x, const real *w, size_t rows, size_t in,
                size_t out)
{
    gpt_product(y, out, plain(x, in), plain(w, out), rows, out, in, false);
}

void gpt_linear_back(real *dx, real *dw, const real *dy, const real *x,
                     const real *w, size_t rows, size_t in, size_t out)
{
    gpt_product(dw, out, transposed(x, in), plain(dy, out), in, out, rows,
                true);
    if (dx)
        gpt_product(dx, in, plain(dy, out), transposed(w, out), rows, in, out,
                    false);
}

/* ------------------------------------------------------------------ norm */

void gpt_norm(real *y, real *scale, const real *x, const real *gain,
              size_t rows, size_t width)
{
#pragma omp parallel for
    for (size_t i = 0; i < rows; i++) {
        const real *from = x + i * width;
        real sum = 0;
        for (size_t j = 0; j < width; j++) sum += from[j] * from[j];
        scale[i] = 1 / sqrt(sum / (real)width + (real)1e-5);
        for (size_t j = 0; j < width; j++)
            y[i * width + j] = from[j] * scale[i] * gain[j];
    }
}

void gpt_norm_back(real *dx, real *dgain, const real *dy, const real *x,
                   const real *gain, const real *scale, size_t rows,
                   size_t width)
{
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < width; j++)
            dgain[j] += dy[i * width + j] * x[i * width + j] * scale[i];
    }
#pragma omp parallel for
    for (size_t i = 0; i < rows; i++) {
        const real *d = dy + i * width, *from = x + i * width;
        real sum = 0;
        for (size_t j = 0; j < width; j++) sum += d[j] * gain[j] * from[j];
        sum *= scale[i] * scale[i] / (real)width;
        for (size_t j = 0; j < width; j++)
            dx[i * width + j] += scale[i] * (d[j] * gain[j] - from[j] * sum);
    }
}

/* ------------------------------------------------------------------ GELU */

/* 0.5 (1 + tanh(u)) is the logistic function of 2 u. */
static const real twice = (real)1.5957691216057308; /* 2 sqrt(2 / pi) */
static const real cubic = (real)0.044715;

static real logistic(real x)
{
    return 1 / (1 + exp(-twice * (x + cubic * x * x * x)));
}

void gpt_gelu(real *y, const real *x, size_t count)
{
#pragma omp parallel for
    for (size_t i = 0; i < count; i++) y[i] = x[i] * logistic(x[i]);
}

void gpt_gelu_back(real *dx, const real *dy, const real *x, size_t count)
{
#pragma omp parallel for
    for (size_t i = 0; i < count; i++) {
        real s = logistic(x[i]);
        real slope = twice * (1 + 3 * cubic * x[i] * x[i]);
        dx[i] = dy[i] * (s + x[i] * s * (1 - s) * slope);
    }
}

/* ------------------------------------------------------------- attention */

/* Converts `count` scores to probabilities in place. */
static void softmax(real *scores, size_t count)
{
    real top = scores[0], sum = 0;
    for (size_t i = 1; i < count; i++) {
        if (scores[i] > top) top = scores[i];
    }
    for (size_t i = 0; i < count; i++) {
        scores[i] = exp(scores[i] - top);
        sum += scores[i];
    }
    for (size_t i = 0; i < count; i++) scores[i] /= sum;
}

/* Where head number h of all samples has its rows. */
struct head {
    size_t qkv, y, p; /* offsets */
};

static struct head head_of(const struct gpt_attention *s, size_t h)
{
    size_t sample = h / s->heads, column = h % s->heads * (s->width / s->heads);
    size_t row = sample * s->context;
    return (struct head){row * 3 * s->width + column, row * s->width + column,
                         h * s->context * s->context};
}

void gpt_attend(const struct gpt_attention *s, real *y, real *p,
                const real *qkv)
{
    const size_t n = s->context, size = s->width / s->heads;
    const size_t row = 3 * s->width;
    const real scale = 1 / sqrt((real)size);
#pragma omp parallel for
    for (size_t h = 0; h < s->samples * s->heads; h++) {
        struct head at = head_of(s, h);
        const real *query = qkv + at.qkv, *key = query + s->width;
        real *scores = p + at.p;
        gpt_product(scores, n, plain(query, row), transposed(key, row), n, n,
                    size, false);
        for (size_t i = 0; i < n; i++) {
            real *line = scores + i * n;
            for (size_t j = 0; j <= i; j++) line[j] *= scale;
            softmax(line, i + 1);
            for (size_t j = i + 1; j < n; j++) line[j] = 0;
        }
        gpt_product(y + at.y, s->width, plain(scores, n),
                    plain(key + s->width, row), n, size, n, false);
    }
}

void gpt_attend_back(const struct gpt_attention *s, real *dqkv, real *dp,
                     const real *dy, const real *p, const real *qkv)
{
    const size_t n = s->context, size = s->width / s->heads;
    const size_t row = 3 * s->width;
    const real scale = 1 / sqrt((real)size);
#pragma omp parallel for
    for (size_t h = 0; h < s->samples * s->heads; h++) {
        struct head at = head_of(s, h);
        const real *query = qkv + at.qkv, *key = query + s->width;
        const real *value = key + s->width, *chances = p + at.p;
        real *dquery = dqkv + at.qkv, *dkey = dquery + s->width;
        real *d = dp + at.p;
        struct gpt_matrix out = plain(dy + at.y, s->width);
        gpt_product(dkey + s->width, row, transposed(chances, n), out, n, size,
                    n, false);
        gpt_product(d, n, out, transposed(value, row), n, n, size, false);
        for (size_t i = 0; i < n; i++) {
            real sum = 0;
            for (size_t j = 0; j <= i; j++)
                sum += d[i * n + j] * chances[i * n + j];
            for (size_t j = 0; j < n; j++)
                d[i * n + j] =
                    chances[i * n + j] * (d[i * n + j] - sum) * scale;
        }
        gpt_product(dquery, row, plain(d, n), plain(key, row), n, size, n,
                    false);
        gpt_product(dkey, row, transposed(d, n), plain(query, row), n, size, n,
                    false);
    }
}

/* ------------------------------------------------------------------ loss */

double gpt_cross_entropy(real *scores, const unsigned char *next, size_t rows,
                         size_t symbols, real weight)
{
    double sum = 0;
    for (size_t i = 0; i < rows; i++) {
        real *line = scores + i * symbols;
        softmax(line, symbols);
        sum -= log(fmax((double)line[next[i]], 1e-300));
        line[next[i]] -= 1;
        for (size_t v = 0; v < symbols; v++) line[v] *= weight;
    }
    return sum;
}
