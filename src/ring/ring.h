/* ring.h - the face of this folder: the collective operations of one member, as
 * a pure state machine, for the session and the driver. The structs are in
 * engine.h and op.h.
 *
 * An operation is launched, runs over the links, and ends with phase DONE.
 * Rules D and F: see src/README.md. */
#ifndef PCCL_RING_H
#define PCCL_RING_H

#include "../base/base.h"
#include "../base/dtype.h"
#include "../base/wire.h"
#include "../link/links.h"
#include "../link/view.h"
#include "../reduce/quant.h"
#include "plan.h"

struct engine;
struct op;

enum op_phase {
    PHASE_FREE,
    PHASE_QUEUED, /* launched while the epoch is closed */
    PHASE_RUNNING,
    PHASE_COMPLETE, /* the result is complete here; others may lack it */
    PHASE_DONE,     /* `result` is final; the operation waits for its await */
};

/* A call as an operation keeps it. Buffers and ids belong to the caller until
 * the operation is DONE; `members` is copied. */
struct op_call {
    uint64_t tag;
    const void *sendbuf;
    void *recvbuf;
    enum dtype dtype;
    enum redop redop;
    struct quant quant; /* set by engine_quantize() */
    uint64_t count;  /* elements; the plan of a quantized one counts blocks */
    uint64_t digest; /* of all arguments that must agree */
    const uint64_t *members; /* scope, or NULL: the whole view */
    uint32_t member_count;
    /* What the text of a disagreement names (rule F9); the caller's. */
    const struct pcclArgument_t *named;
    uint32_t named_count;
    uint64_t user_digest;
};

/* What a launch takes. Of the plan the engine fills in world, rank, mesh, order
 * and all that the view says; its four arrays are copied. */
struct op_request {
    struct plan_request plan;
    struct op_call call;
};

/* What a look at something under way has found. */
enum look {
    LOOK_IDLE,  /* nothing has changed */
    LOOK_MOVED, /* bytes moved: the idle count begins again */
    LOOK_DONE,
    LOOK_ELSE, /* there is other work than to look again */
};

enum engine_fault {
    FAULT_BROKEN,      /* a link with work on it broke */
    FAULT_MISMATCH,    /* digests of an operation differ */
    FAULT_FAIL,        /* the owner wants an operation to fail */
    FAULT_UNREACHABLE, /* a connection an operation needs cannot be made */
    FAULT_TAGS,        /* the table of tags is nearly full */
};

/* The operations report these events to their owner. */
struct engine_events {
    void *user;
    void (*fault)(void *user, enum engine_fault fault, const struct op *op,
                  uint64_t peer);
    void (*finished)(void *user, struct op *op); /* phase is DONE now */
};

/* pool_size 0: the round trip to a neighbor decides the number of connections.
 * NULL: out of memory. */
struct engine *engine_new(const struct driver *driver,
                          const struct engine_events *events,
                          uint32_t pool_size, pccl_ns deadline);
void engine_delete(struct engine *e); /* NULL is allowed */
struct links *engine_links(struct engine *e);

/* For the driver: the functions of link/conn.h, for the connections of this
 * engine. */
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
/* Does so for 64 connections, as the bits of a word: those of number 64 * word
 * and above. */
uint64_t engine_may_send_word(const struct engine *e, uint32_t word);
void engine_clear_dirty(struct engine *e, uint32_t conn);

void engine_tick(struct engine *e, pccl_ns now);
/* An operation under way needs a link that has no connection. */
bool engine_lacks_link(const struct engine *e);

/* Children of a member in the tree of the view (rule D17). */
uint32_t engine_tree_width(const struct engine *e);

/* PCCL_ALGORITHM (algorithm_table.h) forces algorithms. False: it names one
 * that does not exist. All members must have the same value. Where a forced
 * algorithm does not fit an operation, the table chooses; engine_unfit()
 * returns the reason and sets the name, or returns NULL. */
bool engine_force(struct engine *e, const char *text);
const char *engine_unfit(const struct engine *e, const struct op_request *r,
                         const char **name);
