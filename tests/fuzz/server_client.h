/* server_client.h - the clients of fuzz_server.c: sockets that say what a tape
 * wants, and a server in the same thread. */
#ifndef PCCL_FUZZ_SERVER_CLIENT_H
#define PCCL_FUZZ_SERVER_CLIENT_H

#include "../../src/base/secure.h"
#include "../../src/base/secure_token.h"
#include "../../src/master/server/master_server_inside.h"
#include "master_say.h"
#include "server_wrap.h"
#include "tape.h"

#include <ev.h>

enum { CLIENTS = 8, CLIENT_IN = 1 << 16 };

/* How it comes. */
enum client_way {
    WAY_KEY, /* as all of the run: by its key, or in clear */
    WAY_TOKEN,
    WAY_PLAIN,
    WAY_OTHER_KEY,
    WAY_LINK_KEY, /* of members, to each other */
    WAY_COUNT,
};

struct client {
    int fd; /* -1: none */
    uint16_t port;
    bool ended;
    char why[WIRE_TEXT_MAX + 1]; /* it was evicted */
    struct secure_keys keys;
    struct secure *secure; /* NULL: in clear */
    uint64_t id;
    struct wire_key secret; /* for RESUME */
    /* What it said last: it does not repeat itself. */
    enum wire_type said;
    uint32_t said_round;
    size_t size;
    uint8_t in[CLIENT_IN];
};

struct universe {
    struct ev_loop *loop;
    struct master_server *server;
    const uint8_t *run_key;
    uint32_t bits, quorum; /* of its options */
    struct client clients[CLIENTS];
    uint32_t opened;              /* connections so far */
    uint64_t ticket, good_ticket; /* of questions to the hook */
    uint64_t looked;              /* the peer that was asked for last */
    bool refuses;                 /* the hook, at once */
    bool spoiled; /* others may end what the well-behaved member has */
};

extern const uint8_t client_seed[TOKEN_SEED_SIZE];

void client_open(struct universe *u, struct client *c, enum client_way way,
                 uint8_t grant, bool v6);
/* At once: what it has not read is lost, and the server is told of a reset. */
void client_close(struct client *c, bool at_once);
/* Its link at the server, or MASTER_NO_LINK. */
uint32_t client_link(const struct universe *u, const struct client *c);
void client_read(struct client *c);

/* Past its channel, if it has one, or through it. */
void client_bytes(struct client *c, const uint8_t *bytes, size_t size,
                  bool past);
void client_send(struct client *c, const struct wire_msg *msg);
void client_say(const struct universe *u, struct client *c,
                struct fuzz_input *in, bool changed);
void client_say_due(const struct universe *u, struct client *c,
                    const struct crowd_mood *mood);
void client_say_partial(const struct universe *u, struct client *c,
                        struct fuzz_input *in);
void client_say_relay(const struct universe *u, struct client *c,
                      struct fuzz_input *in);
void client_resume(const struct universe *u, struct client *c,
                   struct fuzz_input *in);

#endif
