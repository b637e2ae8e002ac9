/* state_list.h - the tensors of a shared state, their names and hashes. */
#ifndef PCCL_STATE_LIST_H
#define PCCL_STATE_LIST_H

#include "../base/base.h"

struct wire_member;

enum {
    STATE_NAME_MAX = 4096, /* bytes of a tensor's name */
    STATE_TENSORS_MAX = (1 << 26) - 1,
    STATE_NAMES_MAX = 64 * 1024 * 1024, /* of all of them, encoded */
};

/* Device memory (a GPU's), which the host cannot touch, as functions of its
 * driver. They block until the work is done and may be called from any
 * thread. */
struct state_device {
    void *user;
    /* blocks[i] = hash of block i of the tensor (hash.h). False: failed. */
    bool (*hash)(void *user, const uint8_t *data, uint64_t size,
                 uint64_t *blocks);
    bool (*read)(void *user, uint8_t *host, const uint8_t *data, uint64_t size);
    bool (*write)(void *user, uint8_t *data, const uint8_t *host,
                  uint64_t size);
    /* Host memory to copy through (pinned); NULL: none left. */
    uint8_t *(*take)(void *user, uint64_t size);
    void (*give)(void *user, uint8_t *host);
};

struct state_tensor {
    const char *name; /* data and name are the user's during the call */
    uint8_t *data;    /* touched only through `device`, if there is one */
    const struct state_device *device; /* NULL: the host's memory */
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
    uint64_t *hashes; /* hash of each tensor; both big-endian once `wire` */
    bool wire;
    uint8_t *names; /* the encoded structure */
    uint32_t names_size;
    uint64_t structure, content; /* digests: equal on equal members */
    const char *failure;         /* of state_list_make() */
};

/* Copies the descriptions (first and blocks are filled in), and reads no
 * tensor: no hash of them is there. False: l->failure is the reason, and
 * nothing is to be freed. */
bool state_list_describe(struct state_list *l,
                         const struct state_tensor *tensors, uint32_t count);

/* Copies the descriptions (first and blocks are filled in) and reads all
 * tensors once with at most `threads` threads (0: all cores). It takes as long
 * as reading takes. False: l->failure is the reason, and nothing is to be
 * freed. */
bool state_list_make(struct state_list *l, const struct state_tensor *tensors,
                     uint32_t count, unsigned threads);
void state_list_free(struct state_list *l);

/* Converts the hashes to wire order, and back. */
void state_list_to_wire(struct state_list *l);
void state_list_to_host(struct state_list *l);
uint64_t state_word(const uint8_t *bytes); /* big-endian */
void state_put_word(uint64_t *slot);       /* big-endian, in its place */

/* Digest of tensor hashes in wire order. */
uint64_t state_content(const uint8_t *hashes, uint32_t count);

/* Describes in one line how the list of a member differs from the names that
 * its group has. */
void state_list_explain(const struct state_list *l, uint32_t rank,
                        const struct wire_member *owner, const uint8_t *names,
                        uint32_t size, char *text, size_t room);

#endif
