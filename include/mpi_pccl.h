/* mpi_pccl.h - the functions of PCCL/MPI beyond MPI.
 *
 * Include it after or instead of <mpi.h>, link -lmpi_pccl. An MPI program
 * needs none of these functions to run, nor to survive the death of a rank
 * (PCCL_ON_FAILURE, docs/failures.md). It needs the first one to admit new
 * ranks while it runs.
 *
 * The world changes only where the program allows it. MPI_Comm_size and
 * MPI_Comm_rank of MPI_COMM_WORLD and of its duplicates return new values after
 * PCCL_Update_topology, and with PCCL_ON_FAILURE=shrink after a collective that
 * the survivors repeated; never in between. Survivors keep their order,
 * newcomers come last. Communicators made by MPI_Comm_split and the like keep
 * the members they were made of. A process can take part in the creation of
 * about four million communicators (2^22), freed ones included.
 *
 * What a loss does under PCCL_ON_FAILURE=shrink (pccl-master --elastic):
 *
 *   the program                                    a loss
 *   uses MPI_Barrier, _Allreduce, _Bcast and       the survivors repeat the
 *   _Reduce of the world and its duplicates only   collective; a line on stderr
 *   addresses ranks: point-to-point, other         MPIX_ERR_PROC_FAILED now and
 *   collectives, communicators that are no         in each call that needs the
 *   duplicates, topologies, persistent requests    lost rank; no rank changes
 *   has called a PCCL_ or MPIX_ function           as in the first row, without
 *                                                  a line
 *   any, with PCCL_ON_FAILURE=force                as in the first row
 *
 * All survivors get the same: the second row holds if it does for one of them.
 * After PCCL_Update_topology ranks are those that MPI_Comm_rank returns.
 * docs/failures.md has the rules for a lost root (PCCL_LOST_ROOT).
 *
 * Errors are raised as in MPI: through the error handler of the communicator,
 * which by default ends the job. */
#ifndef MPI_PCCL_H
#define MPI_PCCL_H

#include <mpi.h>
#include <stdint.h>

/* The version of this header, which is that of the library it came with; the
 * same as in pccl.h. */
