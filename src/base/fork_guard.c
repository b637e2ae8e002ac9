/* fork_guard.c - counts the forks that lead to this process. */
#include "fork_guard.h"

#include <pthread.h>

/* Changes only in a child that has one thread yet. */
unsigned fork_guard_count;

static void in_child(void)
{
    fork_guard_count++;
}

static void start(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

void fork_guard_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, start);
}
