/* fork_guard.c - counts the forks that lead to this process, and closes the
 * sockets that a child must not hold. */
#include "fork_guard.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BITS = sizeof(unsigned long) * CHAR_BIT };

/* Changes only in a child that has one thread yet. */
unsigned fork_guard_count;

/* A bit for each descriptor that is kept. Forks take the lock, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long *kept;
static size_t kept_words;

static void before_fork(void)
{
    (void)pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    (void)pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    fork_guard_count++;
    for (size_t i = 0; i < kept_words; i++) {
        for (; kept[i] != 0; kept[i] &= kept[i] - 1)
            (void)close((int)(i * BITS) + __builtin_ctzl(kept[i]));
    }
    (void)pthread_mutex_unlock(&lock);
}

static void start(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

void fork_guard_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, start);
}

void fork_guard_hold(void)
{
    (void)pthread_mutex_lock(&lock);
}

static void keep(size_t fd)
{
    size_t words = fd / BITS + 1;
    if (words > kept_words) {
        unsigned long *more = realloc(kept, words * sizeof *kept);
        if (!more) return;
        memset(more + kept_words, 0, (words - kept_words) * sizeof *more);
        kept = more;
        kept_words = words;
    }
    kept[fd / BITS] |= 1UL << fd % BITS;
}

int fork_guard_keep(int fd)
{
    int error = errno;
    if (fd >= 0) keep((size_t)fd);
    (void)pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

void fork_guard_close(int fd)
{
    int error = errno;
    size_t word = (size_t)fd / BITS;
    (void)pthread_mutex_lock(&lock);
    if (fd >= 0 && word < kept_words) kept[word] &= ~(1UL << (size_t)fd % BITS);
    (void)close(fd);
    (void)pthread_mutex_unlock(&lock);
    errno = error;
}
