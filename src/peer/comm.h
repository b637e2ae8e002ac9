/* comm.h - struct pcclComm_t: one session, its sockets and its threads.
 *
 * One lock protects everything. A background thread answers the
 * master, accepts and dials, and sends heartbeats. progress.h decides which
 * thread moves the data. */
#ifndef PCCL_COMM_H
#define PCCL_COMM_H

#include "../../include/pccl.h"
#include "../base/fork_guard.h"
#include "../base/io_loop.h"
#include "../base/port_range.h"
#include "../base/secure_socket.h"
#include "../elastic/session.h"
#include "../link/send_window.h"
#include "../link/shared_memory.h"
#include "comm_tell.h"
#include "copy_choice.h"
#include "progress.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    COMM_LISTENERS_MAX = 2,
};

#define MASTER_PATIENCE_DEFAULT (60 * PCCL_S)

enum { COMM_MASTERS_MAX = 32 }; /* addresses of all names */

struct comm_masters {
    struct wire_addr at[COMM_MASTERS_MAX];
    uint32_t count;
};

/* PCCL_TRANSPORT: between members of one host. */
enum comm_transport {
    TRANSPORT_AUTO, /* shared memory, else TCP */
    TRANSPORT_TCP,
    TRANSPORT_SHM, /* as auto; logs the cases that must use TCP */
};

struct comm_socket {
    int fd;                /* -1: free */
    struct secure *secure; /* NULL: bytes in clear (rules K2, K9) */
    bool connecting;
    bool blocked;  /* a send would block */
    bool high_rtt; /* its RTT, or that of others in the ring, is RTT_HIGH or
                      more */
    struct send_window window;
    struct io_watch watch;
    /* With a channel the socket carries doorbells only, and shows the end: */
    struct shared_memory share;
    bool event_pending; /* something may have arrived on the socket */
    bool ended; /* nothing more arrives but the bytes that the channel holds */
    bool armed; /* the doorbell of this end */
    bool own_process;        /* of this user, as CMA has found */
    struct copy_choice copy; /* of messages into the channel */
    struct copy_choice pull; /* out of the channel, or by CMA */
};

/* The thread that runs as long as the communicator is connected. */
struct comm_background {
    struct io_loop loop; /* its tick: heartbeats and deadlines */
    pthread_t thread;
    bool stopping;
};

/* What this process used, when it was looked at last (comm_self.c). */
struct comm_self {
    pccl_ns at, cpu, delay;
    uint64_t faults; /* major ones */
};

/* The connection to the master. */
struct comm_master {
    int fd;                /* -1: none */
    struct secure *secure; /* NULL: in clear */
    int dial_fd;           /* to the next master, or -1 (comm_resume.c) */
    pccl_ns dialed_at;     /* time of that dial, or of the connection */
    pccl_ns reached_at;    /* a dial beside a silent connection opened; 0: none
                              did (rule M13a) */
    uint32_t turn;         /* whom it dials next (rule H14) */
    pccl_ns last_recv;     /* time of the last received byte */
    pccl_ns judged_at;     /* the last time */
    bool missed;           /* it is waited for, and that was logged */
    bool foreign;          /* what answered has not the key of the run */
    int poll_fd;           /* epoll set of fd alone; the loop watches it */
    uint32_t watched;      /* events of fd in that set */
    struct io_watch watch;
    uint8_t *in, *out; /* bytes that are not parsed, or not sent yet */
    size_t in_size, in_capacity;
    size_t out_first, out_size, out_capacity;
    struct wire_store *store; /* of the message that is being parsed */
};

/* The sockets that lead to other members. */
/* Where this member listens and is to be called (rules N1, N3). */
struct comm_ways {
    char ports[16], announce[320]; /* pcclSetOptions; "": the environment */
    struct port_range range;
    struct wire_addr announced; /* family 0: nothing */
    uint16_t announced_port;    /* 0: the one where it listens */
};

