/* io_addr.h - socket addresses: text <-> sockaddr <-> wire. */
#ifndef PCCL_IO_ADDR_H
#define PCCL_IO_ADDR_H

#include "base.h"
#include "wire.h"

#include <sys/socket.h>

enum {
    IO_ADDR_HOST_SIZE = 256, /* host part of a text, terminator included */
    IO_ADDR_TEXT_SIZE = 64,  /* "[v6]:port" */
};

struct io_addr {
    struct sockaddr_storage name;
    socklen_t size;
};

/* Splits host:port, [v6]:port, host, v6, [v6], *:port, :port or port. host is
 * empty for "all interfaces" and for a bare port; port stays untouched when
 * the text has none. */
bool io_addr_split(const char *text, char host[IO_ADDR_HOST_SIZE],
                   uint16_t *port);

/* Numeric host; NULL or "" is the wildcard, IPv6 (dual-stack) if v6 is set. */
bool io_addr_numeric(const char *host, uint16_t port, bool v6,
                     struct io_addr *out);

/* Resolves a name or a number, best address first; NULL or "" is the loopback.
 * May block for as long as the resolver does. Returns the number of addresses,
 * at most max; 0: *error says why. */
uint32_t io_addr_resolve(const char *host, uint16_t port, struct io_addr *out,
                         uint32_t max, const char **error);

/* IPv4-mapped IPv6 becomes IPv4. Any other family becomes "unknown". */
struct wire_addr io_addr_to_wire(const struct io_addr *addr);

/* False if the family is unknown. */
bool io_addr_from_wire(const struct wire_addr *wire, struct io_addr *out);

/* The address of this end or of the other one; size 0 if there is none. */
struct io_addr io_addr_local(int fd);
struct io_addr io_addr_peer(int fd);
uint16_t io_addr_port(const struct io_addr *addr);

/* "1.2.3.4:5", "[::1]:5" or "?". Returns text. */
char *io_addr_print(const struct wire_addr *wire, char text[IO_ADDR_TEXT_SIZE]);

/* What every TCP socket of ours wants: no delay, and on loopback a congestion
 * control that does not pace (BBR does). A socket that has once been of one
 * that does is paced for ever, so it has to be chosen before the call (`peer`
 * is who is called) or, by a listener, for all that it will accept (NULL); who
 * is far away gets the system's back by io_addr_tune() with the connection.
 * Errors do not matter. */
void io_addr_tune_early(int fd, const struct io_addr *peer);
void io_addr_tune(int fd, const struct io_addr *peer);

/* The round trip of a connection as TCP has seen it so far, 0 if it has not. */
pccl_ns io_addr_rtt(int fd);

/* For a connection over a long way: the kernel takes little more than it can
 * send now, so that what one connection is slow to send goes to the others
 * that the peer has. In flight there may be any amount. */
void io_addr_tune_high_rtt(int fd);

#endif
