/* master_server_inside.h - the struct behind master_server.h, for
 * master_server.c and master_proof.c. */
#ifndef PCCL_MASTER_SERVER_INSIDE_H
#define PCCL_MASTER_SERVER_INSIDE_H

#include "master_server.h"

#include "../../base/io_addr.h"
#include "master_gate.h"
#include "../succession/master_keep.h"
#include "master_looks.h"
#include "../watch/master_report.h"
#include "../watch/master_status.h"
#include "own_clock.h"
#include "switchboard.h"

#include <ev.h>

/* One connection of the switchboard. */
struct server_socket {
    struct master_server *server;
    struct master_conn *conn;
    ev_io io;
    int fd;
    struct secure *secure;  /* NULL: in clear */
    bool judged;            /* its token was looked at (K12): */
    struct token token;     /* without a name: of a link of members (K14) */
    uint64_t ticket;        /* of a question to the hook (K16): */
    struct wire_msg *waits; /* ours, until the answer; or NULL */
};

struct master_server {
    struct master_server_options options;
    struct master_report report;
    struct status_desk desk;
    int fd; /* the listener */
    uint16_t port;
    ev_io listener;
    ev_timer pause;         /* no free descriptors: accept again later */
    bool full;              /* no free links: accept again when one is free */
    uint32_t peers_max;     /* for which there are descriptors */
    struct wire_key key;    /* proof of membership between peers */
    struct wire_key secret; /* of the members' secrets (rule H4) */
    struct master_gate gate;
    ev_timer recheck;  /* of tokens that may have expired (K15) */
    ev_timer patience; /* of those who wait for the hook */
    uint64_t tickets;
    ev_timer tick;
    ev_timer rest;          /* more can be sent, after what else waits */
    struct own_clock clock; /* due: the tick */
    bool stepping;
    bool abort_due;
    int abort_code, abort_rank;

    struct master_looks looks;
    struct searcher *searcher;
    void *edges; /* the store of edges */
    struct master_keep keep;
    struct master machine;
    struct switchboard board;
};

/* Applies an event to the machine; not inside of a step. */
void server_feed(struct master_server *s, struct master_event event);
/* The last action of every callback of the loop. */
void server_finish_turn(struct master_server *s);

/* --- master_proof.c: tokens and hooks (rules K12 to K16) --- */

/* The key, the issuer and the revoked names of the options. */
bool proof_open(struct master_server *s, char *error, size_t error_size);
void proof_watch(struct master_server *s);
/* Bytes have come from the socket: its token is judged before the first one
 * counts. */
void proof_take(struct server_socket *k);
/* The event waits for the hook, or is of one that waits, and is dropped. */
bool proof_holds(struct master_server *s, const struct master_event *event);
/* Tells the hook. */
void proof_note(struct master_server *s, const struct master_note *note);
/* The connection of a peer has ended; the machine does not know it yet. */
void proof_closed(struct master_server *s, uint32_t link);

#endif
