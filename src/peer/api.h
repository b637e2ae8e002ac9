/* api.h - shared by the files that hold the entry points of pccl.h. */
#ifndef PCCL_API_H
#define PCCL_API_H

#include "comm.h"

/* The checks every call on a connected communicator begins with. Returns with
 * the lock held on success. */
pcclResult_t api_enter(const pcclComm_t *comm, pcclComm_t **c);
pcclResult_t api_leave(pcclComm_t *c, pcclResult_t result);

/* Sets the last error: which pairs keep the members from a ring. */
void api_describe_blockers(pcclComm_t *c);

#endif
