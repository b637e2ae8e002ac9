/* http_gate.c - see http_gate.h. */
#include "http_gate.h"

#include <string.h>
#include <strings.h>

static enum http_route route_of(const char *path)
{
    static const char *const paths[HTTP_ROUTES] = {"/", "/status.json",
                                                   "/metrics", "/healthz"};
    int i = 0;
    while (i < HTTP_ROUTES && strcmp(path, paths[i]) != 0) i++;
    return (enum http_route)i;
}

/* Takes as long for every wrong token of the same length, so that its first
 * letters cannot be found out by trying. */
static bool is_token(const char *given, const char *token)
{
    size_t size = strlen(token);
    size_t got = strlen(given);
    volatile unsigned char differ = got != size;
    for (size_t i = 0; i < size; i++) {
        char c = i < got ? given[i] : '\0';
        differ = (unsigned char)(differ | (c ^ token[i]));
    }
    return differ == 0;
}

static bool may_read(const struct http_request *r, const char *token)
{
    static const char scheme[] = "Bearer ";
    const char *bearer = r->authorization;
    return bearer && strncasecmp(bearer, scheme, sizeof scheme - 1) == 0 &&
           is_token(bearer + sizeof scheme - 1, token);
}

/* localhost, or an address: no name that a stranger's DNS answers for. */
static bool is_own_name(const char *host)
{
    static const char local[] = "localhost";
    size_t size = strcspn(host, ":");
    if (host[0] == '[') return true;
    if (size == sizeof local - 1 && strncasecmp(host, local, size) == 0)
        return true;
    return size > 0 && strspn(host, "0123456789.") == size;
}

int http_gate(const struct http_request *r, const char *token,
              enum http_route *route)
{
    *route = route_of(r->path);
    if (token && *route != HTTP_HEALTH && *route != HTTP_PAGE &&
        !may_read(r, token))
        return 401;
    if (!token && *route != HTTP_HEALTH &&
        (!r->own || (r->host && !is_own_name(r->host))))
        return 403;
    if (*route == HTTP_ROUTES) return 404;
    if (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0)
        return 405;
    return 200;
}

const char *http_token_fault(const char *token)
{
    size_t size = strlen(token);
    if (size < HTTP_TOKEN_MIN) return "it has fewer than 16 characters";
    if (size > HTTP_TOKEN_MAX) return "it has more than 256 characters";
    for (size_t i = 0; i < size; i++)
        if (token[i] <= ' ' || token[i] > '~' || strchr("&#%+\"", token[i]))
            return "it has blanks, or characters that a URL changes";
    return NULL;
}

bool http_after(const char *text, uint64_t *after)
{
    *after = 0;
    if (!text) return true;
    if (*text == '\0' || strlen(text) > 18) return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
        *after = 10 * *after + (uint64_t)(*text - '0');
    }
    return true;
}

size_t http_events_after(const char *json, size_t size, size_t events,
                         uint64_t last, uint64_t after)
{
    uint64_t kept = 0;
    for (size_t i = events; i < size; i++)
        kept += json[i] == '\n' && i + 1 < size && json[i + 1] == '{';
    uint64_t first = last - kept; /* the number before the oldest */
    uint64_t skip = after > first ? after - first : 0;
    if (skip > kept) skip = kept;
    size_t at = events;
    for (; skip > 0; skip--) {
        const char *next = memchr(json + at + 1, '\n', size - at - 1);
        if (!next) break;
        at = (size_t)(next - json);
    }
    return at;
}
