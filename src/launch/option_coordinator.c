/* option_coordinator.c - options for the coordinator: where it is, and who may
 * look at it. */
#include "option_table.h"

#include <stdio.h>
#include <string.h>

bool option_listen(struct parser *p, const char *value)
{
    p->options->has_listen = true;
    if (address_parse(value, MASTER_PORT, &p->options->listen)) return true;
    return option_fail(p->options,
                       "%s: '%s' is no address; write ADDRESS:PORT, "
                       "[IPV6]:PORT, ADDRESS or PORT",
                       p->name, value);
}

enum { STATE_NAME_MAX = 4000 };

/* HOST:PORT, or several with commas between them. */
static bool coordinator_set(struct parser *p, const char *value)
{
    struct options *o = p->options;
    o->master_count = 0;
    for (const char *at = value; at;) {
        const char *one = at;
        struct address *to = &o->masters[o->master_count];
        if (o->master_count == MASTERS_MAX)
            return option_fail(o, "%s %s: at most %d coordinators", p->name,
                               value, MASTERS_MAX);
        if (!address_next(&at, MASTER_PORT, to) || *to->host == '\0' ||
            to->port == 0)
            return option_fail(o, "%s: '%.*s' is no address; write HOST:PORT",
                               p->name, (int)strcspn(one, ","), one);
        o->master_count++;
    }
    return true;
}

bool option_join(struct parser *p, const char *value)
{
    p->options->join = true;
    return coordinator_set(p, value);
}

bool option_status(struct parser *p, const char *value)
{
    p->options->asks_status = true;
    return coordinator_set(p, value);
}

/* Nobody but this host reaches it unless the text names an address. */
bool option_http(struct parser *p, const char *value)
{
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

/* Who chooses among coordinators is not this program. */
bool option_elect(struct parser *p, const char *value)
{
    (void)value;
    return option_fail(p->options,
                       "%s is not supported any more: with etcd, run 'etcdctl "
                       "lock NAME -- pccl-master --journal FILE ...' on each "
                       "host that may coordinate",
                       p->name);
}

bool option_state(struct parser *p, const char *value)
{
    p->options->state = value;
    if (*value != '\0' && strlen(value) < STATE_NAME_MAX) return true;
    return option_fail(p->options, "%s needs the name of a file", p->name);
}
