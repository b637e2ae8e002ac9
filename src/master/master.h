/* master.h - the coordinator as a pure state machine.
 *
 * No sockets, clock, threads, allocation or logging: events come in through
 * master_step(), messages go out through a callback, time is a field of the
 * event. master_server.c drives it from libev, tests/sim from a seed. The
 * rules it implements are numbered in PROTOCOL.md.
 *
 * A group of members goes round this circle; everything that depends on
 * several peers is decided in settle(), after every event, from the state:
 *
 *        loss, broken link, refresh          all FLUSHED    some op in doubt
 *   OPEN ------------------------> FLUSHING -------------> ASKING
 *    ^  \                              |                      | all TOLD
 *    |   \ all voted, newcomers wait   v                      v
 *    |    +----------------------> PROPOSED <------------- DONATING
 *    +----- all READY: INSTALL --------+   results relayed
 *
 * A further loss starts the circle again with a new round number. */
#ifndef PCCL_MASTER_H
#define PCCL_MASTER_H

#include "../base.h"
#include "../wire.h"

enum {
    MASTER_STRANGERS_MAX = 64, /* connections that have not said HELLO */
    MASTER_LINKS_MAX = PEERS_MAX + MASTER_STRANGERS_MAX,
    MASTER_EDGES_MAX = 64, /* unreachable pairs remembered per group */
    MASTER_FORCED_MAX = 64,
    MASTER_MESH_MAX = 8,     /* worlds up to this size link all pairs */
    MASTER_EDGE_TRIES = 3,   /* attempts before a pair counts as unreachable */
    MASTER_SERVERS_MAX = 16, /* holders that serve shared state at a time */
};

#define MASTER_NO_LINK UINT32_MAX

enum master_peer_state {
    PEER_FREE,
    PEER_CONNECTED,  /* no HELLO yet */
    PEER_REGISTERED, /* waits to be accepted */
    PEER_MEMBER,
    PEER_DEAD, /* gone, but still in the view in force */
    PEER_STATE_COUNT,
};

enum master_answer { ANSWER_NONE, ANSWER_DUE, ANSWER_FLUSHED, ANSWER_TOLD };

/* What a member has to do with the synchronization under way. */
enum master_part {
    PART_NONE,
    PART_SERVES,  /* has the state and may give it */
    PART_HAS,     /* ... but only receives by its strategy */
    PART_LACKS,   /* receives it */
    PART_DIFFERS, /* has other tensors, and looks which */
};

struct master_peer_sync {
    bool voted;  /* asked, and not answered yet */
    bool synced; /* has what the group's record says */
    enum master_part part;
    uint8_t strategy;
    uint64_t revision, structure, content;
    uint64_t given; /* bytes that receivers say they took of it (S8) */
};

struct master_peer {
    enum master_peer_state state;
    enum master_answer answer; /* to FLUSH or ASK of this round */
    bool leaving;
    bool lost;     /* DEAD: vanished rather than left */
    bool proposed; /* part of the view being proposed */
    bool ready;    /* READY received for this round */
    bool join;     /* no founder: neither counts nor comes in first (M2) */
    bool probed;   /* owes an answer to a probe (rule V4) */
    bool voted[VOTE_KIND_COUNT];
    uint32_t group; /* index */
    uint32_t rank;  /* in the view in force; MEMBER and DEAD */
    pccl_ns heard;  /* last complete frame; CONNECTED: since when */
    pccl_ns voted_at;
    struct master_peer_sync sync;
    struct wire_member info;
};

enum group_phase {
    GROUP_OPEN,
    GROUP_FLUSHING,
    GROUP_ASKING,
    GROUP_DONATING,
    GROUP_PROPOSED,
    GROUP_PHASE_COUNT,
};

struct master_op {
    struct wire_op op; /* survivors as the first lister said */
    uint32_t held, running, returned, absent;
    uint32_t donor; /* link, or MASTER_NO_LINK */
    bool commit;
    bool relayed; /* donated result has gone out, or none is needed */
};

struct master_edge {
    uint64_t a, b; /* member ids */
    uint32_t tries;
};

/* The shared state of a group, kept when all have left (rule S4). */
struct master_record {
    bool used;
    uint32_t number; /* of the group */
    uint64_t revision, structure, content;
    uint64_t stamp; /* of the last change; the oldest makes room */
};

struct master_group {
    bool used;
    bool restart;    /* a round must begin */
    bool update;     /* this round answers everybody's VOTE_UPDATE */
    bool ring, mesh; /* of the proposal */
    enum group_phase phase;
    uint32_t number;   /* the peers' peer_group */
    uint32_t epoch;    /* of the view in force; 0 before the first */
    uint32_t round;    /* last round begun */
    pccl_ns broken_at; /* when the round's cause was noticed, for reports */
    pccl_ns probed_at;
    uint64_t sync_id;  /* of the synchronization under way, or 0 */
    bool sync_changed; /* somebody in it was lost: lists go out again */
    uint32_t op_count, forced_count, edge_count;
    struct master_op ops[WIRE_OPS_MAX];
    struct wire_op forced[MASTER_FORCED_MAX]; /* state: op_verdict */
    struct master_edge edges[MASTER_EDGES_MAX];
};

