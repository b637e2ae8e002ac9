/* pccl.h - fault-tolerant, elastic collective communication.
 *
 * Source and binary compatible with the C API of PrimeIntellect's PCCL 1.0:
 * names, enum values, struct layouts and calling conventions. The second part
 * of this file declares the additions.
 *
 * Words. A *peer* is one communicator of one process. Peers find each other
 * through a *master* (the coordinator, build/bin/pccl-master or
 * pcclCreateMaster). Accepted peers with the same peer_group form a *group*.
 * The ordered list of a group's members is its *view*; the number of the view
 * in force is the group's *epoch*. Collectives run inside one group.
 *
 * Results are a pcclResult_t, and zero means success. Whatever the network or
 * another peer does, no call exits the process, raises a signal or prints to
 * stdout.
 *
 * Time. No call waits for a dead, stopped or unreachable peer longer than the
 * run's deadline plus its own work. The deadline is PCCL_DEADLINE (environment,
 * seconds, default 3) of the master, which sends it to the peers. A call does
 * wait without limit for a live peer that has not called yet, or that cannot:
 * one that gets no CPU time, or that a debugger holds, as far as the master or
 * the launcher's agent sees it on its host. The master's log names it. Stopped
 * means: by a signal, while others run. While the master itself is silent
 * (stopped, or its network is down), collectives go on, and calls that need it
 * wait for up to PCCL_MASTER_PATIENCE (environment of the peer, seconds,
 * default 60); a connection to it that ends, ends the waiting. pcclCancel and
 * pcclSetTimeLimit end the waiting of any call.
 *
 * Threads. Any thread may call; calls on one communicator may run in parallel
 * where the operations themselves may (collectives with distinct tags, and
 * pcclArePeersPending beside them). While pcclConnect looks a name up and
 * dials, other calls on its communicator wait for that, but pcclCancel.
 * pcclDestroyCommunicator must be the last call on its communicator that
 * begins; those under way end.
 *
 * Processes. A communicator or a master belongs to the process that created it.
 * In a forked child its functions return pcclInvalidUsage, at once and without
 * effect on the parent's run; pcclDestroyCommunicator and pcclDestroyMaster
 * return pcclSuccess and only free the child's copy. The child may create its
 * own. The library closes its sockets in the child before fork() returns there,
 * so a child that outlives its parent does not hide the parent's death. All
 * descriptors are closed at exec. A program that closes those of the library is
 * out of its run: calls return pcclMasterConnectionFailed.
 *
 * NULL where a pointer is required is pcclInvalidArgument. Before pcclInit any
 * call is pcclNotInitialized, except the master functions, pcclGetBuildInfo,
 * pcclGetVersion, pcclParseAddress, pcclCancel and pcclGetErrorString.
 *
 * Limits. 4096 peers and 256 peer groups in a run (more are refused by
 * pcclConnect); 4096 operations of a communicator not awaited, of which 256 may
 * have a scope. A communicator takes a thread, some descriptors and about 5
 * MiB, and up to about 1 MiB per connection; with one other member on the host
 * 4 MiB. */
#ifndef PCCL_H
#define PCCL_H

#include "ccoip_inet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of this header, which is that of the library it came with. */
#define PCCL_VERSION_MAJOR 0
#define PCCL_VERSION_MINOR 1
#define PCCL_VERSION_PATCH 0
#define PCCL_VERSION_STRING "0.1.0"
/* One number to compare with: #if PCCL_VERSION >= 102 is version 0.1.2. */
#define PCCL_VERSION                                                           \
    (PCCL_VERSION_MAJOR * 10000 + PCCL_VERSION_MINOR * 100 + PCCL_VERSION_PATCH)

/* Marks an argument that may be NULL, in programs made for PCCL 1.0. */
#ifndef PCCL_NULLABLE
#define PCCL_NULLABLE
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef PCCL_EXPORT
#if defined(_WIN32)
#define PCCL_EXPORT
#else
#define PCCL_EXPORT __attribute__((visibility("default")))
#endif
#endif

/* ---------------------------------------------------------------- types */

typedef enum pcclResult_t {
    pcclSuccess = 0,
    pcclNotInitialized = 1,         /* pcclInit has not been called */
    pcclInternalError = 2,          /* out of memory, descriptors, threads, or
                                       room for operations; from any call */
    pcclInvalidArgument = 3,        /* an argument is wrong here, or peers
                                       disagree on count, type, op or root */
    pcclInvalidUsage = 4,           /* the call is not allowed now */
    pcclTooFewPeers = 5,            /* fewer members than the run needs
                                       (pccl-master --min-ranks) */
    pcclMasterConnectionFailed = 6, /* master unreachable, refused, or lost */
    pcclRankConnectionFailed = 7,   /* no ring through reachable links */
    pcclRankConnectionLost = 8,     /* a member was lost; call again */
    pcclNoSharedStateAvailable = 9,
    pcclPendingAsyncOps = 10, /* an operation has not been awaited */
    pcclUpdateTopologyFailed = 11,
    pcclTopologyOptimizationFailed = 12,
    pcclOperationFailed = 13, /* by a member, with pcclFailCollective */
    pcclCancelled = 14,       /* by pcclCancel; what it waited for goes on */
    pcclTimedOut = 15,        /* the same, by the limit of pcclSetTimeLimit */
    pcclFileError = 16        /* a checkpoint cannot be written or read, or is
                                 not what was written */
} pcclResult_t;

typedef enum pcclDataType_t {
    pcclUint8 = 0,
    pcclInt8 = 1,
    pcclInt16 = 2,
    pcclUint16 = 3,
    pcclUint32 = 4,
    pcclInt32 = 5,
    pcclUint64 = 6,
    pcclInt64 = 7,
    pcclFloat16 = 8,
    pcclBFloat16 = 9,
    pcclFloat = 10,
    pcclDouble = 11
} pcclDataType_t;

typedef enum pcclDeviceType_t {
    pcclDeviceCpu = 0,
    pcclDeviceCuda = 1
} pcclDeviceType_t;

typedef enum pcclRedOp_t {
    pcclSum = 0,
    pcclAvg = 1, /* divided by the number of contributing peers */
    pcclProd = 2,
    pcclMax = 3,
    pcclMin = 4
} pcclRedOp_t;

typedef enum pcclAttribute_t {
    PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE = 1,     /* accepted peers of the run */
    PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE = 2, /* members of this group */
    PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS = 3,
    PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE = 4,
    PCCL_ATTRIBUTE_RANK = 5,       /* of this peer in its group's view */
    PCCL_ATTRIBUTE_LAUNCH_RANK = 6 /* the rank hint that it joined with: the
                                      rank that pccl-master gave, or -1 */
} pcclAttribute_t;

typedef enum pcclSharedStateSyncStrategy_t {
    PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR = 0,
    PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY = 1,
    PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY = 2
} pcclSharedStateSyncStrategy_t;

typedef enum pcclDistributionHint_t {
    pcclDistributionNone = 0,
    pcclDistributionNormal = 1,
    pcclDistributionUniform = 2
} pcclDistributionHint_t;

typedef enum pcclQuantizationAlgorithm_t {
    pcclQuantNone = 0,
    pcclQuantMinMax = 1,
    pcclQuantZeroPointScale = 2
} pcclQuantizationAlgorithm_t;

typedef struct pcclComm_t pcclComm_t;
typedef struct pcclRankInfo_t pcclRankInfo_t; /* declared by PCCL, unused */
typedef struct pcclMasterInstanceState_t pcclMasterInstance_t;

typedef struct pcclRankUuid_t {
    uint8_t data[16];
} pcclRankUuid_t;

typedef struct pcclCommCreateParams_t {
    ccoip_socket_address_t master_address;
    uint32_t peer_group;               /* any number; equal = same group */
    uint32_t p2p_connection_pool_size; /* TCP connections per neighbour, at
                                          most 64 (more count as 64). 0: 8 for
                                          round trips from 3 ms on, 16 from
                                          30 ms on; 8 to a near one if others
                                          have such round trips, else 1. Where
                                          memory is shared there is one */
} pcclCommCreateParams_t;

typedef struct pcclReduceInfo_t {
    uint32_t local_world_size; /* peers whose contribution is in the result */
    uint64_t tx_bytes;         /* payload sent by this peer, no headers */
    uint64_t rx_bytes;         /* payload received by this peer */
} pcclReduceInfo_t;

typedef struct pcclReduceOperandDescriptor_t {
    pcclDataType_t datatype;
    pcclDistributionHint_t distribution_hint;
} pcclReduceOperandDescriptor_t;

typedef struct pcclQuantizationOptions_t {
    pcclDataType_t quantized_datatype; /* ignored with pcclQuantNone */
    pcclQuantizationAlgorithm_t algorithm;
} pcclQuantizationOptions_t;

typedef struct pcclReduceDescriptor_t {
    size_t count; /* elements */
    pcclRedOp_t op;
    uint64_t tag;
    pcclReduceOperandDescriptor_t src_descriptor;
    pcclQuantizationOptions_t quantization_options;
} pcclReduceDescriptor_t;

typedef struct pcclReduceSingleDescriptor_t {
    const void *sendbuf;
    void *recvbuf;
    pcclReduceDescriptor_t descriptor;
} pcclReduceOpDescriptor_t;

typedef struct pcclAsyncReduceOp_t {
    pcclComm_t *comm;
    uint64_t tag;
} pcclAsyncReduceOp_t;

typedef struct pcclTensorInfo_t {
    const char *name;
    void *data;
    size_t count; /* elements */
    pcclDataType_t datatype;
    pcclDeviceType_t device_type;
    bool allow_content_inequality;
} pcclTensorInfo_t;

typedef struct pcclSharedState_t {
    uint64_t revision;
    size_t count; /* of infos */
    pcclTensorInfo_t *infos;
} pcclSharedState_t;

typedef struct pcclSharedStateSyncInfo_t {
    size_t tx_bytes; /* of tensors, see pcclSynchronizeSharedState */
    size_t rx_bytes;
} pcclSharedStateSyncInfo_t;

