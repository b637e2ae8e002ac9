/* progress_home.h - where the ranks of a full host wait. The kernel leaves
 * three of four ranks on one of two processors for a second at times, and each
 * operation then takes as long as three turns there, and not two. So the thread
 * that waits goes to the processor that its rank has, by the order of this
 * host's ranks, and may leave it at once again: nothing is bound.
 *
 * Where another program takes part of that processor, the kernel moves the rank
 * away again. Each return makes the pause before the next one longer. */
#ifndef PCCL_PEER_PROGRESS_HOME_H
#define PCCL_PEER_PROGRESS_HOME_H

#include "../base/base.h"

#include <pthread.h>
#include <sched.h>

#define HOME_PAUSE_MIN (5 * PCCL_MS)
#define HOME_PAUSE_MAX (1280 * PCCL_MS)

struct home {
    int processor;    /* -1: the kernel chooses */
    bool has_thread;  /* one thread of the process waits there */
    pthread_t thread; /* that thread */
    pccl_ns next, pause;
};

/* Pure. The processor of the member that has `before` others of its host before
 * it, of `members` on that host. -1 if there are fewer members than processors,
 * which the kernel's choice of idle ones suits, or only one processor. */
int home_choose(const cpu_set_t *allowed, uint32_t before, uint32_t members);

/* Pure. The part of a process with these processors that runs on `own`, in
 * thousandths. */
uint32_t home_share(const cpu_set_t *own, const cpu_set_t *others);

/* Pure. The thread is on that processor. True: it is to go to its own. */
bool home_due(struct home *p, pccl_ns now, int processor);

/* A view is in force. The kernel chooses where somebody has bound this process,
 * and with PCCL_PLACE=0. */
void home_begin(struct home *p, uint32_t before, uint32_t members);

/* The calling thread waits. Costs a comparison while nothing is due. */
void home_keep(struct home *p, pccl_ns now);

#endif
