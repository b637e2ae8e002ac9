/* p2p.h - point-to-point messages: sends and receives over the matching
 * queues. Delivery to other members goes through transport.h. */
#ifndef P2P_H
#define P2P_H

#include "mpi_comm.h"
#include "match.h"
#include "type.h"

/* A message that was sent and not yet received: its packed bytes. Two owners
 * at most: the queues (or the receiver) and a synchronous sender. */
struct message {
    struct match_entry entry; /* first */
    atomic_int references;
    atomic_bool matched; /* or failed: see error */
    int error;
    MPI_Count size;
    const char *payload; /* data, the sender's buffer, or NULL: to be pulled */
    /* From or to another member: */
    bool remote, wants_ack, announced;
    uint64_t cookie;         /* the sender's name for it */
    uint32_t charged;        /* against the sender's credit */
    struct receive *receive; /* the one it is being pulled for */
    char *pulled;            /* intermediate memory of that, or NULL */
    MPI_Count roomed;        /* of the attached buffer, while it is this one: */
    unsigned room_number;
    struct message *next; /* in a list of transport.c */
    char data[];
};

struct receive {
    struct match_entry entry; /* first */
    void *buffer;
    MPI_Count count;
    struct type *type;
    struct comm *comm;
    bool blocking; /* its caller waits, and gets no error that says "not yet" */
    atomic_bool done;
    int error;
    MPI_Status status;
};

/* Posts a receive, which belongs to the queues until done. */
void p2p_post(struct receive *receive);
/* Gives a message to this process; takes the queues' reference over. */
void p2p_deliver(struct message *message);
/* The same for a message whose data are borrowed for this call, and which is
 * the caller's. False: no memory to keep it. */
bool p2p_deliver_borrowed(struct message *message);
/* Withdraws a receive that is not matched yet; false: it is. */
bool p2p_cancel(struct receive *receive);
/* Looks for a message; take not NULL: out of the queue, into *take. */
bool p2p_probe(const struct match_key *key, struct comm *comm,
               struct message **take, MPI_Status *status);
/* Gives a receive a message taken before, which it takes over. */
void p2p_receive_taken(struct receive *receive, struct message *message);
/* The same in a request of its own; `from` has been checked. Raises errors. */
int p2p_request_taken(const struct receive *from, struct message *message,
                      MPI_Request *out, const char *function);
struct match_key p2p_key(const struct comm *comm, int source, int tag);
void message_release(struct message *message);
/* Room for the payload in `data`, one reference; NULL: no memory. */
struct message *message_new(MPI_Count size);
/* The data that a receive has been waiting for are there, or will not come. */
void p2p_pulled(struct message *message, int error);
/* A receive from anybody that is not done, while one that might have sent was
 * lost and that loss is not acknowledged: MPIX_ERR_PROC_FAILED_PENDING. */
int p2p_pending_error(const struct receive *receive);
/* The context was revoked: ends the receives, throws the messages away. */
void p2p_drop(uint32_t context, int error);
/* What the error of a send or a receive means, in words. */
const char *p2p_error_text(int error, bool sending);
/* A member is gone: nothing more will come of receives that need it. */
void p2p_member_lost(uint64_t member);
bool p2p_busy(void); /* receives are posted */
/* The partner holds messages back for want of credit. */
struct partner;
void p2p_held(struct partner *partner);
/* Frees what was never received. */
void p2p_stop(void);

enum send_mode { SEND_STANDARD, SEND_SYNCHRONOUS, SEND_READY, SEND_BUFFERED };

struct send {
    const void *buffer;
    MPI_Count count;
    struct type *type;
    struct comm *comm;
    int dest, tag;
    enum send_mode mode;
    uint32_t channel;        /* 0, or one of CHANNEL_* */
    bool copy;               /* the buffer may change before the send is done */
    struct message *waiting; /* until it is matched or its data have gone */
    int error;               /* once done */
};

/* Checks the arguments; returns a noted class. */
int send_check(struct send *send, MPI_Datatype type);
int receive_check(struct receive *receive, MPI_Datatype type, int source,
                  int tag);
/* Hands the data over; the buffer is free again. */
int send_begin(struct send *send);
bool send_done(struct send *send);

/* Charges a buffered send to the room that MPI_Buffer_attach gave; false: it
 * does not fit. It is given back with the message. */
bool bsend_charge(struct message *message, MPI_Count size);
void bsend_discharge(const struct message *message);

#endif
