/* plan.h - collective algorithms as arithmetic: who sends what to whom.
 *
 * A plan answers, for one member, "what is the k-th transfer from or to that
 * member". Both ends compute the same sizes in the same order, so the k-th
 * transfer sent is the k-th expected, and a frame needs to carry only k.
 * Members are named by rank in the operation's scope, 0..world-1. Pure. */
#ifndef PCCL_PLAN_H
#define PCCL_PLAN_H

#include "../base/base.h"
#include "hierarchy.h"

enum {
    PLAN_SEGMENT_MIN = 64 * 1024,
    PLAN_SEGMENT_WAN_MIN = 16 * 1024, /* between hosts */
    PLAN_SEGMENT_MAX = 512 * 1024,    /* bytes of the largest transfer */
    PLAN_SEGMENT_INTERLEAVED_MAX = 256 * 1024, /* ... that stays in a cache */
    PLAN_CACHED = 16 * 1024 * 1024, /* bytes of vectors that caches may hold */
    PLAN_EXCHANGE_MAX = 64 * 1024,  /* bytes of a vector sent to everyone */
    PLAN_EXCHANGE_TOTAL = 128 * 1024,   /* ... times world-1 */
    PLAN_EXCHANGE_SITES_MAX = 8 * 1024, /* ... where sites share their ways */
    PLAN_PAIRWISE_MAX = 128 * 1024,     /* bytes of a vector sent in chunks */
    PLAN_PAIRWISE_WAN_MAX = 256 * 1024, /* ... between hosts */
    PLAN_SINGLE_COPY_WORLD_MAX =
        16, /* members of a host that lend each other vectors */
    PLAN_SINGLE_COPY_MIN = 32 * 1024,  /* bytes of a segment of these, */
    PLAN_SINGLE_COPY_MAX = 256 * 1024, /* between this and that */
    PLAN_SINGLE_COPY_TOTAL =
        4 * 1024 * 1024, /* ... of one for each pair together */
};

enum plan_kind {
    PLAN_LOCAL,       /* nothing to transfer */
    PLAN_EXCHANGE,    /* all-reduce: everyone's vector to everyone */
    PLAN_STAR,        /* all-reduce: vectors to the center, the result back */
    PLAN_PAIRWISE,    /* all-reduce: chunks to their owners, sums back */
    PLAN_SINGLE_COPY, /* ... by segments, through memory that members lend */
    PLAN_RING,        /* all-reduce: reduce-scatter + all-gather */
    PLAN_FLAT,        /* broadcast: root to everyone */
    PLAN_SPREAD,      /* ... and an empty word from everyone to everyone */
    PLAN_CHAIN,       /* broadcast: along the ring from the root */
    PLAN_GATHER_FLAT, /* all-gather: everyone's block to everyone */
    PLAN_GATHER_RING, /* all-gather: blocks travel round the ring */
    PLAN_ALLTOALL,    /* every pair its own size */
};

enum plan_coll {
    COLL_ALLREDUCE,
    COLL_BROADCAST,
    COLL_BARRIER,
    COLL_ALLGATHER,
    COLL_ALLTOALLV,
};

/* What a plan is made for; equal on all members but rank. */
struct plan_request {
    enum plan_coll coll;
    uint32_t world, rank;
    uint32_t root;
    bool mesh;       /* all pairs are linked */
    bool one_host;   /* all members are on one host */
    bool sockets;    /* ... and share no memory there */
    bool pairwise;   /* ... or do, and the elements are what is reduced */
    bool plain;      /* the elements are what is reduced */
    uint32_t center; /* of a star, any number */
    uint64_t cached; /* bytes of all vectors from which on rings are skewed */
    uint32_t single_copy_world; /* members up to which large vectors are lent */
    uint32_t piece;             /* lent: bytes of a segment; 0: as fits */
    uint64_t count;             /* elements (all-reduce) or bytes */
    uint32_t element;           /* bytes of one element */
    uint32_t spare; /* all-reduce: bytes that the last element is short of */
    /* Ring order as ranks (world entries), NULL for the identity; borrowed
     * while the plan lives. */
    const uint16_t *order;
    /* Members at several sites, NULL: as if each had its own; borrowed. */
    const struct hierarchy *hierarchy;
    /* COLL_ALLTOALLV: bytes and byte displacements per rank; borrowed. */
    const size_t *send_bytes, *send_displs, *recv_bytes, *recv_displs;
};

