/* fuzz_http.c - what strangers ask of the coordinator's web server. The library
 * that parses HTTP is not here: its calls are, so that one thread is both the
 * server's and the coordinator's, and any strings may have been parsed. */
#include "fuzz.h"

#include "../../src/base/append.h"
#include "../../src/base/base.h"
#include "../../src/master/server/http_gate.h"
#include "../../src/master/server/master_http.h"
#include "../../src/master/server/master_server.h"
#include "../../src/master/server/status_page.h"

#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <limits.h>
#include <microhttpd.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORD_SIZE = 300 };

#define TOKEN "0123456789abcdef"

const unsigned char status_page[] = "<!doctype html>\n";
const size_t status_page_size = sizeof status_page - 1;

struct MHD_Daemon {
    MHD_AccessHandlerCallback asked;
    void *user;
    int fd;
    MHD_NotifyConnectionCallback notify;
};

struct MHD_Response {
    size_t size;
    char *bytes;
    bool owns, typed;
    uint32_t refs, headers;
};

struct MHD_Connection {
    char text[4][WORD_SIZE]; /* host, authorization, after; the path */
    bool given[3];
    void *client;    /* the server's */
    unsigned status; /* of the answer, or 0 */
    size_t size;
};

static struct MHD_Daemon daemon_made;
static struct ev_loop *loop;
static int64_t now_ns = PCCL_S;
static uint32_t responses; /* that are not freed */
static bool deaf;          /* the loop does not turn */
static bool own;           /* the client is a process of this user */
static uint32_t interrupts, writings;

/* -------------------------------------------------------------- the library */

struct MHD_Daemon *MHD_start_daemon(unsigned flags, uint16_t port,
                                    MHD_AcceptPolicyCallback accepts,
                                    void *accepts_user,
                                    MHD_AccessHandlerCallback asked, void *user,
                                    ...)
{
    va_list list;
    (void)flags, (void)port, (void)accepts, (void)accepts_user;
    va_start(list, user);
    assert(va_arg(list, int) == MHD_OPTION_LISTEN_SOCKET);
    daemon_made = (struct MHD_Daemon){asked, user, va_arg(list, int), NULL};
    assert(va_arg(list, int) == MHD_OPTION_CONNECTION_LIMIT);
    assert(va_arg(list, unsigned) > 0);
    assert(va_arg(list, int) == MHD_OPTION_NOTIFY_CONNECTION);
    daemon_made.notify = va_arg(list, MHD_NotifyConnectionCallback);
    assert(va_arg(list, void *) == user);
    va_end(list);
    return &daemon_made;
}

MHD_socket MHD_quiesce_daemon(struct MHD_Daemon *d)
{
    return d->fd;
}

void MHD_stop_daemon(struct MHD_Daemon *d)
{
    (void)d;
}

struct MHD_Response *
MHD_create_response_from_buffer(size_t size, void *bytes,
                                enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *r = calloc(1, sizeof *r);
    assert(r && mode != MHD_RESPMEM_MUST_COPY);
    *r = (struct MHD_Response){size,  bytes, mode == MHD_RESPMEM_MUST_FREE,
                               false, 1,     0};
    responses++;
    return r;
}

void MHD_destroy_response(struct MHD_Response *r)
{
    assert(r->refs > 0);
    if (--r->refs > 0) return;
    if (r->owns) free(r->bytes);
    free(r);
    responses--;
}

const char *MHD_get_response_header(struct MHD_Response *r, const char *key)
{
    return r->typed && strcmp(key, "Content-Type") == 0 ? "text" : NULL;
}

enum MHD_Result MHD_add_response_header(struct MHD_Response *r, const char *key,
                                        const char *value)
{
    assert(*value);
    if (strcmp(key, "Content-Type") == 0) {
        assert(!r->typed);
        r->typed = true;
    }
    assert(++r->headers < 8);
    return MHD_YES;
}

