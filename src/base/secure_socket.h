/* secure_socket.h - a secure channel over a socket that does not block. The
 * calls have the results of sendmsg() and recv(), and take bytes in clear. */
#ifndef PCCL_SECURE_SOCKET_H
#define PCCL_SECURE_SOCKET_H

#include "secure.h"

#include <sys/types.h>
#include <sys/uio.h>

/* The first bytes of the parts, as many as have left; -1: errno is EAGAIN, or
 * EPROTO: the channel is broken, or an error of the socket. The caller repeats
 * the call with the same bytes after EAGAIN, as they may be encrypted by then.
 * While the channel is GREETING nothing leaves but its own bytes: wait for
 * input then, and not for room (secure_wants_room). */
ssize_t secure_send(int fd, struct secure *s, const struct iovec *parts,
                    size_t count);
/* 0: the end; -1: EAGAIN, EPROTO (the channel is broken) or an error of the
 * socket. Bytes of `to` beyond those received may change. May send. */
ssize_t secure_recv(int fd, struct secure *s, void *to, size_t size);
/* Receives and sends what proves the keys, and nothing else. 1: OPEN; 0: wait
 * for input; -1: BROKEN, or an error of the socket. */
int secure_greet(int fd, struct secure *s);
/* Bytes wait for room in the socket. */
bool secure_wants_room(const struct secure *s);
/* Sends what is waiting. False: some of it still does. */
bool secure_flush(int fd, struct secure *s);

#endif
