/* averages.h - partial all-reduces in every process, beside everything else
 * that happens, and their oracle. */
#ifndef PCCL_SIM_AVERAGES_H
#define PCCL_SIM_AVERAGES_H

#include "sim.h"

void averages_begin(void);
/* True: there was work. */
bool averages_turn(struct sim *s, struct sim_proc *p);
/* Before the session does. */
void averages_reads(struct sim *s, struct sim_proc *p,
                    const struct wire_msg *m);
void averages_end(struct sim_proc *p); /* before its session is freed */
/* It gives its state to a synchronization; and has got one, this or perhaps
 * this. */
void averages_vote(struct sim *s, const struct sim_proc *p);
void averages_receive(const struct sim *s, const struct sim_proc *p);
/* Every live process has had a round of its own since the faults stopped. */
bool averages_delivered(const struct sim *s);

#endif
