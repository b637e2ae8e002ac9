/* file_pattern.h - names of files that each process writes for itself. */
#ifndef PCCL_FILE_PATTERN_H
#define PCCL_FILE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* Replaces %r by `rank`, %p by the process id, %h by the name of the host and
 * %% by %; other characters stay. False: `to` is too small. */
bool file_pattern(char *to, size_t size, const char *pattern, const char *rank);

#endif
