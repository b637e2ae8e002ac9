/* gpt_text.c - a text, and which of its samples a step is trained with. */
#include "gpt_text.h"

#include "gpt_model.h"

#include <stdio.h>
#include <stdlib.h>

bool gpt_text_load(struct gpt_text *text, const char *path, size_t context)
{
    *text = (struct gpt_text){.context = context};
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    bool ok = fseek(file, 0, SEEK_END) == 0;
    long size = ok ? ftell(file) : -1;
    ok = size > 0 && fseek(file, 0, SEEK_SET) == 0;
    if (ok) text->bytes = malloc((size_t)size);
    ok = text->bytes &&
         fread(text->bytes, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (ok) {
        text->count = (size_t)size;
        text->trained = text->count - text->count / 20;
        ok = text->count / 20 > context;
    }
    if (!ok) {
        fprintf(stderr, "%s: cannot be read, or has no more than %zu bytes\n",
                path, 20 * (context + 1) - 1);
        gpt_text_free(text);
    }
    return ok;
}

void gpt_text_free(struct gpt_text *text)
{
    free(text->bytes);
    *text = (struct gpt_text){0};
}

const unsigned char *gpt_text_sample(const struct gpt_text *text, uint64_t seed,
                                     int64_t step, int index)
{
    uint64_t number =
        gpt_random(gpt_random(seed) + (uint64_t)step) + (uint64_t)index;
    return text->bytes + gpt_random(number) % (text->trained - text->context);
}

const unsigned char *gpt_text_held(const struct gpt_text *text, int index,
                                   int count)
{
    size_t places = text->count - text->trained - text->context;
    return text->bytes + text->trained + (size_t)index * places / (size_t)count;
}
