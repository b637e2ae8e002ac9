/* fake_peer.c - a scripted peer for tests of the master. */
#include "fake_peer.h"

#include "../../patience.h"

#include "../../../src/base/io_addr.h"
#include "../../../src/base/secure_socket.h"
#include "../../../src/master/master.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_watchdog(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
    fail_msg("nothing of what the test waits for has happened");
}

static void keep_line(void *user, const char *line)
{
    struct bench *b = user;
    assert_true(b->line_count < LINES_MAX);
    snprintf(b->lines[b->line_count++], LINE_SIZE, "%s", line);
}

static void keep_abort(void *user, int code, int rank)
{
    struct bench *b = user;
    b->aborts++;
    b->abort_code = code;
    b->abort_rank = rank;
    if (!b->close_on_abort) return;
    master_server_close(b->server);
    b->server = NULL;
}

static void keep_process(void *user, uint64_t host, uint32_t pid,
                         enum process_news news)
{
    struct bench *b = user;
    assert_int_equal(host & 1, 0);
    if (news == PROCESS_CUT)
        b->cut_pid = pid;
    else
        b->evicted_pid = news == PROCESS_EVICTED ? pid : 0;
}

static void open_with(struct bench *b, const char *host, const char *journal,
                      struct secure_keys *keys, uint32_t quorum,
                      pccl_ns deadline)
{
    char error[512] = "";
    memset(b, 0, sizeof *b);
    b->keys = keys;
    b->loop = ev_loop_new(EVFLAG_AUTO);
    assert_non_null(b->loop);
    struct master_server_options o = {.loop = b->loop,
                                      .host = host,
                                      .deadline = deadline,
                                      .quorum = quorum,
                                      .journal = journal,
                                      .key = keys ? keys->own.key : NULL,
                                      .user = b,
                                      .report = keep_line,
                                      .aborted = keep_abort,
                                      .process = keep_process};
    b->server = master_server_open(&o, error, sizeof error);
    if (!b->server) fail_msg("%s", error);
    ev_timer_init(&b->watchdog, on_watchdog, PATIENCE_S, 0.);
    ev_timer_start(b->loop, &b->watchdog);
}

void bench_open(struct bench *b, const char *host, uint32_t quorum,
                pccl_ns deadline)
{
    open_with(b, host, NULL, NULL, quorum, deadline);
}

void bench_open_journal(struct bench *b, const char *path, uint32_t quorum,
                        pccl_ns deadline)
{
    open_with(b, NULL, path, NULL, quorum, deadline);
}

void bench_open_key(struct bench *b, struct secure_keys *keys, uint32_t quorum,
                    pccl_ns deadline)
{
    open_with(b, NULL, NULL, keys, quorum, deadline);
}

void bench_close(struct bench *b)
{
    if (b->server) master_server_close(b->server);
    ev_timer_stop(b->loop, &b->watchdog);
    ev_loop_destroy(b->loop);
}

void bench_turn(struct bench *b)
{
    ev_run(b->loop, EVRUN_ONCE);
}

void bench_expect_line(struct bench *b, const char *text)
{
    for (uint32_t seen = 0;; bench_turn(b)) {
        for (; seen < b->line_count; seen++) {
            if (strstr(b->lines[seen], text)) return;
        }
    }
}

