/* round_table.h - the operations of a round and their scopes, as members list
 * them (round_ops.c). */
#ifndef PCCL_ROUND_TABLE_H
#define PCCL_ROUND_TABLE_H

#include "../base/wire.h"

#define MASTER_NO_OP UINT32_MAX

struct master_op {
    struct wire_op op;
    uint32_t scope;     /* number in the table */
    uint32_t next;      /* of the scope, or MASTER_NO_OP */
    uint32_t same_head; /* with the same hash: number plus 1; 0: none */
    uint32_t complete, running, returned;
    uint32_t lister; /* the last link that listed it */
    uint32_t donor;  /* link, or MASTER_NO_LINK */
    uint8_t forced;  /* op_verdict */
    bool commit;
    bool doubt;   /* a survivor did not list it */
    bool relayed; /* the donated result was sent, or none is needed */
};

struct master_scope {
    uint64_t number; /* 0: the whole view */
    uint32_t survivors;
    uint32_t first, last;       /* operations, or MASTER_NO_OP */
    uint32_t same_head, lister; /* as those of an operation */
};

/* A member lists an operation. */
struct master_listing {
    uint64_t tag;
    uint32_t op, rank;
};

/* It grows as members list them. */
struct master_table {
    uint32_t world, words; /* ranks of the view that ends; 64 to a word */
    uint32_t op_count, op_room, scope_count, scope_room;
    struct master_op *ops;
    struct master_scope *scopes; /* the first one is the whole view */
    uint64_t *bits;              /* the ranks of each scope: `words` words */
    uint32_t *heads;             /* hash of the operations: twice op_room */
    uint32_t *scope_heads;       /* hash of the scopes: twice scope_room */
    uint32_t listing_count, listing_room;
    struct master_listing *listings;
    uint32_t texts;  /* sent with verdicts */
    uint16_t *links; /* of the ranks of the view that ends, plus 1 */
};

static inline bool table_has_rank(const struct master_table *t, uint32_t scope,
                                  uint32_t rank)
{
    if (t->scopes[scope].number == 0) return true;
    const uint64_t *bits = t->bits + (size_t)scope * t->words;
    return rank / 64 < t->words && bits[rank / 64] >> rank % 64 & 1;
}

/* A set of members in a message. */
struct master_set {
    uint64_t number; /* scope.h */
    uint32_t live;
    uint64_t bits[PEERS_MAX / 64]; /* by rank */
};

#endif
