/* reach.c - finds a reachable address among several. */
#include "reach.h"

#include "../base/io_addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { CALLS_MAX = 64, CALL_MS = 3000 };

/* Family 0 for an address that other hosts cannot reach. */
static struct wire_addr address_of(const struct ifaddrs *at)
{
    struct io_addr addr = {.size = 0};
    int family = at->ifa_addr && (at->ifa_flags & IFF_UP)
                     ? at->ifa_addr->sa_family
                     : AF_UNSPEC;
    if (family == AF_INET)
        memcpy(&addr.name, at->ifa_addr, sizeof(struct sockaddr_in));
    if (family == AF_INET6)
        memcpy(&addr.name, at->ifa_addr, sizeof(struct sockaddr_in6));
    struct wire_addr w = io_addr_to_wire(&addr);
    bool link_local = w.ip[0] == 0xfe && (w.ip[1] & 0xc0) == 0x80;
    if (w.family == 6 && link_local) w.family = 0;
    return w;
}

void reach_list(uint16_t port, struct link_texts *addresses)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) all = NULL;
    for (int loopback = 0; loopback < 2; loopback++) {
        for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
            char text[IO_ADDR_TEXT_SIZE];
            struct wire_addr w = address_of(at);
            w.port = port;
            if (((at->ifa_flags & IFF_LOOPBACK) != 0) != (loopback != 0))
                continue;
            if (w.family != 0) link_put(addresses, io_addr_print(&w, text));
        }
    }
    freeifaddrs(all);
}

bool reach_interface(const char *name, char *host, size_t size)
{
    struct ifaddrs *all = NULL;
    *host = '\0';
    if (getifaddrs(&all) != 0) return false;
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        struct wire_addr w = address_of(at);
        bool four = w.family == 4;
        if (strcmp(at->ifa_name, name) != 0 || w.family == 0 ||
            (*host && !four))
            continue;
        inet_ntop(four ? AF_INET : AF_INET6, w.ip, host, (socklen_t)size);
        if (four) break;
    }
    freeifaddrs(all);
    return *host != '\0';
}

static bool numeric(const struct address *address, struct io_addr *to)
{
    return *address->host != '\0' && !strchr(address->host, '%') &&
           io_addr_numeric(address->host, address->port, false, to);
}

bool reach_is_numeric(const struct address *address)
{
    struct io_addr to;
    return numeric(address, &to);
}

bool reach_is_ours(const struct address *address)
{
    struct ifaddrs *all = NULL;
    struct io_addr to;
    bool ours = false;
    if (!numeric(address, &to) || getifaddrs(&all) != 0) return false;
    struct wire_addr wanted = io_addr_to_wire(&to);
    for (const struct ifaddrs *at = all; at && !ours; at = at->ifa_next) {
        struct wire_addr w = address_of(at);
        ours = w.family == wanted.family &&
               memcmp(w.ip, wanted.ip, sizeof w.ip) == 0;
    }
    freeifaddrs(all);
    return ours;
}

static int call(const struct io_addr *to)
{
    int fd = socket(to->name.ss_family,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        connect(fd, (const struct sockaddr *)&to->name, to->size) != 0 &&
        errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool answered(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
           error == 0;
}

struct targets {
    const char *texts[CALLS_MAX];
    struct io_addr addresses[CALLS_MAX];
    nfds_t count;
};

/* The first that accepts a connection. */
static const char *connect_any(const struct targets *t)
{
    struct pollfd calls[CALLS_MAX];
    const char *found = NULL;
    nfds_t open = 0;
    for (nfds_t i = 0; i < t->count; i++) {
        calls[i] =
            (struct pollfd){.fd = call(&t->addresses[i]), .events = POLLOUT};
        open += calls[i].fd >= 0;
    }
    while (!found && open > 0 && poll(calls, t->count, CALL_MS) > 0) {
        for (nfds_t i = 0; i < t->count && !found; i++) {
            if (calls[i].fd < 0 || !calls[i].revents) continue;
            if (answered(calls[i].fd)) found = t->texts[i];
            close(calls[i].fd);
            calls[i].fd = -1;
            open--;
        }
    }
    for (nfds_t i = 0; i < t->count; i++)
        if (calls[i].fd >= 0) close(calls[i].fd);
    return found;
}

const char *reach_first(struct link_texts *addresses)
{
    struct targets all[2] = {{.count = 0}}; /* loopback ones apart */
    for (const char *text; (text = link_get(addresses));) {
        struct address address;
        struct io_addr to;
        if (!address_parse(text, 0, &address)) continue;
        if (!numeric(&address, &to)) return text;
        struct wire_addr wire = io_addr_to_wire(&to);
        struct targets *t = &all[io_addr_is_loopback(&wire)];
        if (t->count == CALLS_MAX) continue;
        t->addresses[t->count] = to;
        t->texts[t->count++] = text;
    }
    const char *found = connect_any(&all[0]);
    return found ? found : connect_any(&all[1]);
}
