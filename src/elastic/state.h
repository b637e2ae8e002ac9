/* state.h - moves shared state between peers, over their links.
 *
 * The master names the holders of the elected content and the receivers (rules
 * S6..S8). A receiver asks for pieces: hashes of the tensors, then hashes of
 * the blocks of tensors that differ, then the blocks that differ. It asks all
 * holders in parallel, and fellow receivers for the blocks that they have by
 * then; for all of it if no holder can be reached. Each level is checked
 * against the one above, the first against the master's digest. Pieces go from
 * the holder's tensor to the receiver's tensor through sockets alone. Pure. */
#ifndef PCCL_STATE_H
#define PCCL_STATE_H

#include "../link/links.h"
#include "state_list.h"

enum {
    STATE_PIECE_BLOCKS = 8,  /* blocks asked for at a time */
    STATE_WINDOW = 16,       /* pieces asked of one partner at a time */
    STATE_FLIGHTS_MAX = 512, /* pieces asked of all partners */
    STATE_TODO_MAX = 8 * STATE_WINDOW, /* unanswered questions to one partner */
    STATE_UNEXPECTED_MAX = 256,        /* questions before the master's STATE */
};

enum state_kind {
    STATE_NAMES,   /* the encoded structure */
    STATE_TENSORS, /* hashes of all tensors */
    STATE_BLOCKS,  /* hashes of blocks of one tensor */
    STATE_BYTES,   /* of one tensor */
    STATE_KIND_COUNT,
};

struct state_piece {
    uint8_t kind;
    uint32_t tensor;
    uint64_t offset;
    uint32_t size;
};

struct state_partner {
    uint64_t id;
    bool holder;       /* the partner has everything */
    bool receiver;     /* the partner may ask */
    bool bad;          /* the partner sent wrong bytes */
    uint64_t from, to; /* blocks to ask a fellow for */
    uint64_t cursor;
    uint32_t asked; /* pieces in flight */
    pccl_ns pause_until;
    struct state_piece todo[STATE_TODO_MAX];
    uint32_t todo_first, todo_count;
};

/* Host memory that a piece of a device's tensor passes through. */
struct state_stage {
    struct state_stage *next;
    const struct state_device *device;
    uint8_t *bytes; /* FRAME_BODY_MAX */
    bool used;
};

struct state_flight {
    bool used;
    bool receiving; /* its body is arriving */
    uint64_t peer;
    struct state_piece piece;
    pccl_ns since;
    uint32_t steals;
    struct state_stage *stage; /* where a device's piece arrives */
};

struct state_unexpected {
    uint64_t peer, id;
    struct state_piece piece;
};

enum state_phase {
    STATE_IDLE,
    STATE_VOTED, /* the master has not answered */
    STATE_MOVING,
};

enum state_outcome {
    STATE_OPEN,      /* there is no outcome yet */
    STATE_RECEIVED,  /* all data are here */
    STATE_EXPLAINED, /* this peer's tensors differ: see explanation */
    STATE_FAILED,    /* no holder sent correct data, or: explanation */
};

struct state_sync {
    struct links *links;
    void (*over)(void *user); /* `outcome` has been found */
    /* A link of the view is lost that the transfer uses. May be NULL. */
    void (*broken)(void *user, uint64_t member);
    void *user;
    enum state_phase phase;
    struct state_list *list; /* owned by the caller */
    uint64_t id, id_before;
    uint64_t structure, content; /* elected */
    bool receives, differs;
    bool serves;  /* has everything and may send it */
    bool fellows; /* receivers may serve each other */
    struct state_partner *partners;
    uint32_t partner_count;
    struct state_unexpected unexpected[STATE_UNEXPECTED_MAX];
    uint32_t unexpected_count;

    /* receiving */
    enum state_outcome outcome;
    bool cut_off;      /* no holder can be reached: fellows are asked for all */
    bool hashes_known; /* of the tensors */
    uint8_t *names;    /* STATE_NAMES or STATE_TENSORS so far */
    uint32_t names_size, names_got;
    uint64_t names_from; /* the holder that sends them */
    bool names_asked;
    uint64_t *theirs;        /* received block hashes, wire order */
    uint64_t *have, *wanted; /* bit sets over blocks */
    uint64_t have_count, wanted_count;
    struct state_gain {
        uint64_t asked, got;     /* bytes of block hashes */
        bool differs, known;     /* known: the block hashes are verified */
    } * gains;                   /* one per tensor */
    uint32_t gain_next, unknown; /* tensors whose block hashes are due */
    struct state_piece again[STATE_FLIGHTS_MAX]; /* hashes to ask again for */
    uint32_t again_count;
    struct state_flight flights[STATE_FLIGHTS_MAX];
    uint32_t flight_end;
    struct state_stage *stages; /* all there are */
    pccl_ns progress_at;
    uint64_t rx_bytes; /* of blocks that were received, correct and written */
    uint64_t *taken;   /* ids of partners, and bytes of rx_bytes, by turns */
    uint32_t taken_count, taken_room; /* words */
    char explanation[240];
};

/* The caller zeroes it before. The links are initialized, and belong to the
 * caller. */
void state_init(struct state_sync *s, struct links *links,
                void (*on_over)(void *user), void *user);
void state_tick(struct state_sync *s);

/* This peer has voted with this list. From now on others may ask it. */
void state_begin(struct state_sync *s, struct state_list *list, bool fellows);

/* The vote goes on for another election: what was received stays. */
void state_again(struct state_sync *s);

/* The master's STATE, at first or again after a loss. False: no memory. */
struct state_orders {
    uint64_t id, structure, content;
    bool receives, differs;
    const uint64_t *ids; /* holders, receivers, others */
    uint32_t holders, receivers, count;
};
bool state_parts(struct state_sync *s, const struct state_orders *word);

/* No thread touches the tensors after this. */
void state_end(struct state_sync *s);

/* --- state.c and state_plan.c only --- */
bool state_plan_begin(struct state_sync *s);
void state_plan_end(struct state_sync *s);
/* The next piece to ask a partner for; false: nothing now. */
bool state_plan_next(struct state_sync *s, struct state_partner *p,
                     struct state_piece *piece);
void state_plan_release(struct state_sync *s, struct state_flight *f);
/* An answer of this size, of so much in all, matches the question. */
bool state_plan_fits(const struct state_sync *s, const struct state_flight *f,
                     uint32_t size, uint32_t total);
/* The destination of one that does; NULL: there is no memory. */
uint8_t *state_plan_target(struct state_sync *s, struct state_flight *f,
                           uint32_t total);
/* The piece is there. False: it is wrong, or the data that it completes are. */
bool state_plan_take(struct state_sync *s, const struct state_flight *f,
                     uint32_t size);
struct state_stage *state_stage_take(struct state_sync *s,
                                     const struct state_device *device);
bool state_plan_has(const struct state_sync *s, const struct state_piece *p);
/* Hashes that a receiver can pass on already; NULL: not yet, or it is no
 * question. */
const uint8_t *state_plan_hashes(const struct state_sync *s,
                                 const struct state_piece *p);
struct state_partner *state_partner(struct state_sync *s, uint64_t id);

#endif
