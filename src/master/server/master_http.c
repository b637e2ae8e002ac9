/* master_http.c - the thread of the web server, and its mailbox. See
 * master_http.h. */
#include "master_http.h"

#include "../../base/clock.h"
#include "../../base/fork_guard.h"
#include "../../base/io_addr.h"
#include "../../base/io_wake.h"
#include "../../base/same_user.h"
#include "http_gate.h"
#include "master_listen.h"
#include "master_server.h"
#include "status_page.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
    CLIENTS_MAX = 32,          /* connections */
    CLIENT_MEMORY = 16 * 1024, /* bytes, for its request */
    CLIENT_IDLE = 15,          /* s until it is closed */
    LOOP_SHARE = 20,           /* of the loop's time for others */
};
#define FRESH_TIME (250 * PCCL_MS) /* a status is not written again */
#define ANSWER_TIME (2 * PCCL_S)   /* the loop has that long */
#define DEAF_TIME PCCL_S           /* then it is not asked again */

/* A connection. One more than CLIENTS_MAX ends the one that has asked nothing
 * for the longest time, so that no number of idle ones keeps a probe out. */
struct http_client {
    struct http_client *next; /* has asked later, or came later */
    int fd;                   /* the daemon's; -1: it ends */
};

/* What the loop wrote. */
struct http_text {
    struct status_writing w; /* text is NULL: there is no coordinator */
    pccl_ns at;
};

/* One route with a text of the loop's. */
struct http_desk {
    _Atomic(struct http_text *) fresh; /* from the loop to the thread */
    /* Of the thread alone: */
    struct http_text *last;
    struct MHD_Response *response; /* of all of it; owns its text */
};

struct master_http {
    /* Of the loop: */
    struct wake wake;
    struct master_server *server;
    struct MHD_Daemon *daemon;
    uint16_t port;
    /* Of both: */
    atomic_uint wanted; /* bits of enum http_route */
    sem_t posted;       /* after each `fresh` */
    /* Of the thread: */
    char token[HTTP_TOKEN_MAX + 1]; /* empty: none */
    struct http_desk desks[HTTP_ROUTES];
    pccl_ns deaf_until;
    struct http_client *clients; /* the longest idle one first */
};

/* ------------------------------------------------------------ in the loop */

static bool write_text(const struct master_http *h, enum http_route route,
                       struct http_text *t)
{
    if (!h->server) return true;
    if (route == HTTP_HEALTH) {
        t->w.text = strdup("ok\n");
        t->w.size = 3;
    } else {
        master_server_write(
            h->server, route == HTTP_METRICS ? STATUS_METRICS : STATUS_JSON,
            &t->w);
    }
    return t->w.text != NULL;
}

static void text_drop(struct http_text *t)
{
    if (t) free(t->w.text);
    free(t);
}

/* Without memory nothing is posted, and the clients are told that the
 * coordinator does not answer. */
static void on_wake(void *http)
{
    struct master_http *h = http;
    unsigned wanted = atomic_exchange(&h->wanted, 0);
    for (int route = 0; route < HTTP_ROUTES; route++) {
        if (!(wanted >> route & 1)) continue;
        struct http_text *t = calloc(1, sizeof *t);
        if (!t) continue;
        t->at = clock_ns(CLOCK_MONOTONIC);
        if (!write_text(h, (enum http_route)route, t)) {
            text_drop(t);
            continue;
        }
        text_drop(atomic_exchange(&h->desks[route].fresh, t));
        (void)sem_post(&h->posted);
    }
}

void master_http_watch(struct master_http *http, struct master_server *server)
{
    http->server = server;
}

/* ---------------------------------------------------------- in the thread */

/* Takes what the loop has written. */
static void desk_take(struct http_desk *d)
{
    struct http_text *t = atomic_exchange(&d->fresh, NULL);
    if (!t) return;
    if (d->response) MHD_destroy_response(d->response);
    d->response = NULL;
    free(d->last);
    d->last = t;
    if (!t->w.text) return;
    d->response = MHD_create_response_from_buffer(t->w.size, t->w.text,
                                                  MHD_RESPMEM_MUST_FREE);
    if (d->response) return;
    text_drop(t);
    d->last = NULL;
}

static bool is_fresh(const struct http_desk *d, pccl_ns now)
{
    if (!d->last) return false;
    pccl_ns time = LOOP_SHARE * d->last->w.took;
    return now - d->last->at < (time > FRESH_TIME ? time : FRESH_TIME);
}

/* False: the loop does not answer. All clients wait meanwhile, for nearly all
 * of them want the same of the loop. */