const char *engine_forced(const struct engine *e, enum plan_coll coll);
/* Names for PCCL_ALGORITHM, by number; NULL after the last. */
const char *engine_algorithm_name(uint32_t i);
/* What to use in the place of a name that is not understood any more, or
 * NULL. */
const char *engine_algorithm_gone(const char *text);

/* Which collective carries out another one, or a scan, best: choose.h. Of `way`
 * coll, flow and `count` bytes are set, and of a scope its members as `world`;
 * sets coll and flow. The same on all members. */
void engine_choose(const struct engine *e, bool scoped,
                   struct plan_request *way);

/* Operations: op.c. A tag is in flight here in one scope at a time. */
struct op *engine_find(struct engine *e, uint64_t tag); /* not FREE */
struct op *engine_launch(struct engine *e, const struct op_request *r,
                         bool queue); /* NULL: no memory or no slot */
/* Without success the input is as it was at the launch (contract C2). */
void engine_finish(struct engine *e, struct op *op, int result);
void engine_release(struct engine *e, struct op *op); /* after its await */
/* Turns a complete request for an all-reduce into a quantized one. */
void engine_quantize(struct op_request *r, enum quant_algorithm algorithm,
                     enum dtype code);

/* The flush (rules F1..F6). */
void engine_freeze(struct engine *e);
/* Lists the operations under way and the sets of their scopes in a message;
 * `ops` has OPS_MAX places. False: out of memory. engine_listed() frees the
 * sets. */
bool engine_list(struct engine *e, struct wire_msg *msg, struct wire_op *ops);
void engine_listed(struct engine *e, struct wire_msg *msg);
/* Rule V4a, at each heartbeat. True: frames are here of operations that this
 * member has not launched. age: so long operations have been under way here
 * for which it cannot launch some of those; 0: there are none. */
bool engine_blocked(struct engine *e, pccl_ns now, pccl_ns *age);
void engine_query(const struct engine *e, struct wire_op *op);
/* Rule W1: lists what is under way here, what a call waits for first, at most
 * WIRE_UNDER_WAY_MAX operations; their ages are not set. The sets of their
 * scopes go to `sets`, which has room for as many as operations, zeroed, of
 * set_size bytes each. */
uint32_t engine_waits(const struct engine *e, struct wire_wait *waits,
                      uint8_t *sets, uint32_t set_size, uint32_t *set_count);
/* This member has launched the operation in this epoch. */
bool engine_is_past(const struct engine *e, uint64_t scope, uint64_t tag,
                    uint32_t seq);
const uint8_t *engine_donation(const struct engine *e, uint64_t scope,
                               uint64_t tag, uint32_t seq, uint32_t *size);
void engine_accept_donation(struct engine *e, uint64_t scope, uint64_t tag,
                            uint32_t seq, const uint8_t *bytes, uint32_t size);

/* The next view is in force, and has one reference more. Removes tags, cached
 * results and unexpected messages of older epochs. The owner starts the
 * operations that go on again. */
void engine_install(struct engine *e, const struct view *view);
/* Starts an operation in the view in force. False: no memory, and nothing has
 * happened. */
bool engine_start(struct engine *e, struct op *op);
/* After that: the others may start it, so it takes part without sending
 * anything, and asks to fail (rule D10). False: the table of tags is full. */
bool engine_start_failing(struct engine *e, struct op *op);

/* State of an operation. */
enum op_phase op_phase(const struct op *op);
static inline bool op_is_done(const struct op *op)
{
    return op_phase(op) == PHASE_DONE;
}
/* The operation is running, or it is complete while others may lack the
 * result. */
bool op_is_active(const struct op *op);
bool op_is_whole(const struct op *op); /* its scope is the whole view */
enum plan_coll op_coll(const struct op *op);
/* Bytes that it has read from the memory of other members. */
uint64_t op_mapped(const struct op *op);
struct wire_op op_name(const struct op *op); /* scope, tag and sequence */
const uint64_t *op_scope(const struct op *op, uint32_t *count);
/* The arguments of the call; of an all-to-all the bytes to and from that
 * member, which may be this one. `named`: ARGUMENTS_SIZE bytes that they
 * borrow. */
void op_describe(const struct engine *e, const struct op *op, uint64_t other,
                 struct wire_args *args, uint8_t *named);
