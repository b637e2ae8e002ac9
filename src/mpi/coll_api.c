/* coll_api.c - collectives that reduce, broadcast or synchronize: arguments to
 * a struct coll. Every one exists blocking and not, with narrow and wide
 * counts; the VARIANT macros write the four. */
#include "coll_check.h"

#include <stdlib.h>

/* ------------------------------------------------------------------- barrier */

static int barrier(MPI_Comm handle, MPI_Request *request, const char *function)
{
    BEGIN(handle);
    coll.step = step_barrier;
    return coll_go(&coll, request);
}

#define BARRIER_VARIANT(name, extra, request)                                  \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(MPI_Comm comm extra)                                       \
    {                                                                          \
        return barrier(comm, request, __func__);                               \
    }
BARRIER_VARIANT(Barrier, , NULL)
BARRIER_VARIANT(Ibarrier, REQUEST, request)

/* ----------------------------------------------------------------- broadcast */

static int bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root,
                 MPI_Comm handle, MPI_Request *request, const char *function)
{
    BEGIN(handle);
    CHECK(check_data(buffer, count, type, &coll.recvtype));
    CHECK(check_root(&coll, root));
    coll.step = step_broadcast;
    coll.recvbuf = buffer;
    coll.recvcount = count;
    coll.rooted = true;
    coll.root = root;
    return coll_go(&coll, request);
}

#define BCAST_VARIANT(name, count_t, extra, request)                           \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *buffer, count_t count, MPI_Datatype type, int root,  \
                    MPI_Comm comm extra)                                       \
    {                                                                          \
        return bcast(buffer, count, type, root, comm, request, __func__);      \
    }
BCAST_VARIANT(Bcast, int, , NULL)
BCAST_VARIANT(Bcast_c, MPI_Count, , NULL)
BCAST_VARIANT(Ibcast, int, REQUEST, request)
BCAST_VARIANT(Ibcast_c, MPI_Count, REQUEST, request)

/* ---------------------------------------------------------------- reductions */

/* Common part of all that reduce `count` elements of every member: the
 * caller has set keep* and fold. */
static int reduction(struct coll *coll, const void *sendbuf, void *recvbuf,
                     MPI_Count count, MPI_Datatype type, MPI_Op op,
                     MPI_Request *request)
{
    coll->in_place = sendbuf == MPI_IN_PLACE;
    const void *input = coll->in_place ? recvbuf : sendbuf;
    int result = check_data(input, count, type, &coll->recvtype);
    if (result == MPI_SUCCESS && coll->keep)
        result = check_data(recvbuf, count, type, &coll->recvtype);
    if (result == MPI_SUCCESS)
        result = check_op(op, coll->recvtype, &coll->reducer);
    if (result == MPI_SUCCESS && coll->keep && count > 0 &&
        (recvbuf == MPI_IN_PLACE || sendbuf == recvbuf) && recvbuf)
        result = MPI_ERR_BUFFER;
    if (result != MPI_SUCCESS)
        return coll_refuse(coll, result, check_text(result));
    pcclDataType_t datatype;
    pcclRedOp_t pccl_op;
    int scale;
    bool direct = coll->fold == FOLD_ALL &&
                  type_to_pccl(coll->recvtype, &datatype, &scale) &&
                  op_to_pccl(coll->reducer, coll->recvtype, &pccl_op);
    coll->step = direct ? step_reduce_direct : step_reduce_fold;
    coll->sendbuf = sendbuf;
    coll->recvbuf = recvbuf;
    coll->recvcount = count;
    return coll_go(coll, request);
}

static int allreduce(const void *sendbuf, void *recvbuf, MPI_Count count,
                     MPI_Datatype type, MPI_Op op, MPI_Comm handle,
                     MPI_Request *request, const char *function)
{
    BEGIN(handle);
    coll.keep = true;
    coll.keep_count = count;
    return reduction(&coll, sendbuf, recvbuf, count, type, op, request);
}

static int scan(const void *sendbuf, void *recvbuf, MPI_Count count,
                MPI_Datatype type, MPI_Op op, MPI_Comm handle,
                MPI_Request *request, const char *function)
{
    BEGIN(handle);
    coll.keep = true;
    coll.keep_count = count;
    coll.fold = FOLD_UP_TO;
    return reduction(&coll, sendbuf, recvbuf, count, type, op, request);
}

static int exscan(const void *sendbuf, void *recvbuf, MPI_Count count,
                  MPI_Datatype type, MPI_Op op, MPI_Comm handle,
                  MPI_Request *request, const char *function)
{
    BEGIN(handle);
    coll.keep = true;
    coll.keep_count = count;
    coll.fold = FOLD_BEFORE;
    return reduction(&coll, sendbuf, recvbuf, count, type, op, request);
}

