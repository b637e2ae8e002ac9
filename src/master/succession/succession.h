/* succession.h - a coordinator that takes the place of one that died (rules
 * H1 to H9).
 *
 * A *will* is what a group's next view needs: its members, and the messages
 * that install it. It is in the journal before the first of these goes out. A
 * new coordinator reads the wills, waits for the members, brings those that
 * have not installed the view to it, and begins a round. */
#ifndef PCCL_SUCCESSION_H
#define PCCL_SUCCESSION_H

#include "memory.h"

struct master;
struct master_config;
struct wire_msg;

/* A member of a will. */
struct master_heir {
    struct wire_member info;
    uint32_t group, rank, place; /* group: index */
    uint32_t epoch;              /* of the view */
    bool join, stays, resumed;
};

struct succession {
    pccl_ns grace; /* 0: nobody waits for another master */
    uint64_t term; /* of this one */
    struct wire_key secret;
    bool waits;    /* for heirs */
    bool told_old; /* the operator, that the journal is an old one */
    pccl_ns began;
    pccl_ns until; /* 0: since the first event */
    struct master_heir *heirs;
    uint32_t heir_count;
    /* By group index: its will, or NULL; and what is to be its will when the
     * drafts of all groups of an update are whole. */
    struct will {
        uint8_t *bytes;
        size_t size, room, letters; /* where the messages begin */
    } wills[GROUPS_MAX], drafts[GROUPS_MAX];
    /* By kind of vote: the number of the last answer to all. */
    uint32_t answered[VOTE_KIND_COUNT];
    uint32_t told[VOTE_KIND_COUNT]; /* the highest that an heir has */
    uint8_t answers[VOTE_KIND_COUNT];
};

/* A term begins. */
void succession_init(struct master *m, const struct master_config *config);
/* False: out of memory, or the record has wills that cannot be. */
bool succession_begin(struct master *m, const struct master_memory *memory);
/* Nobody is taken over, where succession_begin() failed. */
void succession_give_up(struct master *m);
/* Ids of the members of all wills of a record, at most as many as its bytes
 * can have, to `ids`, or NULL. Returns their number. */
uint32_t succession_members(const struct master_memory *memory, uint64_t *ids);
void succession_end(struct master *m);
/* Rule H4: of the peer with that id. */
struct wire_key succession_secret(const struct wire_key *key, uint64_t id);
/* What a peer needs for RESUME. */
void succession_welcome(const struct master *m, struct wire_msg *welcome);
/* Of the group's next view, and of all groups of an update (H3). False: out of
 * memory, and all wills are what they were. */
bool succession_will(struct master *m, uint32_t group);
void succession_forget(struct master *m, uint32_t group); /* it is over */
void succession_to_memory(const struct master *m, struct master_memory *memory);
void succession_resume(struct master *m, uint32_t link,
                       const struct wire_msg *msg);
/* After each event: true while heirs are waited for. */
bool succession_waits(struct master *m);
uint32_t succession_missing(const struct master *m);

#endif
