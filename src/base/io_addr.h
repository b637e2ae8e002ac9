/* io_addr.h - socket addresses: names, sockaddr, wire. */
#ifndef PCCL_IO_ADDR_H
#define PCCL_IO_ADDR_H

#include "base.h"
#include "wire.h"

#include <sys/socket.h>

enum {
    IO_ADDR_TEXT_SIZE = 64, /* "[v6]:port" */
};

struct io_addr {
    struct sockaddr_storage name;
    socklen_t size;
};

/* Parses a numeric host; NULL or "" is the wildcard, IPv6 (dual-stack) if v6 is
 * set. */
bool io_addr_numeric(const char *host, uint16_t port, bool v6,
                     struct io_addr *out);

/* Resolves a name or a number, best address first; NULL or "" is the loopback.
 * May block as long as the resolver does. Returns the number of addresses, at
 * most max; 0: see *error. */
uint32_t io_addr_resolve(const char *host, uint16_t port, struct io_addr *out,
                         uint32_t max, const char **error);

/* IPv4-mapped IPv6 becomes IPv4. Any other family becomes "unknown". */
struct wire_addr io_addr_to_wire(const struct io_addr *addr);

/* An address that only this host has. */
bool io_addr_is_loopback(const struct wire_addr *wire);

/* False if the family is unknown. */
bool io_addr_from_wire(const struct wire_addr *wire, struct io_addr *out);

/* The address of this end or of the peer; size 0: none. */
struct io_addr io_addr_local(int fd);
struct io_addr io_addr_peer(int fd);
uint16_t io_addr_port(const struct io_addr *addr);

/* "1.2.3.4:5", "[::1]:5" or "?". Returns text. */
char *io_addr_print(const struct wire_addr *wire, char text[IO_ADDR_TEXT_SIZE]);

/* Options of every TCP socket: no delay, and on loopback a congestion control
 * without pacing (BBR paces). Once a socket has used a pacing one it stays
 * paced, so the choice precedes the connection: `peer` is the address to
 * connect to, or NULL for a listener and all that it accepts. io_addr_tune()
 * restores the system's congestion control for remote peers. Errors do not
 * matter. */
void io_addr_tune_early(int fd, const struct io_addr *peer);
void io_addr_tune(int fd, const struct io_addr *peer);

/* Round trip of a connection as measured by TCP; 0: not yet measured. */
pccl_ns io_addr_rtt(int fd);

/* Time since the other host has acknowledged anything on this connection; 0:
 * not known. */
pccl_ns io_addr_unheard(int fd);

/* For a connection with a high RTT: limits unsent data in the kernel, so that
 * data that one connection is slow to send can go over the peer's other
 * connections. Data in flight are not limited. */
void io_addr_tune_high_rtt(int fd);

#endif
