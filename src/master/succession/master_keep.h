/* master_keep.h - writes the machine's record to a journal: the driver's half
 * of rules J1 to J4. */
#ifndef PCCL_MASTER_KEEP_H
#define PCCL_MASTER_KEEP_H

#include "../master.h"

struct journal;

struct master_keep {
    struct journal *journal; /* NULL: nothing is written */
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
 * the disk takes no writes, or does again. */
bool keep_memory(struct master_keep *k, const struct master_memory *memory,
                 pccl_ns now, pccl_ns retry, char *line, size_t line_size);

void keep_close(struct master_keep *k);

#endif
