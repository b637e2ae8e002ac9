/* master.h - the coordinator as a pure state machine.
 *
 * No sockets, clock, threads or logging: events come in through
 * master_step(), messages go out through a callback, time is a field of the
 * event. master_server.c drives it from libev, tests/world/sim from a seed. The
 * rules it implements are numbered in AGREEMENT.md.
 *
 * A group of members goes round this circle; everything that depends on
 * several peers is decided in settle(), after every event, from the state:
 *
 *        loss, broken link, refresh          all FLUSHED    some op in doubt
 *   OPEN ------------------------> FLUSHING -------------> ASKING
 *    ^  \                              |                      | all REPLY
 *    |   \ all voted, newcomers wait   v                      v
 *    |    +----------------------> PROPOSED <------------- DONATING
 *    +----- all READY: INSTALL --------+   results relayed
 *
 * A further loss starts the circle again with a new round number. Where all
 * members have voted to optimize, OPEN leads to PROBING and SOLVING first
 * (optimize.c); a round that finds no ring by itself goes through SOLVING too.
 */
#ifndef PCCL_MASTER_H
#define PCCL_MASTER_H

#include "dispute.h"
#include "../base/base.h"
#include "../base/evidence.h"
#include "../base/grant.h"
#include "../base/wire.h"
#include "search/bandwidth.h"
#include "search/edges.h"
#include "succession/replicas.h"
#include "succession/memory.h"
#include "note.h"
#include "state/offers.h"
#include "round_table.h"
#include "coverage/step_samples.h"
#include "succession/succession.h"
#include "peer_tally.h"

enum {
    MASTER_STRANGERS_MAX = 64, /* connections before HELLO */
    MASTER_LINKS_MAX = PEERS_MAX + MASTER_STRANGERS_MAX,
    MASTER_EDGES_MAX = 1024, /* failed pairs kept per group */
    MASTER_WARNED_MAX = 64,
    MASTER_FORCED_MAX = WIRE_OPS_MAX,
    MASTER_EXACT_MAX = 16,   /* worlds up to this size are split exactly */
    MASTER_SPARED_MAX = 6,   /* rounds that a member may repeat (R4f) */
    MASTER_BREAKS_MAX = 1,   /* silent losses of a link without data */
    MASTER_SERVERS_MAX = 16, /* holders that serve shared state at a time */
    MASTER_PROBES_MAX = 4 * PEERS_MAX, /* planned per step */
    MASTER_LOOPS_MAX = 4,  /* optimistic rings tried per optimization */
    MASTER_PAIRS_TOLD = 8, /* unreachable pairs named in a report */
    MASTER_PROBE_BYTES = 16 * 1024 * 1024,
};

#define MASTER_PROBE_TIME PCCL_S
#define MASTER_SWEEP_TIME (20 * PCCL_S) /* then no further probe begins */

#define MASTER_NO_LINK UINT32_MAX
#define MASTER_NO_PLACE UINT32_MAX

enum master_peer_state {
    PEER_FREE,
    PEER_CONNECTED,  /* before HELLO */
    PEER_REGISTERED, /* waits for admission */
    PEER_MEMBER,
    PEER_DEAD, /* gone, but still in the current view */
    PEER_STATE_COUNT,
};

enum master_answer { ANSWER_NONE, ANSWER_DUE, ANSWER_FLUSHED, ANSWER_TOLD };

/* Role of a member in the current synchronization. */
enum master_part {
    PART_NONE,
    PART_SERVES,  /* has the state and may send it */
    PART_HAS,     /* has the state, but only receives by its strategy */
    PART_LACKS,   /* needs the state */
    PART_DIFFERS, /* has other tensors, and compares them */
};

