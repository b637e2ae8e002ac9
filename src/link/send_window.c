/* send_window.c - see send_window.h. */
#include "send_window.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif

static uint32_t share(const struct send_window *w, uint32_t size)
{
    uint32_t one = w->shares > 1 ? size / w->shares : size;
    return one < WINDOW_SHARE_LEAST ? WINDOW_SHARE_LEAST : one;
}

uint32_t send_window_next(const struct send_window *w,
                          const struct send_path *path)
{
    if (path->rtt <= 0 || path->rtt_least <= 0) return w->size;
    pccl_ns queue = path->rtt - path->rtt_least;
    bool empty = queue < path->rtt_least / 8 + PCCL_MS;
    if (w->size == 0 && empty) return 0;
    uint64_t from = w->size > 0 ? w->size : path->in_flight;
    uint64_t least = (uint64_t)path->rtt_least;
    uint64_t wanted =
        from * least / (uint64_t)path->rtt + share(w, WINDOW_QUEUED);
    uint64_t next = empty ? 2 * from : (from + wanted) / 2;
    if (next >= WINDOW_MOST) return 0;
    uint32_t lowest = share(w, WINDOW_LEAST);
    return next < lowest ? lowest : (uint32_t)next;
}

bool send_window_is_lossy(const struct send_path *path)
{
    return path->sent >= WINDOW_SAMPLE && path->again > path->sent / 32 &&
           path->rtt < path->rtt_least + path->rtt_least / 2;
}

/* Sets the size of the kernel's buffer for data that are not acknowledged. */
static void set_size(int fd, uint32_t size)
{
    /* The kernel doubles it for its own overhead, and reports room when a third
     * of it is free. */
    int half = (int)(size * 5 / 8);
    int lock = 0;
    if (size > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &half, sizeof half);
    else /* grows again by itself */
        (void)setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &lock, sizeof lock);
}

void send_window_open(struct send_window *w, int fd)
{
    int lock = 0;
    *w = (struct send_window){.shares = 1};
    w->may_set =
        setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &lock, sizeof lock) == 0;
    if (!w->may_set) return;
    w->size = WINDOW_FIRST;
    set_size(fd, w->size);
}

pccl_ns send_window_path_rtt(int fd)
{
    struct tcp_info info = {.tcpi_rtt = 0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    bool known = info.tcpi_min_rtt > 0 && info.tcpi_min_rtt != UINT32_MAX;
    return (pccl_ns)(known ? info.tcpi_min_rtt : info.tcpi_rtt) * 1000;
}

/* What one had is for all of them. */
static void set_shares(struct send_window *w, int fd, uint32_t shares)
{
    bool more = shares > w->shares;
    w->shares = shares;
    if (!more || w->size <= share(w, WINDOW_FIRST)) return;
    w->size = share(w, WINDOW_FIRST);
    set_size(fd, w->size);
}

void send_window_look(struct send_window *w, int fd, uint32_t shares,
                      pccl_ns now)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (shares != w->shares) set_shares(w, fd, shares);
    if (now < w->looked_at) return;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
    struct send_path path = {.rtt = (pccl_ns)info.tcpi_rtt * 1000,
                             .rtt_least = (pccl_ns)info.tcpi_min_rtt * 1000,
                             .in_flight = info.tcpi_unacked * info.tcpi_snd_mss,
                             .sent = info.tcpi_data_segs_out,
                             .again = info.tcpi_total_retrans};
    if (!w->lossy && send_window_is_lossy(&path)) {
        w->lossy = true;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "bbr", 3);
    }
    uint32_t next = w->may_set ? send_window_next(w, &path) : 0;
    if (next != w->size) set_size(fd, next);
    w->size = next;
    w->looked_at = now + path.rtt;
}
