/* text_model.h - a small character-level language model, for the examples.
 *
 * Guesses the next character of a text from the CONTEXT characters before it:
 * an embedding of each, one tanh layer, a softmax over all symbols (Bengio et
 * al., JMLR 3, 2003, without the direct connections). Knows nothing of MPI. */
#ifndef TEXT_MODEL_H
#define TEXT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SYMBOLS = 97,   /* printable ASCII, newline, and one for all others */
    CONTEXT = 8,    /* characters of context */
    EMBEDDING = 16, /* numbers per character */
};

struct text {
    unsigned char *symbols; /* 0..SYMBOLS-1, owned */
    size_t count;
};

/* False, with a line on stderr, if the file is unreadable or too short. */
bool text_load(struct text *text, const char *path);
void text_free(struct text *text);

/* The state that all training processes share, in one block, so that one
 * message can carry it. */
struct model_state {
    int64_t step;   /* steps done */
    float values[]; /* count weights, then count momenta */
};

struct model {
    size_t hidden;             /* units of the tanh layer */
    size_t count;              /* weights */
    float *weights, *momentum; /* both inside *state */
    struct model_state *state;
    size_t state_size; /* bytes */

    /* Summed over the processes: the gradient, then the loss and the number of
     * samples. They travel together, so that the mean is right for any number
     * of contributors. */
    float *sums;
    size_t sums_count; /* count + 2 */

    float *scratch; /* activations of one sample */
};

/* Initial weights are the same in every process. False: out of memory. */
bool model_create(struct model *model, size_t hidden);
void model_free(struct model *model);

/* Fills sums with this process's part of the batch: the samples i of 0..batch-1
 * with i % world == rank. The batch of a step does not depend on the number of
 * processes. */
void model_gradient(struct model *model, const struct text *text, int batch,
                    int rank, int world);

/* One step of SGD with momentum by the sums over all processes. Returns the
 * mean loss before the step, in nats per character. */
float model_update(struct model *model);

/* FNV-1a of the weights: equal hashes mean equal bits. */
uint64_t model_hash(const struct model *model);

#endif
