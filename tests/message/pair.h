/* pair.h - two engines in memory, joined by connections that carry any number
 * of bytes at a time, break and refuse, all from a seed. */
#ifndef MESSAGE_PAIR_H
#define MESSAGE_PAIR_H

#include "../../src/ring/op.h"

extern struct engine *ends[2];
extern const uint64_t ids[2];
extern const struct wire_member members[2];

/* Calls are refused, connections cut, words to the master lost. */
extern bool faults;
/* Rule P2P-10: no call of this side passes, refused or unanswered; 2: there is
 * no such side, but a master to ask; -1: no master either. */
extern int wall;
extern bool unanswered;
extern uint32_t asked; /* how often one had the other call */
/* Rule P2P-9: memory that can be read, or not, or not always. */
enum fetching { FETCH_NEVER, FETCH_ALWAYS, FETCH_AT_TIMES };
extern enum fetching fetching;
extern uint32_t fetched, tries;

/* Of what is set above `faults` is reset, the others are read. */
void pair_start(uint64_t seed);
void pair_stop(void);
/* The view of both, on side i. */
void pair_install(int i);
/* Time passes, some bytes move. */
void pair_turn(void);
/* All connections there are. */
void pair_cut(void);
uint32_t dice(uint32_t limit); /* 0 to limit - 1, by the seed */

#endif
