/* test_master_http.c - tests of the web server beside a coordinator: what it
 * says, and that no client keeps the coordinator from its work. */
#include "fake_peer.h"

#include "../../../src/base/io_wake.h"
#include "../../../src/master/server/master_http.h"
#include "../../patience.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG (2 * PATIENCE_S * PCCL_S)
#define TOKEN "a-token-of-this-test"

enum { ANSWER_SIZE = 1 << 20, IDLE = 80 };

/* A client in a thread of its own, because it blocks. */
struct client {
    struct bench *bench;
    uint16_t port;
    struct wake wake;
    char request[512];
    char answer[ANSWER_SIZE];
    bool alone; /* nobody turns the loop meanwhile */
    atomic_bool done;
};

static struct client client;

static struct master_http *http_open(struct bench *b, const char *token)
{
    char error[256] = "";
    struct master_http_options o = {.loop = b->loop,
                                    .host = "127.0.0.1",
                                    .token = token,
                                    .idle = 2 * PATIENCE_S};
    struct master_http *h = master_http_open(&o, error, sizeof error);
    if (!h) fail_msg("%s", error);
    master_http_watch(h, b->server);
    client.bench = b;
    client.port = master_http_port(h);
    return h;
}

static int dial(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* Sends the request, and reads until the server closes. */
static void *talk(void *unused)
{
    (void)unused;
    struct client *c = &client;
    int fd = dial(c->port);
    size_t got = 0;
    (void)send(fd, c->request, strlen(c->request), MSG_NOSIGNAL);
    for (ssize_t n = 1; n > 0 && got < ANSWER_SIZE - 1; got += (size_t)n) {
        n = recv(fd, c->answer + got, ANSWER_SIZE - 1 - got, 0);
        if (n < 0) n = 0;
    }
    c->answer[got] = '\0';
    close(fd);
    atomic_store(&c->done, true);
    if (!c->alone) wake_send(&c->wake);
    return NULL;
}

static void on_woken(void *unused)
{
    (void)unused;
}

static int ask_once(const char *line, const char *headers)
{
    pthread_t thread;
    struct client *c = &client;
    int status = -1;
    atomic_store(&c->done, false);
    snprintf(c->request, sizeof c->request,
             "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n",
             line, headers);
    if (!c->alone) {
        assert_true(wake_open(&c->wake));
        wake_start(&c->wake, c->bench->loop, on_woken, NULL);
    }
    assert_int_equal(pthread_create(&thread, NULL, talk, NULL), 0);
    while (!c->alone && !atomic_load(&c->done)) bench_turn(c->bench);
    pthread_join(thread, NULL);
    if (!c->alone) wake_close(&c->wake);
    (void)sscanf(c->answer, "HTTP/1.1 %d", &status);
    return status;
}

/* The status of the answer to a request; its text is in client.answer. A loop
 * that gets no processor for seconds is asked again. */
static int ask_with(const char *line, const char *headers)
{
    int status;
    do {
        status = ask_once(line, headers);
    } while (status == 503 && !client.alone &&
             strstr(client.answer, "does not answer"));
    return status;
}

static int ask(const char *line)
{
    return ask_with(line, "");
}

static void assert_says(const char *text)
{
    if (!strstr(client.answer, text))
        fail_msg("%s: not in %s", text, client.answer);
}

static void test_what_it_says(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[2];
    bench_open(&b, NULL, 2, LONG);
    peers_found(p, 2, &b);
    struct master_http *h = http_open(&b, NULL);
    assert_int_equal(ask("GET /"), 200);
    assert_says("<!DOCTYPE html>");
    assert_says("</html>");
    assert_says("Content-Security-Policy: default-src 'none'");
    assert_int_equal(ask("GET /status.json"), 200);
    assert_says("Content-Type: application/json");
    assert_says("\"member_count\":2,");
    assert_says("\"kind\":\"view\",\"text\":\"first view: epoch 1, 2 ranks\"");
    assert_int_equal(ask("GET /status.json?after=1000"), 200);
    assert_says("\"event_count\":");
    assert_null(strstr(client.answer, "first view"));
    assert_int_equal(ask("GET /status.json?after=minus"), 400);
    assert_int_equal(ask("GET /metrics"), 200);
    assert_says("Content-Type: text/plain; version=0.0.4");
    assert_says("\npccl_peers{state=\"member\"} 2\n");
    assert_says("\npccl_events_total{kind=\"view\"} 1\n");
    assert_says("\npccl_epoch 1\n");
    assert_says("pccl_member_heard_seconds{group=\"0\",rank=\"1\",");
    assert_int_equal(ask("GET /healthz"), 200);
    assert_int_equal(ask("HEAD /metrics"), 200);
    assert_null(strstr(client.answer, "pccl_"));
    assert_int_equal(ask("GET /nothing"), 404);
    assert_int_equal(ask("DELETE /metrics"), 405);
    assert_says("Allow: GET, HEAD");
    assert_int_equal(ask_with("POST /", "Content-Length: 100000000\r\n"), 405);
    assert_int_equal(ask("nonsense"), 400);
    /* A body that nobody asked for ends the connection. */
    (void)ask_with("GET /metrics", "Content-Length: 4\r\n\r\nbody");
    assert_null(strstr(client.answer, "pccl_epoch"));
    master_http_close(h);
    for (int i = 0; i < 2; i++) peer_close(&p[i]);
    bench_close(&b);
}

/* The sum over all members never goes back, whatever they say or become. */
static void test_traffic(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[2];
    bench_open(&b, NULL, 2, LONG);
    peers_found(p, 2, &b);
    struct master_http *h = http_open(&b, NULL);
    static const uint64_t counts[] = {5, 7, 3, 4, UINT64_MAX - 1, 0};
    static const uint64_t sums[] = {5, 7, 7, 8, UINT64_MAX, UINT64_MAX};
    struct wire_msg msg = {.type = WIRE_WAITING, .epoch = p[0].round};
    memcpy(msg.waiting.host, "n\"17\\", 6);
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        char line[128];
        msg.waiting.traffic =
            (struct wire_traffic){counts[i], 2 * counts[i], 3 * counts[i]};
        peer_send(&p[0], &msg);
        snprintf(line, sizeof line, "\npccl_operations_total %" PRIu64 "\n",
                 sums[i]);
        do assert_int_equal(ask("GET /metrics"), 200);
        while (!strstr(client.answer, line));
        assert_says("host=\"n\\\"17\\\\\"} ");
    }
    peer_close(&p[0]);
    assert_int_equal(ask("GET /status.json"), 200);
    assert_says("\"traffic\":{\"at_seconds\":");
    assert_says("\"history\":[[0.000,0,0]");
    assert_int_equal(ask("GET /status.json?after=1"), 200);
    assert_null(strstr(client.answer, "history"));
    master_http_close(h);
    peer_close(&p[1]);
    bench_close(&b);
}

