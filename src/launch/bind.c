/* bind.c - reads the processor topology and binds ranks to it. */
#include "bind.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bind_parse(struct bind *bind, const char *text)
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
    size_t length = strcspn(text, ":");
    char *end = NULL;
    unsigned long width = 1;
    bool said = strcmp(text + length, ":overload-allowed") == 0 ||
                strcmp(text + length, ":if-supported") == 0;
    if (text[length] == ':' && !said) {
        width = strtoul(text + length + 1, &end, 10);
        if (end == text + length + 1 || *end != '\0' || width == 0 ||
            width > CPU_SETSIZE)
            return false;
    }
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (strlen(known[i].name) != length ||
            strncmp(known[i].name, text, length) != 0)
            continue;
        *bind = (struct bind){known[i].kind, (uint32_t)width};
        return true;
    }
    return false;
}

static int number_in(const char *format, int cpu)
{
    char path[128];
    int number = 0;
    snprintf(path, sizeof path, format, cpu);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    if (fscanf(file, "%d", &number) != 1) number = 0;
    fclose(file);
    return number;
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

void bind_read(struct bind_machine *machine)
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

bool bind_choose(const struct bind_machine *machine, struct bind bind,
                 uint32_t local, cpu_set_t *set)
{
    uint32_t units = 0;
    uint32_t unit_of[CPU_SETSIZE];
    CPU_ZERO(set);
    if (bind.kind == BIND_NONE || machine->count == 0) return false;
    for (uint32_t i = 0; i < machine->count; i++) {
        uint32_t j = 0;
        while (!same_unit(&machine->cpus[i], &machine->cpus[j], bind.kind)) j++;
        unit_of[i] = j == i ? units++ : unit_of[j];
    }
    uint64_t first = (uint64_t)local * bind.width % units;
    for (uint32_t i = 0; i < machine->count; i++)
        if ((unit_of[i] + units - first) % units < bind.width)
            CPU_SET((unsigned)machine->cpus[i].number, set);
    return true;
}
