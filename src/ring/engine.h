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
#include "../link/channel.h"
#include "../link/frame.h"
#include "../link/single_copy.h"
#include "../message/message.h"
#include "plan.h"
#include "../link/probe.h"
#include "../reduce/quant.h"
#include "fast_path.h"
#include "../elastic/state.h"

enum {
    CONNS_MAX = 16384,             /* connections of one communicator */
    STAGE_SIZE = 8192,             /* received bytes that are not parsed yet */
    POOL_HIGH_RTT = 8,             /* connections over a long way */
    POOL_VERY_HIGH_RTT = 16,       /* ... over an ocean */
    EAGER_MAX = 64 * 1024,         /* bytes sent before READY, a transfer */
    EAGER_LINK_MAX = 1024 * 1024,  /* ... and a link */
    UNEXPECTED_MAX = 16 * OPS_MAX, /* early frames kept per link */
    CONTROL_MAX = 8 * OPS_MAX,     /* control frames queued per link */
    RESULTS_MAX = 64,              /* returned results kept for others */
    MANY = 3,                      /* operations at once: more are many */
    MANY_SIZE = 4096,              /* bytes whose copy costs more than DONE */
    TAG_HEADS = 2 * OPS_MAX,       /* of the hash of operations by tag */
    TAGS_MAX = 65536,              /* tags remembered within an epoch */
};

#define NO_CONN UINT32_MAX

/* Round trips from which on a link has several connections: one alone needs
 * many of them to fill it, and providers hold connections to a rate that falls
 * with the distance. Too many fight each other for the queues. */
#define RTT_HIGH (3 * PCCL_MS)
#define RTT_VERY_HIGH (30 * PCCL_MS)

struct engine;

/* ------------------------------------------------------------ connections */

enum conn_state {
    CONN_FREE,
    CONN_DIALED,   /* we called; our HELLO is out or on its way */
    CONN_ACCEPTED, /* somebody called; its HELLO has not come */
    CONN_OPEN,
};

enum conn_sink {
    SINK_NONE,    /* between frames */
    SINK_DISCARD, /* nobody wants the body */
    SINK_HELLO,
    SINK_UNEXPECTED, /* kept until the operation is launched here */
    SINK_OP,         /* straight to the operation */
    SINK_MESSAGE,
    SINK_STATE, /* straight to a tensor of the shared state */
};

struct conn {
    enum conn_state state;
    struct link *link;  /* NULL: ACCEPTED, or for messages */
    struct mlink *peer; /* of a connection for messages */
    pccl_ns last_recv, last_sent;
    struct channel *channel; /* what follows the HELLOs goes through it */
    struct channel *offered; /* in our HELLO; the answer has not come */
    uint32_t generation;     /* of the link, when it was made */
    bool greets;             /* our HELLO is not all out */

    /* receiving */
    uint8_t stage[STAGE_SIZE];
    uint32_t staged, parsed; /* bytes in the stage, of them consumed */
    struct frame rx;
    enum conn_sink sink;
    bool parked;   /* a frame of an epoch to come: waits for INSTALL */
    bool stranger; /* held: a HELLO that may be ahead (rules R3, P2P-2) */
    bool ping;     /* one is due on this very connection */
    uint8_t *rx_to;
    uint32_t rx_left;
    struct op *rx_op;
    struct endpoint *rx_ep;
    struct unexpected *rx_unexpected;
    bool rx_numbered; /* the frame counts in the sequence of messages */
    struct message_block *rx_block;
    struct bulk *rx_bulk;
    bool rx_reduces;  /* the body is reduced from where it lies */
    bool rx_streams;  /* ... or goes past the caches */
    uint8_t *scratch; /* one segment, taken when first needed */
    uint8_t hello[FRAME_HELLO_SIZE];