typedef struct pcclBuildInfo_t {
    bool has_cuda_support;
} pcclBuildInfo_t;

/* -------------------------------------------------------- library, peer */

/* Makes the library ready. Idempotent, thread-safe; pcclSuccess. */
PCCL_EXPORT pcclResult_t pcclInit(void);

/* Creates an unconnected communicator in *comm_out. No I/O: the address is
 * not checked here. The caller owns it until pcclDestroyCommunicator. */
PCCL_EXPORT pcclResult_t pcclCreateCommunicator(
    const pcclCommCreateParams_t *params, pcclComm_t **comm_out);

/* Reads one attribute of the world, as this peer has been notified of it. The
 * value changes only inside pcclConnect, pcclUpdateTopology,
 * pcclOptimizeTopology and a failing collective. Never blocks.
 *
 * pcclInvalidArgument  unknown attribute.
 * pcclInvalidUsage     not connected. */
PCCL_EXPORT pcclResult_t pcclGetAttribute(const pcclComm_t *comm,
                                          pcclAttribute_t attribute,
                                          int *p_attribute_out);

/* Leaves the run and frees the communicator, also when it is not connected or
 * the master is gone. Operations not yet awaited are dropped. Calls that other
 * threads have under way on it return pcclCancelled first; no other may begin.
 * The other members see this peer as lost only if they still need it. The call
 * mostly does not wait. It waits at most one deadline for its posted messages
 * to be acknowledged, and at most another deadline and a second for the master
 * to release it. Afterwards the pointer is invalid, and so are messages that
 * were not released. */
PCCL_EXPORT pcclResult_t pcclDestroyCommunicator(pcclComm_t *comm);

/* Registers with the master and blocks until the accepted peers admit this
 * one: at once in an empty run, else at their next pcclUpdateTopology. That
 * wait has no limit.
 *
 * pcclSuccess                 accepted; attributes are valid.
 * pcclMasterConnectionFailed  refused, rejected or unreachable (within
 *                             deadline_ms of pcclSetOptions); the same
 *                             communicator may try again.
 * pcclInvalidUsage            connected already.
 *
 * A peer that was evicted, or whose master is lost, may call it again on the
 * same communicator. It joins anew; operations that it had not awaited are
 * gone. */
PCCL_EXPORT pcclResult_t pcclConnect(pcclComm_t *comm);

/* Admits registered newcomers and takes losses into account. Collective over
 * the accepted peers of *all* groups: blocks until each of them has called.
 * Afterwards world size and rank may have changed, equally for everyone.
 * A world of one is allowed.
 *
 * A run may need a minimum of members (pccl-master --min-ranks N). With fewer
 * the training waits here: the call returns when members and newcomers are N,
 * who are then all admitted. Collectives of the whole view end with
 * pcclTooFewPeers meanwhile, and pcclArePeersPending says yes, so a loop that
 * asks it comes here. (Newcomers that fail while they are admitted may leave
 * the view with fewer; then it is the same again.)
 *
 * pcclSuccess                the view is in force.
 * pcclPendingAsyncOps        an operation of this peer is not awaited yet.
 * pcclInvalidUsage           not connected, or another thread is inside such a
 *                            call; or another peer is inside an operation that
 *                            this one did not launch, or in another vote.
 * pcclUpdateTopologyFailed   evicted or master lost; connect anew. */
PCCL_EXPORT pcclResult_t pcclUpdateTopology(pcclComm_t *comm);

/* Whether newcomers wait to be accepted, in any group, or the run has fewer
 * members than it needs (see pcclUpdateTopology). Collective over all
 * accepted peers, and all get the same answer. It may run beside collectives,
 * from another thread. *pending_out is untouched on error.
 *
 * pcclInvalidUsage  not connected, evicted, such a call is under way, or
 *                   another peer has been for 2 deadlines in an operation that
 *                   this one did not launch. */
PCCL_EXPORT pcclResult_t pcclArePeersPending(const pcclComm_t *comm,
                                             bool *pending_out);

/* Finds a better order of the ring that large operations use, and adopts it
 * on all members at once. Collective over the members of the peer group: blocks
 * until each of them has called. Nobody is admitted. Ranks do not change,
 * except by the loss of members meanwhile, as in pcclUpdateTopology.
 *
 * The search uses what collectives have measured of the links. Edges between
 * members that nobody has used lately are measured by short transfers (at most
 * 16 MiB and a second each), between disjoint pairs at the same time: up to 16
 * members every pair; beyond, the pairs of rings that may be good. No transfer
 * begins after 20 seconds.
 *
 * The ring's slowest edge is made as fast as can be; then the sum of round
 * trips is made as small as can be. In larger groups the search goes on in the
 * background. The next call or pcclUpdateTopology adopts its ring, if the
 * members are still the same. Pairs that cannot connect are left out of the
 * ring.
 *
 * pcclSuccess                     the ring is in force, see pcclGetRing.
 * pcclInvalidUsage                not connected, a world of one, or another
 *                                 member is inside another call.
 * pcclPendingAsyncOps             an operation is not awaited yet.
 * pcclTopologyOptimizationFailed  no ring connects all members; the text of
 *                                 pcclGetLastError names the pairs of ranks.
 *                                 Collectives fail until an update or another
 *                                 optimization finds one.
 * pcclMasterConnectionFailed      evicted or master lost; connect anew. */
PCCL_EXPORT pcclResult_t pcclOptimizeTopology(const pcclComm_t *comm);

/* The ring in force: *count_out ranks in the order in which data travels, each
 * to the next and the last to the first; 0 if there is no ring. At most
 * `capacity` ranks are written. Local, does not block. Right after a call
 * that changed the view the ranks are those of pcclGetView. While a loss is
 * still to be reported (see pcclAllReduce) the ring is already that of the
 * survivors.
 *
 * pcclInvalidUsage     not connected.
 * pcclInvalidArgument  count_out is NULL, or ranks with a capacity. */
PCCL_EXPORT pcclResult_t pcclGetRing(const pcclComm_t *comm, int *ranks,
                                     size_t capacity, size_t *count_out);

/* ----------------------------------------------------------- all-reduce */

/* Reduces one vector of each member and gives all of them the result.
 *
 *   recv[i] = op(send of member 0 [i], ..., send of member world-1 [i])
 *
 * sendbuf     count elements, not modified unless sendbuf == recvbuf.
 * recvbuf     count elements. May equal sendbuf; any other overlap is
 *             pcclInvalidArgument. Unspecified after a failure when it is
 *             not sendbuf; restored to its old content when it is.
 * descriptor  count may be zero. count, op, datatype and quantization must be
 *             equal on all members. tag names the operation among those in
 *             flight on this communicator (from launch to await); scopes
 *             may use the same tags, one after the other. Programs should use
 *             tags again: each 49,152 different pairs of tag and scope cost a
 *             change of the epoch. The distribution hint is accepted and not
 *             used: quantization follows the data itself.
 * info        written on success; may be NULL.
 *
 * Uniform: if one surviving member succeeds, every one does, with the same
 * bits. pcclReduceInfo_t.local_world_size is the number of contributors.
 * Integers wrap; their average truncates towards zero. Half types are added in
 * f32. Numbers are rounded to nearest even and subnormals are kept, whatever
 * floating-point environment the calling threads have.
 *
 * Quantized (algorithm other than pcclQuantNone), vectors travel as codes of
 * quantized_datatype, each block of 512 elements with a scale of its own:
 * float to 8 bits sends 3.94 times fewer bytes. pcclQuantMinMax spreads the
 * codes between the extremes of a block. pcclQuantZeroPointScale keeps zero
 * exact, for sparse vectors. Any floating-point datatype can be quantized, to
 * any integer type narrower than it, with every op but pcclProd, whose error
 * would have no bound. Sums are made in float (double for pcclDouble). Every
 * member makes its result from the codes that all members have, so all results
 * are bit-identical. NaN and infinities keep their values and places.
 *
 * Let n be the number of members, Q = 2^bits - 1 (3 less beside NaN or
 * infinities), and A the largest magnitude that a member has in the block. As
 * long as n is small beside Q, an element of the result differs from the exact
 * one by at most
 *
 *   0.52 n (n + 1) A / Q     pcclSum
 *   0.52 (n + 1) A / Q       pcclAvg
 *   1.04 n A / Q             pcclMax, pcclMin
 *
 * plus the rounding of the sums in their type. For normally distributed numbers
 * in 8 bits the error, as root mean square, is 0.8 % of the sum of 2 members,
 * 1.5 % of 8, 4 % of 64; in 16 bits it is 257 times smaller. src/reduce/quant.h
 * has the arithmetic. Signed codes give the results of unsigned codes of their
 * width.
 *
 * pcclSuccess             recvbuf holds the result. In a world of one that is
 *                         the vector itself.
 * pcclRankConnectionLost  a member was lost. When this returns, the world has
 *                         shrunk and the input is as it was: call again.
 * pcclRankConnectionFailed  the members cannot all reach each other.
 * pcclTooFewPeers         the run needs more members: the input is as it was;
 *                         discard the step, and call pcclUpdateTopology, which
 *                         waits for newcomers. Only where --min-ranks is set.
 * pcclInvalidArgument     a rule above is broken, or members disagree:
 *                         pcclGetLastError names the argument, its values and
 *                         the ranks that have them.
 * pcclInvalidUsage        not connected; or another member sits in an update
 *                         that excludes this operation.
 * pcclMasterConnectionFailed  evicted, or the run is over; connect anew.
 * pcclInternalError       4096 operations are not awaited, or no memory.
 * pcclCancelled, pcclTimedOut  see pcclCancel: the operation goes on, and
 *                         {comm, tag} is its handle for pcclAwaitAsyncReduce.
 *
 * Ring reduce-scatter + all-gather: Patarasuk & Yuan, JPDC 69(2), 2009. */
PCCL_EXPORT pcclResult_t pcclAllReduce(const void *sendbuf, void *recvbuf,
                                       const pcclReduceDescriptor_t *descriptor,
                                       const pcclComm_t *comm,
                                       pcclReduceInfo_t *reduce_info_out);

