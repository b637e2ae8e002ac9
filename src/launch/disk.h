/* disk.h - writes to files by a thread: a disk may keep a write for minutes,
 * and the coordinator runs in this process.
 *
 * All files of the process have one thread. Where one hangs the output for all
 * of them waits, and with it, in the end, the ranks that write it. */
#ifndef PCCL_LAUNCH_DISK_H
#define PCCL_LAUNCH_DISK_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

struct disk_file {
    struct disk_file *next;
    int fd;
    const char *bytes; /* stay as they are while it is busy */
    size_t size;
    int error; /* of the last write, 0: all was written */
    bool busy;
    /* In a turn of the loop, or in disk_end(): it is not busy any more. */
    void (*written)(struct disk_file *file);
};

/* Writes file->bytes after what is under way. The file is not busy. */
void disk_write(struct ev_loop *loop, struct disk_file *file);

/* Waits for all writes, as long as they take. Later ones are made at once. */
void disk_end(void);

#endif
