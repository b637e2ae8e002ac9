/* sched.h - real threads of the real library, one at a time, in an order that
 * one number determines.
 *
 * A program that is linked with these files has its own pthread_*, epoll_wait,
 * poll, socket calls, clocks and so on (sched_sync.c, sched_fd.c), and a call
 * at each atomic access (sched_atomic.c). Each of these is a *point*: there,
 * and only there, another thread may go on. README.md says what follows from
 * that, what is emulated and what is not.
 *
 * One universe is one child process: sched_begin() is called once in it. */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SCHED_THREADS_MAX = 64,
    SCHED_STORES_MAX = 8,
    SCHED_ALL = -1, /* member of the threads that belong to none */
};

#define SCHED_NEVER INT64_MAX
#define SCHED_US INT64_C(1000)
#define SCHED_MS INT64_C(1000000)
#define SCHED_S INT64_C(1000000000)

struct sched_options {
    uint64_t seed;
    /* Random: at a point another thread goes on, one time in so many. 0: by
     * priorities (PCT): the thread with the highest one runs, and at so many
     * random points among `horizon` it gets the lowest one. */
    uint32_t switch_one_in;
    uint32_t changes, horizon;
    bool weak;     /* stores stay in a buffer, as the memory model allows */
    bool short_io; /* sockets pass fewer bytes than they could, and EINTR */
    bool spurious; /* condition variables return without a signal */
    uint32_t slow; /* one clock reading in so many comes late; 0: none */
    uint32_t processors;
    int send_buffer; /* bytes of a socket; 0: the system's */
    uint64_t points; /* more are a failure */
    uint64_t trace;  /* so many points are printed after a failure */
};

/* --- for programs --- */
/* The caller becomes thread 0. */
void sched_begin(const struct sched_options *options);
/* Ends the schedule; threads that are left never run again. */
void sched_end(void);
uint64_t sched_hash(void);   /* of all decisions so far */
uint64_t sched_steps(void);  /* points so far */
int64_t sched_now(void);     /* virtual time, ns; moves when nobody can run */
uint64_t sched_random(void); /* from the seed */
/* The caller, and all threads that it starts, belong to this member. */
void sched_set_member(int member);
/* The threads of the member never run again, and its descriptors are closed. */
void sched_kill(int member);
/* The same after so many points from here. */
void sched_kill_later(int member, uint64_t points);
bool sched_is_dead(int member);
/* The threads of the member do not run for that time. */
void sched_freeze(int member, int64_t time);
/* From here on, or no longer, nobody needs a timer of more than a few ms: a
 * longer wait of all threads at once is a lost wake-up. */
void sched_set_prompt(bool prompt);
/* A call of the program has returned. */
void sched_progress(void);
/* Waits without a point of the library: for the program itself. */
void sched_wait(bool (*condition)(void *user), void *user);
_Noreturn void sched_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* --- for sched_*.c --- */
enum sched_what {
    SCHED_LOAD,
    SCHED_STORE,
    SCHED_CHANGE,
    SCHED_FENCE,
    SCHED_LOCK,
    SCHED_UNLOCK,
    SCHED_SIGNAL,
    SCHED_CREATE,
    SCHED_JOIN,
    SCHED_YIELD,
    SCHED_SLEEP,
    SCHED_POLL,
    SCHED_READ,
    SCHED_WRITE,
    SCHED_SOCKET,
    SCHED_TIMER,
    SCHED_TIME,
    SCHED_RUN,
    SCHED_WHAT_COUNT,
};

enum sched_wait_kind {
    SCHED_ON_LOCK,
    SCHED_ON_COND,
    SCHED_ON_THREAD,
    SCHED_ON_FDS,
    SCHED_ON_TIME,
    SCHED_ON_PROGRAM,
};

struct sched_thread {
    int number, member;
    enum { SCHED_FREE, SCHED_READY, SCHED_BLOCKED, SCHED_OVER } state;
    enum sched_wait_kind kind;
    const void *object; /* a lock, a condition variable, a thread */
    struct pollfd *fds;
    nfds_t fd_count;
    uint64_t looked; /* at its descriptors: the last time */
    bool (*condition)(void *user);
    int64_t until;
    bool timed_out;
    uint32_t priority;
    uint32_t streak; /* points since it got the turn */
    int turn;        /* futex */
    struct sched_store {
        volatile void *at;
        size_t size;
        uint64_t value;
    } stores[SCHED_STORES_MAX]; /* not visible to others yet, oldest first */
    uint32_t store_count;
    void *(*body)(void *);
    void *argument;
    pthread_t id;
};

extern struct sched_options sched_options;
bool sched_is_on(void);
struct sched_thread *sched_self(void);
/* A point. The caller's stores become visible, unless it is an atomic one. */
void sched_point(enum sched_what what, uint64_t detail);
/* A point at which others go first. */
void sched_point_yield(void);
/* Blocks the caller; false: the time is over. */
bool sched_block(enum sched_wait_kind kind, const void *object, int64_t until);
/* All that wait for it, or one of them, become ready. */
void sched_wake(enum sched_wait_kind kind, const void *object, bool all);
/* Descriptors may have become ready. */
void sched_fds_changed(void);
struct sched_thread *sched_new_thread(void *(*body)(void *), void *argument);
struct sched_thread *sched_find(pthread_t id); /* NULL: none */
void sched_thread_begins(struct sched_thread *t);
void sched_thread_ends(struct sched_thread *t);
void sched_note(enum sched_what what, uint64_t detail); /* in the hash */
int64_t sched_read_clock(void);
uint32_t sched_below(uint32_t limit);
/* sched_atomic.c: the oldest `count` buffered stores become visible. */
void sched_drain(struct sched_thread *t, uint32_t count);
/* sched_fd.c: the time of the next timer; fires those that are due. */
int64_t sched_next_timer(void);
void sched_fire_timers(int64_t now);
void sched_close_all(int member);
int sched_look(struct pollfd *fds, nfds_t count); /* poll without waiting */

#endif