/* Starts pcclAllReduce; it progresses in the background. Never blocks. Both
 * buffers belong to the library until pcclAwaitAsyncReduce has returned.
 * *handle_out is a plain value: it needs no release, but each handle has to be
 * awaited. The await reports failures after the launch, the loss of a member
 * included. This call reports those before it (bad arguments, a tag in flight,
 * no room), and then there is nothing to await. */
PCCL_EXPORT pcclResult_t
pcclAllReduceAsync(const void *sendbuf, void *recvbuf,
                   const pcclReduceDescriptor_t *descriptor,
                   const pcclComm_t *comm, pcclAsyncReduceOp_t *handle_out);

/* Waits for an operation and returns its result, as pcclAllReduce does. Each
 * handle is awaited once; after pcclCancelled or pcclTimedOut it is still to be
 * awaited. A handle that is unknown, or was awaited, is pcclInvalidArgument,
 * and pcclGetLastError says so. (PCCL 1.0 calls it a lost connection.) */
PCCL_EXPORT pcclResult_t
pcclAwaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle,
                     pcclReduceInfo_t *reduce_info_out);

/* Runs the operations, at most max_in_flight (and never more than 128) at a
 * time. Repeats those that fail with pcclRankConnectionLost until all are done.
 * Tags must differ among max_in_flight consecutive operations, and count must
 * be equal on all members. Operations that were done before a loss keep their
 * result, so results may come from different world sizes; see
 * pcclAllReduceMultipleWithResults.
 *
 * reduce_info_out  sums of bytes over all operations, world size of the last.
 *
 * pcclInvalidArgument  count or max_in_flight is 0, or an operation is wrong.
 * pcclCancelled, pcclTimedOut  operations may be in flight: await the tag of
 *                      each (the others are pcclInvalidArgument).
 * otherwise            as pcclAllReduce; every operation is awaited. */
PCCL_EXPORT pcclResult_t pcclAllReduceMultipleWithRetry(
    const pcclReduceOpDescriptor_t *ops, size_t count, const pcclComm_t *comm,
    pcclReduceInfo_t *reduce_info_out, int max_in_flight);

/* --------------------------------------------------------- shared state */

/* Makes every member of the group hold the same bytes in every tensor that
 * does not allow content inequality. Collective over the group; other groups
 * are not waited for; a world of one is allowed. Blocks until all members have
 * called, and then as long as any member receives. Where nothing differs, only
 * digests travel. Otherwise the 64 KiB blocks that differ travel, from all
 * members that hold the elected content at once, each checked by its hash.
 *
 * shared_state  tensors of any type, size and alignment, in the same order on
 *               all members with equal name, type, count and flag, but on the
 *               device of each one's choice. Nothing else may touch them during
 *               the call; for memory on a GPU that includes kernels queued on
 *               any stream but the default one. GPU memory is hashed there and
 *               copied through 512 KiB of pinned memory per connection.
 *               At most 2^26 - 1 tensors, no two of one name (NULL, "": none);
 *               names of up to 4096 bytes, 64 MiB in all.
 * revision      any number but 2^64 - 1 at first: the highest counts. From then
 *               on one more with each call: a member that is behind is brought
 *               along, a member that is ahead is refused. Overwritten with the
 *               group's revision. After all members that had the state have
 *               left, the run goes on only from the revision and the content it
 *               had.
 * strategy      ENFORCE_POPULAR: the content held by most of the members at the
 *               current revision wins (if none is there, by most of those
 *               behind); a tie goes to the content that the lowest rank holds.
 *               It stands beside no other strategy: of members that call with
 *               it and members that call with another one, those are refused
 *               that are fewer among the members of the last call (if none of
 *               these is here, among all; of two equals, those without the
 *               lowest rank). SEND_ONLY: gives, is never
 *               written to; is refused if outvoted by other senders.
 *               RECEIVE_ONLY: is not asked, and never gives.
 * sync_info     written on success, may be NULL. rx_bytes: bytes of the blocks
 *               that differed here and were received, each counted once,
 *               however often it was asked for. tx_bytes: bytes that members
 *               which now hold the state took from this one. Summed over all
 *               members, lost and failed ones included, both are equal. Bytes
 *               that were sent in vain (to a member that was lost, or had them
 *               sooner from another one) count nowhere, nor do headers and
 *               hashes.
 *
 * The loss of a member is no failure while another one holds the content. The
 * next collective reports it.
 *
 * pcclSuccess                  the state is equal everywhere.
 * pcclNoSharedStateAvailable   no member that may give it has it, or the last
 *                              one was lost: tensors may be partly overwritten.
 * pcclPendingAsyncOps          an operation is not awaited yet.
 * pcclInvalidArgument          bad strategy, type or device (CUDA needs a
 *                              library built with it); or other tensors, or
 *                              another strategy, than the group's:
 *                              pcclGetLastError names one and its peer, on all
 *                              members; the others go on.
 * pcclInvalidUsage             refused, see above and pcclGetLastError; or
 *                              other members of the group wait in another call.
 * pcclMasterConnectionFailed   evicted, or the run is over; connect anew. */
PCCL_EXPORT pcclResult_t pcclSynchronizeSharedState(
    const pcclComm_t *comm, pcclSharedState_t *shared_state,
    pcclSharedStateSyncStrategy_t strategy,
    pcclSharedStateSyncInfo_t *sync_info_out);

/* --------------------------------------------------------------- master */

/* Creates a master that will listen on the address (0.0.0.0 and :: mean all
 * interfaces, port 0 any free port, see pcclGetMasterPort). Does nothing else
 * yet. The caller owns it until pcclDestroyMaster. The master functions need no
 * pcclInit. Only pcclDestroyMaster has to be the only call under way. */
PCCL_EXPORT pcclResult_t pcclCreateMaster(ccoip_socket_address_t listen_address,
                                          pcclMasterInstance_t **p_master_out);

/* Starts serving in a thread of its own, with the deadline of PCCL_DEADLINE;
 * does not block.
 *
 * pcclInvalidUsage  the address cannot be listened on (the log says why), or
 *                   the master ran already. A stopped one does not start again.
 */
PCCL_EXPORT pcclResult_t pcclRunMaster(pcclMasterInstance_t *master_instance);

/* Asks the master to stop; connected peers then go on until they need it.
 * Idempotent, async-signal-safe, does not block.
 * pcclInvalidUsage before pcclRunMaster. */
PCCL_EXPORT pcclResult_t
pcclInterruptMaster(pcclMasterInstance_t *master_instance);

/* Blocks until the master was interrupted and has stopped.
 * pcclInvalidUsage before pcclRunMaster. */
PCCL_EXPORT pcclResult_t
pcclMasterAwaitTermination(pcclMasterInstance_t *master_instance);

/* Stops the master if it still runs, waits for its thread, and frees it. The
 * last call on it. */
PCCL_EXPORT pcclResult_t
pcclDestroyMaster(pcclMasterInstance_t *master_instance);

/* Whether shared state may lie on a GPU. */
PCCL_EXPORT pcclResult_t pcclGetBuildInfo(pcclBuildInfo_t *info);

/* ===================================================== beyond PCCL 1.0
 *
 * The view, collectives beyond all-reduce, messages between members. */

/* Text of a result code; static storage, never NULL. */
PCCL_EXPORT const char *pcclGetErrorString(pcclResult_t result);

/* More about the last failed call on this communicator, one line of at most 255
 * bytes: which peer, which address, which rule. "" if none failed, or the
 * result says all. Copied into buf (size bytes, at least 1, always
 * terminated). If several threads fail at the same time, the text is of one of
 * them. */
PCCL_EXPORT pcclResult_t pcclGetLastError(const pcclComm_t *comm, char *buf,
                                          size_t size);

/* The version of the library that runs, as PCCL_VERSION.
 *
 * pcclInvalidArgument  version_out is NULL. */
PCCL_EXPORT pcclResult_t pcclGetVersion(int *version_out);

/* ------------------------------------------- addresses, the environment */

/* Reads an address: host:port, [v6]:port, host, v6, [v6], :port or port. A host
 * is a name, whose first address is taken, or a number; none is 127.0.0.1. A
 * text without a port gets default_port. A name takes as long as the system's
 * resolver does. *address_out is untouched on error.
 *
 * pcclInvalidArgument         NULL, or not such a text.
 * pcclMasterConnectionFailed  no such host. */
PCCL_EXPORT pcclResult_t pcclParseAddress(const char *text,
                                          uint16_t default_port,
                                          ccoip_socket_address_t *address_out);

/* Creates a communicator and connects it to the run that the environment names,
 * as in a program that pccl-master started. PCCL_MASTER is the master's
 * address; of a name with several addresses, the first that answers is taken.
 * It may be a list, "a:48148,b:48148", of masters of which one coordinates:
 * they are tried in turn for up to PCCL_MASTER_PATIENCE, 60 seconds unless set,
 * or until one refuses.
 * Of `params`, which may be NULL, master_address is not used.
 *
 * Any communicator has the rank hint PCCL_RANK unless pcclSetOptions sets
 * another one. So the ranks of the first view are those that pccl-master gave.
 *
 * *comm_out is set before the call waits, so another thread may cancel it. It
 * is the caller's also on an error: an unconnected communicator with a text
 * (pcclGetLastError), to be destroyed; or NULL after pcclNotInitialized and
 * pcclInternalError.
 *
 * pcclInvalidUsage     PCCL_MASTER is not set.
 * pcclInvalidArgument  PCCL_MASTER is no address, or comm_out is NULL.
 * otherwise            as pcclConnect. */
PCCL_EXPORT pcclResult_t
pcclConnectFromEnv(const pcclCommCreateParams_t *params, pcclComm_t **comm_out);

/* --------------------------------------------- ways out of a waiting call */

