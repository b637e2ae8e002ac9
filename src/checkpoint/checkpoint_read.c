/* checkpoint_read.c - reads a checkpoint. See checkpoint.h.
 *
 * The manifest is read as strictly as it is written. The header of the tensor
 * file must have exactly the bytes that follow from the manifest, so where a
 * tensor lies is computed here and never believed. The file is read twice: once
 * for the digests, and only then into the caller's memory. */
#include "checkpoint.h"

#include "../base/dtype.h"
#include "../hash/hash.h"

#include <errno.h>
#include <string.h>

enum { READ_PIECE = 16 * HASH_BLOCK_SIZE, TRIES = 8 };

struct reading {
    const struct file_layer *files;
    struct manifest *wanted;
    const struct checkpoint_data *data;
    struct manifest found;
    struct checkpoint_error *error;
    uint8_t *piece;               /* READ_PIECE bytes */
    char name[SNAPSHOT_NAME_MAX]; /* of the file that is read */
    int file;
    uint64_t size;
};

static bool refuse(struct reading *r, enum checkpoint_result result,
                   const char *what)
{
    r->error->result = result;
    (void)snprintf(r->error->text, sizeof r->error->text, "%s: %s", r->name,
                   what);
    return false;
}

static bool fails(struct reading *r, int error)
{
    return refuse(r, CHECKPOINT_FAILED,
                  error == ENODATA ? "it is cut off" : strerror(error));
}

static bool no_memory(struct reading *r)
{
    return refuse(r, CHECKPOINT_MEMORY, "out of memory");
}

static void seen(void *to, const char *name)
{
    snapshot_add(to, name);
}

static const struct snapshot_name *pick(const struct snapshot_list *l,
                                        uint32_t group,
                                        enum checkpoint_choice choice,
                                        uint64_t value, uint64_t *cut)
{
    *cut = choice == CHECKPOINT_NEAREST ? value : snapshot_cut(l);
    const struct snapshot_name *n = NULL;
    if (choice == CHECKPOINT_REVISION)
        n = snapshot_revision(l, group, value);
    else if (choice == CHECKPOINT_NEWEST)
        n = snapshot_newest(l, group);
    else
        n = snapshot_nearest(l, group, *cut);
    if (n && choice != CHECKPOINT_NEAREST && choice != CHECKPOINT_CUT)
        *cut = n->time_ns;
    return n;
}

static bool none(struct reading *r, enum checkpoint_choice choice,
                 uint64_t value)
{
    r->error->result = CHECKPOINT_NONE;
    char of[40] = "";
    if (choice == CHECKPOINT_REVISION)
        (void)snprintf(of, sizeof of, " of revision %llu",
                       (unsigned long long)value);
    (void)snprintf(r->error->text, sizeof r->error->text,
                   "there is no checkpoint%s of group %u", of,
                   (unsigned)r->wanted->group);
    return false;
}

/* Opens the manifest that is chosen by. A writer may remove it in between. */
static bool open_chosen(struct reading *r, enum checkpoint_choice choice,
                        uint64_t value, struct snapshot_name *chosen,
                        uint64_t *cut)
{
    const struct file_layer *f = r->files;
    int error = ENOENT;
    for (int i = 0; i < TRIES && error == ENOENT; i++) {
        struct snapshot_list list = {0};
        error = f->list(f->user, seen, &list);
        const struct snapshot_name *n =
            pick(&list, r->wanted->group, choice, value, cut);
        bool memory = list.failed;
        if (n) *chosen = *n;
        snapshot_free(&list);
        (void)snprintf(r->name, sizeof r->name, "the directory");
        if (memory) return no_memory(r);
        if (error != 0) break;
        if (!n) return none(r, choice, value);
        snapshot_print(chosen, r->name);
        error = f->open(f->user, r->name, &r->file, &r->size);
    }
    return error == 0 || fails(r, error);
}

static bool read_manifest(struct reading *r, const struct snapshot_name *chosen)
{
    const struct file_layer *f = r->files;
    char why[120];
    uint64_t digest = 0;
    if (r->size > MANIFEST_SIZE_MAX)
        return refuse(r, CHECKPOINT_FAILED, "it is too large for a manifest");
    char *bytes = malloc((size_t)r->size + 1);
    if (!bytes) return no_memory(r);
    int error = f->read(f->user, r->file, bytes, (size_t)r->size, 0);
    bool good = error == 0 ? manifest_read(&r->found, bytes, (size_t)r->size,
                                           &digest, why, sizeof why) ||
                                 refuse(r, CHECKPOINT_FAILED, why)
                           : fails(r, error);
    free(bytes);
    if (!good) return false;
    const struct manifest *m = &r->found;
    if (digest == chosen->digest && m->group == chosen->group &&
        m->revision == chosen->revision && m->time_ns == chosen->time_ns)
        return true;
    return refuse(r, CHECKPOINT_FAILED, "it is the manifest of another name");
}

static bool differs(struct reading *r, uint32_t i)
{
    const struct manifest *a = r->wanted;
    const struct manifest *b = &r->found;
    char own[80] = "nothing";
    char other[80] = "nothing";
    if (i < a->count)
        (void)snprintf(own, sizeof own, "\"%.30s\" (%llu x %s%s)",
                       a->tensors[i].name,
                       (unsigned long long)a->tensors[i].count,
                       dtype_name((enum dtype)a->tensors[i].dtype),
                       a->tensors[i].free ? ", may differ" : "");
    if (i < b->count)
        (void)snprintf(other, sizeof other, "\"%.30s\" (%llu x %s%s)",
                       b->tensors[i].name,
                       (unsigned long long)b->tensors[i].count,
                       dtype_name((enum dtype)b->tensors[i].dtype),
                       b->tensors[i].free ? ", may differ" : "");
    r->error->result = CHECKPOINT_DIFFERS;
    (void)snprintf(r->error->text, sizeof r->error->text,
                   "entry %u is %s; the checkpoint of revision %llu has %s",
                   (unsigned)i, own, (unsigned long long)b->revision, other);
    return false;
}

