/* wire_words.h - the words of the control messages: kinds, roles, states. */
#ifndef PCCL_WIRE_WORDS_H
#define PCCL_WIRE_WORDS_H

/* Kind of vote. */
enum vote_kind {
    VOTE_UPDATE,   /* pcclUpdateTopology */
    VOTE_PENDING,  /* pcclArePeersPending */
    VOTE_OPTIMIZE, /* pcclOptimizeTopology */
    VOTE_KIND_COUNT,
};

enum { ANSWER_UNKNOWN = 0xfe };

/* Values are those of pcclSharedStateSyncStrategy_t. */
enum sync_strategy {
    SYNC_ENFORCE_POPULAR,
    SYNC_RECEIVE_ONLY,
    SYNC_SEND_ONLY,
    SYNC_STRATEGY_COUNT,
};

/* The master's decision about a synchronization, for one peer (rules S1..). */
enum sync_role {
    SYNC_COMPLETE, /* all have the state; the end */
    /* Before the end: */
    SYNC_WAIT, /* this peer has the state; it serves if it is a holder */
    SYNC_RECEIVE,
    SYNC_DIFFERS, /* other tensors than the elected: compare them */
    /* Refusals, each of them final: */
    SYNC_NO_STATE, /* no member that may serve has it */
    SYNC_AHEAD,    /* revision too high */
    SYNC_FOREIGN,  /* differs from the content that the run had when all members
                      left */
    SYNC_CONFLICT, /* send-only, and not elected */
    SYNC_MIXED,    /* another strategy than the group (S2) */
    SYNC_CROSSED,  /* other members wait in another call */
    SYNC_ROLE_COUNT,
};

/* A peer's state of one operation, in FLUSHED and REPLY. */
enum op_state {
    OP_NOT_LAUNCHED,
    OP_RUNNING,
    OP_COMPLETE, /* result complete here, the call has not returned */
    OP_RETURNED, /* the call has returned success */
    OP_STATE_COUNT,
};

/* The master's decision about an operation. */
enum op_verdict {
    VERDICT_ABORT,   /* inputs restored; repeated if no member was lost */
    VERDICT_COMMIT,  /* success on every survivor */
    VERDICT_INVALID, /* members disagreed on its arguments */
    VERDICT_USAGE, /* a member waits in a vote and can never join the operation
                    */
    VERDICT_UNREACHABLE, /* two members cannot connect */
    VERDICT_FAILED,      /* a member requested its failure */
    VERDICT_CROSSED,     /* members disagreed on its scope (rule V4) */
    VERDICT_COUNT,
};

enum refresh_cause {
    REFRESH_TAGS,        /* the peer's table of tags is full */
    REFRESH_MISMATCH,    /* the operation: digests differ */
    REFRESH_UNREACHABLE, /* the operation: no link to `peer` */
    REFRESH_FAIL,        /* the operation is to fail */
    REFRESH_CAUSE_COUNT,
};

/* What a member says of a partial all-reduce. */
enum partial_word {
    PARTIAL_CALL,   /* it was called */
    PARTIAL_FOLDED, /* `part` is reduced here; a set: its contributors */
    PARTIAL_HOLDS,  /* ids: alternately a part that is here, and its hash */
    PARTIAL_FAILED, /* the call has ended by itself: RELEASE answers */
    PARTIAL_WORD_COUNT,
};

/* What the master says. */
enum partial_order {
    PARTIAL_PLAN,   /* parts, with their owners; a set: who is lost */
    PARTIAL_FOLD,   /* reduce what is there */
    PARTIAL_REPORT, /* send HOLDS */
    PARTIAL_FETCH,  /* get the parts that are not missing; sets: who has each */
    PARTIAL_END,    /* the map of coverage; sets: the contributors of each */
    PARTIAL_RELEASE, /* nobody needs the copies of the round any more */
    PARTIAL_REFUSE,  /* the call fails */
    PARTIAL_ORDER_COUNT,
};

enum partial_refusal {
    PARTIAL_DIFFERS, /* members disagree on the arguments: text */
    PARTIAL_LATE,    /* the parts are not kept any more */
    PARTIAL_LIMIT,   /* too many members, or tags */
    PARTIAL_MEMORY,  /* the master has none */
    PARTIAL_REFUSAL_COUNT,
};

#endif
