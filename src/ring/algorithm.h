/* algorithm.h - what an algorithm of a collective is: one struct, which a file
 * of its own fills in, and a row or more of algorithm_table.c.
 *
 * The first part is arithmetic, which a plan asks (plan.h). The second acts on
 * an operation under way; the algorithm keeps what it knows of it in
 * `op->state`, a struct of its own. The rest of the operation is op.c's: links,
 * frames, credit, completion, results kept for others. */
#ifndef PCCL_ALGORITHM_H
#define PCCL_ALGORITHM_H

#include "plan.h"

struct conn;
struct endpoint;
struct engine;
struct frame;
struct op;

struct algorithm {
    const char *name; /* of PCCL_ALGORITHM; unique among those that fit */
    uint32_t colls;   /* BIT(COLL_..): what it can do */
    /* What must hold that it gives the right result, or NULL if it does;
     * what is fast is the table's to know. */
    const char *(*unfit)(const struct plan_request *r);

    /* Properties. */
    bool codes;  /* of a quantized vector: its elements are blocks of codes */
    bool defers; /* rule D5: the result implies that all have launched, and may
                    be returned before it is known that they hold it */
    bool awaits_all;   /* rule D7: nobody sends DONE before all have launched */
    bool confirms;     /* rule D4: never deferred, however small */
    bool is_long;      /* sends when operations that are not have sent */
    bool widens;       /* between hosts it takes all connections of a link */
    bool counts;       /* READY has the number of transfers, which must agree */
    bool whole_bodies; /* what is received is not reduced part by part */
    bool is_fast;      /* the fast path has the same frames (rule D9) */

    /* The plan: segments, root and `done` of a request; the rest see plan.h,
     * with *x set to a transfer of nothing that may be sent at once. */
    void (*shape)(struct plan *p); /* or NULL */
    uint32_t (*partners)(const struct plan *p);
    uint32_t (*partner)(const struct plan *p, uint32_t i);
    uint32_t (*sends)(const struct plan *p, uint32_t to);
    uint32_t (*recvs)(const struct plan *p, uint32_t from);
    void (*send)(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x);
    void (*recv)(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x);

    /* The operation; each may be NULL where there is nothing to do. Takes
     * buffers and makes op->state, false: no memory. Then gives them back,
     * whatever begin() came to. */
    bool (*begin)(struct engine *e, struct op *op);
    void (*end)(struct engine *e, struct op *op);
    /* What `after` of a transfer stands for is here. */
    bool (*has)(const struct op *op, uint32_t after);
    /* Where the bytes of a transfer are, if not where `space` says. */
    const uint8_t *(*source)(struct op *op, const struct plan_xfer *x);
    /* Where the body of transfer k goes if not to the caller's buffer; NULL: it
     * is reduced from where it lies. */
    uint8_t *(*place)(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x);
    /* Reduces bytes of transfer k, from byte `at` of it on. */
    void (*reduce)(struct op *op, const struct endpoint *ep, uint32_t k,
                   size_t at, const uint8_t *bytes, size_t size);
    /* Transfer k is here; `body` is where place() said, or what is still to be
     * reduced, or NULL: nothing, or it has been. */
    void (*arrived)(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body);
    /* All transfers are sent and here: makes the result. */
    void (*complete)(struct op *op);
    /* Puts an in-place buffer back to what it held (contract C2). */
    void (*undo)(struct op *op);
    /* The result comes from another member: saves what undo() will need. */
    void (*keep_input)(struct op *op);
    /* Nobody reads what transfer k brings before the call returns. */
    bool (*streams)(const struct plan *p, uint32_t k);

    /* Transfers through memory of the host (rule D16): whether this one can
     * go that way; puts it there and makes f say so; takes one that another
     * member has put there, true: it counts. */
    bool (*may_put)(const struct op *op, const struct conn *c,
                    const struct plan_xfer *x);
    void (*put)(struct engine *e, struct op *op, const struct endpoint *ep,
                uint32_t k, const struct plan_xfer *x, struct frame *f);
    bool (*take_put)(struct engine *e, struct op *op, struct endpoint *ep,
                     uint32_t k, const struct plan_xfer *x);
};

extern const struct algorithm local_algorithm, allreduce_flat,
    allreduce_flat_codes, allreduce_centralized, allreduce_direct,
    allreduce_single_copy, allreduce_ring, allreduce_ring_codes,
    broadcast_linear, broadcast_confirmed, broadcast_chain, allgather_linear,
    allgather_ring, alltoallv_pairwise;

#endif
