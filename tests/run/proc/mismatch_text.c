/* mismatch_text.c - see mismatch.h. Knows the calls of all members, and nothing
 * of how the library makes its text. */
#include "mismatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 96 };

struct reader {
    const struct mismatch *m;
    const uint64_t *ids;
    int world;
};

static void scope_word(const struct reader *r, int rank, char *out)
{
    const struct member_call *c = &r->m->calls[rank];
    int used = 0, count = c->scope_count > 0 ? c->scope_count : r->world;
    bool in[MISMATCH_WORLD_MAX] = {false};
    for (int i = 0; i < count; i++)
        in[c->scope_count > 0 ? c->scope[i] : i] = true;
    used = snprintf(out, WORD, "rank%s ", count > 1 ? "s" : "");
    for (int i = 0; i < r->world; i++) {
        int end = i;
        if (!in[i]) continue;
        while (end + 1 < r->world && in[end + 1]) end++;
        const char *comma = used > 6 ? ", " : "";
        if (end >= i + 2)
            used += snprintf(out + used, (size_t)(WORD - used), "%s%d-%d",
                             comma, i, end);
        else
            used += snprintf(out + used, (size_t)(WORD - used), "%s%d", comma,
                             end = i);
        i = end;
    }
}

static uint64_t elements(const struct member_call *c)
{
    return c->kind == pcclKindAllReduce || c->kind == pcclKindReduceScatter
               ? c->bytes / mismatch_element(c->datatype)
               : c->bytes;
}

/* The value that a rank has under a name; false: no such name. */
static bool word_of(const struct reader *r, const char *name, int rank,
                    char *out)
{
    static const char *const kinds[] = {"all-reduce", "broadcast",
                                        "barrier",    "all-gather",
                                        "all-to-all", "reduce-scatter"};
    static const char *const types[] = {"u8",  "i8",   "i16", "u16",
                                        "u32", "i32",  "u64", "i64",
                                        "f16", "bf16", "f32", "f64"};
    static const char *const ops[] = {"sum", "avg", "prod", "max", "min"};
    static const char *const quants[] = {"none", "min-max", "zero-point"};
    const struct member_call *c = &r->m->calls[rank];
    unsigned long long number = 0;
    const char *word = NULL;
    if (strcmp(name, "the kind") == 0)
        word = kinds[c->kind];
    else if (strcmp(name, "the count") == 0 || strcmp(name, "the bytes") == 0)
        number = elements(c);
    else if (strcmp(name, "the datatype") == 0)
        word = types[c->datatype];
    else if (strcmp(name, "the operator") == 0)
        word = ops[c->op];
    else if (strcmp(name, "the quantization") == 0)
        word = quants[c->quantization];
    else if (strcmp(name, "the datatype of codes") == 0)
        word = c->quantization ? types[c->code] : quants[0];
    else if (strcmp(name, "the root") == 0)
        number = (unsigned long long)c->root;
    else if (strcmp(name, "the user digest") == 0)
        number = c->user_digest;
    else if (strcmp(name, "the scope") == 0)
        scope_word(r, rank, out);
    else if (strncmp(name, "members[", 8) == 0)
        number = r->ids[c->scope[atoi(name + 8)]];
    else
        return false;
    if (strcmp(name, "the scope") == 0) return true;
    if (word)
        snprintf(out, WORD, "%s", word);
    else
        snprintf(out, WORD, "%llu", number);
    return true;
}

/* Reads "1, 3-5". Each of these ranks must have the value. Returns how many
 * there are, or -1. */
static int ranks_have(const struct reader *r, const char *name,
                      const char *value, const char *list)
{
    int count = 0;
    for (const char *at = list; *at;) {
        char *end, word[WORD];
        long first = strtol(at, &end, 10), last = first;
        if (end == at) return -1;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        for (long i = first; i <= last; i++, count++) {
            if (i < 0 || i >= r->world) return -1;
            if (!word_of(r, name, (int)i, word) || strcmp(word, value) != 0)
                return -1;
        }
        if (strncmp(end, ", ", 2) == 0) end += 2;
        at = end;
    }
    return count;
}

static bool sizes_are_right(const struct reader *r, const char *text)
{
    int from, to, used = 0;
    size_t sent, expected;
    if (sscanf(text,
               "members disagree on the bytes from rank %d to rank %d: %zu "
               "sent, %zu expected%n",
               &from, &to, &sent, &expected, &used) != 4)
        return false;
    if (from < 0 || from >= r->world || to < 0 || to >= r->world) return false;
    return text[used] == '\0' && sent != expected &&
           r->m->calls[from].send[to] == sent &&
           r->m->calls[to].recv[from] == expected;
}

/* "V on rank R; W on ranks S, T": two values at least. */
static bool values_are_right(const struct reader *r, const char *name,
                             char *values)
{
    int count = 0;
    for (char *next, *at = values; at; at = next) {
        char *list = NULL;
        next = strstr(at, "; ");
        if (next) *next = '\0';
        if (next) next += 2;
        for (char *found = at; (found = strstr(found, " on rank")); found++)
            list = found;
        if (!list) return false;
        *list = '\0';
        list += strlen(" on rank") + (list[8] == 's') + 1;
        if (ranks_have(r, name, at, list) < 1) return false;
        count++;
    }
    return count > 1;
}

bool mismatch_text_is_right(const struct mismatch *m, int world,
                            const uint64_t *ids, const char *text)
{
    struct reader r = {.m = m, .ids = ids, .world = world};
    static const char begin[] = "members disagree on ";
    char copy[512];
    const char *at = strstr(text, " (tag 1): ");
    if (!at) return false;
    at += strlen(" (tag 1): ");
    if (sizes_are_right(&r, at)) return true;
    if (strncmp(at, begin, sizeof begin - 1) != 0) return false;
    snprintf(copy, sizeof copy, "%s", at + sizeof begin - 1);
    char *colon = strstr(copy, ": ");
    if (!colon) return false;
    *colon = '\0';
    return values_are_right(&r, copy, colon + 2);
}
