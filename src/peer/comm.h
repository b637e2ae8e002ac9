/* comm.h - struct pcclComm_t: one session, its sockets and its threads.
 *
 * Everything is under one lock. An I/O thread (libev) answers the master,
 * accepts and dials, beats, and moves data while no API call waits. An API
 * call that waits for an operation moves the data itself, so that a blocking
 * collective needs no hand-over between threads: one such caller at a time
 * "drives", others wait on `changed`. */
#ifndef PCCL_COMM_H
#define PCCL_COMM_H

#include "../../include/pccl.h"
#include "../base/io_wake.h"
#include "../link/send_window.h"
#include "../elastic/session.h"
#include "../link/shared_memory.h"

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

enum { COMM_LISTENERS_MAX = 2 };

/* PCCL_TRANSPORT: between members of one host. */
enum comm_transport {
    TRANSPORT_AUTO, /* shared memory, else TCP */
    TRANSPORT_TCP,
    TRANSPORT_SHM, /* as auto, and says when it has to be TCP */
};

struct comm_socket {
    int fd; /* -1: free */
    bool connecting;
    bool blocked;  /* a send would block */
    bool high_rtt; /* it, or others in the ring, is RTT_HIGH away or more */
    bool expected; /* what the driver waits for may come here */
    bool dead;     /* noticed while the engine was busy with it */
    struct send_window window;
    struct ev_io watcher;
    int watched; /* events the watcher waits for now */
    struct shared_memory share;
    /* With a channel the socket only wakes, and tells of the end: */
    bool stirred; /* there may be something on it */
    bool ended;   /* nothing more will come but what the channel holds */
    bool asleep;  /* the other end is told to wake us */
};

struct pcclComm_t {
    pthread_mutex_t lock;
    atomic_int waiting; /* threads that want the lock: the driver makes way */
    pthread_cond_t changed;
    pcclCommCreateParams_t params;
    int32_t rank_hint;
    uint32_t deadline_ms;
    char error[256]; /* of the last call that failed */
    bool explained;  /* by the call under way */

    struct session *session; /* NULL: not connected */
    struct ev_loop *loop;
    pthread_t thread;
    bool stopping;
    struct wake wake;
    struct ev_timer tick;
    /* Who starts operations and tests them moves the data in these calls: the
     * I/O thread leaves it to them and looks, pulse by pulse, whether they
     * still come (comm_attend.c). */
    bool attended, pulse_due;
    uint32_t calls, calls_seen;
    pccl_ns pulse;
    int pulse_fd;
    struct ev_io pulse_watcher;

    int master_fd;
    pccl_ns last_recv; /* when the master last spoke */
    int master_poll;   /* epoll set of master_fd alone */
    uint32_t master_watched;
    struct ev_io master_watcher;
    uint8_t *in, *out; /* control bytes */
    size_t in_size, in_capacity, out_first, out_size, out_capacity;
    struct wire_store *store;

    int listeners[COMM_LISTENERS_MAX];
    struct ev_io listener_watchers[COMM_LISTENERS_MAX];
    bool deaf; /* out of descriptors: callers wait for the next tick */
    uint16_t port;
    struct comm_socket *sockets; /* CONNS_MAX, index = connection number */
    uint32_t socket_end;
    bool driving;   /* an API call moves the data */
    bool listening; /* ... and hears the master as well */
    int driver_fd;  /* eventfd that wakes it */
    bool driver_blocked, driver_woken;
    uint32_t processors;  /* that this process may use */
    uint32_t crowd_epoch; /* of the view for which it was counted whether */
    bool crowded;         /* this host's members take all of them, */
    bool starved;         /* or are even more */
    /* Quick operations in a row that ended as soon as the processor was given
     * away, and how many of them make a caller nap. */
    uint32_t handed_on, handed_on_max;
    enum comm_transport transport;
    struct shared_region area; /* lent to others (rule L7) */
    uint32_t looks;            /* for messages */
    bool restless; /* a channel has something for who watches the sockets */
};

/* --- comm.c --- */
void comm_lock(pcclComm_t *c);
/* Whoever waits for the lock has it in between. */
void comm_make_way(pcclComm_t *c);
int comm_open(pcclComm_t *c);   /* pcclConnect without its checks; locked */
void comm_close(pcclComm_t *c); /* ends threads and sockets; locked */
/* pcclSynchronizeSharedState without the checks of every call. Locked; not
 * while it reads the tensors. */
int comm_synchronize(pcclComm_t *c, pcclSharedState_t *state,
                     pcclSharedStateSyncStrategy_t strategy,
                     pcclSharedStateSyncInfo_t *info);
/* After API calls that change the session: send, and let the I/O thread care
 * for what is left. Locked. */
