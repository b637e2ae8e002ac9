/* session.h - one peer as a pure state machine. It joins the membership, which
 * the master decides, and the data plane (ring/ring.h).
 *
 * It has no sockets, clock or threads: comm.c drives it for real, the simulator
 * from a seed. Everything happens inside the calls below; the caller then
 * moves the bytes that the engine's connections offer. Rules:
 * AGREEMENT.md. */
#ifndef PCCL_SESSION_H
#define PCCL_SESSION_H

#include "../message/message.h"
#include "../ring/ring.h"
#include "sample_count.h"
#include "notified.h"
#include "offer.h"
#include "partial.h"
#include "state.h"

enum session_state {
    SESSION_NEW,
    SESSION_JOINING, /* HELLO sent, not yet in a view */
    SESSION_MEMBER,
    SESSION_GONE, /* evicted, left, or the run is over */
};

enum session_vote { VOTE_IDLE, VOTE_WAITING, VOTE_ANSWERED };

enum session_sync { SYNC_IDLE, SYNC_ASKED, SYNC_OVER };

enum { PENDING_ABORTS_MAX = 4096, BLOCKERS_MAX = 8, DISPUTES_KEPT = 16 };

/* What this member tells the operator (session_waits.c, rules W). */
struct session_waits {
    bool reports;   /* to the master, in place of plain heartbeats */
    bool host_told; /* the name of the host has gone out */
    char host[WIRE_NAME_MAX + 1];
    struct wire_self self; /* the driver sets both before a tick */
    struct wire_traffic traffic;
    /* The group of an operation, by its tag; NULL: it has no name. */
    void (*name)(uint64_t tag, char *text, size_t size);
    /* Calls that wait for something that is no operation. */
    struct session_call {
        const void *key; /* NULL: free */
        pccl_ns since;
        struct wire_wait wait;
    } calls[WIRE_CALLS_MAX];
    /* The operations in the last report: their names, and when they were first
     * seen. */
    struct session_seen {
        uint64_t scope, tag;
        uint32_t seq, epoch;
        pccl_ns since;
    } seen[WIRE_UNDER_WAY_MAX];
    uint32_t seen_count;
    /* Operations of that epoch that others wait in. */
    struct wire_op wanted[WIRE_WANTED_MAX];
    uint32_t wanted_count, wanted_epoch;
};

/* A verdict on an operation that this peer has not launched yet. */
struct pending_abort {
    uint64_t scope, tag;
    uint32_t epoch;   /* in force at that time (rule P1) */
    uint32_t dispute; /* number of the text about it; 0: none */
    uint8_t verdict;
    bool fresh;     /* of the round under way: its INSTALL has not come */
    bool any_scope; /* it is for the next launch of the tag (rule V4d) */
};

/* The events of a session, beside the requests to its driver. */
struct session_events {
    void *user;
    void (*to_master)(void *user, const struct wire_msg *msg);
    /* A condition that an API caller may wait for has changed. */
    void (*changed)(void *user);
    /* This process is to have so many descriptors more. Returns how many it may
     * have (rule R3j). NULL: any number. */
    uint64_t (*afford)(void *user, uint64_t descriptors);
    /* Bytes of memory that this process can still have. NULL: any number. */
    uint64_t (*memory)(void *user);
};

/* What a master remembers, as this member keeps it (rule H10). */
struct session_record {
    struct wire_record_name name;
    uint8_t *bytes;
    uint32_t size, total; /* that have come; that there are */
    bool counts;          /* as the master has said */
};

