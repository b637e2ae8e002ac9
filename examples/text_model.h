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
    SYMBOLS = 97,   /* printable ASCII, newline, and one for anything else */
    CONTEXT = 8,    /* characters the model sees */
    EMBEDDING = 16, /* numbers per character */
};

struct text {
    unsigned char *symbols; /* 0..SYMBOLS-1, owned */
    size_t count;
};

/* False, with a line on stderr, if the file is unreadable or too short. */
bool text_load(struct text *text, const char *path);
void text_free(struct text *text);

/* All that a training process must have in common with the others, in one
 * block, so that it can be given to another one in one message. */
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

    /* What the processes add up: the gradient, then the loss and the number
     * of samples it was taken over. The three travel together, so that the
     * mean is right however many processes contributed. */
    float *sums;
    size_t sums_count; /* count + 2 */

    float *scratch; /* activations of one sample */
};

/* The same start weights in every process. False if out of memory. */
bool model_create(struct model *model, size_t hidden);
void model_free(struct model *model);

/* Fills sums with this process's share of the step's batch: those samples i
 * of 0..batch-1 with i % world == rank. Which samples form the batch of a step
 * does not depend on the number of processes. */
void model_gradient(struct model *model, const struct text *text, int batch,
                    int rank, int world);

/* One step of SGD with momentum by the (added up) sums. Returns the mean loss
 * in nats per character before the step. */
float model_update(struct model *model);

/* FNV-1a of the weights: equal hashes mean equal bits. */
uint64_t model_hash(const struct model *model);

#endif
