/* memory_disk.c - see memory_disk.h. */
#include "memory_disk.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every step of a dead writer fails and does nothing. */
static int step(struct memory_disk *d, bool *dies_now)
{
    long now = d->steps++;
    if (d->meanwhile && now == d->meanwhile_at) d->meanwhile(d);
    *dies_now = now == d->dies;
    if (d->dies >= 0 && now >= d->dies) return EIO;
    return now == d->fails ? d->error : 0;
}

static struct disk_name *find(struct disk_name *names, const char *text)
{
    for (int i = 0; i < DISK_NAMES; i++)
        if (strcmp(names[i].text, text) == 0) return &names[i];
    return NULL;
}

static void point(struct disk_name *names, const char *text, int file)
{
    struct disk_name *n = find(names, text);
    if (!n) n = find(names, "");
    assert(n);
    (void)snprintf(n->text, sizeof n->text, "%s", file < 0 ? "" : text);
    n->file = file;
}

static void change(struct memory_disk *d, const char *text, int file)
{
    assert(d->change_count < DISK_CHANGES);
    struct disk_change *c = &d->changes[d->change_count++];
    (void)snprintf(c->name, sizeof c->name, "%s", text);
    c->file = file;
    point(d->names, text, file);
}

static int list(void *user, void (*seen)(void *to, const char *name), void *to)
{
    struct memory_disk *d = user;
    for (int i = 0; i < DISK_NAMES; i++)
        if (*d->names[i].text) seen(to, d->names[i].text);
    return 0;
}

static int create(void *user, const char *name, int *file)
{
    struct memory_disk *d = user;
    bool dies;
    int error = step(d, &dies);
    if (error != 0) return error;
    if (find(d->names, name)) return EEXIST;
    assert(d->file_count < DISK_FILES);
    *file = d->file_count++;
    d->files[*file] = (struct disk_file){.open = true};
    change(d, name, *file);
    return 0;
}

static bool is_left(void *user, const char *name)
{
    struct memory_disk *d = user;
    const struct disk_name *n = find(d->names, name);
    return n && !d->files[n->file].open;
}

static size_t used(const struct memory_disk *d)
{
    size_t sum = 0;
    for (int i = 0; i < DISK_NAMES; i++)
        if (*d->names[i].text) sum += d->files[d->names[i].file].size;
    return sum;
}

static int open_file(void *user, const char *name, int *file, uint64_t *size)
{
    struct memory_disk *d = user;
    const struct disk_name *n = find(d->names, name);
    if (!n) return ENOENT;
    *file = n->file;
    *size = d->files[n->file].size;
    return 0;
}

static int write_file(void *user, int file, const void *bytes, size_t size)
{
    struct memory_disk *d = user;
    bool dies;
    int error = step(d, &dies);
    if (error == 0 && d->room > 0 && used(d) + size > d->room) error = ENOSPC;
    if (error != 0) size = dies || error == ENOSPC ? size / 2 : 0;
    struct disk_file *f = &d->files[file];
    uint8_t *more = realloc(f->bytes, f->size + size + 1);
    assert(more);
    memcpy(more + f->size, bytes, size);
    f->bytes = more;
    f->size += size;
    return error;
}

static int read_file(void *user, int file, void *bytes, size_t size,
                     uint64_t offset)
{
    struct memory_disk *d = user;
    const struct disk_file *f = &d->files[file];
    if (offset > f->size || size > f->size - offset) return ENODATA;
    if (size > 0) memcpy(bytes, f->bytes + offset, size);
    return 0;
}

static int sync_file(void *user, int file)
{
    struct memory_disk *d = user;
    bool dies;
    int error = step(d, &dies);
    if (error == 0) d->files[file].synced = d->files[file].size;
    return error;
}

static int close_file(void *user, int file)
{
    struct memory_disk *d = user;
    bool dies;
    int error = step(d, &dies);
    d->files[file].open = false;
    return error;
}

static int rename_file(void *user, const char *from, const char *to)
{
    struct memory_disk *d = user;
    bool dies;
    int error = step(d, &dies);
    const struct disk_name *n = find(d->names, from);
    if (error != 0) return error;
    if (!n) return ENOENT;
    int file = n->file;
    /* One change on a disk, too: here the new name is there before the old one
     * is gone, in whatever order they get there. */
    change(d, to, file);
    change(d, from, -1);
    return 0;
}

static int remove_file(void *user, const char *name)
{
    struct memory_disk *d = user;
    bool dies;
    int error = step(d, &dies);
    if (error != 0) return error;
    if (!find(d->names, name)) return ENOENT;
    change(d, name, -1);
    return 0;
}

static int sync_names(void *user)
{
    struct memory_disk *d = user;
    bool dies;
    int error = step(d, &dies);
    if (error != 0) return error;
    memcpy(d->synced, d->names, sizeof d->synced);
    d->change_count = 0;
    d->name_syncs++;
    return 0;
}

static void end(void *user)
{
    (void)user;
}

struct file_layer disk_layer(struct memory_disk *d)
{
    return (struct file_layer){.user = d,
                               .list = list,
                               .create = create,
                               .is_left = is_left,
                               .open = open_file,
                               .write = write_file,
                               .read = read_file,
                               .sync = sync_file,
                               .close = close_file,
                               .rename = rename_file,
                               .remove = remove_file,
                               .sync_names = sync_names,
                               .end = end};
}

void disk_open(struct memory_disk *d)
{
    memset(d, 0, sizeof *d);
    d->dies = d->fails = -1;
}

void disk_close(struct memory_disk *d)
{
    for (int i = 0; i < d->file_count; i++) free(d->files[i].bytes);
    disk_open(d);
}

static void copy_files(const struct memory_disk *d, struct memory_disk *to,
                       bool all)
{
    disk_open(to);
    to->file_count = d->file_count;
    for (int i = 0; i < d->file_count; i++) {
        const struct disk_file *f = &d->files[i];
        size_t size = all ? f->size : f->synced;
        uint8_t *bytes = malloc(size + 1);
        assert(bytes);
        if (size > 0) memcpy(bytes, f->bytes, size);
        to->files[i] =
            (struct disk_file){.bytes = bytes, .size = size, .synced = size};
    }
}

void disk_after_kill(const struct memory_disk *d, struct memory_disk *to)
{
    copy_files(d, to, true);
    memcpy(to->names, d->names, sizeof to->names);
    memcpy(to->synced, d->names, sizeof to->synced);
}

void disk_after_power(const struct memory_disk *d, struct memory_disk *to,
                      unsigned changes, bool more)
{
    copy_files(d, to, more);
    memcpy(to->names, d->synced, sizeof to->names);
    for (int i = 0; i < d->change_count; i++)
        if (changes >> i & 1)
            point(to->names, d->changes[i].name, d->changes[i].file);
    memcpy(to->synced, to->names, sizeof to->synced);
}

int disk_count(const struct memory_disk *d)
{
    int count = 0;
    for (int i = 0; i < DISK_NAMES; i++) count += *d->names[i].text != '\0';
    return count;
}