    /* sending */
    uint8_t tx_head[FRAME_SIZE + FRAME_HELLO_SIZE];
    uint32_t tx_head_size, tx_head_done;
    const uint8_t *tx_from; /* NULL with tx_left > 0: filler */
    uint32_t tx_left;
    struct op *tx_op;
    struct endpoint *tx_ep;
    bool tx_item;                 /* the frame is the next item of `peer` */
    bool tx_state;                /* tx_from is shared state... */
    struct state_stage *tx_stage; /* ... of a device, through here */
    struct conn_region region;
    /* Since the last DATA began: a send was cut short; nothing was to send. */
    bool tx_cut, tx_starved;
};

struct unexpected {
    struct unexpected *next;
    struct frame frame;
    bool complete;
    uint8_t body[];
};

/* One other peer. */
struct link {
    struct link *next;
    uint64_t id;
    uint64_t host;
    struct wire_addr addr;
    bool known;    /* addr is valid: the peer has been in a proposal */
    bool wanted;   /* a proposal needs it (rule R3) */
    bool reversed; /* the one with the higher id calls (rule R3) */
    uint32_t want; /* connections to have, once something needs the link */
    uint32_t open, dialing, failed;
    uint32_t generation; /* the caller has closed all of lower ones (R3) */
    pccl_ns wanted_at;
    pccl_ns rtt; /* shortest seen by its callers, 0: unknown */
    struct unexpected *unexpected, **unexpected_end;
    uint32_t unexpected_count;
    size_t unexpected_bytes;
    size_t eager_bytes; /* sent, and not known to be launched over there */
    struct link_speed speed;
    struct frame *control; /* ring of CONTROL_MAX, taken when first needed */
    uint32_t control_first, control_count;
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

struct engine_output {
    void *user;
    /* Start connecting; a connection number, or NO_CONN if impossible now.
     * Then engine_dialed(). */
    uint32_t (*dial)(void *user, const struct wire_addr *addr);
    void (*close)(void *user, uint32_t conn);
    void (*fault)(void *user, enum engine_fault fault, const struct op *op,
                  uint64_t peer);
    void (*finished)(void *user, struct op *op); /* phase is DONE now */
    void (*event)(void *user);      /* message_take() has something; or NULL */
    void (*state_over)(void *user); /* state.outcome says how */
    /* Rule L1; all may be NULL, and give NULL: no shared memory here. Memory
     * for a connection that we call on, and what the HELLO says of it; */
    struct channel *(*share)(void *user, uint32_t conn,
                             struct channel_offer *offer);
    /* memory that the caller of a connection offers; */
    struct channel *(*join)(void *user, uint32_t conn,
                            const struct channel_offer *offer);
    /* and whether the other end took what share() gave. */
    void (*shared)(void *user, uint32_t conn, bool taken);
    /* Rule L7: this member's memory for lending, made when first asked for,
     * and how others find it; or NULL. */
    uint8_t *(*region_export)(void *user, struct channel_offer *offer);
    /* The memory that the other end of a connection lends: SINGLE_COPY_SIZE
     * bytes to read, until the connection is closed; or NULL. */
    const uint8_t *(*region_attach)(void *user, uint32_t conn,
                                    const struct channel_offer *offer);
    /* Rule P2P-9: copies from a member's memory, or NULL. False: it cannot be
     * read, or the member may have gone before all of it was. */
    bool (*cma_read)(void *user, uint32_t conn,
                     const struct wire_member *member, uint64_t address,
                     void *to, size_t size);
    void (*probed)(void *user, uint32_t step, const struct wire_edge *edge);
    /* Rule P2P-10: has the member asked to call; false, or NULL: nobody can
     * pass that on. */
    bool (*ask)(void *user, uint64_t member, uint32_t dials, uint32_t heard);
};

struct engine {
    struct engine_output out;
    struct pool pool;
    pccl_ns now, deadline;
    uint64_t clock; /* counts launches and completions */
    uint64_t self, host;
    struct wire_key key;
    uint32_t pool_size; /* connections to a ring neighbour, at least */
    bool pool_auto;     /* more of them to one that is far away (rule R3) */
    bool high_rtt;      /* somebody is RTT_HIGH away: a ring is a long one */
    uint64_t cached;    /* PLAN_CACHED; the same on all members */
    uint32_t many;      /* MANY */
    uint32_t single_copy_world; /* PLAN_SINGLE_COPY_WORLD_MAX; the same on all
                                   members */
    uint32_t piece;             /* as in a plan; the same on all members */

