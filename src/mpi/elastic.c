/* elastic.c - implements mpi_pccl.h. */
#include "coll.h"
#include "elastic.h"
#include "mpi_comm.h"
#include "rank_use.h"
#include "type.h"

#include "../base/quiet_write.h"

#include <mpi_pccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int elastic_note(pcclComm_t *pccl, int error_class, pcclResult_t result)
{
    char detail[256] = "";
    (void)pcclGetLastError(pccl, detail, sizeof detail);
    return error_note(error_class, "%s%s%s", pcclGetErrorString(result),
                      *detail ? ": " : "", detail);
}

static int elastic_error(struct comm *comm, pcclResult_t result,
                         const char *function)
{
    int error_class = result == pcclPendingAsyncOps      ? MPI_ERR_PENDING
                      : result == pcclRankConnectionLost ? MPIX_ERR_PROC_FAILED
                                                         : MPI_ERR_OTHER;
    error_class = elastic_note(world.pccl, error_class, result);
    return error_raise_noted(comm, error_class, function);
}

int PCCL_Drain_requested(int *flag)
{
    bool requested = false;
    rank_use_opt_in();
    if (!flag) return RAISE_ARG(NULL, "null flag");
    (void)pcclDrainRequested(&requested);
    *flag = requested;
    return MPI_SUCCESS;
}

static bool is_asked_to_leave(void)
{
    bool requested = false;
    (void)pcclDrainRequested(&requested);
    return requested;
}

/* The safe point of a program that does not ask for it. */
static void leave_if_asked(void)
{
    if (!is_asked_to_leave()) return;
    quiet_print("pccl: this rank was asked to leave, and leaves\n");
    env_leave();
}

/* One may be between two operations, of which pccl knows nothing, and the
 * numbers of collectives begin anew. */
static bool collectives_are_over(void)
{
    coll_progress_all();
    return !coll_any_pending();
}

/* A change of the view that all members call for. */
static int change(struct comm *comm, bool optimizes, const char *function)
{
    if (!collectives_are_over())
        return error_raise(comm, MPI_ERR_PENDING, function,
                           "a nonblocking collective is not complete");
    pcclResult_t result = optimizes ? pcclOptimizeTopology(world.pccl)
                                    : pcclUpdateTopology(world.pccl);
    if (result != pcclSuccess) return elastic_error(comm, result, function);
    if (!world_refresh())
        return error_raise(comm, MPI_ERR_NO_MEM, function, "out of memory");
    rank_use_updated();
    world_restart_sequences();
    return MPI_SUCCESS;
}

int PCCL_Update_topology(MPI_Comm handle)
{
    rank_use_opt_in();
    WORLD_OR_RETURN(comm, handle);
    if (!world.pccl) return MPI_SUCCESS;
    leave_if_asked();
    return change(comm, false, __func__);
}

int PCCL_Optimize_topology(MPI_Comm handle)
{
    rank_use_opt_in();
    WORLD_OR_RETURN(comm, handle);
    if (!world.pccl || atomic_load(&world.view)->size == 1) return MPI_SUCCESS;
    return change(comm, true, __func__);
}

int PCCL_Are_peers_pending(MPI_Comm handle, int *flag)
{
    rank_use_opt_in();
    WORLD_OR_RETURN(comm, handle);
    bool pending = false;
    if (!flag) return RAISE_ARG(comm, "null flag");
    if (world.pccl) {
        pcclResult_t result = pcclArePeersPending(world.pccl, &pending);
        if (result != pcclSuccess) return elastic_error(comm, result, __func__);
        /* A program that updates only where this says so has that safe point
         * all the same. Nobody else needs to update. */
        if (is_asked_to_leave()) pending = true;
    }
    *flag = pending;
    return MPI_SUCCESS;
}

/* ------------------------------------------------------- samples of a step
 * No opt-in: it may take a lock. */

/* Of a process alone. */
static _Atomic uint64_t alone_step, alone_samples, alone_target;

int PCCL_Report_progress(MPI_Comm handle, uint64_t step, uint64_t samples,
                         uint64_t target)
{
    WORLD_OR_RETURN(comm, handle);
    if (samples > PCCL_SAMPLES_MAX)
        return RAISE_ARG(comm, "more samples than can be counted");
    if (!world.pccl) {
        atomic_store(&alone_step, step);
        atomic_store(&alone_samples, samples);
        atomic_store(&alone_target, target);
        return MPI_SUCCESS;
    }
    pcclResult_t result = pcclReportProgress(world.pccl, step, samples, target);
    return result == pcclSuccess ? MPI_SUCCESS
                                 : elastic_error(comm, result, __func__);
}

