/* master_say.h - what members and strangers say to a coordinator, so that it
 * fits what is going on there. For fuzz_master.c and fuzz_server.c. */
#ifndef PCCL_FUZZ_MASTER_SAY_H
#define PCCL_FUZZ_MASTER_SAY_H

#include "../../src/master/master.h"
#include "fuzz.h"

enum {
    PARTIAL_IDS = 8,
    SAY_LINKS = 8, /* most words are about the first members */
};

/* What a message of master_say_make() borrows. */
struct say_room {
    struct wire_op ops[4];
    uint64_t ids[8];
    struct wire_edge edges[2];
    struct wire_wait waits[3];
    uint8_t set[1];
};

/* A message of that connection: of this round and this epoch, but for a quirk
 * now and then. */
void master_say_make(const struct master *m, uint32_t link,
                     struct fuzz_input *in, struct say_room *room,
                     struct wire_msg *msg);

/* A message that fits the rounds of the member's group, but for a quirk now and
 * then. */
void master_partial_fill(const struct master *m, uint32_t link,
                         struct fuzz_input *in, struct wire_msg *msg,
                         uint64_t ids[PARTIAL_IDS], uint8_t *set);

/* Arguments of an operation that members may disagree on. Those with names
 * are valid until the next call. */
void master_args_fill(struct fuzz_input *in, uint8_t coll,
                      struct wire_args *args);

/* The first message of a connection that the coordinator is to relay, between
 * the ends of a pair that has none, or of any. */
void master_relay_fill(const struct master *m, struct fuzz_input *in,
                       struct wire_msg *msg);

/* How willing members are, and what they see of each other. */
struct crowd_mood {
    bool votes, optimizes, measures, late;
    uint32_t group;    /* of newcomers */
    uint8_t hosts;     /* newcomers of one host; 0: each has its own */
    uint8_t bad, seed; /* so many of 256 pairs have no link; which ones */
    uint8_t rate;      /* about which links are measured */
};

struct crowd_room {
    uint64_t ids[WIRE_EDGES_MAX];
    struct wire_edge edges[WIRE_EDGES_MAX];
};

/* What that connection owes by all rules, or would say by its mood; false:
 * nothing. */
bool master_say_due(const struct master *m, uint32_t link,
                    const struct crowd_mood *mood, struct crowd_room *room,
                    struct wire_msg *msg);
struct crowd_mood crowd_mood(uint8_t bits, struct fuzz_input *in);

#endif
