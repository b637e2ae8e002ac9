/* api.h - shared by the files that hold the entry points of pccl.h. */
#ifndef PCCL_API_H
#define PCCL_API_H

#include "comm.h"

/* The checks at the start of every call on a connected communicator. Returns
 * with the lock held on success. */
pcclResult_t api_enter(const pcclComm_t *comm, pcclComm_t **c);
pcclResult_t api_leave(pcclComm_t *c, pcclResult_t result);

/* Sets the last error: the pairs that prevent a ring of the members. */
void api_describe_blockers(pcclComm_t *c);

#endif