struct master_peer_sync {
    bool voted;     /* has sent its vote, and has no answer yet */
    bool again;     /* asks for the one after `ended` once more (H6) */
    uint64_t ended; /* the last one, as it said to a new master */
    uint64_t well;  /* the last one that gave it, or that took, its state */
    enum master_part part;
    uint8_t strategy;
    uint64_t revision, structure, content;
    uint64_t given; /* bytes that receivers say they took from it (S8) */
};

/* Place of a peer in a search for a ring, or in its result. */
struct master_place {
    uint32_t ticket; /* of the search, 0: none */
    uint32_t at;
};

/* Silence of a peer (silence.c). */
struct master_silence {
    /* It counts from here: last_recv, or later (M11). */
    pccl_ns since;
    pccl_ns asked_at, seen_at; /* the driver was asked; has answered */
    enum evidence evidence;    /* the last answer */
    enum evidence told;        /* in a note, or NONE */
    bool let_go;               /* an answer has withdrawn the evidence (M10f) */
};

/* The answer that the peer owes in this round (limits.c). */
struct master_debt {
    pccl_ns since; /* the message went out, or later (rule R8) */
    bool silent;   /* the peer was silent meanwhile */
};

struct master_peer {
    enum master_peer_state state;
    enum master_answer answer; /* to FLUSH or QUERY of this round */
    bool leaving;
    bool lost, dropped; /* DEAD: did not leave; was dropped */
    bool proposed;      /* in the view being proposed */
    uint32_t next_rank; /* in that view, once it is decided */
    bool ready;         /* READY received for this round */
    bool late;          /* it could not run while links were made (R4f) */
    bool join;       /* no founder: neither counted nor admitted first (M2) */
    bool stays;      /* its group evicts nobody for lack of a ring (R4b) */
    bool must_leave; /* before its process ends (M10h) */
    bool voted[VOTE_KIND_COUNT];
    uint32_t answered[VOTE_KIND_COUNT]; /* last answer that it had (H6) */
    bool spoke;       /* it has said what it waits for, since it resumed */
    uint32_t call;    /* number of its last vote or synchronization (V1) */
    uint32_t refused; /* the INSTALL of this epoch has ended such a call (F6) */
    uint32_t blocked; /* in this epoch, it reported so (rule V4b) */
    uint32_t asked;   /* operation whose state it owes next (F4) */
    uint32_t group;   /* index */
    uint32_t rank;    /* in the current view; MEMBER and DEAD */
    uint32_t place;   /* in the current ring, or MASTER_NO_PLACE */
    uint32_t proposed_place;
    uint32_t lacks; /* survey: bit k, no link to the 2^k-th after it */
    struct master_place searched, improved; /* index in the search's world */
    struct master_place wish;               /* place in the ring it found */
    uint16_t same_bits;                     /* the next one in by_id */
    uint32_t slot;       /* in the store of edges, MASTER_NO_PLACE: none */
    uint32_t probe;      /* step whose report it owes, or 0 */
    uint32_t probe_with; /* link */
    pccl_ns last_recv;   /* a whole frame; CONNECTED: of the connection */
    struct master_silence silence;
    struct master_debt debt;
    pccl_ns voted_at; /* or asked for a synchronization */
    pccl_ns since;    /* REGISTERED: from here */
    struct master_peer_sync sync;
    struct samples_of_peer samples;
    struct master_offer offer;
    uint32_t average_calls;       /* of partial all-reduces, so far */
    struct grant grant;           /* of its token (K13); all zero without */
    struct wire_record_name kept; /* the last record that it keeps (H11) */
    uint64_t claimed;      /* the term that it has confirmed (H13), or 0 */
    struct wire_msg *held; /* CONNECTED: its HELLO or RESUME, which waits until
                              it is known who has come (H13); or NULL */
    bool held_resume;
    struct wire_member info;
};

enum group_phase {
    GROUP_OPEN,
    GROUP_FLUSHING,
    GROUP_ASKING,
    GROUP_DONATING,
    GROUP_PROPOSED,
    GROUP_PROBING, /* members measure edges (rules O2..O5) */
    GROUP_SOLVING, /* a ring is being searched */
    GROUP_PHASE_COUNT,
};

