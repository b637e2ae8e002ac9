/* scale.h - one coordinator and up to 4,096 members in one process and one
 * thread: the real cores over streams that lose and delay nothing, in virtual
 * time, which passes where nobody has work.
 *
 * scale_net.c has the streams and whose turn it is, scale_member.c and
 * scale_master.c are the drivers of the cores, scale_event.c has what happens
 * to a run, scale.c measures it. */
#ifndef PCCL_TESTS_SCALE_H
#define PCCL_TESTS_SCALE_H

#include "../../../src/elastic/session.h"
#include "../../../src/master/server/switchboard.h"
#include "../sim/net.h"

enum { SCALE_PIPE = 256 * 1024 }; /* bytes in flight, as a socket may have */
/* In place of the number of a member. */
#define SCALE_MASTER (UINT32_MAX - 1)
#define SCALE_NOBODY UINT32_MAX
#define SCALE_DEADLINE (3 * PCCL_S)

struct scale_stream {
    struct net_pipe pipe[2]; /* pipe[i] carries the bytes of end i */
    uint32_t party[2];       /* a member, SCALE_MASTER, or SCALE_NOBODY */
    uint32_t conn[2];        /* its number there */
    struct master_conn *at_master;
    struct scale_stream
        *next;     /* of all, in the order in which they were made */
    bool dials;    /* end 1 has not accepted yet */
    bool waits[2]; /* end i waits until its pipe has room */
};

enum scale_call { CALL_NONE, CALL_VOTE, CALL_OP, CALL_SYNC };

struct scale_member {
    struct session *session; /* NULL: it is dead */
    struct scale_stream *control;
    struct {
        struct scale_stream *stream; /* NULL: free */
        int side;
    } * conns;
    uint32_t conn_room;
    bool queued; /* it waits for a turn */
    pccl_ns tick_at;
    enum scale_call call;
    struct op *op;
    uint8_t *result;
    size_t result_size;
    uint8_t *state; /* shared state, and its list during a synchronization */
    struct state_list list;
    bool done; /* its last call, with this result: */
    int ended;
};

/* What the coordinator did. */
struct scale_work {
    pccl_ns cpu, longest;  /* CPU time; of one turn */
    uint64_t turns, steps; /* steps: of its code (scale_steps.c) */
    uint64_t longest_steps, longest_bytes; /* ... that it sent; of one turn */
    uint64_t messages_in, messages_out;
    uint64_t bytes_in, bytes_out;
    uint64_t heap, heap_most; /* bytes that it holds; at most */
};

struct scale_world {
    pccl_ns now;
    uint32_t count, room; /* members that have begun; places */
    struct scale_member *members;
    struct master *master;
    struct switchboard *board;
    void *edges;
    pccl_ns master_tick_at;
    struct scale_work work;
    struct scale_stream *streams;
    uint64_t sums;    /* results that were checked */
    uint64_t synced;  /* synchronizations so far */
    uint64_t fetched; /* bytes that members received in them */
    uint64_t *input;  /* of all members' sums */
};

extern struct scale_world scale;
void scale_begin(uint32_t n, size_t large);
void scale_end(void);
/* Blocks of the coordinator's code that were executed, if they are counted. */
extern uint64_t scale_steps;

#define SCALE_CHECK(condition)                                                 \
    do {                                                                       \
        if (!(condition)) scale_fail(__FILE__, __LINE__, #condition);          \
    } while (0)
_Noreturn void scale_fail(const char *file, int line, const char *what);
void *scale_zeros(size_t size); /* never NULL */

/* scale_net.c */
struct scale_stream *scale_connect(uint32_t from, uint32_t conn, uint32_t to);
void scale_leave(struct scale_stream *st, int side);
/* Bytes that were taken. */
size_t scale_write(struct scale_stream *st, int side, const uint8_t *bytes,
                   size_t size);
/* The other end's bytes were read. */
void scale_was_read(struct scale_stream *st, int side);
void scale_wake(uint32_t party, struct scale_stream *st);
/* Until nobody has work at this time. */
void scale_run(void);
/* ... and time has passed. */
void scale_run_for(pccl_ns time);
void scale_net_end(void);

/* scale_member.c */
void scale_member_begin(uint32_t number);
void scale_member_kill(uint32_t number);
void scale_member_turn(uint32_t number);
void scale_member_dialed(struct scale_stream *st);
void scale_member_tick(uint32_t number);
void scale_member_vote(uint32_t number);
void scale_member_launch(uint32_t number, size_t bytes);
/* A newcomer's shared state differs from that of all others before. */
void scale_member_sync(uint32_t number, size_t bytes);

/* scale_master.c */
void scale_master_begin(uint32_t quorum);
void scale_master_accept(struct scale_stream *st);
void scale_master_read(struct scale_stream *st);
void scale_master_writable(struct scale_stream *st);
void scale_master_rest(void); /* what the turn before had no time for */
void scale_master_tick(void);
/* Bytes of its structures that it has touched, beside the heap. */
uint64_t scale_master_touched(void);
void scale_master_end(void);

/* scale_event.c: each runs until it is over, and is as it should be. */
enum scale_event {
    SCALE_JOIN,
    SCALE_BARRIER,
    SCALE_SMALL,
    SCALE_LARGE,
    SCALE_UPDATE,
    SCALE_SYNC, /* of equal state */
    SCALE_LOSS,
    SCALE_NEWCOMER,
    SCALE_FETCH, /* ... of which the newcomer has none */
    SCALE_IDLE,
    SCALE_EVENTS,
};
extern const char *const scale_event_names[SCALE_EVENTS];
void scale_happens(enum scale_event event, uint32_t n, size_t large);

#endif
