/* master_watch.c - see master_watch.h. */
#include "master_watch.h"

static void watch(struct ev_loop *loop, ev_io *io, int events)
{
    if (ev_is_active(io) && (io->events & (EV_READ | EV_WRITE)) == events)
        return;
    ev_io_stop(loop, io);
    ev_io_set(io, io->fd, events);
    if (events != 0) ev_io_start(loop, io);
}

static int reads(const struct master_conn *c)
{
    return master_conn_reads(c) ? EV_READ : 0;
}

void master_watch_flushed(struct ev_loop *loop, ev_io *io,
                          const struct master_conn *c, enum conn_result result)
{
    if (result == CONN_END) return;
    watch(loop, io, reads(c) | (result == CONN_WAIT ? EV_WRITE : 0));
}

void master_watch_input(struct ev_loop *loop, ev_io *io,
                        const struct master_conn *c,
                        const struct secure *secure)
{
    watch(loop, io, (ev_is_active(io) ? io->events & EV_WRITE : 0) | reads(c));
    if (secure && master_conn_reads(c) && secure_has_input(secure))
        ev_feed_event(loop, io, EV_READ);
}