#define PCCL_VERSION_MAJOR 0
#define PCCL_VERSION_MINOR 1
#define PCCL_VERSION_PATCH 0
#define PCCL_VERSION_STRING "0.1.0"
/* One number to compare with: #if PCCL_VERSION >= 102 is version 0.1.2. */
#define PCCL_VERSION                                                           \
    (PCCL_VERSION_MAJOR * 10000 + PCCL_VERSION_MINOR * 100 + PCCL_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

#ifndef PCCL_EXPORT
#if defined(_WIN32)
#define PCCL_EXPORT
#else
#define PCCL_EXPORT __attribute__((visibility("default")))
#endif
#endif

/* Admits waiting newcomers and takes losses into account. Collective over all
 * ranks of the run: blocks until each of them has called. `comm` must be
 * MPI_COMM_WORLD or a duplicate of it; all of them change together.
 *
 * A newcomer is inside MPI_Init until then. Newcomers have made no collective
 * and no communicator. The program gives them their data by collectives after
 * the update, for instance by a broadcast from rank 0.
 *
 * With pccl-master --min-ranks N it waits while ranks and newcomers are fewer
 * than N, and PCCL_Are_peers_pending says yes meanwhile. Collectives go on
 * among those who are left. A lone survivor (MPI_Comm_size was more than 1
 * before the collective, and is 1 after it) discards its step, and comes here.
 *
 * In a rank that is asked to leave (PCCL_Drain_requested) it leaves, and does
 * not return.
 *
 * In a program started by mpiexec -n 1 or without launcher it does nothing.
 *
 * MPI_SUCCESS          the new view is in force.
 * MPI_ERR_COMM         not the world or a duplicate of it.
 * MPI_ERR_PENDING      a nonblocking collective of this rank is not complete.
 * MPI_ERR_OTHER        this rank was evicted, the run is over, or another rank
 *                      is inside a collective that this one did not call. */
PCCL_EXPORT int PCCL_Update_topology(MPI_Comm comm);

/* Measures the links between the ranks and finds the best order of the ring
 * that large collectives use: the slowest link as fast as can be, then short
 * round trips, with the ranks of a host and of a site side by side. Ranks do
 * not change, except by losses, as in PCCL_Update_topology. Collective over all
 * ranks of the run. It takes about one round of transfers per rank (a tenth of
 * a second each on a fast network, about a second across continents). So call
 * it after the start and after the world has grown, not in each step. On one
 * host there is nothing to gain.
 *
 * In a program started by mpiexec -n 1 or without launcher it does nothing.
 *
 * MPI_SUCCESS          the new order is in force on all ranks.
 * MPI_ERR_COMM         not the world or a duplicate of it.
 * MPI_ERR_PENDING      a nonblocking collective of this rank is not complete.
 * MPI_ERR_OTHER        no ring connects all ranks (the message names the pairs
 *                      that cannot reach each other), this rank was evicted,
 *                      or another rank is inside another call. */
PCCL_EXPORT int PCCL_Optimize_topology(MPI_Comm comm);

/* Sets *flag to 1 if newcomers wait for PCCL_Update_topology, else to 0.
 * Collective over all ranks of the run, and all get the same answer. So a
 * program may call it in each step and update only when needed. It may run
 * beside collectives, from another thread. In a rank that is asked to leave
 * *flag is 1: the update lets this rank go, and the others need none.
 *
 * MPI_SUCCESS          *flag is set.
 * MPI_ERR_COMM         not the world or a duplicate of it.
 * MPI_ERR_OTHER        this rank was evicted or the run is over. */
PCCL_EXPORT int PCCL_Are_peers_pending(MPI_Comm comm, int *flag);

/* Sets *flag to 1 if this rank is asked to leave: by `pccl-master --drain`, or
 * by the signal that PCCL_DRAIN_SIGNAL names. It leaves in its next call of
 * PCCL_Update_topology, which does not return: the process ends with status 0,
 * and exit handlers run. The others go on as after a loss, and need not call
 * anything else than before. A program that has something to do first, such as
 * writing a checkpoint, asks here before that call. Local, never blocks.
 *
 * MPI_SUCCESS          *flag is set.
 * MPI_ERR_ARG          flag is NULL. */
PCCL_EXPORT int PCCL_Drain_requested(int *flag);

/* Samples of a step: ranks of different speeds make a step of a training
 * together, without waiting for the slowest one. Each adds samples to the step
 * until all ranks have as many as the step is to have; then all reduce, with
 * their samples as weights. A step takes target / (sum of all speeds).
 *
 *     while (!reached) {
 *         samples += train_one_batch();
 *         PCCL_Report_progress(MPI_COMM_WORLD, step, samples, target);
 *         PCCL_Get_progress(MPI_COMM_WORLD, &progress);
 *         reached = progress.reached;
 *     }
 *     ... MPI_Allreduce of gradient * samples, and of samples; divide; step++
 *
 * Steps are the program's numbers: they go up, and are equal on all ranks for
 * the same step. Once a step is reached, all ranks hear of it, and it stays
 * reached: they meet in the collective. What ranks have died with counts no
 * more; a newcomer counts from its first report on. pccl.h has the rules, and
 * how old the figures may be (section "how far a step of training is").
 *
 * Both never block, and any thread may call them while others are in
 * collectives, if the program asked for MPI_THREAD_MULTIPLE. They are the only
 * functions of this header that do not count as an opt-in to changing ranks. In
 * a program started by mpiexec -n 1 or without launcher the rank's own samples
 * are those of all.
 *
 * MPI_SUCCESS          will be reported; *progress is set.
 * MPI_ERR_COMM         not the world or a duplicate of it.
 * MPI_ERR_ARG          samples is more than 2^52 - 1; progress is NULL.
 * MPI_ERR_OTHER        this rank was evicted or the coordinator is lost. */
typedef struct PCCL_Progress {
    uint64_t step;    /* of the ranks; the own one, if that is higher */
    uint64_t samples; /* that they have of it, as far as known here */
    uint64_t target;  /* the largest that a rank has named; 0: none */
    int ranks;        /* that have reported for it */
    int reached;      /* the step reported here last is to end now; before the
                         first report: `step` is */
} PCCL_Progress;
PCCL_EXPORT int PCCL_Report_progress(MPI_Comm comm, uint64_t step,
                                     uint64_t samples, uint64_t target);
PCCL_EXPORT int PCCL_Get_progress(MPI_Comm comm, PCCL_Progress *progress);

/* What PCCL_Allreduce_partial takes and gives. */
enum { PCCL_PARTIAL_PARTS_MAX = 256 };

typedef struct PCCL_Partial_options {
    double weight;        /* of this rank's contribution; finite and > 0 */
    int sums;             /* 1: the sum, without weights; 0: the average */
    uint32_t deadline_ms; /* of the round, from the first rank's call on */
    uint32_t gather_ms;   /* the first one waits so long; 0: a quarter of it */
    uint32_t
        evict_after; /* rounds in a row without its contribution; 0: never */
} PCCL_Partial_options;

typedef struct PCCL_Partial_part {
    MPI_Count begin, count; /* elements */
    double weight;          /* sum of the weights of its contributors */
    int contributors;       /* 0: missing */
} PCCL_Partial_part;

typedef struct PCCL_Partial_info {
    PCCL_Partial_part *parts; /* in, as part_room */
    int part_room;
    int part_count;
    MPI_Count elements; /* in parts that are not missing */
    int ranks;          /* that the round was for */
    int contributed;    /* this rank's data are in some part */
} PCCL_Partial_info;

/* An all-reduce that does not wait: pcclAllReducePartial of pccl.h, where its
 * rules are. A round ends by its deadline with what has come; each part of the
 * vector is, on all ranks, either the same bits from the same ranks, or
 * missing, and then recvbuf holds what it held before. A rank that calls late
 * gets the parts of its round, and did not contribute. So ranks that apply the
 * result stay equal.
 *
 * Collective over the world, not at the same time. A loss does not fail it and
 * changes no ranks: the next collective or update does. Other threads may be in
 * other collectives, also of the same communicator.
 *
 * sendbuf   MPI_IN_PLACE, or count elements that do not overlap recvbuf.
 * datatype  a predefined number; an average is of floating-point numbers.
 * info      may be NULL. parts is an array of the caller's with part_room
 *           entries, or NULL; parts are never more than PCCL_PARTIAL_PARTS_MAX.
 *
 * MPI_SUCCESS     the round is decided; parts may be missing, even all.
 * MPI_ERR_COMM    not the world or a duplicate of it.
 * MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE  as their names say.
 * MPI_ERR_ARG     an option is wrong, or ranks disagree: the message names it.
 * MPI_ERR_OTHER   this rank is too late, and the parts are not kept any more:
 *                 synchronize the shared state, then call for the next round;
 *                 or it was evicted; or the coordinator is lost.
 * In all cases but success recvbuf is as it was. */
PCCL_EXPORT int PCCL_Allreduce_partial(const void *sendbuf, void *recvbuf,
                                       MPI_Count count, MPI_Datatype datatype,
                                       const PCCL_Partial_options *options,
                                       MPI_Comm comm, PCCL_Partial_info *info);

/* Shared state: the buffers that all ranks are to have in common, such as
 * weights, momentum and step of a training. A program lists them once, in the
 * same order everywhere, and synchronizes at the same place of its loop, after
 * PCCL_Update_topology. Where all have advanced correctly, that costs one round
 * trip and the time to read the buffers. A rank that differs, a newcomer for
 * instance, receives the content of the others, from all of them at once, and
 * only the parts that differ (64 KiB blocks). */
typedef struct PCCL_Shared_state PCCL_Shared_state;

/* Which content wins when the ranks differ. */
enum {
    PCCL_SYNC_POPULAR = 0, /* the content that most ranks have; a tie goes to
                              the one that the lowest rank holds */
    PCCL_SYNC_RECEIVE = 1, /* this rank has no vote; for newcomers */
    PCCL_SYNC_SEND = 2     /* this rank gives and is never written to; all
                              senders must agree */
};

/* Makes an empty list, to be freed with PCCL_State_free. Buffers stay the
 * caller's and must live as long as the list. */
PCCL_EXPORT int PCCL_State_create(PCCL_Shared_state **state);
PCCL_EXPORT int PCCL_State_free(PCCL_Shared_state **state);

/* Adds count elements at buffer. The name is copied and appears in errors.
 *
 * MPI_ERR_TYPE  not a datatype, or one with gaps between its elements.
 * MPI_ERR_COUNT, MPI_ERR_BUFFER, MPI_ERR_ARG  as their names say. */
PCCL_EXPORT int PCCL_State_add(PCCL_Shared_state *state, const char *name,
                               void *buffer, MPI_Count count,
                               MPI_Datatype datatype);

/* The number of the last synchronization. The library counts: 0 before the
 * first, one more with each. Save the number with a checkpoint, and set it
 * after reading one, before the next synchronization: after all ranks have
 * left, the master lets the run go on only from the revision and content it
 * had. */
PCCL_EXPORT int PCCL_State_get_revision(const PCCL_Shared_state *state,
                                        uint64_t *revision);
PCCL_EXPORT int PCCL_State_set_revision(PCCL_Shared_state *state,
                                        uint64_t revision);

/* Makes the buffers of all ranks equal, bit for bit. Collective over the world:
 * returns when all have them. `received` (may be NULL): bytes that this rank
 * received; 0 in a loop that advances correctly. All ranks pass
 * PCCL_SYNC_POPULAR, or some PCCL_SYNC_SEND and the others PCCL_SYNC_RECEIVE.
 * The death of a rank is no error here while another rank has the state.
 *
 * MPI_SUCCESS      equal everywhere; the revision is the group's.
 * MPI_ERR_COMM     not the world or a duplicate of it.
 * MPI_ERR_ARG      this rank listed other buffers than the others; the message
 *                  names the first. The others go on without it.
 * MPI_ERR_PENDING  a nonblocking collective of this rank is not complete.
 * MPI_ERR_OTHER    refused (the message says why), no rank is left that has
 *                  the state (the buffers may be partly overwritten), or this
 *                  rank was evicted. */
PCCL_EXPORT int PCCL_Sync_shared_state(MPI_Comm comm, PCCL_Shared_state *state,
                                       int strategy, MPI_Count *received);

/* Checkpoints of the shared state, as files of a directory: a safetensors file
 * and a manifest (docs/checkpoint.md; pccl.h has the whole contract). A program
 * loads once, before its first synchronization, and saves now and then, after
 * one:
 *
 *   PCCL_Load_state(MPI_COMM_WORLD, state, directory, NULL, &found);
 *   loop: PCCL_Sync_shared_state(...)
 *         if (step % 100 == 0) PCCL_Save_state(..., state, directory, 0);
 *
 * A job whose ranks have all died, started again (pccl-master --restart), then
 * goes on from the last checkpoint.
 *
 * PCCL_Save_state copies the buffers, in rank 0; a thread writes them. Other
 * ranks return at once. `comm` is the world or a duplicate of it. The directory
 * has to be there. The latest `keep` checkpoints stay, with 0 two. If the save
 * before is not complete, the call waits for it; if that one failed, the call
 * returns its error, and saves nothing.
 *
 * MPI_SUCCESS      it will be written, or another rank writes.
 * MPI_ERR_IO       of this or the last save: no directory, a full disk, ...;
 *                  the text (MPI_Error_string) has file and reason. It is
 *                  returned like an error of MPI's files, and does not go to
 *                  the error handler. Older checkpoints are as they were.
 * MPI_ERR_ARG      an argument, or a name in the list, is wrong.
 * MPI_ERR_OTHER    this rank was evicted, or the run is over.
 *
 * PCCL_Await_save waits until the save of this rank is on the disk, and returns
 * the same; MPI_Finalize waits, too. */
PCCL_EXPORT int PCCL_Save_state(MPI_Comm comm, const PCCL_Shared_state *state,
                                const char *directory, int keep);
PCCL_EXPORT int PCCL_Await_save(MPI_Comm comm);

/* Reads the latest checkpoint, or (revision not NULL) that of a revision, into
 * the buffers, and sets the revision of the list. Local. *found is 0 if there
 * is none: a first start. A rank that has found none receives the state in the
 * synchronization. Nothing is overwritten before all of it has been verified.
 *
 * MPI_SUCCESS      *found is set.
 * MPI_ERR_ARG      it has other buffers; the message names the first.
 * MPI_ERR_IO       it cannot be read, or was damaged or edited; the message
 *                  names the file or the buffer. */
PCCL_EXPORT int PCCL_Load_state(MPI_Comm comm, PCCL_Shared_state *state,
                                const char *directory, const uint64_t *revision,
                                int *found);

/* User-level failure mitigation: the calls that MPICH's mpi.h lacks, as in
 * Open MPI's mpi-ext.h. MPIX_Comm_shrink, MPIX_Comm_agree and the others are in
 * mpi.h.
 *
 * On an intercommunicator the failed ranks of both groups are listed and
 * acknowledged. The flag agreed on is that of the remote group's survivors, or
 * all bits set if there are none. It shrinks to an intercommunicator again, or
 * raises MPIX_ERR_PROC_FAILED if nobody of the remote group is left. A
 * communicator with a topology shrinks to one without. */
PCCL_EXPORT int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
PCCL_EXPORT int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failed);
PCCL_EXPORT int MPIX_Comm_ack_failed(MPI_Comm comm, int wanted,
                                     int *acknowledged);
PCCL_EXPORT int MPIX_Comm_iagree(MPI_Comm comm, int *flag,
                                 MPI_Request *request);
PCCL_EXPORT int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *out,
                                  MPI_Request *request);

#ifdef __cplusplus
}
#endif

#endif
