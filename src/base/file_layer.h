/* file_layer.h - the files of one directory, as functions, so that a test can
 * stop the writer after any of them.
 *
 * Names are those of files in the directory. A result is 0 or an errno. */
#ifndef PCCL_FILE_LAYER_H
#define PCCL_FILE_LAYER_H

#include "base.h"

struct file_layer {
    void *user;
    /* `seen` gets each name of the directory. */
    int (*list)(void *user, void (*seen)(void *to, const char *name), void *to);
    int (*create)(void *user, const char *name, int *file); /* a new one */
    /* Nobody has the file open who has created it: he is done, or dead. False
     * where that is not known. */
    bool (*is_left)(void *user, const char *name);
    int (*open)(void *user, const char *name, int *file, uint64_t *size);
    int (*write)(void *user, int file, const void *bytes,
                 size_t size); /* all */
    /* All `size` bytes from `offset` on; ENODATA where the file ends before. */
    int (*read)(void *user, int file, void *bytes, size_t size,
                uint64_t offset);
    int (*sync)(void *user, int file); /* the bytes are on the disk */
    int (*close)(void *user, int file);
    int (*rename)(void *user, const char *from, const char *to);
    int (*remove)(void *user, const char *name);
    int (*sync_names)(void *user); /* renames and removals are on the disk */
    void (*end)(void *user);       /* the layer is not used any more */
};

/* The directory, which has to be there. Later changes of the working directory
 * do not matter. 0 or an errno; then there is nothing to end. */
int file_layer_open(struct file_layer *files, const char *directory);
/* Opens it so that nobody but this user may read what is created. */
int file_layer_open_private(struct file_layer *files, const char *directory);

#endif
