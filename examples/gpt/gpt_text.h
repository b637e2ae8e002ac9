/* gpt_text.h - a text, and which of its samples a step is trained with. */
#ifndef GPT_TEXT_H
#define GPT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpt_text {
    unsigned char *bytes;
    size_t count;   /* of which the first `trained` are for training */
    size_t trained; /* the others, a twentieth, are held out */
    size_t context;
};

/* Reads any file. False, with a line on stderr, if it cannot be read or is too
 * short for texts of context + 1 bytes. */
bool gpt_text_load(struct gpt_text *text, const char *path, size_t context);
void gpt_text_free(struct gpt_text *text);

/* Sample number `index` of a step: a function of the arguments alone, so that
 * any number of members can share a step, and a run can be repeated. */
const unsigned char *gpt_text_sample(const struct gpt_text *text, uint64_t seed,
                                     int64_t step, int index);

/* Sample `index` of `count` that are held out, evenly spread. */
const unsigned char *gpt_text_held(const struct gpt_text *text, int index,
                                   int count);

#endif
