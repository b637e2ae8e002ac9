/* status.h - texts of result codes; one list for code and text. */
#ifndef PCCL_STATUS_H
#define PCCL_STATUS_H

#define STATUS_LIST(X)                                                         \
    X(pcclSuccess, "success")                                                  \
    X(pcclNotInitialized, "pcclInit has not been called")                      \
    X(pcclInternalError, "internal error: out of memory or descriptors")       \
    X(pcclInvalidArgument, "invalid argument, or members disagree on one")     \
    X(pcclInvalidUsage, "the call is not allowed in this state")               \
    X(pcclTooFewPeers, "too few peers")                                        \
    X(pcclMasterConnectionFailed, "no connection to the master")               \
    X(pcclRankConnectionFailed, "the members cannot all reach each other")     \
    X(pcclRankConnectionLost, "a member was lost")                             \
    X(pcclNoSharedStateAvailable, "no shared state available")                 \
    X(pcclPendingAsyncOps, "an operation has not been awaited")                \
    X(pcclUpdateTopologyFailed, "the topology update failed")                  \
    X(pcclTopologyOptimizationFailed, "the topology optimization failed")      \
    X(pcclOperationFailed, "a member had the operation fail")                  \
    X(pcclCancelled, "cancelled; what the call waited for goes on")            \
    X(pcclTimedOut, "timed out; what the call waited for goes on")             \
    X(pcclFileError, "a checkpoint cannot be written or read")

const char *status_text(int result);

#endif
