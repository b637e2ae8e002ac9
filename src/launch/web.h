/* web.h - --status-http: the status of the job over HTTP. */
#ifndef PCCL_LAUNCH_WEB_H
#define PCCL_LAUNCH_WEB_H

#include "../master/server/master_http.h"
#include "launch_base.h"

/* Opens the web server, with the token of PCCL_STATUS_TOKEN, or a new one where
 * others than this host reach it. No child gets that variable. `line` tells the
 * user where the status is, or, with NULL, why it is not. */
struct master_http *web_open(const struct address *at, struct ev_loop *loop,
                             char *line, size_t size);

#endif
