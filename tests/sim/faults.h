/* faults.h - the faults of a universe. */
#ifndef PCCL_SIM_FAULTS_H
#define PCCL_SIM_FAULTS_H

#include "sim.h"

void sim_faults(struct sim *s); /* after every step */
void sim_heal(struct sim *s);   /* no more faults; frozen processes thaw */
void sim_stream_leave(struct sim *s, int stream, int side);

#endif
