/* slow_call.c - see slow_call.h. */
#include "slow_call.h"

#include "thread.h"

#include <errno.h>
#include <time.h>

static void *run(void *argument)
{
    struct slow_call *s = argument;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->done == s->asked && !s->ended)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->done == s->asked) break;
        uint64_t turn = s->asked;
        pthread_mutex_unlock(&s->lock);
        s->call(s->user);
        pthread_mutex_lock(&s->lock);
        s->done = turn;
        s->late = false;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool make_thread(struct slow_call *s)
{
    if (!s->runs && !s->ended)
        s->runs = thread_start(&s->thread, "pccl-disk", run, s);
    return s->runs;
}

static struct timespec after(int milliseconds)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += milliseconds / 1000;
    t.tv_nsec += milliseconds % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

static bool wait_for(struct slow_call *s, uint64_t turn, int patience)
{
    struct timespec until = after(patience < 0 ? 0 : patience);
    while (s->done < turn && !(s->late && patience >= 0)) {
        if (patience < 0)
            (void)pthread_cond_wait(&s->changed, &s->lock);
        else if (pthread_cond_clockwait(&s->changed, &s->lock, CLOCK_MONOTONIC,
                                        &until) == ETIMEDOUT)
            s->late = s->done < turn;
    }
    return s->done >= turn;
}

bool slow_call_ask(struct slow_call *s, int patience)
{
    pthread_mutex_lock(&s->lock);
    if (!make_thread(s)) {
        pthread_mutex_unlock(&s->lock);
        s->call(s->user);
        return true;
    }
    uint64_t turn = ++s->asked;
    pthread_cond_broadcast(&s->changed);
    bool done = wait_for(s, turn, patience);
    pthread_mutex_unlock(&s->lock);
    return done;
}

bool slow_call_is_done(struct slow_call *s)
{
    pthread_mutex_lock(&s->lock);
    bool done = s->done == s->asked;
    pthread_mutex_unlock(&s->lock);
    return done;
}

bool slow_call_end(struct slow_call *s, int patience)
{
    pthread_mutex_lock(&s->lock);
    s->late = false;
    bool done = wait_for(s, s->asked, patience);
    bool runs = s->runs;
    if (done) {
        s->ended = true;
        s->runs = false;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (done && runs) (void)pthread_join(s->thread, NULL);
    return done;
}

void slow_call_forked(struct slow_call *s)
{
    *s = (struct slow_call)SLOW_CALL(s->call, s->user);
}
