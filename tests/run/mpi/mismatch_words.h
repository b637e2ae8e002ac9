/* mismatch_words.h - reads the text of an error about ranks that disagree, for
 * mpi_mismatch.c. */
#ifndef MISMATCH_WORDS_H
#define MISMATCH_WORDS_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 12 };

/* Ranks of "0, 2-4" in bits; 0: not such a list. */
static unsigned ranks_in(const char *list)
{
    unsigned bits = 0;
    while (*list) {
        char *end;
        long from = strtol(list, &end, 10), to = from;
        if (end == list) return 0;
        if (*end == '-') to = strtol(end + 1, &end, 10);
        for (; from >= 0 && from <= to && to < RANKS_MAX; from++)
            bits |= 1u << from;
        if (strncmp(end, ", ", 2) == 0) end += 2;
        if (*end && end == list) return 0;
        list = end;
    }
    return bits;
}

/* "V on rank R; W on ranks S, T": two values at least, and each rank in one
 * place at most; this one at its own value. */
static int values_are_right(char *values, const char *own, int rank, int size)
{
    int count = 0;
    unsigned all = 0;
    for (char *next, *at = values; at; at = next) {
        char *list = NULL;
        next = strstr(at, "; ");
        if (next) *next = 0;
        if (next) next += 2;
        for (char *found = at; (found = strstr(found, " on rank")); found++)
            list = found;
        if (!list) return 0;
        *list = 0;
        unsigned bits = ranks_in(list + 9 + (list[8] == 's'));
        if (bits == 0 || (bits & all)) return 0;
        if (bits >> rank & 1 && strcmp(at, own) != 0) return 0;
        all |= bits;
        count++;
    }
    return count > 1 && all < 1u << size;
}

/* What one sends to another, which expects something else. */
static int sizes_are_right(const char *at)
{
    int from, to, used = 0;
    long sent, expected;
    return sscanf(at,
                  "members disagree on the bytes from rank %d to rank %d: %ld "
                  "sent, %ld expected%n",
                  &from, &to, &sent, &expected, &used) == 4 &&
           at[used] == 0 && sent != expected;
}

/* All ranks have the same text. */
static int text_is_everywhere(const char *error)
{
    unsigned hash = 0;
    for (const char *at = error; *at; at++)
        hash = hash * 31 + (unsigned char)*at;
    int sum[2] = {(int)(hash & 0xffffff), 0};
    sum[1] = -sum[0];
    return MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_INT, MPI_MAX,
                         MPI_COMM_WORLD) == MPI_SUCCESS &&
           sum[0] == -sum[1];
}

/* The part of an error's text that is the same on all ranks. */
static char *error_text(int code, char text_out[MPI_MAX_ERROR_STRING])
{
    int length;
    MPI_Error_string(code, text_out, &length);
    char *at = strstr(text_out, "members disagree on ");
    return at ? at : text_out;
}

#endif
