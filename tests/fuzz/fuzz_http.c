/* fuzz_http.c - any bytes as requests to the status over HTTP: of a browser, a
 * monitor, or a stranger. The socket, the thread that answers and the
 * coordinator are real. An answer is one of HTTP, and nobody without the token
 * is told a word of the run. */
#include "fuzz.h"

#include "../../src/master/http_gate.h"
#include "../../src/master/master_http.h"
#include "../../src/master/master_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ev.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 1 << 20, IDLE = 1 /* s: a silent client is closed */ };

/* Nobody guesses it, and neither does the fuzzer: it puts it where '@' is. */
static const char token[] = "0123456789abcdef0123456789abcdef";

static struct ev_loop *loop;
static struct master_http *http[2]; /* the second one asks for the token */
static struct master_server *server;
static char told[ROOM + 1], request[ROOM];

static void prepare(void)
{
    char error[512] = "";
    loop = ev_loop_new(EVFLAG_AUTO);
    assert(loop);
    struct master_server_options o = {
        .loop = loop, .host = "127.0.0.1", .deadline = PCCL_S, .quorum = 2};
    server = master_server_open(&o, error, sizeof error);
    assert(server);
    for (int i = 0; i < 2; i++) {
        struct master_http_options h = {.loop = loop,
                                        .host = "127.0.0.1",
                                        .token = i > 0 ? token : NULL,
                                        .idle = IDLE};
        http[i] = master_http_open(&h, error, sizeof error);
        assert(http[i]);
        master_http_watch(http[i], server);
    }
}

/* The request, with the token in the place of each '@'. */
static size_t fill(const uint8_t *bytes, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < size && used + sizeof token < ROOM; i++) {
        if (bytes[i] != '@') {
            request[used++] = (char)bytes[i];
            continue;
        }
        memcpy(request + used, token, sizeof token - 1);
        used += sizeof token - 1;
    }
    return used;
}

/* All that it answers until it closes. */
static size_t ask(struct master_http *h, const char *text, size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(master_http_port(h))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) abort();
    (void)send(fd, text, size, MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    size_t got = 0;
    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};
        ev_run(loop, EVRUN_NOWAIT);
        if (poll(&p, 1, 1) <= 0) continue;
        ssize_t n = recv(fd, told + got, ROOM - got, 0);
        if (n <= 0) break;
        got += (size_t)n;
    }
    close(fd);
    told[got] = '\0';
    return got;
}

/* What an operator has given as the token, or as the address. */
static void check_words(const uint8_t *bytes, size_t size)
{
    char text[64], made[MASTER_HTTP_TOKEN_SIZE];
    snprintf(text, sizeof text, "%.*s", (int)size, (const char *)bytes);
    const char *fault = master_http_token_fault(text);
    assert(!fault || fault[0] != '\0');
    if (strncmp(text, "127.", 4) == 0) assert(!master_http_is_public(text));
    assert(master_http_new_token(made) && !master_http_token_fault(made));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0) return 0;
    if (!loop) prepare();
    bool closed = bytes[0] & 1, alone = bytes[0] & 2;
    size_t used = fill(bytes + 1, size - 1);
    bool has_token = memmem(request, used, token, sizeof token - 1) != NULL;
    for (int i = 0; i < 2; i++)
        master_http_watch(http[i], alone ? NULL : server);
    size_t got = ask(http[closed], request, used);
    if (got > 0) assert(strncmp(told, "HTTP/1.", 7) == 0);
    if (closed && !has_token)
        assert(!strstr(told, "\"epoch\"") && !strstr(told, "pccl_"));
    check_words(bytes, size);
    return 0;
}
