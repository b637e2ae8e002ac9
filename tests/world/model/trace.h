/* trace.h - what happens in one universe at the borders of its parties, as
 * abstract events in the order of time.
 *
 * This is all that the model (model.h) knows of a run, and all that it shares
 * with the program. */
#ifndef MODEL_TRACE_H
#define MODEL_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum trace_kind {
    TRACE_TO_MASTER,  /* a process sends a message to the master */
    TRACE_AT_MASTER,  /* the master receives it */
    TRACE_TO_PROCESS, /* the master sends a message to a process */
    TRACE_AT_PROCESS, /* the process receives it */
    TRACE_SETTLED,    /* the master has handled an event to the end; flag: its
                         disk has refused something (J1) */
    TRACE_LOST,       /* the master sees the end of a connection */
    TRACE_CLOSED,     /* the master closes a connection; flag: why */
    TRACE_CUT,        /* a process sees the end of its connection */
    TRACE_MUTE,       /* fault: a process does not send what it has to */
    TRACE_LAUNCH,     /* the program launches an operation */
    TRACE_RESULT,     /* the program takes its result */
    TRACE_ANSWER,     /* the program takes the answer to its vote */
    TRACE_TOLD,       /* the program sees another view */
    TRACE_VIEW,       /* a process has another view in force */
    TRACE_FRAME,      /* a frame of an operation has arrived as a whole */
    TRACE_OVER,       /* a process ends, or is killed */
    TRACE_DIES,       /* the master; another one takes its place */
    TRACE_AVERAGE,    /* the program begins a partial all-reduce */
    TRACE_AVERAGED,   /* ... and takes its result */
    TRACE_ASKED,      /* a question for bytes of one has arrived */
    TRACE_PIECE,      /* ... and so has an answer */
    TRACE_MADE,       /* the program has made samples of a step */
    TRACE_SUM,        /* ... and looks what is known of it */
    TRACE_SHARED,     /* the program takes the result of a synchronization */
    TRACE_END,        /* of the universe */
    TRACE_KIND_COUNT,
};

enum trace_message {
    MESSAGE_OTHER, /* of no interest to the rules that are modelled */
    MESSAGE_HELLO,
    MESSAGE_WELCOME,
    MESSAGE_VOTE,
    MESSAGE_ANSWER,
    MESSAGE_SUSPECT,
    MESSAGE_REFRESH,
    MESSAGE_BLOCKED,
    MESSAGE_FLUSH,
    MESSAGE_FLUSHED,
    MESSAGE_QUERY,
    MESSAGE_REPLY,
    MESSAGE_DONATE,
    MESSAGE_RESULT,
    MESSAGE_PROPOSE,
    MESSAGE_READY,
    MESSAGE_VERDICT,
    MESSAGE_INSTALL,
    MESSAGE_LEAVE,
    MESSAGE_EVICT,
    MESSAGE_SYNC,   /* waits in a synchronization */
    MESSAGE_MOVES,  /* ... which all of the group have come to, */
    MESSAGE_SYNCED, /* ... and which is over for it */
    MESSAGE_PROBE,
    MESSAGE_MEASURED, /* a probe */
    MESSAGE_RESUME,
    MESSAGE_RESUMED,
    MESSAGE_PARTIAL,  /* flag: enum trace_word */
    MESSAGE_COVERAGE, /* flag: enum trace_order */
    MESSAGE_SAMPLES,
    MESSAGE_HAS, /* a member has the state that it was to receive, or gives up
                  */
    MESSAGE_COUNT,
};

enum trace_vote { UPDATE, PENDING, OPTIMIZE, VOTES };
enum { REFUSED = 0xff };                            /* an answer */
enum trace_cause { TAGS, MISMATCH, CUT_OFF, FAIL }; /* of a REFRESH */
enum trace_state { ABSENT, RUNNING, COMPLETE, RETURNED };
enum trace_verdict {
    ABORT,
    COMMIT,
    INVALID,
    USAGE,
    UNREACHABLE,
    FAILED,
    CROSSED,
};
enum trace_outcome {
    OPEN_END, /* not known yet */
    SUCCESS,
    LOST_MEMBER,
    NOT_REACHED,
    BAD_ARGUMENT,
    BAD_USAGE,
    HAD_TO_FAIL,
    INTERNAL,
    NO_MASTER,
    TOO_FEW,
};
enum trace_call {
    ALLREDUCE,
    ALLGATHER,
    BROADCAST,
    BARRIER,
    ALLTOALL,
    GATHER, /* all-to-alls in which only a root receives, or sends (D23) */
    SCATTER,
    REDUCE, /* whose sum only a root receives (D25) */
    EVEN    /* an all-to-all with blocks of one size (D26) */
};
enum trace_reason {
    SILENT,
    NO_ANSWER,
    LEFT,
    PAIRS,
    NO_PART,
    TOO_OLD,
    OTHER_REASON
};
enum trace_word { SAYS_CALL, SAYS_FOLDED, SAYS_HOLDS, SAYS_FAILED };
enum trace_order {
    ORDER_PLAN,
    ORDER_FOLD,
    ORDER_REPORT,
    ORDER_FETCH,
    ORDER_END,
    ORDER_RELEASE,
    ORDER_REFUSE,
};
/* Of one in a synchronization. From NO_STATE on it is over, and not well. */
enum trace_role {
    ROLE_COMPLETE,
    ROLE_WAIT,
    ROLE_RECEIVE,
    ROLE_DIFFERS,
    ROLE_NO_STATE,
    ROLE_AHEAD,
    ROLE_FOREIGN,
    ROLE_CONFLICT,
    ROLE_MIXED,
    ROLE_CROSSED,
};
enum trace_fold { SUM_OF_U32, MEAN_OF_F64 };
enum trace_stream { CONTRIBUTION, RESULT };
/* PROPOSE, INSTALL. */
enum { WITH_RING = 1, FOR_UPDATE = 2, FOR_OPTIMIZE = 4 };