void op_set_loss(struct op *op, uint32_t epoch);
/* The master's verdict, which counts at INSTALL; ABORT in a new epoch. */
void op_set_verdict(struct op *op, enum op_verdict verdict);
enum op_verdict op_verdict_of(const struct op *op);
/* A number that the driver finds again in the operation; 0 at first: of the
 * text about members that disagree (rule F9). */
void op_set_dispute(struct op *op, uint32_t number);
uint32_t op_dispute(const struct op *op);
/* A caller waits for the result: no other call finds the operation. */
bool op_is_awaited(const struct op *op);
void op_set_awaited(struct op *op, bool awaited);
/* Rule D10: this member wants the operation to fail. It reports this once an
 * epoch, or in any case if `again`. */
void engine_fail(struct engine *e, struct op *op, bool again);
bool op_fails(const struct op *op);
/* What a driver tells of an operation: op_look.c. */
struct op_look {
    struct wire_op name;
    uint32_t epoch; /* that belongs to the name; 0: it has never started */
    enum plan_coll coll;
    const char *caller; /* name of the function that the caller implements with
                           it, borrowed from the call; or NULL */
    uint64_t bytes;     /* of the result */
    uint32_t missing;   /* partners that it waits for */
    uint64_t partner;   /* the first of them */
    struct plan_reason reason; /* of the algorithm */
};
void op_look(const struct op *op, struct op_look *look);
/* A link to one of its partners is not open. */
bool op_lacks_link(const struct op *op);
/* The fast operation of this request has just ended; `partner` came last. */
void fast_look(const struct engine *e, const struct op_request *r,
               struct op_look *look);
/* Bytes that all fast operations have sent and received, with headers. */
void fast_total(const struct engine *e, uint64_t *tx, uint64_t *rx);

/* Takes the result of a DONE operation and frees the operation. */
struct op_outcome {
    int result;
    uint32_t contributors;
    /* The result notifies of all losses up to this epoch; 0: none. */
    uint32_t loss;
    uint64_t tx_bytes, rx_bytes;
};
struct op_outcome engine_take(struct engine *e, struct op *op);

/* All operations: numbers 0 to engine_op_end - 1. NULL: the number is free. */
uint32_t engine_op_end(const struct engine *e);
struct op *engine_op(struct engine *e, uint32_t number);
bool engine_has_work(const struct engine *e); /* one is active */
/* No operation can be launched, of the whole view or `scoped`. */
bool engine_is_full(const struct engine *e, bool scoped);
/* Sets the bits of the connections of links on which bytes for op may
 * arrive. */
void engine_expect(const struct engine *e, const struct op *op, uint64_t *set);
/* The caller is launching operations and may launch the operation of the next
 * frame in shared memory: the frame stays there instead of going to the
 * unexpected messages (rule D2). A caller that waits for anything must not set
 * this, because the awaited frame may lie behind. */
void engine_set_defers(struct engine *e, bool defers);
/* The caller waits for this operation alone: when it is DONE, frames of the
 * next one stay likewise. NULL: for something else. */
void engine_set_goal(struct engine *e, const struct op *op);
/* A caller waits for an operation and launches no others now (rule D4). */
void engine_wait_begins(struct engine *e);

/* The fast path (fast_path.h) begins a small operation without a launch. It
 * uses the request until the operation is done or converted. False: nothing has
 * happened, and the caller uses engine_launch(). */
bool fast_start(struct engine *e, const struct op_request *r);
/* LOOK_DONE: the result is complete, and cached or confirmed. LOOK_ELSE:
 * another frame or event has come: convert. */
enum look fast_poll(struct engine *e);
/* Makes an operation of the fast one under way. NULL: out of memory. */
struct op *fast_convert(struct engine *e);
/* Connection i that the fast path uses; NO_CONN after the last. */
uint32_t fast_conn(const struct engine *e, uint32_t i);
/* Connections i, as a bit set, that it has written to since the last call: the
 * caller rings their doorbells. */
uint64_t fast_written(struct engine *e);
/* Bytes that the last fast operation has sent and received. */
void fast_bytes(const struct engine *e, uint64_t *tx, uint64_t *rx);

#endif