/* Ends the waiting of all calls on the communicator, those of other threads
 * included: they return pcclCancelled. Until pcclResume, so does every call
 * that would have to wait. Any thread and any signal handler may call; it never
 * blocks. pcclDestroyCommunicator may not have begun.
 *
 * A cancelled call has stopped waiting; what it waited for goes on, and to the
 * other members this one is still in the call:
 *
 *   pcclConnect            the exception: the peer withdraws. The others see
 *                          nothing. The communicator may connect again.
 *   pcclUpdateTopology, pcclArePeersPending, pcclOptimizeTopology
 *                          the vote stays cast. The next call of the same
 *                          function waits for its answer. Before it, launches
 *                          and other such calls are pcclInvalidUsage (after a
 *                          cancelled pcclArePeersPending they are not), and the
 *                          world may change at any time.
 *   pcclSynchronizeSharedState
 *                          goes on in the background, and the tensors belong to
 *                          the library. The next call, which must list the same
 *                          tensors, waits for its end; before it, as above.
 *   pcclAwaitAsyncReduce, pcclAllReduce, pcclCollective
 *                          the operation stays in flight: await it (again), or
 *                          have it fail for all (pcclFailCollective) and await
 *                          it.
 *   pcclTakeEvent, pcclWaitAsync
 *                          nothing has happened.
 *
 * pcclDestroyCommunicator ends all of that in any case, and takes its time.
 *
 * pcclInvalidArgument  comm is NULL.
 * pcclInvalidUsage     in a forked child. */
PCCL_EXPORT pcclResult_t pcclCancel(pcclComm_t *comm);

/* Takes pcclCancel back: calls wait again. Not for signal handlers. */
PCCL_EXPORT pcclResult_t pcclResume(pcclComm_t *comm);

/* Each call that begins from now on waits at most limit_ms milliseconds; 0 or
 * less: without limit, as at first. Then it returns pcclTimedOut, with the same
 * meaning as pcclCancelled. Calls with a timeout of their own keep that, and so
 * do the limits of the header's "Time". The time that pcclParseAddress, or
 * pcclSynchronizeSharedState's reading of the tensors, takes is not waiting. */
PCCL_EXPORT pcclResult_t pcclSetTimeLimit(pcclComm_t *comm, int64_t limit_ms);

/* ------------------------------------------------------- several at once */

/* As pcclAllReduceMultipleWithRetry, with the outcome of each operation.
 *
 * results  `count` entries, written by every call that the arguments allow:
 *            pcclSuccess             done;
 *            pcclCancelled, pcclTimedOut  in flight: to be awaited by its tag;
 *            pcclRankConnectionLost  not in flight, the input is as it was: it
 *                                    was not launched, or not again, before the
 *                                    call ended;
 *            otherwise               its own error, as of pcclAllReduce.
 * infos    `count` entries, or NULL. Zero for what is not done;
 *          local_world_size tells results of different worlds apart. */
PCCL_EXPORT pcclResult_t pcclAllReduceMultipleWithResults(
    const pcclReduceOpDescriptor_t *ops, size_t count, const pcclComm_t *comm,
    pcclResult_t *results, pcclReduceInfo_t *infos, int max_in_flight);

/* ----------------------------------------------------------- checkpoints
 * A checkpoint is a pair of files in a directory that the program names, on a
 * file system of any kind:
 *
 *   pccl-gGROUP-tTIME-rREVISION-DIGEST.safetensors   tensors, by their names
 *   pccl-gGROUP-tTIME-rREVISION-DIGEST.json          the manifest
 *
 * The first is a safetensors file: one-dimensional arrays, of all twelve
 * datatypes. The manifest has group, revision, time, number of members, name,
 * type, count and digest of each tensor, the digest by which the master knows
 * the content, and last its own digest. A checkpoint is there when its
 * manifest is. It gets its name when all bytes are on the disk, so whatever
 * dies at whatever moment leaves the former checkpoint as it was. Digests find
 * accidents and edits; they are no signature.
 *
 * A run saves after a synchronization and loads before the first one:
 *
 *   pcclLoadState(comm, &state, directory, NULL, NULL)
 *   pcclConnect(comm)
 *   loop: pcclSynchronizeSharedState(comm, &state, ...), state.revision++
 *         one step
 *         now and then: pcclSaveState(comm, &state, directory, NULL)
 *
 * Members that load nothing (newcomers, or hosts without the directory) receive
 * the state in the synchronization, because the highest revision counts. If the
 * master lived on while all members were gone, the run goes on only from the
 * revision and content that it had: the synchronization refuses another one,
 * and pcclGetLastError names the revision that it expects. */

typedef struct pcclSaveOptions_t {
    size_t size;   /* sizeof(pcclSaveOptions_t), for growth */
    uint32_t keep; /* so many checkpoints of the group stay, the latest ones,
                      and the one that pcclLoadCut takes; 0: 2 */
    /* 1: the call returns when the checkpoint is on the disk, and copies
     * nothing. pcclCancel does not end it. */
    uint32_t synchronous;
    /* 1: this peer writes, whatever its rank, and also if it is not connected:
     * for a program of one process. 0: the member with rank 0. */
    uint32_t this_peer;
} pcclSaveOptions_t;

typedef enum pcclLoadChoice_t {
    pcclLoadCut = 0,      /* the one nearest to the time that all groups with
                             checkpoints in the directory have come to */
    pcclLoadNewest = 1,   /* the latest of this group */
    pcclLoadNearest = 2,  /* the one nearest to time_ns; of two, the older */
    pcclLoadRevision = 3, /* the latest one with that revision */
} pcclLoadChoice_t;

typedef struct pcclLoadOptions_t {
    size_t size; /* sizeof(pcclLoadOptions_t), for growth */
    pcclLoadChoice_t choice;
    int64_t time_ns; /* since 1970 */
    uint64_t revision;
} pcclLoadOptions_t;

typedef struct pcclCheckpointInfo_t {
    size_t size; /* in: sizeof(pcclCheckpointInfo_t), for growth */
    uint64_t revision;
    int64_t time_ns;     /* of the copy, since 1970. Later than that of the
                            group's checkpoint before, whatever clocks say */
    int64_t cut_ns;      /* of a load: the time that was chosen by. All groups
                            that pass it with pcclLoadNearest load one cut */
    uint64_t bytes;      /* of both files; 0: nothing was saved here */
    uint32_t world_size; /* members of the group when it was saved */
} pcclCheckpointInfo_t;

/* Saves the state. All members of the group call; the one with rank 0 writes
 * and the others return at once. The call copies the tensors (host memory as
 * large as they are, until the file is written); a thread of the library makes
 * the digests, writes, and then removes the oldest checkpoints of this group.
 * If a writer dies in the middle, the next save is that of the new rank 0, and
 * the former checkpoint is the last one.
 *
 * If the former save of this communicator is under way, the call waits for it.
 * If that failed, the call returns the error, and saves nothing: call again.
 *
 * directory  has to be there. It may be one for all groups, and should be for
 *            one run. Nothing but files of the names above is touched.
 * state      as for pcclSynchronizeSharedState, after which revision is that of
 *            the group; it is not changed. Nobody may write to the tensors
 *            during the call. Names are UTF-8, do not begin with '#', and are
 *            not "__metadata__". A tensor without a name is called "#PLACE".
 *            Tensors that allow content inequality are those of the writer.
 * options    NULL: zeros.
 *
 * pcclSuccess          it will be written (pcclAwaitSave says when), or another
 *                      member writes.
 * pcclFileError        the directory cannot be read; or, of the former save,
 *                      as pcclAwaitSave.
 * pcclInvalidArgument  an entry, or an option, is wrong.
 * pcclInvalidUsage     not connected.
 * pcclMasterConnectionFailed  out of the run; nothing is saved.
 * pcclInternalError    no memory for the copy.
 * pcclCancelled, pcclTimedOut  while it waited for the former save; nothing new
 *                      is saved. */
PCCL_EXPORT pcclResult_t pcclSaveState(const pcclComm_t *comm,
                                       const pcclSharedState_t *state,
                                       const char *directory,
                                       const pcclSaveOptions_t *options);

/* Waits for the save under way in this peer, if there is one.
 * pcclDestroyCommunicator waits for it, too, and reports nothing. info_out may
 * be NULL; where nothing was saved it is zero.
 *
 * pcclSuccess    the checkpoint is on the disk; or there is nothing to wait
 * for. pcclFileError  it could not be written: the text has the reason and the
 * file. Nothing of it is left, and older ones are as they were. */
PCCL_EXPORT pcclResult_t pcclAwaitSave(const pcclComm_t *comm,
                                       pcclCheckpointInfo_t *info_out);

/* Reads a checkpoint of this communicator's peer_group into the tensors, and
 * its revision into state->revision, to be synchronized next. Before or after
 * pcclConnect; local, and blocks until the file is read. The tensors are those
 * that were saved: the same names, types, counts and flags in the same order,
 * on any device. Nothing is overwritten before the whole checkpoint has been
 * verified.
 *
 * pcclSuccess                 the tensors are those of the checkpoint.
 * pcclNoSharedStateAvailable  there is none: a first start.
 * pcclInvalidArgument         it is one of other tensors; the text names the
 *                             first entry that differs. Or an option is wrong.
 * pcclFileError               it cannot be read, or was damaged or edited; the
 *                             text names the file, or the tensor. Another one
 *                             may be chosen by its revision.
 * pcclInternalError           no memory. */
PCCL_EXPORT pcclResult_t pcclLoadState(const pcclComm_t *comm,
                                       pcclSharedState_t *state,
                                       const char *directory,
                                       const pcclLoadOptions_t *options,
                                       pcclCheckpointInfo_t *info_out);

/* One member of the view, as this peer has been notified of it. */
typedef struct pcclMember_t {
    uint64_t id;   /* unique in the run, never reused; ascending with rank
                      among those admitted together, newcomers last */
    uint64_t host; /* equal for processes of one host; even if they can share
                      memory, odd if they cannot */
    int32_t rank;  /* 0..world-1, dense */
    int32_t hint;  /* the rank hint that the member passed, or -1 */
} pcclMember_t;

/* The view: rank and size of this peer's group, its epoch, and (members not
 * NULL) its first `capacity` members in rank order. Never blocks. The view
 * changes where the attributes change, and nowhere else. */
PCCL_EXPORT pcclResult_t pcclGetView(const pcclComm_t *comm, uint64_t *epoch,
                                     int *rank, int *size,
                                     pcclMember_t *members, size_t capacity);