static int reduce(const void *sendbuf, void *recvbuf, MPI_Count count,
                  MPI_Datatype type, MPI_Op op, int root, MPI_Comm handle,
                  MPI_Request *request, const char *function)
{
    BEGIN(handle);
    CHECK(check_root(&coll, root));
    coll.rooted = true;
    coll.root = root;
    coll.keep = coll.called->rank == root;
    coll.keep_count = coll.keep ? count : 0;
    if (!coll.keep && sendbuf == MPI_IN_PLACE) CHECK(MPI_ERR_BUFFER);
    return reduction(&coll, sendbuf, recvbuf, count, type, op, request);
}

static int reduce_scatter(const void *sendbuf, void *recvbuf,
                          struct numbers counts, MPI_Datatype type, MPI_Op op,
                          MPI_Comm handle, MPI_Request *request,
                          const char *function)
{
    BEGIN(handle);
    MPI_Count total = 0;
    if (numbers_null(counts)) CHECK(MPI_ERR_ARG);
    for (int i = 0; i < coll.called->size; i++) {
        MPI_Count count = numbers_at(counts, i);
        if (count < 0) CHECK(MPI_ERR_COUNT);
        if (i == coll.called->rank) {
            coll.keep_first = total;
            coll.keep_count = count;
        }
        total += count;
    }
    coll.keep = coll.keep_count > 0;
    return reduction(&coll, sendbuf, recvbuf, total, type, op, request);
}

static int reduce_scatter_block(const void *sendbuf, void *recvbuf,
                                MPI_Count count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm handle, MPI_Request *request,
                                const char *function)
{
    BEGIN(handle);
    if (count < 0) CHECK(MPI_ERR_COUNT);
    coll.keep = count > 0;
    coll.keep_first = coll.called->rank * count;
    coll.keep_count = count;
    return reduction(&coll, sendbuf, recvbuf, count * coll.called->size, type,
                     op, request);
}

#define REDUCTION_VARIANT(name, count_t, body, extra, request)                 \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, void *recvbuf, count_t count,         \
                    MPI_Datatype type, MPI_Op op, MPI_Comm comm extra)         \
    {                                                                          \
        return body(sendbuf, recvbuf, count, type, op, comm, request,          \
                    __func__);                                                 \
    }
REDUCTION_VARIANT(Allreduce, int, allreduce, , NULL)
REDUCTION_VARIANT(Allreduce_c, MPI_Count, allreduce, , NULL)
REDUCTION_VARIANT(Iallreduce, int, allreduce, REQUEST, request)
REDUCTION_VARIANT(Iallreduce_c, MPI_Count, allreduce, REQUEST, request)
REDUCTION_VARIANT(Scan, int, scan, , NULL)
REDUCTION_VARIANT(Scan_c, MPI_Count, scan, , NULL)
REDUCTION_VARIANT(Iscan, int, scan, REQUEST, request)
REDUCTION_VARIANT(Iscan_c, MPI_Count, scan, REQUEST, request)
REDUCTION_VARIANT(Exscan, int, exscan, , NULL)
REDUCTION_VARIANT(Exscan_c, MPI_Count, exscan, , NULL)
REDUCTION_VARIANT(Iexscan, int, exscan, REQUEST, request)
REDUCTION_VARIANT(Iexscan_c, MPI_Count, exscan, REQUEST, request)
REDUCTION_VARIANT(Reduce_scatter_block, int, reduce_scatter_block, , NULL)
REDUCTION_VARIANT(Reduce_scatter_block_c, MPI_Count, reduce_scatter_block, ,
                  NULL)
REDUCTION_VARIANT(Ireduce_scatter_block, int, reduce_scatter_block, REQUEST,
                  request)
REDUCTION_VARIANT(Ireduce_scatter_block_c, MPI_Count, reduce_scatter_block,
                  REQUEST, request)

#define REDUCE_VARIANT(name, count_t, extra, request)                          \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, void *recvbuf, count_t count,         \
                    MPI_Datatype type, MPI_Op op, int root,                    \
                    MPI_Comm comm extra)                                       \
    {                                                                          \
        return reduce(sendbuf, recvbuf, count, type, op, root, comm, request,  \
                      __func__);                                               \
    }
REDUCE_VARIANT(Reduce, int, , NULL)
REDUCE_VARIANT(Reduce_c, MPI_Count, , NULL)
REDUCE_VARIANT(Ireduce, int, REQUEST, request)
REDUCE_VARIANT(Ireduce_c, MPI_Count, REQUEST, request)

#define SCATTER_VARIANT(name, count_t, extra, request)                         \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, void *recvbuf,                        \
                    const count_t counts[], MPI_Datatype type, MPI_Op op,      \
                    MPI_Comm comm extra)                                       \
    {                                                                          \
        return reduce_scatter(sendbuf, recvbuf, numbers_##count_t(counts),     \
                              type, op, comm, request, __func__);              \
    }
SCATTER_VARIANT(Reduce_scatter, int, , NULL)
SCATTER_VARIANT(Reduce_scatter_c, MPI_Count, , NULL)
SCATTER_VARIANT(Ireduce_scatter, int, REQUEST, request)
SCATTER_VARIANT(Ireduce_scatter_c, MPI_Count, REQUEST, request)
