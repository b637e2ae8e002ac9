/* journal.c - the writer of a journal, through a file layer. See journal.h. */
#include "journal.h"

#include "journal_form.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NO_FILE = -1 };

struct journal {
    struct file_layer files;
    char name[JOURNAL_NAME_MAX + 1], fresh[JOURNAL_NAME_MAX + 8];
    uint64_t salt, seq;
    int file;      /* or NO_FILE: it has to be replaced */
    uint64_t size; /* of the file */
    uint8_t *kept; /* the file as it was found */
    int lock;      /* or NO_FILE */
    bool marked;   /* the mark at the end may not be on the disk */
};

static bool fail(char *error, const char *name, const char *what, int code)
{
    (void)snprintf(error, JOURNAL_ERROR_SIZE, "%.220s cannot be %s: %s", name,
                   what, strerror(code));
    return false;
}

static void drop_file(struct journal *j)
{
    if (j->file != NO_FILE) (void)j->files.close(j->files.user, j->file);
    j->file = NO_FILE;
}

/* The bytes of a record, with what comes before and behind it. */
static int put_record(struct journal *j, const void *bytes, size_t size)
{
    struct file_layer *f = &j->files;
    uint8_t frame[JOURNAL_FRAME_SIZE];
    journal_form_frame(frame, JOURNAL_RECORD, j->seq + 1, j->salt, bytes, size);
    int error = j->marked ? f->sync(f->user, j->file) : 0;
    j->marked = false;
    if (error == 0) error = f->write(f->user, j->file, frame, sizeof frame);
    if (error == 0) error = f->write(f->user, j->file, bytes, size);
    if (error == 0) error = f->sync(f->user, j->file);
    if (error != 0) return error;
    j->size += sizeof frame + size;
    return 0;
}

/* Nothing follows from a mark, so it may be lost. But a record behind one that
 * is not whole would be taken for damage: it waits until the mark is there. */
static void put_mark(struct journal *j)
{
    uint8_t frame[JOURNAL_FRAME_SIZE];
    journal_form_frame(frame, JOURNAL_MARK, j->seq, j->salt, "", 0);
    if (j->files.write(j->files.user, j->file, frame, sizeof frame) != 0)
        drop_file(j);
    j->size += sizeof frame;
    j->marked = true;
}

/* A file with this record alone takes the journal's place. */
static bool replace(struct journal *j, const void *bytes, size_t size,
                    char *error)
{
    struct file_layer *f = &j->files;
    uint8_t head[JOURNAL_HEAD_SIZE];
    drop_file(j);
    j->marked = false;
    int code = f->remove(f->user, j->fresh);
    if (code == ENOENT) code = 0;
    if (code == 0) code = f->create(f->user, j->fresh, &j->file);
    if (code != 0) {
        j->file = NO_FILE;
        return fail(error, j->fresh, "created", code);
    }
    journal_form_head(head, j->salt);
    j->size = sizeof head;
    code = f->write(f->user, j->file, head, sizeof head);
    if (code == 0) code = put_record(j, bytes, size);
    if (code == 0) code = f->rename(f->user, j->fresh, j->name);
    if (code == 0) code = f->sync_names(f->user);
    if (code == 0) return true;
    drop_file(j);
    return fail(error, j->fresh, "written", code);
}

bool journal_append(struct journal *j, const void *bytes, size_t size,
                    char error[static JOURNAL_ERROR_SIZE])
{
    if (size > JOURNAL_RECORD_MAX) {
        (void)snprintf(error, JOURNAL_ERROR_SIZE,
                       "a record of %zu bytes is too large", size);
        return false;
    }
    if (j->file == NO_FILE || j->size + size > JOURNAL_FILE_MAX) {
        if (!replace(j, bytes, size, error)) return false;
    } else {
        int code = put_record(j, bytes, size);
        if (code != 0) {
            drop_file(j); /* what it holds now is not known */
            return fail(error, j->name, "written", code);
        }
    }
    free(j->kept);
    j->kept = NULL;
    j->seq++;
    put_mark(j);
    return true;
}

static bool read_file(struct journal *j, struct journal_found *found,
                      char *error)
{
    struct file_layer *f = &j->files;
    int file;
    uint64_t size;
    int code = f->open(f->user, j->name, &file, &size);
    if (code == ENOENT) return true;
    if (code != 0) return fail(error, j->name, "opened", code);
    if (size > 2u * JOURNAL_FILE_MAX) {
        code = EFBIG;
    } else {
        j->kept = malloc(size > 0 ? (size_t)size : 1);
        code =
            j->kept ? f->read(f->user, file, j->kept, (size_t)size, 0) : ENOMEM;
    }
    (void)f->close(f->user, file);
    if (code != 0) return fail(error, j->name, "read", code);
    const char *fault = journal_read(j->kept, (size_t)size, found);
    if (!fault) return true;
    (void)snprintf(error, JOURNAL_ERROR_SIZE, "%s %s", j->name, fault);
    return false;
}

/* Memory that ends with the journal; takes over the layer. */
static struct journal *journal_new(const struct file_layer *files,
                                   const char *name, uint64_t salt)
{
    struct journal *j = calloc(1, sizeof *j);
    if (!j) return NULL;
    j->files = *files;
    j->salt = salt;
    j->file = j->lock = NO_FILE;
    (void)snprintf(j->name, sizeof j->name, "%s", name);
    (void)snprintf(j->fresh, sizeof j->fresh, "%s.new", j->name);
    return j;
}

struct journal *journal_open(const struct file_layer *files, const char *name,
                             uint64_t salt, struct journal_found *found,
                             char error[static JOURNAL_ERROR_SIZE])
{
    *found = (struct journal_found){.any = false};
    struct journal *j = NULL;
    if (strlen(name) > JOURNAL_NAME_MAX)
        (void)fail(error, name, "opened", ENAMETOOLONG);
    else if (!(j = journal_new(files, name, salt)))
        (void)fail(error, name, "opened", ENOMEM);
    if (!j) {
        files->end(files->user);
        return NULL;
    }
    bool good = read_file(j, found, error);
    if (good) j->seq = found->seq;
    /* The same record once more, under the next number. */
    if (good && found->any) {
        good = replace(j, found->bytes, found->size, error);
        if (good) j->seq++;
        if (good) put_mark(j);
    }
    if (good) return j;
    journal_close(j);
    return NULL;
}

void journal_keep_lock(struct journal *j, int lock)
{
    j->lock = lock;
}

void journal_close(struct journal *j)
{
    drop_file(j);
    free(j->kept);
    if (j->lock != NO_FILE) (void)close(j->lock);
    j->files.end(j->files.user);
    free(j);
}
