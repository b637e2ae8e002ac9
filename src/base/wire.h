/* wire.h - control messages between peer and master, and their codec.
 *
 * A frame is a header of 8 bytes (magic u16, version u8, type u8, body size
 * u32, all big-endian) and a body. The rules the messages obey are in
 * AGREEMENT.md. */
#ifndef PCCL_WIRE_H
#define PCCL_WIRE_H

#include "base.h"
#include "wire_words.h"

enum {
    WIRE_MAGIC = 0x5043,
    WIRE_VERSION = 1,
    WIRE_HEADER_SIZE = 8,
    WIRE_BODY_MAX = 272 * 1024, /* PROPOSE of as many as there may be */
    WIRE_FRAME_MAX = WIRE_HEADER_SIZE + WIRE_BODY_MAX,
    WIRE_OPS_MAX = OPS_MAX,      /* operations in one list */
    WIRE_RESULT_MAX = 64 * 1024, /* bytes of a donated result */
    WIRE_TEXT_MAX = 240,
    WIRE_SETS_MAX = SCOPED_MAX, /* scopes of the operations of one member */
    WIRE_SET_SIZE = PEERS_MAX / 8,
    WIRE_EDGES_MAX = 64,       /* measured edges in one message */
    WIRE_WAITS_MAX = 32,       /* what one member waits in: */
    WIRE_UNDER_WAY_MAX = 16,   /* operations; */
    WIRE_CALLS_MAX = 8,        /* other calls; */
    WIRE_WANTED_MAX = 8,       /* what others wait in (rule W3) */
    WIRE_QUIET_MAX = 16,       /* its links that are silent */
    WIRE_NAME_MAX = 63,        /* of a host, or of a call */
    WIRE_PART_MAX = 32 * 1024, /* bytes of one part of the status */
    WIRE_MASTERS_MAX = 8,      /* coordinators of a run */
    WIRE_OFFERS_MAX = 8,       /* members that a newcomer is told of */
    WIRE_KEEP_PART_MAX = 3072, /* bytes of a record in one KEEP: a new master
                                  takes no larger frame from a stranger */
    WIRE_RECORD_MAX = 2 << 20, /* of a record that members keep */
    /* Of a partial all-reduce: */
    WIRE_PARTS_MAX = 256,       /* parts */
    WIRE_AVERAGED_MAX = 1024,   /* members that it is for */
    WIRE_TAGS_MAX = 64,         /* of partial all-reduces */
    WIRE_RELAYS_MAX = 1024,     /* relayed pairs of a view */
    WIRE_RELAY_SIZE = 49,       /* bytes of RELAY, with its header */
    WIRE_RELAY_MASTER = 0xffff, /* in place of a rank: the master relays */
};

/* The largest sum of weights of a partial all-reduce. */
#define WIRE_WEIGHT_MAX 1e300
#define PARTIAL_WEIGHT_MAX 1e290 /* of one member */

/* Samples that one member may report for a step: the sum of all fits. */
#define WIRE_SAMPLES_MAX (UINT64_MAX / PEERS_MAX)

/* Whether a newcomer may try again: a coordinator that does not lead says that
 * another one may take it (rule H14). */
enum wire_evict { WIRE_EVICT_FINAL, WIRE_EVICT_ELSEWHERE };

