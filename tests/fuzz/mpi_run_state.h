/* mpi_run_state.h - what the files of a played run share. */
#ifndef PCCL_FUZZ_MPI_RUN_STATE_H
#define PCCL_FUZZ_MPI_RUN_STATE_H

#include "mpi_run.h"

struct run {
    uint64_t ids[RUN_MEMBERS], hosts[RUN_MEMBERS];
    uint32_t size, rank;
    bool lost[RUN_MEMBERS];     /* or not there from the beginning */
    bool reported[RUN_MEMBERS]; /* the view does not have it (any more) */
    uint64_t epoch;
    bool ended, gone;
    uint8_t answers;
};

extern struct run run;

/* The next record, if it is of the kind. */
bool run_take(uint8_t kind, struct tape_record *r);
void run_lose(uint32_t member);
void run_go_on(void);
bool run_is_over(void);

#endif
