/* pccl_extensions.h - what PCCL 1.0 does not have: the view, collectives beyond
 * all-reduce, messages between members. Included by pccl.h, whose conventions
 * hold here too. */
#ifndef PCCL_EXTENSIONS_H
#define PCCL_EXTENSIONS_H

#include "pccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Text of a result code; static storage, never NULL. */
PCCL_EXPORT const char *pcclGetErrorString(pcclResult_t result);

/* More about the last failed call on this communicator, one line of at most 255
 * bytes: which peer, which address, which rule. "" if none failed, or the
 * result says all. Copied into buf (size bytes, at least 1, always
 * terminated). Where threads fail at the same time it is of one of them. */
PCCL_EXPORT pcclResult_t pcclGetLastError(const pcclComm_t *comm, char *buf,
                                          size_t size);

/* One member of the view as this peer has been told it. */
typedef struct pcclMember_t {
    uint64_t id;   /* unique in the run, never reused; ascending with rank
                      among those admitted together, newcomers last */
    uint64_t host; /* equal for processes that can share memory */
    int32_t rank;  /* 0..world-1, dense */
    int32_t hint;  /* what the member passed as rank hint, or -1 */
} pcclMember_t;

/* The view: rank and size of this peer's group, its epoch, and (members not
 * NULL) its first `capacity` members in rank order. Never blocks. The view
 * changes where the attributes change, and nowhere else. */
PCCL_EXPORT pcclResult_t pcclGetView(const pcclComm_t *comm, uint64_t *epoch,
                                     int *rank, int *size,
                                     pcclMember_t *members, size_t capacity);

/* Options for the next pcclConnect; see the variables of README.md. */
typedef struct pcclCommOptions_t {
    size_t size;          /* sizeof(pcclCommOptions_t), for growth */
    int32_t rank_hint;    /* wanted order among first members; -1: none */
    uint32_t deadline_ms; /* for reaching the master, whose own deadline counts
                             from then on; 0: PCCL_DEADLINE or the default */
} pcclCommOptions_t;

/* pcclInvalidUsage     connected already.
 * pcclInvalidArgument  options->size is not that of this header. */
PCCL_EXPORT pcclResult_t pcclSetOptions(pcclComm_t *comm,
                                        const pcclCommOptions_t *options);

/* Collectives beyond all-reduce, on the members of the view. Each is uniform
 * and atomic exactly as pcclAllReduce is, has its results, and may run beside
 * others with distinct tags. A world of one succeeds (local copy). */
typedef enum pcclCollectiveKind_t {
    pcclKindAllReduce = 0, /* count elements of datatype, op */
    pcclKindBroadcast = 1, /* recvbuf on all, count bytes, from root; on the
                              root recvbuf is the source and not written */
    pcclKindBarrier = 2,   /* no buffers */
    pcclKindAllGather = 3, /* count bytes from each; recvbuf world*count in
                              rank order; sendbuf NULL: own block is in place */
    pcclKindAllToAllV = 4  /* send_bytes[r], send_displs[r] (bytes) to rank r,
                              recv_bytes[r], recv_displs[r] from rank r; all
                              four arrays have world entries and must agree
                              pairwise; sendbuf and recvbuf do not overlap */
} pcclCollectiveKind_t;

typedef struct pcclCollective_t {
    size_t size; /* sizeof(pcclCollective_t), for growth */
    pcclCollectiveKind_t kind;
    uint64_t tag;
    const void *sendbuf;
    void *recvbuf;
    size_t count;            /* elements for all-reduce, else bytes */
    pcclDataType_t datatype; /* of all-reduce, as is op */
    pcclRedOp_t op;
    int root;             /* of broadcast: a rank */
    uint64_t user_digest; /* must agree on all members, else
                             pcclInvalidArgument everywhere */
    uint64_t view_epoch;  /* 0, or the epoch the arguments were made for: if
                             the view is another one by now the launch fails
                             with pcclRankConnectionLost and nothing is sent */
    const size_t *send_bytes, *send_displs;
    const size_t *recv_bytes, *recv_displs;
    /* Scope. NULL: all members of the view, and the rules of a loss are those
     * of pcclAllReduce. Else member_count ids (pcclMember_t.id), equal on all
     * of them, each once, this peer among them; ranks and "world" then mean
     * positions in this array, view_epoch is ignored, and the operation fails
     * with pcclRankConnectionLost if and only if a member of the scope is gone,
     * as often as it is tried. Tags of operations with different scopes must be
     * distinct while in flight. */
    const uint64_t *members;
    size_t member_count;
} pcclCollective_t;

/* Starts the operation, never blocks; arrays may be freed on return, buffers
 * belong to the library until the await. Awaited with pcclAwaitAsyncReduce. */
PCCL_EXPORT pcclResult_t pcclCollectiveAsync(const pcclCollective_t *op,
                                             pcclComm_t *comm,
                                             pcclAsyncReduceOp_t *handle_out);

/* Starts and awaits. */
PCCL_EXPORT pcclResult_t pcclCollective(const pcclCollective_t *op,
                                        pcclComm_t *comm,
                                        pcclReduceInfo_t *info_out);

/* Has the operation under way with this tag end with pcclOperationFailed for
 * all of its members, who may wait in it for one that will not come. If all
 * hold its result by then it succeeds for all. One that has not launched it
 * meets the error at its next launch of the tag. Never blocks; any thread may
 * call.
 *
 * pcclSuccess          asked for; the operation's result comes as always.
 * pcclPendingAsyncOps  the membership changes right now: call again.
 * pcclInvalidUsage     nothing is under way with this tag. */
