/* driver_wrap.c - the calls of the driver's sources for descriptors, of a
 * kernel that is not the real one: see driver_kernel.h. Descriptors of others,
 * and all that the driver does not do, go to the real one. */
#include "driver_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

static int fail_with(int error)
{
    errno = error;
    return -1;
}

/* ------------------------------------------------------------------ sockets */

WRAPPED(int, socket, int family, int type, int protocol);
WRAPPED(int, connect, int fd, const struct sockaddr *to, socklen_t size);
WRAPPED(int, bind, int fd, const struct sockaddr *at, socklen_t size);
WRAPPED(int, listen, int fd, int backlog);
WRAPPED(int, accept4, int fd, struct sockaddr *of, socklen_t *size, int flags);
WRAPPED(int, getsockname, int fd, struct sockaddr *name, socklen_t *size);
WRAPPED(int, getpeername, int fd, struct sockaddr *name, socklen_t *size);
WRAPPED(int, getsockopt, int fd, int level, int option, void *value,
        socklen_t *size);
WRAPPED(int, setsockopt, int fd, int level, int option, const void *value,
        socklen_t size);
WRAPPED(ssize_t, recv, int fd, void *to, size_t size, int flags);
WRAPPED(ssize_t, send, int fd, const void *from, size_t size, int flags);
WRAPPED(ssize_t, sendmsg, int fd, const struct msghdr *msg, int flags);
WRAPPED(ssize_t, read, int fd, void *to, size_t size);
WRAPPED(ssize_t, write, int fd, const void *from, size_t size);
WRAPPED(int, close, int fd);

int __wrap_socket(int family, int type, int protocol)
{
    if (!kernel_on) return __real_socket(family, type, protocol);
    if (kernel_fails(KERNEL_SOCKET)) return -1;
    return kernel_new_fd(FD_SOCKET);
}

static uint16_t port_of(const struct sockaddr *addr)
{
    struct sockaddr_in in;
    memcpy(&in, addr, sizeof in); /* both families have it there */
    return ntohs(in.sin_port);
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_connect(fd, to, size);
    if (kernel_fails(KERNEL_CONNECT)) return -1;
    if (!kernel_connect(f, port_of(to))) return fail_with(ECONNREFUSED);
    return kernel_at_once ? 0 : fail_with(EINPROGRESS);
}

int __wrap_bind(int fd, const struct sockaddr *at, socklen_t size)
{
    struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_bind(fd, at, size);
    if (kernel_fails(KERNEL_BIND)) return -1;
    f->port = port_of(at);
    if (f->port == 0) f->port = kernel_free_port();
    if (kernel_listens(f->port)) return fail_with(EADDRINUSE);
    return 0;
}

int __wrap_listen(int fd, int backlog)
{
    struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_listen(fd, backlog);
    if (kernel_fails(KERNEL_BIND)) return -1;
    f->kind = FD_LISTENER;
    return 0;
}

int __wrap_accept4(int fd, struct sockaddr *of, socklen_t *size, int flags)
{
    const struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_accept4(fd, of, size, flags);
    if (kernel_fails(KERNEL_ACCEPT)) return -1;
    uint32_t stream = kernel_take(f->port);
    if (stream == NO_STREAM) return fail_with(EAGAIN);
    int got = kernel_new_fd(FD_STREAM);
    if (got < 0) {
        kernel_hang_up(stream, 1, true);
        return fail_with(EMFILE);
    }
    struct kernel_fd *g = kernel_fd(got);
    g->stream = stream;
    g->side = 1;
    return got;
}

static int give_name(const struct kernel_fd *f, struct sockaddr *name,
                     socklen_t *size)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(f->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memcpy(name, &in, sizeof in);
    *size = sizeof in;
    return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *name, socklen_t *size)
{
    const struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_getsockname(fd, name, size);
    return kernel_fails(KERNEL_OPTION) ? -1 : give_name(f, name, size);
}

int __wrap_getpeername(int fd, struct sockaddr *name, socklen_t *size)
{
    const struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_getpeername(fd, name, size);
    return kernel_fails(KERNEL_OPTION) ? -1 : give_name(f, name, size);
}

int __wrap_getsockopt(int fd, int level, int option, void *value,
                      socklen_t *size)
{
    const struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_getsockopt(fd, level, option, value, size);
    if (kernel_fails(KERNEL_OPTION)) return -1;
    if (level == SOL_SOCKET && option == SO_ERROR) {
        int error = f->kind == FD_STREAM ? kernel_stream(f->stream)->error : 0;
        memcpy(value, &error, sizeof error);
        return 0;
    }
    if (level != IPPROTO_TCP || option != TCP_INFO)
        return fail_with(ENOPROTOOPT);
    struct tcp_info info = {.tcpi_rtt = kernel_path.rtt_us,
                            .tcpi_min_rtt = kernel_path.least_us,
                            .tcpi_unacked = kernel_path.unacked,
                            .tcpi_snd_mss = 1448,
                            .tcpi_data_segs_out = kernel_path.segments,
                            .tcpi_total_retrans = kernel_path.again};
    if (*size > sizeof info) *size = sizeof info;
    memcpy(value, &info, *size);
    return 0;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value,
                      socklen_t size)
{
    if (!kernel_fd(fd))
        return __real_setsockopt(fd, level, option, value, size);
    return kernel_fails(KERNEL_OPTION) ? -1 : 0;
}

