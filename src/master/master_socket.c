/* master_socket.c - see master_socket.h. */
#include "master_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

static bool would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK;
}

static ssize_t send_some(int fd, const struct master_conn *c)
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
    return sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

enum conn_result master_socket_flush(int fd, struct master_conn *c)
{
    while (c->out_count > 0) {
        ssize_t sent = send_some(fd, c);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return would_block() ? CONN_WAIT : CONN_END;
        master_conn_sent(c, (size_t)sent);
    }
    return CONN_DONE;
}

enum conn_result master_socket_receive(int fd, struct master_conn *c,
                                       size_t *got)
{
    size_t room;
    uint8_t *to = master_conn_room(c, &room);
    for (;;) {
        ssize_t size = recv(fd, to, room, MSG_DONTWAIT);
        if (size > 0) {
            *got = (size_t)size;
            return CONN_DONE;
        }
        if (size == 0) return CONN_END;
        if (errno != EINTR) return would_block() ? CONN_WAIT : CONN_END;
    }
}
