/* master_socket.h - the bytes of a connection of the master, from and to its
 * socket, which does not block. */
#ifndef PCCL_MASTER_SOCKET_H
#define PCCL_MASTER_SOCKET_H

#include "master_conn.h"

enum { SOCKET_PARTS_MAX = 16 }; /* frames per sendmsg */

enum conn_result master_socket_flush(int fd, struct master_conn *c);

/* Receives into the connection's room; *got bytes where the result is DONE. The
 * caller says so to the switchboard. */
enum conn_result master_socket_receive(int fd, struct master_conn *c,
                                       size_t *got);

#endif