/* Traits: bits of a member that mean what the program wants them to mean. With
 * them the survivors of a loss agree on what to do about it, without another
 * operation: the report of a loss carries the traits of all survivors, joined
 * by a bitwise or, as they were when the epoch was closed. All survivors read
 * the same value. 0 at first; the bits stay until they are set anew. Never
 * blocks.
 *
 * pcclInvalidUsage  not connected. */
PCCL_EXPORT pcclResult_t pcclSetTraits(pcclComm_t *comm, uint32_t traits);
/* The traits of the survivors of the losses that were reported last, by the
 * last call that ended with pcclRankConnectionLost; 0 after pcclUpdateTopology
 * and pcclOptimizeTopology. Never blocks.
 *
 * pcclInvalidUsage     not connected.
 * pcclInvalidArgument  traits_out is NULL. */
PCCL_EXPORT pcclResult_t pcclGetTraits(const pcclComm_t *comm,
                                       uint32_t *traits_out);

/* ------------------------------------- joining while the others train
 *
 * In a synchronization all members wait until the newcomer has everything. With
 * these two calls a newcomer downloads the state before it joins, while the
 * members compute. The synchronization that follows moves only the blocks (64
 * KiB) that still differ.
 *
 *   member:    pcclOfferState at the begin of each round
 *   newcomer:  pcclPrefetch, pcclConnect, pcclSynchronizeSharedState
 *
 * Nothing that was downloaded is believed: a block may be torn, of another
 * revision than its neighbour, or a lie of the member that it came from. The
 * synchronization compares all by hash. So it must follow before the state is
 * used, and with the newcomer's own revision, which these calls never change.
 * With a state that stays as it is during a round (as DiLoCo's outer weights
 * do) nothing is left to move if the newcomer is admitted in the round in which
 * it has downloaded. */
typedef struct pcclOfferOptions_t {
    size_t size;               /* sizeof(pcclOfferOptions_t), for growth */
    uint64_t bytes_per_second; /* to all newcomers together; 0: no limit */
    double round_part;         /* newcomers are served in this first part of a
                                  round, by the length of the last round; 0: in
                                  all of it */
} pcclOfferOptions_t;

/* Lets newcomers download the tensors of `state`, from now on, and begins a
 * round. Local, does not block and copies nothing; each member that may serve
 * calls it by itself, once in each round. At most 4 newcomers are served at a
 * time, from the thread of the communicator, by the port that members use.
 * Nobody is served while an operation, a vote or a synchronization of this
 * member is under way.
 *
 * state    its tensors are read where they lie. They, the host's or a GPU's,
 *          stay allocated until the next call of pcclOfferState with others
 *          has returned, or the call with NULL, or pcclDestroyCommunicator, or
 *          a pcclConnect after an eviction. The program may write them, as a
 *          pcclSynchronizeSharedState does: newcomers then get old and new
 * bytes mixed, which is allowed (see above). Infos and names are copied.
 *          `revision` is what newcomers get. Tensors with
 *          allow_content_inequality are not downloaded. NULL ends the offer;
 *          afterwards no thread reads the tensors.
 * options  may be NULL: all 0.
 *
 * pcclInvalidArgument         as in pcclSynchronizeSharedState; or options.
 * pcclInvalidUsage            not connected.
 * pcclInternalError           out of memory; what was offered still is.
 * pcclMasterConnectionFailed  evicted, or the run is over; connect anew. */
PCCL_EXPORT pcclResult_t pcclOfferState(pcclComm_t *comm,
                                        const pcclSharedState_t *state,
                                        const pcclOfferOptions_t *options);

typedef struct pcclPrefetchOptions_t {
    size_t size;        /* sizeof(pcclPrefetchOptions_t), for growth */
    uint64_t max_stale; /* revisions that a block may be behind */
} pcclPrefetchOptions_t;

typedef struct pcclPrefetchInfo_t {
    size_t rx_bytes;   /* of blocks that differed, so far */
    uint64_t revision; /* of the oldest block */
    uint64_t offered;  /* what was offered last */
} pcclPrefetchInfo_t;

/* Downloads the state that members of the communicator's peer_group offer, and
 * returns when every block is at most `max_stale` revisions behind the offer.
 * Before pcclConnect. Until then the run does not know this peer: it is no
 * newcomer, pcclArePeersPending does not count it, and nobody waits for it,
 * whatever becomes of it.
 *
 * Blocks whoever calls, without a limit: for a member to offer its state; while
 * members do other things; and forever, if members change the state faster than
 * they send it. pcclSetTimeLimit and pcclCancel end that. The next call
 * does not download again what the tensors hold by then. Another member takes
 * the place of one that is lost, or silent for a deadline.
 *
 * The next pcclConnect tells the run how old the blocks are. If the newcomer
 * has to wait there until it is more than `max_stale` behind, it is refused
 * (pcclMasterConnectionFailed): prefetch and connect again. Without this call
 * pcclConnect waits for any length of time.
 *
 * state    tensors as in pcclSynchronizeSharedState, with the group's names,
 *          types and counts, on the host or a GPU. They are overwritten; after
 *          an error, in part. `revision` is neither read nor written.
 * options  may be NULL: all 0, every block is of the revision that is offered.
 * info     may be NULL; written also after an error, once the arguments are
 *          right.
 *
 * pcclSuccess                 downloaded: pcclConnect next.
 * pcclNoSharedStateAvailable  nobody is in the group: pcclConnect founds it.
 * pcclInvalidArgument         as in pcclSynchronizeSharedState; or all that
 *                             offer have other tensors.
 * pcclInvalidUsage            connected already, or another thread is in it;
 *                             pcclConnect meanwhile returns it, too.
 * pcclMasterConnectionFailed  no name of the option `masters` is known.
 * pcclInternalError           out of memory, or a GPU cannot be written.
 * pcclCancelled, pcclTimedOut see above. */
PCCL_EXPORT pcclResult_t pcclPrefetch(pcclComm_t *comm,
                                      const pcclSharedState_t *state,
                                      const pcclPrefetchOptions_t *options,
                                      pcclPrefetchInfo_t *info_out);

/* Options for the next pcclConnect; docs/tuning.md has the variables. */
typedef struct pcclCommOptions_t {
    size_t size;          /* sizeof(pcclCommOptions_t), for growth */
    int32_t rank_hint;    /* wanted order among first members; -1: none. Not
                             set by a call: PCCL_RANK, if that is set */
    uint32_t deadline_ms; /* for reaching the master; after that the master's
                             deadline counts. 0: PCCL_DEADLINE or the default */
    /* 1: nobody is evicted from this peer's group because members cannot reach
     * each other. Collectives that need them end with
     * pcclRankConnectionFailed. 0, or a smaller size: the largest set that can
     * goes on. */
    uint32_t evicts_nobody;
    /* 1: collectives go on among fewer members than the run needs (see
     * pcclUpdateTopology). 0, or a smaller size: they end with
     * pcclTooFewPeers. */
    uint64_t goes_on_with_few;
    /* "FIRST-LAST" or "PORT": the first free port of these is where this peer
     * listens for others. NULL or "": PCCL_PORTS, or any port. Copied. */
    const char *ports;
    /* "HOST" or "HOST:PORT" (a name, an IPv4 or [IPv6] address): where others
     * reach this peer, if not where the master sees it: behind a firewall that
     * forwards a port, say. They try that first, then the address that the
     * master sees. Without a port, the one where it listens. NULL or "":
     * PCCL_ANNOUNCE, or nothing. Copied; pcclConnect looks the name up. */
    const char *announce;
    /* File with the key of the run (docs/security.md), read by pcclConnect and
     * pcclPrefetch; copied. NULL, or a smaller size: PCCL_TOKEN_FILE. */
    const char *token_file;
    /* "HOST:PORT", or a list "a:48148,b:48148" of masters of which one
     * coordinates: pcclConnect and pcclPrefetch call them in turn, in place of
     * the master_address of pcclCreateCommunicator. Copied; these calls look
     * the names up. NULL, "", or a smaller size: as before. */
    const char *masters;
    /* So long pcclConnect waits for a master that is not there yet. One that
     * refuses is not asked again. 0, or a smaller size: PCCL_MASTER_GRACE, and
     * for one of a list PCCL_MASTER_PATIENCE, if that is longer. */
    uint64_t master_wait_ms;
    /* 1: this process fails if it ends as a member, without
     * pcclDestroyCommunicator, also with exit status 0: its pccl-master says
     * so, and its status is not 0. MPI_Init sets it. 0, or a smaller size: it
     * is lost to the others, no more. */
    uint64_t must_leave;
} pcclCommOptions_t;

/* Sets the options of the next pcclConnect. Local, never blocks. pcclConnect
 * says what is wrong with a range or a name: pcclInvalidArgument; and
 * pcclMasterConnectionFailed where all ports of the range are in use.
 *
 * pcclInvalidUsage     connected already.
 * pcclInvalidArgument  options->size is less than that of the first two
 *                      options, or a text is longer than 15 (ports) or 319
 *                      characters. */
PCCL_EXPORT pcclResult_t pcclSetOptions(pcclComm_t *comm,
                                        const pcclCommOptions_t *options);

/* Collectives beyond all-reduce, on the members of the view. Each is uniform
 * and atomic exactly as pcclAllReduce is, returns the same results, and may run
 * beside others with distinct tags. A world of one succeeds (local copy). */
typedef enum pcclCollectiveKind_t {
    pcclKindAllReduce = 0, /* count elements of datatype, op */
    pcclKindBroadcast = 1, /* recvbuf on all, count bytes, from root; on the
                              root recvbuf is the source and not written.
                              After pcclRankConnectionLost the rx_bytes of
                              pcclReduceInfo_t are count if recvbuf holds the
                              data of the root all the same, else less */
    pcclKindBarrier = 2,   /* no buffers */
    pcclKindAllGather = 3, /* count bytes from each; recvbuf world*count in
                              rank order; sendbuf NULL: own block is in place */
    pcclKindAllToAllV = 4, /* send_bytes[r], send_displs[r] (bytes) to rank r,
                              recv_bytes[r], recv_displs[r] from rank r; all
                              four arrays have world entries and must agree
                              pairwise; sendbuf and recvbuf do not overlap */
    pcclKindReduceScatter = 5, /* world*count elements of datatype in sendbuf;
                              recvbuf gets count elements: block number r of
                              all members, reduced with op, at rank r. recvbuf
                              may lie anywhere, in sendbuf, too: it is written
                              at the end. Until then the library has memory for
                              world*count elements of its own */
    pcclKindScan = 6 /* a prefix reduction, which the caller makes of others:
                        an argument of pcclChooseCollective alone */
} pcclCollectiveKind_t;