/* A complaint: the verdict that it asks for, and the rank that made it. */
struct master_forced {
    struct wire_op op; /* state: op_verdict */
    uint32_t rank;
};

struct master_group {
    bool used;
    uint32_t peers; /* REGISTERED, MEMBER or DEAD */
    struct master_tally tally;
    bool restart;      /* a round must begin */
    bool update;       /* this round answers the VOTE_UPDATE of all */
    uint64_t admitted; /* the update takes newcomers up to this id (M3) */
    pccl_ns update_at; /* when the update began */
    bool optimize; /* it answers VOTE_OPTIMIZE; set from the vote to INSTALL */
    bool ring, mesh, tree, grid, small; /* small: all pairs, if it can */
    bool unlinked; /* a link of the proposal could not be made */
    bool survey;   /* the proposal tries more links than it needs (R4d) */
    bool surveyed; /* it has tried, and some could not be made */
    uint32_t survey_size;
    uint32_t spared; /* proposals in a row that late members repeated (R4f) */
    enum group_phase phase;
    bool decided;    /* PROPOSED: will be installed, come what may (J5) */
    uint32_t number; /* the peers' peer_group */
    uint32_t epoch;  /* of the current view; 0 before the first */
    uint32_t ready;  /* the last round in which all were */
    uint32_t round, measured; /* the last one; that in which these were: */
    uint32_t world, groups, largest; /* peers, groups, largest, of the run */
    uint32_t traits;      /* of the members that flushed in it (rule T4) */
    pccl_ns broken_at;    /* time of the round's cause, for reports */
    pccl_ns suspected_at; /* that members wait for each other (rule V4b) */
    uint32_t blocked;     /* members whose `blocked` is of this epoch */
    /* Optimization; all zero in a new group. */
    bool sweeping; /* between the vote and its round: probes may follow */
    bool searched; /* in this round; not again before the next one */
    bool hopeful;  /* the last search used optimistic estimates */
    bool stuck;    /* no ring without a search: use its result */
    /* Ticket and world size of the current or last search, of the background
     * search, and of the ring found, or 0. */
    uint32_t ticket, ticket_count;
    uint32_t background, background_count;
    uint32_t wish, wish_count;
    uint32_t step; /* of the current probes */
    uint32_t loops, sweep;
    pccl_ns sweep_until, step_until;
    uint64_t sync_id; /* of the current synchronization, or 0 */
    uint64_t sync_revision, sync_structure, sync_content; /* its state */
    uint64_t synced;         /* of the last one that has ended, or 0 */
    bool sync_changed;       /* a member of it was lost: send the lists again */
    uint32_t sync_text_rank; /* rank whose text is reported, if any */
    char sync_text[WIRE_TEXT_MAX + 1];
    struct master_hints hints;
    uint32_t forced_count, edge_count;
    struct master_table table; /* empty but in a round */
    struct master_forced forced[MASTER_FORCED_MAX];
    struct master_dispute dispute;
    struct samples_of_group samples;
    struct master_edge edges[MASTER_EDGES_MAX];
    struct coverage_round *averages; /* partial all-reduces, by number */
};

/* A ring search; borrowed for the call. */
struct master_search {
    uint32_t group, ticket; /* returned with the result */
    struct bandwidth *edges;
    uint32_t n;
    const uint16_t *slots;   /* the world */
    const uint16_t *initial; /* a ring, indexes into slots */
    struct bandwidth_view view;
    uint64_t seed;
    bool background; /* no member waits: improve the ring `initial` */
};