struct comm_io {
    int listeners[COMM_LISTENERS_MAX]; /* -1: none */
    struct io_watch listener_watches[COMM_LISTENERS_MAX];
    bool accept_paused; /* out of descriptors, until the next tick */
    uint64_t refused;   /* connections of other users (rule L9) */
    uint16_t port;
    struct comm_socket *sockets; /* CONNS_MAX, index = connection number */
    uint32_t end; /* no socket from this index on, and nothing written there */
    /* Bit sets over the sockets, so that a look costs as much as there is to
     * do, and not as much as there are connections ("What a look costs"). */
    uint64_t expected[CONNS_MAX / 64]; /* what the owner waits for may come */
    uint64_t visited[CONNS_MAX / 64];  /* by all looks: they connect, are
                                          blocked, or are not of a link */
    uint64_t watched[CONNS_MAX / 64];  /* by the background thread */
    bool brief; /* this pass moves at most LAUNCH_MAX in each direction */
    bool cut;   /* such a pass has left something */
    enum comm_transport transport;
    struct shared_region region; /* that others of this host read (rule L7) */
};

/* The engine's request for the last blocking collective. Mostly the next one
 * differs in its buffers alone. */
struct comm_request {
    struct op_request made;
    uint32_t epoch; /* that the program knew; 0: it is not used again */
};

/* The calls inside a communicator, and what ends their waiting. */
struct comm_calls {
    atomic_bool cancelled; /* between pcclCancel and pcclResume */
    atomic_bool ending;    /* pcclDestroyCommunicator waits for them */
    int bell_fd;           /* eventfd that pcclCancel writes */
    struct io_watch watch;
    pccl_ns limit;   /* of a call's waiting; 0: none */
    uint32_t inside; /* calls */
};

/* What calls that stopped waiting have left under way. The same call takes it
 * up again. */
struct comm_left {
    bool votes[VOTE_KIND_COUNT];
    struct state_list *sync; /* owned; NULL: none */
};

enum samples_state {
    SAMPLES_CLOSED, /* not connected */
    SAMPLES_OPEN,
    SAMPLES_LOST, /* nobody reads reports, or tells anything, any more */
};

/* Exchanges pages: comm_exchange.c. */
struct exchange {
    bool tried;
    int fd, pages_fd; /* userfaultfd, and the list of this process's pages */
    uint8_t *memory, *window; /* NULL: there is no exchange here */
    /* Buffers whose pages were refused. */
    uintptr_t refused[64];
    uint32_t refusals;
};

/* The samples of a step, for threads that must not wait (comm_samples.c). */
struct comm_samples {
    pthread_mutex_t lock; /* of what follows */
    enum samples_state state;
    struct sample_count count;   /* as the session's, with the report */
    struct sample_report report; /* the last one */
    bool fresh;                  /* the session does not know it */
    atomic_int inside;           /* calls */
};

/* The state that is offered, and what was downloaded before the peer joins. */
struct comm_offers {
    struct state_list *offered; /* owned; NULL: nothing */
    bool fetching;              /* a call downloads, unlocked */
    bool fetched;               /* a call has downloaded, for the next HELLO: */
    uint64_t revision, max_stale;
};

struct pcclComm_t {
    unsigned process; /* fork_guard_now() of the process that made it */
    pthread_mutex_t lock;
    atomic_int waiting;     /* threads that want the lock: comm_yield_lock() */
    pthread_cond_t changed; /* the goal of a caller may be reached */
    pcclCommCreateParams_t params;
    int32_t rank_hint;
    uint32_t deadline_ms; /* 0: not set */
    bool evicts_nobody;   /* says so in HELLO (rule R4b) */
    bool goes_on;         /* with few members (rule M14) */
    bool must_leave;      /* says so in HELLO (rule M10h) */
    pccl_ns patience;     /* with a silent master */
    char *masters;        /* a list of addresses; NULL: the one of params */
    pccl_ns master_wait;  /* for one that is not there yet; 0: not set */
    /* The run was not joined, as nobody coordinates there; somebody did. */
    bool absent, deserted;
    char error[256]; /* of the last call that failed */
    bool explained;  /* error text of the call under way */

