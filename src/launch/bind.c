/* bind.c - reads the processor topology and binds ranks to it. */
#include "bind.h"

#include "../base/small_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool kind_find(const char *text, size_t length, enum bind_kind *kind)
{
    static const struct {
        const char *name;
        enum bind_kind kind;
    } known[] = {{"none", BIND_NONE},       {"user", BIND_NONE},
                 {"hwthread", BIND_THREAD}, {"hwt", BIND_THREAD},
                 {"pu", BIND_THREAD},       {"core", BIND_CORE},
                 {"rr", BIND_CORE},         {"numa", BIND_NUMA},
                 {"numanode", BIND_NUMA},   {"socket", BIND_SOCKET},
                 {"package", BIND_SOCKET},  {"board", BIND_NONE},
                 {"machine", BIND_NONE}};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (strlen(known[i].name) != length ||
            strncmp(known[i].name, text, length) != 0)
            continue;
        *kind = known[i].kind;
        return true;
    }
    return false;
}

static bool width_parse(const char *text, size_t length, uint32_t *width)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long number = strtoul(text, NULL, 10);
    if (digits == 0 || digits != length || digits > 9 || number == 0 ||
        number > CPU_SETSIZE)
        return false;
    *width = (uint32_t)number;
    return true;
}

bool bind_parse(struct bind *bind, const char *text)
{
    size_t length = strcspn(text, ":");
    const char *rest = text + length;
    enum bind_kind kind;
    uint32_t width = 1;
    bool said = strcmp(rest, ":overload-allowed") == 0 ||
                strcmp(rest, ":if-supported") == 0;
    if (*rest && !said && !width_parse(rest + 1, strlen(rest + 1), &width))
        return false;
    if (!kind_find(text, length, &kind)) return false;
    bind->kind = kind;
    bind->width = width;
    return true;
}

/* Binds to the part itself unless -bind-to says more. */
bool bind_parse_map(struct bind *bind, const char *text)
{
    struct bind map = *bind;
    size_t length = strcspn(text, ":");
    if (length == 3 && strncmp(text, "ppr", 3) == 0) {
        if (text[length] != ':') return false;
        text += length + 1;
        length = strcspn(text, ":");
        if (!width_parse(text, length, &map.fill) || text[length] != ':')
            return false;
        text += length + 1;
        length = strcspn(text, ":");
    }
    map.map = BIND_NONE;
    bool slot = length == 4 && strncmp(text, "slot", 4) == 0;
    if (!slot && !kind_find(text, length, &map.map)) return false;
    for (const char *at = text + length; *at; at += strcspn(at, ":,")) {
        at++;
        size_t size = strcspn(at, ":,");
        if (size < 3 || strncasecmp(at, "pe=", 3) != 0) continue;
        if (!width_parse(at + 3, size - 3, &map.width)) return false;
        map.kind = BIND_CORE;
    }
    *bind = map;
    return true;
}

static int number_in(const char *format, int cpu)
{
    char path[128], text[32];
    snprintf(path, sizeof path, format, cpu);
    (void)small_file_read(path, text, sizeof text);
    return (int)strtol(text, NULL, 10);
}

static int numa_of(int cpu)
{
    char path[64];
    int numa = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", cpu);
    DIR *folder = opendir(path);
    if (!folder) return 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strncmp(entry->d_name, "node", 4) == 0)
            numa = (int)strtol(entry->d_name + 4, NULL, 10);
    closedir(folder);
    return numa;
}

void bind_read_system(struct bind_machine *machine)
{
    static const char base[] = "/sys/devices/system/cpu/cpu%d/topology/";
    char core[96], socket[96];
    cpu_set_t allowed;
    machine->count = 0;
    snprintf(core, sizeof core, "%score_id", base);
    snprintf(socket, sizeof socket, "%sphysical_package_id", base);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((unsigned)cpu, &allowed)) continue;
        machine->cpus[machine->count++] =
            (struct bind_cpu){.number = cpu,
                              .core = number_in(core, cpu),
                              .socket = number_in(socket, cpu),
                              .numa = numa_of(cpu)};
    }
}

static bool same_unit(const struct bind_cpu *a, const struct bind_cpu *b,
                      enum bind_kind kind)
{
    switch (kind) {
    case BIND_NONE:
        return true;
    case BIND_THREAD:
        return a->number == b->number;
    case BIND_CORE:
        return a->socket == b->socket && a->core == b->core;
    case BIND_NUMA:
        return a->numa == b->numa;
    case BIND_SOCKET:
        return a->socket == b->socket;
    }
    return false;
}

/* Numbers the parts of a kind: part_of[i] is that of cpus[i]. */
static uint32_t parts_number(const struct bind_machine *machine,
                             enum bind_kind kind, uint32_t part_of[CPU_SETSIZE])
{
    uint32_t parts = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        uint32_t j = 0;
        while (!same_unit(&machine->cpus[i], &machine->cpus[j], kind)) j++;
        part_of[i] = j == i ? parts++ : part_of[j];
    }
    return parts;
}

uint32_t bind_count(const struct bind_machine *machine, enum bind_kind kind)
{
    uint32_t part_of[CPU_SETSIZE];
    return parts_number(machine, kind, part_of);
}

bool bind_choose(const struct bind_machine *machine, struct bind bind,
                 uint32_t local, cpu_set_t *set)
{
    uint32_t unit_of[CPU_SETSIZE], part_of[CPU_SETSIZE];
    uint32_t number_of[CPU_SETSIZE]; /* of a unit, within its part */
    CPU_ZERO(set);
    if (bind.kind == BIND_NONE || machine->count == 0) return false;
    uint32_t units = parts_number(machine, bind.kind, unit_of);
    uint32_t parts = parts_number(machine, bind.map, part_of);
    uint32_t turn = bind.fill ? local / bind.fill : local; /* of the part */
    uint32_t part = turn % parts, mine = 0;
    uint64_t at = turn / parts; /* number of the rank within its part */
    if (bind.fill) at = at * bind.fill + local % bind.fill;
    memset(number_of, 0xff, units * sizeof *number_of);
    for (uint32_t i = 0; i < machine->count; i++) {
        if (part_of[i] != part || number_of[unit_of[i]] < mine) continue;
        number_of[unit_of[i]] = mine++;
    }
    uint64_t first = at * bind.width % mine;
    for (uint32_t i = 0; i < machine->count; i++) {
        uint32_t number = number_of[unit_of[i]];
        if (number < mine && (number + mine - first) % mine < bind.width)
            CPU_SET((unsigned)machine->cpus[i].number, set);
    }
    return true;
}

char *bind_text(const cpu_set_t *set)
{
    char *text = memory_text("");
    for (unsigned cpu = 0; set && cpu < CPU_SETSIZE; cpu++) {
        unsigned last = cpu;
        if (!CPU_ISSET(cpu, set)) continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set)) last++;
        char *old = text;
        const char *comma = *old ? "," : "";
        text = last > cpu ? memory_print("%s%s%u-%u", old, comma, cpu, last)
                          : memory_print("%s%s%u", old, comma, cpu);
        free(old);
        cpu = last;
    }
    return text;
}