struct master_output {
    void *user;
    /* Sends the same message to each link; encoded once. msg is borrowed. */
    void (*send)(void *user, const uint32_t *links, uint32_t count,
                 const struct wire_msg *msg);
    /* Sends what is queued, then closes. No CLOSED event follows. */
    void (*close)(void *user, uint32_t link, const char *reason);
    void (*note)(void *user, const struct master_note *note); /* may be NULL */
    /* Begins a search; a MASTER_SEARCHED event delivers the result. A
     * background search delivers any number of results, each a better ring.
     * False: impossible. NULL: rings keep the order of ranks. */
    bool (*search)(void *user, const struct master_search *search);
    /* Asks the host of a silent peer what it sees of that process. A
     * MASTER_EVIDENCE event may deliver the answer, soon; never inside of the
     * call. NULL: nobody knows. */
    void (*look)(void *user, const struct wire_member *peer);
    /* A connection asks for the status (rule W6); NULL: nobody gets it. */
    void (*status)(void *user, uint32_t link, bool json);
    /* Writes the record where it lasts (J1). False: not now; called again.
     * NULL: nothing lasts. */
    bool (*remember)(void *user, const struct master_memory *memory);
    /* The connection is relayed from now on (rule N12): the link is free. May
     * be NULL without `relays`. */
    void (*relay)(void *user, uint32_t link, const struct wire_msg *msg);
};

struct master {
    struct master_output out;
    pccl_ns deadline;
    pccl_ns now;
    pccl_ns heard_at;              /* the last frame of anybody */
    pccl_ns warn_after, warned_at; /* age of a noted wait, or 0; last check */
    struct master_warned {
        uint64_t culprit, name;          /* id; of the wait */
        pccl_ns at;                      /* it was last seen */
    } warned[MASTER_WARNED_MAX];         /* noted, and not over */
    uint32_t quorum, minimum, peers_max; /* as configured */
    uint32_t mesh_max, tree_width; /* of a world, of a tree; 0: as usual */
    uint32_t round_last;
    uint64_t id_last;
    struct wire_key key;
    struct master_peer peers[MASTER_LINKS_MAX];    /* indexed by link */
    struct peer_report *reports[MASTER_LINKS_MAX]; /* the last ones, or NULL */
    struct wire_traffic traffic; /* of all members so far, also of lost ones */
    uint32_t link_end;           /* all links in use are below */
    uint32_t link_free;          /* all links below are in use */
    /* By the last bits of their ids: the first peer that is registered or a
     * member, as a link plus 1; the others follow by `same_bits`. */
    uint16_t by_id[PEERS_MAX];
    uint32_t in_state[PEER_STATE_COUNT]; /* peers; not of PEER_FREE */
    uint32_t founders;                   /* REGISTERED without `join` */
    struct master_tally tally;
    uint32_t crossed; /* a hint, as in struct master_hints */
    struct master_group groups[GROUPS_MAX];
    uint16_t group_list[GROUPS_MAX]; /* indices of those in use, ascending */
    uint32_t group_count;
    uint32_t group_end; /* groups from this number on were never used */
    bool founded;       /* there has been a first view */
    bool job, alone;    /* as configured, like the next two */
    bool may_relay, tokens;
    bool left, waits;     /* since there was none; noted to the operator */
    uint32_t traits_left; /* bitwise or of those in LEAVE (rule T4) */
    uint64_t sync_last;   /* also of partial all-reduces */
    struct master_record records[GROUPS_MAX];
    struct succession succession;
    struct replicas replicas;
    const struct wire_addr *masters; /* as configured */
    uint8_t master_count;
    struct bandwidth *edges; /* slots: peers; NULL: no measurements */
    uint64_t slots_used[PEERS_MAX / 64];
    uint32_t slot_link[PEERS_MAX];
    uint32_t probe_bytes;
    pccl_ns probe_time;
    uint32_t small_world;
    uint32_t step_last, ticket_last;
    /* scratch of one emission */
    struct bandwidth_probe probes[MASTER_PROBES_MAX];
    uint16_t slots[PEERS_MAX];
    uint32_t links[MASTER_LINKS_MAX];
    uint64_t ids[PEERS_MAX];
    uint16_t order[PEERS_MAX];
    uint16_t sites[HIERARCHY_MAX];
    uint32_t sorted[PEERS_MAX];
    struct wire_member members[PEERS_MAX];
    struct wire_op ops[WIRE_OPS_MAX];
    struct wire_relay relays[WIRE_RELAYS_MAX];
    uint32_t relay_count;
    uint16_t loads[PEERS_MAX]; /* pairs that a member relays */
    uint16_t paths[1 << MASTER_EXACT_MAX];
};