/* What a person wants to know; borrowed for the call. */
enum master_note_kind {
    NOTE_REGISTERED,
    NOTE_LOST, /* ids in `peer`; reported when the next view is installed */
    NOTE_LEFT,
    NOTE_JOINED,
    NOTE_VIEW,
    NOTE_EVICTED,
    NOTE_ABORTED,
};

struct master_note {
    enum master_note_kind kind;
    const struct master_peer *peer; /* LOST LEFT EVICTED REGISTERED ABORTED */
    const char *reason;
    uint32_t old_epoch, epoch, old_size, size, joined;
    pccl_ns took; /* VIEW: from the noticed cause to the decision */
    int32_t code; /* ABORTED */
};

struct master_output {
    void *user;
    /* The same message to each link; encoded once. msg is borrowed. */
    void (*send)(void *user, const uint32_t *links, uint32_t count,
                 const struct wire_msg *msg);
    /* Flush what was sent, then close. No CLOSED event follows. */
    void (*close)(void *user, uint32_t link, const char *reason);
    void (*note)(void *user, const struct master_note *note); /* may be NULL */
};

struct master {
    struct master_output out;
    pccl_ns deadline;
    pccl_ns now;
    uint32_t quorum;
    uint32_t round_last;
    uint64_t id_last;
    struct wire_key key;
    struct master_peer peers[MASTER_LINKS_MAX]; /* indexed by link */
    uint32_t link_end;                          /* links in use are below */
    struct master_group groups[GROUPS_MAX];
    uint16_t group_list[GROUPS_MAX]; /* indices of those in use, ascending */
    uint32_t group_count;
    bool founded; /* there has been a view */
    uint64_t sync_last;
    struct master_record records[GROUPS_MAX];
    /* scratch of one emission */
    uint32_t links[MASTER_LINKS_MAX];
    uint64_t ids[PEERS_MAX];
    uint16_t order[PEERS_MAX];
    uint32_t sorted[PEERS_MAX];
    struct wire_member members[PEERS_MAX];
    struct wire_op ops[WIRE_OPS_MAX];
};

struct master_event {
    enum {
        MASTER_CONNECTED, /* addr: where the peer calls from */
        MASTER_RECEIVED,  /* msg is borrowed */
        MASTER_CLOSED,
        MASTER_TICK,   /* time has passed; link unused */
        MASTER_QUORUM, /* quorum has changed */
    } type;
    uint32_t link;
    pccl_ns now;
    const struct wire_msg *msg;
    struct wire_addr addr;
    uint32_t quorum;
};

struct master_config {
    struct master_output out;
    pccl_ns deadline;
    uint32_t quorum;
    struct wire_key key; /* random: peers prove with it that they belong */
};

/* The struct is large (about 7 MiB): allocate it zeroed. */
void master_init(struct master *m, const struct master_config *config);

/* A link number for a new connection, or MASTER_NO_LINK when the limits are
 * reached. Taken by the CONNECTED event. */
uint32_t master_free_link(const struct master *m);

/* Applies one event. Cannot fail: what a peer does wrong closes its link,
 * what we do wrong is an assertion. */
void master_step(struct master *m, const struct master_event *event);

/* When a TICK is due; PCCL_NEVER while nobody is connected. */
pccl_ns master_next_tick(const struct master *m);

uint32_t master_count(const struct master *m, enum master_peer_state state);

/* The broken invariant in words, or NULL; asserted around every step. */
const char *master_invalid(const struct master *m);

/* --- shared by master.c, round.c and order.c only --- */

void master_send(struct master *m, uint32_t link, const struct wire_msg *msg);
void master_drop(struct master *m, uint32_t link, const char *reason);
void master_note_send(struct master *m, const struct master_note *note);
void master_peer_move(struct master *m, uint32_t link,
                      enum master_peer_state next);
void master_answer(struct master *m, enum vote_kind kind, uint8_t flag);
bool master_all_voted(const struct master *m, enum vote_kind kind);

/* Inside a vote that others of its group must join. */
static inline bool master_waits(const struct master_peer *p)
{
    return p->voted[VOTE_UPDATE] || p->sync.voted;
}

/* state_vote.c: synchronization of shared state, for one group. */
void state_vote_settle(struct master *m, uint32_t group);
void state_vote_asked(struct master *m, uint32_t link,
                      const struct wire_msg *msg);
void state_vote_done(struct master *m, uint32_t link,
                     const struct wire_msg *msg);
/* Refuses the synchronization that the member waits in, if any; `epoch` as in
 * an ANSWER that refuses (V4, V5). */
void state_vote_refuse(struct master *m, uint32_t link, uint32_t epoch);

/* round.c: the circle above, for one group. */
void round_settle(struct master *m, uint32_t group);
void round_flushed(struct master *m, uint32_t link, const struct wire_msg *msg);
void round_told(struct master *m, uint32_t link, const struct wire_msg *msg);
void round_result(struct master *m, uint32_t link, const struct wire_msg *msg);
void round_ready(struct master *m, uint32_t link, const struct wire_msg *msg);
void round_fault(struct master *m, uint32_t link, const struct wire_msg *msg);
void round_probe(struct master *m, uint32_t group);

/* order.c: a ring over members[0..count) that avoids the group's unreachable
 * pairs; order[i] is an index into members. False if none was found. */
bool order_ring(const struct master_group *g, const struct wire_member *members,
                uint32_t count, uint16_t *order);
bool order_is_bad(const struct master_group *g, uint64_t a, uint64_t b);

#endif
