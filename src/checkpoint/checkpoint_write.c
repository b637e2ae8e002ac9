/* checkpoint_write.c - writes a checkpoint. See checkpoint.h.
 *
 * The order of the steps is what keeps the former checkpoint whole when the
 * writer, or its host, dies between any two of them:
 *
 *   0. what dead writers have left goes, and what is older than those that
 *      stay: so there is room for one more
 *   1. the tensor file under a name of its own; its bytes to the disk
 *   2. its final name; the names to the disk
 *   3. the manifest likewise: from its final name on the checkpoint is there
 *   4. the names to the disk; only then older manifests are removed, and the
 *      tensors that belong to them after those
 *
 * Whatever a dead writer leaves has no manifest, so no load sees it. Both files
 * are open until the manifest has its name: so a living writer's are told from
 * those of a dead one. */
#include "checkpoint.h"

#include "../hash/hash.h"

#include <errno.h>
#include <string.h>

enum { PIECE = 16 * HASH_BLOCK_SIZE };

struct writing {
    const struct file_layer *files;
    struct manifest *m;
    const struct checkpoint_data *data;
    uint8_t *piece; /* PIECE bytes, for what lies on a device */
    uint64_t unique;
    uint64_t size;
    struct checkpoint_error *error;
};

static bool fails(struct writing *w, int error, const char *what,
                  const char *name)
{
    w->error->result = CHECKPOINT_FAILED;
    (void)snprintf(w->error->text, sizeof w->error->text,
                   "cannot save revision %llu: %s: %s %s",
                   (unsigned long long)w->m->revision, strerror(error), what,
                   name);
    return false;
}

static bool no_memory(struct checkpoint_error *error)
{
    error->result = CHECKPOINT_MEMORY;
    (void)snprintf(error->text, sizeof error->text,
                   "out of memory for a checkpoint");
    return false;
}

static void seen(void *to, const char *name)
{
    snapshot_add(to, name);
}

bool checkpoint_time(const struct file_layer *files, uint32_t group,
                     uint64_t clock_ns, uint64_t *time_ns,
                     struct checkpoint_error *error)
{
    struct snapshot_list list = {0};
    int failed = files->list(files->user, seen, &list);
    const struct snapshot_name *newest = snapshot_newest(&list, group);
    *time_ns = clock_ns;
    if (newest && newest->time_ns >= clock_ns) *time_ns = newest->time_ns + 1;
    bool memory = list.failed;
    snapshot_free(&list);
    if (memory) return no_memory(error);
    if (failed == 0) return true;
    error->result = CHECKPOINT_FAILED;
    (void)snprintf(error->text, sizeof error->text,
                   "cannot read the directory: %s", strerror(failed));
    return false;
}

/* Writes one tensor and makes its digest. */
static bool write_tensor(struct writing *w, int file, const char *name,
                         uint32_t which)
{
    struct manifest_tensor *t = &w->m->tensors[which];
    const struct checkpoint_data *d = &w->data[which];
    uint64_t size = manifest_size(t);
    uint64_t sum = 0;
    for (uint64_t at = 0; at < size; at += PIECE) {
        uint64_t blocks[PIECE / HASH_BLOCK_SIZE];
        size_t length = size - at < PIECE ? (size_t)(size - at) : PIECE;
        const uint8_t *bytes = (const uint8_t *)d->bytes + at;
        if (d->device) {
            if (!d->get(d->device, w->piece, bytes, length))
                return fails(w, EIO, "reading the device's", t->name);
            bytes = w->piece;
        }
        uint64_t count = hash_block_count(length);
        hash_blocks(bytes, length, 0, count, blocks, 1);
        sum += hash_sum(blocks, at / HASH_BLOCK_SIZE, count);
        int error = w->files->write(w->files->user, file, bytes, length);
        if (error != 0) return fails(w, error, "writing", name);
    }
    t->digest = hash_finish(sum, size);
    return true;
}

