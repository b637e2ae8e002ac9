/* small_file.h - files of the kernel, and others that are as small. */
#ifndef PCCL_SMALL_FILE_H
#define PCCL_SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The beginning of a file, as a text. False: it cannot be read, or is empty;
 * the text is empty then. */
bool small_file_read(const char *path, char *text, size_t size);

#endif
