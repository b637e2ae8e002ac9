/* elastic_partial.c - implements PCCL_Allreduce_partial of mpi_pccl.h. */
#include "coll.h"
#include "elastic.h"
#include "rank_use.h"
#include "type.h"

#include <string.h>

/* A process alone has all of its own vector. */
static void copy_alone(const void *send, void *recv, MPI_Count count,
                       size_t size, double weight, PCCL_Partial_info *info)
{
    if (send != recv && count > 0) memcpy(recv, send, (size_t)count * size);
    if (!info) return;
    info->elements = count;
    info->contributed = count > 0;
    info->ranks = 1;
    info->part_count = count > 0;
    if (info->parts && info->part_room > 0 && count > 0)
        info->parts[0] = (PCCL_Partial_part){0, count, weight, 1};
}

static void fill_info(const pcclPartialInfo_t *from,
                      const pcclPartialPart_t *parts, MPI_Count scale,
                      PCCL_Partial_info *info)
{
    info->elements = (MPI_Count)from->elements / scale;
    info->contributed = from->contributed;
    info->ranks = (int)from->member_count;
    info->part_count = (int)from->part_count;
    for (int i = 0; info->parts && i < info->part_count && i < info->part_room;
         i++)
        info->parts[i] =
            (PCCL_Partial_part){(MPI_Count)parts[i].begin / scale,
                                (MPI_Count)parts[i].count / scale,
                                parts[i].weight, (int)parts[i].contributors};
}

/* Returns a noted class. */
static int check(const void *sendbuf, const void *recvbuf, MPI_Count count,
                 const PCCL_Partial_options *options)
{
    if (count < 0) return error_note(MPI_ERR_COUNT, "negative count");
    if (count > 0 && (!sendbuf || !recvbuf || recvbuf == MPI_IN_PLACE))
        return error_note(MPI_ERR_BUFFER, "null buffer");
    return options ? MPI_SUCCESS : error_note(MPI_ERR_ARG, "null options");
}

int PCCL_Allreduce_partial(const void *sendbuf, void *recvbuf, MPI_Count count,
                           MPI_Datatype datatype,
                           const PCCL_Partial_options *options, MPI_Comm handle,
                           PCCL_Partial_info *info)
{
    rank_use_opt_in();
    WORLD_OR_RETURN(comm, handle);
    int error = check(sendbuf, recvbuf, count, options);
    if (error != MPI_SUCCESS) return error_raise_noted(comm, error, __func__);
    const struct type *type = type_find(datatype);
    pcclDataType_t element = pcclUint8;
    int scale = 0;
    if (!type || !type_to_pccl(type, &element, &scale) || scale != 1)
        return RAISE(comm, MPI_ERR_TYPE, "not a predefined number");
    const void *send = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    if (!world.pccl) {
        copy_alone(send, recvbuf, count, (size_t)type->size, options->weight,
                   info);
        return MPI_SUCCESS;
    }
    pcclPartialPart_t parts[PCCL_PARTIAL_PARTS_MAX];
    pcclPartialInfo_t got = {.size = sizeof got,
                             .parts = parts,
                             .part_room = PCCL_PARTIAL_PARTS_MAX};
    pcclPartialDescriptor_t d = {.size = sizeof d,
                                 .tag = comm_tag_of(comm, SLOT_BLOCKING),
                                 .count = (size_t)count,
                                 .datatype = element,
                                 .op = options->sums ? pcclSum : pcclAvg,
                                 .weight = options->weight,
                                 .deadline_ms = options->deadline_ms,
                                 .gather_ms = options->gather_ms,
                                 .evict_after = options->evict_after};
    pcclResult_t result =
        pcclAllReducePartial(send, recvbuf, &d, world.pccl, &got);
    if (result != pcclSuccess) {
        error = result == pcclInvalidArgument ? MPI_ERR_ARG : MPI_ERR_OTHER;
        error = elastic_note(world.pccl, error, result);
        return error_raise_noted(comm, error, __func__);
    }
    if (info) fill_info(&got, parts, scale, info);
    return MPI_SUCCESS;
}
