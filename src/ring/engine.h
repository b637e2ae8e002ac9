/* engine.h - the structs of the data plane, for the files of this folder. Other
 * folders call ring.h.
 *
 * An operation (op.c) runs a plan over links to other peers. A link is a set of
 * connections (conn.c), and each connection is a byte stream. The data plane
 * has no sockets: the driver asks a connection where the next bytes go to or
 * come from, moves them, and reports their number. Rules D1.. of
 * ALGORITHMS.md.
 *
 * The streams read and write user buffers directly. Private memory comes from a
 * pool and is bounded: an in-place all-reduce has one vector more (op_input.h),
 * a flat one has one per member, and a connection has one segment. */
#ifndef PCCL_ENGINE_H
#define PCCL_ENGINE_H

#include "../base/base.h"
#include "../base/dtype.h"
#include "../base/pool.h"
#include "../base/wire.h"
#include "../link/link.h"
#include "../reduce/quant.h"
#include "algorithm_table.h"
#include "fast_path.h"
#include "op_input.h"
#include "plan.h"
#include "ring.h"
#include "single_copy.h"

enum {
    RESULTS_MAX = 64,        /* results in the result cache */
    TAG_HEADS = 2 * OPS_MAX, /* size of the hash of operations by tag */
    TAGS_MAX = 65536,        /* tags of an epoch that the table can hold */
};

/* ------------------------------------------------------------- operations */

/* Endpoint: the state of an operation for one partner. */
struct endpoint {
    uint32_t rank; /* of the partner, in the scope */
    struct link *link;
    uint32_t sends, sent;     /* to the partner: of the plan; sent */
    uint32_t send_next;       /* first transfer that no connection has taken */
    uint32_t recvs, received; /* from the partner: of the plan; received */
    /* Digests of frames to and from the partner (rule D2c). */
    uint64_t tx_digest, rx_digest;
    uint32_t eager; /* credit that is used or reserved before `ready` (D2b) */
    /* A frame with the right digest has come: the partner has launched, with
     * the same arguments. */
    bool ready;
    bool announced; /* of the launch: it is told, or will be (reserved) */
    bool reserved;  /* the first transfer tells it, and has its credit */
    bool done, done_sent, wants_done; /* received; sent; partner wants it */
    /* Bit set: transfers that connections have taken out of order; or NULL. */
    uint8_t *begun;
    /* Bit set: transfers from the partner that have come, as far as their
     * header. In `came_few` if it has room. */
    uint8_t *came;
    uint8_t came_few[8];
    struct endpoint_speed speed;
};

/* Transfers go between this member and the partner. Otherwise only DONE does.
 */
static inline bool op_exchanges(const struct endpoint *ep)
{
    return ep->sends > 0 || ep->recvs > 0;
}

/* One collective operation, from its launch until its result is taken. */
struct op {
    enum op_phase phase;
    int result;   /* pcclResult_t */
    bool whole;   /* the scope is the whole view */
    bool confirm; /* returns only when all hold the result (rule D4) */
    bool cleared; /* every DONE received so far was clean */
    /* With a hierarchy: one partner wants DONE, so this member sends DONE to
     * all partners (rule D15). */
    bool tells_all;
    bool mismatch; /* this member has reported it to the master */
    /* This member has requested the failure of the operation (rule D10). */
    bool fails;
    pccl_ns blocks_since; /* other operations of its tag (V4a); 0: none */
    /* A caller waits for the result: no other call finds the operation. */
    bool awaited;
    bool counted;        /* is part of `active` of the engine */
    bool reserved;       /* the result cache has a slot for the result */
    struct op *tag_next; /* next operation with this hash value */
    struct op *unsent_prev, *unsent_next; /* see struct op_queue */
    uint32_t unsent; /* transfers that no connection has begun */
    struct op_call r;
    /* Name the operation together with the tag (F3); epoch 0: never started. */
    uint64_t scope_number;
    uint32_t epoch, seq;
    enum op_verdict verdict; /* for the next INSTALL */
    uint32_t dispute;        /* see op_set_dispute() */
    uint32_t contributors;   /* members in the result */
    uint32_t loss; /* the result notifies of all losses up to this epoch */
    struct plan plan;
    struct endpoint *eps;
    uint32_t ep_count, eps_left; /* partners; those with transfers left */
    void *state;   /* of the plan's algorithm; NULL: it has none */
    uint32_t slot; /* of the own region, plus 1; 0: none (rule L8) */
    struct op_input input;
    uint8_t *came;   /* bit sets of the endpoints; NULL: none is large */
    uint64_t *scope; /* copy of r.members */
    size_t *arrays;  /* copy of the four arrays of an all-to-all-v */
    /* Ring: members known to hold the result, as received and as sent. */
    uint32_t done_prev, done_sent;
    uint64_t tx_bytes, rx_bytes;
    uint64_t mapped_bytes; /* of rx_bytes: read from regions of other members */
};

