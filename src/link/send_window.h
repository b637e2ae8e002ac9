/* send_window.h - how much one connection over a long way has in flight.
 *
 * A connection that fills the queues on its way until they overflow delays the
 * segments that others wait for, and loses some of them. After FAST TCP (Wei,
 * Jin, Low & Hegde, IEEE/ACM ToN 14(6), 2006): as long as the round trip shows
 * no queue the window doubles, then it is held where WINDOW_QUEUED bytes wait.
 * send_window_next and send_window_is_lossy are pure. */
#ifndef PCCL_IO_WINDOW_H
#define PCCL_IO_WINDOW_H

#include "../base/base.h"

enum {
    WINDOW_QUEUED = 24 * 1024,
    WINDOW_FIRST = 32 * 1024,
    WINDOW_LEAST = 16 * 1024,
    WINDOW_MOST = 192 * 1024, /* the kernel's own limit from here on */
    WINDOW_SAMPLE = 48,       /* packets that say something of losses */
};

struct send_window {
    pccl_ns looked_at;
    uint32_t size; /* bytes; 0: the kernel decides */
    bool may_set;  /* the kernel takes it back (Linux 5.16) */
    bool lossy;    /* has the congestion control for such ways */
};

struct send_path {
    pccl_ns rtt, rtt_least;
    uint32_t in_flight;   /* bytes sent and not acknowledged */
    uint32_t sent, again; /* packets with data, of them for the second time */
};

/* The next size, one round trip after the last look. */
uint32_t send_window_next(const struct send_window *w,
                          const struct send_path *path);

/* More is lost than queues that overflow explain: a congestion control that
 * takes every loss for one would crawl. */
bool send_window_is_lossy(const struct send_path *path);

/* The least round trip that the kernel has seen, without what waited in queues;
 * 0: none. */
pccl_ns send_window_path_rtt(int fd);

/* Of a new connection. */
void send_window_open(struct send_window *w, int fd);

/* Looks at the socket, at most once in a round trip, and sets its window; and
 * once, where it loses much, BBR, if the kernel has it. */
void send_window_look(struct send_window *w, int fd, pccl_ns now);

#endif