/* It is read to its last byte. */
enum MHD_Result MHD_queue_response(struct MHD_Connection *c, unsigned status,
                                   struct MHD_Response *r)
{
    assert(c->status == 0 && r->typed && r->headers >= 4);
    c->status = status;
    c->size = r->size;
    assert(memchr(r->bytes, '\0', r->size) == NULL);
    if (r->size > 0) assert(r->bytes[r->size - 1] == '\n');
    return MHD_YES;
}

const char *MHD_lookup_connection_value(struct MHD_Connection *c,
                                        enum MHD_ValueKind kind,
                                        const char *key)
{
    static const char *const keys[] = {"Host", "Authorization", "after"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(key, keys[i]) != 0) continue;
        assert(kind == (i < 2 ? MHD_HEADER_KIND : MHD_GET_ARGUMENT_KIND));
        return c->given[i] ? c->text[i] : NULL;
    }
    abort();
}

const union MHD_ConnectionInfo *
MHD_get_connection_info(struct MHD_Connection *c,
                        enum MHD_ConnectionInfoType type, ...)
{
    static union MHD_ConnectionInfo info;
    if (type == MHD_CONNECTION_INFO_CONNECTION_FD)
        info.connect_fd = INT_MAX;
    else
        info.socket_context = c->client;
    return &info;
}

/* ----------------------------------------------------------- the coordinator
 */

bool __wrap_same_user_admits(int fd, bool called, char *why, size_t size);
bool __wrap_same_user_admits(int fd, bool called, char *why, size_t size)
{
    assert(fd == INT_MAX && !called && size > 0);
    why[0] = '\0';
    return own;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    *t = (struct timespec){now_ns / PCCL_S, now_ns % PCCL_S};
    return 0;
}

/* The loop turns while the thread of the web server waits for it. */
int __wrap_sem_clockwait(sem_t *sem, clockid_t clock,
                         const struct timespec *until);
int __wrap_sem_clockwait(sem_t *sem, clockid_t clock,
                         const struct timespec *until)
{
    assert(clock == CLOCK_MONOTONIC);
    errno = EINTR;
    if (interrupts > 0 && interrupts--) return -1;
    if (!deaf) ev_run(loop, EVRUN_NOWAIT);
    if (sem_trywait(sem) == 0) return 0;
    now_ns = until->tv_sec * PCCL_S + until->tv_nsec;
    errno = ETIMEDOUT;
    return -1;
}

/* With some events, which lie as the real ones do. */
void master_server_write(struct master_server *server, enum status_form form,
                         struct status_writing *w)
{
    enum { ROOM = 4096 };
    (void)server;
    uint32_t events = writings++ % 20;
    *w = (struct status_writing){.text = calloc(1, ROOM)};
    assert(w->text);
    append(w->text, ROOM, "{\"ranks\":[],\"events\":[\n");
    w->events = strlen(w->text);
    for (uint32_t i = 0; i < events; i++)
        append(w->text, ROOM, "{\"at\":%u}%s\n", i, i + 1 < events ? "," : "");
    append(w->text, ROOM, "]");
    w->history = strlen(w->text);
    append(w->text, ROOM, ",\"history\":[]}\n");
    w->size = strlen(w->text);
    w->last_event = events;
    w->took = form == STATUS_METRICS ? PCCL_S / 4 : 0;
}

/* ---------------------------------------------------------------- the client
 */

static const char *const paths[] = {"/",        "/status.json", "/metrics",
                                    "/healthz", "/status.json", "/status.json/",
                                    "",         "//healthz"};
static const char *const methods[] = {"GET", "GET", "GET",  "HEAD",
                                      "GET", "PUT", "POST", ""};
static const char *const hosts[] = {"localhost", "127.0.0.1:80", "[::1]",
                                    "example.org"};
static const char *const tokens[] = {TOKEN, TOKEN "0", "0123456789abcde", ""};

/* A word of those, or any: the next bytes up to a 0. */
static void word(struct fuzz_input *in, const char *const *words, char *to,
                 const char *prefix)
{
    uint8_t bits = fuzz_u8(in);
    (void)snprintf(to, WORD_SIZE, "%s%s", prefix,
                   bits < 200 ? words[bits % 4] : "");
    if (bits < 200) return;
    size_t used = strlen(to);
    while (used < WORD_SIZE - 1 && (to[used] = (char)fuzz_u8(in)) != '\0')
        used++;
    to[used] = '\0';
}

