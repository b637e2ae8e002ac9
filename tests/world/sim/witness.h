/* witness.h - tells the model (world/model) what happens in a universe. */
#ifndef SIM_WITNESS_H
#define SIM_WITNESS_H

#include "sim.h"

#include "../model/trace.h"

/* NULL: the model is off. */
struct witness *witness_new(struct sim *s);
void witness_end(struct sim *s);  /* the universe has ended as it should */
void witness_free(struct sim *s); /* what follows is no event */
/* What follows is no behaviour that the rules of the model describe. */
void witness_leaves(struct sim *s);

void witness_tell(struct sim *s, struct trace *t);
uint32_t witness_outcome(int result);

/* witness_average.c: the fields of PARTIAL or COVERAGE; lists are valid until
 * the next call. */
void witness_partial(struct trace *t, const struct wire_msg *m);
void witness_samples(struct trace *t, const struct wire_msg *m);
enum { WITNESS_VECTOR_MAX = 4096 };
/* `size` bytes each. */
struct witness_vectors {
    const uint8_t *send, *recv;
    size_t size;
};
void witness_made(const struct sim_proc *p, const struct sample_report *r);
void witness_sum(const struct sim_proc *p, const struct sample_sum *sum);
void witness_average(const struct sim_proc *p, const struct partial_request *r,
                     size_t element);
/* `c` only if the result is success. */
void witness_averaged(const struct sim_proc *p, uint64_t tag, int result,
                      const struct partial_call *c, struct witness_vectors v);

/* Where the records go instead of the model; NULL: to the model. */
extern void (*witness_tap)(const struct trace *t);
/* Not NULL: a refusal is noted here, and the universe goes on without the
 * model. NULL: it fails. */
struct witness_note {
    bool refused;
    char why[256];
};
extern struct witness_note *witness_lenient;

/* Messages: with the master's number of the link. */
void witness_accept(struct sim *s, uint32_t link, uint32_t uid);
void witness_stranger(struct sim *s, uint32_t link, const struct wire_msg *m);
void witness_to_master(const struct sim_proc *p, const struct wire_msg *m);
void witness_at_master(struct sim *s, uint32_t link, const struct wire_msg *m);
void witness_to_proc(struct sim *s, uint32_t link, const struct wire_msg *m);
void witness_at_proc(const struct sim_proc *p, const struct wire_msg *m);
void witness_settled(struct sim *s);
void witness_dies(struct sim *s); /* the master */
void witness_lost(struct sim *s, uint32_t link);
void witness_closed(struct sim *s, uint32_t link, const char *reason);
void witness_cut(const struct sim_proc *p);
void witness_mute(const struct sim_proc *p);

/* The program. */
void witness_launch(const struct sim_proc *p, const struct sim_op *o);
void witness_result(const struct sim_proc *p, const struct sim_op *o,
                    uint32_t contributors, bool fast);
void witness_answer(const struct sim_proc *p, enum vote_kind kind,
                    uint32_t flag);
void witness_told(const struct sim_proc *p);
void witness_shared(const struct sim_proc *p, int result, uint64_t revision);
void witness_view(const struct sim_proc *p);
void witness_over(const struct sim_proc *p, bool crash);

/* judge.c: test_sim --judge. 1: somebody objects; 2: it cannot run, or nothing
 * is to be judged. */
int judge(char **names, uint32_t count, void (*universe)(const char *name));

/* Frames of operations are reported from now on. */
void witness_frames(struct sim_proc *p);
void witness_parts(struct sim_proc *p); /* ... of partial all-reduces, too */
/* A process writes the frame with this head twice. */
void witness_stutters(const struct sim_proc *p, const struct conn *c,
                      const uint8_t *head);
/* The fast path of a process has found the frame of that member. */
void witness_fast(const struct sim_proc *p, uint64_t from, uint64_t digest);

#endif
