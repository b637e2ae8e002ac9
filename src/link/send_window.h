/* send_window.h - the bytes in flight of one connection with a high RTT.
 *
 * A connection that fills the queues on its path until they overflow delays the
 * segments that others wait for, and loses some of them. After FAST TCP (Wei,
 * Jin, Low & Hegde, IEEE/ACM ToN 14(6), 2006): as long as the round trip shows
 * no queue the window doubles; then it stays where WINDOW_QUEUED bytes wait.
 * send_window_next and send_window_is_lossy are pure. */
#ifndef PCCL_SEND_WINDOW_H
#define PCCL_SEND_WINDOW_H

#include "../base/base.h"

enum {
    WINDOW_QUEUED = 24 * 1024,
    WINDOW_FIRST = 32 * 1024,
    WINDOW_LEAST = 16 * 1024,
    WINDOW_SHARE_LEAST = 4 * 1024, /* of one connection among many */
    WINDOW_MOST = 192 * 1024,      /* the kernel's own limit from here on */
    WINDOW_SAMPLE = 48,            /* packets from which on losses count */
};

struct send_window {
    pccl_ns looked_at;
    uint32_t size;   /* bytes; 0: the kernel decides */
    uint32_t shares; /* connections of the link, which pass the same queues */
    bool may_set;    /* the kernel takes it back (Linux 5.16) */
    bool lossy;      /* has the congestion control for such paths */
};

struct send_path {
    pccl_ns rtt, rtt_least;
    uint32_t in_flight;   /* bytes sent and not acknowledged */
    uint32_t sent, again; /* packets with data; retransmitted ones */
};

/* The next size, one round trip after the last look. */
uint32_t send_window_next(const struct send_window *w,
                          const struct send_path *path);

/* More is lost than overflowing queues explain. A congestion control that takes
 * every loss for an overflow would be very slow. */
bool send_window_is_lossy(const struct send_path *path);

/* The least round trip that the kernel has seen, without time in queues; 0:
 * none. */
pccl_ns send_window_path_rtt(int fd);

/* Of a new connection, the only one of its link so far. */
void send_window_open(struct send_window *w, int fd);

/* Looks at the socket, at most once in a round trip, and sets its window, as
 * one of `shares` connections of its link. Once,
 * if the connection loses much, it changes to BBR, if the kernel has it. */
void send_window_look(struct send_window *w, int fd, uint32_t shares,
                      pccl_ns now);

#endif