int PCCL_Get_progress(MPI_Comm handle, PCCL_Progress *progress)
{
    WORLD_OR_RETURN(comm, handle);
    pcclProgress_t p = {.size = sizeof p};
    if (!progress) return RAISE_ARG(comm, "null progress");
    if (!world.pccl) {
        p.step = atomic_load(&alone_step);
        p.samples = atomic_load(&alone_samples);
        p.target = atomic_load(&alone_target);
        p.members = 1;
        p.reached = p.target > 0 && p.samples >= p.target;
    }
    pcclResult_t result = pcclSuccess;
    if (world.pccl) result = pcclGetProgress(world.pccl, &p);
    *progress = (PCCL_Progress){.step = p.step,
                                .samples = p.samples,
                                .target = p.target,
                                .ranks = (int)p.members,
                                .reached = p.reached};
    return result == pcclSuccess ? MPI_SUCCESS
                                 : elastic_error(comm, result, __func__);
}

/* ----------------------------------------------------------- shared state */

int PCCL_State_create(PCCL_Shared_state **state)
{
    rank_use_opt_in();
    if (!state) return RAISE_ARG(NULL, "null state");
    *state = calloc(1, sizeof **state);
    return *state ? MPI_SUCCESS : RAISE_NO_MEMORY(NULL);
}

int PCCL_State_free(PCCL_Shared_state **state)
{
    rank_use_opt_in();
    if (!state || !*state) return RAISE_ARG(NULL, "null state");
    for (int i = 0; i < (*state)->count; i++)
        free((char *)(uintptr_t)(*state)->infos[i].name);
    free((*state)->infos);
    free(*state);
    *state = NULL;
    return MPI_SUCCESS;
}

int PCCL_State_add(PCCL_Shared_state *state, const char *name, void *buffer,
                   MPI_Count count, MPI_Datatype datatype)
{
    rank_use_opt_in();
    if (!state || !name) return RAISE_ARG(NULL, "null state or name");
    if (count < 0) return RAISE(NULL, MPI_ERR_COUNT, "negative count");
    if (count > 0 && !buffer) return RAISE(NULL, MPI_ERR_BUFFER, "null buffer");
    const struct type *type = type_find(datatype);
    if (!type) return RAISE(NULL, MPI_ERR_TYPE, "invalid datatype");
    if (!type->dense)
        return RAISE(NULL, MPI_ERR_TYPE, "the datatype has gaps: \"%s\"", name);
    if (state->count == state->room) {
        int room = 2 * state->room + 8;
        pcclTensorInfo_t *more =
            realloc(state->infos, (size_t)room * sizeof *more);
        if (!more) return RAISE_NO_MEMORY(NULL);
        state->infos = more;
        state->room = room;
    }
    pcclDataType_t element = pcclUint8;
    int scale = 0;
    if (!type_to_pccl(type, &element, &scale)) scale = (int)type->size;
    char *copy = strdup(name);
    if (!copy) return RAISE_NO_MEMORY(NULL);
    state->infos[state->count++] =
        (pcclTensorInfo_t){.name = copy,
                           .data = buffer,
                           .count = (size_t)count * (size_t)scale,
                           .datatype = element,
                           .device_type = pcclDeviceCpu};
    return MPI_SUCCESS;
}

int PCCL_State_get_revision(const PCCL_Shared_state *state, uint64_t *revision)
{
    rank_use_opt_in();
    if (!state || !revision) return RAISE_ARG(NULL, "null state or revision");
    *revision = state->revision;
    return MPI_SUCCESS;
}

int PCCL_State_set_revision(PCCL_Shared_state *state, uint64_t revision)
{
    rank_use_opt_in();
    if (!state) return RAISE_ARG(NULL, "null state");
    state->revision = revision;
    state->synced = false;
    return MPI_SUCCESS;
}

int PCCL_Sync_shared_state(MPI_Comm handle, PCCL_Shared_state *state,
                           int strategy, MPI_Count *received)
{
    rank_use_opt_in();
    WORLD_OR_RETURN(comm, handle);
    if (!state) return RAISE_ARG(comm, "null state");
    if (strategy < PCCL_SYNC_POPULAR || strategy > PCCL_SYNC_SEND)
        return RAISE_ARG(comm, "unknown strategy");
    if (received) *received = 0;
    pcclSharedState_t shared = {.revision = state->revision + state->synced,
                                .count = (size_t)state->count,
                                .infos = state->infos};
    if (world.pccl) {
        pcclSharedStateSyncInfo_t info = {0, 0};
        pcclResult_t result = pcclSynchronizeSharedState(
            world.pccl, &shared, (pcclSharedStateSyncStrategy_t)strategy,
            &info);
        if (result != pcclSuccess) {
            int error_class = result == pcclPendingAsyncOps   ? MPI_ERR_PENDING
                              : result == pcclInvalidArgument ? MPI_ERR_ARG
                                                              : MPI_ERR_OTHER;
            error_class = elastic_note(world.pccl, error_class, result);
            return error_raise_noted(comm, error_class, __func__);
        }
        if (received) *received = (MPI_Count)info.rx_bytes;
    }
    state->revision = shared.revision;
    state->synced = true;
    return MPI_SUCCESS;
}
