/* sched_fd.c - descriptors of the schedule, in place of the C library's calls.
 * See sched.h.
 *
 * TCP becomes sockets of the Unix domain: their bytes, their end and their
 * refusal arrive within the call that causes them, which makes a schedule
 * repeatable. A port is a name in the abstract name space of this process. A
 * timer is an eventfd that is written when virtual time passes. epoll, poll and
 * eventfd are the kernel's; the wait is the scheduler's. */
#include "sched.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { FDS_MAX = 1024, PORT_FIRST = 20000 };

static struct descriptor {
    bool used;
    int member;
    int family;          /* of a socket, as the program asked for */
    uint16_t port;       /* own one, of a socket */
    int64_t due, period; /* of a timer; due 0: none */
} fds[FDS_MAX];
static uint16_t next_port = PORT_FIRST;

/* The C library's function of that name. */
#define REAL(name)                                                             \
    static __typeof__(name) *real;                                             \
    if (!real) *(void **)(void *)&real = dlsym(RTLD_NEXT, #name)

static struct descriptor *of(int fd)
{
    return fd >= 0 && fd < FDS_MAX && fds[fd].used ? &fds[fd] : NULL;
}

static int adopt(int fd, int family)
{
    if (fd < 0 || !sched_is_on()) return fd;
    if (fd >= FDS_MAX) sched_fail("too many descriptors");
    fds[fd] = (struct descriptor){
        .used = true, .member = sched_self()->member, .family = family};
    return fd;
}

static bool one_in(uint32_t many)
{
    return sched_options.short_io && sched_below(many) == 0;
}

static int interrupted(void)
{
    errno = EINTR;
    return -1;
}

/* ----------------------------------------------------------------- sockets */

static socklen_t name_of(uint16_t port, struct sockaddr_un *name)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    int size = snprintf(name->sun_path + 1, sizeof name->sun_path - 1,
                        "sched-%d-%u", (int)getpid(), port);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)size);
}

static uint16_t port_of(const struct sockaddr *name)
{
    const struct sockaddr_in *v4 = (const void *)name;
    const struct sockaddr_in6 *v6 = (const void *)name;
    return ntohs(name->sa_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
}

/* 127.0.0.1, or the same in IPv6. */
static void write_address(const struct descriptor *d, struct sockaddr *name,
                          socklen_t *size)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons(d->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(d->port)};
    static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    memcpy(&v6.sin6_addr, mapped, sizeof mapped);
    bool six = d->family == AF_INET6;
    const void *from = six ? (const void *)&v6 : (const void *)&v4;
    socklen_t want = six ? sizeof v6 : sizeof v4;
    memcpy(name, from, *size < want ? *size : want);
    *size = want;
}

