/* io_wake.h - wakes an event loop from other threads, as ev_async does. What
 * it needs of the system is asked for when it is opened, where a failure can
 * be told: ev_async_start ends the process when no descriptor is left. */
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

/* False: no descriptors or memory (errno); then it need not be closed. */
bool wake_open(struct wake *w);

/* `woken` runs in the loop after each wake_send, once for several that come
 * before it runs. Before the loop runs, or in its thread. */
void wake_start(struct wake *w, struct ev_loop *loop, void (*woken)(void *user),
                void *user);

/* Any thread. */
void wake_send(struct wake *w);

/* The loop does not run, or this is its thread. Nobody sends any more. */
void wake_close(struct wake *w);

#endif
