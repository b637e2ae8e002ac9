/* fake_peer.h - a scripted peer on a loopback socket, and a server in the same
 * loop and thread. Nothing blocks, and a watchdog limits every wait. */
#ifndef PCCL_TEST_FAKE_PEER_H
#define PCCL_TEST_FAKE_PEER_H

#include "../../../src/base/secure.h"
#include "../../../src/master/server/master_server.h"
#include "../../../src/base/wire.h"

#include <ev.h>

enum { LINES_MAX = 64, LINE_SIZE = 512, PEER_IN = 1 << 19 };

struct bench {
    struct ev_loop *loop;
    struct master_server *server;
    ev_timer watchdog;
    uint32_t line_count;
    char lines[LINES_MAX][LINE_SIZE];
    bool close_on_abort;
    int aborts, abort_code, abort_rank;
    uint32_t evicted_pid;     /* of the last one */
    uint32_t cut_pid;         /* likewise */
    struct secure_keys *keys; /* by which its peers dial; NULL: in clear */
};

struct peer {
    struct bench *bench;
    int fd;
    struct secure *secure; /* NULL: in clear */
    ev_io io;
    bool ended; /* the master closed the connection */
    uint8_t *in;
    size_t in_size, in_used;
    struct wire_store *store;
    struct wire_msg msg; /* result of peer_expect() */
    uint64_t id;
    uint32_t round;
};

/* quorum and deadline as in master_server_options, host NULL: any. */
void bench_open(struct bench *b, const char *host, uint32_t quorum,
                pccl_ns deadline);
/* The same, with a journal. */
void bench_open_journal(struct bench *b, const char *path, uint32_t quorum,
                        pccl_ns deadline);
/* The same, of a run with a key. The keys are borrowed. */
void bench_open_key(struct bench *b, struct secure_keys *keys, uint32_t quorum,
                    pccl_ns deadline);
void bench_close(struct bench *b);
void bench_turn(struct bench *b); /* one iteration; blocks until an event */
void bench_expect_line(struct bench *b,
                       const char *text); /* substring of a log line */

void peer_open(struct peer *p, struct bench *b);
void peer_open_at(struct peer *p, struct bench *b, const char *host);
void peer_close(struct peer *p);
void peer_write(struct peer *p, const void *bytes, size_t size);
void peer_send(struct peer *p, const struct wire_msg *msg);
void peer_say(struct peer *p, enum wire_type type);
void peer_hello(struct peer *p, int32_t hint, bool join);

/* Waits for a message of this type; skips HEARTBEAT and SILENT. */
const struct wire_msg *peer_expect(struct peer *p, enum wire_type type);
void peer_expect_end(struct peer *p);
/* Exchanges PROPOSE, READY and INSTALL for all of them. */
void peers_install(struct peer *peers, uint32_t count);
/* Puts n peers with pids 100.. into the first view of a fresh bench. */
void peers_found(struct peer *peers, uint32_t count, struct bench *b);

int open_descriptors(void);

#endif