enum master_event_type {
    MASTER_CONNECTED, /* addr: the peer's address */
    MASTER_RECEIVED,  /* msg is borrowed */
    MASTER_CLOSED,
    MASTER_GRANTED,  /* the connection has proved a token (K13); before HELLO */
    MASTER_EXPELLED, /* the driver wants it evicted, for the reason (K12, K15)
                      */
    MASTER_TICK,     /* time has passed; link unused */
    MASTER_QUORUM,   /* quorum has changed */
    MASTER_SEARCHED,
    MASTER_EVIDENCE,
    MASTER_SLEPT, /* time has left out `gap` (rule M15) */
};

struct master_event {
    enum master_event_type type;
    uint32_t link;
    pccl_ns now, gap;
    const struct wire_msg *msg;
    struct wire_addr addr;
    const struct grant *grant; /* borrowed */
    const char *reason;        /* borrowed */
    uint32_t quorum;
    /* SEARCHED: the search, and the ring as indexes into its slots; NULL: no
     * ring found. */
    uint32_t group, ticket;
    const uint16_t *order;
    uint64_t id; /* EVIDENCE: the peer, and what its host sees */
    enum evidence evidence;
};

struct master_config {
    struct master_output out;
    pccl_ns deadline;
    uint32_t quorum, minimum; /* of the first view; of any (M14) */
    uint32_t peers_max;       /* for which the driver has descriptors; 0: all */
    pccl_ns warn_after;       /* notes waits of that age (rule W5); 0: none */
    bool relays;              /* offers to relay (N10b) */
    bool tokens;              /* of participants are asked for (K10) */
    bool job, alone;     /* ranks of one job (M2b); nobody starts any (M2d) */
    struct wire_key key; /* random; proof of membership between peers */
    const struct master_memory *memory; /* of a former master, or NULL */
    pccl_ns grace; /* for the next master (H2), with `remember` or: 0: none */
    bool replicas; /* the members keep what is remembered (H10) */
    bool fenced, standby; /* replicas.h; */
    /* All coordinators of the run, borrowed for good, or none (H14). */
    const struct wire_addr *masters;
    uint8_t master_count;
    struct wire_key secret; /* random, where there is no memory */
    /* An empty store of PEERS_MAX slots, which outlives the master; NULL: no
     * measurements, and rings are not optimized. */
    struct bandwidth *edges;
    uint32_t probe_bytes; /* limit per probe; 0: MASTER_PROBE_BYTES */
    pccl_ns probe_time;   /* limit per probe; 0: MASTER_PROBE_TIME */
    /* Worlds up to this size get the optimal ring; 0: BANDWIDTH_FULL_MAX. */
    uint32_t small_world;
};

/* The struct is large (about 7 MiB): allocate it zeroed. False: no memory, or
 * what is remembered cannot be. A new term begins: the driver has to have
 * `remember` done before anybody is answered. */
bool master_init(struct master *m, const struct master_config *config);
void master_free(struct master *m); /* what it holds, not the struct */

/* A link number for a new connection, or MASTER_NO_LINK at the limit. The
 * CONNECTED event takes it. */
uint32_t master_free_link(const struct master *m);

/* Applies one event. Cannot fail: a peer's error closes its link, an error of
 * ours is an assertion. */
void master_step(struct master *m, const struct master_event *event);