static bool desk_renew(struct master_http *h, enum http_route route)
{
    struct http_desk *d = &h->desks[route];
    pccl_ns now = clock_ns(CLOCK_MONOTONIC);
    desk_take(d);
    if (is_fresh(d, now)) return true;
    if (now < h->deaf_until) return false;
    const struct http_text *old = d->last;
    pccl_ns until = now + ANSWER_TIME;
    struct timespec t = {until / PCCL_S, until % PCCL_S};
    while (sem_trywait(&h->posted) == 0) continue; /* of former questions */
    atomic_fetch_or(&h->wanted, 1u << route);
    wake_send(&h->wake);
    do {
        int bad = sem_clockwait(&h->posted, CLOCK_MONOTONIC, &t);
        if (bad && errno == EINTR) continue;
        desk_take(d);
        if (bad) break;
    } while (d->last == old);
    if (d->last != old) return true;
    h->deaf_until = clock_ns(CLOCK_MONOTONIC) + DEAF_TIME;
    return false;
}

static void add_headers(struct MHD_Response *r, const char *type)
{
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Content-Security-Policy",
         "default-src 'none'; connect-src 'self'; img-src data:; style-src "
         "'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
         "form-action 'none'; frame-ancestors 'none'"},
    };
    if (MHD_get_response_header(r, "Content-Type")) return;
    (void)MHD_add_response_header(r, "Content-Type", type);
    for (size_t i = 0; i < ARRAY_COUNT(headers); i++)
        (void)MHD_add_response_header(r, headers[i][0], headers[i][1]);
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status,
                              const char *text)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    add_headers(r, "text/plain; charset=utf-8");
    if (status == 401)
        (void)MHD_add_response_header(r, "WWW-Authenticate",
                                      "Bearer realm=\"pccl-master\"");
    if (status == 405) (void)MHD_add_response_header(r, "Allow", "GET, HEAD");
    if (status == 503) (void)MHD_add_response_header(r, "Retry-After", "2");
    enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

/* The status without what the client has: events, and the history. */
static struct MHD_Response *status_after(const struct http_text *t,
                                         uint64_t after)
{
    static const char end[] = "}\n";
    const struct status_writing *w = &t->w;
    size_t from =
        http_events_after(w->text, w->history, w->events, w->last_event, after);
    size_t size = w->events + w->history - from;
    char *text = malloc(size + sizeof end);
    if (!text) return NULL;
    memcpy(text, w->text, w->events);
    memcpy(text + w->events, w->text + from, w->history - from);
    memcpy(text + size, end, sizeof end);
    struct MHD_Response *r = MHD_create_response_from_buffer(
        size + sizeof end - 1, text, MHD_RESPMEM_MUST_FREE);
    if (!r) free(text);
    return r;
}

static enum MHD_Result tell(struct master_http *h, struct MHD_Connection *c,
                            enum http_route route)
{
    static const char *const types[HTTP_ROUTES] = {
        [HTTP_STATUS] = "application/json",
        [HTTP_METRICS] = "text/plain; version=0.0.4; charset=utf-8",
        [HTTP_HEALTH] = "text/plain; charset=utf-8"};
    struct http_desk *d = &h->desks[route];
    uint64_t after = 0;
    if (!http_after(
            MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "after"),
            &after))
        return refuse(c, 400, "after: the number of an event\n");
    if (!desk_renew(h, route))
        return refuse(c, 503, "the coordinator does not answer\n");
    if (!d->response)
        return refuse(c, 503,
                      "no coordinator: the job starts again, or it "
                      "takes part in another one's\n");
    struct MHD_Response *r = d->response;
    bool part = route == HTTP_STATUS && after > 0;
    if (part) r = status_after(d->last, after);
    if (!r) return MHD_NO;
    add_headers(r, types[route]);
    enum MHD_Result result = MHD_queue_response(c, 200, r);
    if (part) MHD_destroy_response(r);
    return result;
}

static enum MHD_Result tell_page(struct MHD_Connection *c)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(
        status_page_size, (void *)(uintptr_t)status_page,
        MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    add_headers(r, "text/html; charset=utf-8");
    enum MHD_Result result = MHD_queue_response(c, 200, r);
    MHD_destroy_response(r);
    return result;
}

/* Its connection ends with the daemon's next turn. */
static void client_end(struct http_client *c)
{
    (void)shutdown(c->fd, SHUT_RDWR);
    c->fd = -1;
}

/* Takes it out of the list, if it is there. */
static void client_take(struct master_http *h, const struct http_client *c)
{
    struct http_client **at = &h->clients;
    while (*at && *at != c) at = &(*at)->next;
    if (*at) *at = c->next;
}

static void client_is_newest(struct master_http *h, struct http_client *c)
{
    uint32_t count = 1;
    struct http_client **at = &h->clients;
    if (c->fd < 0) return;
    client_take(h, c);
    for (; *at; at = &(*at)->next) count++;
    *at = c;
    c->next = NULL;
    if (count <= CLIENTS_MAX) return;
    client_end(h->clients);
    h->clients = h->clients->next;
}

