/* sched_sync.c - threads, locks and condition variables of the schedule, in
 * place of the C library's. See sched.h.
 *
 * The memory of a pthread_mutex_t holds a `struct lock_word`. Zeros are an
 * unlocked one, as with PTHREAD_MUTEX_INITIALIZER. */
#include "sched.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct lock_word {
    int owner; /* number of the thread + 1 */
};

static struct lock_word *word_of(pthread_mutex_t *mutex)
{
    return (struct lock_word *)(void *)mutex;
}

static int self(void)
{
    return sched_is_on() ? sched_self()->number : 0;
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    (void)attr;
    word_of(mutex)->owner = 0;
    return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    if (sched_is_on() && word_of(mutex)->owner != 0)
        sched_fail("a locked mutex is destroyed");
    return 0;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    struct lock_word *word = word_of(mutex);
    sched_point(SCHED_LOCK, 1);
    if (word->owner != 0) return EBUSY;
    word->owner = self() + 1;
    return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    struct lock_word *word = word_of(mutex);
    sched_point(SCHED_LOCK, 0);
    if (word->owner == self() + 1) sched_fail("a thread locks a mutex twice");
    while (word->owner != 0)
        (void)sched_block(SCHED_ON_LOCK, mutex, SCHED_NEVER);
    word->owner = self() + 1;
    return 0;
}

static void release(pthread_mutex_t *mutex)
{
    struct lock_word *word = word_of(mutex);
    if (word->owner != self() + 1)
        sched_fail("a mutex is unlocked by a thread that does not hold it");
    word->owner = 0;
    if (sched_is_on()) sched_wake(SCHED_ON_LOCK, mutex, true);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    sched_point(SCHED_UNLOCK, 0);
    release(mutex);
    sched_point(SCHED_UNLOCK, 1);
    return 0;
}

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
    (void)cond, (void)attr;
    return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond)
{
    (void)cond;
    return 0;
}

int pthread_cond_signal(pthread_cond_t *cond)
{
    sched_point(SCHED_SIGNAL, 0);
    if (sched_is_on()) sched_wake(SCHED_ON_COND, cond, false);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
    sched_point(SCHED_SIGNAL, 1);
    if (sched_is_on()) sched_wake(SCHED_ON_COND, cond, true);
    return 0;
}

static int await(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until)
{
    sched_point(SCHED_SIGNAL, 2);
    release(mutex);
    bool woken = sched_block(SCHED_ON_COND, cond, until);
    (void)pthread_mutex_lock(mutex);
    return woken ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    return await(cond, mutex, SCHED_NEVER);
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    return await(cond, mutex, until->tv_sec * SCHED_S + until->tv_nsec);
}

/* ----------------------------------------------------------------- threads */

static void *trampoline(void *thread)
{
    struct sched_thread *t = thread;
    sched_thread_begins(t);
    (void)t->body(t->argument);
    sched_thread_ends(t);
    return NULL;
}

int pthread_create(pthread_t *id, const pthread_attr_t *attr,
                   void *(*body)(void *), void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                       void *);
    if (!real) *(void **)(void *)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (!sched_is_on()) return real(id, attr, body, argument);
    sched_point(SCHED_CREATE, 0);
    struct sched_thread *t = sched_new_thread(body, argument);
    int rc = real(&t->id, NULL, trampoline, t);
    if (rc != 0) sched_fail("no thread can be started");
    *id = t->id;
    sched_point(SCHED_CREATE, 1);
    return 0;
}

int pthread_join(pthread_t id, void **result)
{
    static int (*real)(pthread_t, void **);
    if (!real) *(void **)(void *)&real = dlsym(RTLD_NEXT, "pthread_join");
    if (!sched_is_on()) return real(id, result);
    sched_point(SCHED_JOIN, 0);
    const struct sched_thread *t = sched_find(id);
    if (!t) sched_fail("a thread that does not exist is joined");
    while (t->state != SCHED_OVER)
        (void)sched_block(SCHED_ON_THREAD, t, SCHED_NEVER);
    return real(id, result);
}

/* -------------------------------------------------------------------- time */

int clock_gettime(clockid_t clock, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real) *(void **)(void *)&real = dlsym(RTLD_NEXT, "clock_gettime");
    if (!sched_is_on()) return real(clock, t);
    int64_t now = sched_read_clock();
    *t = (struct timespec){.tv_sec = now / SCHED_S, .tv_nsec = now % SCHED_S};
    return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    static int (*real)(const struct timespec *, struct timespec *);
    if (!real) *(void **)(void *)&real = dlsym(RTLD_NEXT, "nanosleep");
    if (!sched_is_on()) return real(time, left);
    int64_t until = sched_now() + time->tv_sec * SCHED_S + time->tv_nsec;
    sched_point(SCHED_SLEEP, 0);
    (void)sched_block(SCHED_ON_TIME, NULL, until);
    return 0;
}

int sched_yield(void)
{
    sched_point_yield();
    return 0;
}

/* The policy of waiting depends on the number of processors. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    if (!sched_is_on())
        return syscall(SYS_sched_getaffinity, pid, size, set) < 0 ? -1 : 0;
    CPU_ZERO_S(size, set);
    for (uint32_t i = 0; i < sched_options.processors; i++)
        CPU_SET_S(i, size, set);
    return 0;
}