/* Time of the next TICK; PCCL_NEVER without connections. */
pccl_ns master_next_tick(const struct master *m);
uint32_t master_count(const struct master *m, enum master_peer_state state);
/* The newcomer or member of the group that has the id, or MASTER_NO_LINK. */
uint32_t master_link_of(const struct master *m, uint32_t group, uint64_t id);

/* The violated invariant as text, or NULL. Asserted around every step for the
 * peer that it is about, and at each tick for all. */
const char *master_invalid(const struct master *m);

/* --- between the files of this folder --- */
/* A message that was held. */
void master_received(struct master *m, uint32_t link,
                     const struct wire_msg *msg);

/* members.c: the peers; it calls nothing of the other files that agree. */
void master_send(struct master *m, uint32_t link, const struct wire_msg *msg);
void master_evict(struct master *m, uint32_t link, const char *reason,
                  enum wire_evict kind);
static inline void master_drop(struct master *m, uint32_t link,
                               const char *reason)
{
    master_evict(m, link, reason, WIRE_EVICT_FINAL);
}
/* As master_drop, without telling the peer. */
void master_hang_up(struct master *m, uint32_t link, const char *reason);
void master_note_send(struct master *m, const struct master_note *note);
/* Gives back what the master holds of a peer. */
void master_release(struct master *m, uint32_t link);
/* The only writer of a peer's state. */
void master_peer_move(struct master *m, uint32_t link,
                      enum master_peer_state next);
/* The peer has gone; a member stays in its view as DEAD until the next one is
 * installed (rule M6). */
void master_forget(struct master *m, uint32_t link, bool lost);
void master_leaves(struct master *m, uint32_t link); /* it asks to (M7) */
/* Links of a group's live members, leaving ones included, into m->links; ids of
 * its dead, with those that leave if wished, into m->ids. */
uint32_t master_live_links(struct master *m, uint32_t group);
uint32_t master_dead_ids(struct master *m, uint32_t group, bool leavers);
bool master_all_open(const struct master *m); /* no group is in a round */

/* Whether it waits in a vote that others of its group must join. */
static inline bool master_waits(const struct master_peer *p)
{
    return p->voted[VOTE_UPDATE] || p->voted[VOTE_OPTIMIZE] || p->sync.voted;
}

/* state_vote.c: synchronization of shared state, for one group. */
bool state_vote_settle(struct master *m, uint32_t group);
void state_vote_asked(struct master *m, uint32_t link,
                      const struct wire_msg *msg);
void state_vote_done(struct master *m, uint32_t link,
                     const struct wire_msg *msg);

/* round.c: the circle above, for each group. */
void round_settle(struct master *m);
void round_flushed(struct master *m, uint32_t link, const struct wire_msg *msg);
void round_reply(struct master *m, uint32_t link, const struct wire_msg *msg);
void round_result(struct master *m, uint32_t link, const struct wire_msg *msg);
void round_ready(struct master *m, uint32_t link, const struct wire_msg *msg);
void round_fault(struct master *m, uint32_t link, const struct wire_msg *msg);

/* round_ops.c: what is known of the operations. Where a function returns text,
 * the member has broken the protocol: the reason to drop it, or NULL. */
void round_ops_clear(struct master_group *g);
void round_ops_begin(struct master *m, uint32_t group); /* FLUSH */
const char *round_ops_list(struct master *m, uint32_t link,
                           const struct wire_msg *msg); /* FLUSHED */
/* All lists are there: true if an operation is in doubt. */
bool round_ops_in_doubt(struct master_group *g);
void round_ops_ask(struct master *m, uint32_t group);
const char *round_ops_reply(struct master *m, uint32_t link,
                            const struct wire_msg *msg);
void round_ops_decide(struct master *m, uint32_t group);
void round_ops_result(struct master *m, uint32_t link,
                      const struct wire_msg *msg);
