/* gpt_model.h - a small transformer that predicts the next byte of a text.
 *
 * Bytes are the symbols. Each layer: norm, causal attention, norm, two products
 * with GELU between them, both added to what came in. Positions are learned,
 * there are no biases. */
#ifndef GPT_MODEL_H
#define GPT_MODEL_H

#include "gpt_matrix.h"

#include <stdint.h>

#define GPT_SYMBOLS 256
#define GPT_LAYERS_MOST 64
#define GPT_ROOM 4

struct gpt_shape {
    size_t layers, heads, width; /* width divisible by heads */
    size_t context;              /* bytes that the model sees */
};

/* One matrix of the weights; they lie one after another. */
struct gpt_tensor {
    char name[32];
    size_t rows, columns;
};
#define GPT_TENSORS_MOST (4 + 6 * GPT_LAYERS_MOST)

struct gpt {
    struct gpt_shape shape;
    size_t batch; /* samples that are computed at once */
    size_t count; /* weights */
    size_t tensor_count;
    struct gpt_tensor tensors[GPT_TENSORS_MOST];
    real *weights;
    real *gradient;              /* and room for GPT_ROOM numbers more */
    struct gpt_scratch *scratch; /* what one batch leaves */
};

/* False if there is no memory. The weights are set from the seed alone. */
bool gpt_create(struct gpt *gpt, struct gpt_shape shape, size_t batch,
                uint64_t seed);
void gpt_free(struct gpt *gpt);

/* The loss of samples, in nats per byte, summed over the samples. Each one is
 * context + 1 bytes: each byte but the first one is predicted from those before
 * it. */
double gpt_loss(struct gpt *gpt, const unsigned char *const *samples,
                size_t count);
/* The same, and adds the gradient of that sum to gpt->gradient. */
double gpt_gradient(struct gpt *gpt, const unsigned char *const *samples,
                    size_t count);

/* A batch in parts, for programs that spread the layers: text, forward, loss,
 * backward, each for a range of layers. Backward functions follow the forward
 * ones of the same batch. Pointers are to the model's own memory, `samples` *
 * context rows of width, and valid until it is freed. */

/* Takes the samples as what is known, and what is to be predicted. */
void gpt_take(struct gpt *gpt, const unsigned char *const *samples,
              size_t count);
/* Writes symbols and positions of the samples taken. */
void gpt_embed(const struct gpt *gpt, real *x, size_t samples);
/* The input of a layer; of number `layers`: the output of the last one. */
real *gpt_input(const struct gpt *gpt, size_t layer);
/* The gradient of where the way back has come to. */
real *gpt_stream(const struct gpt *gpt);
/* From the input of layer `first` to that of layer `last`. */
void gpt_forward(struct gpt *gpt, size_t first, size_t last, size_t samples);
/* The loss of the samples, summed. */
double gpt_finish(struct gpt *gpt, size_t samples);
/* Adds the gradient of the sum, and sets the stream before the last norm. */
void gpt_finish_back(struct gpt *gpt, size_t samples);
/* The stream, of the input of layer `last`, becomes that of layer `first`. */
void gpt_backward(struct gpt *gpt, size_t first, size_t last, size_t samples);
/* Adds the stream to the gradient of symbols and positions. */
void gpt_embed_back(struct gpt *gpt, size_t samples);

/* SplitMix64 (Steele et al., OOPSLA 2014): a random number from a number. */
uint64_t gpt_random(uint64_t number);

#endif
