/* model_state.h - the state of the model; for model*.c only. */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include "model.h"

#include <stddef.h>

enum {
    PROCESSES = 4096,
    GROUPS = 4,
    WORLD = 32,    /* members of a view */
    CALLS = 32,    /* operations under way at one process; listed in a round */
    LOSSES = 64,   /* pending ones */
    PARTIES = 64,  /* members of a partial all-reduce, and parts */
    AVERAGES = 64, /* partial all-reduces that a master knows */
    AVERAGES_KEPT = 2, /* decisions of a tag after which RELEASE comes (A9) */
    TAGS_KEPT = 8,
    CHUNKS_ASKED = 8,   /* of a member at a time (A5) */
    SHARED_KEPT = 64,   /* partial all-reduces whose ends are compared, */
    ROLLS_KEPT = 256,   /* ... whose members are known, */
    INPUTS_KEPT = 8192, /* and contributions to them: for one that is stopped
                           while others go on */
};

struct ids {
    uint32_t count;
    uint64_t of[WORLD];
};

/* One operation of an epoch, seen from everywhere at once. */
struct call {
    uint32_t group, epoch;
    struct trace_name name;
    struct ids scope;
    struct {
        bool launched;
        uint8_t kind; /* enum trace_call */
        uint64_t arguments;
        uint32_t heard; /* members of whom a frame of it has come */
        uint8_t outcome;
        uint64_t hash;   /* of the result */
        uint64_t digest; /* of its frames to anybody */
    } at[WORLD];
};

/* An operation of one process. */
struct running {
    bool used, queued, donated, over; /* over: never started in an epoch */
    struct trace_name name;
    struct ids scope;
    uint64_t arguments;
    uint8_t kind, root;
    uint8_t seen;    /* its state in the last list, ABSENT: none yet */
    uint8_t verdict; /* of this round */
    uint8_t outcome; /* what the program must be told; OPEN_END: in-band */
    uint32_t loss;   /* that it notifies of, or 0 */
    uint32_t ended;  /* in this epoch */
};

struct pending_verdict {
    uint64_t scope, tag;
    uint32_t loss;
    uint8_t verdict;
    bool fresh, any_scope; /* fresh: its INSTALL has not come */
};

struct pending {
    uint32_t number, epoch, traits;
    struct ids removed;
};

struct sequence {
    uint64_t scope, tag;
    uint32_t next;
};

/* A member in a partial all-reduce, as what its master has heard and said. */
struct attendee {
    uint64_t id, weight;
    int64_t called_at;
    bool called;
    bool failed;       /* A12 */
    bool missed;       /* A13, A14: it is not for it */
    bool lapsed;       /* A9: it has missed an earlier one that is not kept */
    bool has, untaken; /* A14: its state has it; but not yet as of SYNC */
    bool late;         /* A14: it is to be told that it has missed it */
    bool differs;      /* it is to be told so (A3) */
    bool answered;     /* HOLDS has come since REPORT went out (A7) */
    /* What it has been told: */
    bool fold, report, fetch, end, refused, released;
    uint64_t saw_calls, saw_gone; /* its last PLAN */
};

struct portion {
    uint64_t begin, count, hash, contributors;
    uint32_t owner;
    bool folded, committed;
    bool given_up; /* in this event (A8) */
    struct {
        bool any;
        uint64_t hash;
    } named[PARTIES]; /* what each member has; before FOLDED: the first one */
};

/* A partial all-reduce: no more than what was heard and said. Who waits, what
 * is due and whether it is over follow from that (model_ledger.h). */
struct ledger {
    uint32_t group, patience, member_count, portion_count;
    uint64_t tag, number, arguments, elements;
    int64_t opened_at, deadline, gather;
    int64_t decided_at;
    bool cut, decided, disputed;
    bool folding, reporting; /* FOLD, REPORT went out in an earlier event */
    bool last;               /* some END was a RELEASE, too */
    struct attendee members[PARTIES];
    struct portion portions[PARTIES];
};

/* One at a process. lost: it cannot end well (H8). */
struct caller {
    uint64_t tag, number, term, called;
    uint64_t end; /* the last round of which END has come */
    bool under_way, sent, ended, refused, failing, released, folded;
    bool lost, missed, folds; /* folds: FOLD has come */
    uint32_t self, part_count, owners[PARTIES];
    uint64_t gone, givers[PARTIES]; /* by PLAN; by FETCH */
    uint64_t sets[PARTIES];
    /* Its place in the inputs; and which bytes have come of each contribution
     * to the part that is owned here, and of each part. */
    uint32_t input, fold, element;
    uint64_t told; /* parts that HOLDS has named */
    struct stream {
        uint8_t *has;
        uint64_t size, here;
    } streams[2][PARTIES];    /* by enum trace_stream */
    uint32_t awaits[PARTIES]; /* contributions, chunks of each (A5) */
    bool reports;             /* HOLDS is due for all that is here */
};

