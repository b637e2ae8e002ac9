/* memory_supply.c - see memory_supply.h. */
#include "memory_supply.h"

#include "small_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, TEXT_SIZE = 16 * 1024 };
#define UNKNOWN UINT64_MAX

/* The names that the two versions of control groups have for the same. */
struct group_kind {
    const char *mount, *limit, *used, *files[2];
};
static const struct group_kind kinds[] = {
    {"/sys/fs/cgroup",
     "memory.max",
     "memory.current",
     {"active_file", "inactive_file"}},
    {"/sys/fs/cgroup/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_active_file", "total_inactive_file"}}};

/* The number behind a word that begins a line. */
static uint64_t value_of(const char *text, const char *word)
{
    size_t size = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, size) == 0 &&
            (line[size] == ' ' || line[size] == ':'))
            return strtoull(line + size + 1, NULL, 10);
    }
    return UNKNOWN;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    if (a == UNKNOWN || b == UNKNOWN) return a == UNKNOWN ? b : a;
    return a > UNKNOWN - b ? UNKNOWN : a + b;
}

static bool read_group(char text[TEXT_SIZE], const char *group,
                       const char *name)
{
    char path[PATH_SIZE + 64];
    (void)snprintf(path, sizeof path, "%s/%s", group, name);
    return small_file_read(path, text, TEXT_SIZE);
}

/* What the limit of one group leaves; "max" is no number. */
static uint64_t left_in(const char *group, const struct group_kind *kind)
{
    char text[TEXT_SIZE];
    if (!read_group(text, group, kind->limit) || *text < '0' || *text > '9')
        return UNKNOWN;
    uint64_t limit = strtoull(text, NULL, 10);
    if (!read_group(text, group, kind->used)) return UNKNOWN;
    uint64_t used = strtoull(text, NULL, 10);
    uint64_t left = limit > used ? limit - used : 0;
    if (!read_group(text, group, "memory.stat")) return left;
    left = sum(left, value_of(text, kind->files[0]));
    return sum(left, value_of(text, kind->files[1]));
}

/* The least that a group and those above it leave. */
static uint64_t left_up(const char *root, const char *name,
                        const struct group_kind *kind)
{
    char group[PATH_SIZE];
    uint64_t left = UNKNOWN;
    int top = snprintf(group, sizeof group, "%s%s", root, kind->mount);
    int size = snprintf(group, sizeof group, "%s%s%s", root, kind->mount, name);
    if (top < 0 || size >= PATH_SIZE) return UNKNOWN;
    for (;;) {
        uint64_t here = left_in(group, kind);
        if (here < left) left = here;
        char *cut = strrchr(group, '/');
        if (!cut || cut < group + top) return left;
        *cut = '\0';
    }
}

static uint64_t left_in_groups(const char *root)
{
    char path[PATH_SIZE], text[TEXT_SIZE];
    uint64_t left = UNKNOWN;
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!small_file_read(path, text, TEXT_SIZE)) return UNKNOWN;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        char *name = strchr(line, '/');
        const struct group_kind *kind = NULL;
        if (name && strncmp(line, "0::", 3) == 0) kind = &kinds[0];
        if (name && strstr(line, ":memory:")) kind = &kinds[1];
        uint64_t here = kind ? left_up(root, name, kind) : UNKNOWN;
        if (here < left) left = here;
    }
    return left;
}

uint64_t memory_supply(const char *root)
{
    char path[PATH_SIZE], text[TEXT_SIZE];
    uint64_t left = left_in_groups(root);
    (void)snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!small_file_read(path, text, TEXT_SIZE)) return left;
    uint64_t swap = value_of(text, "SwapFree");
    uint64_t host = sum(value_of(text, "MemAvailable"), swap);
    if (host != UNKNOWN && host < UNKNOWN / 1024) host *= 1024;
    if (left != UNKNOWN && swap < UNKNOWN / 1024) left = sum(left, swap * 1024);
    return host < left ? host : left;
}

uint64_t memory_supply_here(void)
{
    char text[TEXT_SIZE];
    struct rlimit limit;
    uint64_t left = memory_supply("");
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !small_file_read("/proc/self/statm", text, TEXT_SIZE))
        return left;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t used = strtoull(text, NULL, 10) * page;
    uint64_t addresses = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
    return addresses < left ? addresses : left;
}

bool memory_is_counted(const char *root)
{
    char path[PATH_SIZE], text[TEXT_SIZE];
    (void)snprintf(path, sizeof path, "%s/proc/sys/vm/overcommit_memory", root);
    return small_file_read(path, text, TEXT_SIZE) && *text == '2';
}
