/* driver_world.h - the others of fuzz_driver.c: a coordinator and up to three
 * mates, which are the real cores and do what the rules say, over the streams
 * of driver_kernel.h. A mate's program does what the driver's program does. */
#ifndef PCCL_FUZZ_DRIVER_WORLD_H
#define PCCL_FUZZ_DRIVER_WORLD_H

#include "../../src/base/secure.h"
#include "../../src/elastic/session.h"
#include "../../src/link/shared_memory.h"
#include "../../src/master/master.h"
#include "../../src/master/succession/memory.h"
#include "../../src/ring/op.h"
#include "driver_kernel.h"
#include "tape.h"

enum {
    PORT_MASTER = 1,
    PORT_MATE = 10, /* and up */
    MATES = 3,
    MATE_CONNS = 24,
    MATE_OPS = 16,
    MATE_PARTIALS = 4,
    MATE_BULKS = 4,
    MATE_BULK_SIZE = 40000,
    MATE_BULK_LARGE = CMA_MIN + 100, /* of the last key */
    WORLD_LINKS = 12,
    WORLD_QUEUE = 80 * 1024,
    WORLD_TENSOR = 3000,
};
#define WORLD_DEADLINE (200 * PCCL_MS)

/* An end of a stream, in clear or through a channel. */
struct world_end {
    uint32_t stream; /* NO_STREAM: none */
    int side;
    struct secure *secure;
};

struct world_control {
    struct world_end end;
    size_t size, waits; /* bytes of each */
    uint8_t in[WORLD_QUEUE], out[WORLD_QUEUE];
};

struct mate_conn {
    struct world_end end;
    bool dialing, mapped;
    struct shared_memory share;
};

struct mate {
    struct session *s; /* NULL: it does not live */
    bool silent;       /* does nothing for now */
    bool refuses;      /* memory that is offered */
    struct world_control control;
    struct mate_conn conns[MATE_CONNS];
    struct shared_region region;
    struct mate_op {
        struct op *op; /* NULL: free */
        uint8_t *send, *recv;
    } ops[MATE_OPS];
    struct mate_partial {
        struct partial_call *call; /* NULL: free */
        uint8_t *send, *recv;
    } partials[MATE_PARTIALS];
    bool listed, offers;
    struct state_list list, offered;
    uint8_t tensor[WORLD_TENSOR];
    uint8_t bulks[MATE_BULKS - 1][MATE_BULK_SIZE];
};

/* How the run is. */
struct world_options {
    uint32_t mates;
    bool shares;  /* memory, among all */
    bool distant; /* the mates are on another host */
    bool keyed;   /* all connections are channels */
    bool grace;   /* another coordinator may come */
    bool several; /* ... of a list */
    bool relays;
    bool first; /* they begin without the driver */
    uint32_t minimum;
};

extern const uint8_t world_key[SECURE_KEY_SIZE];

void world_begin(const struct world_options *options);
void world_end(void);
/* All that can be done now. True: something was. */
bool world_turn(void);
void world_tick(void); /* time has passed */
bool world_listens(uint16_t port);

/* --- what happens to them --- */
struct mate *world_mate(uint32_t number); /* NULL: it does not live */
void world_mate_dies(uint32_t number);
void world_mate_joins(uint32_t number);
void world_master_dies(void);
void world_master_is_silent(bool silent);
/* A message to the driver beside what the coordinator has to say. */
void world_say(const void *bytes, size_t size);
void world_say_message(const struct wire_msg *msg);
/* Of a mate, to whom: a message (header and body), or a rendezvous. */
void world_post(uint32_t number, uint64_t to, const uint8_t *bytes, size_t head,
                size_t size);
size_t world_bulk_size(uint64_t key);
void world_bulk(uint32_t number, uint64_t other, uint64_t key, bool sends);
void world_offer(uint32_t number, uint64_t revision);
/* Memory that the driver shares with a mate; NULL: none. */
struct shared_memory *world_shared(uint32_t which);

/* The program of the driver has begun that, and the mates will do the same. */
void world_wish_op(const struct op_request *r, uint32_t members);
void world_wish_vote(enum vote_kind kind);
void world_wish_sync(enum sync_strategy strategy);
void world_wish_partial(const struct partial_request *r);

#endif