    bool frozen; /* between FLUSH and INSTALL */
    uint32_t epoch;
    /* The view in force; borrowed from the owner. */
    const struct wire_member *members;
    const uint64_t *ids;
    uint32_t world, rank;
    const uint16_t *order; /* NULL: identity */
    bool ring, mesh;
    uint64_t one_host;  /* of all members; 0: there are several */
    bool has_hierarchy; /* the master knows of sites (rule D15) */
    struct hierarchy hierarchy;

    struct conn *conns[CONNS_MAX];
    uint32_t conn_end;
    struct link *links[1024]; /* hash by id */
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
    uint32_t generation; /* of links, the highest */
    uint64_t *dirty; /* bit set over conns that may have something to send */
    uint32_t turn;   /* of short and long operations on a link */
    struct fast_path fast;
    struct single_copy single_copy;
    bool
        single_copy_on; /* members of this host lend; the same on all of them */
    struct messages messages;
    struct state_sync state;
    struct probe probe;
    uint8_t trash[64 * 1024]; /* where unwanted bodies go */
};

/* The struct is large: allocate it zeroed. pool_size 0: as many connections
 * to a neighbour as its round trip suggests. False: out of memory. */
bool engine_init(struct engine *e, const struct engine_output *out,
                 uint32_t pool_size, pccl_ns deadline);
void engine_free(struct engine *e);

/* Connections: conn.c. A number comes from the driver (its table index). */
bool engine_accepted(struct engine *e, uint32_t conn);
void engine_dialed(struct engine *e, uint32_t conn, bool success);
/* How long the other end took to answer: after engine_accepted, or before
 * engine_dialed. */
void engine_measured(struct engine *e, uint32_t conn, pccl_ns rtt);
/* Part of a ring that may lead far away, even if it is short itself: what waits
 * in its queues keeps all the others waiting. */
bool engine_is_long(const struct engine *e, uint32_t conn);
void engine_closed(struct engine *e, uint32_t conn);
/* Where received bytes go; 0: do not read now. */
size_t engine_rx_window(struct engine *e, uint32_t conn, uint8_t **to);
/* False: the bytes break the protocol; the connection was closed. */
bool engine_rx(struct engine *e, uint32_t conn, size_t size);
/* Takes bytes from where they lie, as many as can be used now; fewer when the
 * connection is held, or was closed, or (`defers`) what follows is of an
 * operation that has yet to be launched here. */
size_t engine_rx_from(struct engine *e, uint32_t conn, const uint8_t *bytes,
                      size_t size);
/* What to send next, at most two parts; 0: nothing. Stable until engine_tx. */
struct engine_part {
    const uint8_t *from;
    size_t size;
};
uint32_t engine_tx_window(struct engine *e, uint32_t conn,
                          struct engine_part parts[2]);
void engine_tx(struct engine *e, uint32_t conn, size_t size);
bool engine_may_send(const struct engine *e, uint32_t conn);
void engine_clear_dirty(struct engine *e, uint32_t conn);
/* Everything that had arrived has been read. */
void engine_rx_dry(struct engine *e, uint32_t conn);
void engine_tick(struct engine *e, pccl_ns now);

/* Links (rule R3). */
void engine_want_link(struct engine *e, const struct wire_member *m,
                      uint32_t connections);
void engine_unwant_links(struct engine *e);
/* Who calls whom, against the order of ids: of all links, or of one. Closes
 * the connections of a link whose caller changes. */
void engine_set_directions(struct engine *e, const struct wire_pair *pairs,
                           uint32_t count);
void engine_set_direction(struct engine *e, uint64_t id, bool calls);
enum link_status { LINK_WAITS, LINK_OPEN, LINK_FAILED };
enum link_status engine_link_status(struct engine *e, uint64_t id);
void engine_drop_link(struct engine *e, uint64_t id);
/* Closes what probes opened and nobody wants now. */
void engine_close_unwanted(struct engine *e);
void engine_close_all(struct engine *e);
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
void engine_release(struct engine *e, struct op *op); /* after its await */
/* Makes a complete request for an all-reduce one of codes. */
void engine_quantize(struct op_request *r, enum quant_algorithm algorithm,
                     enum dtype code);

/* The flush (rules F1..F6). */
void engine_freeze(struct engine *e);
uint32_t engine_list(const struct engine *e, const uint64_t *dead,
                     uint32_t dead_count, struct wire_op *out);
void engine_query(const struct engine *e, struct wire_op *op);
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

/* --- shared by the files of this folder only --- */
struct link *link_find(struct engine *e, uint64_t id, bool create);
void link_dial(struct engine *e, struct link *l);
/* From now on, as many connections as a ring over the link has. */
void link_widen(const struct engine *e, struct link *l);
/* Whether this end calls (rule R3). */
static inline bool link_dials(const struct engine *e, const struct link *l)
{
    return (e->self < l->id) != l->reversed;
}
bool link_control(struct engine *e, struct link *l, const struct frame *f);
void link_dirty(struct engine *e, const struct link *l);
void link_drop_unexpected(struct engine *e, struct link *l);
void conn_stop_receiving(struct engine *e, const struct op *op);
void conn_forget_op(struct engine *e, const struct op *op);
void conn_cut_sending(struct engine *e, const struct op *op);
/* Of one link or (NULL) of all: what comes in of shared state is thrown away;
 * what goes out is filled up, if `sending`. */
void conn_forget_state(struct engine *e, const struct link *l, bool sending);
void conn_resume(struct engine *e);
void conn_resume_one(struct engine *e, uint32_t number);
void conn_dirty(struct engine *e, uint32_t number);
void conn_reject(struct engine *e, uint32_t number);
void engine_apply_unexpected(struct engine *e, struct op *op,
                             struct endpoint *ep);
struct op *op_find(struct engine *e, uint64_t tag, uint32_t seq);
/* NULL: not seen in this epoch. */
struct tag_entry *op_tag_entry(const struct engine *e, uint64_t tag);
bool op_take_sequence(struct engine *e, uint64_t tag, uint32_t *seq);
/* Reserves a slot for the result of an operation of this tag, if there is one.
 */
bool op_reserve_result(struct engine *e, struct op *op);
void op_release_result(struct engine *e, struct op *op);
bool op_cache_result(struct engine *e, struct op *op, uint32_t size);
struct cached_result *op_cached_result(struct engine *e,
                                       uint64_t tag); /* or NULL */
void op_drop_results(struct engine *e);               /* all of them */
void op_drop_older(struct engine *e, uint64_t tag, uint32_t seq);
void op_drop_finished_before(struct engine *e, uint64_t launched);
bool op_is_past(const struct engine *e, uint64_t tag, uint32_t seq);
struct endpoint *op_endpoint(struct op *op, const struct link *l);
/* Rule D2: such a transfer may be sent before READY. */
bool op_eager_fits(const struct endpoint *ep, uint32_t size);
void op_control_send(struct engine *e, const struct op *op, struct endpoint *ep,
                     enum frame_type type, uint32_t index, uint8_t flags);
/* op_send.c: next DATA frame for the connection; false: nothing can be sent
 * now. */
bool op_next_send(struct engine *e, struct conn *c, struct frame *f,
                  const uint8_t **from, struct op **op, struct endpoint **ep);
void op_sent(struct engine *e, struct op *op, struct endpoint *ep);
/* The partner is known to have launched. */
void op_endpoint_ready(struct engine *e, struct endpoint *ep);
/* queue.c: operations by tag, and those with something to send. */
void op_enter(struct engine *e, struct op *op); /* has its tag now */
void op_leave(struct engine *e, struct op *op);
/* Under way; with as many transfers to send as its lanes say. */
void op_begin_sending(struct engine *e, struct op *op);
void op_unqueue(struct engine *e, struct op *op);
void op_end_activity(struct engine *e, struct op *op);
bool op_agrees(struct engine *e, struct op *op, const struct frame *f,
               uint64_t peer);
enum op_accept { ACCEPT_DISCARD, ACCEPT_BODY };
/* Without scratch *to stays NULL for a body that is to be reduced. */
enum op_accept op_accept(struct engine *e, struct op *op, struct endpoint *ep,
                         const struct frame *f, uint8_t *scratch, uint8_t **to);
void op_received(struct engine *e, struct op *op, struct endpoint *ep,
                 const struct frame *f, const uint8_t *body);
/* Part of a body that is reduced as it comes; `at` bytes came before. */
void op_reduce(struct op *op, const struct endpoint *ep, const struct frame *f,
               size_t at, const uint8_t *bytes, size_t size);
void op_control(struct engine *e, struct op *op, struct endpoint *ep,
                const struct frame *f);
/* fold.c: the results of small all-reduces. */
void op_fold(struct op *op); /* slots to recv */
/* The same for an exchange of two, as it comes: first, and then each part. */
void op_fold_begin(struct op *op);
void op_reduce_two(struct op *op, size_t at, const uint8_t *bytes, size_t size);
void op_fold_star(struct engine *e, struct op *op); /* something came */
void op_take_result(struct op *op); /* what came from the center of a star */

/* pairwise.c: the sum of one's own chunk, partner by partner (rule D3), and of
 * the own site's parts of others (rule D15). */
bool op_pairwise_take(struct engine *e, struct op *op);
/* Where what comes before its turn goes; NULL: it is its turn. */
uint8_t *op_pairwise_slot(const struct op *op, const struct endpoint *ep,
                          uint32_t k);
/* lent.c: the same of an all-reduce through lent memory. */
bool op_single_copy_take(struct engine *e, struct op *op);
uint8_t *op_single_copy_slot(const struct op *op, const struct endpoint *ep,
                             uint32_t k);
/* A frame with FLAG_SINGLE_COPY for an operation that is launched here. */
void op_single_copy(struct engine *e, struct op *op, struct endpoint *ep,
                    const struct frame *f);
/* `f` has the transfer's size, also where FLAG_SINGLE_COPY says that it lies in
 * lent memory. */
void op_single_copy_received(struct engine *e, struct op *op,
                             const struct endpoint *ep, const struct frame *f,
                             const uint8_t *body);
/* Bytes from `at` on of the part of a piece whose turn it is. */
void op_pairwise_add(struct op *op, uint32_t piece, uint32_t turn, size_t at,
                     const uint8_t *bytes, size_t size);
/* `body` is what op_pairwise_slot said, or else was reduced if NULL. */
void op_pairwise_received(struct engine *e, struct op *op,
                          const struct endpoint *ep, const struct frame *f,
                          const uint8_t *body);

/* op_restore.c */
bool op_in_place(const struct op *op);
/* Before the first write to the target of transfer k from `prev`. */
void op_save(struct op *op, uint32_t k, const struct plan_xfer *x);
/* Pairwise: before every write to a piece; and of all that is left. */
void op_save_piece(struct op *op, uint32_t piece);
void op_save_pieces(struct op *op);

/* Quantized all-reduces: op_quant.c (rule D8). */
bool op_is_quantized(const struct op *op);
size_t op_vector_size(const struct op *op); /* bytes of the caller's vector */
uint64_t op_result_size(const struct op *op);
void op_to_elements(const struct op *op, struct plan_xfer *x);
bool op_quant_take(struct engine *e, struct op *op);
void op_quant_begin(struct op *op);
const uint8_t *op_quant_source(struct op *op, const struct plan_xfer *x);
void op_quant_received(struct op *op, uint32_t k, const struct plan_xfer *x,
                       const uint8_t *body);
void op_quant_fold(struct op *op);
const struct wire_member *engine_member(const struct engine *e, uint64_t id);
bool op_uses_link(const struct engine *e, const struct link *l,
                  const struct op **which);

#endif
