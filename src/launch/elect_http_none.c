/* elect_http_none.c - in place of elect_http.c where the headers of libcurl are
 * missing. */
#include "elect_http.h"

#include <stdio.h>

struct elect_http *elect_http_open(const struct elect_http_options *options,
                                   char why[static HTTP_WHY_SIZE])
{
    (void)options;
    (void)snprintf(why, HTTP_WHY_SIZE,
                   "this pccl-master was built without libcurl (Debian package "
                   "libcurl4-openssl-dev)");
    return NULL;
}

bool elect_http_post(struct elect_http *h, const char *url, const char *token,
                     const char *body, double seconds,
                     struct http_answer *answer, char why[static HTTP_WHY_SIZE])
{
    (void)h, (void)url, (void)token, (void)body, (void)seconds, (void)answer;
    *why = '\0';
    return false;
}

void elect_http_close(struct elect_http *h)
{
    (void)h;
}