struct plan {
    enum plan_kind kind;
    struct plan_request r;
    uint32_t position;   /* of rank in the ring */
    uint32_t place;      /* distance from the root along the ring */
    uint32_t prev, next; /* ranks */
    bool direct; /* a ring whose members tell each other that they are done */
    bool star;   /* all speak with the center only */
    uint32_t center;   /* rank; of a star */
    uint32_t segments; /* per chunk or block */
    uint64_t segment;  /* bytes */
    bool interleaved;  /* ring: in the order of step + segment */
    bool streamed;     /* no cache holds all vectors, and all share memory */
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
#define PLAN_ALL (UINT32_MAX - 1)

struct plan_xfer {
    enum plan_space space;
    enum plan_action action; /* received transfers */
    uint64_t offset;         /* bytes in the space */
    uint32_t size;           /* bytes; an empty transfer is sent as well */
    uint32_t after; /* sent: transfer from `prev` that must be complete first,
                       or PLAN_NOTHING, or PLAN_ALL: the sum of all; pairwise:
                       the piece that must be summed up, or, from world *
                       segments on, have come as the sum of all; lent: segment
                       of the own chunk whose sum must be complete, or that plus
                       `segments`: all other sums of that segment */
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

/* Transfers come from one neighbour and go to the other one. */
bool plan_is_ring(const struct plan *p);

/* PLAN_RING: the k-th transfer from `prev` is the first that writes its part of
 * the vector; the reduce-scatter has written what later steps of the
 * all-gather write. */
bool plan_is_first_write(const struct plan *p, uint32_t k);

/* Nobody reads what the k-th transfer from `prev` brings before the result is
 * returned, and no cache holds all of that. */
bool plan_is_streamed(const struct plan *p, uint32_t k);

/* This member is what all others of a star speak with. */
bool plan_is_center(const struct plan *p);

/* PLAN_SINGLE_COPY: the segment that the k-th transfer to or from a partner is
 * of; true if it is the sum. */
bool plan_is_sum(const struct plan *p, uint32_t k, uint32_t *segment);

/* PLAN_PAIRWISE and PLAN_SINGLE_COPY have pieces: a piece is a segment of the
 * vector by its number, of which there are world * segments, those of chunk 0
 * first. Bytes of the largest chunk; the piece that the k-th transfer from a
 * partner brings, and whether it is a part to be added, or the sum. */
bool plan_has_pieces(const struct plan *p);
uint64_t plan_chunk_max(const struct plan *p);
uint32_t plan_piece(const struct plan *p, uint32_t from, uint32_t k);
bool plan_is_part(const struct plan *p, uint32_t from, uint32_t k);
void plan_piece_place(const struct plan *p, uint32_t piece,
                      struct plan_xfer *x);
/* Partners whose parts of a piece this member adds to its own, and the turn of
 * one of them, from 1 on. */
uint32_t plan_turns(const struct plan *p, uint32_t piece);
uint32_t plan_turn(const struct plan *p, uint32_t piece, uint32_t from);
/* Chunks that come here from others as their parts; of those before one. */
uint32_t plan_parts(const struct plan *p);
uint32_t plan_parts_before(const struct plan *p, uint32_t chunk);

/* Bytes of the vector all-reduce works on. */
uint64_t plan_vector_size(const struct plan *p);

/* Whether holding the result implies that every member has launched. Only
 * then may a result be returned before all are known to hold it. */
bool plan_implies_all(const struct plan *p);

#endif
