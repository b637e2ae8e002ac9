/* journal.h - what the coordinator remembers, in a file that survives it (rules
 * J1 to J4).
 *
 * A record is all that is remembered, not a change of it: the last one counts.
 * A record is on the disk before anything follows from it. It is known to be
 * there: a mark behind it says so, written without haste. So the reader tells
 * a write that was never finished, which nothing has followed from, from a
 * record that was damaged later. The first is left out, the second refused. */
#ifndef PCCL_JOURNAL_H
#define PCCL_JOURNAL_H

#include "../../base/base.h"
#include "../../base/file_layer.h"

enum {
    JOURNAL_RECORD_MAX = 1 << 24,
    JOURNAL_FILE_MAX = 4 << 20, /* then it begins anew with its last record */
    JOURNAL_NAME_MAX = 200,
    JOURNAL_ERROR_SIZE = 320,
};

struct journal;

struct journal_found {
    bool any;
    bool cut;     /* an unfinished write was at the end */
    uint64_t seq; /* of the last record: how many there have been */
    const uint8_t *bytes;
    size_t size;
};

/* Reads the bytes of a journal; `found` points into them. NULL, or what is
 * wrong with them, as the end of "FILE ...". Pure. */
const char *journal_read(const uint8_t *bytes, size_t size,
                         struct journal_found *found);

/* Opens the journal of that name, or begins one (found->any is false). It is
 * replaced by one with its last record alone, so that the disk is known to take
 * writes. `salt`: random. found->bytes is valid until the next append. NULL:
 * `error` says why, and the file is as it was. */
struct journal *journal_open(const struct file_layer *files, const char *name,
                             uint64_t salt, struct journal_found *found,
                             char error[static JOURNAL_ERROR_SIZE]);

/* True: the record is on the disk. False: it may or may not be there, and
 * nothing may follow from it; `error` says why. The next append repairs the
 * file. */
bool journal_append(struct journal *j, const void *bytes, size_t size,
                    char error[static JOURNAL_ERROR_SIZE]);

void journal_close(struct journal *j); /* and the file layer */

/* A journal at that path, locked: by one coordinator at a time. */
struct journal *journal_open_path(const char *path, struct journal_found *found,
                                  char error[static JOURNAL_ERROR_SIZE]);

#endif
