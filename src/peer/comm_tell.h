/* comm_tell.h - tells the trace (timeline.h) and the log of level TRACE what a
 * communicator does. Where neither wants to know, nothing runs but the test of
 * one flag: comm_tells(). All but that is called with the lock held. */
#ifndef PCCL_COMM_TELL_H
#define PCCL_COMM_TELL_H

#include "comm_count.h"
#include "timeline.h"

#include "../ring/ring.h"

struct pcclComm_t;

/* The report on an operation, from its call to its result. */
struct told_op {
    pccl_ns began;
    pcclCollectiveKind_t kind;
    uint64_t bytes, tag;
    bool begun; /* the trace has its beginning */
    bool async; /* it is not a span of the calling thread */
    struct op_look look;
    uint32_t members; /* in the result */
    char name[TRACE_NAME_SIZE];
};

/* When operations that another call awaits were launched: by tag, as far as the
 * table has room. */
enum { TOLD_LAUNCHES = 256 };
struct told_launch {
    uint64_t tag;
    pccl_ns at; /* 0: none */
};

/* The member that the owner of the progress waits for. */
struct told_wait {
    uint64_t partner; /* 0: none */
    pccl_ns since;
    bool begun;
};

extern atomic_bool comm_tell_state;

static inline bool comm_tells(void)
{
    return __builtin_expect(
        atomic_load_explicit(&comm_tell_state, memory_order_relaxed), false);
}

/* Opens the trace, and sets what the log says of this process. */
void comm_tell_open(struct pcclComm_t *c);

/* An operation is called; the beginning of one that takes longer; its end. */
struct told_op comm_tell_called(const struct pcclComm_t *c,
                                const pcclCollective_t *op);
void comm_tell_began(struct pcclComm_t *c, struct told_op *told);
void comm_tell_ended(struct pcclComm_t *c, struct told_op *told, int result);
/* The operation that a call awaits: what is known before it is taken. */
struct told_op comm_tell_awaited(const struct pcclComm_t *c,
                                 const struct op *op,
                                 pcclCollectiveKind_t kind);

/* The owner of the progress looks whom op waits for; NULL: it waits no more.
 * `sleeps`: the caller will not look for a while. */
void comm_tell_wait(struct pcclComm_t *c, const struct op *op, bool sleeps);

/* A call of the library above this one has waited for so long that it says for
 * whom (pcclWaitBegins); and goes on. */
void comm_tell_blocked(struct pcclComm_t *c, const char *call,
                       uint64_t partner);
void comm_tell_unblocked(struct pcclComm_t *c);

/* The session has handled a message of the master. */
void comm_tell_view(struct pcclComm_t *c, const struct view_change *change);

/* A call begins and ends. `partner`: the id of a member, or 0. */
void comm_tell_call(struct pcclComm_t *c, const char *name, uint64_t partner,
                    uint64_t bytes);
void comm_tell_return(struct pcclComm_t *c);

/* Unlocked: writes the trace, if there is one. */
void comm_tell_flush(void);

#endif