struct trace_name {
    uint64_t scope, tag; /* scope 0: the whole view; else of its members */
    uint32_t seq;
    uint8_t state; /* enum trace_state, or trace_verdict in VERDICT */
    uint8_t donor;
};

/* A part of a partial all-reduce. */
struct trace_part {
    uint64_t begin, count, hash;
    double weight; /* of its contributors */
    uint32_t owner, contributors;
};

/* The fields that a kind of event or message does not name are 0. Lists are
 * borrowed. */
struct trace {
    uint8_t kind, message;
    uint32_t process; /* its number in the universe, from 1 */
    int64_t time;     /* ns, by the master's clock, which keeps limits */
    int64_t now;      /* messages of a process, MADE, SUM: by its own clock */
    uint32_t round; /* of the message; LAUNCH: the root's index in the scope */
    uint32_t epoch; /* of the message, frame or view; LAUNCH, RESULT, ANSWER:
                       that the program was notified of */
    /* HELLO: group. VOTE, ANSWER: enum trace_vote. SUSPECT, REFRESH: cause.
     * PROPOSE, INSTALL: see above. LAUNCH: enum trace_call. RESULT (event):
     * enum trace_outcome. CLOSED: reason. PROBE: it is to report. MEASURED: it
     * could not be made. WELCOME: the grace in ms. RESUMED: INSTALL follows.
     * BLOCKED: by a vote. */
    uint32_t flag;
    /* HELLO: hint. WELCOME: the minimum of members. ANSWER: the answer.
     * FLUSHED, INSTALL: traits. RESULT (event): contributors. LAUNCH, ANSWER
     * (event): traits notified of. */
    uint32_t value;
    uint32_t size; /* LAUNCH, RESULT, ANSWER: of the view notified of */
    bool joins;    /* HELLO: not a founder */
    /* WELCOME: id. ANSWER (event): the answer. RESULT: hash of the bytes.
     * LAUNCH: hash of the arguments. FRAME: the sender. PROBE, MEASURED: the
     * other end. RESUME, RESUMED: id. */
    uint64_t number;
    uint64_t digest; /* FRAME. WELCOME, RESUME, RESUMED: the term */
    /* LAUNCH: [0] scope and tag; RESULT (event): the tag. FRAME: [0]. RESUME:
     * by kind of vote, seq and state: number and value of the last answer. */
    uint32_t name_count;
    const struct trace_name *names;
    /* FLUSH: the dead. PROPOSE: the removed. READY: failed links. LAUNCH: the
     * scope, none for the whole view. VIEW: members. */
    uint32_t id_count;
    const uint64_t *ids;
    uint32_t added_count; /* PROPOSE */
    const uint64_t *added;
    uint32_t set_count;   /* FLUSHED, REPLY with round 0: scopes, as bits */
    const uint64_t *sets; /* over the ranks of the view */
    /* Partial all-reduces. names[0] has the tag, `number` that of the round,
     * sets are of its members.
     * PARTIAL, CALL: round, the number of the call; digest, of the arguments;
     * ids: elements, the deadline and the time to gather in ms, rounds of A10,
     * the bits of the weight. FOLDED: value, the part; digest, of its result;
     * sets, contributors. HOLDS: ids, alternately a part and its digest.
     *
     * COVERAGE, PLAN: ids, alternately a member and its weight or 0; size, the
     * place of the receiver; sets, who is gone. FETCH: sets, who has each part.
     * END, and AVERAGED: sets, the contributors of each; value, 1: the receiver
     * is one, 2: RELEASE at once. REFUSE: value, why.
     *
     * AVERAGE: flag, enum trace_fold; size, of an element; number, the bits of
     * the weight; joins, the two places are one. AVERAGED: flag, enum
     * trace_outcome.
     *
     * ASKED, PIECE: number, the sender; digest, that of the round; flag, enum
     * trace_stream; round, the part; value, the offset in it, and size: bytes.
     * ASKED: joins, of a process that is strange, and answers once more.
     *
     * MADE, and SAMPLES to the master: number, the step; digest, samples; ids,
     * the target. SAMPLES from it: the same of all; value, members; flag, it is
     * reached. SUM: number, digest; joins, anything is known; flag, the step of
     * the last MADE is reached.
     *
     * SYNC: joins, asked again, and number, the last one that is over for it;
     * ids, the tags of calls whose result the program has not taken.
     * MOVES: ids, of which the first `value` are the holders. MOVES, SYNCED,
     * HAS: number; flag, enum trace_role. INSTALL: number, that of the last
     * synchronization that is over; RESUME: ids, the same, and of the last one
     * that went well for it. SHARED: flag, enum trace_outcome; ids, the
     * revision; digest, of the bytes; joins, not to be compared. */
    uint32_t part_count;
    const struct trace_part *parts;
    /* AVERAGE, AVERAGED: what lies in the place of the contribution, and then
     * in that of the result. */
    uint64_t byte_count;
    const uint8_t *bytes;
};

#endif
