/* master_http.h - the status of a coordinator for a browser, a monitor and
 * programs, over HTTP.
 *
 * A thread of libmicrohttpd's own accepts, parses and writes. It never touches
 * the coordinator. Where its last copy of the status is too old it asks the
 * coordinator's loop for a new one, and waits; the loop writes a text,
 * exchanges a pointer and posts a semaphore, all without waiting. So no client
 * can delay or block the loop, however slow it is or whatever it sends: it
 * costs the loop at most four texts of each kind a second, and at most a
 * twentieth of its time. Nobody asks: nothing happens. */
#ifndef PCCL_MASTER_HTTP_H
#define PCCL_MASTER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ev_loop;
struct master_server;
struct master_http;

struct master_http_options {
    struct ev_loop *loop;
    const char *host; /* numeric; NULL or "": all interfaces */
    uint16_t port;    /* 0: any free one */
    /* What a client must send (http_gate.h), copied; NULL: nothing. */
    const char *token;
    unsigned idle; /* s until a silent client is closed; 0: 15 */
};

/* NULL: `error` says why, for example that this build has no HTTP. */
struct master_http *master_http_open(const struct master_http_options *options,
                                     char *error, size_t error_size);
uint16_t master_http_port(const struct master_http *http);
/* The coordinator that it tells about from now on; NULL: none, as it must be
 * when that one is closed. Belongs into the loop's thread, as all of this. */
void master_http_watch(struct master_http *http, struct master_server *server);
void master_http_close(struct master_http *http);

/* Whether clients from elsewhere reach that numeric host. */
bool master_http_is_public(const char *host);
enum { MASTER_HTTP_TOKEN_SIZE = 33 };
/* A token that nobody guesses, with its 0; false: no random bytes. */
bool master_http_new_token(char token[MASTER_HTTP_TOKEN_SIZE]);
/* NULL: the token will do. */
const char *master_http_token_fault(const char *token);

#endif
