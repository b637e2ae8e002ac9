/* manifest.h - the two documents of a checkpoint, as texts.
 *
 * A checkpoint is a pair of files. The *tensor file* is a safetensors file: the
 * size of its header (8 bytes, little-endian), the header (JSON), the bytes of
 * the tensors. The *manifest* says what they are and what their digests are.
 *
 * Both have one form only. The header follows from the manifest, so no reader
 * here believes an offset of a file: it makes the header anew and compares. The
 * manifest ends with the digest of all bytes before it, and is read as strictly
 * as it is written (manifest_read.c): an edit is refused, be it one of blanks.
 * Everything here is pure: no file is touched, and every byte that comes from
 * one is checked. */
#ifndef PCCL_MANIFEST_H
#define PCCL_MANIFEST_H

#include "../base/base.h"
#include "../base/growing_text.h"

enum {
    MANIFEST_FORMAT = 1,
    MANIFEST_NAME_MAX = 4096, /* bytes of a tensor's name */
    MANIFEST_SIZE_MAX = 256 * 1024 * 1024,
    MANIFEST_HEADER_MAX = 100 * 1000 * 1000, /* of safetensors */
    MANIFEST_TENSORS_MAX = (1 << 26) - 1,
};

struct manifest_tensor {
    const char *name; /* UTF-8, not empty */
    uint64_t count;   /* elements */
    uint64_t digest;  /* hash_bytes() of its bytes, all of them */
    uint8_t dtype;
    bool free; /* members may differ in it */
};

struct manifest {
    uint64_t revision;
    uint64_t time_ns; /* of the copy, since 1970 */
    uint32_t group;
    uint32_t world;                  /* members of the group */
    uint32_t count;                  /* of tensors */
    struct manifest_tensor *tensors; /* owned */
    char *names;                     /* owned; what the names point into */
};

void manifest_free(struct manifest *m);

/* The name that the files use for an entry: its own, or "#PLACE" if it has
 * none, written into `room` (of 16 bytes). */
const char *manifest_name(const char *name, uint32_t place, char *room);

/* Why this name cannot stand in the files; NULL: it can. */
const char *manifest_wrong_name(const char *name);

uint64_t manifest_size(const struct manifest_tensor *t); /* bytes */

/* The order of the tensors in the tensor file: wide elements first, so that
 * each is aligned. `order` has m->count entries. */
void manifest_order(const struct manifest *m, uint32_t *order);

/* Appends the 8 bytes and the header. False: no memory, or the header has more
 * than MANIFEST_HEADER_MAX bytes, or the tensors have more than 2^63. Digests
 * are not used. *total: bytes of all tensors. */
bool manifest_header(const struct manifest *m, struct growing_text *out,
                     uint64_t *total);

/* Appends the manifest; *digest is what it ends with, and what the names of the
 * files have. */
void manifest_write(const struct manifest *m, struct growing_text *out,
                    uint64_t *digest);

/* Reads a manifest of `size` bytes. False: *why is a text of at most 100
 * characters, and *m is empty. *digest as above. */
bool manifest_read(struct manifest *m, const char *bytes, size_t size,
                   uint64_t *digest, char *why, size_t room);

/* The digest that the coordinator knows this state by (rule S4). */
bool manifest_content(const struct manifest *m, uint64_t *content);

#endif
