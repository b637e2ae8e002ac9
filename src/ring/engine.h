/* engine.h - the data plane of one peer as a pure state machine.
 *
 * Operations (op.c) run plans over links to other peers; a link is a set of
 * connections (conn.c), each a byte stream. No sockets: the driver asks a
 * connection where the next bytes are to go or to come from, moves them, and
 * reports how many. Rules D1.. of master/PROTOCOL.md.
 *
 * User buffers go to and come from the streams directly. Private memory comes
 * from a pool and is bounded: an in-place all-reduce keeps a copy of its
 * input, an exchange one vector per member, a connection one segment. */
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
#include "single_copy.h"

enum {
    RESULTS_MAX = 64,        /* returned results kept for others */
    MANY = 3,                /* operations at once: more are many */
    MANY_SIZE = 4096,        /* bytes whose copy costs more than DONE */
    TAG_HEADS = 2 * OPS_MAX, /* of the hash of operations by tag */
    TAGS_MAX = 65536,        /* tags remembered within an epoch */
};

/* ------------------------------------------------------------- operations */

enum op_phase {
    PHASE_FREE,
    PHASE_QUEUED, /* launched while the epoch is closed */
    PHASE_RUNNING,
    PHASE_COMPLETE, /* result complete here, others may lack it */
    PHASE_DONE,     /* `result` is final; waits for its await */
};

/* Buffers, ids and arrays belong to the caller until the operation is DONE,
 * except `members` and the four arrays, which are copied. */
struct op_request {
    uint64_t tag;
    struct plan_request plan; /* world, rank, mesh, order are filled in */
    const void *send;
    void *recv;
    enum dtype dtype;
    enum redop redop;
    struct quant quant;      /* set by engine_quantize() */
    uint64_t count;          /* quantized: elements; the plan counts blocks */
    uint64_t digest;         /* of everything that must agree */
    const uint64_t *members; /* scope, or NULL: the whole view */
    uint32_t member_count;
};

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
    struct endpoint_speed speed;
};

