/* driver_host.c - the clock, threads and memory of driver_kernel.h, and what
 * the host says of itself. */
#include "driver_inside.h"

#include "../../src/base/descriptors.h"
#include "../../src/base/host.h"
#include "../../src/base/memory_supply.h"
#include "../../src/base/same_user.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------ the clock, and threads
 */

WRAPPED(int, clock_gettime, clockid_t clock, struct timespec *t);
WRAPPED(int, nanosleep, const struct timespec *t, struct timespec *left);
WRAPPED(int, sched_yield, void);
WRAPPED(int, sched_getaffinity, pid_t pid, size_t size, cpu_set_t *set);
WRAPPED(int, pthread_create, pthread_t *thread, const pthread_attr_t *how,
        void *(*start)(void *user), void *user);
WRAPPED(int, pthread_join, pthread_t thread, void **result);
WRAPPED(int, pthread_setname_np, pthread_t thread, const char *name);
WRAPPED(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *lock);
WRAPPED(int, pthread_cond_timedwait, pthread_cond_t *cond,
        pthread_mutex_t *lock, const struct timespec *until);

/* To look at the clock takes time: who polls gives up. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!kernel_on) return __real_clock_gettime(clock, t);
    kernel_now += 2000;
    *t = (struct timespec){kernel_now / PCCL_S, kernel_now % PCCL_S};
    if (clock == CLOCK_REALTIME) t->tv_sec += 1800000000;
    return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    if (!kernel_on) return __real_nanosleep(t, left);
    kernel_now += t->tv_sec * PCCL_S + t->tv_nsec;
    return 0;
}

int __wrap_sched_yield(void)
{
    if (!kernel_on) return __real_sched_yield();
    kernel_ask_yields();
    return 0;
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    if (!kernel_on) return __real_sched_getaffinity(pid, size, set);
    if (kernel_fails(KERNEL_OPTION)) return -1;
    CPU_ZERO(set);
    for (uint32_t i = 0; i < kernel_processors; i++) CPU_SET(i, set);
    return 0;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*start)(void *user), void *user)
{
    if (!kernel_on) return __real_pthread_create(thread, how, start, user);
    if (kernel_fails(KERNEL_THREAD)) return EAGAIN;
    kernel_start(start, user, thread);
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    if (!kernel_on || !kernel_join(thread))
        return __real_pthread_join(thread, result);
    return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    return kernel_on ? 0 : __real_pthread_setname_np(thread, name);
}

/* It may always end for no reason. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    if (!kernel_on) return __real_pthread_cond_wait(cond, lock);
    (void)pthread_mutex_unlock(lock);
    kernel_wait(PCCL_NEVER);
    return pthread_mutex_lock(lock);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *until)
{
    if (!kernel_on) return __real_pthread_cond_timedwait(cond, lock, until);
    pccl_ns end = until->tv_sec * PCCL_S + until->tv_nsec;
    if (kernel_now >= end) return ETIMEDOUT;
    (void)pthread_mutex_unlock(lock);
    kernel_wait(end);
    (void)pthread_mutex_lock(lock);
    return kernel_now >= end ? ETIMEDOUT : 0;
}

/* ------------------------------------------------------------------- memory */

WRAPPED(void *, malloc, size_t size);
WRAPPED(void *, calloc, size_t count, size_t size);
WRAPPED(void *, realloc, void *old, size_t size);
WRAPPED(int, memfd_create, const char *name, unsigned flags);
WRAPPED(void *, mmap, void *at, size_t size, int access, int flags, int fd,
        off_t from);
WRAPPED(ssize_t, process_vm_readv, pid_t pid, const struct iovec *here,
        unsigned long heres, const struct iovec *there, unsigned long theres,
        unsigned long flags);
WRAPPED(int, fsync, int fd);

void *__wrap_malloc(size_t size)
{
    return kernel_fails(KERNEL_MEMORY) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return kernel_fails(KERNEL_MEMORY) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return kernel_fails(KERNEL_MEMORY) ? NULL : __real_realloc(old, size);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    return kernel_fails(KERNEL_SHARE) ? -1 : __real_memfd_create(name, flags);
}

void *__wrap_mmap(void *at, size_t size, int access, int flags, int fd,
                  off_t from)
{
    if (kernel_fails(KERNEL_SHARE)) return MAP_FAILED;
    return __real_mmap(at, size, access, flags, fd, from);
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here,
                                unsigned long heres, const struct iovec *there,
                                unsigned long theres, unsigned long flags)
{
    if (kernel_fails(KERNEL_CMA)) return -1;
    return __real_process_vm_readv(pid, here, heres, there, theres, flags);
}

/* Only this process reads it again. */
int __wrap_fsync(int fd)
{
    (void)fd;
    return 0;
}

/* ----------------------------------------------- what the host says of itself
 */

bool same_user_admits(int fd, bool called, char *why, size_t size)
{
    (void)fd, (void)called;
    why[0] = '\0';
    if (!kernel_fails(KERNEL_ADMIT)) return true;
    if (kernel_error() != EIO)
        (void)snprintf(why, size, "it is of user %d", kernel_error());
    return false;
}

void same_user_read_environment(void)
{
}

uint64_t host_id(void)
{
    return 1234;
}

uint64_t descriptors_used(uint64_t *left)
{
    *left = kernel_fails(KERNEL_OPEN) ? 0 : UINT16_MAX;
    return 0;
}

uint64_t descriptors_afford(uint64_t need)
{
    return kernel_fails(KERNEL_OPEN) ? need / 2 : need;
}

uint64_t memory_supply_here(void)
{
    return kernel_fails(KERNEL_MEMORY) ? 0 : UINT64_MAX;
}

bool memory_is_counted(const char *root)
{
    (void)root;
    return kernel_fails(KERNEL_SHARE);
}