    char *token_file;         /* of pcclSetOptions; NULL: PCCL_TOKEN_FILE */
    bool keyed;               /* the run has a key (rule K2): */
    struct secure_keys *keys; /* made when it is needed first */
    bool token;               /* keys are a participant's (rule K11): */
    struct secure_keys *link_keys; /* with other members (K14) */

    struct session *session; /* NULL: not connected */
    struct progress progress;
    struct exchange exchange;
    struct comm_request request;
    struct comm_calls calls;
    struct comm_left left;
    struct comm_save *save; /* under way, or not awaited; NULL: none */
    struct comm_offers offers;
    struct comm_background background;
    struct comm_master master;
    struct comm_ways ways;
    struct comm_io io;
    struct comm_self self;
    struct comm_samples samples;
    void (*namer)(uint64_t tag, char *text, size_t size); /* or NULL */
    struct counters counters;
    struct told_wait told_wait;
    struct told_launch told_launches[TOLD_LAUNCHES];
    uint64_t told_change; /* the round that ends the epoch; 0: none */
};

/* --- comm.c --- */
void comm_lock(pcclComm_t *c);
/* Lets a thread that waits for the lock have it in between. */
void comm_yield_lock(pcclComm_t *c);
/* pcclConnect without its checks; locked */
int comm_open(pcclComm_t *c);
/* One try, at params.master_address. Of one that fails with
 * pcclMasterConnectionFailed, `absent` says whether another one may not. */
int comm_join(pcclComm_t *c);
/* Copies the list; false: no memory. */
bool comm_masters_set(pcclComm_t *c, const char *list);
/* The masters to ask, in turn: all of the list whose names can be looked up
 * now, since a host that is down may have none; without a list the one of
 * params. pcclInvalidArgument, whatever stands in the list is no address, or
 * pcclMasterConnectionFailed, with a text; or what ended the waiting for the
 * resolver, until then at most. */
int comm_masters_find(pcclComm_t *c, struct comm_masters *masters,
                      pccl_ns until);
ccoip_socket_address_t comm_public_address(const struct wire_addr *from);
void comm_close(pcclComm_t *c); /* ends threads and sockets; locked */
/* The text and the result of a call that comm_interrupted() ends, and what the
 * program is told to do next. */
int comm_stop_waiting(pcclComm_t *c, int why, const char *next);
/* In a child that inherited the communicator: frees it, unlocked, and does
 * nothing that another process could notice. */
void comm_abandon(pcclComm_t *c);
static inline bool comm_is_inherited(const pcclComm_t *c)
{
    return c->process != fork_guard_now();
}
/* pcclSynchronizeSharedState without the checks of every call. The lock is
 * held, except while it reads the tensors. */
int comm_synchronize(pcclComm_t *c, pcclSharedState_t *state,
                     pcclSharedStateSyncStrategy_t strategy,
                     pcclSharedStateSyncInfo_t *info);
/* Checks the entries and describes them, into room for all; locked. At most
 * STATE_TENSORS_MAX. */
pcclResult_t comm_read_tensors(pcclComm_t *c, const pcclSharedState_t *state,
                               struct state_tensor *tensors);
/* The tensors of a shared state as a list, with the hashes of all that they
 * hold, for which the lock is released, or without. */
pcclResult_t comm_read_state(pcclComm_t *c, const pcclSharedState_t *state,
                             bool hashes, struct state_list *list);
/* Number of members of the view on this host, including this one; and, unless
 * NULL, of those before it. */
uint32_t comm_members_here(const pcclComm_t *c, uint32_t *before);
/* As many members as if each that may use the processors of this process used
 * them alone: those of the host, or 1 where each is bound to its own. */
uint32_t comm_members_on_own_processors(const pcclComm_t *c);
/* No descriptor is left: the communicator accepts no connections until the
 * next tick (accept paused). */