enum wire_type {
    /* peer -> master */
    WIRE_HELLO = 1,
    WIRE_VOTE,
    WIRE_SUSPECT,
    WIRE_REFRESH,
    WIRE_FLUSHED,
    WIRE_REPLY,
    WIRE_READY,
    WIRE_LEAVE,
    WIRE_ABORT,
    WIRE_SYNC,     /* pcclSynchronizeSharedState was called */
    WIRE_SYNCED,   /* a receiver of shared state is complete, or gave up */
    WIRE_MEASURED, /* measurements of links to this peer */
    WIRE_BLOCKED,  /* others run what cannot be launched here (rule V4) */
    /* both ways */
    WIRE_HEARTBEAT,
    WIRE_RESULT,
    /* master -> peer */
    WIRE_WELCOME,
    WIRE_EVICT,
    WIRE_ANSWER,
    WIRE_FLUSH,
    WIRE_QUERY,
    WIRE_DONATE,
    WIRE_PROPOSE,
    WIRE_VERDICT, /* on operations of one scope; the INSTALL of its round
                     follows */
    WIRE_INSTALL,
    WIRE_STATE, /* progress or result of a synchronization */
    WIRE_PROBE, /* measure a link */
    /* member -> master -> member */
    WIRE_DIAL_REQUEST, /* asks the peer to dial, for messages: dialing it has
                          failed */
    /* master -> peer */
    WIRE_SILENT, /* peers that it does not hear; their links are not judged */
    /* peer -> master */
    WIRE_WAITING, /* a heartbeat that tells what the peer waits in (rule W1) */
    /* anybody -> master, master -> anybody */
    WIRE_STATUS_GET, /* asks for the status (rule W6) */
    WIRE_STATUS,     /* a part of it */
    /* master -> peer */
    WIRE_WANTED, /* operations that others wait in (rule W3) */
    /* member -> master: what it has of a step; master -> member: what all
       members have (rules G) */
    WIRE_SAMPLES,
    /* peer -> master */
    WIRE_OFFER, /* a member lets newcomers download its state, or ends that */
    /* anybody -> master, master -> anybody */
    WIRE_OFFERS_GET, /* who offers the state of a group? (rule S10) */
    WIRE_OFFERS,
    /* Partial all-reduce, rules A: */
    WIRE_PARTIAL,  /* peer -> master: enum partial_word */
    WIRE_COVERAGE, /* master -> peer: enum partial_order */
    /* anybody -> master */
    WIRE_RELAY, /* first: the connection is to be relayed (rule N11) */
    /* Rules H: */
    WIRE_RESUME,  /* member -> a new master, first: it was one of the run */
    WIRE_RESUMED, /* master -> peer: it is */
    WIRE_KEEP,    /* master -> peer: a part of a record to keep; member -> a new
                     master: a part of the one that it keeps */
    WIRE_KEPT,    /* peer -> master: it keeps that record; master -> peer: the
                     record counts */
    WIRE_KEEP_GET, /* master -> member: send me yours */
    WIRE_CLAIM,    /* master -> member: obey nobody of a lower term; back: it
                      does */
    WIRE_TYPE_COUNT,
};

/* One part of the vector of a partial all-reduce. */
struct wire_part {
    uint64_t begin, count; /* elements */
    uint64_t hash;         /* of the result; FETCH, END */
    double weight;         /* sum over its contributors; END */
    uint32_t owner;        /* PLAN: number of the member that reduces it */
    uint32_t contributors; /* END; 0: missing. FETCH: not 0 if committed */
};

struct wire_addr {
    uint8_t family; /* 0 unknown, 4 or 6 */
    uint8_t ip[16]; /* network order, first 4 bytes for IPv4 */
    uint16_t port;
};

/* It has a port, and names one host to all: it is not unspecified, multicast or
 * link-local. */
bool wire_addr_is_host(const struct wire_addr *addr);

struct wire_member {
    uint64_t id;
    uint64_t host; /* equal but for the last bit: same boot and namespaces; odd:
                      shared memory is disabled (host_id.h) */
    int32_t hint;
    uint32_t pid;
    struct wire_addr addr;      /* as the master sees the member (rule N1) */
    struct wire_addr announced; /* family 0: none; else it is_host */
};

/* Rule N2: where a dial goes, the turn-th to this member. */
static inline const struct wire_addr *
wire_dial_addr(const struct wire_member *m, uint32_t turn)
{
    return m->announced.family != 0 && turn % 2 == 0 ? &m->announced : &m->addr;
}