static bool write_header(struct writing *w, int file, const char *name)
{
    struct growing_text text = {0};
    uint64_t total = 0;
    int error = 0;
    bool good = manifest_header(w->m, &text, &total);
    if (good)
        error = w->files->write(w->files->user, file, text.bytes, text.size);
    w->size += text.size + total;
    text_free(&text);
    if (!good) {
        w->error->result = CHECKPOINT_FAILED;
        (void)snprintf(w->error->text, sizeof w->error->text,
                       "the tensors are too many for one file, or memory is "
                       "out");
        return false;
    }
    return error == 0 || fails(w, error, "writing", name);
}

static bool write_tensors(struct writing *w, int file, const char *name)
{
    uint32_t *order = malloc((w->m->count + (size_t)1) * sizeof *order);
    if (!order) return no_memory(w->error);
    manifest_order(w->m, order);
    bool good = write_header(w, file, name);
    for (uint32_t i = 0; good && i < w->m->count; i++)
        good = write_tensor(w, file, name, order[i]);
    free(order);
    return good;
}

static bool write_manifest(struct writing *w, int file, const char *name,
                           const struct growing_text *text)
{
    int error = w->files->write(w->files->user, file, text->bytes, text->size);
    w->size += text->size;
    return error == 0 || fails(w, error, "writing", name);
}

/* A new file with the tensors, or (text) the manifest; its bytes are on the
 * disk, and it is open. Otherwise it is removed. */
static bool make_file(struct writing *w, const char *name,
                      const struct growing_text *text, int *made)
{
    const struct file_layer *f = w->files;
    int file = *made = -1;
    int error = f->create(f->user, name, &file);
    if (error != 0) return fails(w, error, "creating", name);
    bool good = text ? write_manifest(w, file, name, text)
                     : write_tensors(w, file, name);
    if (good && (error = f->sync(f->user, file)) != 0)
        good = fails(w, error, "syncing", name);
    if (good) {
        *made = file;
        return true;
    }
    (void)f->close(f->user, file);
    (void)f->remove(f->user, name);
    return false;
}

static bool close_file(struct writing *w, int file, const char *name)
{
    int error = file < 0 ? 0 : w->files->close(w->files->user, file);
    return error == 0 || fails(w, error, "closing", name);
}

/* Gives the file its final name. */
static bool publish(struct writing *w, const char *partial, const char *name)
{
    const struct file_layer *f = w->files;
    int error = f->rename(f->user, partial, name);
    if (error == 0) return true;
    (void)f->remove(f->user, partial);
    return fails(w, error, "naming", name);
}

static bool sync_names(struct writing *w, const char *name)
{
    int error = w->files->sync_names(w->files->user);
    return error == 0 || fails(w, error, "syncing the directory of", name);
}

/* Manifests first: at no moment there is one without its tensors. */
static void remove_old(const struct file_layer *f, uint32_t group, size_t keep)
{
    struct snapshot_list list = {0};
    char name[SNAPSHOT_NAME_MAX];
    bool good = f->list(f->user, seen, &list) == 0 && !list.failed;
    const struct snapshot_name *cut =
        snapshot_nearest(&list, group, snapshot_cut(&list));
    bool removed = false;
    for (int pass = 0; good && pass < 2; pass++) {
        for (size_t i = 0; i < list.count; i++) {
            const struct snapshot_name *n = &list.names[i];
            bool now = (n->kind == SNAPSHOT_MANIFEST) == (pass == 0);
            if (!now || n->group != group ||
                !snapshot_is_old(&list, n, keep, cut))
                continue;
            snapshot_print(n, name);
            removed |= f->remove(f->user, name) == 0;
        }
        if (pass == 0 && removed) good = f->sync_names(f->user) == 0;
    }
    snapshot_free(&list);
}

static bool has_manifest(const struct snapshot_list *l,
                         const struct snapshot_name *of)
{
    bool found = of->kind == SNAPSHOT_MANIFEST;
    for (size_t i = 0; !found && i < l->count; i++) {
        const struct snapshot_name *n = &l->names[i];
        found = n->kind == SNAPSHOT_MANIFEST && n->group == of->group &&
                n->time_ns == of->time_ns && n->revision == of->revision &&
                n->digest == of->digest;
    }
    return found;
}

