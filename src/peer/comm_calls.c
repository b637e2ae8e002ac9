/* comm_calls.c - the calls that are inside a communicator, and what ends their
 * waiting: pcclCancel, a time limit, and pcclDestroyCommunicator. See comm.h.
 *
 * pcclCancel may run in a signal handler, so it only sets a flag and writes to
 * an eventfd. The background thread watches that and signals the callers that
 * wait for a condition; a caller that polls looks at the flag. */
#include "comm.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool comm_calls_open(pcclComm_t *c)
{
    c->calls.bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return c->calls.bell_fd >= 0;
}

void comm_calls_close(pcclComm_t *c)
{
    if (c->calls.bell_fd >= 0) close(c->calls.bell_fd);
    c->calls.bell_fd = -1;
}

void comm_calls_drain(pcclComm_t *c)
{
    uint64_t count;
    ssize_t ignored = read(c->calls.bell_fd, &count, sizeof count);
    (void)ignored;
}

static void on_bell(void *comm, struct io_watch *w)
{
    (void)w;
    pcclComm_t *c = comm;
    comm_calls_drain(c);
    pthread_cond_broadcast(&c->changed);
    progress_changed(c);
}

bool comm_calls_start(pcclComm_t *c)
{
    c->calls.watch =
        (struct io_watch){.fd = c->calls.bell_fd, .ready = on_bell};
    return io_loop_watch(&c->background.loop, &c->calls.watch, IO_READ);
}

void comm_calls_cancel(pcclComm_t *c)
{
    const uint64_t one = 1;
    int error = errno;
    atomic_store(&c->calls.cancelled, true);
    ssize_t ignored = write(c->calls.bell_fd, &one, sizeof one);
    (void)ignored; /* a counter that is full rings as well */
    errno = error;
}

bool comm_enter(pcclComm_t *c)
{
    comm_lock(c);
    c->calls.inside++;
    if (!atomic_load(&c->calls.ending)) return true;
    comm_leave(c);
    return false;
}

void comm_leave(pcclComm_t *c)
{
    c->calls.inside--;
    if (atomic_load(&c->calls.ending)) pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* A caller of comm_lock() that does not have the lock yet counts in
 * `waiting`. */
void comm_end_calls(pcclComm_t *c)
{
    atomic_store(&c->calls.ending, true);
    comm_calls_cancel(c);
    comm_lock(c);
    while (c->calls.inside > 0 || atomic_load(&c->waiting) > 0) {
        pthread_cond_broadcast(&c->changed);
        if (c->session) progress_changed(c);
        comm_wait(c, comm_now() + PCCL_MS);
    }
}

pccl_ns comm_limit(const pcclComm_t *c)
{
    return c->calls.limit > 0 ? comm_now() + c->calls.limit : PCCL_NEVER;
}

int comm_interrupted(const pcclComm_t *c, pccl_ns until)
{
    if (comm_is_cancelled(c)) return pcclCancelled;
    bool over = until != PCCL_NEVER && comm_now() >= until;
    return over ? pcclTimedOut : pcclSuccess;
}

void comm_wait(pcclComm_t *c, pccl_ns until)
{
    if (until == PCCL_NEVER) {
        pthread_cond_wait(&c->changed, &c->lock);
        return;
    }
    struct timespec t = {.tv_sec = until / PCCL_S, .tv_nsec = until % PCCL_S};
    (void)pthread_cond_timedwait(&c->changed, &c->lock, &t);
}
