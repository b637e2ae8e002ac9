/* io_addr.c - conversion of socket addresses, name resolution, and TCP
 * options. */
#include "io_addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint32_t look_up(const char *host, uint16_t port,
                        const struct addrinfo *hints, struct io_addr *out,
                        uint32_t max, const char **error)
{
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    if (host && *host == '\0') host = NULL;
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, service, hints, &found);
    if (code != 0) {
        *error = gai_strerror(code);
        return 0;
    }
    uint32_t count = 0;
    for (struct addrinfo *a = found; a && count < max; a = a->ai_next) {
        if (a->ai_addrlen > sizeof out[count].name) continue;
        out[count] = (struct io_addr){.size = a->ai_addrlen};
        memcpy(&out[count++].name, a->ai_addr, a->ai_addrlen);
    }
    freeaddrinfo(found);
    if (count == 0) *error = "no address";
    return count;
}

bool io_addr_numeric(const char *host, uint16_t port, bool v6,
                     struct io_addr *out)
{
    const char *error = NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
    if (!host || *host == '\0') hints.ai_family = v6 ? AF_INET6 : AF_INET;
    return look_up(host, port, &hints, out, 1, &error) == 1;
}

uint32_t io_addr_resolve(const char *host, uint16_t port, struct io_addr *out,
                         uint32_t max, const char **error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    hints.ai_flags = AI_NUMERICSERV;
    return look_up(host, port, &hints, out, max, error);
}

struct wire_addr io_addr_to_wire(const struct io_addr *addr)
{
    struct wire_addr w = {.family = 0};
    if (addr->name.ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, &addr->name, sizeof in);
        w.family = 4;
        memcpy(w.ip, &in.sin_addr, 4);
        w.port = ntohs(in.sin_port);
    } else if (addr->name.ss_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, &addr->name, sizeof in6);
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr);
        w.family = mapped ? 4 : 6;
        memcpy(w.ip, in6.sin6_addr.s6_addr + (mapped ? 12 : 0),
               mapped ? 4 : 16);
        w.port = ntohs(in6.sin6_port);
    }
    return w;
}

bool io_addr_from_wire(const struct wire_addr *wire, struct io_addr *out)
{
    *out = (struct io_addr){.size = 0};
    if (wire->family == 4) {
        struct sockaddr_in in = {.sin_family = AF_INET,
                                 .sin_port = htons(wire->port)};
        memcpy(&in.sin_addr, wire->ip, 4);
        memcpy(&out->name, &in, sizeof in);
        out->size = sizeof in;
    } else if (wire->family == 6) {
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                                   .sin6_port = htons(wire->port)};
        memcpy(&in6.sin6_addr, wire->ip, 16);
        memcpy(&out->name, &in6, sizeof in6);
        out->size = sizeof in6;
    }
    return out->size > 0;
}

struct io_addr io_addr_local(int fd)
{
    struct io_addr a = {.size = sizeof a.name};
    if (getsockname(fd, (struct sockaddr *)&a.name, &a.size) != 0)
        a = (struct io_addr){.size = 0};
    return a;
}

struct io_addr io_addr_peer(int fd)
{
    struct io_addr a = {.size = sizeof a.name};
    if (getpeername(fd, (struct sockaddr *)&a.name, &a.size) != 0)
        a = (struct io_addr){.size = 0};
    return a;
}

uint16_t io_addr_port(const struct io_addr *addr)
{
    return io_addr_to_wire(addr).port;
}

char *io_addr_print(const struct wire_addr *wire, char text[IO_ADDR_TEXT_SIZE])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    int family = wire->family == 6 ? AF_INET6 : AF_INET;
    if (wire->family == 0 || !inet_ntop(family, wire->ip, ip, sizeof ip)) {
        snprintf(text, IO_ADDR_TEXT_SIZE, "?");
        return text;
    }
    const char *format = wire->family == 6 ? "[%s]:%u" : "%s:%u";
    snprintf(text, IO_ADDR_TEXT_SIZE, format, ip, (unsigned)wire->port);
    return text;
}

bool io_addr_is_loopback(const struct wire_addr *wire)
{
    static const uint8_t v6[16] = {[15] = 1};
    if (wire->family == 4) return wire->ip[0] == 127;
    return wire->family == 6 && memcmp(wire->ip, v6, sizeof v6) == 0;
}

static bool is_loopback(const struct io_addr *addr)
{
    struct wire_addr w = io_addr_to_wire(addr);
    return io_addr_is_loopback(&w);
}

/* All zero if it is not known. */
static struct tcp_info tcp_info(int fd)
{
    struct tcp_info info = {.tcpi_rtt = 0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        info = (struct tcp_info){.tcpi_rtt = 0};
    return info;
}

pccl_ns io_addr_rtt(int fd)
{
    return (pccl_ns)tcp_info(fd).tcpi_rtt * 1000;
}

pccl_ns io_addr_unheard(int fd)
{
    return (pccl_ns)tcp_info(fd).tcpi_last_ack_recv * PCCL_MS;
}

void io_addr_tune_high_rtt(int fd)
{
    int unsent = 16 * 1024;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent,
                     sizeof unsent);
}

/* no route is likely to select it, whereas a route may select cubic */
static const char unpaced[] = "reno";

void io_addr_tune_early(int fd, const struct io_addr *peer)
{
    if (!peer || is_loopback(peer))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, unpaced,
                         sizeof unpaced - 1);
}

/* Restores the system's default, which a fresh socket has. A choice made by a
 * route is left alone. */
static void set_system_congestion(int fd)
{
    char name[16] = ""; /* TCP_CA_NAME_MAX of the kernel */
    socklen_t size = sizeof name;
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0 ||
        strncmp(name, unpaced, sizeof name) != 0)
        return;
    int fresh = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fresh < 0) return;
    size = sizeof name;
    if (getsockopt(fresh, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, size);
    close(fresh);
}

void io_addr_tune(int fd, const struct io_addr *peer)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!is_loopback(peer)) set_system_congestion(fd);
}
