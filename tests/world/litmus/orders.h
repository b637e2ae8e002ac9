/* orders.h - runs a small program of two or three threads in every order,
 * with every value that the memory model lets each load see.
 *
 * The program is the library's own code, compiled with -fsanitize=thread, so
 * that each atomic access is a call (../sched/atomic_hooks.h). Memory is that
 * of C11 without the two that no compiler makes use of here (values out of thin
 * air, stores before earlier loads): each location has a history, each thread a
 * view of how much of which history it has to see. README.md has the rules. */
#ifndef LITMUS_ORDERS_H
#define LITMUS_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LITMUS_THREADS_MAX = 3, LITMUS_BELLS = 2 };

struct litmus {
    const char *name;
    void (*prepare)(void); /* before each run, alone */
    void (*threads[LITMUS_THREADS_MAX])(void);
    void (*finish)(void); /* after each run, alone; or NULL */
    const void *shared;   /* plain accesses here must not race */
    size_t shared_size;
    /* A thread that could go on gives way at most so often; 0: always. */
    uint32_t preemptions;
};

struct litmus_result {
    uint64_t runs;
    const char *failure; /* NULL: none, and all runs were made */
    bool complete;
};

/* Stops at the first failure, or after `most` runs (not complete). */
struct litmus_result litmus_explore(const struct litmus *test, uint64_t most);

/* --- in threads --- */
/* The run has failed. */
void litmus_check(bool condition, const char *text);
/* A byte or an eventfd: what the kernel passes on comes after what was done
 * before. */
void litmus_signal(int bell);
/* Blocks until the bell has been rung since it was taken. A thread that is
 * blocked when all others have ended is a failure: a lost wake-up. */
void litmus_wait(int bell);
void litmus_take(int bell);

#endif
