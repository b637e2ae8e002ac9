/* io_wake.h - wakes an event loop from other threads, like ev_async. Resources
 * are acquired when it is opened, where a failure can be reported;
 * ev_async_start ends the process if no descriptor is left. */
#ifndef PCCL_IO_WAKE_H
#define PCCL_IO_WAKE_H

#include <ev.h>
#include <stdatomic.h>
#include <stdbool.h>

struct wake {
    struct ev_io watcher;
    struct ev_loop *loop;
    void (*woken)(void *user);
    void *user;
    int fd; /* -1: not open */
    atomic_bool sent;
};

/* False: no descriptors or memory (errno); then do not close it. */
bool wake_open(struct wake *w);

/* `woken` runs in the loop after each wake_send; several calls may cause a
 * single run. Call this before the loop runs, or in its thread. */
void wake_start(struct wake *w, struct ev_loop *loop, void (*woken)(void *user),
                void *user);

/* Callable from any thread. */
void wake_send(struct wake *w);

/* Call it when the loop does not run, or in its thread; no other thread may
 * send any more. */
void wake_close(struct wake *w);

#endif