/* Of an all-to-all: the pairs that exchange data. All other sizes are 0, but
 * for what a root sends to itself. A gather or a scatter takes fewer messages
 * if the caller says that it is one. Of an all-reduce: who gets the sum;
 * the receive buffers of all but the root are not used. */
typedef enum pcclFlow_t {
    pcclFlowAll = 0,      /* all pairs; everybody */
    pcclFlowToRoot = 1,   /* each member to the root: a gather; the root */
    pcclFlowFromRoot = 2, /* the root to each member: a scatter */
    pcclFlowEven = 3      /* all pairs, and each size is `count`: members may
                             pass on blocks of others */
} pcclFlow_t;

/* An argument that the members must agree on, of the function that the caller
 * implements with a collective. */
typedef struct pcclArgument_t {
    const char *name;       /* 31 characters count */
    const char *text;       /* its value, 63 characters count; or NULL, and */
    const uint64_t *values; /* one number, or an array of any size */
    size_t value_count;
} pcclArgument_t;

typedef struct pcclCollective_t {
    size_t size; /* sizeof(pcclCollective_t), for growth */
    pcclCollectiveKind_t kind;
    uint64_t tag;
    const void *sendbuf;
    void *recvbuf;
    size_t count;            /* elements where there is an op, else bytes; of
                                all-to-all with pcclFlowEven only */
    pcclDataType_t datatype; /* of all-reduce and reduce-scatter, as is op */
    pcclRedOp_t op;
    int root;             /* of broadcast, and of a flow to or from it */
    uint64_t user_digest; /* must agree on all members, else
                             pcclInvalidArgument everywhere */
    uint64_t view_epoch;  /* 0, or the epoch that the arguments were made for.
                             If the view is another one by now, the launch fails
                             with pcclRankConnectionLost and nothing is sent */
    const size_t *send_bytes, *send_displs;
    const size_t *recv_bytes, *recv_displs;
    /* Scope. NULL: all members of the view, and a loss has the effect that it
     * has in pcclAllReduce. Else member_count ids (pcclMember_t.id), equal on
     * all of them, each once, this peer among them. Ranks and "world" then mean
     * positions in this array, and view_epoch is ignored. The operation fails
     * with pcclRankConnectionLost if and only if a member of the scope is gone,
     * as often as it is tried. A tag is in flight at a member in one scope at a
     * time, and may be used in another one after the await. */
    const uint64_t *members;
    size_t member_count;
    /* Arguments that user_digest covers, for the text of pcclGetLastError: if
     * members disagree, it names the first of these that differs, its values
     * and the ranks. They have no other effect. At most 8 count. They belong to
     * the library until the await. NULL, or a smaller size: none. */
    const pcclArgument_t *arguments;
    size_t argument_count;
    /* Of an all-to-all or all-reduce; a smaller size: pcclFlowAll. */
    pcclFlow_t flow;
} pcclCollective_t;

/* Starts a collective. Never blocks. The arrays of sizes, displacements and
 * members may be freed on return; the buffers and `arguments` belong to the
 * library until the await, by pcclAwaitAsyncReduce. */
PCCL_EXPORT pcclResult_t pcclCollectiveAsync(const pcclCollective_t *op,
                                             pcclComm_t *comm,
                                             pcclAsyncReduceOp_t *handle_out);

/* Starts a collective and awaits it. */
PCCL_EXPORT pcclResult_t pcclCollective(const pcclCollective_t *op,
                                        pcclComm_t *comm,
                                        pcclReduceInfo_t *info_out);

/* Small vectors and blocks take fewer messages if all members get those of all,
 * and each keeps its own. Sets kind and flow to those of the collective that
 * carries out best what they name, of vectors or blocks of count bytes:
 *
 * pcclKindAllReduce, pcclFlowToRoot      a sum for the root: the same, or with
 *                                        pcclFlowAll
 * pcclKindReduceScatter                  the same, or an all-reduce
 * pcclKindAllToAllV, pcclFlowToRoot      a gather: the same, or an all-gather
 * pcclKindAllToAllV, pcclFlowFromRoot    a scatter: the same, or a broadcast of
 *                                        all blocks
 * pcclKindAllToAllV, pcclFlowEven        the same, or an all-gather of the
 *                                        blocks for all
 * pcclKindScan                           an all-gather; or an all-to-all of
 *                                        slices, and another one back; or, with
 *                                        pcclFlowToRoot, a gather and a scatter
 *
 * Of *op size, kind, flow, count, members and member_count count. The answer is
 * the same on all members of a scope, or of a view. Never blocks.
 *
 * pcclInvalidArgument         it is none of these.
 * pcclInvalidUsage            not connected.
 * pcclMasterConnectionFailed  out of the run. */
PCCL_EXPORT pcclResult_t pcclChooseCollective(pcclCollective_t *op,
                                              pcclComm_t *comm);

/* Call it after an operation of a scope has failed with pcclRankConnectionLost,
 * which by itself tells the program of no loss: tells it of the losses up to
 * the first of a member of the scope, as the next operation of the whole view
 * would by its failure. lost_out[i], where it is not NULL: members[i] is not of
 * the view that pcclGetView now reports. Never blocks.
 *
 * pcclInvalidUsage     none of them is lost. */
PCCL_EXPORT pcclResult_t pcclTakeLoss(pcclComm_t *comm, const uint64_t *members,
                                      size_t member_count, bool *lost_out);

/* Makes the operation under way with this tag end with pcclOperationFailed for
 * all of its members, which may wait in it for a member that will not come. If
 * all hold its result by then, it succeeds for all. A member that has not
 * launched it meets the error at its next launch of the tag. Never blocks; any
 * thread may call.
 *
 * pcclSuccess          requested; the await returns the operation's result.
 * pcclPendingAsyncOps  the membership is changing now: call again.
 * pcclInvalidUsage     nothing is under way with this tag. */
PCCL_EXPORT pcclResult_t pcclFailCollective(pcclComm_t *comm, uint64_t tag);

/* ------------------------------------------------- partial all-reduce
 * An all-reduce that does not wait: for training on hosts that come, go and
 * stall. A round ends by its deadline with what has come by then. The vector is
 * cut into parts, one for each member that called in time, larger where the
 * coordinator has measured more bandwidth. Each part is, on all members, either
 * the same bits from the same contributors, or missing, and then recvbuf holds
 * what it held before. All get the same map of parts. */

typedef struct pcclPartialDescriptor_t {
    size_t size;             /* sizeof(pcclPartialDescriptor_t), for growth */
    uint64_t tag;            /* a name of its own: no relation to the tags of
                                other collectives. At most 64 have rounds under
                                way in a group */
    size_t count;            /* elements */
    pcclDataType_t datatype; /* AVG: one of the four floating-point types */
    pcclRedOp_t op;          /* pcclAvg: sum of weight * x / sum of weights;
                                pcclSum: sum of x */
    double weight;           /* of this member's contribution, such as the
                                number of its samples; finite and > 0 */
    uint32_t deadline_ms;    /* of the round, from the first member's call on;
                                1 to 2^31 - 1 */
    uint32_t gather_ms;      /* for this long the first one waits for others to
                                call before data move; at most deadline_ms.
                                0: a quarter of deadline_ms */
    uint32_t
        evict_after; /* a member whose contribution is in no part of so
                        many rounds of this tag in a row, although they
                        have parts, is evicted from the run. The training
                        stack that this call is made for uses 2. 0: never */
} pcclPartialDescriptor_t;

typedef struct pcclPartialPart_t {
    size_t begin, count;   /* elements of the vector */
    double weight;         /* sum of the weights of its contributors, or 0 */
    uint32_t contributors; /* number of them; 0: missing */
} pcclPartialPart_t;

/* The map of coverage, equal on all members but for the last three fields. The
 * arrays are the caller's. They may be NULL (room 0), and are filled up to
 * their room; *_count tell how many entries there are. */
typedef struct pcclPartialInfo_t {
    size_t size;              /* in: sizeof(pcclPartialInfo_t), for growth */
    pcclPartialPart_t *parts; /* ascending, without gaps */
    size_t part_room;         /* in; parts are never more than 256 */
    uint64_t *members;        /* ids (pcclMember_t.id) of those that the round
                                 was for, in the order of the sums */
    size_t member_room;       /* in */
    /* Who contributed: bit m % 8 of byte m / 8 of row p stands for member m in
     * part p. A row has set_size bytes. */
    uint8_t *sets;
    size_t set_room;                           /* in: bytes */
    size_t part_count, member_count, set_size; /* out, as all that follows */
    uint64_t round;                            /* number of the round */
    size_t elements;             /* in parts that are not missing */
    int contributed;             /* this member's data are in some part */
    uint64_t tx_bytes, rx_bytes; /* of data, by this member */
} pcclPartialInfo_t;

/* Handle of a round under way. A plain value. */
typedef struct pcclPartialOp_t {
    pcclComm_t *comm;
    uint64_t tag;
} pcclPartialOp_t;