static void test_token(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, NULL, 1, LONG);
    struct master_http *h = http_open(&b, TOKEN);
    static const char *const paths[] = {"GET /status.json", "GET /metrics",
                                        "GET /nothing"};
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        char line[128];
        int status = i == 2 ? 404 : 200;
        assert_int_equal(ask(paths[i]), 401);
        assert_says("WWW-Authenticate: Bearer");
        assert_null(strstr(client.answer, "quorum"));
        /* Logs of proxies keep such lines. */
        snprintf(line, sizeof line, "%s?token=" TOKEN, paths[i]);
        assert_int_equal(ask(line), 401);
        assert_int_equal(
            ask_with(paths[i], "Authorization: Bearer " TOKEN "\r\n"), status);
        assert_int_equal(ask_with(paths[i], "Authorization: Bearer x\r\n"),
                         401);
    }
    assert_int_equal(ask("GET /"), 200);
    assert_int_equal(ask("GET /healthz"), 200);
    master_http_close(h);
    bench_close(&b);
}

static void test_without_a_coordinator(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, NULL, 1, LONG);
    struct master_http *h = http_open(&b, NULL);
    master_http_watch(h, NULL);
    assert_int_equal(ask("GET /status.json"), 503);
    assert_says("no coordinator");
    assert_int_equal(ask("GET /healthz"), 503);
    master_http_close(h);
    /* The loop does not turn: the server gives it up after a while. */
    h = http_open(&b, NULL);
    client.alone = true;
    assert_int_equal(ask("GET /healthz"), 503);
    assert_says("does not answer");
    assert_int_equal(ask("GET /"), 200);
    client.alone = false;
    master_http_close(h);
    /* ... and not for ever. */
    h = http_open(&b, NULL);
    assert_int_equal(ask("GET /healthz"), 200);
    master_http_close(h);
    bench_close(&b);
}

