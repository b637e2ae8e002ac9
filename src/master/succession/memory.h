/* memory.h - what a coordinator remembers beyond its own life (rules J1 to J4).
 *
 * The machine hands it out before anything follows from it (master_output,
 * `remember`), and takes it back when it begins (master_config, `memory`). */
#ifndef PCCL_MEMORY_H
#define PCCL_MEMORY_H

#include "../../base/base.h"
#include "../../base/wire.h"

enum {
    /* Numbers that may have been given since the last record (J4). */
    MEMORY_ROUNDS_SKIPPED = 1000,
    MEMORY_IDS_SKIPPED = 1 << 16,
};

/* The shared state of a group (rule S4). */
struct master_record {
    bool used;
    uint32_t number; /* of the group */
    uint64_t revision, structure, content;
    uint64_t stamp; /* of the last change; the oldest record is replaced */
};

/* A will (succession.h); borrowed. */
struct memory_will {
    const uint8_t *bytes;
    uint32_t size;
};

/* No memory has a higher term. */
#define MEMORY_TERM_MAX (UINT64_MAX / 2)

struct master_memory {
    uint32_t round;      /* no later one has been installed */
    uint64_t id;         /* of the last peer */
    struct wire_key key; /* of the run */
    uint64_t stamp;      /* none of a record is higher */
    uint32_t record_count;
    struct master_record records[GROUPS_MAX];
    uint64_t term;          /* of the last master (H1) */
    struct wire_key secret; /* of its members' secrets (H4) */
    uint32_t will_count;
    struct memory_will wills[GROUPS_MAX];
};

/* Without wills. */
enum { MEMORY_SIZE_MAX = 128 + 80 * GROUPS_MAX };

size_t memory_size(const struct master_memory *memory); /* at most */
/* Returns the size. */
size_t memory_encode(const struct master_memory *memory, uint8_t *out,
                     size_t room);

/* False: these bytes are not what memory_encode() makes. The wills stay in
 * them. */
bool memory_decode(struct master_memory *memory, const uint8_t *in,
                   size_t size);

/* Rule J4: past all numbers that may have been given since. False: none are
 * left, and no memory has what would follow. */
bool memory_skip(struct master_memory *memory);

#endif
