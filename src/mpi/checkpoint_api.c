/* checkpoint_api.c - the checkpoints of mpi_pccl.h. */
#include "elastic.h"
#include "mpi_comm.h"
#include "rank_use.h"

#include <string.h>

/* A world of one without a launcher has no communicator: one that is never
 * connected knows the files as well. NULL: no memory. */
static pcclComm_t *files_begin(void)
{
    pcclCommCreateParams_t nobody = {.peer_group = 0};
    pcclComm_t *pccl = world.pccl;
    if (!pccl && (pcclInit() != pcclSuccess ||
                  pcclCreateCommunicator(&nobody, &pccl) != pcclSuccess))
        return NULL;
    return pccl;
}

/* The result as an error class, whose text is noted. */
static int files_end(pcclComm_t *pccl, pcclResult_t result,
                     const char *function)
{
    char detail[256] = "";
    if (result != pcclSuccess)
        (void)pcclGetLastError(pccl, detail, sizeof detail);
    if (pccl != world.pccl) (void)pcclDestroyCommunicator(pccl);
    if (result == pcclSuccess) return MPI_SUCCESS;
    int error_class = result == pcclFileError         ? MPI_ERR_IO
                      : result == pcclInvalidArgument ? MPI_ERR_ARG
                      : result == pcclInternalError   ? MPI_ERR_NO_MEM
                                                      : MPI_ERR_OTHER;
    return error_note(error_class, "%s: %s%s%s", function,
                      pcclGetErrorString(result), *detail ? ": " : "", detail);
}

/* The errors of files are returned, as those of MPI_File_write are: a full disk
 * does not end a training. */
static int raise_unless_file(struct comm *comm, int error_class,
                             const char *function)
{
    if (error_class == MPI_SUCCESS || error_class == MPI_ERR_IO)
        return error_class;
    return error_raise_noted(comm, error_class, function);
}

int PCCL_Save_state(MPI_Comm handle, const PCCL_Shared_state *state,
                    const char *directory, int keep)
{
    rank_use_opt_in();
    WORLD_OR_RETURN(comm, handle);
    if (!state || !directory) return RAISE_ARG(comm, "null state or directory");
    if (keep < 0) return RAISE_ARG(comm, "negative keep");
    pcclComm_t *pccl = files_begin();
    if (!pccl) return RAISE_NO_MEMORY(comm);
    pcclSharedState_t shared = {.revision = state->revision,
                                .count = (size_t)state->count,
                                .infos = state->infos};
    pcclSaveOptions_t options = {.size = sizeof options,
                                 .keep = (uint32_t)keep,
                                 .synchronous = !world.pccl,
                                 .this_peer = !world.pccl};
    pcclResult_t result = pcclSaveState(pccl, &shared, directory, &options);
    return raise_unless_file(comm, files_end(pccl, result, __func__), __func__);
}

int PCCL_Await_save(MPI_Comm handle)
{
    rank_use_opt_in();
    COMM_OR_RETURN(comm, handle);
    if (!world.pccl) return MPI_SUCCESS; /* the save has waited */
    pcclResult_t result = pcclAwaitSave(world.pccl, NULL);
    return raise_unless_file(comm, files_end(world.pccl, result, __func__),
                             __func__);
}

int PCCL_Load_state(MPI_Comm handle, PCCL_Shared_state *state,
                    const char *directory, const uint64_t *revision, int *found)
{
    rank_use_opt_in();
    COMM_OR_RETURN(comm, handle);
    if (!state || !directory || !found)
        return RAISE_ARG(comm, "null state, directory or found");
    pcclComm_t *pccl = files_begin();
    if (!pccl) return RAISE_NO_MEMORY(comm);
    pcclSharedState_t shared = {.revision = state->revision,
                                .count = (size_t)state->count,
                                .infos = state->infos};
    pcclLoadOptions_t options = {.size = sizeof options,
                                 .choice =
                                     revision ? pcclLoadRevision : pcclLoadCut,
                                 .revision = revision ? *revision : 0};
    pcclResult_t result =
        pcclLoadState(pccl, &shared, directory, &options, NULL);
    *found = result == pcclSuccess;
    if (result == pcclNoSharedStateAvailable) result = pcclSuccess;
    int error_class = files_end(pccl, result, __func__);
    if (error_class != MPI_SUCCESS)
        return error_raise_noted(comm, error_class, __func__);
    if (!*found) return MPI_SUCCESS;
    state->revision = shared.revision;
    state->synced = false;
    return MPI_SUCCESS;
}
