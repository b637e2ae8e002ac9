/* snapshot_name.h - the names of a checkpoint's files, and what follows from
 * the names in a directory: which checkpoint a load takes, which files go.
 *
 *   pccl-gGROUP-tTIME-rREVISION-DIGEST.safetensors      the tensor file
 *   pccl-gGROUP-tTIME-rREVISION-DIGEST.json             the manifest
 *   pccl-gGROUP-tTIME-rREVISION-DIGEST.tmp-UNIQUE       not complete
 *
 * TIME is 20 digits of nanoseconds since 1970, DIGEST 16 hexadecimal digits,
 * that of the manifest. So files of one name have the same bytes, whoever
 * wrote them. A checkpoint is there when its manifest is. Pure. */
#ifndef PCCL_SNAPSHOT_NAME_H
#define PCCL_SNAPSHOT_NAME_H

#include "../base/base.h"

enum { SNAPSHOT_NAME_MAX = 128 };

enum snapshot_kind { SNAPSHOT_MANIFEST, SNAPSHOT_TENSORS, SNAPSHOT_PARTIAL };

struct snapshot_name {
    uint64_t time_ns, revision, digest;
    uint64_t unique; /* of a partial file */
    uint32_t group;
    enum snapshot_kind kind;
};

void snapshot_print(const struct snapshot_name *n, char *text);
/* False: no such name. */
bool snapshot_parse(struct snapshot_name *n, const char *text);

/* The names in a directory. */
struct snapshot_list {
    struct snapshot_name *names; /* owned */
    size_t count, room;
    bool failed; /* out of memory */
};

void snapshot_add(struct snapshot_list *l, const char *text); /* if it is one */
void snapshot_free(struct snapshot_list *l);

/* The latest checkpoint of the group; NULL: none. */
const struct snapshot_name *snapshot_newest(const struct snapshot_list *l,
                                            uint32_t group);
/* The one whose time is nearest; of two, the older. */
const struct snapshot_name *snapshot_nearest(const struct snapshot_list *l,
                                             uint32_t group, uint64_t time_ns);
/* The latest with this revision. */
const struct snapshot_name *snapshot_revision(const struct snapshot_list *l,
                                              uint32_t group,
                                              uint64_t revision);
/* The time up to which all groups have come: that of the newest checkpoint of
 * the group whose newest one is oldest. 0: there is none. */
uint64_t snapshot_cut(const struct snapshot_list *l);

/* Whether the file goes when the latest `keep` checkpoints of its group stay,
 * and `cut`, the one that a load of the cut would take (or NULL). Of older ones
 * all files go: manifests, tensors, what writers that died have left. */
bool snapshot_is_old(const struct snapshot_list *l,
                     const struct snapshot_name *n, size_t keep,
                     const struct snapshot_name *cut);

#endif
