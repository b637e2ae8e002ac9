/* elect_http.h - one question at a time over HTTP, by libcurl, which is loaded
 * when it is needed first. */
#ifndef PCCL_LAUNCH_ELECT_HTTP_H
#define PCCL_LAUNCH_ELECT_HTTP_H

#include "launch_base.h"

enum {
    HTTP_ANSWER_MAX = 64 * 1024,
    HTTP_WHY_SIZE = 320,
};

struct elect_http;

struct elect_http_options {
    int wake; /* descriptor at whose input `look` is called */
    /* At least every `every` seconds, also while an answer is waited for.
     * False: the question is broken off. */
    bool (*look)(void *user);
    void *user;
    double every;
    /* Files in PEM, or NULL. Without `authorities`: CURL_CA_BUNDLE,
     * SSL_CERT_FILE, SSL_CERT_DIR, else those of the system. */
    const char *authorities, *certificate, *key;
};

/* Borrows the options until the end. NULL: `why` says what is missing. */
struct elect_http *elect_http_open(const struct elect_http_options *options,
                                   char why[static HTTP_WHY_SIZE]);

struct http_answer {
    long status; /* of HTTP */
    size_t size;
    char text[HTTP_ANSWER_MAX]; /* the body */
};

/* Posts `body` to `url`. Blocks until the answer is whole, or for `seconds`.
 * token: of Authorization, or "". False: `why` names what went wrong. */
bool elect_http_post(struct elect_http *h, const char *url, const char *token,
                     const char *body, double seconds,
                     struct http_answer *answer,
                     char why[static HTTP_WHY_SIZE]);

void elect_http_close(struct elect_http *h);

#endif
