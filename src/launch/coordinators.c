/* coordinators.c - see coordinators.h. */
#include "coordinators.h"

#include "host_room.h"

#include "hosts.h"
#include "key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A listener of all interfaces is meant by any address of this host. */
static bool is_own(const struct address *at, const struct address *listen)
{
    if (at->port != listen->port) return false;
    return address_is_any(listen) ? host_is_local(at->host)
                                  : strcmp(at->host, listen->host) == 0;
}

static bool resolve(const struct options *o,
                    struct master_server_options *setup)
{
    char text[HOST_SIZE + 16];
    setup->master_count = (uint8_t)o->master_count;
    for (size_t i = 0; i < o->master_count; i++) {
        const char *why = "";
        const struct address *at = &o->masters[i];
        if (!master_server_resolve(at->host, at->port, &setup->masters[i],
                                   &why)) {
            complain("--masters: %s: %s", address_print(at, text, sizeof text),
                     why);
            return false;
        }
    }
    return true;
}

/* The coordinator there has members. */
static bool leads(const struct options *o, const struct address *at)
{
    char *text = NULL;
    size_t size = 0;
    char why[MESSAGE_SIZE / 2];
    FILE *out = open_memstream(&text, &size);
    if (!out) return false;
    bool good = master_status_print(at->host, at->port, key_of(o), true, out,
                                    why, sizeof why);
    (void)fclose(out);
    const char *count = good ? strstr(text, "\"member_count\":") : NULL;
    bool has = count && strtoul(strchr(count, ':') + 1, NULL, 10) > 0;
    free(text);
    return has;
}

bool coordinators_settle(const struct options *o, const struct address *listen,
                         struct master_server_options *setup)
{
    char text[HOST_SIZE + 16];
    size_t own = 0;
    if (!o->stands_by) return true;
    if (!resolve(o, setup)) return false;
    while (own < o->master_count && !is_own(&o->masters[own], listen)) own++;
    if (own == o->master_count) {
        complain("--masters does not name the address of this "
                 "coordinator, %s",
                 address_print(listen, text, sizeof text));
        return false;
    }
    setup->standby = own > 0;
    for (size_t i = 0; i < o->master_count && !setup->standby; i++) {
        if (i == own || !leads(o, &o->masters[i])) continue;
        complain("the run is with the coordinator at %s: this one "
                 "stands by",
                 address_print(&o->masters[i], text, sizeof text));
        setup->standby = true;
    }
    return true;
}

uint32_t coordinators_reserve(const struct options *o)
{
    struct placement placement;
    uint32_t reserve = 0;
    if (o->mode != MODE_LAUNCH) return 0;
    uint32_t count = o->rank_count + o->spares;
    placement_make(&placement, &o->hosts, o->per_host, count);
    for (uint32_t i = 0; i < placement.host_count; i++)
        if (!host_is_local(placement.hosts[i])) reserve += AGENT_DESCRIPTORS;
    for (uint32_t i = 0; i < count; i++)
        if (host_is_local(placement.hosts[placement.ranks[i].host]))
            reserve += RANK_DESCRIPTORS + (uint32_t)(i >= o->rank_count);
    placement_free(&placement);
    return reserve;
}