static inline bool op_bit_get(const uint8_t *bits, uint32_t i)
{
    return bits[i / 8] >> (i % 8) & 1;
}

static inline void op_bit_set(uint8_t *bits, uint32_t i)
{
    bits[i / 8] = (uint8_t)(bits[i / 8] | 1u << (i % 8));
}

/* Operations with something to send, the oldest first. A sender that finishes
 * one operation before the next finds its memory in the caches, and both ends
 * work on the same operation. */
struct op_queue {
    struct op *first, *last;
};

struct cached_result {
    uint64_t scope, tag;
    uint32_t seq;
    uint32_t size, room;
    bool old;       /* older than the launch of engine.sweeper */
    bool replaced;  /* the next of this tag runs and takes this slot */
    uint8_t *bytes; /* NULL: slot is free */
};

/* A tag of a scope. */
struct tag_entry {
    uint64_t scope, tag;
    uint32_t next;  /* sequence of the next launch, at least 1 */
    uint32_t epoch; /* in every other epoch the slot is free */
    /* Number of the cached result of this tag, plus 1; 0: none. */
    uint8_t cached;
};

/* ------------------------------------------------------------------ engine */

struct engine {
    struct engine_events out;
    struct links links; /* connections, time and facts about the run */
    /* Of limit.h; tests and the simulator set them, too. The same on all
     * members: */
    uint64_t cached;            /* PLAN_CACHED */
    uint32_t single_copy_world; /* HOST_MESH_MAX */
    uint32_t tree_width;        /* 0: as few as do */
    uint32_t piece;             /* as in a plan */
    /* And: */
    uint32_t many;                  /* MANY_OPS */
    size_t input_large;             /* INPUT_LARGE */
    size_t input_block;             /* INPUT_BLOCK */
    size_t pull_least;              /* PULL_LEAST */
    size_t sums_least;              /* SUMS_LEAST */
    uint32_t sums_looks;            /* SUMS_LOOKS */
    const char *forced[COLL_COUNT]; /* algorithms of PCCL_ALGORITHM, or NULL */

    bool has_hierarchy; /* the master knows the sites (rule D15) */
    struct hierarchy hierarchy;

    struct op ops[OPS_MAX];
    uint32_t op_end;   /* ops from this number on are FREE */
    uint32_t op_free;  /* no op below this number is FREE */
    uint32_t scoped;   /* operations that are not of the whole view */
    uint32_t active;   /* operations with phase RUNNING or COMPLETE */
    uint32_t in_a_row; /* launches since a caller last waited for one */
    /* The caller is launching operations and may launch the operation of the
     * next frame in shared memory: the frame stays there instead of going to
     * the unexpected messages (rule D2). A caller that waits for anything must
     * not set this, because the awaited frame may lie behind. */
    bool defers;
    /* The caller waits for this operation alone, and returns when it is DONE:
     * frames of the next one stay likewise. NULL: for something else. */
    const struct op *goal;
    struct op *by_tag[TAG_HEADS];
    struct op_queue shorts, longs; /* operations on small vectors; all others */
    struct cached_result results[RESULTS_MAX];
    uint64_t results_used; /* bit set over `results` */
    /* Confirmed operation of the whole view that may prove that all hold the
     * old results (rule D7), or NULL. */
    const struct op *sweeper;
    uint32_t reserved; /* slots in use or reserved for a running operation */
    struct tag_entry *tags; /* TAGS_MAX */
    uint32_t tag_count;
    bool tags_reported;
    uint32_t turn; /* counts the turns of short and long operations */
    struct fast_path fast;
    struct single_copy single_copy;
    /* Equal on all members of this host: they have regions; boards, which two
     * have as well; each could have a processor. */
    bool single_copy_on, boards_on, roomy;
};

/* As engine_new, in a zeroed struct. False: out of memory. */
bool engine_init(struct engine *e, const struct driver *driver,
                 const struct engine_events *events, uint32_t pool_size,
                 pccl_ns deadline);
void engine_free(struct engine *e);
/* As far as this member knows, this partner has not sent all of its part of
 * op. */
bool engine_awaits(const struct op *op, const struct endpoint *ep);

#endif
