/* descriptor.c - safe handling of file descriptors. */
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

void descriptor_standard(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= 2);
    if (fd > 2) close(fd);
}

void descriptor_raise_limit(struct rlimit *before)
{
    getrlimit(RLIMIT_NOFILE, before);
    struct rlimit limit = {before->rlim_max, before->rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
}

int descriptor_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC);
}

int descriptor_null(void)
{
    return open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* Opening /dev/ptmx again would create a new terminal. */
static bool can_reopen(const struct stat *st)
{
    return S_ISFIFO(st->st_mode) ||
           (S_ISCHR(st->st_mode) && st->st_rdev != makedev(5, 2));
}

int descriptor_private(int shared, int access_mode, enum descriptor_kind *kind)
{
    struct stat st;
    *kind = DESCRIPTOR_BLOCKING;
    if (fstat(shared, &st) == 0) {
        if (S_ISREG(st.st_mode)) *kind = DESCRIPTOR_DISK;
        if (S_ISSOCK(st.st_mode)) *kind = DESCRIPTOR_SOCKET;
        char path[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", shared);
        int flags = access_mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
        int fd = can_reopen(&st) ? open(path, flags) : -1;
        if (fd >= 0) {
            *kind = DESCRIPTOR_NONBLOCKING;
            return fd;
        }
    }
    return fcntl(shared, F_DUPFD_CLOEXEC, 3);
}

bool descriptor_is_same(int one, int other)
{
    struct stat a, b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

ssize_t descriptor_write(int fd, enum descriptor_kind kind, const void *bytes,
                         size_t size)
{
    if (kind == DESCRIPTOR_SOCKET)
        return send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (kind == DESCRIPTOR_BLOCKING) {
        struct pollfd pollfd = {.fd = fd, .events = POLLOUT};
        if (poll(&pollfd, 1, 0) == 0) {
            errno = EAGAIN;
            return -1;
        }
        /* poll reports a pipe as writable only with this much space
         * (pipe(7)) */
        if (size > PIPE_BUF) size = PIPE_BUF;
    }
    return write(fd, bytes, size);
}
