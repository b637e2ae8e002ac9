/* plan.h - the arithmetic of one operation: its list of transfers.
 *
 * A plan gives, for one member, the k-th transfer from or to each other member.
 * Both ends compute the same sizes in the same order. Therefore the k-th
 * transfer sent is the k-th expected, and a frame carries only k. Members are
 * named by rank in the operation's scope, 0..world-1. algorithm_table.c chooses
 * the algorithm from the request, which is equal on all members but for the
 * rank. Pure. */
#ifndef PCCL_PLAN_H
#define PCCL_PLAN_H

#include "../base/base.h"
#include "../base/grid_shape.h"
#include "../base/tree.h"
#include "hierarchy.h"

enum plan_coll {
    COLL_ALLREDUCE,
    COLL_BROADCAST,
    COLL_BARRIER,
    COLL_ALLGATHER,
    COLL_ALLTOALLV,
    COLL_REDUCE_SCATTER,
    COLL_COUNT,
    COLL_SCAN = COLL_COUNT, /* of callers: choose.h */
};

/* Of an all-to-all: the pairs that exchange data, and in which direction; of an
 * all-reduce: who gets the sum. */
enum plan_flow {
    FLOW_ALL,       /* all pairs, in both; everybody */
    FLOW_TO_ROOT,   /* those with the root, to it: a gather; the root */
    FLOW_FROM_ROOT, /* those with the root, from it: a scatter */
    FLOW_EVEN,      /* all pairs, blocks of `count` bytes */
    FLOW_COUNT,
};

/* The root is an argument. */
static inline bool plan_flow_has_root(enum plan_flow flow)
{
    return flow == FLOW_TO_ROOT || flow == FLOW_FROM_ROOT;
}

/* The members' vectors become one. */
static inline bool plan_coll_reduces(enum plan_coll coll)
{
    return coll == COLL_ALLREDUCE || coll == COLL_REDUCE_SCATTER;
}

struct algorithm;

/* The request for a plan; equal on all members but for the rank. */
struct plan_request {
    enum plan_coll coll;
    uint32_t world, rank;
    uint32_t root;
    enum plan_flow flow;
    bool mesh;          /* all pairs are linked */
    bool tree;          /* the pairs of the tree are linked (rule D17) */
    bool grid;          /* the pairs of the grid are linked (rule D20) */
    bool one_host;      /* all members are on one host */
    bool shared_memory; /* they are, and share memory */
    bool codes;         /* all-reduce: an element is a block of codes (D8) */
    /* Bytes of all vectors from which on no cache holds them. */
    uint64_t cached;
    uint32_t single_copy_world; /* largest world with regions */
    bool boards; /* of the whole view, whose hosts have boards (rule L11) */
    bool roomy;  /* the host has boards, and a processor for each member */
    uint32_t tree_width; /* children of a member at most; 0: as few as do */
    uint32_t piece;      /* single copy: bytes of a segment; 0: as fits */
    uint64_t count;      /* elements of a vector that is reduced, or bytes */
    uint32_t element;    /* bytes of one element */
    uint32_t spare;      /* all-reduce: bytes missing from the last element */
    const char *forced;  /* algorithm to use where it fits, or NULL */
    /* Ring order as ranks (world entries); NULL: the identity. Must live as
     * long as the plan. */
    const uint16_t *order;
    /* Members at several sites; NULL: each member has a site of its own. Must
     * live as long as the plan. */
    const struct hierarchy *hierarchy;
    /* COLL_ALLTOALLV: bytes and byte displacements per rank. They must live as
     * long as the plan. */
    const size_t *send_bytes, *send_displs, *recv_bytes, *recv_displs;
};

/* The choice of an algorithm, in constant words without quotes. */
struct plan_reason {
    const char *algorithm; /* its name; NULL: nothing has been chosen */
    const char *why;       /* of its row, or "forced" */
    /* The forced algorithm, or that of the first row for such a request, and
     * why it does not fit; NULL: it is the choice. */
    const char *instead_of, *unfit;
};

/* Sender and receiver of DONE (rules D4, D17, D20). */
enum plan_done {
    DONE_PAIRS, /* every partner sends it to every partner */
    /* Each sends it to the next, with the number of members before it. */
    DONE_RING,
    /* Each sends it to its parent when all below have sent it; then it comes
     * back from the root. */
    DONE_TREE,
    /* Each sends it to its row, and when the row has sent it, to the others. */
    DONE_GRID,
};

struct plan {
    const struct algorithm *algorithm;
    struct plan_request r;
    enum plan_done done;
    uint32_t root;         /* rank; with DONE_TREE, that of the tree */
    uint32_t parent;       /* rank; with DONE_TREE; the root is its own one */
    struct tree_node tree; /* of the algorithm `tree` */
    struct grid_node grid; /* with DONE_GRID */
    uint32_t position;     /* of this rank in the ring */
    uint32_t prev, next;   /* the ranks beside it in the ring */
    uint32_t chunks;       /* of the vector, each with an owner */
    uint32_t segments;     /* per chunk or block */
    uint64_t segment;      /* bytes */
    bool uncached;         /* no cache holds the vectors of a host */
    bool streamed;         /* that, and all members share memory */
    bool bypasses;         /* copies of results are not to stay in a cache */
};

/* Memory that a transfer's bytes come from or go to. */
enum plan_space {
    SPACE_SEND, /* the caller's send buffer */
    SPACE_RECV, /* the caller's receive buffer */
    SPACE_SLOT, /* private memory, one vector per member */
};

enum plan_action {
    ACTION_STORE,  /* store the bytes unchanged */
    ACTION_REDUCE, /* recv = op(bytes, send), same offset */
    ACTION_DIVIDE, /* as REDUCE, then divide by the world for an average */
};

#define PLAN_NOTHING UINT32_MAX

struct plan_xfer {
    enum plan_space space;
    enum plan_action action; /* received transfers */
    uint64_t offset;         /* bytes in the space */
    uint32_t size;           /* bytes; an empty transfer is sent as well */
    /* sent: the dependency that must be met first, by a number of the
     * algorithm's own, or PLAN_NOTHING */
    uint32_t after;
};

void plan_init(struct plan *p, const struct plan_request *request);

/* The partners of this member, as ranks: i < plan_partners(). */
uint32_t plan_partners(const struct plan *p);
uint32_t plan_partner(const struct plan *p, uint32_t i);

/* Number of transfers to and from a partner, and the k-th of them. */
uint32_t plan_sends(const struct plan *p, uint32_t to);
uint32_t plan_recvs(const struct plan *p, uint32_t from);
void plan_send(const struct plan *p, uint32_t to, uint32_t k,
               struct plan_xfer *x);
void plan_recv(const struct plan *p, uint32_t from, uint32_t k,
               struct plan_xfer *x);

/* This member is the root of the tree, or that one is its parent. */
static inline bool plan_is_root(const struct plan *p)
{
    return p->done == DONE_TREE && p->r.rank == p->root;
}

static inline bool plan_is_parent(const struct plan *p, uint32_t rank)
{
    return p->done == DONE_TREE && rank == p->parent && rank != p->r.rank;
}

/* Bytes of the vector that is reduced, of a block, or of the data of a
 * broadcast. */
static inline uint64_t plan_vector_size(const struct plan *p)
{
    return p->r.count * p->r.element - p->r.spare;
}

#endif
