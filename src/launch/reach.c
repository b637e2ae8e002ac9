/* reach.c - finds a reachable address among several. */
#include "reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CALLS_MAX = 64, CALL_MS = 3000 };

static bool numeric(const struct address *address, struct sockaddr_storage *to,
                    socklen_t *size)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET,
                              .sin_port = htons(address->port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_port = htons(address->port)};
    if (inet_pton(AF_INET, address->host, &in4.sin_addr) == 1) {
        memcpy(to, &in4, *size = sizeof in4);
        return true;
    }
    if (inet_pton(AF_INET6, address->host, &in6.sin6_addr) != 1) return false;
    memcpy(to, &in6, *size = sizeof in6);
    return true;
}

static bool is_loopback(const char *text)
{
    struct address address;
    return address_parse(text, 0, &address) &&
           (strncmp(address.host, "127.", 4) == 0 ||
            strcmp(address.host, "::1") == 0);
}

/* "" for an address that other hosts cannot reach. */
static void interface_text(const struct ifaddrs *at, char *host, socklen_t size)
{
    *host = '\0';
    if (!at->ifa_addr || !(at->ifa_flags & IFF_UP)) return;
    if (at->ifa_addr->sa_family == AF_INET) {
        struct sockaddr_in in4;
        memcpy(&in4, at->ifa_addr, sizeof in4);
        inet_ntop(AF_INET, &in4.sin_addr, host, size);
    } else if (at->ifa_addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, at->ifa_addr, sizeof in6);
        if (!IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
            inet_ntop(AF_INET6, &in6.sin6_addr, host, size);
    }
}

void reach_list(uint16_t port, struct link_texts *addresses)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) all = NULL;
    for (int loopback = 0; loopback < 2; loopback++) {
        for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
            struct address address = {.port = port};
            char text[HOST_SIZE + 16];
            if (((at->ifa_flags & IFF_LOOPBACK) != 0) != (loopback != 0))
                continue;
            interface_text(at, address.host, sizeof address.host);
            if (*address.host)
                link_put(addresses, address_print(&address, text, sizeof text));
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
        bool four = at->ifa_addr && at->ifa_addr->sa_family == AF_INET;
        if (strcmp(at->ifa_name, name) != 0 || (*host && !four)) continue;
        interface_text(at, host, (socklen_t)size);
        if (four && *host) break;
    }
    freeifaddrs(all);
    return *host != '\0';
}

bool reach_is_numeric(const struct address *address)
{
    struct sockaddr_storage to;
    socklen_t size;
    return numeric(address, &to, &size);
}

bool reach_is_ours(const struct address *address)
{
    struct ifaddrs *all = NULL;
    bool ours = false;
    if (getifaddrs(&all) != 0) return false;
    for (const struct ifaddrs *at = all; at && !ours; at = at->ifa_next) {
        char host[INET6_ADDRSTRLEN];
        interface_text(at, host, sizeof host);
        ours = strcmp(host, address->host) == 0;
    }
    freeifaddrs(all);
    return ours;
}

static int call(const struct address *address)
{
    struct sockaddr_storage to;
    socklen_t size;
    if (!numeric(address, &to, &size)) return -1;
    int fd =
        socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, size) != 0 &&
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

/* The first of texts[0, count) that accepts a connection. */
static const char *connect_any(const char *const *texts, nfds_t count)
{
    struct pollfd calls[CALLS_MAX];
    const char *found = NULL;
    nfds_t open = 0;
    for (nfds_t i = 0; i < count; i++) {
        struct address address;
        bool good = address_parse(texts[i], 0, &address);
        calls[i] = (struct pollfd){.fd = good ? call(&address) : -1,
                                   .events = POLLOUT};
        open += calls[i].fd >= 0;
    }
    while (!found && open > 0 && poll(calls, count, CALL_MS) > 0) {
        for (nfds_t i = 0; i < count && !found; i++) {
            if (calls[i].fd < 0 || !calls[i].revents) continue;
            if (answered(calls[i].fd)) found = texts[i];
            close(calls[i].fd);
            calls[i].fd = -1;
            open--;
        }
    }
    for (nfds_t i = 0; i < count; i++)
        if (calls[i].fd >= 0) close(calls[i].fd);
    return found;
}

const char *reach_first(struct link_texts *addresses)
{
    const char *texts[2][CALLS_MAX];
    nfds_t counts[2] = {0, 0};
    for (const char *text; (text = link_get(addresses));) {
        struct address address;
        struct sockaddr_storage to;
        socklen_t size;
        bool loopback = is_loopback(text);
        if (!address_parse(text, 0, &address)) continue;
        if (!numeric(&address, &to, &size)) return text;
        if (counts[loopback] < CALLS_MAX)
            texts[loopback][counts[loopback]++] = text;
    }
    const char *found = connect_any(texts[0], counts[0]);
    return found ? found : connect_any(texts[1], counts[1]);
}