/* More clients than it takes: some say nothing, some half a request, some ask
 * and do not read. The server answers others beside them, and the coordinator
 * founds a view. */
static void test_bad_clients(void **state)
{
    (void)state;
    static const char *const says[] = {
        "", "GET /status.json HTTP/1.1\r\nHost:",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"};
    struct bench b;
    struct peer p[2];
    int clients[IDLE];
    bench_open(&b, NULL, 2, LONG);
    struct master_http *h = http_open(&b, NULL);
    for (int i = 0; i < IDLE; i++) {
        const char *text = says[i % 3];
        clients[i] = dial(client.port);
        (void)send(clients[i], text, strlen(text), MSG_NOSIGNAL);
    }
    assert_int_equal(ask("GET /"), 200);
    assert_int_equal(ask("GET /healthz"), 200);
    peers_found(p, 2, &b);
    assert_int_equal(ask("GET /metrics"), 200);
    for (int i = 0; i < IDLE; i++) close(clients[i]);
    int stays = dial(client.port); /* when the server is closed */
    master_http_close(h);
    close(stays);
    for (int i = 0; i < 2; i++) peer_close(&p[i]);
    bench_close(&b);
}

static void test_opening(void **state)
{
    (void)state;
    struct bench b;
    char error[256] = "";
    bench_open(&b, NULL, 1, LONG);
    int before = open_descriptors();
    struct master_http *h = http_open(&b, NULL);
    struct master_http_options o = {
        .loop = b.loop, .host = "127.0.0.1", .port = master_http_port(h)};
    assert_null(master_http_open(&o, error, sizeof error));
    assert_non_null(strstr(error, strerror(EADDRINUSE)));
    o.host = "192.0.2.1"; /* nobody's */
    assert_null(master_http_open(&o, error, sizeof error));
    assert_non_null(strstr(error, strerror(EADDRNOTAVAIL)));
    master_http_close(h);
    assert_int_equal(open_descriptors(), before);
    bench_close(&b);
    assert_false(master_http_is_public("127.0.0.1"));
    assert_false(master_http_is_public("127.1.2.3"));
    assert_false(master_http_is_public("::1"));
    assert_true(master_http_is_public(NULL));
    assert_true(master_http_is_public("10.0.0.1"));
    assert_true(master_http_is_public("::"));
    char one[MASTER_HTTP_TOKEN_SIZE], two[MASTER_HTTP_TOKEN_SIZE];
    assert_true(master_http_new_token(one) && master_http_new_token(two));
    assert_int_equal(strlen(one), MASTER_HTTP_TOKEN_SIZE - 1);
    assert_string_not_equal(one, two);
    assert_null(master_http_token_fault(one));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_says),
        cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_without_a_coordinator),
        cmocka_unit_test(test_bad_clients),
        cmocka_unit_test(test_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