static void limit_buffer(int fd)
{
    REAL(setsockopt);
    int size = sched_options.send_buffer;
    if (size > 0) (void)real(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

int socket(int domain, int type, int protocol)
{
    REAL(socket);
    if (!sched_is_on() || (domain != AF_INET && domain != AF_INET6))
        return real(domain, type, protocol);
    sched_point(SCHED_SOCKET, 0);
    int fd = adopt(real(AF_UNIX, type, 0), domain);
    limit_buffer(fd);
    return fd;
}

int bind(int fd, const struct sockaddr *name, socklen_t size)
{
    REAL(bind);
    struct descriptor *d = of(fd);
    struct sockaddr_un un;
    if (!d) return real(fd, name, size);
    d->port = port_of(name);
    if (d->port == 0) d->port = next_port++;
    size = name_of(d->port, &un);
    return real(fd, (struct sockaddr *)&un, size);
}

/* As with TCP, the outcome shows later. */
int connect(int fd, const struct sockaddr *name, socklen_t size)
{
    REAL(connect);
    const struct descriptor *d = of(fd);
    struct sockaddr_un un;
    if (!d) return real(fd, name, size);
    sched_point(SCHED_SOCKET, 1);
    size = name_of(port_of(name), &un);
    if (real(fd, (struct sockaddr *)&un, size) != 0) return -1;
    sched_fds_changed();
    errno = EINPROGRESS;
    return -1;
}

int accept4(int fd, struct sockaddr *name, socklen_t *size, int flags)
{
    REAL(accept4);
    const struct descriptor *d = of(fd);
    if (!d) return real(fd, name, size, flags);
    sched_point(SCHED_SOCKET, 2);
    int one = adopt(real(fd, NULL, NULL, flags), d->family);
    if (one < 0) return one;
    limit_buffer(one);
    if (name) write_address(&fds[one], name, size);
    return one;
}

int getsockname(int fd, struct sockaddr *name, socklen_t *size)
{
    REAL(getsockname);
    const struct descriptor *d = of(fd);
    if (!d) return real(fd, name, size);
    write_address(d, name, size);
    return 0;
}

int getpeername(int fd, struct sockaddr *name, socklen_t *size)
{
    REAL(getpeername);
    const struct descriptor *d = of(fd);
    if (!d) return real(fd, name, size);
    write_address(&(struct descriptor){.family = d->family}, name, size);
    return 0;
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
    REAL(setsockopt);
    return of(fd) ? 0 : real(fd, level, option, value, size);
}

/* Nothing is measured: no round trip, no congestion control. */
int getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
    REAL(getsockopt);
    if (of(fd) && level != SOL_SOCKET) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return real(fd, level, option, value, size);
}

int shutdown(int fd, int how)
{
    REAL(shutdown);
    sched_point(SCHED_SOCKET, 3);
    int rc = real(fd, how);
    sched_fds_changed();
    return rc;
}

int close(int fd)
{
    REAL(close);
    sched_point(SCHED_SOCKET, 4);
    if (of(fd)) fds[fd] = (struct descriptor){0};
    int rc = real(fd);
    if (sched_is_on()) sched_fds_changed();
    return rc;
}

void sched_close_all(int member)
{
    REAL(close);
    for (int fd = 0; fd < FDS_MAX; fd++) {
        if (!fds[fd].used || fds[fd].member != member) continue;
        fds[fd] = (struct descriptor){0};
        (void)real(fd);
    }
}

/* ------------------------------------------------------------------- bytes */

static size_t part_of(size_t size)
{
    if (size > 1 && one_in(4)) return 1 + sched_random() % (size - 1);
    return size;
}

/* What was sent or received is an event of the schedule. */
static ssize_t moved(enum sched_what what, int fd, ssize_t size)
{
    int keep = errno;
    if (sched_is_on()) {
        sched_note(what, (uint64_t)fd << 32 | (uint32_t)size);
        if (size >= 0) sched_fds_changed();
    }
    errno = keep;
    return size;
}

ssize_t send(int fd, const void *from, size_t size, int flags)
{
    REAL(send);
    if (!sched_is_on()) return real(fd, from, size, flags);
    sched_point(SCHED_WRITE, size);
    if (one_in(64)) return interrupted();
    return moved(SCHED_WRITE, fd, real(fd, from, part_of(size), flags));
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    REAL(sendmsg);
    if (!sched_is_on()) return real(fd, msg, flags);
    struct msghdr some = *msg;
    struct iovec first;
    sched_point(SCHED_WRITE, msg->msg_iovlen);
    if (one_in(64)) return interrupted();
    if (one_in(4) && msg->msg_iovlen > 0) {
        first = msg->msg_iov[0];
        first.iov_len = part_of(first.iov_len);
        some.msg_iov = &first;
        some.msg_iovlen = 1;
    }
    return moved(SCHED_WRITE, fd, real(fd, &some, flags));
}

ssize_t recv(int fd, void *to, size_t size, int flags)
{
    REAL(recv);
    if (!sched_is_on()) return real(fd, to, size, flags);
    sched_point(SCHED_READ, size);
    if (one_in(64)) return interrupted();
    return moved(SCHED_READ, fd, real(fd, to, part_of(size), flags));
}

ssize_t write(int fd, const void *from, size_t size)
{
    REAL(write);
    if (!of(fd)) return real(fd, from, size);
    sched_point(SCHED_WRITE, size);
    return moved(SCHED_WRITE, fd, real(fd, from, size));
}

ssize_t read(int fd, void *to, size_t size)
{
    REAL(read);
    if (!of(fd)) return real(fd, to, size);
    sched_point(SCHED_READ, size);
    return moved(SCHED_READ, fd, real(fd, to, size));
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n,
                         const struct iovec *from, unsigned long m,
                         unsigned long flags)
{
    REAL(process_vm_readv);
    sched_point(SCHED_READ, 0);
    return real(pid, to, n, from, m, flags);
}

ssize_t getrandom(void *to, size_t size, unsigned flags)
{
    REAL(getrandom);
    if (!sched_is_on()) return real(to, size, flags);
    for (size_t i = 0; i < size; i++) ((uint8_t *)to)[i] = sched_random() & 255;
    return (ssize_t)size;
}

/* ----------------------------------------------------------------- waiting */

int sched_look(struct pollfd *some, nfds_t count)
{
    REAL(poll);
    return real(some, count, 0);
}

static int64_t until_of(int timeout)
{
    if (timeout < 0) return SCHED_NEVER;
    return sched_now() + timeout * SCHED_MS;
}

/* False: the time is over. */
static bool sleep_for(struct pollfd *some, nfds_t count, int64_t until)
{
    struct sched_thread *t = sched_self();
    if (sched_now() >= until) return false;
    t->fds = some;
    t->fd_count = count;
    return sched_block(SCHED_ON_FDS, NULL, until);
}

int poll(struct pollfd *some, nfds_t count, int timeout)
{
    REAL(poll);
    if (!sched_is_on()) return real(some, count, timeout);
    int64_t until = until_of(timeout);
    sched_point(SCHED_POLL, count);
    if (timeout != 0 && one_in(64)) return interrupted();
    int found;
    bool more = true;
    while ((found = sched_look(some, count)) == 0 && more)
        more = sleep_for(some, count, until);
    sched_note(SCHED_POLL, (uint64_t)found);
    return found;
}

int epoll_create1(int flags)
{
    REAL(epoll_create1);
    return adopt(real(flags), 0);
}

int epoll_ctl(int set, int change, int fd, struct epoll_event *event)
{
    REAL(epoll_ctl);
    if (sched_is_on()) sched_point(SCHED_POLL, (uint64_t)change << 32);
    int rc = real(set, change, fd, event);
    if (sched_is_on()) sched_fds_changed();
    return rc;
}

/* The kernel's order of the events is one of many. */
static void shuffle(struct epoll_event *events, int count)
{
    for (int i = count - 1; i > 0; i--) {
        uint32_t other = sched_below((uint32_t)i + 1);
        struct epoll_event kept = events[i];
        events[i] = events[other];
        events[other] = kept;
    }
}

int epoll_wait(int set, struct epoll_event *events, int most, int timeout)
{
    REAL(epoll_wait);
    if (!sched_is_on()) return real(set, events, most, timeout);
    struct pollfd one = {.fd = set, .events = POLLIN};
    int64_t until = until_of(timeout);
    sched_point(SCHED_POLL, 0);
    if (timeout != 0 && one_in(64)) return interrupted();
    int found;
    bool more = timeout != 0;
    while ((found = real(set, events, most, 0)) == 0 && more)
        more = sleep_for(&one, 1, until);
    sched_note(SCHED_POLL, (uint64_t)found);
    shuffle(events, found);
    return found;
}

int eventfd(unsigned count, int flags)
{
    REAL(eventfd);
    return adopt(real(count, flags), 0);
}

/* ------------------------------------------------------------------ timers */

int timerfd_create(int clock, int flags)
{
    REAL(timerfd_create);
    if (!sched_is_on()) return real(clock, flags);
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static void take_count(int fd)
{
    REAL(read);
    uint64_t count;
    (void)!real(fd, &count, sizeof count);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *time,
                    struct itimerspec *old)
{
    REAL(timerfd_settime);
    struct descriptor *d = of(fd);
    if (!d) return real(fd, flags, time, old);
    const struct timespec *first = &time->it_value;
    const struct timespec *next = &time->it_interval;
    sched_point(SCHED_TIMER, 0);
    take_count(fd);
    int64_t after = first->tv_sec * SCHED_S + first->tv_nsec;
    d->period = next->tv_sec * SCHED_S + next->tv_nsec;
    d->due = after > 0 ? sched_now() + after : 0;
    sched_fds_changed(); /* and the time at which to look at timers */
    return 0;
}

int64_t sched_next_timer(void)
{
    int64_t next = SCHED_NEVER;
    for (int fd = 0; fd < FDS_MAX; fd++) {
        if (fds[fd].used && fds[fd].due > 0 && fds[fd].due < next)
            next = fds[fd].due;
    }
    return next;
}

void sched_fire_timers(int64_t now)
{
    REAL(write);
    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct descriptor *d = &fds[fd];
        if (!d->used || d->due == 0 || d->due > now) continue;
        uint64_t times = 1;
        if (d->period > 0) times += (uint64_t)((now - d->due) / d->period);
        (void)!real(fd, &times, sizeof times);
        d->due = d->period > 0 ? d->due + (int64_t)times * d->period : 0;
        sched_fds_changed();
    }
}