static int look_for(const struct file_layer *f, const char *name)
{
    uint64_t size;
    int file = -1;
    int error = f->open(f->user, name, &file, &size);
    if (error == 0) (void)f->close(f->user, file);
    return error;
}

/* A living writer may have ended meanwhile. Whoever has ended well has given
 * the manifest its name before he closed his files. */
static bool is_whole(const struct file_layer *f, const struct snapshot_name *of)
{
    struct snapshot_name n = *of;
    char name[SNAPSHOT_NAME_MAX];
    n.kind = SNAPSHOT_MANIFEST;
    snapshot_print(&n, name);
    return look_for(f, name) == 0;
}

/* They go before a save: on a disk without room for them none would ever
 * succeed. */
static void remove_left(const struct file_layer *f, uint32_t group)
{
    struct snapshot_list list = {0};
    char name[SNAPSHOT_NAME_MAX];
    bool good = f->list(f->user, seen, &list) == 0 && !list.failed;
    for (size_t i = 0; good && i < list.count; i++) {
        const struct snapshot_name *n = &list.names[i];
        if (n->group != group || has_manifest(&list, n)) continue;
        snapshot_print(n, name);
        if (f->is_left(f->user, name) && !is_whole(f, n))
            (void)f->remove(f->user, name);
    }
    snapshot_free(&list);
}

static bool write_pair(struct writing *w)
{
    struct manifest *m = w->m;
    struct snapshot_name n = {.time_ns = m->time_ns,
                              .revision = m->revision,
                              .group = m->group,
                              .unique = w->unique,
                              .kind = SNAPSHOT_PARTIAL};
    struct growing_text text = {0};
    char partial[SNAPSHOT_NAME_MAX];
    char tensors[SNAPSHOT_NAME_MAX];
    char manifest[SNAPSHOT_NAME_MAX];
    int tensors_file, manifest_file = -1;
    snapshot_print(&n, partial);
    if (!make_file(w, partial, NULL, &tensors_file)) return false;
    manifest_write(m, &text, &n.digest);
    if (text.failed) {
        (void)close_file(w, tensors_file, partial);
        (void)w->files->remove(w->files->user, partial);
        text_free(&text);
        return no_memory(w->error);
    }
    n.kind = SNAPSHOT_TENSORS;
    snapshot_print(&n, tensors);
    n.kind = SNAPSHOT_MANIFEST;
    snapshot_print(&n, manifest);
    bool good = publish(w, partial, tensors);
    bool named = good;
    bool there = good && sync_names(w, tensors) &&
                 make_file(w, partial, &text, &manifest_file) &&
                 publish(w, partial, manifest);
    good = there && sync_names(w, manifest);
    bool closed = close_file(w, manifest_file, manifest);
    closed &= close_file(w, tensors_file, tensors);
    good = good && closed;
    /* A writer that was stopped for long may find that others have removed its
     * tensors as old ones before the manifest got its name. */
    int missing = there ? look_for(w->files, tensors) : 0;
    if (missing != 0) {
        (void)w->files->remove(w->files->user, manifest);
        good = fails(w, missing, "looking for", tensors);
    }
    if (named && !there) (void)w->files->remove(w->files->user, tensors);
    text_free(&text);
    return good;
}

bool checkpoint_write(const struct file_layer *files, struct manifest *m,
                      const struct checkpoint_data *data, size_t keep,
                      uint64_t unique, uint64_t *size,
                      struct checkpoint_error *error)
{
    struct writing w = {
        .files = files, .m = m, .data = data, .unique = unique, .error = error};
    for (uint32_t i = 0; i < m->count && !w.piece; i++)
        if (data[i].device && !(w.piece = malloc(PIECE)))
            return no_memory(error);
    remove_left(files, m->group);
    remove_old(files, m->group, keep);
    bool good = write_pair(&w);
    free(w.piece);
    *size = w.size;
    if (good) remove_old(files, m->group, keep);
    return good;
}
