/* pccl_loop.h - the loop of a training that members may leave and join at any
 * time. Inline functions over pccl.h, for programs to use or to read.
 *
 *     pcclLoop_t loop = {.comm = comm, .state = &state};
 *     while (step < steps) {
 *         if (pcclLoopBegin(&loop)) break;
 *         ... train: change, which has room for count + 1 floats ...
 *         rc = pcclLoopMean(&loop, change, count, samples);
 *         if (rc == pcclTooFewPeers) continue;
 *         if (rc != pcclSuccess) break;
 *         ... apply the change to the state, as all members do ...
 *     }
 *
 * A lone survivor has no mean to apply: its step is discarded, and so are those
 * that it makes alone (pcclTooFewPeers), until company comes. With pccl-master
 * --min-ranks 2 it does not compute meanwhile: pcclLoopBegin waits. So does
 * each of several survivors that are fewer than --min-ranks.
 *
 * `step` is part of the shared state, so that a newcomer takes it from the
 * members. All members call the two in turn; a newcomer begins with
 * pcclLoopBegin after pcclConnect. An error is that of the last call on the
 * communicator (pcclGetLastError); after pcclCancelled or pcclTimedOut the same
 * function may be called again. */
#ifndef PCCL_LOOP_H
#define PCCL_LOOP_H

#include "pccl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pcclLoop_t {
    pcclComm_t *comm;         /* connected */
    pcclSharedState_t *state; /* NULL: nothing is shared. The revision counts
                                 synchronizations; the loop sets it */
    uint64_t tag;             /* of the mean */
    /* The next pass makes the state equal, without asking for newcomers. To be
     * set after an update that is not the loop's own: who was admitted there
     * begins so. */
    bool shares;
    bool goes_on_alone; /* a lone survivor applies its own steps */
    /* What the last call found. */
    bool changed;      /* members were admitted, or this one was */
    uint64_t received; /* bytes of state that this peer lacked */
    uint32_t members;  /* whose mean it was */
    /* The loop's own: what a cancelled call takes up. */
    bool entered, begun, updates, waits, accompanied;
} pcclLoop_t;

/* Begins a pass: asks whether newcomers wait (one round trip to the master),
 * and only then admits them and makes the state equal everywhere. A peer that
 * has just joined finds the members there and receives the state. A lost member
 * changes nothing here: the next mean is without it. */
static inline pcclResult_t pcclLoopBegin(pcclLoop_t *loop)
{
    pcclSharedStateSyncInfo_t info = {0, 0};
    pcclResult_t rc = pcclSuccess;
    if (!loop->begun) {
        bool pending = false;
        bool shares = loop->shares || !loop->entered;
        if (!shares) rc = pcclArePeersPending(loop->comm, &pending);
        if (rc != pcclSuccess) return rc;
        loop->updates = pending;
        loop->shares = loop->changed = shares;
        loop->received = 0;
        loop->entered = loop->begun = true;
    }
    if (loop->updates) {
        rc = pcclUpdateTopology(loop->comm);
        if (rc != pcclSuccess) return rc;
        loop->updates = false;
        loop->shares = loop->changed = true;
    }
    if (loop->shares && loop->state) {
        rc = pcclSynchronizeSharedState(
            loop->comm, loop->state,
            PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &info);
        if (rc != pcclSuccess) return rc;
        loop->state->revision++; /* of the next one */
        loop->received = info.rx_bytes;
    }
    loop->shares = loop->begun = false;
    return rc;
}

/* Replaces x by the mean over all members, each with its weight (the number of
 * its samples, say): sum(weight * x) / sum(weight). If all weights are 0, so is
 * the mean. When a member is lost, it is the mean of the others.
 *
 * x  count + 1 floats; the last one is used for the weights, and holds their
 * sum afterwards. Unspecified after an error.
 *
 * pcclTooFewPeers  this member is a lone survivor, or the run has fewer members
 *                  than it needs: discard the step and begin another pass. The
 *                  same on all members. */
static inline pcclResult_t pcclLoopMean(pcclLoop_t *loop, float *x,
                                        size_t count, float weight)
{
    pcclReduceDescriptor_t sum = {0,
                                  pcclSum,
                                  0,
                                  {pcclFloat, pcclDistributionNone},
                                  {pcclFloat, pcclQuantNone}};
    pcclAsyncReduceOp_t handle;
    pcclReduceInfo_t info = {0, 0, 0};
    pcclResult_t rc;
    size_t i;
    sum.count = count + 1;
    sum.tag = loop->tag;
    handle.comm = loop->comm;
    handle.tag = loop->tag;
    if (!loop->waits) {
        for (i = 0; i < count; i++) x[i] = weight != 0 ? x[i] * weight : 0;
        x[count] = weight;
        rc = pcclAllReduce(x, x, &sum, loop->comm, &info);
    } else {
        rc = pcclAwaitAsyncReduce(&handle, &info);
    }
    /* x is as it was, and the members are fewer. */
    while (rc == pcclRankConnectionLost)
        rc = pcclAllReduce(x, x, &sum, loop->comm, &info);
    loop->waits = rc == pcclCancelled || rc == pcclTimedOut;
    if (rc != pcclSuccess) return rc;
    loop->members = info.local_world_size;
    if (loop->members > 1) loop->accompanied = true;
    if (loop->members == 1 && loop->accompanied && !loop->goes_on_alone)
        return pcclTooFewPeers;
    for (i = 0; x[count] != 0 && i < count; i++) x[i] /= x[count];
    return rc;
}

#ifdef __cplusplus
}
#endif

#endif