struct wire_op {
    uint64_t scope; /* number of the scope (scope.h) */
    uint64_t tag;
    uint32_t seq;
    uint8_t state; /* op_state, or op_verdict in VERDICT */
    bool donor;    /* REPLY: the sender has the result and can donate it */
};

/* Both name the same operation of an epoch. */
static inline bool wire_same_op(const struct wire_op *a,
                                const struct wire_op *b)
{
    return a->tag == b->tag && a->seq == b->seq && a->scope == b->scope;
}

/* The arguments of one member's call, as far as the collective has them; others
 * are 0. */
struct wire_args {
    uint8_t coll;          /* enum plan_coll */
    uint8_t dtype, redop;  /* all-reduce */
    uint8_t quant, code;   /* enum quant_algorithm and the type of codes */
    uint32_t root;         /* rank in the scope */
    uint64_t count;        /* elements (all-reduce) or bytes */
    uint64_t sends, recvs; /* all-to-all: bytes to and from one partner */
    uint64_t digest;       /* of all that must agree */
    uint32_t rank;         /* of the member, in the scope as it has it */
    uint32_t named_size;   /* bytes of a list (arguments.h); borrowed */
    const uint8_t *named;
};

enum { WIRE_COLLS = 6, WIRE_QUANTS = 3 }; /* COLL_COUNT etc. */

/* Kind of a link measurement; values are those of enum bandwidth_source. */
enum edge_kind {
    EDGE_SATURATED, /* the link's capacity */
    EDGE_AT_LEAST,  /* a lower bound of it */
    EDGE_FAILED,    /* no connection can be made */
    EDGE_SILENT,    /* a probe carried no data in time */
    EDGE_RTT,       /* only the round trip is known, not the rate */
    EDGE_KIND_COUNT,
};

struct wire_edge {
    uint64_t peer; /* source of the link; its destination is the sender */
    uint64_t rate; /* bytes/s */
    uint64_t rtt;  /* ns, 0: not measured */
    uint8_t kind;  /* edge_kind */
};

/* Rule N10: the relay of a pair, as ranks of the proposal. */
struct wire_relay {
    uint16_t a, b, relay;
};

struct wire_key {
    uint64_t word[2];
};

/* What a call waits in (rule W1). */
enum wait_kind {
    WAIT_COLLECTIVE, /* an operation that is under way, by its name */
    WAIT_RECEIVE,    /* a message of `peer`, 0: of anybody */
    WAIT_SEND,       /* `peer` has to take a message */
    WAIT_REQUESTS,   /* any of what is under way here */
    /* Of operations that others wait in: */
    WAIT_LACKS, /* it is not launched here */
    WAIT_PAST,  /* it was */
    WAIT_KIND_COUNT,
};

struct wire_wait {
    uint8_t kind;        /* wait_kind */
    uint8_t coll;        /* COLLECTIVE: enum plan_coll */
    bool blocks;         /* the program is in a call that waits for it */
    uint64_t scope, tag; /* COLLECTIVE: its name. Others: the message's tag */
    uint32_t seq;
    uint64_t count;   /* elements or bytes, as in struct wire_args */
    uint64_t moved;   /* COLLECTIVE: bytes sent and received so far */
    uint64_t peer;    /* COLLECTIVE: a partner that is waited for, or 0 */
    uint32_t missing; /* COLLECTIVE: the number of such partners */
    uint32_t age_ms;  /* since it was first seen, by a heartbeat */
    char call[WIRE_NAME_MAX + 1];  /* "MPI_Recv", or empty */
    char where[WIRE_NAME_MAX + 1]; /* "MPI_COMM_WORLD", or empty */
};

/* What a process sees of itself. */
struct wire_self {
    char state;      /* of its main thread, as in /proc; 0: not known */
    uint16_t cpu;    /* time on processors, in thousandths of one */
    uint16_t starve; /* time for which the main thread waited for one */
    uint32_t faults; /* major page faults per second */
};

