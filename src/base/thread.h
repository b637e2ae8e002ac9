/* thread.h - threads of the library, which are no business of the program:
 * signals go to its own threads. */
#ifndef PCCL_THREAD_H
#define PCCL_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Starts a thread in which all signals are blocked from its begin on. */
static inline bool thread_start(pthread_t *thread, const char *name,
                                void *(*run)(void *argument), void *argument)
{
    sigset_t all, old;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = pthread_create(thread, NULL, run, argument) == 0;
    if (started) (void)pthread_setname_np(*thread, name);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return started;
}

#endif
