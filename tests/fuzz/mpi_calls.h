/* mpi_calls.h - what the files of fuzz_mpi's program share. */
#ifndef PCCL_FUZZ_MPI_CALLS_H
#define PCCL_FUZZ_MPI_CALLS_H

#include "mpi_run.h"

#include <mpi.h>

#include "../../include/mpi_pccl.h"

enum { CALLS_MAX = 80, CALL_COMMS = 6 };

struct call_slot {
    bool used, receives;
    bool persistent; /* and nothing else is needed to start it again */
    MPI_Request request;
    void *in, *out; /* or NULL */
    uint8_t type;
    size_t count;  /* elements of `in` */
    uint32_t made; /* the communicator that it makes, or CALL_COMMS */
    int flag;
};

extern struct call_slot calls[CALLS_MAX];
extern MPI_Comm call_comms[CALL_COMMS];
extern bool call_comm_waits[CALL_COMMS]; /* it is being made */

void *call_buffer(uint8_t type, size_t count);
struct call_slot *call_slot_new(void); /* NULL: all are in use */
void call_slot_free(struct call_slot *c);

/* mpi_make.c */
void call_make(uint8_t kind, uint8_t comm, struct fuzz_input *in);

/* mpi_graph.c: a grid or a graph, which it then asks for and uses. */
void call_graph(MPI_Comm handle, uint8_t shape, uint8_t which, MPI_Comm *out);

#endif
