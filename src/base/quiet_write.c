/* quiet_write.c - see quiet_write.h.
 *
 * The kernel sends these signals to the thread that writes. So they are blocked
 * in it during the write, and what the write has made pending is taken; what
 * was pending before, or is of another thread, stays. */
#include "quiet_write.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct quiet {
    sigset_t mask, ours; /* before; those that a write may raise */
};

static void begin(struct quiet *q)
{
    static const int raised[] = {SIGPIPE, SIGXFSZ};
    sigset_t pending;
    sigemptyset(&pending);
    (void)sigpending(&pending);
    sigemptyset(&q->ours);
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++)
        if (!sigismember(&pending, raised[i])) sigaddset(&q->ours, raised[i]);
    (void)pthread_sigmask(SIG_BLOCK, &q->ours, &q->mask);
}

/* `raised`: the write has not taken all, so it may have raised one. A pipe
 * whose reader goes meanwhile has even taken a part. Without that a signal is
 * of another process, and for the program. */
static void end(const struct quiet *q, bool raised)
{
    static const struct timespec now;
    int error = errno;
    while (raised && (sigtimedwait(&q->ours, NULL, &now) > 0 || errno == EINTR))
        continue;
    (void)pthread_sigmask(SIG_SETMASK, &q->mask, NULL);
    errno = error;
}

ssize_t quiet_write(int fd, const void *bytes, size_t size)
{
    struct quiet q;
    begin(&q);
    ssize_t n = write(fd, bytes, size);
    end(&q, n < 0 || (size_t)n < size);
    return n;
}

int quiet_write_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = quiet_write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return ENOSPC;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

void quiet_print(const char *format, ...)
{
    struct quiet q;
    va_list args;
    int error = errno;
    begin(&q);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fflush(stderr);
    errno = error;
    end(&q, ferror(stderr));
}

void quiet_flush(void)
{
    struct quiet q;
    begin(&q);
    (void)fflush(stdout);
    (void)fflush(stderr);
    end(&q, ferror(stdout) || ferror(stderr));
}

void quiet_process(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}
