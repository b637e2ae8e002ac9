/* p2p.h - point-to-point: sends and receives over the matching queues.
 * transport.h delivers to other members. */
#ifndef P2P_H
#define P2P_H

#include "mpi_comm.h"
#include "match.h"
#include "type.h"

struct partner;

/* A message that was sent and not received: its packed bytes. At most two
 * owners: the queues (or the receiver) and a synchronous sender. */
struct message {
    struct match_entry entry; /* first */
    atomic_int references;
    atomic_bool matched; /* or failed: see `error` */
    int error;
    MPI_Count size;
    const char *payload; /* data, the sender's buffer, or NULL: to be pulled */
    /* Of a remote message: */
    bool remote, wants_ack, announced;
    uint64_t cookie;         /* the sender's id of it */
    uint32_t charged;        /* bytes charged to the sender's credit */
    struct receive *receive; /* the receive that pulls it */
    char *pulled;            /* intermediate buffer of the pull, or NULL */
    MPI_Count roomed;        /* bytes of this attached buffer: */
    struct room *room;
    struct message *next; /* in a list of transport.c */
    char data[];
};

struct receive {
    struct match_entry entry; /* first */
    void *buffer;
    MPI_Count count;
    struct type *type;
    struct comm *comm;
    bool blocking; /* the caller blocks, and gets no error that means "not yet"
                    */
    atomic_bool done;
    int error;
    MPI_Status status;
};

/* Posts a receive; the queues own it until it is done. */
void p2p_post(struct receive *receive);
/* Delivers a message to this process; takes the queues' reference over. */
void p2p_deliver(struct message *message);
/* A message of another member, as it arrives. */
struct arrival {
    struct match_key key;
    struct partner *partner; /* the sender */
    const char *payload;
    MPI_Count size;
    uint64_t cookie;
    uint32_t charged;
    bool wants_ack;
};
/* Delivers it; its data are valid only during the call. The caller has called
 * p2p_lock(), for any number of messages. False: no memory to keep it. */
bool p2p_deliver_borrowed(const struct arrival *arrival);
void p2p_lock(void);
void p2p_unlock(void);
/* Cancels an unmatched receive; false: it is matched. */
bool p2p_cancel(struct receive *receive);
/* Looks for a message; if take is not NULL, moves it from the queue to
 * *take. */
bool p2p_probe(const struct match_key *key, struct comm *comm,
               struct message **take, MPI_Status *status);
/* Completes a receive with a message taken before, which it takes over. */
void p2p_receive_taken(struct receive *receive, struct message *message);
/* Completes a receive in a new request; `from` was checked. NULL: as one from
 * MPI_PROC_NULL. Returns a noted class. */
int p2p_request_taken(const struct receive *from, struct message *message,
                      MPI_Request *out);
struct match_key p2p_key(const struct comm *comm, int source, int tag);
void message_release(struct message *message);
/* A message with space for the payload in `data` and one reference; NULL: no
 * memory. */
struct message *message_new(MPI_Count size);
/* The data of a pull have arrived, or the pull failed. */
void p2p_pulled(struct message *message, int error);
/* MPIX_ERR_PROC_FAILED_PENDING for an incomplete receive from any source, when
 * a possible sender was lost and the loss is not acknowledged; where ranks
 * change with a loss, when all of them but this process were. */
int p2p_pending_error(const struct receive *receive);
/* The context was revoked: fails its receives, discards its messages. */
void p2p_drop(uint32_t context, int error);
/* Text for the error of a send or a receive. */
const char *p2p_error_text(int error, bool sending);
/* A member is lost: fails receives that need it. */
void p2p_member_lost(uint64_t member);
bool p2p_busy(void); /* receives are posted */
/* Whether the partner holds back messages for lack of credit. */
void p2p_held(struct partner *partner);
/* Frees messages that were never received. */
void p2p_stop(void);

enum send_mode { SEND_STANDARD, SEND_SYNCHRONOUS, SEND_READY, SEND_BUFFERED };

struct send {
    const void *buffer;
    MPI_Count count;
    struct type *type;
    struct comm *comm;
    int dest, tag;
    enum send_mode mode;
    uint32_t channel; /* 0, or one of CHANNEL_* */
    bool copy;        /* the buffer may change before the send completes */
    struct message *waiting; /* until it is matched or its data are sent */
    int error;               /* once done */
};

/* Checks the arguments; returns a noted class. */
int send_check(struct send *send, MPI_Datatype type);
int receive_check(struct receive *receive, MPI_Datatype type, int source,
                  int tag);
/* Sends the data; the buffer may be reused. */
int send_begin(struct send *send);
/* Sends them if nothing remains to be waited for; *result: as send_begin's.
 * False: nothing was sent. */
bool send_at_once(const struct send *send, int *result);
bool send_done(struct send *send);

/* Charges a buffered send to the communicator's buffer, or to that of all;
 * false: it does not fit. Freeing the message returns the bytes. */
bool bsend_charge(struct message *message, const struct comm *comm,
                  MPI_Count size);
void bsend_discharge(const struct message *message);
/* A communicator ends: its buffer is detached. */
void bsend_forget(struct comm *comm);
/* The place of a session's buffer; NULL: no memory. Its communicators and
 * groups have references to it. */
struct session_room *session_room_new(void);
struct session_room *session_room_retain(struct session_room *room);
void session_room_release(struct session_room *room);
struct room **session_room_slot(struct session_room *room);
/* The calls for the buffer of all, of a communicator or of a session. The
 * results are noted classes. */
int room_attach(struct room **slot, void *base, MPI_Count size);
int room_detach(struct room **slot, void *base, MPI_Count *size);
/* With a request for it, or NULL. */
int room_flush(struct room **slot, MPI_Request *request);

#endif