/* How much of it is moved. */
static size_t portion(size_t size)
{
    return size > 1 && kernel_fails(KERNEL_SHORT)
               ? 1 + (size_t)kernel_error() % size
               : size;
}

static ssize_t take(const struct kernel_fd *f, void *to, size_t size, int flags)
{
    if (kernel_fails(KERNEL_RECV)) return -1;
    if (f->kind != FD_STREAM) return fail_with(ENOTCONN);
    const struct kernel_stream *s = kernel_stream(f->stream);
    const struct kernel_pipe *in = &s->pipe[!f->side];
    if (s->connecting) return fail_with(EAGAIN);
    if (in->reset) return fail_with(ECONNRESET);
    if (in->count == 0) return in->ended ? 0 : fail_with(EAGAIN);
    return (ssize_t)kernel_read(f, to, portion(size), flags & MSG_PEEK);
}

ssize_t __wrap_recv(int fd, void *to, size_t size, int flags)
{
    const struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_recv(fd, to, size, flags);
    return take(f, to, size, flags);
}

static ssize_t give(const struct kernel_fd *f, const struct iovec *parts,
                    size_t count)
{
    size_t done = 0;
    if (kernel_fails(KERNEL_SEND)) return -1;
    if (f->kind != FD_STREAM) return fail_with(ENOTCONN);
    const struct kernel_stream *s = kernel_stream(f->stream);
    if (s->connecting) return fail_with(EAGAIN);
    if (s->pipe[!f->side].reset) return fail_with(ECONNRESET);
    if (s->pipe[f->side].ended) return fail_with(EPIPE);
    for (size_t i = 0; i < count; i++) {
        size_t size = portion(parts[i].iov_len);
        size_t put = kernel_put(f->stream, f->side, parts[i].iov_base, size);
        done += put;
        if (put < parts[i].iov_len) break;
    }
    return done > 0 ? (ssize_t)done : fail_with(EAGAIN);
}

