/* text_model.c - text, weights and gradient of the language model. */
#include "text_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUTS ((size_t)CONTEXT * EMBEDDING)

static const float learning_rate = 0.1f;
static const float momentum_kept = 0.9f;

/* ------------------------------------------------------------------- text */

static unsigned char symbol_of(int byte)
{
    if (byte == '\n') return 1;
    return byte >= ' ' && byte <= '~' ? (unsigned char)(byte - ' ' + 2) : 0;
}

bool text_load(struct text *text, const char *path)
{
    *text = (struct text){0};
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    bool ok = fseek(file, 0, SEEK_END) == 0;
    long size = ok ? ftell(file) : -1;
    ok = size > CONTEXT && fseek(file, 0, SEEK_SET) == 0;
    if (ok) text->symbols = malloc((size_t)size);
    ok = text->symbols &&
         fread(text->symbols, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (!ok) {
        fprintf(stderr, "%s: cannot be read, or has no more than %d bytes\n",
                path, CONTEXT);
        text_free(text);
        return false;
    }
    text->count = (size_t)size;
    for (size_t i = 0; i < text->count; i++)
        text->symbols[i] = symbol_of(text->symbols[i]);
    return true;
}

void text_free(struct text *text)
{
    free(text->symbols);
    *text = (struct text){0};
}

/* ---------------------------------------------------------------- weights */

/* Position of each matrix in a vector of model->count floats. Rows belong to
 * inputs, so that every inner loop runs along memory. */
struct layers {
    float *embedding; /* SYMBOLS x EMBEDDING */
    float *in;        /* INPUTS x hidden */
    float *in_bias;   /* hidden */
    float *out;       /* hidden x SYMBOLS */
    float *out_bias;  /* SYMBOLS */
};

static struct layers layers_of(const struct model *model, float *vector)
{
    struct layers at;
    at.embedding = vector;
    at.in = at.embedding + SYMBOLS * EMBEDDING;
    at.in_bias = at.in + INPUTS * model->hidden;
    at.out = at.in_bias + model->hidden;
    at.out_bias = at.out + model->hidden * SYMBOLS;
    return at;
}

/* SplitMix64 (Steele et al., OOPSLA 2014): a random number from a number. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Uniform in [-range, range), the same in every process. */
static void fill_random(float *from, const float *end, float range)
{
    for (uint64_t i = 0; from < end; i++, from++) {
        uint64_t bits = mix((uint64_t)(end - from)) >> 40;
        *from = range * ((float)bits / (float)(1 << 23) - 1.0f);
    }
}

bool model_create(struct model *model, size_t hidden)
{
    *model = (struct model){.hidden = hidden};
    model->count = SYMBOLS * EMBEDDING + INPUTS * hidden + hidden +
                   hidden * SYMBOLS + SYMBOLS;
    model->state_size =
        sizeof(struct model_state) + 2 * model->count * sizeof(float);
    model->sums_count = model->count + 2;
    model->state = calloc(1, model->state_size);
    model->sums = calloc(model->sums_count, sizeof(float));
    model->scratch = calloc(2 * (INPUTS + hidden) + SYMBOLS, sizeof(float));
    if (!model->state || !model->sums || !model->scratch) {
        model_free(model);
        return false;
    }
    model->weights = model->state->values;
    model->momentum = model->weights + model->count;

    struct layers w = layers_of(model, model->weights);
    fill_random(w.embedding, w.in, 0.5f);
    fill_random(w.in, w.in_bias, 1.0f / sqrtf((float)INPUTS));
    fill_random(w.out, w.out_bias, 1.0f / sqrtf((float)hidden));
    return true;
}

void model_free(struct model *model)
{
    free(model->state);
    free(model->sums);
    free(model->scratch);
    *model = (struct model){0};
}

uint64_t model_hash(const struct model *model)
{
    const unsigned char *bytes = (const unsigned char *)model->weights;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < model->count * sizeof(float); i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

/* --------------------------------------------------------------- training */

/* y += a * x */
static void add_scaled(float *restrict y, float a, const float *restrict x,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) y[i] += a * x[i];
}

/* Eight partial sums, which the compiler keeps in one vector. */
static float dot(const float *x, const float *y, size_t count)
{
    float sums[8] = {0};
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (size_t k = 0; k < 8; k++) sums[k] += x[i + k] * y[i + k];
    }
    float sum = 0;
    for (; i < count; i++) sum += x[i] * y[i];
    for (size_t k = 0; k < 8; k++) sum += sums[k];
    return sum;
}

