/* master_client.c - asks a coordinator for the status of its run (rule W6). */
#include "master_server.h"

#include "../../base/clock.h"
#include "../../base/io_addr.h"
#include "../../base/run_key.h"
#include "../../base/same_user.h"
#include "../../base/secure_socket.h"
#include "../../base/wire.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct client {
    int fd;
    struct secure_keys keys;
    struct secure *secure; /* NULL: in clear */
    pccl_ns until;
    uint8_t *in; /* one frame */
    size_t size;
    struct wire_store *store;
    char *error;
    size_t error_size;
};

/* Waits for the socket. False: not in time. */
static bool ready(const struct client *c, short events)
{
    for (;;) {
        struct pollfd p = {.fd = c->fd, .events = events};
        pccl_ns left = c->until - clock_ns(CLOCK_MONOTONIC);
        int rc = poll(&p, 1, left > 0 ? (int)(left / PCCL_MS) + 1 : 0);
        if (rc > 0) return true;
        if (rc == 0) break;
        if (errno != EINTR) break;
    }
    snprintf(c->error, c->error_size, "no answer in time");
    return false;
}

static bool connect_one(struct client *c, const struct addrinfo *to)
{
    int error = 0;
    socklen_t size = sizeof error;
    c->fd =
        socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || (connect(c->fd, to->ai_addr, to->ai_addrlen) != 0 &&
                      errno != EINPROGRESS))
        error = errno;
    if (error == 0 && !ready(c, POLLOUT)) return false;
    if (error == 0 && getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size))
        error = errno;
    if (error == 0) return true;
    snprintf(c->error, c->error_size, "%s", strerror(error));
    return false;
}

static bool connect_to(struct client *c, const char *host, uint16_t port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    int code = getaddrinfo(host, service, &hints, &list);
    if (code != 0) {
        snprintf(c->error, c->error_size, "%s", gai_strerror(code));
        return false;
    }
    bool done = false;
    for (const struct addrinfo *a = list; a && !done; a = a->ai_next) {
        done = connect_one(c, a);
        if (done || c->fd < 0) continue;
        close(c->fd);
        c->fd = -1;
    }
    freeaddrinfo(list);
    return done;
}

static bool prove(struct client *c, const struct run_key *key)
{
    char why[256];
    if (!key) {
        same_user_read_environment();
        if (same_user_admits(c->fd, true, why, sizeof why)) return true;
        snprintf(c->error, c->error_size, "%s", why);
        return false;
    }
    run_key_psk(key, &c->keys.own);
    c->secure = secure_open(&c->keys, SECURE_DIALER);
    if (!c->secure) return false;
    for (int rc = 0; (rc = secure_greet(c->fd, c->secure)) != 1;) {
        if (rc == 0 && ready(c, POLLIN)) continue;
        if (rc < 0)
            snprintf(c->error, c->error_size, "%s",
                     secure_fault_text(secure_fault(c->secure)));
        return false;
    }
    return true;
}

static bool ask(struct client *c, bool json)
{
    struct wire_msg msg = {.type = WIRE_STATUS_GET};
    msg.status.json = json;
    size_t size = wire_encode(&msg, c->in);
    /* It is smaller than any socket's buffer. */
    struct iovec part = {c->in, size};
    ssize_t sent = c->secure ? secure_send(c->fd, c->secure, &part, 1)
                             : send(c->fd, c->in, size, MSG_NOSIGNAL);
    if (sent == (ssize_t)size) return true;
    snprintf(c->error, c->error_size, "%s", strerror(errno));
    return false;
}

/* The parts that are there. False: the end, or an error. */
static bool take(struct client *c, FILE *out, bool *last)
{
    struct wire_msg msg;
    size_t used = 0;
    for (;;) {
        enum wire_status s = wire_decode(c->in, c->size, c->store, &msg, &used);
        if (s == WIRE_MORE) return true;
        if (s == WIRE_OK && msg.type == WIRE_EVICT)
            snprintf(c->error, c->error_size, "%s",
                     msg.abort.text[0] != '\0' ? msg.abort.text
                                               : "the coordinator refused");
        else if (s == WIRE_BAD || msg.type != WIRE_STATUS)
            snprintf(c->error, c->error_size,
                     "that is no coordinator of this version");
        if (s == WIRE_BAD || msg.type != WIRE_STATUS) return false;
        fwrite(msg.status.bytes, 1, msg.status.size, out);
        *last = msg.status.last;
        if (*last) return false;
        memmove(c->in, c->in + used, c->size - used);
        c->size -= used;
    }
}

static bool receive(struct client *c, FILE *out)
{
    bool last = false;
    while (take(c, out, &last)) {
        bool there = c->secure && secure_has_input(c->secure);
        if (!there && !ready(c, POLLIN)) return false;
        uint8_t *to = c->in + c->size;
        size_t room = WIRE_FRAME_MAX - c->size;
        ssize_t n = c->secure ? secure_recv(c->fd, c->secure, to, room)
                              : recv(c->fd, to, room, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0) {
            snprintf(c->error, c->error_size,
                     "the coordinator closed the connection");
            return false;
        }
        c->size += (size_t)n;
    }
    return last;
}

bool master_status_print(const char *host, uint16_t port,
                         const struct run_key *key, bool json, FILE *out,
                         char *error, size_t error_size)
{
    struct client c = {.fd = -1,
                       .until = clock_ns(CLOCK_MONOTONIC) + 10 * PCCL_S,
                       .in = malloc(WIRE_FRAME_MAX),
                       .store = calloc(1, sizeof *c.store),
                       .error = error,
                       .error_size = error_size};
    snprintf(error, error_size, "out of memory");
    bool done = c.in && c.store && connect_to(&c, host, port) &&
                prove(&c, key) && ask(&c, json) && receive(&c, out);
    if (c.fd >= 0) close(c.fd);
    secure_close(c.secure);
    free(c.in);
    free(c.store);
    return done;
}
