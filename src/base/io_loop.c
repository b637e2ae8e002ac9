/* io_loop.c - see io_loop.h. */
#include "io_loop.h"

#include "clock.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { BATCH = 64 }; /* events that are handled between two waits */

static void on_bell(void *user, struct io_watch *w)
{
    struct io_loop *l =
        (struct io_loop *)(void *)((char *)w - offsetof(struct io_loop, bell));
    uint64_t count;
    ssize_t ignored = read(l->bell_fd, &count, sizeof count);
    (void)ignored;
    /* A wake from here on rings again; `woken` handles all earlier ones. */
    atomic_exchange(&l->rung, false);
    l->woken(user);
}

bool io_loop_open(struct io_loop *l)
{
    *l = (struct io_loop){.fd = epoll_create1(EPOLL_CLOEXEC),
                          .bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    l->bell = (struct io_watch){.fd = l->bell_fd, .ready = on_bell};
    if (l->fd >= 0 && l->bell_fd >= 0 && io_loop_watch(l, &l->bell, IO_READ))
        return true;
    io_loop_close(l);
    return false;
}

void io_loop_close(struct io_loop *l)
{
    if (l->bell_fd >= 0) close(l->bell_fd);
    if (l->fd >= 0) close(l->fd);
    l->fd = l->bell_fd = -1;
}

bool io_loop_watch(struct io_loop *l, struct io_watch *w, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = w};
    int change = EPOLL_CTL_MOD;
    if (events == w->events) return true;
    if (w->events == 0) change = EPOLL_CTL_ADD;
    if (events == 0) change = EPOLL_CTL_DEL;
    bool done = epoll_ctl(l->fd, change, w->fd, &event) == 0;
    if (done || events == 0) w->events = events;
    return done || events == 0;
}

void io_loop_pace(struct io_loop *l, pccl_ns period)
{
    l->period = period;
    l->due = clock_ns(CLOCK_MONOTONIC) + period;
}

/* Milliseconds until the tick, rounded up: a shorter wait would spin. */
static int until_tick(const struct io_loop *l)
{
    pccl_ns left = l->due - clock_ns(CLOCK_MONOTONIC);
    if (left <= 0) return 0;
    left = (left + PCCL_MS - 1) / PCCL_MS;
    return left < 3600 * 1000 ? (int)left : 3600 * 1000;
}

bool io_loop_run(struct io_loop *l)
{
    while (!l->stopping) {
        struct epoll_event batch[BATCH];
        l->release(l->user);
        int count = epoll_wait(l->fd, batch, BATCH, until_tick(l));
        bool lost = count < 0 && errno != EINTR;
        l->acquire(l->user);
        if (lost) {
            /* The bell's number may be a file of the program by now. */
            atomic_store(&l->rung, true);
            return false;
        }
        for (int i = 0; i < count; i++) {
            struct io_watch *w = batch[i].data.ptr;
            /* Left by another thread, or by a callback of this batch. */
            if (w->events != 0) w->ready(l->user, w);
        }
        if (count > 0) l->handled(l->user);
        if (clock_ns(CLOCK_MONOTONIC) < l->due) continue;
        l->due = clock_ns(CLOCK_MONOTONIC) + l->period;
        l->tick(l->user);
    }
    return true;
}

void io_loop_stop(struct io_loop *l)
{
    l->stopping = true;
}

void io_loop_wake(struct io_loop *l)
{
    uint64_t one = 1;
    if (atomic_exchange(&l->rung, true)) return;
    ssize_t ignored = write(l->bell_fd, &one, sizeof one);
    (void)ignored; /* the counter never overflows */
}