/* Converts scores to probabilities in place. */
static void softmax(float *scores)
{
    float top = scores[0], sum = 0;
    for (size_t v = 1; v < SYMBOLS; v++) top = fmaxf(top, scores[v]);
    for (size_t v = 0; v < SYMBOLS; v++) {
        scores[v] = expf(scores[v] - top);
        sum += scores[v];
    }
    for (size_t v = 0; v < SYMBOLS; v++) scores[v] /= sum;
}

/* Adds the gradient of one sample (text[0..CONTEXT-1] is followed by
 * text[CONTEXT]); returns its loss. */
static float add_sample(struct model *model, const unsigned char *text)
{
    const size_t hidden = model->hidden;
    struct layers w = layers_of(model, model->weights);
    struct layers g = layers_of(model, model->sums);
    float *x = model->scratch, *h = x + INPUTS, *p = h + hidden;
    float *dx = p + SYMBOLS, *dh = dx + INPUTS;

    for (size_t c = 0; c < CONTEXT; c++) {
        memcpy(x + c * EMBEDDING, w.embedding + text[c] * EMBEDDING,
               EMBEDDING * sizeof *x);
    }
    memcpy(h, w.in_bias, hidden * sizeof *h);
    for (size_t k = 0; k < INPUTS; k++)
        add_scaled(h, x[k], w.in + k * hidden, hidden);
    for (size_t j = 0; j < hidden; j++) h[j] = tanhf(h[j]);
    memcpy(p, w.out_bias, SYMBOLS * sizeof *p);
    for (size_t j = 0; j < hidden; j++)
        add_scaled(p, h[j], w.out + j * SYMBOLS, SYMBOLS);
    softmax(p);
    float loss = -logf(fmaxf(p[text[CONTEXT]], 1e-30f));

    p[text[CONTEXT]] -= 1.0f; /* p is now d loss / d score */
    add_scaled(g.out_bias, 1.0f, p, SYMBOLS);
    for (size_t j = 0; j < hidden; j++) {
        add_scaled(g.out + j * SYMBOLS, h[j], p, SYMBOLS);
        dh[j] = dot(w.out + j * SYMBOLS, p, SYMBOLS) * (1.0f - h[j] * h[j]);
    }
    add_scaled(g.in_bias, 1.0f, dh, hidden);
    for (size_t k = 0; k < INPUTS; k++) {
        add_scaled(g.in + k * hidden, x[k], dh, hidden);
        dx[k] = dot(w.in + k * hidden, dh, hidden);
    }
    for (size_t c = 0; c < CONTEXT; c++) {
        add_scaled(g.embedding + text[c] * EMBEDDING, 1.0f, dx + c * EMBEDDING,
                   EMBEDDING);
    }
    return loss;
}

void model_gradient(struct model *model, const struct text *text, int batch,
                    int rank, int world)
{
    float *loss = model->sums + model->count, *samples = loss + 1;
    memset(model->sums, 0, model->sums_count * sizeof *model->sums);
    uint64_t first = (uint64_t)model->state->step * (uint64_t)batch;
    for (int i = rank; i < batch; i += world) {
        size_t at = mix(first + (uint64_t)i) % (text->count - CONTEXT);
        *loss += add_sample(model, text->symbols + at);
        *samples += 1.0f;
    }
}

float model_update(struct model *model)
{
    const float loss = model->sums[model->count];
    const float samples = model->sums[model->count + 1];
    for (size_t i = 0; i < model->count; i++) {
        model->momentum[i] =
            momentum_kept * model->momentum[i] + model->sums[i] / samples;
        model->weights[i] -= learning_rate * model->momentum[i];
    }
    model->state->step++;
    return loss / samples;
}