static int socket_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static void on_connection(void *http, struct MHD_Connection *c, void **client,
                          enum MHD_ConnectionNotificationCode what)
{
    struct master_http *h = http;
    struct http_client *one = *client;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *client = one = calloc(1, sizeof *one);
        int fd = socket_of(c);
        if (one) *one = (struct http_client){.fd = fd};
        if (one)
            client_is_newest(h, one);
        else
            client_end(&(struct http_client){.fd = fd});
    } else if (one) {
        client_take(h, one);
        free(one);
    }
}

/* Where a token is not needed, the user is asked for (rule L9). */
static bool is_own(const struct master_http *h, struct MHD_Connection *c)
{
    char why[256];
    return h->token[0] ||
           same_user_admits(socket_of(c), false, why, sizeof why);
}

static enum MHD_Result on_request(void *http, struct MHD_Connection *c,
                                  const char *path, const char *method,
                                  const char *version, const char *body,
                                  size_t *body_size, void **state)
{
    static const char accepted;
    (void)version, (void)body;
    struct master_http *h = http;
    struct http_request request = {
        .method = method,
        .path = path,
        .host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host"),
        .authorization =
            MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization"),
        .own = is_own(h, c),
    };
    enum http_route route;
    const union MHD_ConnectionInfo *client =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (client && client->socket_context)
        client_is_newest(h, client->socket_context);
    int status = http_gate(&request, h->token[0] ? h->token : NULL, &route);
    if (status == 200 && !*state) {
        /* A second call follows. An answer to the first one would close the
         * connection, as befits those that are refused. */
        *state = (void *)(uintptr_t)&accepted;
        return MHD_YES;
    }
    switch (status) {
    case 200:
        if (*body_size > 0) return MHD_NO; /* nobody sends us anything */
        return route == HTTP_PAGE ? tell_page(c) : tell(h, c, route);
    case 401:
        return refuse(c, 401,
                      "the token is missing or wrong: send Authorization: "
                      "Bearer TOKEN, or open /#token=TOKEN\n");
    case 403:
        return refuse(c, 403,
                      request.own ? "ask under localhost, or by address: "
                                    "the name in Host is not this host's\n"
                                  : "this is for the user who runs the job; "
                                    "others need a token: start it with "
                                    "PCCL_STATUS_TOKEN\n");
    case 405:
        return refuse(c, 405, "GET and HEAD only\n");
    default:
        return refuse(c, 404,
                      "not found; there are /, /status.json, /metrics "
                      "and /healthz\n");
    }
}

/* ------------------------------------------------------- opening, closing */

/* Takes over fd. The loop's thread handles signals. */
static bool daemon_start(struct master_http *h, int fd, unsigned idle)
{
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    h->daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD, 0, NULL, NULL, on_request, h,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        2u * CLIENTS_MAX, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
        MHD_OPTION_CONNECTION_TIMEOUT, idle, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CLIENT_MEMORY, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!h->daemon) fork_guard_close(fd);
    return h->daemon != NULL;
}

struct master_http *master_http_open(const struct master_http_options *o,
                                     char *error, size_t error_size)
{
    struct master_http *h = calloc(1, sizeof *h);
    if (!h || !wake_open(&h->wake)) {
        snprintf(error, error_size, "out of memory or descriptors");
        free(h);
        return NULL;
    }
    if (o->token) snprintf(h->token, sizeof h->token, "%s", o->token);
    int bad = sem_init(&h->posted, 0, 0);
    PCCL_ASSERT(bad == 0);
    (void)bad;
    int fd = master_listen(o->host, o->port, error, error_size);
    if (fd >= 0) {
        struct io_addr local = io_addr_local(fd);
        h->port = io_addr_port(&local);
        wake_start(&h->wake, o->loop, on_wake, h);
        if (daemon_start(h, fd, o->idle > 0 ? o->idle : CLIENT_IDLE)) return h;
        snprintf(error, error_size, "cannot start the web server: %s",
                 strerror(errno));
    }
    wake_close(&h->wake);
    sem_destroy(&h->posted);
    free(h);
    return NULL;
}

uint16_t master_http_port(const struct master_http *http)
{
    return http->port;
}

void master_http_close(struct master_http *http)
{
    int fd = MHD_quiesce_daemon(http->daemon);
    MHD_stop_daemon(http->daemon);
    if (fd >= 0) fork_guard_close(fd);
    for (int i = 0; i < HTTP_ROUTES; i++) {
        struct http_desk *d = &http->desks[i];
        desk_take(d);
        if (d->response) MHD_destroy_response(d->response);
        free(d->last);
    }
    wake_close(&http->wake);
    sem_destroy(&http->posted);
    free(http);
}
