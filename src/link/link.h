/* link.h - a link is the set of connections to one other member.
 *
 * Four clients use links and connections: operations, shared state, partial
 * all-reduces and messages. Each registers its functions here; this folder
 * knows nothing else of them. Pure. Rules R3, R6, L1 to L8 of
 * LINKS.md. */
#ifndef PCCL_LINK_H
#define PCCL_LINK_H

#include "../base/base.h"
#include "../base/pool.h"
#include "../base/wire.h"
#include "conn.h"
#include "frame.h"
#include "links.h"
#include "probe.h"
#include "relay.h"
#include "view.h"

enum {
    POOL_HIGH_RTT = 8,            /* connections of a high-RTT link */
    POOL_VERY_HIGH_RTT = 16,      /* connections of a very-high-RTT link */
    UNEXPECTED_MAX = 4 * OPS_MAX, /* unexpected messages per link */
    CONTROL_MAX = 4 * OPS_MAX,    /* control frames queued per link */
    CONTROL_FIRST = 256,          /* control frames with room at first */
};

/* A frame that came before its receiver launched the operation. */
struct unexpected {
    struct unexpected *next;
    struct frame frame;
    bool complete;
    uint8_t body[];
};

/* The connections to one other member, for collectives and shared state. */
struct link {
    struct link *next;
    struct conn *conns; /* by number; linked by conn.next */
    uint64_t id;
    uint64_t host;
    struct wire_member member; /* where dials go (rule N2) */
    uint32_t turn;  /* of dials; of the one that opened it, while it is open */
    bool known;     /* member is valid: the peer has been in a proposal */
    bool wanted;    /* a proposal needs it (rule R3) */
    bool sought;    /* something needs it, and it is not open yet, or has yet to
                       show that it is alive (rule R3d) */
    bool failed;    /* it was sought, and could not be made in time */
    bool dropped;   /* its member was removed: nothing is dialed any more */
    bool carried;   /* data passed over it since it was opened */
    bool silent;    /* that is why it was lost */
    bool outward;   /* a dial of this end opened it, the last time */
    bool again;     /* dial_at is of a later dial than the first */
    bool relayed;   /* over a relay (rule N11), which is a member */
    uint64_t relay; /* that member, or 0: the master */
    struct wire_member relay_member;
    pccl_ns listen_at; /* when to listen there anew */
    uint32_t want;     /* connections to have, once something needs the link */
    uint32_t open, dialing, redials;
    uint32_t generation; /* all connections of lower ones are closed (R3f) */
    uint32_t attempt;    /* number of the last proposal that wanted it */
    pccl_ns wanted_at, dial_at;
    uint32_t counted; /* the epoch in which its making has counted (R3k) */
    pccl_ns rtt;      /* shortest seen, 0: unknown */
    struct unexpected *unexpected, **unexpected_end;
    uint32_t unexpected_count;
    size_t unexpected_bytes;
    size_t eager_bytes; /* sent, and not known to be launched over there */
    struct link_speed speed;
    struct frame *control; /* ring of control_room, which grows */
    uint32_t control_first, control_count, control_room;
};

/* A user of the links. All functions but next_send may be NULL. */
struct link_client {
    void *user;
    /* The next frame over a connection of a link; conn.tx_from is its body. */
    bool (*next_send)(void *user, struct conn *c, struct frame *f);
    /* A frame with a conn.tx_owner is sent completely. */
    void (*sent)(void *user, void *owner, void *part);
    /* The link was lost as a whole; never: it could not be made (R3d). */
    void (*closed)(void *user, struct link *l, bool never);
    /* The client expects data over the link: silence means that it is dead. */
    bool (*uses)(const void *user, const struct link *l);
    /* Connections opened or closed. */
    void (*changed)(void *user);
    /* The frame, at the front of shared memory, must stay there for now. */
    bool (*defers)(const void *user, const struct frame *f);
};

