/* option_places.c - options for placement and for reaching other hosts. */
#include "option_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool option_hosts(struct parser *p, const char *value)
{
    char detail[MESSAGE_SIZE / 2];
    if (hosts_parse(&p->options->hosts, value, detail, sizeof detail))
        return true;
    return option_fail(p->options, "%s: %s", p->name, detail);
}

bool option_host_file(struct parser *p, const char *value)
{
    char detail[MESSAGE_SIZE / 2];
    char *text = option_file(value);
    if (!text)
        return option_fail(p->options, "%s %s: %s", p->name, value,
                           strerror(errno));
    bool good =
        hosts_parse_file(&p->options->hosts, text, detail, sizeof detail);
    free(text);
    return good || option_fail(p->options, "%s %s: %s", p->name, value, detail);
}

bool option_rank_file(struct parser *p, const char *value)
{
    char detail[MESSAGE_SIZE / 2];
    char *text = option_file(value);
    if (!text)
        return option_fail(p->options, "%s %s: %s", p->name, value,
                           strerror(errno));
    p->options->ranked =
        hosts_parse_ranks(&p->options->hosts, text, detail, sizeof detail);
    free(text);
    return p->options->ranked ||
           option_fail(p->options, "%s %s: %s", p->name, value, detail);
}

bool option_one_per_host(struct parser *p, const char *value)
{
    (void)value;
    return option_count(p, "1", &p->options->per_host);
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

bool option_launcher_exec(struct parser *p, const char *value)
{
    p->options->launcher_exec = value;
    return value[strspn(value, " ")] != '\0' ||
           option_fail(p->options, "%s needs a command", p->name);
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

bool option_bind_core(struct parser *p, const char *value)
{
    (void)value;
    return option_bind(p, "core");
}

bool option_bind_socket(struct parser *p, const char *value)
{
    (void)value;
    return option_bind(p, "socket");
}

bool option_agent(struct parser *p, const char *value)
{
    p->options->agent = value;
    return *value != '\0' ||
           option_fail(p->options, "%s needs a command", p->name);
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
    static const char *const ssh[] = {"plm_rsh_agent", "plm_ssh_agent",
                                      "orte_rsh_agent"};
    static const char *const agent[] = {"orte_launch_agent",
                                        "prte_launch_agent"};
    const char *value = p->second;
    for (size_t i = 0; i < ARRAY_COUNT(ssh); i++)
        if (strcmp(name, ssh[i]) == 0 && !strchr(value, ':'))
            return option_launcher_exec(p, value);
    for (size_t i = 0; i < ARRAY_COUNT(agent); i++)
        if (strcmp(name, agent[i]) == 0) return option_agent(p, value);
    return true;
}

/* A day: what is stopped in a debugger, or by a signal, is waited for. */
bool option_debug(struct parser *p, const char *value)
{
    (void)value;
    return option_deadline(p, "86400");
}

bool option_pid(struct parser *p, const char *value)
{
    char *end;
    unsigned long pid = strtoul(value, &end, 10);
    p->options->pid = (uint32_t)pid;
    return (*end == '\0' && pid > 0 && pid < 1u << 30) ||
           option_fail(p->options, "%s needs a process id, not '%s'", p->name,
                       value);
}