/* What a member has done since it began. */
struct wire_traffic {
    uint64_t operations; /* that succeeded */
    /* Bytes to and from other members. What a member reads from another one's
     * memory is received, and not sent. */
    uint64_t sent, received;
};

/* A record of what a master remembers: its term, and which one of it. */
struct wire_record_name {
    uint64_t term, seq;
};

struct wire_msg {
    enum wire_type type;
    uint32_t round; /* FLUSH .. INSTALL; the view's epoch once installed. VOTE,
                       SYNC: number of the call (rule V1) */
    uint32_t
        epoch; /* the sender's epoch; FLUSH, PROPOSE: the epoch that ends */
    union {
        struct {
            uint32_t group;
            uint16_t pool;
            bool join;  /* joins a running job: does not count for the quorum */
            bool stays; /* its group evicts nobody for lack of a ring (R4b) */
            bool must_leave;         /* before its process ends (M10h) */
            struct wire_member self; /* id 0; addr.ip may be unknown */
            /* It has downloaded the state, at this revision or later, and is
             * no newcomer any more once it is further behind (S10f). */
            bool fetched;
            uint64_t revision, max_stale;
        } hello;
        struct {
            uint64_t id;
            struct wire_key key; /* proof of membership between peers */
            uint32_t deadline_ms;
            uint32_t minimum;       /* members that the run needs (rule M14) */
            uint64_t term;          /* of this master (rule H1) */
            uint32_t grace_ms;      /* for a new one; 0: there is none (H2) */
            struct wire_key secret; /* for RESUME, of this peer alone */
            /* Coordinators of the run, in the order of calls (H14). */
            uint8_t master_count;
            struct wire_addr masters[WIRE_MASTERS_MAX];
        } welcome;
        struct {
            /* RESUME; `round` is that of the proposal that the sender is ready
             * for, or 0. */
            uint64_t id;
            struct wire_key secret;
            /* The last synchronization, or 0, that has ended for its group, and
             * well for this peer. */
            uint64_t sync_over, sync_well;
            /* By kind of vote: the number of the last answer to all, and the
             * answer, or ANSWER_UNKNOWN to those that came later. */
            uint32_t answered[VOTE_KIND_COUNT];
            uint8_t answer[VOTE_KIND_COUNT];
            uint64_t term;    /* the highest seen; RESUMED: of this master */
            uint64_t claimed; /* the term that it has been claimed with, or 0 */
            /* RESUMED: INSTALL of the sender's proposal follows. */
            bool installs;
            uint32_t grace_ms;
            struct wire_record_name kept; /* by the sender (rule H10) */
            bool counts; /* the sender knows that what it keeps counts */
        } resume;
        struct {
            struct wire_record_name name;
            uint32_t total, offset, size; /* bytes; in KEEP alone. CLAIM has
                                             the term alone */
            const uint8_t *bytes;         /* borrowed */
        } keep;
        struct {
            uint8_t kind; /* vote_kind */
            uint8_t flag; /* ANSWER: the answer or 0xff: refused */
        } vote;
        struct {
            uint8_t cause; /* SUSPECT: 0, the link was useless (R4e) */
            uint64_t scope, tag;
            uint32_t seq;
            uint64_t peer; /* SUSPECT, REFRESH_UNREACHABLE */
        } fault;
        struct {
            uint64_t scope, tag;
            uint32_t seq;
            uint32_t size;
            const uint8_t *bytes; /* borrowed */
        } result;                 /* RESULT; DONATE without bytes */
        struct {
            /* An operation whose arguments differ between two members (rule
             * F9), or none. */
            bool disputed;
            struct wire_op op; /* its name */
            uint64_t pair[2];
        } flush;
        struct {
            bool late; /* the sender could not run all the time (rule R4f) */
        } ready;
        struct {
            bool votes;      /* a vote or a synchronization waits */
            uint32_t age_ms; /* a running operation has waited so long */
        } blocked;
        struct {
            uint32_t traits; /* of the sender (rule T4) */
        } leave;
        struct {
            uint32_t traits; /* likewise */
            bool described;  /* the disputed operation is under way here: */
            struct wire_args args;
        } flushed;
        struct {
            /* The place in the list of the operation that the text is about;
             * the length of the list: of none. */
            uint32_t about;
            char text[WIRE_TEXT_MAX + 1];
        } verdict;
        struct {
            /* Of the round. SYNC: 0, or with `again`, of the last one that has
             * ended for this peer (rule H6). */
            uint64_t id;
            bool again; /* SYNC: the master that was asked first has died */
            uint64_t revision; /* SYNC: of the peer. STATE: of the group */
            uint64_t structure, content; /* digests; STATE: the elected */
            uint8_t strategy;            /* SYNC */
            uint8_t role; /* STATE; in SYNCED COMPLETE or NO_STATE */
            uint32_t
                holders; /* STATE: number of ids that hold it, followed by */
            uint32_t
                receivers;  /* the number that receive it; the rest differ */
            uint64_t given; /* STATE, COMPLETE: bytes received from this peer */
            /* SYNCED: difference of this peer's tensors. STATE, COMPLETE: the
             * same of a refused member. Not in SYNC. */
            char text[WIRE_TEXT_MAX + 1];
        } sync;
        struct {
            bool on;           /* OFFER: false ends it */
            uint64_t revision; /* OFFERS: what most offer */
            uint32_t guests;   /* OFFER: newcomers that download */
            /* OFFERS_GET, OFFERS: */
            uint32_t group, group_size;
            struct wire_key key;
            uint32_t deadline_ms;
        } offer;
        struct {
            uint8_t word; /* partial_word, or partial_order */
            uint8_t why;  /* REFUSE: partial_refusal */
            uint64_t tag, number;
            /* of PARTIAL_CALL, and in PLAN and FETCH what the round has: */
            uint64_t count;
            uint8_t dtype, redop;
            double weight;
            uint32_t deadline_ms, gather_ms, evict_after;
            uint32_t version; /* PLAN; HOLDS: all that one can give, or 0 */
            uint32_t part;    /* FOLDED */
            uint64_t hash;    /* FOLDED: of the result */
            uint32_t self;    /* PLAN .. END: number of the receiver */
            bool contributed; /* END: its data are in some part */
            bool last;        /* END: RELEASE at once */
            char text[WIRE_TEXT_MAX + 1]; /* REFUSE */
        } partial;
        struct {
            struct wire_key key;
            uint64_t from, to; /* the sender, and the other end */
            bool listens;      /* for a dial of that; else it dials */
        } relay;
        struct {
            uint64_t peer;
            bool gives;       /* send to it */
            bool takes;       /* receive from it, and report */
            uint32_t bytes;   /* at most */
            uint32_t time_us; /* at most */
        } probe;
        struct {
            uint64_t peer;  /* the member that is to dial; from the master:
                               the member to dial */
            uint32_t dials; /* dials that the sender has made, and */
            uint32_t heard; /* dials that it has received (rule P2P-3) */
        } call;
        struct {
            int32_t code; /* EVICT: wire_evict */
            int32_t rank;
            char text[WIRE_TEXT_MAX + 1]; /* EVICT: the reason */
        } abort;
        struct {
            struct wire_self self;
            struct wire_traffic traffic;
            char host[WIRE_NAME_MAX + 1]; /* its name; empty: as before */
        } waiting;
        struct {
            uint64_t step;   /* the program's number */
            uint64_t count;  /* of samples */
            uint64_t target; /* the step is to have; 0: not known */
            /* From the master: members that have reported for the step, and
             * whether it has its samples. */
            uint32_t members;
            bool reached;
        } samples;
        struct {
            bool json;
            bool last;            /* STATUS: nothing follows */
            uint32_t size;        /* STATUS */
            const uint8_t *bytes; /* borrowed; parts may end anywhere */
        } status;
        struct {
            bool ring;        /* PROPOSE, INSTALL: collectives possible */
            bool mesh;        /* link all pairs */
            bool tree;        /* link the pairs of the tree (rule D17) */
            bool grid;        /* link the pairs of the grid (rule D20) */
            bool update;      /* answers the VOTE_UPDATE of all */
            bool optimize;    /* answers the VOTE_OPTIMIZE of all */
            bool survey;      /* PROPOSE: link pairs at distances 2^k too */
            uint32_t world;   /* admitted peers of the run */
            uint32_t groups;  /* distinct groups */
            uint32_t largest; /* members of the largest group */
            uint32_t traits;  /* INSTALL: of all survivors (rule T4) */
            /* INSTALL: the number of the last answer to all (rule H6). */
            uint32_t answered[VOTE_KIND_COUNT];
            uint64_t synced; /* INSTALL: the group's last one that is over */
        } view;
    };
    /* Lists; wire.c defines the lists of each type. Borrowed. */
    uint32_t op_count, id_count, member_count, order_count, edge_count;
    uint32_t site_count, wait_count, part_count, relay_count;
    /* FLUSHED: the scopes of the operations but the whole view, each once, as
     * bit sets over the ranks of the view (rank 0: bit 0 of byte 0). */
    uint32_t set_count, set_size; /* bytes of each */
    const uint8_t *sets;
    const struct wire_op *ops;
    const uint64_t *ids; /* FLUSH: dead. PROPOSE: removed. READY: failed. STATE:
                            participants. SYNCED: alternately a sender and the
                            bytes received from it.
                            INSTALL without a ring: pairs without a link.
                            SILENT: peers. WAITING: alternately a member
                            whose link is silent, and for how many ms */
    const struct wire_member *members; /* PROPOSE: added. OFFERS: who offers */
    const uint16_t *order; /* PROPOSE: ring order as ranks; none = identity */
    const uint16_t *sites; /* PROPOSE: by rank; none: not known */
    const struct wire_relay *relays; /* PROPOSE */
    const struct wire_edge *edges;   /* MEASURED; round: of the probe, or 0 */
    const struct wire_wait *waits;   /* WAITING */
    const struct wire_part *parts;   /* COVERAGE. Its ids are members: in PLAN
                                        alternately an id and the bits of its
                                        weight, 0: it has not called */
};

