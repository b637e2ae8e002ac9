/* mismatch.h - calls of a collective in which the members disagree on one
 * argument, for test_mismatch.c. */
#ifndef PROC_MISMATCH_H
#define PROC_MISMATCH_H

#include "pccl.h"

#include "../../../src/ring/plan.h"

enum { MISMATCH_WORLD_MAX = 5 };

/* The call of one member. */
struct member_call {
    pcclCollectiveKind_t kind;
    size_t bytes; /* of the vector or block; of each pair of an all-to-all */
    pcclDataType_t datatype;
    pcclRedOp_t op;
    int root;
    pcclQuantizationAlgorithm_t quantization;
    pcclDataType_t code;
    uint64_t user_digest;
    int scope_count; /* 0: the whole view */
    int scope[MISMATCH_WORLD_MAX];
    size_t send[MISMATCH_WORLD_MAX], recv[MISMATCH_WORLD_MAX];
};

struct mismatch {
    char name[128];
    const char *field; /* on which they disagree */
    struct member_call calls[MISMATCH_WORLD_MAX];
};

struct mismatch_list {
    int world;
    bool tcp;
    size_t count, room;
    struct mismatch *cases; /* the caller frees them */
};

/* Every argument of every collective but the scope, at every size of
 * borders.h. */
void mismatch_every(struct mismatch_list *list, int world, bool tcp);
/* Scopes. Some are found to differ only when half of the deadline has passed.
 */
void mismatch_scopes(struct mismatch_list *list, int world, bool tcp);
/* Every argument of one collective that any algorithm of it takes, at a few
 * sizes. */
void mismatch_few(struct mismatch_list *list, enum plan_coll coll, int world,
                  bool tcp);

/* Whether the text of the error names an argument on which they disagree, its
 * values, and ranks that have them. ids: of the members, by rank. */
bool mismatch_text_is_right(const struct mismatch *m, int world,
                            const uint64_t *ids, const char *text);

size_t mismatch_element(pcclDataType_t type);

#endif