/* In the order in which they send; control frames go after the first. */
enum client_order {
    CLIENT_BEFORE_CONTROL,
    CLIENT_AFTER_CONTROL,
    CLIENT_LAST,
    CLIENT_COUNT
};

/* The user of the connections for messages. */
struct p2p_client {
    void *user;
    void (*hello)(const struct p2p_link *l, struct frame *f);
    /* The body of a HELLO is received and right. False: close. */
    bool (*open)(void *user, struct conn *c, uint64_t from);
    void (*closed)(void *user, struct conn *c, bool dialed);
    bool (*next_send)(void *user, struct conn *c, struct frame *f);
    void (*sent)(struct p2p_link *l);        /* a frame that next_send gave */
    bool (*full)(const struct p2p_link *l);  /* read nothing more now */
    bool (*waits)(const struct p2p_link *l); /* silence means that it is dead */
    bool (*ended)(const struct p2p_link *l); /* close once all is read */
    /* Takes a message that lies in shared memory as a whole; 0: it is anything
     * else. */
    size_t (*take_whole)(void *user, struct conn *c, const uint8_t *bytes,
                         size_t size);
    void (*changed)(void *user); /* connections opened */
};

/* The user of the connections of guests. */
struct guest_client {
    void *user;
    /* The HELLO of a guest is received and right; sets conn.guest. False: no
     * guest is wanted. */
    bool (*open)(void *user, struct conn *c);
    void (*closed)(void *user, struct conn *c);
    bool (*next_send)(void *user, struct conn *c, struct frame *f);
};

struct frame_route {
    struct frame_handler handler;
    void *user;
    bool known;
};

/* All connections and links of one member, and the facts that they need. */
struct links {
    struct driver driver;
    struct conn *conns[CONNS_MAX];
    uint32_t conn_end;
    struct link *table[1024];  /* hash by id */
    uint32_t unexpected_links; /* number of links with unexpected messages */
    uint64_t *dirty; /* bit set over conns that may have something to send */
    struct pool pool;
    pccl_ns now, deadline;
    pccl_ns late;    /* time in which no tick came, in all */
    pccl_ns made_at; /* the last link that an operation needs (rule R3k) */
    bool line;       /* a dial waits for others (rule R3l) */
    bool missed; /* a connection that was ahead of PROPOSE ended before it */
    uint64_t self, host;
    struct wire_key key;
    uint32_t pool_size; /* connections to a ring neighbor, at least */
    bool pool_auto;     /* more of them to one with a high RTT (rule R3) */
    bool high_rtt;      /* a member has a high RTT: the ring is a long one */
    uint32_t fill_size; /* of FILL; smaller in tests */
    bool frozen;        /* between FLUSH and INSTALL */
    const struct view *view; /* in force */

    struct link_client clients[CLIENT_COUNT];
    struct p2p_client p2p;
    struct guest_client guests;
    struct relay relay; /* what this member does for others */
    struct frame_route routes[CONN_USE_COUNT][FRAME_TYPE_COUNT];
    uint8_t *region;    /* this member's, REGION_SIZE bytes; NULL: none */
    struct board board; /* at its end */
    struct probe probe;
    uint8_t trash[64 * 1024]; /* where unwanted bodies go */
};

/* Zeroed before. pool_size 0: as many connections to a neighbor as its round
 * trip suggests. False: out of memory. */
bool links_init(struct links *n, const struct driver *driver,
                uint32_t pool_size, pccl_ns deadline);
/* Frees all links and connections; then, when nobody uses the pool, the
 * pool. */
void links_free(struct links *n);
void links_free_pool(struct links *n);
void links_tick(struct links *n, pccl_ns now);
/* The next view is in force, and has one reference more. */
void links_install(struct links *n, const struct view *view);
/* A client receives frames of this type. */
void links_receive(struct links *n, enum conn_use use, enum frame_type type,
                   const struct frame_handler *handler, void *user);
/* A member of the view, or NULL. */
const struct wire_member *links_member(const struct links *n, uint64_t id);