/* What one gives to a partial all-reduce. */
struct input {
    uint64_t id, tag, number, term, size;
    double weight;
    bool in_place, held; /* held: the call is under way */
    uint8_t *bytes;      /* the contribution, and the place of the result */
};

/* That have arrived of one kind, and are not answered; key 0: none. */
struct question {
    uint64_t key;
    uint32_t open, late; /* late: of these, after the end (A6) */
    uint32_t size;       /* of its answer */
    bool awaited;        /* no answer has come since it was asked last */
};

/* The members of one, and its parts. */
struct roll {
    uint32_t group, count, part_count, owners[PARTIES];
    uint64_t tag, number, term, ids[PARTIES], begins[PARTIES], counts[PARTIES];
    uint64_t folded; /* whose owners have told the master */
};

/* One that some have ended. */
struct shared {
    uint32_t group, part_count, count;
    uint64_t tag, number, term, of[WORLD];
    uint64_t sets[PARTIES], hashes[PARTIES];
};

enum standing { NOBODY, STRANGER, REGISTERED, MEMBER, DEAD, OUT, HEIR };

struct queue { /* hashes of messages under way */
    uint64_t *of;
    uint32_t first, count, room;
};

struct process {
    /* As the master sees it. */
    enum standing standing;
    uint64_t id;
    uint32_t group;
    int32_t hint;
    bool joins, leaving, proposed, ready, flushed, sent, installed;
    bool voted[VOTES], answers[VOTES]; /* answers: given in this step */
    bool in_sync, synced;              /* synced: in this step */
    bool undecided;                    /* not all of the group are in it */
    bool receives;                     /* in a synchronization, */
    bool completed;  /* ... or has been told, in this step, that all have it */
    bool asks_again; /* H6: for a synchronization, */
    uint64_t sync_from; /* ... and knows of these ends */
    uint32_t ended;     /* rule F6: by the INSTALL of this round */
    bool lacks;         /* it has said so in PENDING (V4b) */
    uint32_t probe;     /* its last step, or 0 */
    uint64_t probe_with;
    bool probe_due; /* its report */
    bool evicted;
    bool asks;     /* RESUME is not answered */
    bool spoke;    /* ... and its second one has come */
    bool inherits; /* INSTALL of the will */
    uint32_t asks_epoch, asks_round;
    uint32_t told[VOTES]; /* numbers of answers that it has had, */
    uint8_t told_value[VOTES];
    int64_t heard, asked_at;
    struct queue up, down;
    bool reports, samples_told; /* told: in this step */
    bool over;                  /* rule G3: its step */
    uint64_t step, samples, target;
    /* Of partial all-reduces: */
    uint32_t calls_heard;
    bool owed_refusal, owed_release, absent;
    uint64_t owed_tag;
    struct habit {
        uint64_t tag;
        uint32_t absences; /* in a row (A10) */
        bool lapsed;       /* A9 */
    } habits[TAGS_KEPT];
    struct told {
        bool known, reached;
        uint64_t step, samples, target;
        uint32_t members;
    } told_last;       /* of samples, by this master, */
    int64_t told_owed; /* ... which is something else since then */
    /* As it is. */
    enum { NEW, JOINING, IN_VIEW, GONE } state;
    bool takes; /* the results of a batch */
    bool mute, frozen, master_lost, leaves, listed;
    bool waits[VOTES], answered[VOTES];
    uint8_t answer[VOTES];
    uint32_t minimum;
    bool outlives, resuming, speaks, again[VOTES]; /* rules H2, H6 */
    uint64_t term;
    uint32_t had[VOTES];        /* numbers of answers */
    uint32_t verdicts, passing; /* VERDICTs of the proposal; rule H7 */
    uint8_t due; /* the message that must come next from it, or OTHER */
    uint32_t due_round, round, epoch;
    bool syncs;          /* asks for a synchronization that is not decided */
    bool refuses;        /* rule F6: INSTALL ends a vote */
    uint32_t probe_read; /* the step of the last order, */
    uint64_t probe_read_with;
    bool has_proposal, said_ready, ring, next_ring;
    struct ids view, next, removed;
    struct ids notified;
    uint32_t notified_epoch, notified_traits;
    struct pending losses[LOSSES];
    uint32_t loss_count, loss_next; /* number of the next one */
    struct running ops[CALLS];
    struct pending_verdict aborts[4 * CALLS];
    uint32_t abort_count;
    struct sequence *seqs; /* of the epoch */
    uint32_t seq_count, seq_room;
    struct trace_name asked[2 * CALLS]; /* by the QUERY to be answered */
    uint32_t asked_count;
    struct trace_name donates;
    uint32_t call_last, installs_due; /* INSTALLs before the next CALL (H8) */
    bool call_due;                    /* CALL is what it does next */
    bool moves;  /* it is to receive a state, and has not said that it has */
    bool shared; /* COMPLETE has come, of this one: */
    uint64_t sync_ended, sync_over; /* over: for its group (H6) */
    uint32_t numbered;              /* the last call that it has told of (V1) */
    struct made {
        bool any;
        uint64_t step, samples, target;
        int64_t at;
    } made, reported;     /* samples, by the program and to this master */
    struct told heard_of; /* ... and what that has said of all */
    bool found, hurried;  /* G3: its step is reached; G5: reported at once */
    int64_t overdue;      /* its report: since then */
    bool keeps;           /* it may have parts of rounds that are over */
    struct caller callers[TAGS_KEPT];
    uint32_t caller_count;
};

