/* descriptor.h - private file descriptors: close-on-exec, and non-blocking
 * without changing a terminal or pipe shared with other processes. */
#ifndef PCCL_LAUNCH_DESCRIPTOR_H
#define PCCL_LAUNCH_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Opens /dev/null on those of 0, 1, 2 that are closed, so that later
 * descriptors do not get these numbers. */
void descriptor_standard(void);

/* This process may have as many as the system allows; `before` gets the limit
 * that its children are to have. A coordinator needs one per peer, and a rank
 * two pipes. */
void descriptor_raise_limit(struct rlimit *before);

/* Above 2, close-on-exec. -1 with errno. */
int descriptor_pipe(int ends[2]);
int descriptor_null(void); /* /dev/null */

enum descriptor_kind {
    DESCRIPTOR_NONBLOCKING, /* a description of our own, or one that never
                               blocks */
    DESCRIPTOR_SOCKET,      /* per-call flags make it non-blocking */
    DESCRIPTOR_DISK,        /* a file: nothing makes it non-blocking */
    DESCRIPTOR_BLOCKING,    /* use only when poll reports it ready */
};

/* A new descriptor for the file of `shared`, which stays unchanged. */
int descriptor_private(int shared, int access_mode, enum descriptor_kind *kind);

/* Whether both write to the same file, pipe or terminal. */
bool descriptor_is_same(int one, int other);

/* EAGAIN when it would block. */
ssize_t descriptor_write(int fd, enum descriptor_kind kind, const void *bytes,
                         size_t size);

#endif
