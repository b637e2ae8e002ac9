/* master_socket.c - see master_socket.h. */
#include "master_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

static bool would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK;
}

static ssize_t send_some(int fd, struct secure *secure,
                         const struct master_conn *c)
{
    struct master_chunk parts[SOCKET_PARTS_MAX];
    struct iovec vectors[SOCKET_PARTS_MAX];
    struct msghdr header = {.msg_iov = vectors};
    uint32_t count = master_conn_parts(c, parts, SOCKET_PARTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        vectors[i].iov_base = (void *)(uintptr_t)parts[i].bytes;
        vectors[i].iov_len = parts[i].size;
    }
    header.msg_iovlen = count;
    if (secure) return secure_send(fd, secure, vectors, count);
    return sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

enum conn_result master_socket_flush(int fd, struct secure *secure,
                                     struct master_conn *c)
{
    /* Who has not proved the key is told nothing. */
    if (secure && secure_state(secure) != SECURE_OPEN) {
        if (c->out_count > 0) return CONN_END;
        return secure_flush(fd, secure) ? CONN_DONE : CONN_WAIT;
    }
    struct master_chunk next;
    while (master_conn_parts(c, &next, 1) > 0) {
        ssize_t sent = send_some(fd, secure, c);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return would_block() ? CONN_WAIT : CONN_END;
        master_conn_sent(c, (size_t)sent);
    }
    return CONN_DONE;
}

enum conn_result master_socket_receive(int fd, struct secure *secure,
                                       struct master_conn *c, size_t *got)
{
    /* A stranger has no buffer before it has proved the key (rule K4). */
    if (secure && secure_state(secure) == SECURE_GREETING) {
        int greeted = secure_greet(fd, secure);
        if (greeted != 1) return greeted == 0 ? CONN_WAIT : CONN_END;
    }
    size_t room;
    uint8_t *to = master_conn_room(c, &room);
    if (!to) return CONN_END;
    for (;;) {
        ssize_t size = secure ? secure_recv(fd, secure, to, room)
                              : recv(fd, to, room, MSG_DONTWAIT);
        if (size > 0) {
            *got = (size_t)size;
            return CONN_DONE;
        }
        if (size == 0) return CONN_END;
        if (errno != EINTR) return would_block() ? CONN_WAIT : CONN_END;
    }
}
