/* election.h - an independent recount of every synchronization. */
#ifndef PCCL_SIM_ELECTION_H
#define PCCL_SIM_ELECTION_H

#include "sim.h"

struct election *election_new(void);
void election_free(struct election *e);

/* Before the master handles a member's SYNC or SYNCED, or its end. */
void election_asked(struct sim *s, uint32_t link, const struct wire_msg *msg);
void election_reported(struct sim *s, uint32_t link,
                       const struct wire_msg *msg);
void election_gone(struct sim *s, uint32_t link);
/* The master has completed its reaction to an event. */
void election_settled(struct sim *s);

/* The master sends STATE. */
void election_said(struct sim *s, const uint32_t *links, uint32_t count,
                   const struct wire_msg *msg);

/* A member's program took a success; id 0: nothing was moved. */
void election_taken(struct sim *s, uint32_t number, uint64_t member,
                    uint64_t id, uint64_t tx, uint64_t rx);

/* The conditions that a process must meet while it synchronizes. */
void election_watch(struct sim *s, const struct sim_proc *p);

#endif