PCCL_EXPORT pcclResult_t pcclFailCollective(pcclComm_t *comm, uint64_t tag);

/* ------------------------------------------------------------ messages
 * Between two members of the group, named by pcclMember_t.id. What one member
 * posts to another arrives exactly once and in order while both live,
 * whatever becomes of connections, of other members and of the view. Messages
 * have connections of their own: they neither block collectives nor are
 * blocked by them. Progress is made inside the calls on the communicator, and
 * by its thread a few times per deadline. Any thread may call. Each function
 * is pcclInvalidUsage before pcclConnect. */
enum {
    PCCL_MESSAGE_HEADER_MAX = 64,
    PCCL_MESSAGE_MAX = 64 * 1024, /* bytes of header and body together */
};

/* Copies a message into the member's queue, of at most 1024 messages and 1 MiB
 * that it has not acknowledged; it keeps as much that its program has not
 * taken. Never blocks.
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

/* Bulk transfer of any size, straight from the sender's memory into the
 * receiver's: it begins when one side has called pcclSendBulk and the other
 * pcclExpectBulk with the same key and size, in either order (other sizes:
 * pcclInvalidArgument for both). Keys are the program's choice, and distinct
 * among a member's transfers in flight in one direction. Each buffer belongs
 * to the library until the transfer's event, which tells its result; a lost
 * partner is pcclRankConnectionLost. Never block; return as pcclPostMessage:
 * pcclPendingAsyncOps where 2^20 expectations of the member are not over,
 * pcclInvalidArgument where the key is in use. On any failure there will be no
 * event, and the buffer stays the caller's. */
PCCL_EXPORT pcclResult_t pcclSendBulk(pcclComm_t *comm, uint64_t to,
                                      uint64_t key, const void *buf,
                                      size_t size);
PCCL_EXPORT pcclResult_t pcclExpectBulk(pcclComm_t *comm, uint64_t from,
                                        uint64_t key, void *buf, size_t size);

/* Withdraws an expectation: the buffer is free again and no event comes; the
 * send waits for another one. pcclInvalidUsage: there is none (any more). */
PCCL_EXPORT pcclResult_t pcclCancelBulk(pcclComm_t *comm, uint64_t from,
                                        uint64_t key);

/* Withdraws a send: the buffer is free again and no event comes. What the
 * other one expects or will expect under the key waits until it cancels.
 *
 * pcclSuccess          withdrawn.
 * pcclPendingAsyncOps  data are under way: its event comes, or the receiver
 *                      cancels and a later call withdraws it.
 * pcclInvalidUsage     there is none (any more). */
PCCL_EXPORT pcclResult_t pcclWithdrawBulk(pcclComm_t *comm, uint64_t to,
                                          uint64_t key);

typedef enum pcclEventKind_t {
    pcclEventNone = 0,
    pcclEventMessage = 1,
    pcclEventBulkSent = 2,
    pcclEventBulkReceived = 3,
    pcclEventRoom = 4,      /* a post to the member that was refused may go */
    pcclEventMemberLost = 5 /* once per member, after all that it sent */
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

/* The next event, in the order of arrival. Waits for one timeout_ms
 * milliseconds (0: not at all, negative: without limit) and makes progress
 * meanwhile. All losses are events from the first call of a function of this
 * section on, and of those before it the first 1024. A program that takes no
 * events stops the others' posts.
 *
 * pcclSuccess                 *event is one, or pcclEventNone.
 * pcclMasterConnectionFailed  out of the run, and all events are taken. */
PCCL_EXPORT pcclResult_t pcclTakeEvent(pcclComm_t *comm, int timeout_ms,
                                       pcclEvent_t *event);

/* Frees what a message holds; harmless for other events. Before the
 * communicator is destroyed. */
PCCL_EXPORT pcclResult_t pcclReleaseEvent(pcclComm_t *comm, pcclEvent_t *event);

/* When the last change of the view reached this peer, CLOCK_MONOTONIC
 * nanoseconds: the epoch was closed, the next view was proposed (all outcomes
 * agreed), it came into force (links made). Zero if there was none. */
typedef struct pcclViewChange_t {
    uint64_t epoch; /* of the view that came into force */
    int64_t closed_ns, proposed_ns, installed_ns;
} pcclViewChange_t;
PCCL_EXPORT pcclResult_t pcclGetViewChange(const pcclComm_t *comm,
                                           pcclViewChange_t *change_out);

/* Ends the run for all: the master tells the peers, whose calls then give
 * pcclMasterConnectionFailed, and its launcher, which kills its ranks and exits
 * with `code`. For MPI_Abort. Returns at once. */
PCCL_EXPORT pcclResult_t pcclAbortRun(pcclComm_t *comm, int code);

/* *done_out: an await would return at once. Moves data, never blocks. A handle
 * that is unknown, or awaited: pcclInvalidArgument. */
PCCL_EXPORT pcclResult_t pcclTestAsync(const pcclAsyncReduceOp_t *handle,
                                       bool *done_out);
/* The same, but waits until it is done, an event of messages is there
 * (pcclTakeEvent), or timeout_ms have passed, moving data meanwhile; with 0 it
 * only looks. Negative: pcclInvalidArgument. */
PCCL_EXPORT pcclResult_t pcclWaitAsync(const pcclAsyncReduceOp_t *handle,
                                       int timeout_ms, bool *done_out);

/* Port that a master listens on (for port 0). pcclInvalidUsage before
 * pcclRunMaster. */
PCCL_EXPORT pcclResult_t pcclGetMasterPort(pcclMasterInstance_t *master,
                                           uint16_t *port_out);

#ifdef __cplusplus
}
#endif

#endif
