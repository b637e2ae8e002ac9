/* plan.h - the arithmetic of one operation: which transfers it consists of.
 *
 * A plan answers, for one member, "what is the k-th transfer from or to that
 * member". Both ends compute the same sizes in the same order, so the k-th
 * transfer sent is the k-th expected, and a frame needs to carry only k.
 * Members are named by rank in the operation's scope, 0..world-1. The algorithm
 * is chosen by algorithm_table.c from the request, which is equal on all
 * members but for the rank. Pure. */
#ifndef PCCL_PLAN_H
#define PCCL_PLAN_H

#include "../base/base.h"
#include "hierarchy.h"

enum {
    PLAN_SEGMENT_MIN = 64 * 1024,
    PLAN_SEGMENT_WAN_MIN = 16 * 1024, /* between hosts */
    PLAN_SEGMENT_MAX = 512 * 1024,    /* bytes of the largest transfer */
    PLAN_CACHED = 16 * 1024 * 1024,  /* bytes of vectors that caches may hold */
    PLAN_SINGLE_COPY_WORLD_MAX = 16, /* members of a host with regions */
};

enum plan_coll {
    COLL_ALLREDUCE,
    COLL_BROADCAST,
    COLL_BARRIER,
    COLL_ALLGATHER,
    COLL_ALLTOALLV,
    COLL_COUNT,
};

struct algorithm;

/* What a plan is made for; equal on all members but rank. */
struct plan_request {
    enum plan_coll coll;
    uint32_t world, rank;
    uint32_t root;
    bool mesh;          /* all pairs are linked */
    bool one_host;      /* all members are on one host */
    bool shared_memory; /* ... and share its memory */
    bool codes;         /* all-reduce: an element is a block of codes (D8) */
    uint32_t center; /* any number, by which a centralized one has its root */
    uint64_t cached; /* bytes of all vectors that no cache holds any more */
    uint32_t single_copy_world; /* members up to which they have regions */
    uint32_t piece;   /* single copy: bytes of a segment; 0: as fits */
    uint64_t count;   /* elements (all-reduce) or bytes */
    uint32_t element; /* bytes of one element */
    uint32_t spare;   /* all-reduce: bytes that the last element is short of */
    const char *forced; /* algorithm to take where it fits, or NULL */
    /* Ring order as ranks (world entries), NULL for the identity; borrowed
     * while the plan lives. */
    const uint16_t *order;
    /* Members at several sites, NULL: as if each had its own; borrowed. */
    const struct hierarchy *hierarchy;
    /* COLL_ALLTOALLV: bytes and byte displacements per rank; borrowed. */
    const size_t *send_bytes, *send_displs, *recv_bytes, *recv_displs;
};

/* Who is sent DONE by whom (rules D4, D11). */
enum plan_done {
    DONE_PAIRS, /* every partner by every partner */
    DONE_RING,  /* the next member, with the number of those before it */
    DONE_ROOT,  /* the root by all, and then all by the root */
};

struct plan {
    const struct algorithm *algorithm;
    struct plan_request r;
    enum plan_done done;
    uint32_t root;       /* rank; the partner of all others if DONE_ROOT */
    uint32_t position;   /* of a ring: that of rank, */
    uint32_t prev, next; /* ... and the ranks beside it */
    uint32_t segments;   /* per chunk or block */
    uint64_t segment;    /* bytes */
    bool streamed;       /* no cache holds all vectors, and all share memory */
};

/* Where a transfer's bytes come from or go to. */
enum plan_space {
    SPACE_SEND, /* the caller's send buffer */
    SPACE_RECV, /* the caller's receive buffer */
    SPACE_SLOT, /* private memory, one vector per member */
};

enum plan_action {
    ACTION_STORE,  /* the bytes are as they stay */
    ACTION_REDUCE, /* recv = op(bytes, send), same offset */
    ACTION_DIVIDE, /* as REDUCE, then the end of an average */
};

#define PLAN_NOTHING UINT32_MAX

struct plan_xfer {
    enum plan_space space;
    enum plan_action action; /* received transfers */
    uint64_t offset;         /* bytes in the space */
    uint32_t size;           /* bytes; an empty transfer is sent as well */
    uint32_t after; /* sent: what must be here first, by a number of the
                       algorithm's own, or PLAN_NOTHING */
};

void plan_init(struct plan *p, const struct plan_request *request);

/* Members this one exchanges bytes with: i < plan_partners() gives a rank. */
uint32_t plan_partners(const struct plan *p);
uint32_t plan_partner(const struct plan *p, uint32_t i);

/* Number of transfers to and from a partner, and the k-th of them. */
uint32_t plan_sends(const struct plan *p, uint32_t to);
uint32_t plan_recvs(const struct plan *p, uint32_t from);
void plan_send(const struct plan *p, uint32_t to, uint32_t k,
               struct plan_xfer *x);
void plan_recv(const struct plan *p, uint32_t from, uint32_t k,
               struct plan_xfer *x);

/* The partner of all others, which have no other one. */
static inline bool plan_is_root(const struct plan *p)
{
    return p->done == DONE_ROOT && p->r.rank == p->root;
}

/* Bytes of the vector that an all-reduce works on, of a block, or of what is
 * broadcast. */
static inline uint64_t plan_vector_size(const struct plan *p)
{
    return p->r.count * p->r.element - p->r.spare;
}

#endif
