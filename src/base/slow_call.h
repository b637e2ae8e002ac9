/* slow_call.h - a call that a disk may keep for a minute, by a thread of its
 * own: the one who asks for it waits a moment, and hears others again.
 *
 * The thread is there from the first call on. Where none can be made, and after
 * the end, the call is made at once, by the one who asks. */
#ifndef PCCL_SLOW_CALL_H
#define PCCL_SLOW_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct slow_call {
    void (*call)(void *user);
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    uint64_t asked, done; /* calls */
    bool runs;            /* the thread */
    bool ended;
    bool late; /* somebody's patience was not enough for this call */
};

#define SLOW_CALL(name, argument)                                              \
    {                                                                          \
        .call = (name), .user = (argument), .lock = PTHREAD_MUTEX_INITIALIZER, \
        .changed = PTHREAD_COND_INITIALIZER                                    \
    }

enum {
    SLOW_CALL_MOMENT = 100, /* ms: more than a disk that works needs */
    SLOW_CALL_FOREVER = -1,
};

/* One call begins after this moment; it is that of others, too, who ask
 * meanwhile. True: it has ended. After `patience` milliseconds it has not;
 * until a call has ended nobody waits again. Any thread. */
bool slow_call_ask(struct slow_call *s, int patience);

/* All that was asked for has ended. */
bool slow_call_is_done(struct slow_call *s);

/* The thread ends, if it does so within `patience`. False: a call hangs, and
 * uses what it uses. */
bool slow_call_end(struct slow_call *s, int patience);

/* In the child of a fork, which has no such thread. */
void slow_call_forked(struct slow_call *s);

#endif
