/* engine.h - the structs of the data plane, for the files of this folder. What
 * others may call: ring.h.
 *
 * Operations (op.c) run plans over links to other peers; a link is a set of
 * connections (conn.c), each a byte stream. No sockets: the driver asks a
 * connection where the next bytes are to go or to come from, moves them, and
 * reports how many. Rules D1.. of master/PROTOCOL.md.
 *
 * User buffers go to and come from the streams directly. Private memory comes
 * from a pool and is bounded: an in-place all-reduce keeps a copy of its
 * input, a flat one has one vector per member, a connection one segment. */
#ifndef PCCL_ENGINE_H
#define PCCL_ENGINE_H

#include "../base/base.h"
#include "../base/dtype.h"
#include "../base/pool.h"
#include "../base/wire.h"
#include "../link/link.h"
#include "../reduce/quant.h"
#include "fast_path.h"
#include "plan.h"
#include "ring.h"
#include "single_copy.h"

enum {
    RESULTS_MAX = 64,        /* returned results kept for others */
    MANY = 3,                /* operations at once: more are many */
    MANY_SIZE = 4096,        /* bytes whose copy costs more than DONE */
    TAG_HEADS = 2 * OPS_MAX, /* of the hash of operations by tag */
    TAGS_MAX = 65536,        /* tags remembered within an epoch */
};

/* ------------------------------------------------------------- operations */

/* One partner of an operation. */
struct endpoint {
    uint32_t rank; /* in the scope */
    struct link *link;
    uint32_t sends, sent;
    uint32_t send_next; /* first that no connection has taken */
    uint32_t recvs, received;
    uint32_t eager; /* bytes sent before `ready` */
    bool ready;     /* the partner is known to have launched */
    bool asked;     /* ... and was told that this end waits to hear it */
    bool done, done_sent, wants_done;
    uint8_t *begun; /* bit set: transfers taken by a connection, if not in
                       order; or NULL */
    struct endpoint_speed speed;
};

struct op {
    enum op_phase phase;
    int result;          /* pcclResult_t */
    bool whole;          /* scope is the whole view */
    bool confirm;        /* returns only when all hold the result (rule D4) */
    bool cleared;        /* every DONE so far was clean */
    bool tells_all;      /* with sites: somebody wants DONE (rule D15) */
    bool mismatch;       /* reported to the master */
    bool fails;          /* this member has asked for that (rule D10) */
    bool awaited;        /* somebody takes the result: not to be found again */
    bool counted;        /* in `active` of the engine */
    bool reserved;       /* in `promised`: a slot for its result */
    struct op *tag_next; /* of this hash value */
    struct op *unsent_prev, *unsent_next; /* see struct op_queue */
    uint32_t unsent;                      /* transfers that have not begun */
    struct op_request r;
    uint32_t epoch, seq; /* with the tag, its name; epoch 0: never started */
    uint32_t contributors;
    uint32_t loss; /* untold losses up to this one are told with the result */
    uint64_t launched; /* engine clock */
    struct plan plan;
    struct endpoint *eps;
    uint32_t ep_count, eps_left;
    void *state;     /* of the plan's algorithm; NULL: it has none */
    uint64_t *scope; /* copy of members */
    size_t *arrays;  /* copy of the four arrays */
    uint32_t done_prev, done_sent; /* ring token: members known to hold it */
    uint64_t tx_bytes, rx_bytes;
    uint64_t mapped_bytes; /* of rx_bytes: read from another's region */
};

static inline bool op_bit_get(const uint8_t *bits, uint32_t i)
{
    return bits[i / 8] >> (i % 8) & 1;
}

static inline void op_bit_set(uint8_t *bits, uint32_t i)
{
    bits[i / 8] = (uint8_t)(bits[i / 8] | 1u << (i % 8));
}

/* Those with something to send, the oldest first: who sends all of one before
 * the next finds the memory of each in the caches, and both ends are at the
 * same one. */
struct op_queue {
    struct op *first, *last;
};

struct cached_result {
    uint64_t tag;
    uint32_t seq;
    uint32_t size, room;
    uint64_t finished; /* engine clock */
    bool replaced;     /* (tag, seq+1) runs and takes this slot */
    uint8_t *bytes;    /* NULL: slot is free */
};

struct tag_entry {
    uint64_t tag;
    uint32_t next;  /* sequence of the next launch, at least 1 */
    uint32_t epoch; /* the slot is free in every other epoch */
    uint8_t cached; /* the retained result of this tag, plus 1; 0: none */
};

/* ------------------------------------------------------------------ engine */

struct engine {
    struct engine_events out;
    struct links links; /* connections, time and what is known of the run */
    uint64_t clock;     /* counts launches and completions */
    uint64_t cached;    /* PLAN_CACHED; the same on all members */
    uint32_t many;      /* MANY */
    uint32_t single_copy_world; /* PLAN_SINGLE_COPY_WORLD_MAX; the same on all
                                   members */
    uint32_t piece;             /* as in a plan; the same on all members */
    const char *forced[COLL_COUNT]; /* algorithms by PCCL_ALGORITHM, or NULL */

    /* The view in force, with what `links` has of it; borrowed from the owner.
     */
    const uint64_t *ids;
    uint32_t rank;
    const uint16_t *order; /* NULL: identity */
    bool ring, mesh;
    uint64_t one_host;  /* of all members; 0: there are several */
    bool has_hierarchy; /* the master knows of sites (rule D15) */
    struct hierarchy hierarchy;

    struct op ops[OPS_MAX];
    uint32_t op_end;
    uint32_t op_free;  /* none below is FREE */
    uint32_t active;   /* RUNNING or HELD */
    uint32_t in_a_row; /* launched since a caller last waited for one */
    /* The caller is launching, and may launch what the next frame in memory is
     * for: it is left there, instead of being kept (rule D2). Whoever waits for
     * anything must not set it, for that may lie behind. */
    bool defers;
    struct op *by_tag[TAG_HEADS];
    struct op_queue shorts, longs; /* small vectors, and all others */
    struct cached_result results[RESULTS_MAX];
    uint64_t results_used;  /* bit set */
    uint32_t reserved;      /* slots that are, or will be, in use */
    struct tag_entry *tags; /* TAGS_MAX */
    uint32_t tag_count;
    bool tags_reported;
    uint32_t turn; /* of short and long operations on a link */
    struct fast_path fast;
    struct single_copy single_copy;
    bool
        single_copy_on; /* members of this host have regions; the same on all */
};

/* As engine_new, in a struct that is zeroed. False: out of memory. */
bool engine_init(struct engine *e, const struct driver *driver,
                 const struct engine_events *events, uint32_t pool_size,
                 pccl_ns deadline);
void engine_free(struct engine *e);
/* Something for op is still to come from this partner, as it seems here. */
bool engine_awaits(const struct op *op, const struct endpoint *ep);

#endif