struct op {
    enum op_phase phase;
    int result;     /* pcclResult_t */
    bool whole;     /* scope is the whole view */
    bool confirm;   /* returns only when all hold the result (rule D4) */
    bool cleared;   /* every DONE so far was clean */
    bool tells_all; /* of a tree: somebody wants DONE */
    bool mismatch;  /* reported to the master */
    bool fails;     /* this member has asked for that (rule D10) */
    bool folded;    /* exchange, star: recv has the result; in place, the slot
                       of one's own rank has what stood there */
    bool direct;    /* exchange of two: what comes is reduced from where it
                       lies, and not from a slot */
    bool awaited;   /* somebody takes the result: not to be found again */
    bool counted;   /* in `active` of the engine */
    bool reserved;  /* in `promised`: a slot for its result */
    struct op *tag_next;                  /* of this hash value */
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
    /* Bit set over the transfers from `prev`; pairwise: over the pieces that
     * are added up here, and then over those whose sum has come to be passed
     * on; lent: over the segments of the own chunk that are sums of all, and
     * then those of which all other sums are here. */
    uint8_t *received;
    uint8_t *begun;  /* ring, bit set: transfers to `next` taken by a connection
                      */
    uint8_t *saved;  /* bit set: transfers whose target is in the backup;
                        pairwise: pieces */
    uint8_t *backup; /* in-place: old content of recv */
    uint8_t *slots;  /* SPACE_SLOT; pairwise: what came before its turn */
    uint8_t *came;   /* pairwise, bit set: (part, segment) is in the slots;
                        lent: by turn and set, where it is (lent.c) */
    uint16_t *turns; /* pairwise, by piece: partners that are summed up; lent:
                        by segment, and then partners whose sums are here */
    uint32_t slot;   /* of the lent memory that it has, plus 1; 0: none */
    uint32_t sums_shared; /* segments of the own chunk whose sums are there */
    bool single_copied;   /* something came through lent memory */
    uint8_t *codes;       /* ring of a quantized vector: its codes */
    uint64_t *scope;      /* copy of members */
    size_t *arrays;       /* copy of the four arrays */
    uint32_t done_prev, done_sent; /* ring token: members known to hold it */
    uint64_t tx_bytes, rx_bytes;
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

enum engine_fault {
    FAULT_BROKEN,      /* a link with work on it broke */
    FAULT_MISMATCH,    /* digests of an operation differ */
    FAULT_FAIL,        /* the owner wants an operation to fail */
    FAULT_UNREACHABLE, /* a connection an operation needs cannot be made */
    FAULT_TAGS,        /* the table of tags is nearly full */
};

/* What the operations report to their owner. */
struct engine_events {
    void *user;
    void (*fault)(void *user, enum engine_fault fault, const struct op *op,
                  uint64_t peer);
    void (*finished)(void *user, struct op *op); /* phase is DONE now */
};

struct engine {
    struct engine_events out;
    struct links links; /* connections, time and what is known of the run */
    uint64_t clock;     /* counts launches and completions */
    uint64_t cached;    /* PLAN_CACHED; the same on all members */
    uint32_t many;      /* MANY */
    uint32_t single_copy_world; /* PLAN_SINGLE_COPY_WORLD_MAX; the same on all
                                   members */
    uint32_t piece;             /* as in a plan; the same on all members */

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
        single_copy_on; /* members of this host lend; the same on all of them */
};

/* The struct is large: allocate it zeroed. pool_size 0: as many connections
 * to a neighbor as its round trip suggests. False: out of memory. */
bool engine_init(struct engine *e, const struct driver *driver,
                 const struct engine_events *events, uint32_t pool_size,
                 pccl_ns deadline);
void engine_free(struct engine *e);

/* For the driver: link/conn.h, of this engine's connections. */
bool engine_accepted(struct engine *e, uint32_t conn);
void engine_dialed(struct engine *e, uint32_t conn, bool success);
void engine_measured(struct engine *e, uint32_t conn, pccl_ns rtt);
bool engine_is_long(const struct engine *e, uint32_t conn);
void engine_closed(struct engine *e, uint32_t conn);
size_t engine_rx_window(struct engine *e, uint32_t conn, uint8_t **to);
bool engine_rx(struct engine *e, uint32_t conn, size_t size);
size_t engine_rx_from(struct engine *e, uint32_t conn, const uint8_t *bytes,
                      size_t size);
void engine_rx_dry(struct engine *e, uint32_t conn);
uint32_t engine_tx_window(struct engine *e, uint32_t conn,
                          struct conn_part parts[2]);
void engine_tx(struct engine *e, uint32_t conn, size_t size);
bool engine_may_send(const struct engine *e, uint32_t conn);
void engine_clear_dirty(struct engine *e, uint32_t conn);

void engine_tick(struct engine *e, pccl_ns now);
/* An operation under way needs a link that has no connection. */
bool engine_lacks_link(const struct engine *e);

/* Operations: op.c. */
struct op *engine_find(struct engine *e, uint64_t tag); /* not FREE */
struct op *engine_launch(struct engine *e, const struct op_request *r,
                         bool queue); /* NULL: no memory or slot */
void engine_start_queued(struct engine *e, struct op *op);
void engine_finish(struct engine *e, struct op *op, int result);
/* Something for op is still to come from this partner, as it seems here. */
bool engine_awaits(const struct op *op, const struct endpoint *ep);
/* An operation is under way. */
bool engine_has_work(const struct engine *e);
/* Bytes that op waits for may arrive on this connection. Also true without an
 * operation, for messages, and before the HELLOs have passed. */
bool engine_expects_from(const struct engine *e, const struct op *op,
                         uint32_t conn);
/* A caller waits for an operation: it launches no others now (rule D4). */
void engine_wait_begins(struct engine *e);
void engine_release(struct engine *e, struct op *op); /* after its await */
/* Makes a complete request for an all-reduce one of codes. */
void engine_quantize(struct op_request *r, enum quant_algorithm algorithm,
                     enum dtype code);

/* The flush (rules F1..F6). */
void engine_freeze(struct engine *e);
uint32_t engine_list(const struct engine *e, const uint64_t *dead,
                     uint32_t dead_count, struct wire_op *out);
void engine_query(const struct engine *e, struct wire_op *op);
/* (tag, seq) has been launched here in this epoch. */
bool engine_is_past(const struct engine *e, uint64_t tag, uint32_t seq);
const uint8_t *engine_donation(const struct engine *e, uint64_t tag,
                               uint32_t seq, uint32_t *size);
void engine_accept_donation(struct engine *e, uint64_t tag, uint32_t seq,
                            const uint8_t *bytes, uint32_t size);
void engine_restore(struct engine *e, struct op *op);

/* The next view is in force; operations that go on are started again by the
 * owner. Forgets tags, retained results and early frames of older epochs. */
struct engine_view {
    uint32_t epoch, world, rank;
    const struct wire_member *members;
    const uint64_t *ids;
    const uint16_t *order;
    const uint16_t *sites; /* NULL: not known */
    bool ring, mesh;
};
void engine_install(struct engine *e, const struct engine_view *view);
bool engine_start(struct engine *e, struct op *op); /* in the view in force */

#endif
