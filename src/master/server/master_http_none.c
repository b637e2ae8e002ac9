/* master_http_none.c - in place of master_http.c where libmicrohttpd is
 * missing. */
#include "master_http.h"

#include <stdio.h>

struct master_http *master_http_open(const struct master_http_options *options,
                                     char *error, size_t error_size)
{
    (void)options;
    snprintf(error, error_size,
             "this pccl-master was built without libmicrohttpd (Debian package "
             "libmicrohttpd-dev)");
    return NULL;
}

uint16_t master_http_port(const struct master_http *http)
{
    (void)http;
    return 0;
}

void master_http_watch(struct master_http *http, struct master_server *server)
{
    (void)http;
    (void)server;
}

void master_http_close(struct master_http *http)
{
    (void)http;
}
