/* waiting_calls.h - calls that wait for other members, of one form. */
#ifndef PCCL_TESTS_WAITING_CALLS_H
#define PCCL_TESTS_WAITING_CALLS_H

#include "../../../include/pccl.h"

static inline pcclResult_t call_connect(pcclComm_t *comm)
{
    return pcclConnect(comm);
}

static inline pcclResult_t call_update(pcclComm_t *comm)
{
    return pcclUpdateTopology(comm);
}

static inline pcclResult_t call_pending(pcclComm_t *comm)
{
    bool pending;
    return pcclArePeersPending(comm, &pending);
}

static inline pcclResult_t call_optimize(pcclComm_t *comm)
{
    return pcclOptimizeTopology(comm);
}

static inline pcclResult_t call_take(pcclComm_t *comm)
{
    pcclEvent_t event;
    return pcclTakeEvent(comm, -1, &event);
}

#endif