ssize_t __wrap_send(int fd, const void *from, size_t size, int flags)
{
    const struct kernel_fd *f = kernel_fd(fd);
    struct iovec part = {(void *)(uintptr_t)from, size};
    return f ? give(f, &part, 1) : __real_send(fd, from, size, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    const struct kernel_fd *f = kernel_fd(fd);
    return f ? give(f, msg->msg_iov, msg->msg_iovlen)
             : __real_sendmsg(fd, msg, flags);
}

/* ------------------------------------------------------ bells, timers, texts
 */

static ssize_t read_text(struct kernel_fd *f, void *to, size_t size)
{
    size_t left = strlen(f->text) - (size_t)f->count;
    if (kernel_fails(KERNEL_RECV)) return -1;
    if (size > left) size = left;
    memcpy(to, f->text + f->count, size);
    f->count += size;
    return (ssize_t)size;
}

static ssize_t read_timer(struct kernel_fd *f, void *to)
{
    const uint64_t one = 1;
    if (f->due == 0 || f->due > kernel_now) return fail_with(EAGAIN);
    f->due = f->period > 0 ? kernel_now + f->period : 0;
    memcpy(to, &one, sizeof one);
    return sizeof one;
}

ssize_t __wrap_read(int fd, void *to, size_t size)
{
    struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_read(fd, to, size);
    if (f->kind == FD_TEXT) return read_text(f, to, size);
    if (f->kind == FD_TIMER) return read_timer(f, to);
    if (f->kind != FD_BELL) return take(f, to, size, 0);
    if (f->count == 0) return fail_with(EAGAIN);
    memcpy(to, &f->count, sizeof f->count);
    f->count = 0;
    return sizeof f->count;
}

ssize_t __wrap_write(int fd, const void *from, size_t size)
{
    struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_write(fd, from, size);
    f->count++;
    return (ssize_t)size;
}

int __wrap_close(int fd)
{
    if (fd < KERNEL_FD) return __real_close(fd);
    kernel_close(fd);
    return 0;
}

WRAPPED(int, eventfd, unsigned count, int flags);
WRAPPED(int, timerfd_create, int clock, int flags);
WRAPPED(int, timerfd_settime, int fd, int flags, const struct itimerspec *to,
        struct itimerspec *before);

int __wrap_eventfd(unsigned count, int flags)
{
    if (!kernel_on) return __real_eventfd(count, flags);
    return kernel_fails(KERNEL_BELL) ? -1 : kernel_new_fd(FD_BELL);
}

int __wrap_timerfd_create(int clock, int flags)
{
    if (!kernel_on) return __real_timerfd_create(clock, flags);
    return kernel_fails(KERNEL_BELL) ? -1 : kernel_new_fd(FD_TIMER);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to,
                           struct itimerspec *before)
{
    struct kernel_fd *f = kernel_fd(fd);
    if (!f) return __real_timerfd_settime(fd, flags, to, before);
    pccl_ns first = to->it_value.tv_sec * PCCL_S + to->it_value.tv_nsec;
    f->due = first > 0 ? kernel_now + first : 0;
    f->period = to->it_interval.tv_sec * PCCL_S + to->it_interval.tv_nsec;
    return 0;
}

/* What the driver asks about its own process. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(args, mode_t) : 0;
    va_end(args);
    bool state = strcmp(path, "/proc/self/stat") == 0;
    if (!kernel_on || (!state && strcmp(path, "/proc/self/schedstat") != 0))
        return __real_open(path, flags, mode);
    int fd = kernel_fails(KERNEL_OPEN) ? -1 : kernel_new_fd(FD_TEXT);
    if (fd >= 0) kernel_fd(fd)->text = kernel_texts[state ? 0 : 1];
    return fd;
}

/* --------------------------------------------------------------------- sets */

WRAPPED(int, epoll_create1, int flags);
WRAPPED(int, epoll_ctl, int set, int change, int fd, struct epoll_event *event);
WRAPPED(int, epoll_wait, int set, struct epoll_event *events, int most, int ms);
WRAPPED(int, poll, struct pollfd *fds, nfds_t count, int ms);

int __wrap_epoll_create1(int flags)
{
    if (!kernel_on) return __real_epoll_create1(flags);
    return kernel_fails(KERNEL_BELL) ? -1 : kernel_new_fd(FD_SET);
}

static int change_set(struct kernel_fd *s, int change, int fd,
                      const struct epoll_event *event)
{
    uint32_t i = 0;
    while (i < s->watched && s->set[i].fd != fd) i++;
    bool there = i < s->watched;
    if (there == (change == EPOLL_CTL_ADD))
        return fail_with(there ? EEXIST : ENOENT);
    if (change == EPOLL_CTL_DEL) {
        s->set[i] = s->set[--s->watched];
        return 0;
    }
    if (i == KERNEL_WATCHED) return fail_with(ENOSPC);
    if (!there) s->watched++;
    s->set[i].fd = fd;
    s->set[i].event = *event;
    return 0;
}

int __wrap_epoll_ctl(int set, int change, int fd, struct epoll_event *event)
{
    struct kernel_fd *s = kernel_fd(set);
    if (!s) return __real_epoll_ctl(set, change, fd, event);
    if (!kernel_fd(fd)) return fail_with(EBADF);
    if (change != EPOLL_CTL_DEL && kernel_fails(KERNEL_WATCH)) return -1;
    return change_set(s, change, fd, event);
}

/* A thread waits nowhere but here. */
int __wrap_epoll_wait(int set, struct epoll_event *events, int most, int ms)
{
    const struct kernel_fd *s = kernel_fd(set);
    int count = 0;
    if (!s) return __real_epoll_wait(set, events, most, ms);
    kernel_idle();
    if (kernel_fails(KERNEL_POLL)) return -1;
    for (uint32_t i = 0; i < s->watched && count < most; i++) {
        const struct kernel_watched *w = &s->set[i];
        uint32_t wanted = w->event.events | EPOLLERR | EPOLLHUP;
        uint32_t ready = (uint32_t)kernel_ready(kernel_fd(w->fd)) & wanted;
        if (ready == 0) continue;
        events[count] = w->event;
        events[count++].events = ready;
    }
    return count;
}

static int look(struct pollfd *fds, nfds_t count)
{
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        const struct kernel_fd *f = kernel_fd(fds[i].fd);
        int events = f ? kernel_ready(f) : 0;
        fds[i].revents = (short)(events & (fds[i].events | POLLERR | POLLHUP));
        ready += fds[i].revents != 0;
    }
    return ready;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int ms)
{
    if (!kernel_on) return __real_poll(fds, count, ms);
    if (kernel_fails(KERNEL_POLL)) return -1;
    pccl_ns until = ms < 0 ? PCCL_NEVER : kernel_now + ms * PCCL_MS;
    int ready = look(fds, count);
    while (ready == 0 && kernel_now < until) {
        kernel_wait(until);
        ready = look(fds, count);
    }
    return ready;
}
