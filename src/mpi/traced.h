/* traced.h - spans of the trace (PCCL_TRACE) for calls of MPI that are not
 * collectives, which the library beneath traces itself. Without a trace a call
 * tests one flag.
 *
 *     TRACED(comm, rank, bytes, function);
 *
 * begins a span that ends with the block. The partner may be MPI_ANY_SOURCE or
 * MPI_PROC_NULL. */
#ifndef TRACED_H
#define TRACED_H

#include "mpi_comm.h"

bool traced_begin(const struct comm *comm, int rank, MPI_Count bytes,
                  const char *function);
void traced_end(const bool *traced);

#define TRACED(comm, rank, bytes, function)                                    \
    __attribute__((cleanup(traced_end))) const bool traced_ =                  \
        __builtin_expect(world.traces, false) &&                               \
        traced_begin(comm, rank, bytes, function);                             \
    (void)traced_

#endif
