/* server_clients.h - those who connect to the coordinator's driver in
 * fuzz_server.c: strangers, and a crowd of members that answer what they are
 * told. */
#ifndef PCCL_FUZZ_SERVER_CLIENTS_H
#define PCCL_FUZZ_SERVER_CLIENTS_H

#include "tape.h"

#include "../../src/base/secure_socket.h"
#include "../../src/master/master_server_inside.h"

enum {
    CLIENTS = 40,
    ROOM = 1 << 18, /* of what has come and is not decoded yet */
};

struct client {
    int fd; /* 0: none */
    struct secure_keys keys;
    struct secure *secure; /* or NULL */
    bool lively;           /* of the crowd */
    uint32_t call;         /* its last vote */
    uint32_t epoch;        /* of its view */
    uint8_t in[ROOM];
    size_t size;
};

struct universe {
    struct ev_loop *loop;
    struct master_server_options options;
    struct master_server *server;
    struct client *clients;
    pccl_ns now;
    uint64_t ticket; /* of the last question to the hook */
    bool aborted;
    uint32_t random; /* rates of the crowd's links */
    uint8_t walls;   /* of 256 proposals, those with a pair without a link */
};

/* The key of a run; tokens: one holds, one ends. */
extern uint8_t server_key[SECURE_KEY_SIZE];
extern struct secure_psk server_tokens[2];

/* Whoever has a key shows it: the run's, or a token of two. */
void client_open(struct universe *u, struct client *c, uint8_t how);
void client_close(struct client *c);
void client_write(struct client *c, const uint8_t *bytes, size_t size);
void client_say(struct client *c, const struct wire_msg *msg);
/* The loop runs, and all read, until nobody has anything to say. */
void clients_settle(struct universe *u);

/* Members join, as many as the record says; the members' votes; all find that
 * an operation has no link to some member; all but the first wait in something.
 */
void crowd_join(struct universe *u, const struct tape_record *r);
void crowd_vote(struct universe *u, uint8_t kind);
void crowd_lacks_links(struct universe *u);
void crowd_waits(struct universe *u, const struct tape_record *r);

#endif