bool round_ops_relayed(const struct master_group *g); /* all results due */
/* Sets those of MASTER_LINKS_MAX that owe a RESULT. */
void round_ops_owing(const struct master_group *g, bool *links);
void round_ops_send_verdicts(struct master *m, uint32_t group);
/* Once the lists and answers are there; and once INSTALL is sent: it refuses
 * members that wait in a vote (F6a). */
void round_ops_judge(struct master *m, uint32_t group);
void round_ops_refuse(struct master *m, uint32_t group);
/* The set number k of a message: its members as bits over the ranks, and the
 * number that they give. False: it cannot be a scope of the sender. */
bool round_read_set(struct master *m, uint32_t link, const struct wire_msg *msg,
                    uint32_t k, struct master_set *set);
/* A verdict when the epoch is closed, if the rank is in the scope. */
void round_force(struct master_group *g, uint32_t rank,
                 const struct wire_op *name, enum op_verdict verdict);

/* The messages that put the round's view in force. */
void round_send_install(struct master *m, uint32_t group, uint32_t count);
/* round_view.c: the view that a round proposes, into m->sorted and m->members,
 * and its size. */
uint32_t round_next_view(struct master *m, uint32_t group);
/* partition.c: of a view without a ring: true if newcomers were refused or
 * members evicted for it (rule R4). */
bool partition_resolve(struct master *m, uint32_t group, uint32_t count);
void round_send_proposal(struct master *m, uint32_t group, uint32_t count);

/* limits.c: how long a peer may owe an answer (R8). A question has gone out to
 * the group; time has passed; the master was deaf until now. */
void limits_begin(struct master *m, uint32_t group);
void limits_tick(struct master *m);
void limits_extend(struct master *m, uint32_t link, pccl_ns since);

/* silence.c: heartbeats, and who is lost for lack of them. */
void silence_tick(struct master *m);
void silence_heard(struct master *m, uint32_t link);
void silence_evidence(struct master *m, const struct master_event *event);
void silence_slept(struct master *m, pccl_ns gap); /* M15 */
/* The peer is silent: one heartbeat is missing, at least. */
bool silence_is_suspect(const struct master *m, uint32_t link);
/* What the peer owes may not count against it now: it is alive and cannot run,
 * or the master hears nobody. */
bool silence_is_excused(const struct master *m, uint32_t link);

void stall_tick(struct master *m); /* notes waits that are old (rule W5) */

/* deadlock.c: members that wait for each other (V4). A report; the verdicts on
 * what a round has found. */
void deadlock_reported(struct master *m, uint32_t link,
                       const struct wire_msg *msg);
void deadlock_judge(struct master *m, uint32_t group);

/* remember.c: the record is where it lasts; false: what is to follow has to
 * wait (J1). A new master begins with a record. */
bool memory_keep(struct master *m);
void memory_take(struct master *m, const struct master_memory *memory);

/* optimize.c: PROBING and SOLVING. True: the state has changed. */
bool optimize_begin(struct master *m, uint32_t group); /* OPEN */
bool optimize_probe(struct master *m, uint32_t group); /* PROBING */
bool optimize_search(struct master *m, uint32_t group, bool hopeful);
bool optimize_search_due(struct master *m, uint32_t group);
void optimize_found(struct master *m, const struct master_event *event);
void optimize_measured(struct master *m, uint32_t link,
                       const struct wire_msg *msg);
void optimize_tick(struct master *m, uint32_t group);
void optimize_installed(struct master *m, uint32_t group, uint32_t count);
/* A better ring for exactly the members of the current view is known. */
bool optimize_has_better(const struct master *m, uint32_t group);
/* Writes the ring to propose to m->sorted[0..count) into m->order: the ring
 * found, or the current ring with newcomers beside their neighbours. */
void optimize_order(struct master *m, uint32_t group, uint32_t count);

/* sites.c: groups m->sorted[0..count) into sites, in m->sites. Returns the
 * number of sites if hierarchical all-reduce pays off, else 0. */
uint32_t sites_find(struct master *m, uint32_t count);

#endif
