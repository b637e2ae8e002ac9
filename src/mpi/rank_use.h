/* rank_use.h - what the program does with ranks, and whether a loss may
 * therefore change them (PCCL_ON_FAILURE=shrink, which --elastic sets).
 *
 * Ranks change inside a collective of the world. That is right under a program
 * to which its rank means nothing, and wrong under one that has stored it.
 *
 * E1  A process *names* ranks when it calls point-to-point, or any collective
 *     of the world but those of E2. It *keeps* them in what names ranks later:
 *     a communicator that is no duplicate of the world, a persistent request.
 * E2  MPI_Barrier, MPI_Allreduce, MPI_Bcast and MPI_Reduce name no ranks: their
 *     meaning depends on the set of ranks and at most on who is the root (E7).
 *     MPI_Allgather and the like do: their buffers have a place for each rank.
 * E3  A process has *opted in* by any PCCL_ or MPIX_ function. Asking for its
 *     rank is no opt-in: it does not prove that the answer is what is used.
 * E4  A process that names or keeps ranks and has not opted in *refuses*. Its
 *     trait (pcclSetTraits) says so. All survivors of a loss read the same
 *     traits (rule T4 of AGREEMENT.md), so they decide alike: ranks change if
 *     nobody refuses. PCCL_ON_FAILURE=force: they always change.
 * E5  If one refuses, no rank changes. The collectives that need a lost rank
 *     end with MPIX_ERR_PROC_FAILED now and later, as with
 *     PCCL_ON_FAILURE=return, until PCCL_Update_topology.
 * E6  After a change a process that has not opted in names no ranks: it gets
 *     MPIX_ERR_PROC_FAILED, also where the number exists no more. This also
 *     holds for the first use of ranks in its life, and for one that came after
 *     its traits were read.
 * E7  A root is a rank too. In a broadcast after a change the process that has
 *     the root's number must be the one that began with it; otherwise the
 *     broadcast fails, unless PCCL_LOST_ROOT=promote. In a reduction both get
 *     the result, the latter if MPI_Comm_rank has not told it otherwise.
 * E8  A change is told on stderr, at once and by MPI_Finalize, unless the
 *     process has opted in by a function.
 * E9  A process that has not opted in is *uninformed*: it may have chosen its
 *     part of the work, its files or its seeds by rank and size, and no call
 *     shows that. Its traits say so, also when it leaves. A job with uninformed
 *     processes that has lost one does not end with status 0.
 *     PCCL_ON_FAILURE=force: nobody is uninformed. */
#ifndef RANK_USE_H
#define RANK_USE_H

#include "coll.h"

/* Why a call that names ranks fails after a change (E6). */
extern const char rank_use_changed_text[];

/* After the connection to the run; no other call is under way. */
void rank_use_start(void);

/* MPI_Comm_rank of a communicator. */
void rank_use_asked_rank(const struct comm *comm, int rank);
/* A PCCL_ or MPIX_ function was called. */
void rank_use_opt_in(void);
/* A call names ranks of the communicator. Returns a noted class (E6). */
int rank_use_name(const struct comm *comm, const char *function);
/* A call names ranks, or makes something that keeps them. */
void rank_use_keep(const char *function);
/* A collective begins: sets its number, and `unaware` if it must fail (E6,
 * E7). */
void rank_use_collective(struct coll *coll);

/* The loss that an operation has met changes ranks (E4). The same on all
 * survivors. */
bool rank_use_allows_change(void);
/* The ranks of the world have changed from those of the group. */
void rank_use_changed(const struct group *before, unsigned long call);
/* PCCL_Update_topology: all ranks are what the program asks for next. */
void rank_use_updated(void);

/* Whether ranks have changed under a program that has not opted in. */
bool rank_use_unaware(void);
/* Whether it would then take itself for this rank, from what it has asked. */
bool rank_use_believes(int rank);
/* Whether ranks have ever changed under a program that may not know. */
bool rank_use_has_changed(void);
/* Whether an MPI_ANY_SOURCE goes on waiting for those that live, although
 * others were lost: this process has opted in. */
bool rank_use_has_opted_in(void);

/* Why a loss ends the job, and what to do; "" where no rule here is why. */
void rank_use_advice(char *text, size_t size);
/* E8, in MPI_Finalize. */
void rank_use_tell_end(void);

#endif