/* An operation in the lists of a round; sets are of ranks. */
struct listed {
    struct trace_name name;
    uint32_t set;      /* its scope */
    uint32_t runs;     /* who listed it */
    uint32_t lists[4]; /* by state: who said so last */
    uint32_t asked, replied, donors, relayed, judged;
    bool doubt, commit, donating, donated;
    bool awaits;    /* a member of the scope that waits in a vote */
    bool may_await; /* ... or waits for the end of a synchronization */
    uint8_t verdict;
    uint64_t donor, hash;
};

/* Of a step (G2). */
struct sum {
    uint64_t step, samples, target;
    uint32_t members;
    bool reached; /* it is over for somebody in it (G3) */
};

struct group {
    /* Synchronizations: the last one that was begun, and the last one of which
     * some heir knows that it is over (H6). */
    uint64_t sync_last, sync_known;
    struct sum sum;
    uint64_t counted; /* hash of the ids of its members */
    bool telling;     /* all of them, in this event (G4) */
    bool used;
    bool past;      /* as it was when its view was installed, */
    bool decided;   /* ... or will be, whoever is lost (J5), */
    uint32_t lived; /* with these ranks */
    uint32_t number, epoch, round, traits;
    struct ids view; /* in force; the dead included */
    enum { OPEN, FLUSHING, ASKING, DONATING, PROPOSED } phase;
    bool cause, unlinked, pairs;
    bool suspected;   /* a round may begin, and need not (V4b) */
    uint32_t blocked; /* ranks that have said so in this epoch */
    uint32_t flags;   /* of the proposal */
    bool admits;      /* an update began, with newcomers up to `admitted` ... */
    bool late;        /* ... but so long ago that it takes none (M3b) */
    uint64_t admitted;
    int64_t update_at;
    struct ids next;
    struct listed ops[4 * CALLS];
    uint32_t op_count;
    struct {
        struct trace_name name;
        uint32_t ranks; /* that must be in its scope */
    } forced[CALLS];
    uint32_t forced_count;
    uint32_t step; /* of probes */
    int64_t step_at, probes_at;
    bool probes; /* have begun, and the vote is not answered */
};

struct model {
    int64_t deadline, now;
    struct process *processes[PROCESSES];
    uint32_t process_end;
    struct group groups[GROUPS];
    uint64_t id_last;
    bool founded, ended;
    bool perhaps;  /* is founded: its record may have no member any more (H5) */
    bool installs; /* an update, in this step */
    bool no_disk;  /* it has refused something (J1) */
    bool unsettled; /* this step has begun */
    bool plain;  /* ... after which partial all-reduces need not be decided */
    bool probes; /* are ordered in it */
    uint32_t views, results;
    struct group wills[GROUPS];  /* rule H3 */
    struct group drafts[GROUPS]; /* that the record may have instead */
    bool stale[GROUPS];          /* of a will: the record may have none */
    bool waits;                  /* rule H5 */
    bool starts;                 /* it has died just now */
    int64_t began, grace;
    uint32_t minimum; /* rule M14 */
    uint64_t term, term_before;
    struct {
        uint32_t number, value;
        bool known;
    } given[VOTES];     /* the last answers to all */
    struct call *calls; /* open addressing */
    uint32_t call_count, call_room;
    struct {
        uint64_t number;
        struct ids ids;
    } scopes[1024];
    uint32_t scope_count;
    struct ledger averages[AVERAGES]; /* in the order of their first calls */
    uint32_t average_count, shared_next;
    struct shared shared[SHARED_KEPT];
    struct {
        uint64_t number, digest, revision;
        uint32_t group;
    } states[SHARED_KEPT]; /* that members had after a synchronization */
    uint32_t state_next;
    struct roll rolls[ROLLS_KEPT];
    struct input inputs[INPUTS_KEPT];
    uint32_t roll_next, input_next;
    struct question *questions; /* that have no answer; open addressing */
    uint32_t question_count, question_room;
    const char *wrong;
    char text[240];
};

