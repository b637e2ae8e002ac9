/* comm_listen.c - where a member listens, and where it says that it can be
 * reached (rules N1, N3). */
#include "comm.h"

#include "../base/address.h"
#include "../base/io_addr.h"
#include "../base/port_range.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int listen_on(int family, uint16_t port)
{
    struct io_addr any;
    if (!io_addr_numeric(NULL, port, family == AF_INET6, &any)) return -1;
    fork_guard_hold();
    int fd = fork_guard_keep(
        socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0) return -1;
    io_addr_tune_early(fd, NULL);
    int zero = 0, one = 1;
    bool ok = family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY,
                                               &zero, sizeof zero) == 0;
    /* A rank that died has left connections behind, which hold its port. */
    if (port != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    ok = ok && bind(fd, (struct sockaddr *)&any.name, any.size) == 0 &&
         listen(fd, 1024) == 0;
    if (ok) return fd;
    int error = errno;
    fork_guard_close(fd);
    errno = error;
    return -1;
}

/* One port serves everything; an IPv6 socket accepts IPv4 as well. */
static int listen_at(uint16_t port)
{
    int fd = listen_on(AF_INET6, port);
    if (fd >= 0 || errno == EADDRINUSE) return fd;
    return listen_on(AF_INET, port);
}

/* 0: the kernel does not say. */
static uint16_t port_of(int fd)
{
    struct io_addr self = io_addr_local(fd);
    return io_addr_port(&self);
}

bool comm_listen(pcclComm_t *c)
{
    const struct port_range *r = &c->ways.range;
    int fd = -1;
    for (uint32_t port = r->first; fd < 0 && port <= r->last; port++)
        fd = listen_at((uint16_t)port);
    c->io.port = fd >= 0 ? port_of(fd) : 0;
    if (fd >= 0 && c->io.port == 0) {
        fork_guard_close(fd); /* errno stays */
        fd = -1;
    }
    if (fd < 0) {
        int error = errno;
        if (r->first != 0 && error == EADDRINUSE)
            comm_set_error(c, "all ports of %u-%u (PCCL_PORTS) are in use",
                           (unsigned)r->first, (unsigned)r->last);
        else
            comm_set_error(c, "cannot listen for other peers: %s",
                           strerror(error));
        return false;
    }
    c->io.listeners[0] = fd;
    if (c->ways.announced.family != 0 && c->ways.announced_port == 0)
        c->ways.announced.port = c->io.port;
    return true;
}

/* --------------------------------------------------------------- the wishes */

enum { ANNOUNCED_MAX = 8 }; /* addresses of a name that are looked at */

/* What the program has set counts; else the environment. */
static const char *wish(const char *option, const char *name)
{
    const char *text = option[0] != '\0' ? option : getenv(name);
    return text && *text != '\0' ? text : NULL;
}

/* Of a name with several addresses: one that others can dial, if possible of
 * the family in which this member reaches the master, as they do. */
static struct wire_addr choose(const pcclComm_t *c, const struct io_addr *found,
                               uint32_t count)
{
    bool v6 = c->params.master_address.inet.protocol == inetIPv6;
    struct wire_addr best = {.family = 0};
    for (uint32_t i = 0; i < count; i++) {
        struct wire_addr a = io_addr_to_wire(&found[i]);
        struct wire_addr any_port = a;
        any_port.port = 1;
        if (!wire_addr_is_host(&any_port)) continue;
        if (best.family == 0 ||
            (best.family != (v6 ? 6 : 4) && a.family == (v6 ? 6 : 4)))
            best = a;
    }
    return best;
}

static bool read_announced(pcclComm_t *c, const char *text, pccl_ns until)
{
    struct address at;
    struct io_addr found[ANNOUNCED_MAX];
    const char *error = "HOST or HOST:PORT is wanted";
    uint32_t count = 0;
    if (address_parse(text, 0, &at) && at.host[0] != '\0')
        count = comm_resolve(c, &at, until, found, ANNOUNCED_MAX, &error);
    c->ways.announced = choose(c, found, count);
    c->ways.announced_port = at.port;
    if (c->ways.announced.family != 0) return true;
    if (count > 0) error = "that is no address of one host";
    comm_set_error(c, "PCCL_ANNOUNCE=%s: %s", text, error);
    return false;
}

bool comm_read_ways(pcclComm_t *c, pccl_ns until)
{
    const char *ports = wish(c->ways.ports, "PCCL_PORTS");
    const char *announce = wish(c->ways.announce, "PCCL_ANNOUNCE");
    c->ways.range = (struct port_range){0, 0};
    c->ways.announced = (struct wire_addr){.family = 0};
    if (ports && !port_range_parse(ports, &c->ways.range)) {
        comm_set_error(c,
                       "PCCL_PORTS=%s: FIRST-LAST is wanted, or PORT, of 1 to "
                       "65535",
                       ports);
        return false;
    }
    return !announce || read_announced(c, announce, until);
}
