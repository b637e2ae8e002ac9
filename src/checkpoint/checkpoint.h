/* checkpoint.h - writes and reads one checkpoint of one group.
 *
 * Both run in the thread that calls them, through a file_layer. */
#ifndef PCCL_CHECKPOINT_H
#define PCCL_CHECKPOINT_H

#include "../base/file_layer.h"
#include "manifest.h"
#include "snapshot_name.h"

/* Bytes of a tensor. Memory of a device is copied by its functions, which
 * return false if they fail; `device` is NULL for the host's. */
struct checkpoint_data {
    void *bytes;
    const void *device;
    bool (*get)(const void *device, void *host, const void *bytes,
                uint64_t size);
    bool (*put)(const void *device, void *bytes, const void *host,
                uint64_t size);
};

enum checkpoint_result {
    CHECKPOINT_DONE,
    CHECKPOINT_NONE,    /* there is none to load */
    CHECKPOINT_DIFFERS, /* it is one of other tensors */
    CHECKPOINT_FAILED,  /* a file could not be written or read, or is not what
                           was written */
    CHECKPOINT_MEMORY,
};

struct checkpoint_error {
    enum checkpoint_result result;
    char text[400];
};

/* What the checkpoint of a group is to be; the time is the clock's, or later if
 * the directory has a checkpoint of a later time. False: *error says why. */
bool checkpoint_time(const struct file_layer *files, uint32_t group,
                     uint64_t clock_ns, uint64_t *time_ns,
                     struct checkpoint_error *error);

/* Writes the tensors and the manifest of `m`, whose digests it fills in, and
 * then removes what is older than the latest `keep`. On failure nothing of it
 * is left and the others are as they were. `unique` is a number that no other
 * writer has. *size: of both files. */
bool checkpoint_write(const struct file_layer *files, struct manifest *m,
                      const struct checkpoint_data *data, size_t keep,
                      uint64_t unique, uint64_t *size,
                      struct checkpoint_error *error);

enum checkpoint_choice {
    CHECKPOINT_CUT,     /* what all groups had come to */
    CHECKPOINT_NEWEST,  /* of this group */
    CHECKPOINT_NEAREST, /* to a time */
    CHECKPOINT_REVISION,
    CHECKPOINT_CHOICE_COUNT,
};

/* Reads a checkpoint of wanted->group into `data`. The tensors of `wanted`
 * have name, type, count and flag. Nothing is written before the whole file has
 * been verified. On success wanted has revision, time and world of it, and
 * digests; *size: of both files; *cut_ns: the time that was chosen by. */
bool checkpoint_read(const struct file_layer *files, struct manifest *wanted,
                     const struct checkpoint_data *data,
                     enum checkpoint_choice choice, uint64_t value,
                     uint64_t *size, uint64_t *cut_ns,
                     struct checkpoint_error *error);

#endif
