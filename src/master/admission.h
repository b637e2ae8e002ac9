/* admission.h - who comes too late, and for whom a run waits. */
#ifndef PCCL_ADMISSION_H
#define PCCL_ADMISSION_H

#include "master.h"

/* Rule M14: members, and the newcomers that an update would admit, are fewer
 * than the run needs. *have: their number. */
bool admission_lacks(const struct master *m, uint32_t *have);
/* Tells the operator that the run waits. */
void admission_settle(struct master *m);
/* Rule M2b: newcomers of a job that is over. */
void admission_refuse(struct master *m);
/* Begins the first view, or an update that all members have voted for. */
void admission_admit(struct master *m);

/* Refuses a HELLO: there are so many peers already. */
void admission_full(struct master *m, uint32_t link, uint32_t known);

#endif
