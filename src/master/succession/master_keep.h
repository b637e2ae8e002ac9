/* master_keep.h - writes the machine's record to a journal: the driver's half
 * of rules J1 to J4. */
#ifndef PCCL_MASTER_KEEP_H
#define PCCL_MASTER_KEEP_H

#include "../master.h"

#include "../../base/slow_call.h"

struct journal;

/* A record on its way to the disk, by a thread of its own: the coordinator
 * hears its members while a disk hangs. */
struct keep_write {
    struct slow_call call;
    struct journal *journal;
    uint8_t *bytes; /* or NULL: none */
    size_t size;
    bool good, late; /* `late`: the user was told */
    char why[320];
};

struct master_keep {
    struct journal *journal; /* NULL: nothing is written */
    struct keep_write *write;
    const char *path;
    bool failed;      /* the last attempt to write */
    pccl_ns tried_at; /* when that was */
    uint8_t *kept;    /* or NULL */
    size_t kept_size;
};

/* What was found is written to `memory`, if *any. False: `error` says why. The
 * path is borrowed until keep_close(). */
bool keep_open(struct master_keep *k, const char *path,
               struct master_memory *memory, bool *any, char *error,
               size_t error_size);

/* True: it is on the disk. A line for the user, or "", is written to `line`:
 * the disk takes no writes, or does again. A disk that takes longer than
 * `retry` counts as one that takes none, until it has. */
bool keep_memory(struct master_keep *k, const struct master_memory *memory,
                 pccl_ns now, pccl_ns retry, char *line, size_t line_size);

void keep_close(struct master_keep *k);

#endif
