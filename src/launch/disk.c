/* disk.c - see disk.h. */
#include "disk.h"

#include "../base/base.h"
#include "../base/quiet_write.h"
#include "../base/slow_call.h"

#include <stdatomic.h>

static void write_batch(void *user);

/* The thread has `batch` while a call is under way, and wakes the loop;
 * everything else is of the loop. */
static struct {
    struct slow_call call;
    struct ev_loop *loop;
    ev_async over;
    struct disk_file *batch, *first, **end;
    atomic_bool done;
} disk = {.call = SLOW_CALL(write_batch, NULL), .end = &disk.first};

static void write_batch(void *user)
{
    (void)user;
    for (struct disk_file *f = disk.batch; f; f = f->next)
        f->error = quiet_write_all(f->fd, f->bytes, f->size);
    atomic_store(&disk.done, true);
    ev_async_send(disk.loop, &disk.over);
}

static void begin(void)
{
    if (disk.batch || !disk.first) return;
    disk.batch = disk.first;
    disk.first = NULL;
    disk.end = &disk.first;
    ev_async_start(disk.loop, &disk.over);
    (void)slow_call_ask(&disk.call, 0);
}

static void batch_over(struct ev_loop *loop, ev_async *over, int events)
{
    (void)events;
    if (!atomic_exchange(&disk.done, false)) return;
    struct disk_file *file = disk.batch;
    disk.batch = NULL;
    ev_async_stop(loop, over);
    while (file) {
        struct disk_file *next = file->next;
        file->busy = false;
        file->written(file);
        file = next;
    }
    begin();
}

void disk_write(struct ev_loop *loop, struct disk_file *file)
{
    PCCL_ASSERT(!file->busy);
    if (!disk.loop) { /* once: the thread may be reading it */
        ev_async_init(&disk.over, batch_over);
        disk.loop = loop;
    }
    file->busy = true;
    file->next = NULL;
    *disk.end = file;
    disk.end = &file->next;
    begin();
}

void disk_end(void)
{
    (void)slow_call_end(&disk.call, SLOW_CALL_FOREVER);
    while (disk.batch) batch_over(disk.loop, &disk.over, 0);
    disk.loop = NULL;
}
