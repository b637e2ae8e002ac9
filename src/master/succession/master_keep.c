/* master_keep.c - see master_keep.h. */
#include "master_keep.h"

#include "../../base/log.h"
#include "journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool take_found(const struct journal_found *found, const char *path,
                       struct master_memory *memory, char *error, size_t size)
{
    if (!memory_decode(memory, found->bytes, found->size)) {
        (void)snprintf(error, size,
                       "journal %s has a record that this version does not "
                       "know",
                       path);
        return false;
    }
    LOG(LOG_INFO, "master: journal %s: record %" PRIu64 "%s, round %" PRIu32,
        path, found->seq, found->cut ? " (a later one is unfinished)" : "",
        memory->round);
    return true;
}

bool keep_open(struct master_keep *k, const char *path,
               struct master_memory *memory, bool *any, char *error,
               size_t error_size)
{
    char why[JOURNAL_ERROR_SIZE];
    struct journal_found found;
    *k = (struct master_keep){.path = path};
    k->journal = journal_open_path(path, &found, why);
    if (!k->journal) {
        (void)snprintf(error, error_size, "journal %s", why);
        return false;
    }
    *any = found.any;
    if (!found.any || take_found(&found, path, memory, error, error_size))
        return true;
    keep_close(k);
    return false;
}

bool keep_memory(struct master_keep *k, const struct master_memory *memory,
                 pccl_ns now, pccl_ns retry, char *line, size_t line_size)
{
    char why[JOURNAL_ERROR_SIZE];
    *line = '\0';
    if (!k->journal) return true;
    size_t room = memory_size(memory);
    uint8_t *bytes = malloc(room);
    if (!bytes) return false;
    size_t size = memory_encode(memory, bytes, room);
    bool same = size == k->kept_size && memcmp(bytes, k->kept, size) == 0;
    if (same || (k->failed && now - k->tried_at < retry)) {
        free(bytes);
        return same;
    }
    k->tried_at = now;
    bool good = journal_append(k->journal, bytes, size, why);
    if (!good && !k->failed)
        (void)snprintf(line, line_size,
                       "journal %s: %s; members neither come nor go until "
                       "it can be written",
                       k->path, why);
    if (good && k->failed)
        (void)snprintf(line, line_size, "journal %s: is written again",
                       k->path);
    k->failed = !good;
    if (good) {
        free(k->kept);
        k->kept = bytes;
        k->kept_size = size;
    } else {
        free(bytes);
    }
    return good;
}

void keep_close(struct master_keep *k)
{
    if (k->journal) journal_close(k->journal);
    k->journal = NULL;
    free(k->kept);
    k->kept = NULL;
}
