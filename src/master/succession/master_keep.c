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

static void write_record(void *user)
{
    struct keep_write *w = user;
    w->good = journal_append(w->journal, w->bytes, w->size, w->why);
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
    k->write = calloc(1, sizeof *k->write);
    if (!k->write) {
        journal_close(k->journal);
        (void)snprintf(error, error_size, "journal %s: no memory", path);
        return false;
    }
    *k->write = (struct keep_write){.call = SLOW_CALL(write_record, k->write),
                                    .journal = k->journal};
    *any = found.any;
    if (!found.any || take_found(&found, path, memory, error, error_size))
        return true;
    keep_close(k);
    return false;
}

/* The write is over, well or not. */
static void take_result(struct master_keep *k, char *line, size_t line_size)
{
    struct keep_write *w = k->write;
    if (!w->good && !k->failed)
        (void)snprintf(line, line_size,
                       "journal %s: %s; members neither come nor go until "
                       "it can be written",
                       k->path, w->why);
    if (w->good && (k->failed || w->late))
        (void)snprintf(line, line_size, "journal %s: is written again",
                       k->path);
    k->failed = !w->good;
    w->late = false;
    if (w->good) {
        free(k->kept);
        k->kept = w->bytes;
        k->kept_size = w->size;
    } else {
        free(w->bytes);
    }
    w->bytes = NULL;
}

/* The write is not over. Nobody is there before the first record. */
static bool still_writes(struct master_keep *k, int patience, char *line,
                         size_t line_size)
{
    struct keep_write *w = k->write;
    bool over = patience != 0 ? slow_call_ask(&w->call, patience)
                              : slow_call_is_done(&w->call);
    if (over) return false;
    if (!w->late && !k->failed)
        (void)snprintf(line, line_size,
                       "journal %s: the disk does not answer; members neither "
                       "come nor go until it does",
                       k->path);
    w->late = true;
    return true;
}

bool keep_memory(struct master_keep *k, const struct master_memory *memory,
                 pccl_ns now, pccl_ns retry, char *line, size_t line_size)
{
    *line = '\0';
    if (!k->journal) return true;
    struct keep_write *w = k->write;
    if (w->bytes) {
        if (still_writes(k, 0, line, line_size)) return false;
        take_result(k, line, line_size);
    }
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
    w->bytes = bytes;
    w->size = size;
    int patience = k->kept ? (int)(retry / PCCL_MS) + 1 : SLOW_CALL_FOREVER;
    if (still_writes(k, patience, line, line_size)) return false;
    take_result(k, line, line_size);
    return !k->failed;
}

void keep_close(struct master_keep *k)
{
    struct keep_write *w = k->write;
    /* A disk that hangs keeps what the write uses, and not the process. */
    if (w && slow_call_end(&w->call, SLOW_CALL_MOMENT)) {
        journal_close(k->journal);
        free(w->bytes);
        free(w);
    }
    k->journal = NULL;
    k->write = NULL;
    free(k->kept);
    k->kept = NULL;
}