void comm_pause_accepting(pcclComm_t *c);
/* The master may have set another deadline: ticks follow it. Background
 * thread. */
void comm_pace(pcclComm_t *c);
void comm_set_error(pcclComm_t *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
pccl_ns comm_now(void);
pccl_ns comm_own_deadline(const pcclComm_t *c); /* until the run's is known */
/* In a spare process: waits until it is wanted. */
void comm_spare_wait(pcclComm_t *c, pccl_ns until);

/* --- comm_calls.c --- */
bool comm_calls_open(pcclComm_t *c);   /* false: no descriptor */
void comm_calls_close(pcclComm_t *c);  /* also if it was not opened */
bool comm_calls_start(pcclComm_t *c);  /* the loop reads the bell */
void comm_calls_drain(pcclComm_t *c);  /* silences the bell */
void comm_calls_cancel(pcclComm_t *c); /* unlocked; in a signal handler, too */
static inline bool comm_is_cancelled(const pcclComm_t *c)
{
    return atomic_load_explicit(&c->calls.cancelled, memory_order_relaxed);
}
/* Every call of pccl.h begins and ends with these. comm_enter() takes the lock.
 * False: the communicator is being destroyed, and it has not. */
bool comm_enter(pcclComm_t *c);
void comm_leave(pcclComm_t *c);
/* Ends all calls; no other may begin. Takes the lock. */
void comm_end_calls(pcclComm_t *c);
/* When a call that begins now stops waiting; PCCL_NEVER: no limit is set. */
pccl_ns comm_limit(const pcclComm_t *c);
/* pcclCancelled or pcclTimedOut: the call stops waiting. 0: it goes on. */
int comm_interrupted(const pcclComm_t *c, pccl_ns until);
/* Until `changed` is signalled or the time has come; locked. */
void comm_wait(pcclComm_t *c, pccl_ns until);

/* --- comm_listen.c; all locked --- */
/* Rules N1, N3: what the program, or the environment, wishes. False: it cannot
 * be; the error says why. Waits for the resolver, until then at most. */
bool comm_read_ways(pcclComm_t *c, pccl_ns until);
bool comm_listen(pcclComm_t *c);

/* --- comm_io.c: sockets; all locked --- */
void comm_io_close_all(pcclComm_t *c);
uint32_t comm_io_dial(void *comm, const struct wire_addr *addr);
uint32_t comm_io_dial_master(void *comm);
void comm_io_close(void *comm, uint32_t number);
/* Closes a connection that broke, and reports it to the engine. */
void comm_io_lost(pcclComm_t *c, uint32_t number);
uint64_t comm_io_round_trip(void *comm, uint64_t peer);
/* Its state has changed, or it may be blocked: comm_io.visited follows. */
void comm_io_note(pcclComm_t *c, uint32_t number);
/* Of 64 sockets those that may have to send, or that all looks visit. */
uint64_t comm_io_busy(const pcclComm_t *c, uint32_t word);
/* The lowest of these bits that is ahead, which then lies behind; 64: none.
 * The bits may change from call to call. */
static inline uint32_t next_bit(uint64_t bits, uint64_t *ahead)
{
    uint64_t left = bits & *ahead;
    if (left == 0) return 64;
    uint32_t bit = (uint32_t)__builtin_ctzll(left);
    *ahead = bit == 63 ? 0 : UINT64_MAX << (bit + 1);
    return bit;
}
/* One pass over all connections; true if bytes moved. */
bool comm_io_move(pcclComm_t *c);
/* Such a pass that reads only where something for op may arrive. */
bool comm_io_move_expected(pcclComm_t *c);
/* A pass over all, of few bytes: a program that launches an operation goes on
 * soon. True: it has left some. */
bool comm_io_move_briefly(pcclComm_t *c);
void comm_io_expect(pcclComm_t *c, const struct op *op); /* NULL: anywhere */
/* Sends all bytes that can leave now, without reading. True: bytes wait to
 * leave. */
bool comm_io_push(pcclComm_t *c);
/* Sends the bytes just posted to a member. The background thread sends those
 * that wait. */
void comm_io_push_to(pcclComm_t *c, uint64_t member);
/* False: the system has no memory for it; likewise below. */
bool comm_io_start_watchers(pcclComm_t *c);

/* --- comm_secure.c: the key of the run, and who is let in without one --- */
/* False: comm_set_error() says why. */
bool comm_key_take(pcclComm_t *c);
void comm_key_drop(pcclComm_t *c);
/* Rules K7, L9. False: not this connection; `why` is empty where the other end
 * has ended. */
bool comm_admits(const pcclComm_t *c, int fd, bool called, char *why,
                 size_t size);
/* The channel of a connection to the master, in a run with a key. False: out of
 * memory. */
bool comm_secure_master(const pcclComm_t *c, struct secure **secure);
/* That of a connection to a member or from one. False also: no key yet. */
bool comm_secure_link(const pcclComm_t *c, enum secure_side side,
                      struct secure **secure);
/* The master has sent the proof of membership (rule K14). */
void comm_secure_prove(const pcclComm_t *c, const struct wire_key *proof);
/* As recv() and sendmsg() that do not block. */
ssize_t comm_socket_recv(int fd, struct secure *s, void *to, size_t size);
ssize_t comm_socket_send(int fd, struct secure *s, const struct iovec *parts,
                         size_t count);
/* A connection that failed with EPROTO: its reason goes to the log. */
void comm_secure_tell(const struct secure *s);
/* The socket becomes a doorbell (rule K9). */
void comm_secure_end(struct comm_socket *s);
static inline bool comm_secure_is_open(const struct secure *s)
{
    return !s || secure_state(s) == SECURE_OPEN;
}
/* Bytes are received, and no event of the socket will come for them. */
static inline bool comm_secure_has_input(const struct secure *s)
{
    return s && secure_has_input(s);
}

/* --- comm_watch.c; all locked --- */
/* Sets the events that the background thread watches in the present state. */
void comm_watch(pcclComm_t *c);
/* Sleeps, unlocked, until a connection can move or the owner is woken, or for
 * the time given. */
void comm_watch_sleep(pcclComm_t *c, pccl_ns most);

/* --- comm_self.c; all locked --- */
void comm_self_open(pcclComm_t *c);
void comm_self_look(pcclComm_t *c); /* if a heartbeat is due */

/* --- comm_samples.c --- */
void comm_samples_init(pcclComm_t *c);
void comm_samples_free(pcclComm_t *c); /* when no call can begin any more */
/* Locked: */
void comm_samples_open(pcclComm_t *c);
void comm_samples_close(pcclComm_t *c); /* before the loop is */
/* With the session, both ways. True: it may have something to send. */
bool comm_samples_exchange(pcclComm_t *c);
/* --- comm_offer.c; locked --- */
int comm_offer(pcclComm_t *c, const pcclSharedState_t *state,
               const struct offer_terms *terms);
void comm_offer_end(pcclComm_t *c);

/* --- comm_prefetch.c; locked, and unlocked while it waits --- */
int comm_prefetch(pcclComm_t *c, const pcclSharedState_t *state,
                  uint64_t max_stale, pcclPrefetchInfo_t *info);

/* --- comm_master.c; all locked --- */
enum { COMM_WHY_SIZE = 256 };
/* A new connection, made before `end`, when calls are to stop waiting, or -1:
 * `why` says the reason, and *refused, which may be NULL, whether somebody is
 * there who is not of this run. The lock may be held or not. */
int comm_dial(pcclComm_t *c, const struct wire_addr *addr, pccl_ns end,
              char why[COMM_WHY_SIZE], bool *refused);
struct wire_addr comm_master_address(const pcclComm_t *c);
/* Waits so long; false: calls are to stop waiting. */
bool comm_pause(pcclComm_t *c, pccl_ns time);
/* Waits for one of these events (or for none: fd -1). 0: there is one;
 * ETIMEDOUT, ECANCELED if calls are to stop waiting, or the error of poll(). */
int comm_await(pcclComm_t *c, int fd, short events, pccl_ns until);

/* --- comm_resolve.c --- */
struct address;
struct io_addr;
/* The addresses of a host (not ""), at most `max`, which is not 0; 0: *error
 * says why there is none, or that calls are to stop waiting. */
uint32_t comm_resolve(pcclComm_t *c, const struct address *a, pccl_ns until,
                      struct io_addr *out, uint32_t max, const char **error);
/* Ends before the deadline if the call is to stop waiting by `until`. */
bool comm_master_connect(pcclComm_t *c, pccl_ns deadline, pccl_ns until);
bool comm_master_start(pcclComm_t *c); /* the loop reads it */
void comm_master_close(pcclComm_t *c);
/* The connection is over; another coordinator may come. */
void comm_master_lose(pcclComm_t *c, const char *reason);
void comm_resume_tick(pcclComm_t *c); /* dials a lost or silent one again */
/* What it sends and receives has room: nothing is lost for want of memory. */
bool comm_master_reserve(pcclComm_t *c);
void comm_master_send(void *comm, const struct wire_msg *msg);
void comm_master_flush(pcclComm_t *c);
void comm_master_judge(pcclComm_t *c); /* lost if silent too long */
bool comm_master_read(pcclComm_t *c);  /* true if something came */

/* --- comm_exchange.c: pages of buffers; all locked --- */
void comm_exchange_init(struct exchange *x);
void comm_exchange_close(struct exchange *x);
bool comm_exchange_may(void *comm, const void *bytes, size_t size);
size_t comm_exchange_pages(void *comm, void *to, void *from, size_t size);

/* --- comm_shm.c: connections through shared memory; all locked --- */
void comm_shm_fill(void *comm, uint32_t number, void *to, const void *from,
                   size_t size, size_t left, bool first);
bool comm_shm_cma_read(void *comm, uint32_t number,
                       const struct wire_member *member, uint64_t address,
                       void *to, size_t size);
bool comm_shm_cma_works(void *comm, uint32_t number,
                        const struct wire_member *member);
bool comm_shm_cma_lends(void *comm, const void *bytes, size_t size);
bool comm_shm_cma_prefers(void *comm, uint32_t number, size_t size, bool alone);
void comm_shm_cma_compared(void *comm, uint32_t number, size_t size);
/* Callbacks of the session, rule L1. */
struct channel *comm_shm_make(void *comm, uint32_t number,
                              struct channel_offer *offer);
struct channel *comm_shm_join(void *comm, uint32_t number,
                              const struct channel_offer *offer);
void comm_shm_settled(void *comm, uint32_t number, bool taken);
/* The region of such a connection (rule L7). */
uint8_t *comm_shm_region_export(void *comm, struct channel_offer *offer);
const uint8_t *comm_shm_region_attach(void *comm, uint32_t number,
                                      const struct channel_offer *offer);
/* The bytes of this connection use a channel from here on. */
bool comm_shm_sends(const pcclComm_t *c, uint32_t number);
bool comm_shm_receives(const pcclComm_t *c, uint32_t number);
/* One pass; true if bytes moved. May close the connection. */
bool comm_shm_transmit(pcclComm_t *c, uint32_t number);
bool comm_shm_receive(pcclComm_t *c, uint32_t number);
/* Arms this end's doorbell for the missing data or room. True: something is
 * there. */
bool comm_shm_arm(pcclComm_t *c, uint32_t number);
void comm_shm_disarm(pcclComm_t *c, uint32_t number);
/* Rings the doorbell of the other end if it sleeps until this end acts. */
void comm_shm_ring(pcclComm_t *c, uint32_t number, uint32_t what);
/* After writes on several connections: one fence serves all. */
void comm_shm_ring_many(pcclComm_t *c, const uint32_t *numbers, uint32_t count);

#endif
