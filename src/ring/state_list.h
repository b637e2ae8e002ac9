/* state_list.h - the tensors of a shared state, their names and hashes. */
#ifndef PCCL_STATE_LIST_H
#define PCCL_STATE_LIST_H

#include "../base.h"

enum {
    STATE_NAME_MAX = 4096,              /* bytes of a tensor's name */
    STATE_NAMES_MAX = 64 * 1024 * 1024, /* of all of them, encoded */
};

struct state_tensor {
    const char *name; /* data and name are the user's during the call */
    uint8_t *data;
    uint64_t count;
    uint64_t size; /* bytes; any alignment */
    uint8_t dtype;
    bool free; /* may differ between members: neither hashed nor moved */
    uint64_t first, blocks; /* its blocks among those of the list */
};

struct state_list {
    struct state_tensor *tensors;
    uint32_t count;
    uint64_t block_count;
    uint64_t *blocks; /* hash of each block */
    uint64_t *hashes; /* ... and tensor; both big-endian once `wire` */
    bool wire;
    uint8_t *names; /* the encoded structure */
    uint32_t names_size;
    uint64_t structure, content; /* digests: equal on equal members */
};

/* Copies the descriptions (first and blocks are filled in), reads all tensors
 * once with at most `threads` threads (0: all cores), which takes as long as
 * reading takes. False: no memory. */
bool state_list_make(struct state_list *l, const struct state_tensor *tensors,
                     uint32_t count, unsigned threads);
void state_list_free(struct state_list *l);

/* Hashes as they travel; for good. */
void state_list_to_wire(struct state_list *l);
uint64_t state_word(const uint8_t *bytes); /* big-endian */

/* Digest of tensor hashes in wire order. */
uint64_t state_content(const uint8_t *hashes, uint32_t count);

/* Says in one line in what this list differs from another one's names. */
void state_list_explain(const struct state_list *l, const uint8_t *names,
                        uint32_t size, char *text, size_t room);

#endif
