/* master_listen.h - the socket on which the master listens. */
#ifndef PCCL_MASTER_LISTEN_H
#define PCCL_MASTER_LISTEN_H

#include <stddef.h>
#include <stdint.h>

/* host is numeric; NULL or "": all interfaces, IPv4 and IPv6, or IPv4 alone on
 * hosts without IPv6. Returns the descriptor, or -1 with the reason in error.
 */
int master_listen(const char *host, uint16_t port, char *error,
                  size_t error_size);

#endif
