/* option_coordinator.c - options for the coordinator: where it is, and who may
 * look at it. */
#include "option_table.h"

#include <stdio.h>

bool option_listen(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->options->has_listen = true;
    if (address_parse(value, MASTER_PORT, &p->options->listen)) return true;
    return option_fail(p->options,
                       "%s: '%s' is no address; write ADDRESS:PORT, "
                       "[IPV6]:PORT, ADDRESS or PORT",
                       p->name, value);
}

static bool coordinator_set(struct parser *p, const char *value)
{
    if (address_parse(value, MASTER_PORT, &p->options->master) &&
        *p->options->master.host != '\0' && p->options->master.port != 0) {
        return true;
    }
    return option_fail(p->options, "%s: '%s' is no address; write HOST:PORT",
                       p->name, value);
}

bool option_join(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->options->join = true;
    return coordinator_set(p, value);
}

bool option_status(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->options->asks_status = true;
    return coordinator_set(p, value);
}

/* Nobody but this host reaches it unless the text names an address. */
bool option_http(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    struct address *http = &p->options->http;
    p->options->serves_http = true;
    if (!address_parse(value, HTTP_PORT, http))
        return option_fail(p->options,
                           "%s: '%s' is no address; write PORT, ADDRESS:PORT "
                           "or *:PORT",
                           p->name, value);
    if (*http->host == '\0' && *value != '*')
        snprintf(http->host, sizeof http->host, "127.0.0.1");
    return true;
}

bool option_json(struct parser *p, const char *value, const char *unused)
{
    (void)value;
    (void)unused;
    p->options->json = true;
    return true;
}
