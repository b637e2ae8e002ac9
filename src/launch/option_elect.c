/* option_elect.c - options for a coordinator that is elected. */
#include "option_table.h"

#include "elect_place.h"

#include <stdlib.h>
#include <string.h>

bool option_elect(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    struct elect_place place;
    char why[ETCD_WHY_SIZE];
    p->options->elect = value;
    if (elect_place_parse(value, &place, why)) return true;
    return option_fail(p->options, "%s: %s", p->name, why);
}

bool option_elect_ttl(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    size_t digits = strspn(value, "0123456789");
    unsigned long ttl = strtoul(value, NULL, 10);
    p->options->elect_ttl = (uint32_t)ttl;
    if (digits > 0 && digits < 6 && value[digits] == '\0' &&
        ttl >= ETCD_TTL_MIN && ttl <= ETCD_TTL_MAX)
        return true;
    return option_fail(p->options, "%s needs seconds from %d to %d, not '%s'",
                       p->name, ETCD_TTL_MIN, ETCD_TTL_MAX, value);
}

bool option_elect_auth(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->options->elect_auth = value;
    if (*value != '\0') return true;
    return option_fail(p->options, "%s needs the name of a file", p->name);
}

/* Of an elector to its child alone. */
bool option_elected(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || digits > 6 || value[digits] != '\0')
        return option_fail(p->options, "%s is for --elect alone", p->name);
    p->options->elected = true;
    p->options->elected_fd = (int)strtol(value, NULL, 10);
    return true;
}

bool option_check_elect(struct options *o, bool alone)
{
    if (!o->elect && (o->elect_ttl || o->elect_auth || o->elected))
        return option_fail(o, "--elect-ttl and --elect-auth belong to --elect");
    if (!o->elect) return true;
    if (!alone || o->join || o->asks_status)
        return option_fail(o, "--elect belongs to a pccl-master that "
                              "coordinates and starts nothing: no program, no "
                              "--join, no --status");
    if (o->listen.port == 0)
        return option_fail(o, "--elect: members have to find the next "
                              "coordinator: --listen with a port");
    return true;
}
