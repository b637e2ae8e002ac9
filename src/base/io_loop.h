/* io_loop.h - the event loop of a communicator: descriptors, one periodic tick,
 * and a bell for other threads.
 *
 * It acquires what it needs when it is opened, where a failure can be reported,
 * and allocates nothing afterwards: it runs inside a program that it must not
 * end when memory runs out. (libev, which the coordinator uses, aborts then.)
 * Descriptors may be watched and left from any thread that holds the owner's
 * lock; the loop releases that lock while it waits. */
#ifndef PCCL_IO_LOOP_H
#define PCCL_IO_LOOP_H

#include "base.h"

#include <stdatomic.h>
#include <sys/epoll.h>

enum { IO_READ = EPOLLIN, IO_WRITE = EPOLLOUT };

/* A descriptor in a loop. The memory outlives the loop. `ready` may run once
 * although nothing is there, as when the descriptor was replaced meanwhile. */
struct io_watch {
    int fd;
    uint32_t events; /* watched now; 0: the loop does not know it */
    void (*ready)(void *user, struct io_watch *w);
};

struct io_loop {
    int fd;      /* epoll set; -1: not open */
    int bell_fd; /* eventfd */
    struct io_watch bell;
    atomic_bool rung;
    bool stopping;
    pccl_ns period, due; /* of the tick */
    /* All set by the owner before it runs. */
    void *user;
    void (*tick)(void *user);
    void (*woken)(void *user); /* after io_loop_wake(); several may cause one */
    void (*handled)(void *user); /* after the events that one wait found */
    void (*release)(void *user), (*acquire)(void *user); /* the lock */
};

/* False: no descriptors or memory; then it is closed. */
bool io_loop_open(struct io_loop *l);
void io_loop_close(struct io_loop *l); /* also if it was not opened */

/* Waits for these events of the descriptor from now on; 0: for none, which
 * comes before the descriptor is closed. False: the kernel has no memory, and
 * what was watched before still is. */
bool io_loop_watch(struct io_loop *l, struct io_watch *w, uint32_t events);

/* Time between two ticks; the next one comes after that time. */
void io_loop_pace(struct io_loop *l, pccl_ns period);

/* Runs until io_loop_stop(), which a callback calls. The lock is held, except
 * while it waits. False: it cannot wait, as somebody has closed its
 * descriptors. */
bool io_loop_run(struct io_loop *l);
void io_loop_stop(struct io_loop *l);

/* From any thread, also without the lock. */
void io_loop_wake(struct io_loop *l);

#endif
