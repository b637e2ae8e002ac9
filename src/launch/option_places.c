/* option_places.c - options for placement and for reaching other hosts. */
#include "option_table.h"

#include "../base/decimal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool option_hosts(struct parser *p, const char *value)
{
    char detail[MESSAGE_SIZE / 2];
    if (hosts_parse(&p->options->hosts, value, detail, sizeof detail))
        return true;
    return option_fail(p->options, "%s: %s", p->name, detail);
}

static bool hosts_read(struct parser *p, const char *path,
                       bool (*parse)(struct host_list *list, const char *text,
                                     char *error, size_t error_size))
{
    char detail[MESSAGE_SIZE / 2];
    char *text = option_file(path);
    if (!text) snprintf(detail, sizeof detail, "%s", strerror(errno));
    bool good = text && parse(&p->options->hosts, text, detail, sizeof detail);
    free(text);
    return good || option_fail(p->options, "%s %s: %s", p->name, path, detail);
}

bool option_host_file(struct parser *p, const char *value)
{
    return hosts_read(p, value, hosts_parse_file);
}

bool option_rank_file(struct parser *p, const char *value)
{
    return p->options->ranked = hosts_read(p, value, hosts_parse_ranks);
}

/* Open MPI's mapping words without effect here, with any modifier. */
static bool maps_elsewhere(const char *value)
{
    static const char *const words[] = {"l1cache", "l2cache", "l3cache",
                                        "L1cache", "L2cache", "L3cache",
                                        "seq",     "dist"};
    size_t length = strcspn(value, ":");
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (strlen(words[i]) == length && strncmp(value, words[i], length) == 0)
            return true;
    }
    return false;
}

/* ppr:N:node */
static bool map_per_node(struct parser *p, const char *value, bool *is_node)
{
    char count[16] = {0};
    size_t length = strcspn(value + 4, ":");
    *is_node =
        length < sizeof count && strcmp(value + 4 + length, ":node") == 0;
    if (!*is_node) return true;
    memcpy(count, value + 4, length);
    return option_count(p, count, &p->options->per_host);
}

bool option_map(struct parser *p, const char *value)
{
    static struct bind_machine machine;
    bool is_node = strcmp(value, "node") == 0;
    bool per_part = strncmp(value, "ppr:", 4) == 0;
    if (is_node) return option_count(p, "1", &p->options->per_host);
    if (maps_elsewhere(value)) return true;
    if (per_part && !map_per_node(p, value, &is_node)) return false;
    if (is_node) return true;
    struct bind *bind = &p->options->bind;
    if (!bind_parse_map(bind, value))
        return option_fail(p->options,
                           "%s %s: it is node, slot, hwthread, core, numa, "
                           "socket or ppr:N:ONE-OF-THESE, with :PE=N for N "
                           "cores per rank",
                           p->name, value);
    if (!per_part) return true;
    bind_read(&machine); /* other hosts are like this one */
    p->options->per_host = bind->fill * bind_count(&machine, bind->map);
    return true;
}

bool option_launcher(struct parser *p, const char *value)
{
    static const char *const names[] = {[LAUNCHER_AUTO] = "auto",
                                        [LAUNCHER_SSH] = "ssh",
                                        [LAUNCHER_FORK] = "fork",
                                        [LAUNCHER_SLURM] = "slurm"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strcmp(value, names[i]) != 0) continue;
        p->options->launcher = (enum launcher)i;
        return true;
    }
    return option_fail(p->options, "%s %s: it is one of ssh, slurm, fork, auto",
                       p->name, value);
}

bool option_bind(struct parser *p, const char *value)
{
    p->options->bind_given = true;
    if (bind_parse(&p->options->bind, value)) return true;
    return option_fail(p->options,
                       "%s %s: it is one of none, hwthread, core, numa, "
                       "socket, with :N for N of them per rank",
                       p->name, value);
}

bool option_prefix(struct parser *p, const char *value)
{
    p->options->prefix = value;
    return *value == '/' ||
           option_fail(p->options, "%s %s: it is an absolute folder", p->name,
                       value);
}

/* Open MPI's parameters for reaching hosts; others concern its internals and
 * are ignored. */
bool option_mca(struct parser *p, const char *name)
{
    static const struct {
        const char *name, *option;
    } known[] = {{"plm_rsh_agent", "launcher-exec"},
                 {"plm_ssh_agent", "launcher-exec"},
                 {"orte_rsh_agent", "launcher-exec"},
                 {"orte_launch_agent", "launcher-agent"},
                 {"prte_launch_agent", "launcher-agent"}};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        bool list = strstr(name, "_rsh") || strstr(name, "_ssh");
        if (strcmp(name, known[i].name) != 0) continue;
        if (list && strchr(p->second, ':')) return true; /* several */
        p->entry = option_find(known[i].option, strlen(known[i].option));
        return p->entry->apply(p, p->second);
    }
    return true;
}

bool option_pid(struct parser *p, const char *value)
{
    uint64_t pid = 0;
    if (!number_parse(value, (1u << 30) - 1, &pid) || pid == 0)
        return option_fail(p->options, "%s needs a process id, not '%s'",
                           p->name, value);
    p->options->pid = (uint32_t)pid;
    return true;
}
