/* server_wrap.c - see server_wrap.h. The linker leads the calls of the server's
 * sources to these. */
#include "server_wrap.h"

#include "../../src/base/host.h"

#include <pthread.h>
#include <setjmp.h>
#include <time.h>

pccl_ns server_now;
bool server_inside;

static void *(*worker)(void *user);
static void *worker_user;
static bool works;
static jmp_buf idle;

pccl_ns __wrap_host_time(void);
time_t __wrap_time(time_t *at);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *user), void *user);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_join(pthread_t thread, void **result);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *user), void *user);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_pthread_join(pthread_t thread, void **result);

pccl_ns __wrap_host_time(void)
{
    return server_now;
}

time_t __wrap_time(time_t *at)
{
    time_t now = SERVER_BEGAN + server_now / PCCL_S;
    if (at) *at = now;
    return now;
}

/* A journal is read again by the same process only. */
int __wrap_fdatasync(int fd)
{
    (void)fd;
    return 0;
}

int __wrap_fsync(int fd)
{
    (void)fd;
    return 0;
}

/* The worker is the only thread of a server. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *user), void *user)
{
    if (!server_inside)
        return __real_pthread_create(thread, attributes, start, user);
    worker = start;
    worker_user = user;
    *thread = pthread_self();
    return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    if (!works) return __real_pthread_cond_wait(cond, lock);
    (void)pthread_mutex_unlock(lock);
    longjmp(idle, 1);
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    if (!pthread_equal(thread, pthread_self()))
        return __real_pthread_join(thread, result);
    worker = NULL;
    return 0;
}

void server_search(void)
{
    if (!worker) return;
    works = true;
    if (setjmp(idle) == 0) (void)worker(worker_user);
    works = false;
}
