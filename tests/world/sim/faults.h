/* faults.h - the faults of a universe. */
#ifndef PCCL_SIM_FAULTS_H
#define PCCL_SIM_FAULTS_H

#include "sim.h"

void sim_faults(struct sim *s); /* after every step */
void sim_heal(struct sim *s);   /* no more faults; frozen processes thaw */
void sim_stream_leave(struct sim *s, int stream, int side);

/* lasting.c */
/* Of a universe that meets this fault alone. */
struct sim_options lasting_options(enum sim_single kind, uint64_t seed);
const char *sim_single_name(enum sim_single kind);
/* The fault happens now, to one or several of these. */
void lasting_happen(struct sim *s, enum sim_single kind,
                    struct sim_proc *const *all, uint32_t count);
void lasting_turn(struct sim *s);          /* after every step */
bool lasting_is_over(const struct sim *s); /* all happened, and were watched */
void lasting_heal(struct sim *s);
void lasting_watch(struct sim *s, const struct sim_proc *p);

/* fetch.c */
void fetch_choose(struct sim_options *o, uint64_t seed);
void fetch_turn(struct sim *s); /* after every step */
void fetch_free(struct sim *s);
void fetch_forget(struct sim_proc *p); /* what it offers; its session is gone */
void fetch_hello(struct sim *s, struct sim_proc *p, struct wire_msg *hello);
void fetch_judge(struct sim *s, uint32_t link, enum wire_type type);
void fetch_refuses(struct sim *s, uint32_t link);
void fetch_watch(struct sim *s, const struct sim_proc *p, uint32_t conn);

/* strange.c: some process is about to do it; a stranger calls. */
void strange_stutter(struct sim *s);
void strange_garble(struct sim *s);
void strange_call(struct sim *s);
void strange_turn(struct sim *s); /* after every step */
bool strange_write(struct sim *s, struct sim_proc *p, uint32_t conn,
                   const struct conn_part parts[2], uint32_t count);
bool strange_spoilt(struct net_pipe *pipe, size_t size);
void strange_refused(struct sim *s, const struct sim_proc *p, uint32_t conn,
                     int stream);
uint32_t strange_message(struct sim *s, int stream, int side, uint8_t *frame);
void strange_clock(struct sim *s, uint64_t who, struct sim_clock *c);
pccl_ns strange_now(const struct sim *s, const struct sim_clock *c);

#endif
