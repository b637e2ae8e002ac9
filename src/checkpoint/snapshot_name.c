/* snapshot_name.c - see snapshot_name.h. */
#include "snapshot_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void snapshot_print(const struct snapshot_name *n, char *text)
{
    int used =
        snprintf(text, SNAPSHOT_NAME_MAX,
                 "pccl-g%" PRIu32 "-t%020" PRIu64 "-r%" PRIu64 "-%016" PRIx64,
                 n->group, n->time_ns, n->revision, n->digest);
    char *end = text + used;
    size_t room = SNAPSHOT_NAME_MAX - (size_t)used;
    if (n->kind == SNAPSHOT_PARTIAL)
        (void)snprintf(end, room, ".tmp-%016" PRIx64, n->unique);
    else
        (void)snprintf(end, room, "%s",
                       n->kind == SNAPSHOT_MANIFEST ? ".json" : ".safetensors");
}

/* Digits of the base behind the prefix; false: none, or too many. */
static bool take(const char **at, const char *prefix, int base, uint64_t *value)
{
    size_t length = strlen(prefix);
    if (strncmp(*at, prefix, length) != 0) return false;
    const char *first = *at + length;
    size_t digits =
        strspn(first, base == 16 ? "0123456789abcdef" : "0123456789");
    if (digits == 0 || digits > 20) return false;
    char *end;
    *value = strtoull(first, &end, base);
    *at = end;
    return true;
}

bool snapshot_parse(struct snapshot_name *n, const char *text)
{
    const char *at = text;
    uint64_t group;
    *n = (struct snapshot_name){0};
    if (!take(&at, "pccl-g", 10, &group) || group > UINT32_MAX ||
        !take(&at, "-t", 10, &n->time_ns) || n->time_ns > INT64_MAX ||
        !take(&at, "-r", 10, &n->revision) || !take(&at, "-", 16, &n->digest))
        return false;
    n->group = (uint32_t)group;
    if (strcmp(at, ".json") == 0)
        n->kind = SNAPSHOT_MANIFEST;
    else if (strcmp(at, ".safetensors") == 0)
        n->kind = SNAPSHOT_TENSORS;
    else if (take(&at, ".tmp-", 16, &n->unique))
        n->kind = SNAPSHOT_PARTIAL;
    else
        return false;
    /* Written in one way only: no other zeros, nothing behind. */
    char again[SNAPSHOT_NAME_MAX];
    snapshot_print(n, again);
    return strcmp(again, text) == 0;
}

void snapshot_add(struct snapshot_list *l, const char *text)
{
    struct snapshot_name n;
    if (l->failed || !snapshot_parse(&n, text)) return;
    if (l->count == l->room) {
        size_t room = 2 * l->room + 16;
        struct snapshot_name *more = realloc(l->names, room * sizeof *more);
        l->failed = !more;
        if (!more) return;
        l->names = more;
        l->room = room;
    }
    l->names[l->count++] = n;
}

void snapshot_free(struct snapshot_list *l)
{
    free(l->names);
    *l = (struct snapshot_list){0};
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

/* By time; of equal times the higher revision and digest, so that the answer
 * does not depend on the order of a directory. */
static bool is_later(const struct snapshot_name *a,
                     const struct snapshot_name *b)
{
    if (a->time_ns != b->time_ns) return a->time_ns > b->time_ns;
    if (a->revision != b->revision) return a->revision > b->revision;
    return a->digest > b->digest;
}

const struct snapshot_name *snapshot_newest(const struct snapshot_list *l,
                                            uint32_t group)
{
    const struct snapshot_name *best = NULL;
    for (size_t i = 0; i < l->count; i++) {
        const struct snapshot_name *n = &l->names[i];
        if (n->kind != SNAPSHOT_MANIFEST || n->group != group) continue;
        if (!best || is_later(n, best)) best = n;
    }
    return best;
}

const struct snapshot_name *snapshot_nearest(const struct snapshot_list *l,
                                             uint32_t group, uint64_t time_ns)
{
    const struct snapshot_name *best = NULL;
    for (size_t i = 0; i < l->count; i++) {
        const struct snapshot_name *n = &l->names[i];
        if (n->kind != SNAPSHOT_MANIFEST || n->group != group) continue;
        uint64_t far = distance(n->time_ns, time_ns);
        uint64_t best_far = best ? distance(best->time_ns, time_ns) : 0;
        bool tie = best && far == best_far;
        /* Of one time the newest, as above; of two times the older. */
        if (!best || far < best_far ||
            (tie && (n->time_ns == best->time_ns ? is_later(n, best)
                                                 : n->time_ns < best->time_ns)))
            best = n;
    }
    return best;
}

const struct snapshot_name *snapshot_revision(const struct snapshot_list *l,
                                              uint32_t group, uint64_t revision)
{
    const struct snapshot_name *best = NULL;
    for (size_t i = 0; i < l->count; i++) {
        const struct snapshot_name *n = &l->names[i];
        if (n->kind != SNAPSHOT_MANIFEST || n->group != group ||
            n->revision != revision)
            continue;
        if (!best || is_later(n, best)) best = n;
    }
    return best;
}

uint64_t snapshot_cut(const struct snapshot_list *l)
{
    uint64_t cut = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (l->names[i].kind != SNAPSHOT_MANIFEST) continue;
        uint64_t newest = snapshot_newest(l, l->names[i].group)->time_ns;
        if (cut == 0 || newest < cut) cut = newest;
    }
    return cut;
}

static size_t later_ones(const struct snapshot_list *l,
                         const struct snapshot_name *n)
{
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct snapshot_name *other = &l->names[i];
        count += other->kind == SNAPSHOT_MANIFEST && other->group == n->group &&
                 is_later(other, n);
    }
    return count;
}

bool snapshot_is_old(const struct snapshot_list *l,
                     const struct snapshot_name *n, size_t keep,
                     const struct snapshot_name *cut)
{
    if (later_ones(l, n) < keep) return false;
    bool stays = cut && n->kind != SNAPSHOT_PARTIAL &&
                 cut->time_ns == n->time_ns && cut->revision == n->revision &&
                 cut->digest == n->digest;
    return !stays;
}
