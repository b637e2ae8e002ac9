/* http_gate.h - who gets what from the coordinator's web server; pure. */
#ifndef PCCL_MASTER_HTTP_GATE_H
#define PCCL_MASTER_HTTP_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_TOKEN_MIN = 16, /* characters; shorter ones can be guessed */
    HTTP_TOKEN_MAX = 256,
};

enum http_route {
    HTTP_PAGE,    /* / */
    HTTP_STATUS,  /* /status.json */
    HTTP_METRICS, /* /metrics */
    HTTP_HEALTH,  /* /healthz */
    HTTP_ROUTES,  /* none of them */
};

/* What a client sent; NULL where it did not. Bytes of a stranger. */
struct http_request {
    const char *method, *path;
    const char *host;          /* header Host */
    const char *authorization; /* header Authorization */
    bool own; /* it is a process of this user or of root (rule L9) */
};

/* The status of the answer: 200; 401: the token is missing or wrong; 403:
 * another user asks, or a page of another site; 404; 405. With 200 and 405,
 * *route is the path's.
 *
 * `token` is what a client must know; NULL: nothing, but then it is of the user
 * who runs this, and names of this host alone are taken for it, so that no site
 * can lead the browser of that user to this server under the name of the site.
 * HTTP_HEALTH is everybody's; so is, where there is a token, HTTP_PAGE, which
 * tells nothing by itself: the browser keeps what stands behind the # of its
 * address, and the page sends that as the token. */
int http_gate(const struct http_request *request, const char *token,
              enum http_route *route);

/* NULL: it will do. Otherwise what is wrong with it. */
const char *http_token_fault(const char *token);

/* ?after=N; NULL is 0. False: that is no number. */
bool http_after(const char *text, uint64_t *after);

/* A status as JSON (run_status.h) whose events begin at `events` and whose
 * newest has the number `last`; each stands on a line of its own. Returns the
 * offset of what follows behind the events up to the number `after`: the text
 * without them is json[0, events) and json[offset, size). */
size_t http_events_after(const char *json, size_t size, size_t events,
                         uint64_t last, uint64_t after);

#endif
