/* world.h - one universe of MPI ranks in one process: a copy of the MPI library
 * for each rank, pccl's own entry points, sessions and links below it, and the
 * simulator's network and coordinator (tests/world/sim).
 *
 * fiber.c runs the threads of the ranks by turns, driver.c stands between the
 * entry points and the simulated network, ulfm_program.c is what each rank
 * runs, and checks it. */
#ifndef MPI_SIM_WORLD_H
#define MPI_SIM_WORLD_H

#include "../sim/sim.h"

#include <mpi.h>

#include "../../../include/mpi_pccl.h"

enum { RANKS_MAX = 6, FIBERS_MAX = 4 };

/* The functions of one copy of the library. */
/* clang-format off */
#define MPI_SIM_CALLS(X) \
    X(MPI_Init) X(MPI_Finalize) X(MPI_Comm_set_errhandler) X(MPI_Comm_dup) \
    X(MPI_Comm_split) X(MPI_Comm_create_group) X(MPI_Comm_create) \
    X(MPI_Comm_group) X(MPI_Group_incl) X(MPI_Group_free) X(MPI_Comm_free) \
    X(MPI_Comm_rank) X(MPI_Comm_size) X(MPI_Barrier) X(MPI_Allreduce) \
    X(MPI_Bcast) X(MPI_Iallreduce) X(MPI_Ibarrier) X(MPI_Wait) \
    X(MPI_Sendrecv) X(MPI_Recv) X(MPI_Error_class) X(MPIX_Comm_revoke) \
    X(MPIX_Comm_is_revoked) X(MPIX_Comm_shrink) X(MPIX_Comm_agree) \
    X(MPIX_Comm_ishrink) X(MPIX_Comm_iagree) X(MPIX_Comm_failure_ack) \
    X(MPIX_Comm_get_failed) X(MPI_Group_size) X(MPI_Error_string)
/* clang-format on */

struct mpi_calls {
#define X(name) __typeof__(name) *name;
    MPI_SIM_CALLS(X)
#undef X
    /* look.c, in the same copy. */
    uint32_t (*look_context)(MPI_Comm handle);
    int (*look_members)(MPI_Comm handle, uint64_t *ids, int room);
};

struct fiber;

struct rank {
    int number;
    struct mpi_calls mpi;
    struct sim_proc *proc; /* NULL: not started, dead, or over */
    struct fiber *fibers[FIBERS_MAX];
    bool dead, over;
    int status; /* of its exit */
};

/* The events of all universes; a run without one of them fails. */
/* clang-format off */
#define MPI_SIM_EVENTS(X) \
    X(deaths) X(death_alone) X(barriers) X(sums) X(broadcasts) X(duplicates) \
    X(splits) X(groups) X(rings) X(started) X(revoked) X(revocations) \
    X(agreements) X(agreed_no) X(agreements_later) X(unacknowledged) \
    X(shrinks) X(shrinks_later) X(shrunk) X(proc_failed) X(lock_waits) \
    X(survivors) X(contexts)
/* clang-format on */
struct mpi_events {
#define X(name) unsigned long name;
    MPI_SIM_EVENTS(X)
#undef X
};

struct world_options {
    int ranks;
    uint32_t death; /* of so many turns of a rank one kills it; 0: none dies */
    uint32_t deaths_max;
};

extern struct sim universe;
extern struct rank ranks[RANKS_MAX];
extern struct mpi_events *events;
extern struct world_options world_options;

/* fiber.c: threads of ranks. A fiber runs until it waits. */
struct fiber *fiber_new(struct rank *rank, void *(*run)(void *),
                        void *argument);
struct rank *fiber_rank(void); /* of the fiber that runs */
void fiber_yield(void);
/* Runs one of a rank's fibers; false: none can. */
bool fiber_turn(struct rank *rank);
bool fiber_is_over(const struct fiber *fiber);
void fibers_forget(struct rank *rank);

/* ulfm_program.c */
void *ulfm_program(void *rank);
void ulfm_begin(void);

#endif