struct session {
    struct session_events out;
    struct engine *engine;
    struct links *links; /* of the engine */
    struct messages messages;
    struct state_sync sync_state;
    struct offer offer; /* of the state, to newcomers */
    struct partial partial;
    enum session_state state;
    bool elsewhere;    /* it was not admitted, and another master may (H14) */
    bool master_lost;  /* members go on until they need the master */
    bool stranded;     /* they need it now */
    pccl_ns linked_at; /* when no operation lacked a link */
    /* Another master may come (rules H): for so long; its term is above. */
    pccl_ns grace, resume_until;
    uint64_t term;
    struct wire_key secret;
    bool resuming; /* RESUME is sent, RESUMED has not come */
    struct wire_addr masters[WIRE_MASTERS_MAX]; /* of the run (H14) */
    uint8_t master_count;                       /* 0: the one of pcclConnect */
    /* VERDICTs of the proposal that have come, and those of them that come
     * again (H7). */
    uint32_t verdicts, verdicts_again;
    bool resume_install;                 /* INSTALL of the proposal follows */
    struct session_record kept, keeping; /* whole; while it comes */
    uint64_t claimed;   /* obeys no master of a lower term (H13) */
    bool partial_again; /* calls of partial all-reduces are sent again */
    uint32_t answered[VOTE_KIND_COUNT]; /* number of the last answer (H6) */
    uint8_t answered_flag[VOTE_KIND_COUNT];
    uint32_t vote_calls[VOTE_KIND_COUNT]; /* their numbers */
    /* The last synchronization that has ended for this peer, for its group, and
     * well for this peer. One that refuses this peer ends for it alone. */
    uint64_t sync_ended, sync_over, sync_well;
    bool sync_waits;       /* the one asked for last is not decided */
    bool sync_again;       /* the one under way is asked for again */
    bool sync_unspoken;    /* that is said once its bytes are here */
    uint64_t sync_elected; /* revision that its lists named */
    uint64_t sync_untaken[PARTIAL_CALLS_MAX]; /* tags that SYNC lists (A14) */
    uint8_t sync_strategy;
    bool leaving;
    char reason[WIRE_TEXT_MAX + 1]; /* why GONE, or the last failure */
    pccl_ns now, heartbeat_at;
    uint64_t id;
    uint32_t minimum; /* members that the run needs; 0: any (M14) */
    bool goes_on;     /* collectives of this member do with fewer */

    const struct view *view; /* in force */
    struct view *next;       /* proposed; NULL: none is */
    uint32_t round;
    bool ready_sent;
    uint32_t traits; /* of this member, see pcclSetTraits */
    pccl_ns closed_at, proposed_at, installed_at; /* of the last change */
    pccl_ns late_at;      /* links_late() at the proposal */
    uint32_t fault_epoch; /* last epoch that was reported as broken */
    struct notified notified;
    struct pending_abort *pending_aborts; /* the oldest first */
    uint32_t pending_abort_room;
    uint32_t pending_abort_count;
    /* Rule F9: the operation of this round whose members disagree, and the
     * number of the text about it; 0: none. The last texts, by number. */
    struct wire_op disputed;
    uint32_t dispute, disputes;
    char dispute_texts[DISPUTES_KEPT][WIRE_TEXT_MAX + 1];
    uint64_t blockers[BLOCKERS_MAX][2]; /* pairs that prevent a ring */
    uint32_t blocker_count;
    bool refuses; /* a verdict of this round: INSTALL ends a vote (F6) */

    struct session_waits waits;
    struct sample_count samples;

    uint32_t calls; /* votes and synchronizations so far (rule V1) */
    enum session_vote votes[VOTE_KIND_COUNT];
    uint8_t answers[VOTE_KIND_COUNT]; /* flag of ANSWER, 0xff: refused */

    enum session_sync sync;
    int sync_result; /* OVER; `sync_error` has the reason of a failure, or the
                        members that were refused for other tensors */
    uint64_t sync_revision; /* OVER: the group's revision, as far as known */
    uint64_t sync_given; /* OVER: bytes that others received from this peer */
    char sync_error[WIRE_TEXT_MAX + 1];
};

