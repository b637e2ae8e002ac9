/* master_play.h - the life of a run as its coordinator sees it: every event
 * that it handles, and for each what the dearest one cost (cost.h). */
#ifndef PCCL_TESTS_MASTER_PLAY_H
#define PCCL_TESTS_MASTER_PLAY_H

#include "cost.h"

#include "../../../src/master/master.h"

/* Rows beside the types of messages. */
enum {
    ROW_EVENTS = WIRE_TYPE_COUNT, /* and those of enum master_event_type */
    ROW_STATUS_TEXT = ROW_EVENTS + MASTER_SLEPT + 1,
    ROW_STATUS_JSON,
    ROW_METRICS,
    ROW_COUNT,
};

struct crowd {
    uint32_t members, groups, newcomers;
    uint32_t ops;    /* under way at each member, each in a scope of two */
    uint32_t waits;  /* in the report of each */
    uint32_t tags;   /* of partial all-reduces, of which each has rounds */
    uint32_t cuts;   /* pairs that cannot be linked */
    uint32_t listed; /* entries of a list that a message may have */
};

extern struct master *run;
extern pccl_ns run_now;     /* time of the next event */
extern uint32_t play_calls; /* votes and synchronizations so far */

/* master_play.c: the parts of a play, in this order. */
void play_begin(const struct crowd *c);
void play_reports(const struct crowd *c);
void play_status(void);
void play_votes(const struct crowd *c);
void play_loss(const struct crowd *c);
void play_end(const struct crowd *c);
/* An event, which is counted. */
void play(enum master_event_type type, uint32_t link, const struct wire_msg *m);
/* A message of each member. */
void play_all(const struct wire_msg *m);
bool play_is_member(uint32_t link);
/* All that are proposed say that they are ready. */
void play_ready(const struct crowd *c);

/* master_play_state.c */
void play_sync(const struct crowd *c);
void play_partial(const struct crowd *c);

#endif
