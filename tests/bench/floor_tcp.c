/* floor_tcp.c - all-reduce over loopback TCP with nothing around it: no frames,
 * no failures, one connection per pair, one thread that polls.
 *
 * Two ranks exchange small vectors; more send theirs to rank 0, which sends the
 * sum back (the fewest messages, which is what counts when ranks share
 * processors). Large ones go round a ring, reduce-scatter and all-gather,
 * where each byte goes on as soon as it is reduced. */
#include "floor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

enum {
    SMALL_TWO = 128 * 1024, /* bytes of the largest vector not sent in a ring */
    SMALL_MORE = 16 * 1024,
    PIECE = 256 * 1024, /* bytes moved at a time */
    SPINS = 5000,
};

static int sockets[FLOOR_RANKS_MAX];
static struct sockaddr_in address[FLOOR_RANKS_MAX];
static int listeners[FLOOR_RANKS_MAX];
static float scratch[PIECE / sizeof(float)];

static void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static void idle(const struct floor *f, int *spins, int fd)
{
    if (f->crowded) {
        sched_yield();
    } else if (++*spins > SPINS) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        (void)poll(&p, 1, 1);
    }
}

static void send_all(const struct floor *f, int fd, const void *from,
                     size_t size)
{
    const char *at = from;
    int spins = 0;
    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) fail("send");
        if (n < 0) idle(f, &spins, fd);
        if (n > 0) at += n, size -= (size_t)n;
    }
}

static void receive_all(const struct floor *f, int fd, void *to, size_t size)
{
    char *at = to;
    int spins = 0;
    while (size > 0) {
        ssize_t n = recv(fd, at, size, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) fail("recv");
        if (n < 0) idle(f, &spins, fd);
        if (n > 0) at += n, size -= (size_t)n;
    }
}

static void add(float *to, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) to[i] = a[i] + b[i];
}

static void exchange(struct floor *f, size_t count)
{
    int fd = sockets[1 - f->rank];
    send_all(f, fd, f->in, count * sizeof(float));
    receive_all(f, fd, scratch, count * sizeof(float));
    add(f->out, f->in, scratch, count);
}

static void star(struct floor *f, size_t count)
{
    size_t size = count * sizeof(float);
    if (f->rank > 0) {
        send_all(f, sockets[0], f->in, size);
        receive_all(f, sockets[0], f->out, size);
        return;
    }
    const float *sum = f->in;
    for (int r = 1; r < f->ranks; r++) {
        receive_all(f, sockets[r], scratch, size);
        add(f->out, sum, scratch, count);
        sum = f->out;
    }
    for (int r = 1; r < f->ranks; r++) send_all(f, sockets[r], f->out, size);
}

/* ------------------------------------------------------------------- ring */

/* One direction of the stream round the ring: step by step a chunk. */
struct way {
    int step;
    size_t first, size, done; /* bytes of the step's chunk */
};

static void enter(const struct floor *f, struct way *w, size_t count, int lag)
{
    size_t ranks = (size_t)f->ranks;
    size_t chunk = (size_t)(f->rank + 2 * f->ranks - w->step - lag) % ranks;
    size_t begin = count * chunk / ranks;
    w->first = begin * sizeof(float);
    w->size = count * (chunk + 1) / ranks * sizeof(float) - w->first;
    w->done = 0;
}

/* Bytes of the current step that may be sent: what came one step before. */
static size_t available(const struct way *tx, const struct way *rx)
{
    if (tx->step == 0 || rx->step >= tx->step) return tx->size - tx->done;
    size_t came = rx->step == tx->step - 1 ? rx->done : 0;
    came -= came % sizeof(float);
    return came > tx->done ? came - tx->done : 0;
}

static ssize_t push(struct floor *f, struct way *tx, const struct way *rx)
{
    size_t size = available(tx, rx);
    const char *from = tx->step == 0 ? (char *)f->in : (char *)f->out;
    if (size > PIECE) size = PIECE;
    if (size == 0) return 0;
    ssize_t n =
        send(sockets[(f->rank + 1) % f->ranks], from + tx->first + tx->done,
             size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) fail("send");
    if (n > 0) tx->done += (size_t)n;
    return n > 0 ? n : 0;
}

