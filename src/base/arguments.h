/* arguments.h - named values that describe a call, for the text about members
 * that disagree (rule F9 of AGREEMENT.md): a list of bytes that a member makes
 * and the coordinator reads. Nothing depends on them but that text. */
#ifndef PCCL_ARGUMENTS_H
#define PCCL_ARGUMENTS_H

#include "base.h"

enum {
    ARGUMENTS_SIZE = 4096, /* of a list */
    ARGUMENT_NAME_MAX = 31,
    ARGUMENT_TEXT_MAX = 63,
    /* Entries of an array; the last one stands for all that are left. */
    ARGUMENT_VALUES_MAX = 128,
};

/* One argument: a text, or numbers (of an array, unless it is one number). */
struct argument {
    const char *name; /* in a list that was read: not terminated */
    const char *text;
    uint32_t name_size, text_size;
    const uint8_t *values; /* in a list that was read: 8 bytes each */
    uint32_t count;
    bool cut;  /* the last value is a digest of all from there on */
    bool late; /* compared after the arguments that each operation has */
};

/* A list that grows in a buffer of ARGUMENTS_SIZE bytes. */
struct arguments {
    uint8_t *bytes;
    uint32_t size;
};

/* Appends an argument. What does not fit is left out. Texts are cut, and get
 * a question mark for each byte that cannot be printed. */
void arguments_text(struct arguments *a, bool late, const char *name,
                    const char *text);
void arguments_values(struct arguments *a, bool late, const char *name,
                      const uint64_t *values, size_t count);

/* Whether the bytes are a list. */
bool arguments_valid(const uint8_t *bytes, size_t size);
/* Reads the next argument of a valid list, *at bytes from its begin, and moves
 * on. False: the end. */
bool arguments_next(const uint8_t *bytes, size_t size, size_t *at,
                    struct argument *out);
uint64_t argument_value(const struct argument *a, uint32_t i);

#endif
