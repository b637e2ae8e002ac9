/* master_socket.h - the bytes of a connection of the master, from and to its
 * socket, which does not block. */
#ifndef PCCL_MASTER_SOCKET_H
#define PCCL_MASTER_SOCKET_H

#include "../../base/secure_socket.h"
#include "master_conn.h"

enum { SOCKET_PARTS_MAX = 16 }; /* frames per sendmsg */

/* secure: of a run with a key; NULL: in clear. */
enum conn_result master_socket_flush(int fd, struct secure *secure,
                                     struct master_conn *c);

/* Receives into the connection's room; *got bytes where the result is DONE. The
 * caller says so to the switchboard. */
enum conn_result master_socket_receive(int fd, struct secure *secure,
                                       struct master_conn *c, size_t *got);

#endif
