/* buggify.h - points where a core may legitimately take a way that is rare, and
 * where the simulator has it take that way often. After FoundationDB (Zhou et
 * al., SIGMOD 2021).
 *
 * In the product PCCL_BUGGIFY(point) is the constant false, and leaves no trace
 * in the objects. In the simulator's copy of the cores (PCCL_SIMULATED) it is a
 * choice by the seed of the universe (rare.c of tests/world/sim), which counts
 * what has fired. No point changes what a program may rely on. */
#ifndef PCCL_BUGGIFY_H
#define PCCL_BUGGIFY_H

#include "base.h"

/* name, share of the visits that fire (one in so many), and why the way is
 * legal. */
/* clang-format off */
#define PCCL_BUGGIFY_POINTS(X) \
    X(pool_empty, 2)       /* a pool may have no block of that size */ \
    X(pool_aged, 2)        /* time may have passed since the last use */ \
    X(credit_small, 3)     /* D2b: a sender has EAGER_MAX at most */ \
    X(unexpected_full, 300) /* no memory: the link is lost, R6 */ \
    X(must_confirm, 4)     /* D4: the result cache may be full */ \
    X(copy_fails, 100)     /* D5: no memory for the copy */ \
    X(copies_stay, 2)      /* D7: copies are dropped if possible */ \
    X(never_sweeps, 2)     /* D7: one operation at a time */ \
    X(done_unclean, 2)     /* D7: something else may be running */ \
    X(tags_full, 100)      /* D1: the table of tags has a limit */ \
    X(fast_refused, 2)     /* D9a: there may be no room */ \
    X(fast_given_up, 10)   /* D9b: time turns it into an operation */ \
    X(post_refused, 3)     /* L11b: somebody may lag behind */ \
    X(sums_alone, 3)       /* D9f: whoever has all may add them up */ \
    X(slot_taken, 2)       /* L8a: no slot is free */ \
    X(long_first, 2)       /* which operation sends is nobody's concern */ \
    X(in_turn, 2)          /* D13: may be sent, need not */ \
    X(ping_early, 2)       /* R7: at least every tenth of a deadline */ \
    X(dial_late, 3)        /* R3d: a lost packet delays a dial */ \
    X(link_narrow, 1)      /* R3c: the dialer decides */ \
    X(message_queued, 2)   /* P2P: something else may be under way there */ \
    X(message_refused, 5)  /* P2P-6: a post may be refused */ \
    X(ack_early, 2)        /* P2P-5: by any frame */ \
    X(beat_early, 2)       /* M8: at least every tenth of a deadline */ \
    X(ready_late, 2)       /* R3d: a message may come later */ \
    X(state_one, 2)        /* S7: how much is asked for at a time */ \
    X(state_short, 2)      /* S7: how large a piece is */ \
    X(state_steal, 4)      /* S7b: what is slow is not written */ \
    X(questions_few, 2)    /* F8: QUERY and VERDICT are split */ \
    X(edges_few, 1)        /* R4: the oldest pair makes room */ \
    X(asked_early, 4)      /* V4: the answers decide, not the time */
/* clang-format on */

enum buggify_point {
#define X(name, one_in) BUGGIFY_##name,
    PCCL_BUGGIFY_POINTS(X)
#undef X
        BUGGIFY_COUNT
};

#ifdef PCCL_SIMULATED
bool buggify(enum buggify_point point);
#define PCCL_BUGGIFY(point) buggify(BUGGIFY_##point)
#else
#define PCCL_BUGGIFY(point) false
#endif

#endif