/* The epoch is closed: drops everything received or queued in it. */
void links_freeze(struct links *n);

struct link *link_find(struct links *n, uint64_t id, bool create);
/* Its first connection of this number or above, or NULL: for loops that close
 * connections. */
struct conn *link_conn_from(const struct link *l, uint32_t number);
/* The member may be dialed from now on. */
void link_know(struct link *l, const struct wire_member *m);
/* Something needs the link: it is made, and widened, by rule R3. */
void link_need(struct links *n, struct link *l);
/* From now on the link has as many connections as a ring needs, until the next
 * proposal. */
void link_widen(struct links *n, struct link *l);
/* The link has more connections than are wanted now: no data begin on this. */
bool link_is_spare(const struct link *l, const struct conn *c);
/* Only the other end's dials pass, although this one dials first (rule R3). */
bool link_is_inward(const struct links *n, const struct link *l);
void link_close(struct links *n, const struct link *l);
bool link_control(struct links *n, struct link *l, const struct frame *f);
void link_dirty(struct links *n, const struct link *l);

/* Unexpected messages. NULL: the other end has sent more than rule D2
 * allows. */
struct unexpected *link_keep_unexpected(struct links *n, struct link *l,
                                        const struct frame *f);
/* Takes the message in this place of the list; the caller frees it. */
void link_remove_unexpected(struct links *n, struct link *l,
                            struct unexpected **slot);
void link_drop_unexpected(struct links *n, struct link *l);

/* Regions (rule L7): offers the own region on each connection to a member of
 * this host that does not know it. */
void region_offer(struct links *n);
/* The region of the other end of a link; NULL: it has none, or is gone. */
const uint8_t *region_of(const struct link *l);
/* The connection that has mapped it; or NULL. */
struct conn *region_conn(const struct link *l);
/* Rule D27: copies from the memory of the other end. False: it cannot be read,
 * and this end tells it so. */
bool region_pull(struct links *n, struct conn *c, uint64_t from, void *to,
                 size_t size);

/* Rule N2: a dial has opened the link. */
void way_found(struct links *n, const struct conn *c);
/* Rule N2: leaves dials that have had the time of an address. */
void way_try_other(struct links *n, struct link *l, pccl_ns time);

/* Dials the member, or the relay that leads to it. NO_CONN: impossible now. */
uint32_t link_dial(struct links *n, uint64_t id, uint64_t host,
                   const struct wire_addr *addr);

/* --- this folder only --- */
/* The connection becomes one of the link's; and belongs to none any more. */
void link_join(struct link *l, struct conn *c);
void link_leave(struct conn *c);
/* Rule R7: that share of the deadline. With a high RTT a lost packet needs
 * longer, and may take all of it. */
pccl_ns link_time(const struct links *n, const struct link *l, pccl_ns share);
/* A link has opened: those that stand in line (rule R3l). */
void links_dial_next(struct links *n);
/* It has opened: the others in the making have time again (rule R3k). */
void link_made(struct links *n, struct link *l);
/* Dials where that is due, or gives up (rule R3d). */
void link_tick(struct links *n, struct link *l);
/* A link that a proposal needs was lost. */
void link_again(struct links *n, struct link *l);
/* A connection was opened, or has shown that it is alive. */
void link_settle(struct link *l);
/* A HELLO of this end is not answered yet. */
bool link_greets(const struct link *l);
/* The link needs one more connection. */
bool link_has_room(const struct links *n, const struct link *l);
/* The other end's dial stands. This end's dials under way have not been
 * accepted there, and will not be. */
void link_forget_dials(struct links *n, const struct link *l);
void link_lost(struct links *n, struct link *l, bool never);
bool region_next_frame(struct links *n, struct conn *c, struct frame *f);
bool region_accept(void *user, struct conn *c);
/* Drops an unexpected message of which only a part has arrived. */
void link_drop_half_unexpected(struct links *n, struct conn *c);

#endif
