/* member.h - one member with a driver that has no sockets: connections that
 * bytes are put into, real shared memory whose other end is a stranger, buffers
 * with guards. fuzz_conn.c plays a tape on it. */
#ifndef PCCL_FUZZ_MEMBER_H
#define PCCL_FUZZ_MEMBER_H

#include "../../src/elastic/session.h"
#include "../../src/link/shared_memory.h"
#include "../../src/ring/op.h"
#include "tape.h"

enum {
    MEMBER_CONNS = 256,
    MEMBER_CHANNELS = 8,
    MEMBER_QUEUE = 64 * 1024, /* bytes of a queue of a channel */
    MEMBER_OPS = 12,
    MEMBER_RNDVS = 8,
    MEMBER_TENSORS = 8,
    MEMBER_PARTIALS = 6,
    MEMBER_BUFFER_MAX = 1 << 20,
    MEMBER_LIST_MAX = 1 << 18, /* bytes of all its tensors */
    MEMBER_IDS = 32,
    MEMBER_GUARD = 32,
};

/* As a tape without CONFIG has it: this member and others, in a view. */
enum { MEMBER_SELF = 2, MEMBER_OTHERS = 3, MEMBER_WORLD_MAX = 8 };

struct member_channel {
    struct shared_memory memory; /* both ends are mapped by it */
    struct channel *end;         /* of the member, or NULL: free */
    struct channel mine;
    uint64_t written; /* by the other end */
};

struct member_op {
    struct op *op;
    uint64_t tag;
    struct op_request request;
    uint8_t *send, *recv; /* with guards; NULL: free */
    size_t send_size, recv_size;
    size_t arrays[4][MEMBER_IDS];
    uint64_t ids[MEMBER_IDS];
};

/* A partial all-reduce; request.recv NULL: free. */
struct member_partial {
    struct partial_call *call;
    struct partial_request request;
    uint8_t *send, *recv; /* with guards */
    size_t size;
};

struct member {
    struct session *s;
    struct links *links;
    struct {
        bool used;
        struct member_channel *channel;
    } conns[MEMBER_CONNS];
    struct member_op ops[MEMBER_OPS];
    struct member_op *fast; /* under way, or NULL */
    struct {
        uint8_t *bytes;
        uint64_t member, key;
    } rndvs[MEMBER_RNDVS];
    bool listed;
    struct state_list list;
    uint8_t *tensors;
    struct state_list *offered; /* or NULL */
    uint8_t *offered_tensors;
    struct member_partial partials[MEMBER_PARTIALS];
    bool shares, region_used;
    pccl_ns now;
};

/* A member after HELLO; config NULL: one that is in a view with links to all
 * others. Bit 8 of CONFIG asks for that as well, its high bits for the world.
 */
void member_begin(struct member *u, const struct tape_record *config);
void member_end(struct member *u);

/* --- the driver --- */
/* Bytes of the other end, through shared memory or the socket. */
void member_receive(struct member *u, uint32_t conn, const uint8_t *bytes,
                    size_t size);
/* Up to `most` bytes leave. */
void member_drain(struct member *u, uint32_t conn, size_t most);
void member_lose(struct member *u, uint32_t conn);
/* The HELLO of a member and what follows it. */
void member_greet(struct member *u, uint32_t conn, uint64_t from,
                  uint8_t flags);
/* Another process writes into the memory of a channel, or into its region. */
void member_scribble(struct member *u, uint32_t conn, struct fuzz_input *in);
void member_scribble_region(struct member *u, struct fuzz_input *in);
/* The channel that this call reads or has read last, and the region of others;
 * NULL: none. */
struct channel *member_channel_read(void);
uint8_t *member_region(void);
/* Encodes and decodes, as between processes, and delivers. */
void member_tell(struct member *u, const struct wire_msg *msg);
void member_decode(struct member *u, const uint8_t *bytes, size_t size);

/* --- member_call.c: the calls of the program --- */
void member_launch(struct member *u, const struct tape_record *r);
void member_poll(struct member *u);
void member_convert(struct member *u);
void member_take(struct member *u, uint64_t tag);
void member_sync(struct member *u, const struct tape_record *r);
void member_sync_take(struct member *u);
void member_post(struct member *u, const struct tape_record *r);
void member_event(struct member *u);
void member_send_rndv(struct member *u, const struct tape_record *r);
void member_recv_rndv(struct member *u, const struct tape_record *r);
void member_cancel(struct member *u, const struct tape_record *r);
void member_offer(struct member *u, const struct tape_record *r);
void member_offer_end(struct member *u);
void member_calls_end(struct member *u); /* after session_free */
/* With guards around it, which are looked at in the end. */
uint8_t *member_buffer(size_t size);
void member_buffer_free(uint8_t *b, size_t size); /* NULL: nothing to do */

/* --- member_partial.c: partial all-reduces, and what others say of them --- */
void member_partial(struct member *u, const struct tape_record *r);
void member_partial_take(struct member *u, uint64_t tag);
void member_partials_end(struct member *u); /* after session_free */
/* The fields of a question or an answer; *fill: what its body is made of. */
void member_partial_frame(const struct member *u, uint64_t from,
                          struct frame *f, uint8_t which, uint8_t *fill);
/* An order of the coordinator. */
void member_partial_order(struct member *u, struct fuzz_input *in);

/* --- member_say.c: frames and messages that fit what is going on --- */
void member_say(struct member *u, const struct tape_record *r);
void member_say_fast(struct member *u, const struct tape_record *r);
void member_master_says(struct member *u, const struct tape_record *r);

#endif