/* Runs one round and returns its result. The members of the group call with
 * equal count, datatype, op and times, as often as each other; not at the same
 * time. Rounds of a tag are counted. A member that calls after its round was
 * decided returns at once, gets the parts of that round, and did not
 * contribute; so members that apply the result stay equal, however slow they
 * are. A round that a state has which this member receives by
 * pcclSynchronizeSharedState is not for it any more. A state has the rounds
 * whose results its member had got before that call.
 *
 *   first call ... gather_ms ......... half .......... 7/8 ........ deadline
 *   |  all called: at once  | data move | parts are folded | members report |
 *
 * When all members called and hold all parts, the round is over at once.
 *
 * A member that dies, stalls or is late fails nothing: missing is the part that
 * it was to reduce, or its contribution to parts that are not folded yet. A
 * change of the view does not disturb the round. Neither is the loss reported
 * here: the next collective or update does.
 *
 * Not bounded by the deadline: a member that lacks a part that most others
 * have, since its own link is slow, gets it from them after the deadline, for
 * one further deadline at most.
 *
 * sendbuf == recvbuf is allowed; other overlaps are not. Both belong to the
 * library during the call, and recvbuf is written at its end. The library has a
 * private vector of the same size, and as much again for contributions, during
 * the round; it keeps the former until all members have the parts, or two
 * further rounds of the tag have been decided.
 *
 * info_out may be NULL. In a world of one all parts have one contributor.
 *
 * pcclSuccess          the round is decided; parts may be missing, even all.
 * pcclInvalidArgument  a rule above is broken, the tag is in flight, or members
 *                      disagree: pcclGetLastError names the argument. All that
 *                      call for an undecided round get this. A member that
 *                      disagrees with a round that is decided gets it alone,
 *                      and has missed that round: see pcclInvalidUsage.
 * pcclInvalidUsage     this member is too late: the parts of its round, or of
 *                      rounds before the one under way, are not kept any more.
 *                      It has missed them: synchronize the shared state, then
 *                      call for the next round. So too if the state that this
 *                      member receives has the round under way, or lacks one
 *                      that it had; and, once for each tag, when a coordinator
 *                      has died and another one has taken its place
 *                      (pccl-master --master-grace).
 * pcclMasterConnectionFailed  evicted, the run is over, or the coordinator is
 *                      gone.
 * pcclInternalError    no memory, or 64 rounds are under way here. A round that
 *                      this member had called for goes on without it: it has
 *                      missed that one, as by pcclInvalidUsage.
 * pcclCancelled, pcclTimedOut  see pcclCancel: the round goes on, and
 *                      {comm, tag} is its handle for pcclAwaitPartial.
 * In all cases but success recvbuf is as it was. */
PCCL_EXPORT pcclResult_t
pcclAllReducePartial(const void *sendbuf, void *recvbuf,
                     const pcclPartialDescriptor_t *descriptor,
                     pcclComm_t *comm, pcclPartialInfo_t *info_out);

/* Starts pcclAllReducePartial; it progresses in the background. Never blocks.
 * Both buffers belong to the library until pcclAwaitPartial has returned. It
 * may run beside any other call. Errors before the launch are reported here,
 * and then there is nothing to await. */
PCCL_EXPORT pcclResult_t
pcclAllReducePartialAsync(const void *sendbuf, void *recvbuf,
                          const pcclPartialDescriptor_t *descriptor,
                          pcclComm_t *comm, pcclPartialOp_t *handle_out);

/* Waits for the round and returns its result, as pcclAllReducePartial does.
 * Each handle is awaited once. pcclInvalidArgument: it is unknown, or was
 * awaited. */
PCCL_EXPORT pcclResult_t pcclAwaitPartial(const pcclPartialOp_t *handle,
                                          pcclPartialInfo_t *info_out);

/* ------------------------------------------------------------ messages
 * Between two members of the group, named by pcclMember_t.id. A message arrives
 * exactly once and in order while both members live, whatever happens to
 * connections, to other members and to the view. Messages have connections of
 * their own: they neither block collectives nor are blocked by them. Progress
 * is made inside the calls on the communicator, and by its thread a few times
 * per deadline. Any thread may call. Each function is pcclInvalidUsage before
 * pcclConnect. */
enum {
    PCCL_MESSAGE_HEADER_MAX = 64,
    PCCL_MESSAGE_MAX = 64 * 1024, /* bytes of header and body together */
};

/* Copies a message into the queue to the member. The queue has at most 1024
 * messages and 1 MiB that the member has not acknowledged; the member keeps as
 * much that its program has not taken. Never blocks.
 *
 * pcclSuccess             it will arrive unless one of the two is lost.
 * pcclPendingAsyncOps     the queue is full: take events and try again, at the
 *                         latest when pcclEventRoom comes.
 * pcclRankConnectionLost  the member is not in the view (any more).
 * pcclInvalidArgument     too large, or to this member itself.
 * pcclMasterConnectionFailed  this peer is out of the run. */
PCCL_EXPORT pcclResult_t pcclPostMessage(pcclComm_t *comm, uint64_t to,
                                         const void *header, size_t header_size,
                                         const void *body, size_t body_size);

/* Bulk transfer of any size (rendezvous), straight from the sender's memory
 * into the receiver's. It begins when one side has called pcclSendBulk and the
 * other pcclExpectBulk with the same key and size, in either order (different
 * sizes: pcclInvalidArgument for both). Keys are the program's choice, and
 * distinct among a member's transfers in flight in one direction. Each buffer
 * belongs to the library until the transfer's event, which has its result; a
 * lost partner is pcclRankConnectionLost.
 *
 * Both never block. They return as pcclPostMessage does, with
 * pcclPendingAsyncOps where 2^20 expectations of the member are not over, and
 * pcclInvalidArgument where the key is in use. On any failure there will be no
 * event, and the buffer stays the caller's. */
PCCL_EXPORT pcclResult_t pcclSendBulk(pcclComm_t *comm, uint64_t to,
                                      uint64_t key, const void *buf,
                                      size_t size);
PCCL_EXPORT pcclResult_t pcclExpectBulk(pcclComm_t *comm, uint64_t from,
                                        uint64_t key, void *buf, size_t size);

/* Cancels an expectation: the buffer is free again and no event comes. The
 * send waits for another expectation.
 *
 * pcclInvalidUsage  there is none (any more). */
PCCL_EXPORT pcclResult_t pcclCancelBulk(pcclComm_t *comm, uint64_t from,
                                        uint64_t key);

/* Cancels a send: the buffer is free again and no event comes. A present or
 * later expectation of the receiver under the key waits until it is cancelled.
 *
 * pcclSuccess          cancelled.
 * pcclPendingAsyncOps  data are under way: its event comes, or the receiver
 *                      cancels and a later call cancels the send.
 * pcclInvalidUsage     there is none (any more). */
PCCL_EXPORT pcclResult_t pcclWithdrawBulk(pcclComm_t *comm, uint64_t to,
                                          uint64_t key);

typedef enum pcclEventKind_t {
    pcclEventNone = 0,
    pcclEventMessage = 1,
    pcclEventBulkSent = 2,
    pcclEventBulkReceived = 3,
    pcclEventRoom = 4,      /* a post that was refused may succeed now */
    pcclEventMemberLost = 5 /* once per member, after all its messages */
} pcclEventKind_t;

typedef struct pcclEvent_t {
    pcclEventKind_t kind;
    pcclResult_t result;       /* of a bulk transfer */
    uint64_t member;           /* the other one */
    uint64_t key;              /* of a bulk transfer */
    const void *header, *body; /* of a message, until pcclReleaseEvent */
    size_t header_size, body_size;
    void *owned;
} pcclEvent_t;

/* The next event, in the order of arrival. Waits for an event at most
 * timeout_ms milliseconds (0: not at all, negative: without limit) and makes
 * progress meanwhile. From the first call of a function of this section on all
 * losses are events; of the losses before it, the first 1024 are. A program
 * that takes no events stops the others' posts.
 *
 * pcclSuccess                 *event is one, or pcclEventNone.
 * pcclMasterConnectionFailed  out of the run, and all events are taken. */
PCCL_EXPORT pcclResult_t pcclTakeEvent(pcclComm_t *comm, int timeout_ms,
                                       pcclEvent_t *event);

/* Frees the memory of a message; has no effect on other events. To be called
 * before the communicator is destroyed, also where the run is over. */
PCCL_EXPORT pcclResult_t pcclReleaseEvent(pcclComm_t *comm, pcclEvent_t *event);

/* Several at once: releases the first *count of the events, as
 * pcclReleaseEvent, and then takes the next ones, `room` at most (0: none), as
 * pcclTakeEvent. Waits for the first of them only. *count is their number. */
PCCL_EXPORT pcclResult_t pcclTakeEvents(pcclComm_t *comm, int timeout_ms,
                                        pcclEvent_t *events, size_t room,
                                        size_t *count);

/* When the last change of the view reached this peer, in CLOCK_MONOTONIC
 * nanoseconds: the epoch was closed; the next view was proposed (all outcomes
 * agreed); it came into force (links made). Zero if there was no change. */
typedef struct pcclViewChange_t {
    uint64_t epoch; /* of the view that came into force */
    int64_t closed_ns, proposed_ns, installed_ns;
} pcclViewChange_t;
PCCL_EXPORT pcclResult_t pcclGetViewChange(const pcclComm_t *comm,
                                           pcclViewChange_t *change_out);

/* ------------------------------------------------- what has happened
 * Since the communicator was created, also over several connections; numbers
 * never fall. `started` is at least the sum of the other three: the rest is
 * under way, or was not awaited. */
typedef struct pcclOperationCounts_t {
    uint64_t started;
    uint64_t succeeded;
    uint64_t lost;   /* ended with pcclRankConnectionLost */
    uint64_t failed; /* ended with any other result, or were refused */
} pcclOperationCounts_t;

enum { PCCL_STATISTICS_KINDS = 16 };

/* A later version adds fields at the end. Bytes are those of all data between
 * this peer and others, with headers and with what was sent again; not those to
 * the master. Times are nanoseconds. */
