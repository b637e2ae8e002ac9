/* descriptor.h - file descriptors of our own: close-on-exec, and non-blocking
 * without doing that to the terminal or pipe that we share with others. */
#ifndef PCCL_LAUNCH_DESCRIPTOR_H
#define PCCL_LAUNCH_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

/* Opens /dev/null on those of 0, 1, 2 that are closed, so that no descriptor
 * of ours is taken for one of them. */
void descriptor_standard(void);

/* Above 2, close-on-exec. -1 with errno. */
int descriptor_pipe(int ends[2]);
int descriptor_null(void); /* /dev/null */

enum descriptor_kind {
    DESCRIPTOR_NONBLOCKING, /* our own description, or never blocks */
    DESCRIPTOR_SOCKET,      /* per-call flags make it non-blocking */
    DESCRIPTOR_BLOCKING,    /* may only be touched when poll says so */
};

/* A descriptor for the same file as shared, which stays as it is. */
int descriptor_private(int shared, int access_mode, enum descriptor_kind *kind);

/* Both write into the same file, pipe or terminal. */
bool descriptor_is_same(int one, int other);

/* EAGAIN when it would block. */
ssize_t descriptor_write(int fd, enum descriptor_kind kind, const void *bytes,
                         size_t size);

#endif