struct session_config {
    struct driver driver;
    struct session_events events;
    uint32_t pool_size;
    pccl_ns deadline;
    pccl_ns now; /* by the clock of session_tick() */
};

/* The struct is large (a few MiB, untouched until used): allocate it zeroed.
 * False: out of memory. */
bool session_init(struct session *s, const struct session_config *config);
void session_free(struct session *s);

/* The connection to the master is up: send HELLO. */
void session_hello(struct session *s, const struct wire_msg *hello);
void session_on_message(struct session *s, const struct wire_msg *msg);
/* A connection to a master is up, and the one before was lost: true: RESUME is
 * sent. May it be wanted. */
bool session_may_resume(const struct session *s);
void session_resume(struct session *s);
void session_master_gone(struct session *s, const char *reason);
void session_tick(struct session *s, pccl_ns now);

/* The caller calls it after the engine has moved bytes. It handles the work
 * that waits for links. */
void session_settle(struct session *s);

/* Starts an operation. Results as pcclCollectiveAsync; on success *out is an
 * operation that ends with phase DONE, perhaps at once. view_epoch 0: any. */
int session_launch(struct session *s, const struct op_request *r,
                   uint64_t view_epoch, struct op **out);

/* Begins a small operation without a launch, if no condition prevents it. The
 * caller then calls fast_poll() until the operation is done (and taken), or
 * session_convert(). */
bool session_fast(struct session *s, const struct op_request *r,
                  uint64_t view_epoch);

/* Notifies the program of the losses up to the first of one of these members.
 * Marks in `lost`, or NULL, those that are not of the program's view. False:
 * all are. */
bool session_take_loss(struct session *s, const uint64_t *ids, uint32_t count,
                       bool *lost);

/* Makes an operation of the fast one under way. NULL: out of memory. The others
 * may have the result already, so this member is out. */
struct op *session_convert(struct session *s);

/* On what the members of an operation disagreed that ended with
 * pcclInvalidArgument, by op_dispute(); NULL: not known, or DISPUTES_KEPT other
 * texts have come since. */
const char *session_dispute(const struct session *s, uint32_t number);

/* Rule D10: asks that the operation fail for all its members. */
int session_fail(struct session *s, uint64_t tag);

/* Takes the result of a DONE operation: notifies the program of its loss and
 * frees it. */
int session_take(struct session *s, struct op *op, uint32_t *contributors,
                 uint64_t *tx_bytes, uint64_t *rx_bytes);

bool session_busy(const struct session *s); /* an operation is open */
bool session_votes_topology(const struct session *s);

/* Votes; the answer is there when votes[kind] is ANSWERED (then set it to
 * IDLE) or the state is GONE. */
int session_vote(struct session *s, enum vote_kind kind);

/* Starts a synchronization of shared state; `list` and its tensors belong to
 * the session until `sync` is OVER, then session_sync_take(). */
int session_sync(struct session *s, struct state_list *list,
                 enum sync_strategy strategy, uint64_t revision);
int session_sync_take(struct session *s, uint64_t *revision, uint64_t *tx_bytes,
                      uint64_t *rx_bytes);

/* Offers the state to newcomers from now on: a round begins (rule S10). The
 * list belongs to the session until another one takes its place, or until
 * session_offer_end(). */
int session_offer(struct session *s, const struct state_list *list,
                  const struct offer_terms *terms);
void session_offer_end(struct session *s);
/* Begins a partial all-reduce; *out ends as DONE, then
 * session_partial_take(). */
int session_partial(struct session *s, const struct partial_request *r,
                    struct partial_call **out);
/* The result of a call that is DONE, and its text. */
int session_partial_result(const struct session *s,
                           const struct partial_call *c, const char **text);
void session_partial_take(struct session *s, struct partial_call *c);

/* A call begins, or ends, to wait for messages or requests; `key` names it. It
 * is for reports only, and is left out where there are many. */
void session_wait_begins(struct session *s, const void *key,
                         const struct wire_wait *wait);
