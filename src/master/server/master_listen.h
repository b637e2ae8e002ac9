/* master_listen.h - the socket on which the master listens. */
#ifndef PCCL_MASTER_LISTEN_H
#define PCCL_MASTER_LISTEN_H

#include "../../base/io_addr.h"

/* host is numeric; NULL or "": all interfaces, IPv4 and IPv6, or IPv4 alone on
 * hosts without IPv6. Returns the descriptor, or -1 with the reason in error.
 */
int master_listen(const char *host, uint16_t port, char *error,
                  size_t error_size);

/* accept(): the descriptor, or -1. *lacking: this process or the system lacks
 * descriptors or memory, and the connection stays in the backlog. */
int master_accept(int fd, struct io_addr *from, bool *lacking);

#endif
