/* progress.h - the progress engine: it decides which thread moves a
 * communicator's bytes, and how a call waits.
 *
 * progress_core.h has the states and the table of transitions; this module
 * carries the table out: it moves, watches, ticks and wakes. A blocking caller
 * moves the bytes itself, so that a collective needs no hand-over between
 * threads. One such caller is the owner at a time; others wait for its signal,
 * or for their own operation. All functions are called with the lock held. */
#ifndef PCCL_PEER_PROGRESS_H
#define PCCL_PEER_PROGRESS_H

#include "../../include/pccl.h"
#include "../base/io_loop.h"
#include "progress_home.h"
#include "progress_core.h"
#include "progress_policy.h"

struct op;
struct op_request;
struct partial_call;
struct message_event;

struct progress {
    enum progress_state state;
    bool reads_master;   /* the blocking owner reads the master's messages */
    int owner_fd;        /* eventfd: ends the sleep of the blocking owner */
    bool owner_rung;     /* it was written since that owner fell asleep */
    bool wake_pending;   /* the background thread is to look at channels */
    bool event_pending;  /* it has found events of connections */
    uint32_t calls;      /* that started or tested an operation, so far */
    uint32_t calls_seen; /* by the last poll tick */
    bool launching;      /* the call has started an operation */
    bool rest;           /* the last one has left bytes for the next tick */
    pccl_ns tick_first, tick_period;
    uint32_t dear; /* armings of the timer that took long, less the others */
    int tick_fd;
    struct io_watch tick_watch;

    uint32_t processors;              /* that this process may use */
    const struct wait_policy *policy; /* of the view `policy_epoch` */
    uint32_t policy_epoch;
    struct home home; /* in that view */
    uint32_t takes;   /* of message events */
    /* The number of fast operations in a row that a yield has completed, and
     * the number after which a caller naps. */
    uint32_t handed_on, nap_after;
};

/* --- the background thread; progress.c --- */
void progress_init(pcclComm_t *c);  /* closed */
bool progress_open(pcclComm_t *c);  /* false: no descriptor */
void progress_close(pcclComm_t *c); /* also if it was not opened */
bool progress_start(pcclComm_t *c); /* the loop is there */
/* The doorbell of the background thread has rung. */
void progress_woken(pcclComm_t *c);
/* The events of one wait are known: one pass moves what all of them have. */
void progress_handled(pcclComm_t *c);

/* --- calls that do not wait; progress.c --- */
/* The session, or a connection, has work: bytes that can leave now are sent,
 * and the background thread watches for the rest. */
void progress_changed(pcclComm_t *c);
/* An operation is tested: moves all bytes that can move. */
void progress_tested(pcclComm_t *c);
/* An operation has been started: moves bytes, but those of the next calls stay
 * in memory (rule D2), and a thread that waits for the lock gets it. */
void progress_launched(pcclComm_t *c);

/* --- the blocking owner; progress.c --- */
bool progress_has_owner(const pcclComm_t *c);
/* There is no owner. */
void progress_enter(pcclComm_t *c, bool reads_master);
void progress_leave(pcclComm_t *c);
/* Sleeps, unlocked, until a connection can move or a call wakes the owner, or
 * for the time given. */
void progress_sleep(pcclComm_t *c, pccl_ns most);
/* True while a blocking owner sleeps with its own doorbells armed. */
bool progress_sleeps(const pcclComm_t *c);
/* Of the view in force. */
const struct wait_policy *progress_policy(pcclComm_t *c);

/* --- polling; progress.c --- */
struct poll_loop {
    const struct poll_policy *policy;
    enum look (*look)(pcclComm_t *c, struct poll_loop *loop);
    void *user;
    pccl_ns until;   /* PCCL_NEVER: the policy decides */
    bool keeps_lock; /* also from a thread that wants it */
    uint32_t looks;  /* so far */
};

/* Polls until the result is neither IDLE nor MOVED, or until (IDLE) the
 * patience or the time is over. */
enum look progress_poll(pcclComm_t *c, struct poll_loop *loop);

/* --- calls that wait; progress_wait.c. Each returns when its goal is reached,
 * when it is `until`, or when the communicator's calls are cancelled. --- */
/* op is DONE. */
void progress_wait(pcclComm_t *c, const struct op *op, pccl_ns until);
/* op is DONE, or a message event is there. */
void progress_wait_until(pcclComm_t *c, const struct op *op, pccl_ns until);
/* The partial all-reduce is DONE. */
void progress_wait_partial(pcclComm_t *c, const struct partial_call *call,
                           pccl_ns until);
/* The synchronization of shared state is over. */
void progress_wait_sync(pcclComm_t *c, pccl_ns until);
/* The vote that this member has cast is answered, or it is no member. */
void progress_wait_vote(pcclComm_t *c, enum vote_kind kind, pccl_ns until);
/* A small operation whose members are ready, without a launch. LOOK_DONE:
 * success. LOOK_ELSE: *rest is under way; NULL: out of memory. LOOK_IDLE:
 * nothing has happened: launch it. */
enum look progress_fast(pcclComm_t *c, const struct op_request *r,
                        uint64_t view_epoch, struct op **rest);
/* The next event of messages; NULL: none, or GONE. */
struct message_event *progress_take_event(pcclComm_t *c, pccl_ns until);
/* Rule P2P-8: posted messages reach the live members within a deadline. */
void progress_flush_messages(pcclComm_t *c);

#endif