/* Memory for the lists of one decoded message. */
struct wire_store {
    struct wire_op ops[WIRE_OPS_MAX];
    uint64_t ids[PEERS_MAX];
    struct wire_member members[PEERS_MAX];
    uint16_t order[PEERS_MAX];
    uint16_t sites[PEERS_MAX];
    struct wire_edge edges[WIRE_EDGES_MAX];
    struct wire_wait waits[WIRE_WAITS_MAX];
    struct wire_part parts[WIRE_PARTS_MAX];
    struct wire_relay relays[WIRE_RELAYS_MAX];
};

enum wire_status { WIRE_OK, WIRE_MORE, WIRE_BAD };

/* Encodes msg into out (WIRE_FRAME_MAX bytes); returns the frame's size. The
 * caller guarantees the limits above; they are asserted. */
size_t wire_encode(const struct wire_msg *msg, uint8_t *out);

/* Decodes one frame. OK: *msg is valid until `in` or `store` change, and *used
 * bytes are consumed. MORE: the frame is incomplete but valid so far; its
 * header is checked before its body is received. BAD: close the connection. The
 * size limit depends on the type, so a frame of a stranger costs little
 * memory. */
enum wire_status wire_decode(const uint8_t *in, size_t in_size,
                             struct wire_store *store, struct wire_msg *msg,
                             size_t *used);

const char *wire_type_name(enum wire_type type);

#endif
