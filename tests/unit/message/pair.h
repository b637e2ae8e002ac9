/* pair.h - two engines in memory. Simulated connections carry any number of
 * bytes at a time, break and refuse, depending on a seed. */
#ifndef MESSAGE_PAIR_H
#define MESSAGE_PAIR_H

#include "../../../src/message/message.h"
#include "../../../src/ring/op.h"

extern struct engine *ends[2];
extern struct messages *boxes[2]; /* of the engines */
extern const uint64_t ids[2];
extern const struct wire_member members[2];

/* Connections are refused and cut, messages to the master are lost. */
extern bool faults;
/* One of them breaks the protocol. */
extern bool lies;
/* Rule P2P-10: this side cannot dial (refused or unanswered); 2: both can, and
 * there is a master; -1: both can, without a master. */
extern int wall;
extern bool unanswered;
extern uint32_t asked; /* number of dial requests to the other side */
/* Rule P2P-9: whether memory can be read: never, always, sometimes. */
enum fetching { FETCH_NEVER, FETCH_ALWAYS, FETCH_AT_TIMES };
extern enum fetching fetching;
extern uint32_t fetched, tries;
/* Whether it is preferred; comparisons, and 0x100 for each one begun. */
extern bool preferring;
extern uint32_t compared;

/* Resets the variables declared above except `faults` and those set by the
 * test. */
void pair_start(uint64_t seed);
void pair_stop(void);
/* Installs the view of both members on side i. */
void pair_install(int i);
/* Advances the time and moves some bytes. */
void pair_turn(void);
/* Cuts all connections. */
void pair_cut(void);
uint32_t dice(uint32_t limit); /* 0 to limit - 1, from the seed */

#endif
