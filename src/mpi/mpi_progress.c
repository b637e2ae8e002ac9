/* mpi_progress.c - the loop of the progress thread. */
#include "mpi_progress.h"
#include "coll.h"
#include "revoke.h"
#include "transport.h"

#include "../base/limit.h"
#include "../base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* NOTES.md, "wake-ups": 256 ranks on 2 processors woke up 24,000 times a second
 * for their pauses of 10 ms, a quarter of all processor time. With more than
 * RANKS_CROWDED ranks for each processor the pauses are longer, so that all of
 * them together take no more than those of RANKS_CROWDED. */
enum { PAUSE_BUSY_MS = 1, PAUSE_IDLE_MS = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static pthread_t thread;
static bool running, stopping; /* guarded by lock */
static atomic_uint crowd = 1;  /* times as long pauses */

/* The program polls its collectives itself, call by call, and no other work
 * exists. Polling here would compete for the lock that those calls take, so the
 * thread polls as rarely as for an idle program. */
static bool is_attended(void)
{
    static unsigned seen, left_out; /* of the one thread that runs this */
    bool attended = coll_attended(&seen) && !transport_busy();
    if (attended && ++left_out < PAUSE_IDLE_MS / PAUSE_BUSY_MS) return true;
    left_out = 0;
    return false;
}

/* Polls once; false: the next poll is not urgent. */
static bool turn(void)
{
    if (is_attended()) return true;
    bool mine = transport_background();
    coll_progress_background();
    bool held_up = revoke_enforce();
    return held_up || (mine && (coll_any_pending() || transport_busy()));
}

void mpi_progress_crowd(uint32_t members, uint32_t processors)
{
    uint32_t times = processors > 0 ? members / processors / RANKS_CROWDED : 1;
    atomic_store(&crowd, times > 1 ? times : 1);
}

static void *run(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!stopping) {
        pthread_mutex_unlock(&lock);
        long pause = turn() ? PAUSE_BUSY_MS : PAUSE_IDLE_MS;
        pause *= atomic_load(&crowd);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += pause / 1000;
        until.tv_nsec += pause % 1000 * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_mutex_lock(&lock);
        if (!stopping) pthread_cond_timedwait(&wake, &lock, &until);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

bool mpi_progress_start(void)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) return false;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool ready = pthread_cond_init(&wake, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    if (!ready) return false;
    stopping = false;
    running = thread_start(&thread, "pccl-mpi", run, NULL);
    return running;
}

void mpi_progress_stop(void)
{
    if (!running) return;
    pthread_mutex_lock(&lock);
    stopping = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&wake);
    running = false;
}