static void fill_client(struct fuzz_input *in, struct MHD_Connection *c)
{
    static const char *const numbers[] = {"0", "3", "18446744073709551616",
                                          "4x"};
    uint8_t bits = fuzz_u8(in);
    for (int i = 0; i < 3; i++) c->given[i] = bits >> i & 1;
    own = bits & 8;
    if (c->given[0]) word(in, hosts, c->text[0], "");
    if (c->given[1])
        word(in, tokens, c->text[1], bits & 16 ? "Bearer " : "Basic ");
    if (c->given[2]) word(in, numbers, c->text[2], "");
    (void)snprintf(c->text[3], sizeof c->text[3], "%s", paths[bits >> 5]);
    if (fuzz_u8(in) >= 240) word(in, paths, c->text[3], "/");
}

/* Who does not know the token, and another user, learns nothing. */
static void check_secret(const struct MHD_Connection *c, bool secret)
{
    bool knows = c->given[1] && strcmp(c->text[1], "Bearer " TOKEN) == 0;
    if (c->status != 200 || strcmp(c->text[3], "/healthz") == 0) return;
    if (secret)
        assert(knows || strcmp(c->text[3], "/") == 0);
    else
        assert(own);
}

static void ask(struct fuzz_input *in, bool secret)
{
    static struct MHD_Connection c;
    memset(&c, 0, sizeof c);
    void *state = NULL;
    uint8_t bits = fuzz_u8(in);
    deaf = bits & 8;
    interrupts = bits >> 4 & 1;
    now_ns += (int64_t)(bits >> 5) * PCCL_S / 10;
    fill_client(in, &c);
    daemon_made.notify(daemon_made.user, &c, &c.client,
                       MHD_CONNECTION_NOTIFY_STARTED);
    size_t body = 0;
    enum MHD_Result first =
        daemon_made.asked(daemon_made.user, &c, c.text[3], methods[bits % 8],
                          "HTTP/1.1", NULL, &body, &state);
    if (c.status == 0) {
        assert(first == MHD_YES && state);
        body = fuzz_u8(in) == 255 ? 3 : 0;
        enum MHD_Result second = daemon_made.asked(
            daemon_made.user, &c, c.text[3], methods[bits % 8], "HTTP/1.1",
            body ? "any" : NULL, &body, &state);
        assert(body > 0 ? second == MHD_NO : c.status != 0);
    }
    check_secret(&c, secret);
    daemon_made.notify(daemon_made.user, &c, &c.client,
                       MHD_CONNECTION_NOTIFY_CLOSED);
}

static void words_of_operators(struct fuzz_input *in)
{
    char token[MASTER_HTTP_TOKEN_SIZE], text[WORD_SIZE];
    word(in, hosts, text, "");
    (void)master_http_is_public(text);
    word(in, tokens, text, "");
    bool good = !master_http_token_fault(text);
    assert(!good || strlen(text) <= HTTP_TOKEN_MAX);
    assert(master_http_is_public(NULL) && master_http_new_token(token));
    assert(!master_http_token_fault(token));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static char server; /* nobody looks into it */
    char error[128];
    struct fuzz_input in = {bytes, size};
    if (!loop) loop = ev_loop_new(EVFLAG_AUTO);
    uint8_t config = fuzz_u8(&in);
    struct master_http_options o = {.loop = loop,
                                    .host = "127.0.0.1",
                                    .token = config & 1 ? TOKEN : NULL,
                                    .idle = config >> 1};
    writings = config;
    struct master_http *h = master_http_open(&o, error, sizeof error);
    assert(h && master_http_port(h) > 0);
    master_http_watch(h, (void *)&server);
    while (in.left > 0) {
        uint8_t what = fuzz_u8(&in);
        if (what == 255) words_of_operators(&in);
        if (what >= 240)
            master_http_watch(h, what & 1 ? (void *)&server : NULL);
        else
            ask(&in, config & 1);
    }
    master_http_close(h);
    assert(responses == 0);
    return 0;
}