/* The same tensors in the same order. */
static bool compare(struct reading *r)
{
    const struct manifest *a = r->wanted;
    const struct manifest *b = &r->found;
    for (uint32_t i = 0; i < a->count || i < b->count; i++) {
        if (i >= a->count || i >= b->count) return differs(r, i);
        const struct manifest_tensor *x = &a->tensors[i];
        const struct manifest_tensor *y = &b->tensors[i];
        if (x->dtype != y->dtype || x->count != y->count ||
            x->free != y->free || strcmp(x->name, y->name) != 0)
            return differs(r, i);
    }
    return true;
}

/* *first: where the bytes of tensors begin. */
static bool read_header(struct reading *r, uint64_t *first)
{
    const struct file_layer *f = r->files;
    struct growing_text text = {0};
    uint64_t total = 0;
    bool good = manifest_header(&r->found, &text, &total);
    char *bytes = good ? malloc(text.size) : NULL;
    *first = text.size;
    if (!bytes)
        good = no_memory(r);
    else if (r->size != text.size + total)
        good = refuse(r, CHECKPOINT_FAILED,
                      "its size is not that of the tensors in its manifest");
    else {
        int error = f->read(f->user, r->file, bytes, text.size, 0);
        if (error != 0)
            good = fails(r, error);
        else if (memcmp(bytes, text.bytes, text.size) != 0)
            good = refuse(r, CHECKPOINT_FAILED,
                          "its header is not that of its manifest: it was "
                          "damaged, or edited");
    }
    free(bytes);
    text_free(&text);
    return good;
}

static bool read_tensor(struct reading *r, uint32_t which, uint64_t first,
                        bool keep)
{
    const struct file_layer *f = r->files;
    const struct manifest_tensor *t = &r->found.tensors[which];
    const struct checkpoint_data *d = &r->data[which];
    uint64_t size = manifest_size(t);
    uint64_t sum = 0;
    for (uint64_t at = 0; at < size; at += READ_PIECE) {
        uint64_t blocks[READ_PIECE / HASH_BLOCK_SIZE];
        size_t length =
            size - at < READ_PIECE ? (size_t)(size - at) : READ_PIECE;
        uint8_t *to = (uint8_t *)d->bytes + at;
        uint8_t *bytes = keep && !d->device ? to : r->piece;
        int error = f->read(f->user, r->file, bytes, length, first + at);
        if (error != 0) return fails(r, error);
        uint64_t count = hash_block_count(length);
        hash_blocks(bytes, length, 0, count, blocks, 1);
        sum += hash_sum(blocks, at / HASH_BLOCK_SIZE, count);
        if (keep && d->device && !d->put(d->device, to, bytes, length))
            return refuse(r, CHECKPOINT_FAILED, "writing to the device");
    }
    if (hash_finish(sum, size) == t->digest) return true;
    r->error->result = CHECKPOINT_FAILED;
    (void)snprintf(r->error->text, sizeof r->error->text,
                   "tensor \"%.40s\" of revision %llu does not have its "
                   "digest: %s was %s",
                   t->name, (unsigned long long)r->found.revision, r->name,
                   keep ? "written to meanwhile; tensors are overwritten"
                        : "damaged, or edited");
    return false;
}

static bool read_tensors(struct reading *r, bool keep)
{
    uint64_t at = 0;
    uint32_t *order = malloc((r->found.count + (size_t)1) * sizeof *order);
    if (!order) return no_memory(r);
    manifest_order(&r->found, order);
    bool good = read_header(r, &at);
    for (uint32_t i = 0; good && i < r->found.count; i++) {
        good = read_tensor(r, order[i], at, keep);
        at += manifest_size(&r->found.tensors[order[i]]);
    }
    free(order);
    return good;
}

static bool read_pair(struct reading *r, struct snapshot_name *chosen)
{
    const struct file_layer *f = r->files;
    bool good = read_manifest(r, chosen) && compare(r);
    (void)f->close(f->user, r->file);
    if (!good) return false;
    uint64_t manifest = r->size;
    chosen->kind = SNAPSHOT_TENSORS;
    snapshot_print(chosen, r->name);
    int error = f->open(f->user, r->name, &r->file, &r->size);
    if (error != 0) return fails(r, error);
    r->piece = malloc(READ_PIECE);
    good = r->piece ? read_tensors(r, false) && read_tensors(r, true)
                    : no_memory(r);
    free(r->piece);
    (void)f->close(f->user, r->file);
    r->size += manifest;
    return good;
}

bool checkpoint_read(const struct file_layer *files, struct manifest *wanted,
                     const struct checkpoint_data *data,
                     enum checkpoint_choice choice, uint64_t value,
                     uint64_t *size, uint64_t *cut_ns,
                     struct checkpoint_error *error)
{
    struct reading r = {
        .files = files, .wanted = wanted, .data = data, .error = error};
    struct snapshot_name chosen = {0};
    bool good = open_chosen(&r, choice, value, &chosen, cut_ns) &&
                read_pair(&r, &chosen);
    if (good) {
        wanted->revision = r.found.revision;
        wanted->time_ns = r.found.time_ns;
        wanted->world = r.found.world;
        for (uint32_t i = 0; i < wanted->count; i++)
            wanted->tensors[i].digest = r.found.tensors[i].digest;
        *size = r.size;
    }
    manifest_free(&r.found);
    return good;
}
