/* replicas.h - members that keep what the coordinator remembers, where it has
 * no journal (rules H10 to H14).
 *
 * The coordinator sends each record to its members, and goes on when enough of
 * them have it. A new one asks those that come back for the latest record, and
 * begins with it when most of its members are there. */
#ifndef PCCL_REPLICAS_H
#define PCCL_REPLICAS_H

#include "../../base/wire.h"

struct master;
struct master_memory;

/* Members of a record, by id. */
struct replicas_ids {
    uint64_t *ids; /* ascending */
    uint32_t count;
};

enum replicas_phase {
    REPLICAS_OFF,
    REPLICAS_COLLECTS, /* has just begun: members of a run may come */
    REPLICAS_CLAIMS,   /* most have come: they shall obey nobody else (H13) */
    REPLICAS_RENEWS,   /* they do: the record has its term */
    REPLICAS_SERVES,
};

struct replicas {
    enum replicas_phase phase;
    bool fenced;  /* others may take over while it lives (H12) */
    bool standby; /* begins no run (H14) */
    bool over;    /* it leads no more (H12): the driver begins another one */
    /* The record: the ids of its voters, and what memory.h makes. */
    struct wire_record_name name;
    uint8_t *bytes;
    uint32_t size, head; /* `head`: bytes of the voters */
    bool pending;        /* it waits for members to keep it, since: */
    pccl_ns pending_since;
    bool told_large;            /* the operator, that no member keeps it */
    struct replicas_ids voters; /* members of the last one that counts */
    struct replicas_ids next;   /* of this one */
    /* Until it serves: */
    pccl_ns began, came; /* since the first event; the first member, or 0 */
    uint64_t term;       /* the highest that any of them has seen */
    uint64_t claim;      /* the term that they are claimed with */
    uint32_t source;     /* link that sends its record, or MASTER_NO_LINK */
    struct wire_record_name found; /* what has come, or is coming */
    uint8_t *in;
    uint32_t in_size, in_total;
};

/* Of a coordinator without a memory, with a grace. */
void replicas_begin(struct master *m);
/* Nothing has been found yet, or it is over: what is held is given back. */
void replicas_void(struct master *m);

/* Rule H11. True: enough members keep it. */
bool replicas_hold(struct master *m, const struct master_memory *memory);

/* A message of a peer, whatever its state. True: it is over with it. */
bool replicas_pass(struct master *m, uint32_t link, const struct wire_msg *msg);
/* A message that its sender's state allows. True: it was for the replicas, or
 * is held until it is known who has come. */
bool replicas_take(struct master *m, uint32_t link, const struct wire_msg *msg);

/* After each event: true: nothing is decided yet. */
bool replicas_collect(struct master *m);
/* Rule H12: it leads no more that has only a smaller part of the run for the
 * grace, or nobody. */
void replicas_tick(struct master *m);
/* Also while no connection is there. */
bool replicas_need_tick(const struct master *m);

#endif
