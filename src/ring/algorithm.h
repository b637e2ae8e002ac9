/* algorithm.h - one algorithm of a collective. An algorithm is one struct,
 * which a file of its own defines, and one or more rows of algorithm_table.c.
 *
 * The first part is arithmetic for a plan (plan.h). The second part acts on an
 * operation under way; the algorithm has its own struct in `op->state`. op.c
 * does the rest of the operation: links, frames, credit, completion, result
 * cache. */
#ifndef PCCL_ALGORITHM_H
#define PCCL_ALGORITHM_H

#include "plan.h"

struct endpoint;
struct engine;
struct op;
struct pieces_part;

/* How the fast path (fast_path.h) runs it, which sends the same frames
 * (rule D9). */
enum algorithm_fast {
    FAST_NOT,
    FAST_FLAT,  /* all send to all */
    FAST_PAIRS, /* all send all what each is to have, and then DONE */
    FAST_TREE,
    FAST_STAR, /* between the root and each other member */
};

struct algorithm {
    const char *name; /* of PCCL_ALGORITHM; unique among those that fit */
    uint32_t colls;   /* BIT(COLL_..): collectives that it implements */
    /* Returns why the algorithm cannot give the right result for the request,
     * or NULL if it can. The table decides whether it is fast. */
    const char *(*unfit)(const struct plan_request *r);

    /* Properties. */
    bool codes; /* of a quantized vector: its elements are blocks of codes */
    /* Rule D5: the result implies that all have launched; the call may return
     * before all are known to hold the result. */
    bool defers;
    /* Rule D7: no member sends DONE before all have launched. */
    bool awaits_all;
    /* The result is the root's alone, and the others' copies are empty. Of its
     * launch a root says no more than rule D23c tells. */
    bool at_root;
    bool confirms;     /* rule D4: never deferred, however small */
    bool is_long;      /* sends after the operations that are not long */
    bool widens;       /* between hosts it uses all connections of a link */
    bool whole_bodies; /* a received body is not reduced part by part */
    /* In a grid or a tree a member tells all partners of its launch at once,
     * and not some of them with its data (rules D20c, D22b, D19e). */
    bool tells_launch;
    enum algorithm_fast fast;
    /* It calls input_overwrite() before it writes to r.recvbuf, but where a
     * body goes there (place). */
    bool announces_writes;

    /* The plan. shape() sets segments, root and `done` of a plan. For the other
     * functions see plan.h; *x is preset to an empty transfer that depends on
     * nothing. */
    void (*shape)(struct plan *p); /* or NULL */
    uint32_t (*partners)(const struct plan *p);
    uint32_t (*partner)(const struct plan *p, uint32_t i);
    uint32_t (*sends)(const struct plan *p, uint32_t to);
    uint32_t (*recvs)(const struct plan *p, uint32_t from);
    void (*send)(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x);
    void (*recv)(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x);

    /* The operation. A function may be NULL if it has nothing to do. begin()
     * takes buffers and makes op->state; false: no memory. end() frees them,
     * also after a begin() that failed. */
    bool (*begin)(struct engine *e, struct op *op);
    void (*end)(struct engine *e, struct op *op);
    /* The dependency `after` of a transfer is met here. */
    bool (*has)(const struct op *op, uint32_t after);
    /* Returns the address of the bytes of a transfer, if `space` does not give
     * it. */
    const uint8_t *(*source)(struct op *op, const struct plan_xfer *x);
    /* Returns the address for the body of transfer k, if it is not in the
     * caller's buffer. NULL: the body is reduced from where it lies. */
    uint8_t *(*place)(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x);
    /* Reduces bytes of transfer k, from byte `at` of it on. */
    void (*reduce)(struct op *op, const struct endpoint *ep, uint32_t k,
                   size_t at, const uint8_t *bytes, size_t size);
    /* Transfer k is complete. `body` is the address that place() returned or
     * the bytes still to be reduced. NULL: the transfer is empty or is reduced
     * already. */
    void (*arrived)(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body);
    /* All transfers are sent and received: makes the result. */
    void (*complete)(struct op *op);
    /* Nobody reads the bytes of transfer k before the call returns. */
    bool (*streams)(const struct plan *p, uint32_t k);

    /* Parts that are added in turn (pieces.h). Describes transfer k from a
     * partner; false: it is no part, but a sum of that piece. Byte of a slot's
     * region at which a part of the piece lies, or its sum. */
    bool (*part)(const struct plan *p, uint32_t from, uint32_t k,
                 struct pieces_part *part);
    size_t (*lent)(const struct plan *p, uint32_t slot, uint32_t piece);

    /* Single copy (rule D16), of an operation that has a slot of the region.
     * Puts the data of a transfer there; takes data from that slot of another
     * member's region (true: the transfer counts). */
    bool pulls; /* the region has but the place of the data (rule D27) */
    void (*put)(struct engine *e, struct op *op, const struct endpoint *ep,
                uint32_t k, const struct plan_xfer *x);
    bool (*take_put)(struct engine *e, struct op *op, struct endpoint *ep,
                     uint32_t k, const struct plan_xfer *x, uint32_t slot);
};

extern const struct algorithm local_algorithm, allreduce_flat,
    allreduce_flat_codes, allreduce_direct, allreduce_single_copy,
    allreduce_ring, allreduce_ring_codes, broadcast_confirmed, broadcast_grid,
    broadcast_chain, allgather_linear, allgather_ring, alltoallv_pairwise,
    alltoallv_tree, star_gather, star_scatter, star_sum, spread_single_copy,
    small_grid, allreduce_grid, small_tree, reduce_scatter_direct,
    reduce_scatter_single_copy;

#endif
