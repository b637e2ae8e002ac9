/* mpi_run.h - a run that is played from a tape, below the MPI library: pccl.h's
 * functions as the library calls them. What other ranks send, and the results
 * of operations, are the tape's.
 *
 * A call that waits makes the tape go on. If the program's next call is on it
 * instead, the others say what the call waits for; when that does not help, and
 * at the end of the tape, all others are lost. So every call ends, and one that
 * does not is a finding. */
#ifndef PCCL_FUZZ_MPI_RUN_H
#define PCCL_FUZZ_MPI_RUN_H

#include "../../include/pccl.h"
#include "tape.h"

enum { RUN_MEMBERS = 4 };

enum run_kind {
    RUN_CONFIG, /* first; argument: this rank. See run_begin() */
    /* What happens. */
    RUN_LETTER, /* argument: sender; kind, channel, context, tag, flags (1
                   each), size, cookie (8 each), body */
    RUN_SAY,    /* what a call waits for; argument: sender; size (1), body; 128
                   more: it    is of the second context */
    RUN_BULK,   /* a transfer ends; argument: which; result (1) */
    RUN_LOSE,   /* argument: member */
    RUN_FULL,   /* the queue takes none of so many messages (argument) */
    RUN_ROOM,
    RUN_OP, /* how the operation ends that is launched next; argument: result;
               polls (1), and numbers in its data: place (2), width (1), value
               (8) */
    RUN_GONE,
    RUN_BACKGROUND, /* the library's thread has a turn */
    RUN_ORDER,      /* what pccl answers to calls that are not about ranks */
    /* Calls of the program: see mpi_calls.c. Argument: communicator. */
    CALL_ISEND, /* receiver, tag, mode, type (1 each), count (2) */
    CALL_IRECV, /* sender, tag, type (1 each), count (2) */
    CALL_RECV,
    CALL_TEST,  /* request, how (1 each) */
    CALL_PROBE, /* sender, tag, how, type (1 each), count (2) */
    CALL_COLL,  /* which, how, type, root (1 each), count (2) */
    CALL_MAKE,  /* which, color, key, second (1 each) */
    CALL_FREE,
    CALL_ULFM,    /* which (1) */
    CALL_PARTS,   /* peer, tag, send, partitions (1 each) */
    CALL_ELASTIC, /* which (1) */
    RUN_KIND_COUNT
};

static inline bool run_is_call(uint8_t kind)
{
    return kind >= CALL_ISEND;
}

/* The rest of the tape. */
void run_open(struct fuzz_input *tape);
/* A new world: rank, hosts (bits), members. */
void run_begin(uint32_t rank, uint8_t hosts, uint32_t members);
/* The next record; false: the tape is over. */
bool run_next(struct tape_record *r);
void run_play(const struct tape_record *r);
/* All others are lost. */
void run_end(void);
/* Nothing of it is left. */
void run_close(void);

/* A call begins: it may wait for messages of this context and tag; later of
 * the second context, if there is one. */
void run_call(uint32_t context, int tag);
void run_call_twice(uint32_t context, uint32_t second, int tag);
void run_call_over(void);
/* The context of the i-th communicator of the program. */
uint32_t run_context(uint8_t which);

/* mpi_again_*.c: the statics of the library, as at the start of a process. */
void again_comm(void);
void again_transport(void);
void again_rank_use(void);
void again_partner(void);
/* mpi_calls.c */
void calls_begin(void);
void calls_play(const struct tape_record *r);
void calls_end(void);

_Noreturn void run_fail(const char *what);

#endif