void comm_turn(pcclComm_t *c);
/* The driver, if it sleeps, looks at what there is to do. Locked. */
void comm_wake_driver(pcclComm_t *c);
/* No descriptor for a caller: takes no calls until the next tick. */
void comm_turn_deaf(pcclComm_t *c);
/* The master may have set another deadline: ticks follow it. I/O thread. */
void comm_pace(pcclComm_t *c);
void comm_set_error(pcclComm_t *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
pccl_ns comm_now(void);

/* --- comm_drive.c; all locked --- */
/* Whether this host's members share processors, of a new view. */
void comm_count_crowd(pcclComm_t *c);
/* Waits for op to be DONE, or (NULL) for a synchronization to be over, moving
 * data. */
void comm_drive(pcclComm_t *c, const struct op *op);
/* The same, but returns when it is `until` or a message event is there. */
void comm_drive_until(pcclComm_t *c, const struct op *op, pccl_ns until);
/* A small operation whose members are ready, without launch and driver. */
enum comm_fast {
    FAST_NOTHING, /* nothing has happened: launch it */
    FAST_TAKEN,   /* success */
    FAST_REST,    /* *rest is under way */
    FAST_FAILED,  /* out of memory */
};
enum comm_fast comm_fast(pcclComm_t *c, const struct op_request *r,
                         uint64_t view_epoch, struct op **rest);
/* The next event of messages; NULL: none until then, or GONE. */
struct message_event *comm_take_event(pcclComm_t *c, pccl_ns until);
/* Rule P2P-8: what was posted reaches those who live, within a deadline. */
void comm_flush_messages(pcclComm_t *c);

/* --- comm_attend.c; all locked --- */
bool comm_attend_open(pcclComm_t *c); /* false: no descriptor */
void comm_attend_close(pcclComm_t *c);
void comm_attend_start(pcclComm_t *c); /* the loop is there */
/* After API calls that start or test an operation: as comm_turn(), but the I/O
 * thread cares for what is left only when no such call has come for a while.
 * After one that started one: leaves what is for the next ones in memory, and
 * gives way to whoever waits for the lock. */
void comm_attend(pcclComm_t *c, bool launches);
/* A driver ends and leaves operations under way. */
void comm_attend_rest(pcclComm_t *c);
/* By the I/O thread, woken. */
void comm_attend_woken(pcclComm_t *c);

/* --- comm_io.c: sockets; all locked --- */
bool comm_io_listen(pcclComm_t *c);
void comm_io_close_all(pcclComm_t *c);
uint32_t comm_io_dial(void *comm, const struct wire_addr *addr);
void comm_io_close(void *comm, uint32_t number);
uint64_t comm_io_round_trip(void *comm, uint64_t peer);
/* One pass over all connections; true if bytes moved. */
bool comm_io_move(pcclComm_t *c);
/* The same, but reads only where something for op may come. */
bool comm_io_move_expected(pcclComm_t *c);
void comm_io_expect(pcclComm_t *c, const struct op *op); /* NULL: anywhere */
void comm_io_watch(pcclComm_t *c); /* what the I/O thread is to wait for */
/* Sends what can leave now, without reading. */
void comm_io_push(pcclComm_t *c);
/* The same for what was just posted to a member. */
void comm_io_push_to(pcclComm_t *c, uint64_t member);
/* Blocks, unlocked, until a connection can move or the driver is woken, or
 * for the time given. */
void comm_io_wait(pcclComm_t *c, pccl_ns most);
void comm_io_start_watchers(pcclComm_t *c);

/* --- comm_io_master.c; all locked --- */
bool comm_io_connect_master(pcclComm_t *c, pccl_ns deadline);
void comm_io_start_master(pcclComm_t *c); /* to hear it */
void comm_io_close_master(pcclComm_t *c);
void comm_io_to_master(void *comm, const struct wire_msg *msg);
void comm_io_flush_master(pcclComm_t *c);
void comm_io_judge_master(pcclComm_t *c); /* lost if silent too long */
bool comm_io_read_master(pcclComm_t *c);  /* true if something came */
void comm_io_lost(pcclComm_t *c, uint32_t number);

/* --- comm_share.c: connections through shared memory; all locked --- */
bool comm_share_cma_read(void *comm, uint32_t number,
                         const struct wire_member *member, uint64_t address,
                         void *to, size_t size);
/* Callbacks of the session, rule L1. */
struct channel *comm_share_make(void *comm, uint32_t number,
                                struct channel_offer *offer);
struct channel *comm_share_join(void *comm, uint32_t number,
                                const struct channel_offer *offer);
void comm_share_settled(void *comm, uint32_t number, bool taken);
/* The same, rule L7. */
uint8_t *comm_share_region_export(void *comm, struct channel_offer *offer);
const uint8_t *comm_share_region_attach(void *comm, uint32_t number,
                                        const struct channel_offer *offer);
/* The bytes of this connection go through a channel from here on. */
bool comm_share_sends(const pcclComm_t *c, uint32_t number);
bool comm_share_receives(const pcclComm_t *c, uint32_t number);
/* One pass; true if bytes moved. May close the connection. */
bool comm_share_transmit(pcclComm_t *c, uint32_t number);
bool comm_share_receive(pcclComm_t *c, uint32_t number);
/* Whether the other end is to wake this one by the socket; true: there is
 * something to do already. */
bool comm_share_doze(pcclComm_t *c, uint32_t number, bool on);
/* The other end may sleep for what this one has done. */
void comm_share_bell(pcclComm_t *c, uint32_t number, uint32_t what);

#endif
