/* program.h - inside of the simulated program: program.c is its steps,
 * program_op.c the operations in them. */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "sim.h"

uint64_t program_hash(const struct sim *s, uint64_t a, uint64_t b);

/* A step in which one member calls something else than the others. */
bool program_special(const struct sim *s, uint64_t step);

/* The i-th operation of the process's step. */
void program_spec(const struct sim *s, const struct sim_proc *p, uint32_t i,
                  struct sim_spec *spec);

/* False: no memory. */
bool program_launch(struct sim *s, struct sim_proc *p, struct sim_op *o);

/* The operation is done: takes its result and checks it. */
void program_take(struct sim *s, struct sim_proc *p, struct sim_op *o);
void program_ends(struct sim *s, struct sim_proc *p, struct sim_op *o,
                  uint32_t contributors);

/* program_fast.c. False: it has not begun. */
bool program_fast(struct sim *s, struct sim_proc *p, struct sim_op *o,
                  const struct op_request *r, uint64_t view_epoch);
/* Before its result is taken. */
void program_fast_taken(const struct sim_proc *p, const struct sim_op *o);

#endif