typedef struct pcclStatistics_t {
    size_t size; /* in: sizeof(pcclStatistics_t); out: the bytes that are set */
    pcclOperationCounts_t operations[PCCL_STATISTICS_KINDS]; /* by
                                        pcclCollectiveKind_t; the rest is 0 */
    uint64_t tcp_sent_bytes, tcp_received_bytes;
    uint64_t shared_sent_bytes, shared_received_bytes; /* memory that two
                                        processes of a host share */
    uint64_t mapped_received_bytes; /* read from memory that a process of this
                                       host shows to all others of it */
    uint64_t cma_received_bytes;    /* read from a sender's own memory */
    uint64_t sync_sent_bytes, sync_received_bytes; /* of shared state: part of
                                        the bytes above */
    uint64_t epochs;      /* views that came into force, with the first */
    uint64_t updates;     /* those that members had voted for */
    uint64_t recoveries;  /* the others: losses, broken links */
    uint64_t recovery_ns; /* from the end of an epoch to the next view, over
                             all recoveries */
    uint64_t recovery_longest_ns;
    uint64_t losses;   /* members that left this peer's views */
    uint64_t joins;    /* members that came, after this one */
    uint64_t restarts; /* operations that began again in a recovered view */
    uint64_t retries;  /* those that pcclAllReduceMultipleWithRetry and
                          pcclAllReduceMultipleWithResults called again */
    uint64_t waits;    /* how often a call slept until data came, */
    uint64_t wait_ns;  /* and how long; a call polls before it sleeps */
} pcclStatistics_t;

/* Fills in what fits into statistics->size bytes. Local, never blocks; any
 * thread, and before pcclConnect as well as after the run is lost.
 *
 * pcclInvalidArgument  statistics is NULL, or its size has no room for
 *                      `operations`. */
PCCL_EXPORT pcclResult_t pcclGetStatistics(const pcclComm_t *comm,
                                           pcclStatistics_t *statistics);

/* ------------------------------------------- how far a step of training is
 * Members of different speeds make a step together without waiting for the
 * slowest one: each adds samples (micro-batches) to the step until the group
 * has as many as the step is to have, and then all average. The coordinator
 * adds what the members report. A step takes target / (sum of all speeds).
 *
 *     uint64_t samples = 0; bool reached = false;
 *     while (!reached) {                    // the loop of one step
 *         samples += train_one_batch();
 *         pcclReportProgress(comm, step, samples, target);
 *         pcclProgress_t p = {.size = sizeof p};
 *         if (pcclGetProgress(comm, &p) != pcclSuccess) break;
 *         reached = p.reached;
 *     }
 *     ... all-reduce of gradient * samples, and of samples; divide; step++
 *
 * Steps are numbers of the program's own. They go up, are equal on all members
 * for the same step, and belong to the shared state, so that a newcomer takes
 * them from the members. A report with a new number begins to count anew.
 *
 * Who counts. The step of the group is the highest that a member has reported;
 * the samples of members that have reported a lower one do not count for it. A
 * member that dies or leaves takes its samples of the step with it, as it takes
 * its gradient. A newcomer counts from its first report on, and gets the
 * group's figures when it is admitted.
 *
 * When a step is reached. As soon as its samples are at least the target, all
 * members hear so, once and for all: it stays reached although a member
 * dies, and although members have fewer samples afterwards. It is reached, too,
 * when some member has gone on to a higher step. So no member waits in the
 * collective of a step that others cannot find reached. If members report
 * different targets for a step, the largest one counts; 0 is none.
 *
 * How old figures are. A report goes to the coordinator with the next
 * heartbeat, mostly at once: a member sends one in a hundredth of the deadline
 * (in groups of more than 300, in n * 0.1 ms), and one beyond that which may
 * complete the step. Members hear of a reached step at once, of other
 * changes every tenth of a deadline. So `reached` comes at most a tenth of the
 * deadline and a round trip after the sample that completes the step, mostly a
 * round trip; `samples` may be twice as old. While the coordinator is silent
 * figures stay as they are; when it is lost, `reached` is true, and the
 * collective will tell how things stand. */

/* More samples of one member and step are refused. */
#define PCCL_SAMPLES_MAX ((UINT64_C(1) << 52) - 1)

typedef struct pcclProgress_t {
    size_t size;      /* in: sizeof(pcclProgress_t); out: bytes that are set */
    uint64_t step;    /* of the group; the own one, if that is higher */
    uint64_t samples; /* that the members have of it, as far as known here */
    uint64_t target;
    uint32_t members; /* that have reported for it; 0: nobody has */
    bool reached;     /* the step reported here last is to end now; before the
                         first report: `step` is */
} pcclProgress_t;

/* Says that this member has so many samples of the step, all in all: a later
 * report of the same step replaces this one. Never blocks, also while other
 * threads are in collectives: it makes no system call that may wait, and takes
 * no lock that is held while a thread waits. Any thread.
 *
 * pcclSuccess                 will be sent.
 * pcclInvalidArgument         samples is more than PCCL_SAMPLES_MAX.
 * pcclInvalidUsage            not connected.
 * pcclMasterConnectionFailed  the coordinator is lost, or this peer is out of
 *                             the run: nobody counts any more. */
PCCL_EXPORT pcclResult_t pcclReportProgress(pcclComm_t *comm, uint64_t step,
                                            uint64_t samples, uint64_t target);

/* What the group has, as heard last. Local, never blocks, as above; any thread.
 *
 * pcclSuccess                 *progress is set.
 * pcclInvalidArgument         progress is NULL, or its size is too small.
 * pcclInvalidUsage            not connected.
 * pcclMasterConnectionFailed  as above; *progress is what was heard last, and
 *                             `reached` is true. */
PCCL_EXPORT pcclResult_t pcclGetProgress(const pcclComm_t *comm,
                                         pcclProgress_t *progress);

/* The trace of this process (environment PCCL_TRACE, docs/debugging.md) has
 * each operation, the waits within it, and changes of the view. A program adds
 * spans of its own to it: each begin has an end in the same thread, and they
 * nest.
 *
 * pcclTraceEnabled  sets *enabled_out to whether there is a trace; it does not
 *                   change after the first pcclConnect. Without one the other
 *                   two do nothing.
 * pcclTraceBegin    `name`, of which 31 characters count, is copied. `member`:
 *                   pcclMember_t.id of the partner, or 0. `bytes`: UINT64_MAX
 *                   for none.
 * All return pcclSuccess, or pcclInvalidArgument for NULL. */
PCCL_EXPORT pcclResult_t pcclTraceEnabled(bool *enabled_out);
PCCL_EXPORT pcclResult_t pcclTraceBegin(pcclComm_t *comm, const char *name,
                                        uint64_t member, uint64_t bytes);
PCCL_EXPORT pcclResult_t pcclTraceEnd(pcclComm_t *comm);

/* Ends the run for all, for MPI_Abort. The master notifies the peers, whose
 * calls then return pcclMasterConnectionFailed, and its launcher, which kills
 * its ranks and exits with `code`. Returns at once. */
PCCL_EXPORT pcclResult_t pcclAbortRun(pcclComm_t *comm, int code);

/* Sets *requested_out to whether this process has got the signal that the
 * variable PCCL_DRAIN_SIGNAL names (USR2, TERM, ...): by `pccl-master --drain`,
 * or by a batch system that will take its host away. The program then calls
 * pcclDestroyCommunicator at a place of its choice, where it has no operation
 * under way, and ends; nothing happens otherwise. A handler that the program
 * had for the signal before pcclInit is called as well. Local, never blocks;
 * any thread.
 *
 * pcclInvalidArgument  requested_out is NULL. */
PCCL_EXPORT pcclResult_t pcclDrainRequested(bool *requested_out);

/* Sets *done_out to whether an await would return at once. Moves data, never
 * blocks.
 *
 * pcclInvalidArgument  the handle is unknown, or was awaited. */
PCCL_EXPORT pcclResult_t pcclTestAsync(const pcclAsyncReduceOp_t *handle,
                                       bool *done_out);
/* Waits until the operation is done, an event of messages is there
 * (pcclTakeEvent), or timeout_ms have passed, and moves data meanwhile. Else it
 * is as pcclTestAsync. With 0 it returns at once.
 *
 * pcclInvalidArgument  as above, or timeout_ms is negative. */
PCCL_EXPORT pcclResult_t pcclWaitAsync(const pcclAsyncReduceOp_t *handle,
                                       int timeout_ms, bool *done_out);

/* ------------------------------------------------- what calls wait in
 * The library tells its coordinator a few times per deadline which operations
 * are under way, so that an operator sees who keeps whom waiting (pccl-master
 * --status). A library above this one knows more: in which call its program
 * waits, and how a group of members is named. */
typedef enum pcclWaitKind_t {
    pcclWaitReceive = 1,  /* for a message of a member, or of any */
    pcclWaitSend = 2,     /* for a member to take a message */
    pcclWaitRequests = 3, /* for any of the operations under way */
} pcclWaitKind_t;

typedef struct pcclWait_t {
    size_t size; /* sizeof(pcclWait_t), for growth */
    pcclWaitKind_t kind;
    uint64_t member;   /* the other one; 0: any */
    uint64_t tag;      /* of the message; UINT64_MAX: any */
    uint64_t bytes;    /* or elements */
    const char *call;  /* "MPI_Recv"; NULL: none */
    const char *where; /* "MPI_COMM_WORLD"; NULL: none */
} pcclWait_t;

/* A call begins to wait, and has ended. The texts are copied; the address of
 * `wait` tells the waits of several threads apart. Of many at a time some are
 * left out. Meant for waits that have lasted for a while. Never blocks; any
 * thread may call. */
PCCL_EXPORT pcclResult_t pcclWaitBegins(pcclComm_t *comm,
                                        const pcclWait_t *wait);
PCCL_EXPORT pcclResult_t pcclWaitEnds(pcclComm_t *comm, const pcclWait_t *wait);

/* Sets the function that names the group of an operation, by its tag: it writes
 * a text of up to size - 1 characters and a 0, or nothing. A thread of the
 * library calls it, with a lock held: it must not call the library. NULL: none.
 * Before or after pcclConnect. */
PCCL_EXPORT pcclResult_t pcclSetNamer(pcclComm_t *comm,
                                      void (*name)(uint64_t tag, char *text,
                                                   size_t size));

/* The port that a master listens on (for port 0).
 *
 * pcclInvalidUsage  before pcclRunMaster. */
PCCL_EXPORT pcclResult_t pcclGetMasterPort(pcclMasterInstance_t *master,
                                           uint16_t *port_out);

#ifdef __cplusplus
}
#endif

#endif
