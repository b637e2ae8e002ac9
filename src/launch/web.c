/* web.c - see web.h. */
#include "web.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKEN_NAME "PCCL_STATUS_TOKEN"

/* The token of the user, for free(), or NULL. */
static char *token_take(void)
{
    const char *set = getenv(TOKEN_NAME);
    char *token = set && *set != '\0' ? memory_text(set) : NULL;
    unsetenv(TOKEN_NAME);
    return token;
}

/* Where a browser finds it: a name of this host for "all interfaces". */
static void url_print(const struct address *at, const char *token, char *line,
                      size_t size)
{
    struct address shown = *at;
    char text[HOST_SIZE + 16];
    if (*shown.host == '\0' &&
        gethostname(shown.host, sizeof shown.host - 1) != 0)
        snprintf(shown.host, sizeof shown.host, "127.0.0.1");
    address_print(&shown, text, sizeof text);
    snprintf(line, size, "status at http://%s/%s%s", text,
             token ? "/#token=" : "", token ? token : "");
}

struct master_http *web_open(const struct address *at, struct ev_loop *loop,
                             char *line, size_t size)
{
    char made[MASTER_HTTP_TOKEN_SIZE] = "";
    char error[MESSAGE_SIZE / 2] = "";
    char text[HOST_SIZE + 16];
    char *set = token_take();
    const char *fault = set ? master_http_token_fault(set) : NULL;
    const char *host = *at->host ? at->host : NULL;
    struct master_http *http = NULL;
    if (fault) {
        snprintf(line, size, TOKEN_NAME ": %s", fault);
    } else if (!set && master_http_is_public(host) &&
               !master_http_new_token(made)) {
        snprintf(line, size, "--status-http: no random bytes for a token");
    } else {
        struct master_http_options options = {
            .loop = loop, .host = host, .port = at->port, .token = set};
        if (*made) options.token = made;
        http = master_http_open(&options, error, sizeof error);
        if (!http)
            snprintf(line, size, "--status-http %s: %s",
                     address_print(at, text, sizeof text), error);
    }
    if (http) {
        struct address open = *at;
        open.port = master_http_port(http);
        url_print(&open, *made ? made : NULL, line, size);
    }
    free(set);
    return http;
}
