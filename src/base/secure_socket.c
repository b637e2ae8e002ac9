/* secure_socket.c - see secure_socket.h. */
#include "secure_socket.h"

#include <errno.h>
#include <sys/socket.h>

enum { PARTS_MAX = 16 };

bool secure_wants_room(const struct secure *s)
{
    const uint8_t *from;
    return secure_out(s, &from) > 0;
}

/* One send(); *whole plain bytes have left by it. */
static ssize_t send_out(int fd, struct secure *s, size_t *whole)
{
    const uint8_t *from;
    size_t size = secure_out(s, &from);
    ssize_t n = send(fd, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) *whole = secure_sent(s, (size_t)n);
    return n;
}

bool secure_flush(int fd, struct secure *s)
{
    size_t whole;
    while (secure_wants_room(s)) {
        /* Bytes of secure_send() are its caller's to count. */
        if (secure_writes(s) || send_out(fd, s, &whole) <= 0) return false;
    }
    return true;
}

ssize_t secure_send(int fd, struct secure *s, const struct iovec *parts,
                    size_t count)
{
    struct secure_part from[PARTS_MAX];
    if (count > PARTS_MAX) count = PARTS_MAX;
    for (size_t i = 0; i < count; i++)
        from[i] = (struct secure_part){parts[i].iov_base, parts[i].iov_len};
    for (;;) {
        size_t whole = 0;
        if (secure_wants_room(s) && send_out(fd, s, &whole) < 0) return -1;
        if (whole > 0) return (ssize_t)whole;
        if (secure_wants_room(s)) continue;
        if (secure_state(s) == SECURE_BROKEN) {
            errno = EPROTO;
            return -1;
        }
        if (secure_write(s, from, (uint32_t)count) > 0) continue;
        errno = secure_state(s) == SECURE_BROKEN ? EPROTO : EAGAIN;
        return -1;
    }
}

/* Received bytes go into the channel. 1: the room was filled, more may come. */
static ssize_t take(int fd, struct secure *s)
{
    size_t room;
    uint8_t *to = secure_room(s, &room);
    if (!to) return -1; /* broken */
    ssize_t n = recv(fd, to, room, MSG_DONTWAIT);
    if (n == 0) secure_ended(s);
    if (n <= 0) return n;
    secure_received(s, (size_t)n);
    return (size_t)n == room ? 2 : 1;
}

int secure_greet(int fd, struct secure *s)
{
    for (;;) {
        (void)secure_read(s, NULL, 0);
        (void)secure_flush(fd, s);
        if (secure_state(s) != SECURE_GREETING)
            return secure_state(s) == SECURE_OPEN ? 1 : -1;
        if (take(fd, s) < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
}

ssize_t secure_recv(int fd, struct secure *s, void *to, size_t size)
{
    size_t done = 0;
    ssize_t more = 2;
    for (;;) {
        done += secure_read(s, (uint8_t *)to + done, size - done);
        if (secure_state(s) != SECURE_OPEN || secure_wants_room(s))
            (void)secure_flush(fd, s);
        if (done == size || (done > 0 && more != 2)) break;
        if (secure_state(s) == SECURE_BROKEN) break;
        more = take(fd, s);
        if (more <= 0) break;
    }
    if (done > 0) return (ssize_t)done;
    if (secure_state(s) == SECURE_BROKEN) {
        errno = EPROTO;
        return -1;
    }
    return more;
}
