/* master_server.h - libev driver of the master: sockets in, sockets out.
 *
 * Runs inside the caller's loop and thread; nothing here blocks. Used by
 * pccl-master (main.c) and by pcclRunMaster (master_api.c). */
#ifndef PCCL_MASTER_SERVER_H
#define PCCL_MASTER_SERVER_H

#include "../../base/base.h"
#include "../../base/evidence.h"
#include "../../base/wire.h"

#include <stdio.h>

struct ev_loop;
struct master_server;
struct run_key;

enum { MASTER_ADDRESS_SIZE = 64 };

/* Whom a hook is asked about or told of; borrowed for the call. */
struct master_guest {
    const char *name;  /* of its token; "": there are no tokens */
    const char *wants; /* of a question: "join", or "download" before that */
    char address[MASTER_ADDRESS_SIZE];
    uint64_t ticket; /* of a question */
    uint64_t id;     /* of a member */
    uint32_t group, pid;
};

enum process_news {
    PROCESS_CAME,    /* perhaps again */
    PROCESS_EVICTED, /* it is to be ended, unless it comes again (M10g) */
    PROCESS_CUT,     /* it had to leave, and its connection has ended (M10h) */
};

struct master_server_options {
    struct ev_loop *loop;
    const char *host; /* numeric address, NULL for all interfaces (v4 + v6) */
    uint16_t port;    /* 0: any free port */
    pccl_ns deadline; /* 0: default */
    /* The key of the run, SECURE_KEY_SIZE bytes, borrowed for the call; NULL:
     * none (K1). */
    const uint8_t *key;
    /* Tokens of this issuer are asked for: its public key, TOKEN_PUBLIC_SIZE
     * bytes, borrowed for the call, with `key`; NULL: none (K10). */
    const uint8_t *issuer;
    const char *revoked; /* file of names (K15), borrowed likewise; or NULL */
    uint32_t quorum;     /* peers of the first view; they wait for each other */
    uint32_t minimum;    /* of members; with fewer the run waits (M14) */
    uint32_t reserve;    /* descriptors that its process needs otherwise */
    bool job;            /* of a launcher: it ends with its members (M2b) */
    const char *journal; /* file that it remembers in (J1), or NULL; borrowed
                            until master_server_close() */
    pccl_ns grace;       /* for the next one (H2); 0: none. Without a journal
                            the members keep what is remembered (H10) */
    /* All coordinators of the run; this one begins a run unless it stands by
     * (H14). None: it is the only one. */
    uint8_t master_count;
    struct wire_addr masters[WIRE_MASTERS_MAX];
    bool standby;
    bool relays; /* bytes of members that reach nobody else (N10b) */
    void *user;
    /* A line for the log, without newline: "rank 2 (pid 17) lost, ...". */
    void (*report)(void *user, const char *line);
    /* A line that the user must see in any case: a peer was evicted, or
     * lets others wait. NULL: as `report`. */
    void (*warn)(void *user, const char *line);
    pccl_ns warn_after; /* age of a wait that is reported (W5); 0: never */
    /* A peer called pcclAbortRun. */
    void (*aborted)(void *user, int code, int rank);
    /* News of a process that takes part. Not inside of a call of this server.
     * NULL: no call. */
    void (*process)(void *user, uint64_t host, uint32_t pid,
                    enum process_news news);
    /* It leads no more (H12): it is to be closed, and opened again. May be NULL
     * without `masters`. */
    void (*over)(void *user);
    /* The server asks what the host sees of the silent process of a peer (rule
     * M10); master_server_evidence() may answer later, not inside of this
     * call. For hosts other than this one; NULL: nobody knows. */
    void (*look)(void *user, uint64_t id, uint64_t host, uint32_t pid);
    /* Rule K16. Whether that one may join: master_server_answer() says so
     * later, not inside of this call. False: it may not, for the reason
     * `why`. NULL: nobody is asked. */
    void *hook; /* the first argument of both */
    bool (*ask)(void *hook, const struct master_guest *guest, char *why,
                size_t size);
    /* It has "joined", has "left" or is "lost". NULL: no call. */
    void (*told)(void *hook, const struct master_guest *guest,
                 const char *event);
};

/* The address of a coordinator, for `masters`. False: *why says so. It may
 * block as long as the resolver does. */
bool master_server_resolve(const char *host, uint16_t port,
                           struct wire_addr *out, const char **why);

/* NULL on failure, with the reason in error; it begins with "journal " if it is
 * about that, with "a run of " if the limit of descriptors is too low for the
 * quorum. */
struct master_server *master_server_open(const struct master_server_options *o,
                                         char *error, size_t error_size);
uint16_t master_server_port(const struct master_server *server);

/* Changes the number of peers that the first view waits for, for example when a
 * process died before it registered. No effect after the first view. */
void master_server_set_quorum(struct master_server *server, uint32_t quorum);

/* Reads the names again that are revoked, and evicts them (K15). False: `error`
 * says why, and the list is as before. */
bool master_server_revoke(struct master_server *server, const char *path,
                          char *error, size_t error_size);
/* Whether that process is a member that has to leave, and has not (M10h). */
bool master_server_awaits_leave(const struct master_server *server,
                                uint64_t host, uint32_t pid);
/* The bitwise or of the traits with which members have left (T4). */
uint32_t master_server_traits_left(const struct master_server *server);
/* The answer to `ask`; why: for the one that may not join, ASCII. */
void master_server_answer(struct master_server *server, uint64_t ticket,
                          bool admits, const char *why);

/* The answer to `look` about the peer with that id. */
void master_server_evidence(struct master_server *server, uint64_t id,
                            enum evidence evidence);

/* Current members, and registered peers that wait for admission. */
uint32_t master_server_members(const struct master_server *server);
uint32_t master_server_pending(const struct master_server *server);
/* There were members, and none is left (rule M2b). */
bool master_server_has_ended(const struct master_server *server);

/* "rank 2 (n17, pid 812) is lost: ...", of the last one that was; empty: none
 * was. Until the next call of this server. */
const char *master_server_loss(const struct master_server *server);

/* The status of the run as text, for free(); NULL: out of memory. */
char *master_server_status(struct master_server *server);

/* The status of the run at this moment. */
enum status_form { STATUS_TEXT, STATUS_JSON, STATUS_METRICS, STATUS_FORMS };
struct status_writing {
    char *text; /* for free(); NULL: out of memory */
    size_t size;
    /* JSON: where the events begin, one a line, and what follows them. */
    size_t events, history;
    uint64_t last_event; /* their number so far */
    pccl_ns took;
};
void master_server_write(struct master_server *server, enum status_form form,
                         struct status_writing *writing);

/* Asks the coordinator at that address, with the key of its run or NULL, for
 * its status and prints it. False: `error` says why. Blocks for ten seconds at
 * most. */
bool master_status_print(const char *host, uint16_t port,
                         const struct run_key *key, bool json, FILE *out,
                         char *error, size_t error_size);

void master_server_close(struct master_server *server);

#endif