void session_wait_ends(struct session *s, const void *key);

/* Samples that this member has of a step (rule G1). */
void session_report_samples(struct session *s,
                            const struct sample_report *report);

/* --- session*.c only --- */
void session_samples_send(struct session *s);
void session_on_samples(struct session *s, const struct wire_msg *msg);
void session_heartbeat(struct session *s);
void session_on_wanted(struct session *s, const struct wire_msg *msg);
void session_on_flush(struct session *s, const struct wire_msg *msg);
void session_on_query(struct session *s, const struct wire_msg *msg);
void session_on_donate(struct session *s, const struct wire_msg *msg);
void session_on_propose(struct session *s, const struct wire_msg *msg);
void session_on_install(struct session *s, const struct wire_msg *msg);
/* All members of a scope are in the view. */
bool session_scope_lives(const struct session *s, const uint64_t *ids,
                         uint32_t count);
void session_send(struct session *s, const struct wire_msg *msg);
bool session_outlives_master(struct session *s);
void session_on_resumed(struct session *s, const struct wire_msg *msg);
/* KEEP, KEPT, KEEP_GET, CLAIM. */
void session_on_record(struct session *s, const struct wire_msg *msg);
void session_keep_free(struct session *s);
/* A view was installed, perhaps by another master. */
void session_resume_view(struct session *s);
/* The master is lost, and another one may come (rule H2). */
static inline bool session_waits_for_master(const struct session *s)
{
    return s->master_lost && s->resume_until > 0;
}
void session_offer_again(struct session *s);
void session_gone(struct session *s, const char *reason);
void session_sync_on_message(struct session *s, const struct wire_msg *msg);
void session_partial_init(struct session *s);
void session_sync_over(void *session); /* the engine's part */
void session_sync_refuse(struct session *s);
void session_sync_end(struct session *s, int result, const char *error);
void session_sync_raise(uint64_t *last, uint64_t id);
/* Another master is to hear what the one that died had been asked. */
void session_sync_speak(struct session *s);
void session_offer_open(struct session *s);
void session_probe(struct session *s, const struct wire_msg *msg);
void session_probed(void *session, uint32_t step, const struct wire_edge *edge);
void session_report_links(struct session *s);
void session_report_ways(struct session *s);
/* Result that a verdict forces on what is not complete, or pcclSuccess. */
int session_forced(enum op_verdict verdict);
/* Rule F6: those on operations that have not been launched here wait. */
void session_on_verdict(struct session *s, const struct wire_msg *msg);
/* Drops the verdicts CROSSED of this round on operations of the tag that were
 * not launched here. False: there are none. */
bool session_drop_crossed(struct session *s, uint64_t tag);
void session_end_verdicts(struct session *s); /* INSTALL has judged */
/* An update, an optimization or a synchronization has ended for this peer, or
 * all members have come to it. */
void session_call_over(struct session *s);
/* The verdict that is kept for this launch, unless an older loss comes first
 * (P1); and its end, once there is an operation that has it. */
bool session_meets_verdict(const struct session *s, const struct op_request *r,
                           int *result);
void session_take_verdict(struct session *s, const struct op_request *r,
                          struct op *op);
/* The number of the text about an operation that INSTALL ends; 0: none. */
uint32_t session_disputed(const struct session *s, uint64_t scope,
                          uint64_t tag);
/* Rule F6b: the program has been notified of the loss of that epoch. */
void session_loss_told(struct session *s, uint32_t epoch);
/* A launch that waits for the INSTALL of a verdict has it then. */
void session_queue_verdict(struct session *s, struct op *op);
void session_keep_blockers(struct session *s, const struct wire_msg *msg);

/* Asks to leave; GONE follows, at the latest when the caller gives up. */
void session_leave(struct session *s);
void session_send_leave(struct session *s);
void session_abort_run(struct session *s, int code);

#endif
