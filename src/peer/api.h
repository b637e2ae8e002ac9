/* api.h - shared by the files that hold the entry points of pccl.h. */
#ifndef PCCL_API_H
#define PCCL_API_H

#include "comm.h"

/* The checks that need no lock. */
pcclResult_t api_ready(const pcclComm_t *comm);
/* The checks at the start of every call on a communicator. Returns with the
 * lock held on success; api_leave() releases it. */
pcclResult_t api_begin(const pcclComm_t *comm, pcclComm_t **c);
/* api_begin() for a call whose communicator must be connected. */
pcclResult_t api_enter(const pcclComm_t *comm, pcclComm_t **c);
pcclResult_t api_leave(pcclComm_t *c, pcclResult_t result);

/* An error if a call stopped waiting for what must end before an operation, a
 * vote or a synchronization begins. */
pcclResult_t api_take_up(pcclComm_t *c);

/* Locked. Starts an all-reduce; the caller moves the bytes next, or waits. */
pcclResult_t api_launch_reduce(pcclComm_t *c, const void *sendbuf,
                               void *recvbuf, const pcclReduceDescriptor_t *d,
                               struct op **out);
/* Locked. Waits for the operation and ends it. If the wait ends before, the
 * operation goes on, and another call may await it. */
pcclResult_t api_take(pcclComm_t *c, struct op *op, pccl_ns until,
                      pcclReduceInfo_t *info);

/* Sets the last error: the pairs that prevent a ring of the members. */
void api_describe_blockers(pcclComm_t *c);

#endif
