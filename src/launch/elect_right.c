/* elect_right.c - see elect_right.h. */
#include "elect_right.h"

#include "../base/host.h"
#include "elect.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RIGHT_MARK UINT64_C(0x7468676972636370)

struct elect_right {
    uint64_t mark;
    pccl_ns pace;
    atomic_llong until; /* host_time() */
    atomic_llong seen;  /* likewise */
    atomic_bool begun;
};

static struct elect_right *held; /* of this coordinator, or NULL */

static struct elect_right *map(int fd)
{
    void *at =
        mmap(NULL, sizeof *held, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

struct elect_right *right_make(int *fd)
{
    *fd = memfd_create("pccl-right", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0) return NULL;
    struct elect_right *right = NULL;
    if (ftruncate(*fd, sizeof *right) == 0 &&
        fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        right = map(*fd);
    if (right)
        right->mark = RIGHT_MARK;
    else
        close(*fd);
    return right;
}

void right_grant(struct elect_right *right, pccl_ns until, pccl_ns pace)
{
    right->pace = pace;
    atomic_store(&right->seen, host_time());
    atomic_store(&right->begun, false);
    atomic_store(&right->until, until);
}

void right_extend(struct elect_right *right, pccl_ns until)
{
    atomic_store(&right->until, until);
}

bool right_has_begun(const struct elect_right *right)
{
    return atomic_load(&right->begun);
}

pccl_ns right_seen(const struct elect_right *right)
{
    return atomic_load(&right->seen);
}

bool right_take(int fd)
{
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals == -1 || (seals & F_SEAL_SHRINK) == 0) return false;
    if (fstat(fd, &info) != 0 || info.st_size != (off_t)sizeof *held)
        return false;
    held = map(fd);
    if (held && held->mark != RIGHT_MARK) {
        munmap(held, sizeof *held);
        held = NULL;
    }
    close(fd);
    return held != NULL;
}

void right_check(void *unused)
{
    (void)unused;
    if (!held || host_time() < atomic_load(&held->until)) return;
    /* Nothing is flushed or closed in order: that would be to act. */
    (void)dprintf(STDERR_FILENO,
                  "pccl-master: the right to coordinate is over, and another "
                  "may have it\n");
    _exit(EXIT_UNELECTED);
}

static void on_wake(struct ev_loop *loop, ev_check *check, int events)
{
    (void)loop, (void)check, (void)events;
    right_check(NULL);
}

/* The loop runs: the last of its callbacks was not the last. */
static void on_time(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)timer, (void)events;
    right_check(NULL);
    atomic_store(&held->seen, host_time());
}

void right_begin(struct ev_loop *loop)
{
    static ev_check wake;
    static ev_timer timer;
    if (!held) return;
    atomic_store(&held->begun, true);
    ev_check_init(&wake, on_wake);
    ev_set_priority(&wake, EV_MAXPRI);
    ev_check_start(loop, &wake);
    ev_unref(loop);
    ev_timer_init(&timer, on_time, 0., (double)held->pace / PCCL_S);
    ev_timer_start(loop, &timer);
    ev_unref(loop);
}
