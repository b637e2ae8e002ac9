/* gpt_model.c - weights of the model, a batch forward and backward. */
#include "gpt_model.h"

#include "gpt_layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- weights */

uint64_t gpt_random(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void list(struct gpt *gpt, const char *name, size_t layer, size_t rows,
                 size_t columns)
{
    struct gpt_tensor *t = &gpt->tensors[gpt->tensor_count++];
    if (*name == '.')
        snprintf(t->name, sizeof t->name, "%zu%s", layer, name);
    else
        snprintf(t->name, sizeof t->name, "%s", name);
    t->rows = rows;
    t->columns = columns;
    gpt->count += rows * columns;
}

/* In the order in which they lie, see struct weights. */
static void list_tensors(struct gpt *gpt)
{
    const size_t d = gpt->shape.width;
    list(gpt, "bytes", 0, GPT_SYMBOLS, d);
    list(gpt, "positions", 0, gpt->shape.context, d);
    for (size_t i = 0; i < gpt->shape.layers; i++) {
        list(gpt, ".norm1", i, 1, d);
        list(gpt, ".qkv", i, d, 3 * d);
        list(gpt, ".mix", i, d, d);
        list(gpt, ".norm2", i, 1, d);
        list(gpt, ".up", i, d, 4 * d);
        list(gpt, ".down", i, 4 * d, d);
    }
    list(gpt, "norm", 0, 1, d);
    list(gpt, "head", 0, d, GPT_SYMBOLS);
}

struct weights { /* of one layer, or their gradient */
    real *norm1, *qkv, *mix, *norm2, *up, *down;
};

static struct weights layer_at(const struct gpt *gpt, real *vector, size_t i)
{
    const size_t d = gpt->shape.width;
    struct weights w;
    w.norm1 =
        vector + (GPT_SYMBOLS + gpt->shape.context + i * (2 + 12 * d)) * d;
    w.qkv = w.norm1 + d;
    w.mix = w.qkv + 3 * d * d;
    w.norm2 = w.mix + d * d;
    w.up = w.norm2 + d;
    w.down = w.up + 4 * d * d;
    return w;
}

static real *norm_at(const struct gpt *gpt, real *vector)
{
    return vector + gpt->count - (1 + GPT_SYMBOLS) * gpt->shape.width;
}

static real *head_at(const struct gpt *gpt, real *vector)
{
    return vector + gpt->count - GPT_SYMBOLS * gpt->shape.width;
}

/* Gains are 1. Matrices are uniform in [-range, range) with a variance of 1 /
 * rows; of those whose output is added to the stream, less by 2 layers; symbols
 * and positions 0.1 wide. The same in every process: exact arithmetic only. */
static void fill(struct gpt *gpt, uint64_t seed)
{
    real *at = gpt->weights;
    uint64_t number = 0;
    for (size_t t = 0; t < gpt->tensor_count; t++) {
        const struct gpt_tensor *tensor = &gpt->tensors[t];
        double range = sqrt(3.0 / (double)tensor->rows);
        if (strstr(tensor->name, ".mix") || strstr(tensor->name, ".down"))
            range /= sqrt(2.0 * (double)gpt->shape.layers);
        if (t < 2) range = 0.1;
        for (size_t i = 0; i < tensor->rows * tensor->columns; i++) {
            uint64_t bits = gpt_random(gpt_random(seed) + number++) >> 40;
            double unit = (double)bits / (double)(1 << 23) - 1;
            *at++ = tensor->rows == 1 ? 1 : (real)(range * unit);
        }
    }
}

/* ---------------------------------------------------------------- scratch */

struct layer { /* what the way back needs of the way there */
    real *in, *norm1, *scale1, *qkv, *p, *y, *middle, *norm2, *scale2, *up,
        *act;
};

struct gpt_scratch {
    struct layer layers[GPT_LAYERS_MOST];
    real *out, *norm, *scale, *scores;
    real *stream, *narrow, *wide, *p; /* gradients */
    unsigned char *now, *next;
};

/* Takes `count` numbers from *at, or only counts them if `base` is NULL. */
static real *take(real *base, size_t *at, size_t count)
{
    real *taken = base ? base + *at : NULL;
    *at += (count + 15) / 16 * 16;
    return taken;
}

/* The numbers that the parts of `s` take. */
static size_t divide(const struct gpt *gpt, struct gpt_scratch *s, real *base)
{
    const size_t n = gpt->batch * gpt->shape.context, d = gpt->shape.width;
    const size_t square = n * gpt->shape.context * gpt->shape.heads;
    size_t at = 0;
    for (size_t i = 0; i < gpt->shape.layers; i++) {
        s->layers[i] = (struct layer){
            .in = take(base, &at, n * d),
            .norm1 = take(base, &at, n * d),
            .scale1 = take(base, &at, n),
            .qkv = take(base, &at, n * 3 * d),
            .p = take(base, &at, square),
            .y = take(base, &at, n * d),
            .middle = take(base, &at, n * d),
            .norm2 = take(base, &at, n * d),
            .scale2 = take(base, &at, n),
            .up = take(base, &at, n * 4 * d),
            .act = take(base, &at, n * 4 * d),
        };
    }
    s->out = take(base, &at, n * d);
    s->norm = take(base, &at, n * d);
    s->scale = take(base, &at, n);
    s->scores = take(base, &at, n * GPT_SYMBOLS);
    s->stream = take(base, &at, n * d);
    s->narrow = take(base, &at, n * d);
    s->wide = take(base, &at, n * 4 * d);
    s->p = take(base, &at, square);
    return at;
}

bool gpt_create(struct gpt *gpt, struct gpt_shape shape, size_t batch,
                uint64_t seed)
{
    *gpt = (struct gpt){.shape = shape, .batch = batch};
    list_tensors(gpt);
    struct gpt_scratch *s = calloc(1, sizeof *s);
    gpt->scratch = s;
    gpt->weights = calloc(gpt->count, sizeof(real));
    gpt->gradient = calloc(gpt->count + GPT_ROOM, sizeof(real));
    if (s) {
        s->layers[0].in = calloc(divide(gpt, s, NULL), sizeof(real));
        if (s->layers[0].in) (void)divide(gpt, s, s->layers[0].in);
        s->now = calloc(2 * batch, shape.context);
        if (s->now) s->next = s->now + batch * shape.context;
    }
    if (!s || !gpt->weights || !gpt->gradient || !s->layers[0].in || !s->now) {
        gpt_free(gpt);
        return false;
    }
    fill(gpt, seed);
    return true;
}

void gpt_free(struct gpt *gpt)
{
    if (gpt->scratch) {
        free(gpt->scratch->layers[0].in);
        free(gpt->scratch->now);
    }
    free(gpt->scratch);
    free(gpt->weights);
    free(gpt->gradient);
    *gpt = (struct gpt){0};
}

/* ------------------------------------------------------- there and back */

static void add(real *restrict x, const real *restrict y, size_t count)
{
    for (size_t i = 0; i < count; i++) x[i] += y[i];
}

void gpt_embed(const struct gpt *gpt, real *x, size_t samples)
{
    const size_t d = gpt->shape.width, rows = samples * gpt->shape.context;
    const real *position = gpt->weights + GPT_SYMBOLS * d;
    for (size_t i = 0; i < rows; i++) {
        memcpy(x + i * d, gpt->weights + gpt->scratch->now[i] * d,
               d * sizeof *x);
        add(x + i * d, position + i % gpt->shape.context * d, d);
    }
}

/* out = in + attention; out += the two products */
static void layer_there(const struct gpt *gpt, size_t i, real *out,
                        size_t samples)
{
    const struct layer *l = &gpt->scratch->layers[i];
    const struct weights w = layer_at(gpt, gpt->weights, i);
    const size_t d = gpt->shape.width, n = samples * gpt->shape.context;
    const struct gpt_attention shape = {samples, gpt->shape.context,
                                        gpt->shape.heads, d};
    gpt_norm(l->norm1, l->scale1, l->in, w.norm1, n, d);
    gpt_linear(l->qkv, l->norm1, w.qkv, n, d, 3 * d);
    gpt_attend(&shape, l->y, l->p, l->qkv);
    gpt_linear(l->middle, l->y, w.mix, n, d, d);
    add(l->middle, l->in, n * d);
    gpt_norm(l->norm2, l->scale2, l->middle, w.norm2, n, d);
    gpt_linear(l->up, l->norm2, w.up, n, d, 4 * d);
    gpt_gelu(l->act, l->up, n * 4 * d);
    gpt_linear(out, l->act, w.down, n, 4 * d, d);
    add(out, l->middle, n * d);
}

/* s->stream is the gradient of the layer's output, and becomes that of its
 * input. */
static void layer_back(const struct gpt *gpt, size_t i, size_t samples)
{
    struct gpt_scratch *s = gpt->scratch;
    const struct layer *l = &s->layers[i];
    const struct weights w = layer_at(gpt, gpt->weights, i);
    const struct weights g = layer_at(gpt, gpt->gradient, i);
    const size_t d = gpt->shape.width, n = samples * gpt->shape.context;
    const struct gpt_attention shape = {samples, gpt->shape.context,
                                        gpt->shape.heads, d};
    gpt_linear_back(s->wide, g.down, s->stream, l->act, w.down, n, 4 * d, d);
    gpt_gelu_back(s->wide, s->wide, l->up, n * 4 * d);
    gpt_linear_back(s->narrow, g.up, s->wide, l->norm2, w.up, n, d, 4 * d);
    gpt_norm_back(s->stream, g.norm2, s->narrow, l->middle, w.norm2, l->scale2,
                  n, d);
    gpt_linear_back(s->narrow, g.mix, s->stream, l->y, w.mix, n, d, d);
    gpt_attend_back(&shape, s->wide, s->p, s->narrow, l->p, l->qkv);
    gpt_linear_back(s->narrow, g.qkv, s->wide, l->norm1, w.qkv, n, d, 3 * d);
    gpt_norm_back(s->stream, g.norm1, s->narrow, l->in, w.norm1, l->scale1, n,
                  d);
}

void gpt_take(struct gpt *gpt, const unsigned char *const *samples,
              size_t count)
{
    struct gpt_scratch *s = gpt->scratch;
    const size_t t = gpt->shape.context;
    for (size_t i = 0; i < count; i++) {
        memcpy(s->now + i * t, samples[i], t);
        memcpy(s->next + i * t, samples[i] + 1, t);
    }
}

real *gpt_input(const struct gpt *gpt, size_t layer)
{
    const struct gpt_scratch *s = gpt->scratch;
    return layer < gpt->shape.layers ? s->layers[layer].in : s->out;
}

real *gpt_stream(const struct gpt *gpt)
{
    return gpt->scratch->stream;
}

void gpt_forward(struct gpt *gpt, size_t first, size_t last, size_t samples)
{
    for (size_t i = first; i < last; i++)
        layer_there(gpt, i, gpt_input(gpt, i + 1), samples);
}

double gpt_finish(struct gpt *gpt, size_t samples)
{
    struct gpt_scratch *s = gpt->scratch;
    const size_t d = gpt->shape.width, t = gpt->shape.context;
    const size_t n = samples * t;
    gpt_norm(s->norm, s->scale, s->out, norm_at(gpt, gpt->weights), n, d);
    gpt_linear(s->scores, s->norm, head_at(gpt, gpt->weights), n, d,
               GPT_SYMBOLS);
    double sum =
        gpt_cross_entropy(s->scores, s->next, n, GPT_SYMBOLS, 1 / (real)t);
    return sum / (double)t;
}

void gpt_finish_back(struct gpt *gpt, size_t samples)
{
    struct gpt_scratch *s = gpt->scratch;
    const size_t d = gpt->shape.width, n = samples * gpt->shape.context;
    gpt_linear_back(s->narrow, head_at(gpt, gpt->gradient), s->scores, s->norm,
                    head_at(gpt, gpt->weights), n, d, GPT_SYMBOLS);
    memset(s->stream, 0, n * d * sizeof *s->stream);
    gpt_norm_back(s->stream, norm_at(gpt, gpt->gradient), s->narrow, s->out,
                  norm_at(gpt, gpt->weights), s->scale, n, d);
}

void gpt_backward(struct gpt *gpt, size_t first, size_t last, size_t samples)
{
    for (size_t i = last; i-- > first;) layer_back(gpt, i, samples);
}

void gpt_embed_back(struct gpt *gpt, size_t samples)
{
    const struct gpt_scratch *s = gpt->scratch;
    const size_t d = gpt->shape.width, n = samples * gpt->shape.context;
    real *positions = gpt->gradient + GPT_SYMBOLS * d;
    for (size_t i = 0; i < n; i++) {
        const real *from = s->stream + i * d;
        add(gpt->gradient + s->now[i] * d, from, d);
        add(positions + i % gpt->shape.context * d, from, d);
    }
}

static double there(struct gpt *gpt, const unsigned char *const *texts,
                    size_t samples)
{
    gpt_take(gpt, texts, samples);
    gpt_embed(gpt, gpt_input(gpt, 0), samples);
    gpt_forward(gpt, 0, gpt->shape.layers, samples);
    return gpt_finish(gpt, samples);
}

static void back(struct gpt *gpt, size_t samples)
{
    gpt_finish_back(gpt, samples);
    gpt_backward(gpt, 0, gpt->shape.layers, samples);
    gpt_embed_back(gpt, samples);
}

static double all(struct gpt *gpt, const unsigned char *const *samples,
                  size_t count, bool gradient)
{
    double sum = 0;
    for (size_t i = 0; i < count; i += gpt->batch) {
        size_t some = count - i < gpt->batch ? count - i : gpt->batch;
        sum += there(gpt, samples + i, some);
        if (gradient) back(gpt, some);
    }
    return sum;
}

double gpt_loss(struct gpt *gpt, const unsigned char *const *samples,
                size_t count)
{
    return all(gpt, samples, count, false);
}

double gpt_gradient(struct gpt *gpt, const unsigned char *const *samples,
                    size_t count)
{
    return all(gpt, samples, count, true);
}
