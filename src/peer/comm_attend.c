/* comm_attend.c - when the I/O thread leaves the data to the program's calls.
 *
 * A call that starts or tests an operation moves what can be moved. Would the
 * I/O thread watch the connections meanwhile, it would be woken by each partner
 * for what the next call sees anyway, and each call would have to tell it. So
 * it is told once, and looks from time to time whether calls still come: ever
 * more rarely while they do. When none has come between two looks, it minds the
 * data itself until the next one. See comm.h. */
#include "comm.h"

#include <sys/timerfd.h>
#include <unistd.h>

/* Between two looks, the first and the rarest. */
#define PULSE_FIRST ((pccl_ns)100000)
#define PULSE_RAREST ((pccl_ns)1600000)

static void set_pulse(pcclComm_t *c, pccl_ns pulse)
{
    struct itimerspec t = {.it_value.tv_nsec = pulse,
                           .it_interval.tv_nsec = pulse};
    c->pulse = pulse;
    (void)timerfd_settime(c->pulse_fd, 0, &t, NULL);
}

static void on_pulse(struct ev_loop *loop, struct ev_io *w, int events)
{
    (void)loop, (void)events;
    pcclComm_t *c = w->data;
    uint64_t count;
    ssize_t ignored = read(c->pulse_fd, &count, sizeof count);
    (void)ignored;
    bool come = c->driving || c->calls != c->calls_seen;
    c->calls_seen = c->calls;
    if (c->attended && come) {
        if (c->pulse < PULSE_RAREST) set_pulse(c, 2 * c->pulse);
        return;
    }
    set_pulse(c, 0);
    if (!c->attended) return;
    c->attended = false;
    if (!c->driving) (void)comm_io_move(c);
    comm_turn(c);
}

bool comm_attend_open(pcclComm_t *c)
{
    c->attended = c->pulse_due = false;
    c->pulse_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return c->pulse_fd >= 0;
}

void comm_attend_close(pcclComm_t *c)
{
    if (c->pulse_fd >= 0) close(c->pulse_fd);
    c->pulse_fd = -1;
}

void comm_attend_start(pcclComm_t *c)
{
    ev_io_init(&c->pulse_watcher, on_pulse, c->pulse_fd, EV_READ);
    c->pulse_watcher.data = c;
    ev_io_start(c->loop, &c->pulse_watcher);
}

void comm_wake_driver(pcclComm_t *c)
{
    if (!c->driver_blocked || c->driver_woken) return;
    uint64_t one = 1;
    ssize_t ignored = write(c->driver_fd, &one, sizeof one);
    (void)ignored;
    c->driver_woken = true;
}

static void begin(pcclComm_t *c)
{
    c->attended = c->pulse_due = true;
    wake_send(&c->wake);
}

void comm_attend_rest(pcclComm_t *c)
{
    if (!c->attended && engine_has_work(&c->session->engine)) begin(c);
    comm_io_watch(c);
}

void comm_attend(pcclComm_t *c, bool launches)
{
    struct engine *e = &c->session->engine;
    comm_io_flush_master(c);
    if (!c->driving || c->driver_blocked) {
        e->defers = launches && !c->driving;
        (void)comm_io_move(c);
        e->defers = false;
    }
    comm_io_flush_master(c);
    c->calls++;
    if (!c->attended) {
        begin(c);
        comm_io_watch(c);
    }
    comm_wake_driver(c);
    /* Calls come so close that nobody else would get the lock, but be woken by
     * each of them. */
    if (launches) comm_make_way(c);
}

void comm_attend_woken(pcclComm_t *c)
{
    if (!c->pulse_due) return;
    c->pulse_due = false;
    c->calls_seen = c->calls - 1; /* a call has just come */
    set_pulse(c, PULSE_FIRST);
}
