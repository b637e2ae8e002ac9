/* io_wake.c - an eventfd in an event loop. */
#include "io_wake.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool wake_open(struct wake *w)
{
    *w = (struct wake){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return w->fd >= 0;
}

static void on_event(struct ev_loop *loop, struct ev_io *watcher, int events)
{
    (void)loop, (void)events;
    struct wake *w = watcher->data;
    uint64_t count;
    ssize_t ignored = read(w->fd, &count, sizeof count);
    (void)ignored;
    /* A wake_send from here on wakes again; `woken` handles all earlier
     * ones. */
    atomic_exchange(&w->sent, false);
    w->woken(w->user);
}

void wake_start(struct wake *w, struct ev_loop *loop, void (*woken)(void *user),
                void *user)
{
    w->loop = loop;
    w->woken = woken;
    w->user = user;
    ev_io_init(&w->watcher, on_event, w->fd, EV_READ);
    w->watcher.data = w;
    ev_io_start(loop, &w->watcher);
}

void wake_send(struct wake *w)
{
    uint64_t one = 1;
    if (atomic_exchange(&w->sent, true)) return;
    ssize_t ignored = write(w->fd, &one, sizeof one);
    (void)ignored; /* the counter never overflows */
}

void wake_close(struct wake *w)
{
    if (w->fd < 0) return;
    if (w->loop) ev_io_stop(w->loop, &w->watcher);
    close(w->fd);
    w->fd = -1;
    w->loop = NULL;
}
