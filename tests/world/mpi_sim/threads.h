/* threads.h - included before every file of the MPI library and of pccl's entry
 * points in the simulator: their threads, locks, time and environment are the
 * simulator's (fiber.c). */
#ifndef MPI_SIM_THREADS_H
#define MPI_SIM_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SIM_SEEN __attribute__((visibility("default")))

SIM_SEEN int sim_lock(pthread_mutex_t *mutex);
SIM_SEEN int sim_trylock(pthread_mutex_t *mutex);
SIM_SEEN int sim_unlock(pthread_mutex_t *mutex);
SIM_SEEN int sim_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
SIM_SEEN int sim_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                 const struct timespec *until);
SIM_SEEN int sim_thread(pthread_t *thread, const pthread_attr_t *attributes,
                        void *(*run)(void *), void *argument);
SIM_SEEN int sim_join(pthread_t thread, void **result);
SIM_SEEN int sim_pass(void);
SIM_SEEN int sim_sleep(const struct timespec *pause, struct timespec *left);
SIM_SEEN int sim_time(clockid_t clock, struct timespec *now);
SIM_SEEN char *sim_environment(const char *name);
SIM_SEEN _Noreturn void sim_exit(int status);

#define pthread_mutex_lock sim_lock
#define pthread_mutex_trylock sim_trylock
#define pthread_mutex_unlock sim_unlock
#define pthread_cond_wait sim_cond_wait
#define pthread_cond_timedwait sim_cond_wait_until
#define pthread_create sim_thread
#define pthread_join sim_join
#define pthread_atfork(prepare, parent, child) ((void)(child), 0)
#define sched_yield sim_pass
#define nanosleep sim_sleep
#define clock_gettime sim_time
#define getenv sim_environment
#define _exit sim_exit

#endif
