/* memory_disk.h - a directory in memory that knows what a disk would still have
 * after a loss of power, and that can stop or fail at any operation. */
#ifndef PCCL_TEST_MEMORY_DISK_H
#define PCCL_TEST_MEMORY_DISK_H

#include "../../../src/base/file_layer.h"

enum {
    DISK_FILES = 64,
    DISK_NAMES = 32,
    DISK_NAME_MAX = 128,
    DISK_CHANGES = 16
};

struct disk_file {
    uint8_t *bytes;
    size_t size;
    size_t synced; /* so many of them are on the disk */
    bool open;     /* by the process that has created it */
};

struct disk_name {
    char text[DISK_NAME_MAX]; /* "": free */
    int file;
};

/* A change of the names: `name` leads to `file` now, or (-1) nowhere. */
struct disk_change {
    char name[DISK_NAME_MAX];
    int file;
};

struct memory_disk {
    struct disk_file files[DISK_FILES];
    int file_count;
    struct disk_name names[DISK_NAMES];       /* as processes see them */
    struct disk_name synced[DISK_NAMES];      /* as the disk has them */
    struct disk_change changes[DISK_CHANGES]; /* what it lacks, in order */
    int change_count;
    int name_syncs; /* how often it has had all */
    long steps;     /* operations so far that change something */
    long dies;  /* at this step the writer dies, a write in its middle; -1 */
    long fails; /* this step fails with `error`; -1 */
    int error;
    size_t room; /* bytes of all files that have a name; 0: any number */
    void (*meanwhile)(void *disk); /* what another process does before the */
    long meanwhile_at;             /* step of this number; NULL: nothing */
};

void disk_open(struct memory_disk *d); /* empty; neither dies nor fails */
void disk_close(struct memory_disk *d);
struct file_layer disk_layer(struct memory_disk *d);

/* What a new process finds: after the death of the writer. */
void disk_after_kill(const struct memory_disk *d, struct memory_disk *to);
/* After a loss of power: of the changes of names those whose bit is set had
 * reached the disk; of bytes those that were synced, and `more` others. */
void disk_after_power(const struct memory_disk *d, struct memory_disk *to,
                      unsigned changes, bool more);
int disk_count(const struct memory_disk *d); /* names */

#endif
