/* address.h - HOST:PORT as people write it; pure. */
#ifndef PCCL_ADDRESS_H
#define PCCL_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOST_SIZE = 256 }; /* host name with its '\0' */

struct address {
    char host[HOST_SIZE]; /* "" for all interfaces; no brackets */
    uint16_t port;        /* default_port when the text has none */
};

/* Reads host:port, [v6]:port, host, v6, [v6], *:port, :port or port. */
bool address_parse(const char *text, uint16_t default_port,
                   struct address *address);

/* Reads the first address of a list "a:1,b:2". *list is what follows then, NULL
 * behind the last one, and as it was where it is no address. */
bool address_next(const char **list, uint16_t default_port,
                  struct address *address);

/* It names a host, with a port or without. */
bool address_is_host(const char *text);

/* It is that of all interfaces: none, 0.0.0.0 or ::. */
bool address_is_any(const struct address *address);

/* "127.0.0.1:80", "[::1]:80", "*:80". Returns text. */
char *address_print(const struct address *address, char *text, size_t size);

/* An address at which a process of this host reaches that listener. */
char *address_print_local(const struct address *address, char *text,
                          size_t size);

#endif