static ssize_t pull(struct floor *f, struct way *rx, int prev)
{
    size_t left = rx->size - rx->done;
    size_t odd = rx->done % sizeof(float);
    int reduces = rx->step < f->ranks - 1;
    char *to = (char *)f->out + rx->first + rx->done;
    if (reduces) to = (char *)scratch + odd;
    if (left > PIECE - odd) left = PIECE - odd;
    if (left == 0) return 0;
    ssize_t n = recv(prev, to, left, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) fail("recv");
    if (n <= 0) return 0;
    if (reduces) {
        size_t at = (rx->first + rx->done - odd) / sizeof(float);
        size_t whole = ((size_t)n + odd) / sizeof(float);
        add(f->out + at, f->in + at, scratch, whole);
        scratch[0] = scratch[whole < PIECE / sizeof(float) ? whole : 0];
    }
    rx->done += (size_t)n;
    return n;
}

static void ring(struct floor *f, size_t count)
{
    int prev = sockets[(f->rank + f->ranks - 1) % f->ranks];
    int steps = 2 * (f->ranks - 1);
    struct way tx = {0};
    struct way rx = {0};
    int spins = 0;
    enter(f, &tx, count, 0);
    enter(f, &rx, count, 1);
    while (tx.step < steps || rx.step < steps) {
        ssize_t moved = 0;
        if (tx.step < steps) moved += push(f, &tx, &rx);
        if (tx.step < steps && tx.done == tx.size && ++tx.step < steps)
            enter(f, &tx, count, 0);
        if (rx.step < steps) moved += pull(f, &rx, prev);
        if (rx.step < steps && rx.done == rx.size && ++rx.step < steps)
            enter(f, &rx, count, 1);
        if (moved)
            spins = 0;
        else
            idle(f, &spins, prev);
    }
}

static void reduce(struct floor *f, size_t count)
{
    size_t size = count * sizeof(float);
    if (f->ranks == 2 && size <= SMALL_TWO)
        exchange(f, count);
    else if (f->ranks > 2 && size <= SMALL_MORE)
        star(f, count);
    else
        ring(f, count);
}

/* ------------------------------------------------------------------ set-up */

/* Before it connects: a socket that has been BBR's is paced for ever. */
static void unpaced(int fd)
{
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
}

static void connect_all(const struct floor *f)
{
    int on = 1;
    for (int r = 0; r < f->ranks; r++) {
        int fd;
        if (r == f->rank) continue;
        if (r < f->rank) {
            fd = socket(AF_INET, SOCK_STREAM, 0);
            unpaced(fd);
            if (connect(fd, (struct sockaddr *)&address[r],
                        sizeof address[r]) != 0 ||
                write(fd, &f->rank, sizeof f->rank) != sizeof f->rank)
                fail("connect");
            sockets[r] = fd;
        } else {
            int who = -1;
            fd = accept(listeners[f->rank], NULL, NULL);
            if (fd < 0 || read(fd, &who, sizeof who) != sizeof who)
                fail("accept");
            sockets[who] = fd;
        }
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
}

static void be_rank(struct floor *f, int argc, char **argv)
{
    connect_all(f);
    for (int i = 2; i < argc; i++) {
        struct sample_case c;
        if (!sample_parse(argv[i], &c)) _exit(1);
        if (c.at_once > 1 || c.in_place) continue;
        f->in = malloc(c.size + sizeof(float));
        f->out = malloc(c.size + sizeof(float));
        if (!f->in || !f->out) _exit(1);
        floor_measure(f, &c, reduce);
        free(f->in);
        free(f->out);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    struct floor f = {.ranks = floor_ranks(argc, argv)};
    f.crowded = f.ranks > sysconf(_SC_NPROCESSORS_ONLN);
    f.shared = floor_memory(sizeof *f.shared);
    for (int i = 0; i < f.ranks; i++) {
        socklen_t size = sizeof address[i];
        address[i].sin_family = AF_INET;
        address[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        listeners[i] = socket(AF_INET, SOCK_STREAM, 0);
        unpaced(listeners[i]);
        if (bind(listeners[i], (struct sockaddr *)&address[i], size) != 0 ||
            listen(listeners[i], f.ranks) != 0 ||
            getsockname(listeners[i], (struct sockaddr *)&address[i], &size))
            fail("listen");
    }
    for (f.rank = 0; f.rank < f.ranks; f.rank++) {
        if (fork() == 0) be_rank(&f, argc, argv);
    }
    return floor_end(f.ranks);
}