#define REFUSE(m, ...) model_refuse((m), __VA_ARGS__)
void model_refuse(struct model *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool same_name(const struct trace_name *a, const struct trace_name *b);
uint32_t find_id(const struct ids *s, uint64_t id); /* or s->count */
struct process *process_of(struct model *m, uint64_t id);

/* model_master.c: an event at the master. */
void master_takes(struct model *m, struct process *p, const struct trace *t);
void master_gives(struct model *m, struct process *p, const struct trace *t);
void master_loses(struct model *m, struct process *p);
void master_closes(struct model *m, struct process *p, uint32_t reason);
void master_settled(struct model *m);

bool all_voted(const struct model *m, const struct group *g,
               enum trace_vote kind);

/* model_install.c: the view that was proposed. */
bool is_empty(const struct model *m, const struct group *g);
bool may_install(const struct model *m, const struct group *g);
void round_installs(struct model *m, struct group *g, struct process *p,
                    const struct trace *t);
void round_decided(struct model *m, struct group *g);
void round_deserted(struct model *m, struct group *g);

/* model_heirs.c: another master. */
void master_dies(struct model *m);
void heirs_will(struct model *m, const struct group *g);
void heirs_forget(struct model *m, const struct group *g);
void heirs_left(struct model *m, const struct process *p);
void heirs_term(struct model *m, uint64_t term);
void heirs_ask(struct model *m, struct process *p, const struct trace *t);
void heirs_resumed(struct model *m, struct process *p, const struct trace *t);
void heirs_refused(struct model *m, struct process *p);
void heirs_letter(struct model *m, struct process *p, const struct trace *t);
void heirs_take_over(struct model *m);
bool heirs_settled(struct model *m);
bool heirs_answered(struct model *m, struct process *p, const struct trace *t);

/* model_optimize.c: the probes of a group. */
void probe_ordered(struct model *m, struct process *p, const struct trace *t);
void probe_read(struct process *p, const struct trace *t);
void probe_reported(struct model *m, const struct process *p,
                    const struct trace *t);
void probe_ended(struct model *m, struct process *p, const struct trace *t);
void probes_settled(struct model *m);

/* model_round.c: the round of a group. */
struct group *group_of(struct model *m, uint32_t number);
bool is_live(const struct process *p, const struct group *g);
uint32_t live_ranks(struct model *m, const struct group *g);
bool all_ready(const struct model *m, const struct group *g);
bool too_few(const struct model *m);
bool flush_needed(struct model *m, const struct group *g);
void round_begins(struct model *m, struct group *g, const struct trace *t);
void round_lists(struct model *m, struct group *g, struct process *p,
                 const struct trace *t);
void round_decides(struct model *m, struct group *g);
void round_asks(struct model *m, struct group *g, struct process *p,
                const struct trace *t);
void round_replies(struct model *m, struct group *g, struct process *p,
                   const struct trace *t);
void round_donates(struct model *m, struct group *g, struct process *p,
                   const struct trace *t);
void round_receives(struct group *g, const struct process *p,
                    const struct trace *t);
void round_relays(struct model *m, struct group *g, struct process *p,
                  const struct trace *t);
bool round_complete(struct model *m, struct group *g);
void round_judges(struct model *m, struct group *g, struct process *p,
                  const struct trace *t);
void round_judged(struct model *m, struct group *g, const struct process *p);
void round_refuses(const struct group *g, struct process *p);

/* model_crossed.c: operations that wait for each other (V4). */
void round_blocked(struct group *g, struct process *p, const struct trace *t);
/* By what is certain; `maybe`: or may be. */
bool in_circle(const struct group *g, uint32_t live, const struct listed *op,
               bool maybe);

/* model_samples.c: the samples of a step, at the master. */
void samples_reported(struct model *m, struct process *p,
                      const struct trace *t);
void samples_told(struct model *m, struct process *p, const struct trace *t);
void samples_settled(struct model *m);
/* ... at a member */
void samples_made(struct process *p, const struct trace *t);
void samples_sent(struct model *m, struct process *p, const struct trace *t);
void samples_heard(struct process *p, const struct trace *t);
void samples_seen(struct model *m, struct process *p, const struct trace *t);
void samples_anew(struct process *p);

/* model_ledger.c, model_owed.c: partial all-reduces at the master. */
void average_takes(struct model *m, struct process *p, const struct trace *t);
void average_gives(struct model *m, struct process *p, const struct trace *t);
void average_settled(struct model *m);
void average_dies(struct model *m);
/* Whether rule A10 evicts it. */
void average_votes(struct model *m, struct process *p, const struct trace *t);
void average_follows(struct model *m, struct process *p, const struct trace *t);
bool average_evicts(struct model *m, const struct process *p);

/* model_caller.c: and at a process. */
void caller_sends(struct model *m, struct process *p, const struct trace *t);
void caller_reads(struct model *m, struct process *p, const struct trace *t);
void caller_cut(struct process *p);
void caller_program(struct model *m, struct process *p, const struct trace *t);

/* model_sync.c: synchronizations. */
void sync_asked(struct model *m, struct process *p, const struct trace *t);
void sync_given(struct model *m, struct process *p, const struct trace *t);
void sync_resumed(struct model *m, const struct process *p,
                  const struct trace *t);
void sync_has(struct model *m, struct process *p, const struct trace *t);
void sync_settled(struct model *m);
void call_numbered(struct model *m, struct process *p, const struct trace *t);
void sync_says(struct model *m, struct process *p);
void sync_read(struct process *p, const struct trace *t);
void sync_installed(struct process *p, const struct trace *t);
void sync_resumes(struct model *m, const struct process *p,
                  const struct trace *t);
void sync_taken(struct model *m, struct process *p, const struct trace *t);

/* model_data.c: the bytes of partial all-reduces. */
void data_free(struct model *m);
void data_enrolled(struct model *m, const struct ledger *r);
void data_begins(struct model *m, struct process *p, struct caller *c,
                 const struct trace *t);
void data_planned(struct model *m, const struct process *p,
                  const struct caller *c);
void data_over(struct caller *c);
void data_asked(struct model *m, struct process *p, const struct trace *t);
void data_came(struct model *m, struct process *p, const struct trace *t);
void data_folded(struct model *m, const struct process *p,
                 const struct caller *c, const struct trace *t);
void data_held(struct model *m, const struct process *p, struct caller *c,
               const struct trace *t);
void data_ended(struct model *m, const struct process *p,
                const struct caller *c, const struct trace *t);
struct caller *caller_by(struct process *p, uint64_t number);

/* model_member.c: an event at a process. */
void member_sends(struct model *m, struct process *p, const struct trace *t);
void member_reads(struct model *m, struct process *p, const struct trace *t);
void member_program(struct model *m, struct process *p, const struct trace *t);

void member_gone(struct process *p);

/* model_resume.c: what it is told; without a master. */
void member_notify(struct process *p, uint32_t loss);
bool abort_fits(const struct pending_verdict *a, const struct running *o);
void member_drops(struct process *p, uint32_t abort);
bool member_drops_crossed(struct process *p, uint64_t tag);
void member_queues(struct process *p, struct running *o);
void member_notify_all(struct process *p);
void member_called(struct process *p, uint32_t kind);
void member_synced(struct process *p);
void member_refused(struct process *p);
void member_cut(struct process *p);
void member_resumes(struct model *m, struct process *p, const struct trace *t);
void member_resumed(struct model *m, struct process *p, const struct trace *t);

/* model_calls.c: all members of an operation. */
void call_starts(struct model *m, struct process *p, struct running *o);
void call_hears(struct model *m, struct process *p, const struct trace *t);
void call_held(struct model *m, struct process *p, struct running *o);
void call_returns(struct model *m, struct process *p, struct running *o,
                  bool fast);
void call_ends(struct model *m, struct process *p, struct running *o,
               uint8_t outcome);
void call_bytes(struct model *m, const struct process *p,
                const struct running *o, uint64_t hash);
void call_scope(struct model *m, uint64_t number, const struct ids *ids);

#endif
