/* master_listen.c - see master_listen.h. */
#include "master_listen.h"

#include "master_server.h"

#include "../../base/fork_guard.h"
#include "../../base/io_addr.h"
#include "../../base/same_user.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LISTEN_BACKLOG = 4096 };

static int listen_at(const struct io_addr *addr, const char **step)
{
    int on = 1;
    int off = 0;
    *step = "socket";
    fork_guard_hold();
    int fd = fork_guard_keep(socket(
        addr->name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0) return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (addr->name.ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    *step = "bind";
    if (bind(fd, (const struct sockaddr *)&addr->name, addr->size) == 0) {
        *step = "listen";
        io_addr_tune_early(fd, NULL);
        if (listen(fd, LISTEN_BACKLOG) == 0) return fd;
    }
    fork_guard_close(fd); /* errno stays */
    return -1;
}

int master_listen(const char *host, uint16_t port, char *error,
                  size_t error_size)
{
    struct io_addr addr;
    const char *step = "address";
    bool any = !host || *host == '\0';
    same_user_read_environment();
    errno = EADDRNOTAVAIL;
    int fd = -1;
    if (io_addr_numeric(host, port, true, &addr)) fd = listen_at(&addr, &step);
    if (fd < 0 && any && errno != EADDRINUSE &&
        io_addr_numeric(host, port, false, &addr))
        fd = listen_at(&addr, &step);
    if (fd < 0) snprintf(error, error_size, "%s: %s", step, strerror(errno));
    return fd;
}

int master_accept(int fd, struct io_addr *from, bool *lacking)
{
    *from = (struct io_addr){.size = sizeof from->name};
    fork_guard_hold();
    int accepted =
        fork_guard_keep(accept4(fd, (struct sockaddr *)&from->name, &from->size,
                                SOCK_NONBLOCK | SOCK_CLOEXEC));
    *lacking = accepted < 0 && (errno == EMFILE || errno == ENFILE ||
                                errno == ENOBUFS || errno == ENOMEM);
    return accepted;
}

bool master_server_resolve(const char *host, uint16_t port,
                           struct wire_addr *out, const char **why)
{
    struct io_addr found;
    if (io_addr_resolve(host, port, &found, 1, why) == 0) return false;
    *out = io_addr_to_wire(&found);
    *why = "it is no address of one host";
    return wire_addr_is_host(out);
}