static void on_bytes(struct ev_loop *loop, ev_io *io, int events)
{
    (void)events;
    struct peer *p = io->data;
    size_t room = PEER_IN - p->in_size;
    uint8_t *to = p->in + p->in_size;
    assert_true(room > 0);
    ssize_t got = p->secure ? secure_recv(p->fd, p->secure, to, room)
                            : recv(p->fd, to, room, MSG_DONTWAIT);
    if (got > 0) {
        p->in_size += (size_t)got;
        return;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    p->ended = true;
    ev_io_stop(loop, io);
}

void peer_open_at(struct peer *p, struct bench *b, const char *host)
{
    struct io_addr at;
    memset(p, 0, sizeof *p);
    p->bench = b;
    p->in = malloc(PEER_IN);
    p->store = malloc(sizeof *p->store);
    assert_true(p->in && p->store);
    assert_true(
        io_addr_numeric(host, master_server_port(b->server), false, &at));
    p->fd = socket(at.name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(p->fd >= 0);
    assert_int_equal(connect(p->fd, (struct sockaddr *)&at.name, at.size), 0);
    ev_io_init(&p->io, on_bytes, p->fd, EV_READ);
    p->io.data = p;
    ev_io_start(b->loop, &p->io);
    if (!b->keys) return;
    p->secure = secure_open(b->keys, SECURE_DIALER);
    assert_non_null(p->secure);
    assert_true(secure_flush(p->fd, p->secure));
    while (secure_state(p->secure) == SECURE_GREETING && !p->ended)
        bench_turn(b);
}

void peer_open(struct peer *p, struct bench *b)
{
    peer_open_at(p, b, "127.0.0.1");
}

void peer_close(struct peer *p)
{
    ev_io_stop(p->bench->loop, &p->io);
    secure_close(p->secure);
    close(p->fd);
    free(p->in);
    free(p->store);
}

/* Small enough for the socket's buffer. A closed connection is no error. */
void peer_write(struct peer *p, const void *bytes, size_t size)
{
    const struct iovec part = {(void *)(uintptr_t)bytes, size};
    ssize_t sent = p->secure ? secure_send(p->fd, p->secure, &part, 1)
                             : send(p->fd, bytes, size, MSG_NOSIGNAL);
    assert_true(sent == (ssize_t)size || errno == EPIPE || errno == ECONNRESET);
}

void peer_send(struct peer *p, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    peer_write(p, frame, wire_encode(msg, frame));
}

void peer_say(struct peer *p, enum wire_type type)
{
    struct wire_msg msg = {.type = type, .round = p->round};
    peer_send(p, &msg);
}

void peer_hello(struct peer *p, int32_t hint, bool join)
{
    struct wire_msg hello = {.type = WIRE_HELLO};
    hello.hello.join = join;
    hello.hello.self.hint = hint;
    hello.hello.self.pid = 100 + (uint32_t)hint;
    hello.hello.self.addr.port = 9;
    peer_send(p, &hello);
}

const struct wire_msg *peer_expect(struct peer *p, enum wire_type type)
{
    for (;;) {
        size_t used = 0;
        enum wire_status status =
            wire_decode(p->in + p->in_used, p->in_size - p->in_used, p->store,
                        &p->msg, &used);
        assert_int_not_equal(status, WIRE_BAD);
        if (status == WIRE_OK) {
            p->in_used += used;
            if (p->msg.type == WIRE_HEARTBEAT && type != WIRE_HEARTBEAT)
                continue;
            if (p->msg.type == WIRE_SILENT && type != WIRE_SILENT) continue;
            if (p->msg.type != type) {
                fail_msg("%s instead of %s", wire_type_name(p->msg.type),
                         wire_type_name(type));
            }
            if (type == WIRE_WELCOME) p->id = p->msg.welcome.id;
            p->round = p->msg.round;
            return &p->msg;
        }
        if (p->ended) fail_msg("end instead of %s", wire_type_name(type));
        bench_turn(p->bench);
    }
}

void peer_expect_end(struct peer *p)
{
    while (!p->ended) bench_turn(p->bench);
}

void peers_install(struct peer *peers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        peer_expect(&peers[i], WIRE_PROPOSE);
        peer_say(&peers[i], WIRE_READY);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_msg *m = peer_expect(&peers[i], WIRE_INSTALL);
        assert_int_equal(m->view.world, count);
    }
}

void peers_found(struct peer *peers, uint32_t count, struct bench *b)
{
    for (uint32_t i = 0; i < count; i++) {
        peer_open(&peers[i], b);
        peer_hello(&peers[i], (int32_t)i, false);
        peer_expect(&peers[i], WIRE_WELCOME);
    }
    peers_install(peers, count);
}

int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    int count = -1; /* the directory's own descriptor */
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}
