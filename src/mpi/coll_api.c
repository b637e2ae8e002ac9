/* coll_api.c - reductions, broadcast and barrier: converts arguments to a
 * struct coll. Each exists blocking, nonblocking and persistent, with narrow
 * and wide counts; the VARIANT macros generate the six forms. */
#include "coll_check.h"
#include "rank_use.h"

#include <stdlib.h>

/* ------------------------------------------------------------------- barrier
 */

static int barrier(MPI_Comm handle, struct mode mode, const char *function)
{
    BEGIN_OR_AGAIN(handle, NULL, NULL, .call = CALL_BARRIER);
    coll.call = CALL_BARRIER;
    coll.step = step_barrier;
    coll.uses = USES_NOTHING;
    return coll_go(&coll, mode);
}

#define BARRIER_VARIANT(name, extra, mode)                                     \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(MPI_Comm comm extra)                                       \
    {                                                                          \
        return barrier(comm, mode, __func__);                                  \
    }
BARRIER_VARIANT(Barrier, , NOW)
BARRIER_VARIANT(Ibarrier, REQUEST, STARTED)
BARRIER_VARIANT(Barrier_init, PREPARE, PREPARED)

/* ----------------------------------------------------------------- broadcast
 */

/* Between groups: from the root to all members of the other group. */
static void describe_bcast(struct coll *coll, struct block *send,
                           struct block *recv)
{
    struct block whole = {coll->recvbuf, coll->recvcount, coll->recvtype};
    int root = coll_root_place(coll);
    if (root >= 0) recv[root] = whole;
    for (int r = 0; coll_is_root(coll) && r < coll->layout.entries; r++)
        send[coll_place(coll, r)] = whole;
}

static int bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root,
                 MPI_Comm handle, struct mode mode, const char *function)
{
    BEGIN_OR_AGAIN(handle, NULL, buffer, .call = CALL_BCAST, .root = root,
                   .type = type, .count = count);
    coll.call = CALL_BCAST;
    CHECK(check_root(&coll, root));
    coll.step = comm->remote ? step_exchange : step_broadcast;
    coll.layout.describe = describe_bcast;
    coll.recvbuf = buffer;
    coll.recvcount = count;
    coll.rooted = !comm->remote;
    coll.root = root;
    coll.uses = USES_ROOT_DATA;
    if (root == MPI_PROC_NULL) return coll_go(&coll, mode);
    CHECK(check_data(buffer, count, type, &coll.recvtype));
    return coll_go(&coll, mode);
}

#define BCAST_VARIANT(name, count_t, extra, mode)                              \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *buffer, count_t count, MPI_Datatype type, int root,  \
                    MPI_Comm comm extra)                                       \
    {                                                                          \
        return bcast(buffer, count, type, root, comm, mode, __func__);         \
    }
BCAST_VARIANT(Bcast, int, , NOW)
BCAST_VARIANT(Bcast_c, MPI_Count, , NOW)
BCAST_VARIANT(Ibcast, int, REQUEST, STARTED)
BCAST_VARIANT(Bcast_init, int, PREPARE, PREPARED)
BCAST_VARIANT(Ibcast_c, MPI_Count, REQUEST, STARTED)
BCAST_VARIANT(Bcast_init_c, MPI_Count, PREPARE, PREPARED)

/* ---------------------------------------------------------------- reductions
 */

/* A reduction in an intercommunicator: `everyone` or the root is set. */
static int reduction_inter(struct coll *coll, const void *sendbuf,
                           void *recvbuf, MPI_Count count, MPI_Datatype type,
                           MPI_Op op, struct mode mode)
{
    bool sends = coll->reduction.everyone || coll->root >= 0;
    bool gets = coll->reduction.everyone || coll->root == MPI_ROOT;
    int result = MPI_SUCCESS;
    if (coll->reduction.fold != FOLD_ALL) result = MPI_ERR_COMM;
    if (sends && sendbuf == MPI_IN_PLACE) result = MPI_ERR_BUFFER;
    if (sends && result == MPI_SUCCESS)
        result = check_data(sendbuf, count, type, &coll->recvtype);
    if (gets && result == MPI_SUCCESS)
        result = check_data(recvbuf, coll->reduction.keep_count, type,
                            &coll->recvtype);
    if ((sends || gets) && result == MPI_SUCCESS)
        result = check_op(op, coll->recvtype, &coll->reducer);
    if (result != MPI_SUCCESS)
        return coll_refuse(coll, result, check_text(result));
    coll->step = step_reduce_inter;
    coll->sendbuf = sendbuf;
    coll->recvbuf = recvbuf;
    coll->recvcount = count;
    coll->reduction.keep = gets;
    coll->rooted = false;
    return coll_go(coll, mode);
}

/* Takes over the type and the operator if pccl has both. */
static bool pccl_reduces(struct coll *coll)
{
    return type_to_pccl(coll->recvtype, &coll->op.datatype, &coll->scale) &&
           op_to_pccl(coll->reducer, coll->recvtype, &coll->op.op);
}

/* Common part of all calls that reduce `count` elements of every member: the
 * caller has set keep* and fold. */
static int reduction(struct coll *coll, const void *sendbuf, void *recvbuf,
                     MPI_Count count, MPI_Datatype type, MPI_Op op,
                     struct mode mode)
{
    if (coll->comm->remote)
        return reduction_inter(coll, sendbuf, recvbuf, count, type, op, mode);
    coll->in_place = sendbuf == MPI_IN_PLACE;
    const void *input = coll->in_place ? recvbuf : sendbuf;
    int result = check_data(input, count, type, &coll->recvtype);
    if (result == MPI_SUCCESS && coll->reduction.keep)
        result = check_data(recvbuf, count, type, &coll->recvtype);
    if (result == MPI_SUCCESS)
        result = check_op(op, coll->recvtype, &coll->reducer);
    if (result == MPI_SUCCESS && coll->reduction.keep && count > 0 &&
        (recvbuf == MPI_IN_PLACE || sendbuf == recvbuf) && recvbuf)
        result = MPI_ERR_BUFFER;
    if (result != MPI_SUCCESS)
        return coll_refuse(coll, result, check_text(result));
    coll->step = coll->reduction.fold != FOLD_ALL ? step_scan
                 : pccl_reduces(coll)             ? step_reduce_direct
                                                  : step_reduce_fold;
    coll->sendbuf = sendbuf;
    coll->recvbuf = recvbuf;
    coll->recvcount = count;
    return coll_go(coll, mode);
}

static int allreduce(const void *sendbuf, void *recvbuf, MPI_Count count,
                     MPI_Datatype type, MPI_Op op, MPI_Comm handle,
                     struct mode mode, const char *function)
{
    BEGIN_OR_AGAIN(handle, sendbuf, recvbuf, .call = CALL_ALLREDUCE,
                   .type = type, .op = op, .count = count);
    coll.call = CALL_ALLREDUCE;
    coll.reduction.keep = coll.reduction.everyone = true;
    coll.reduction.keep_count = count;
    coll.uses = USES_NOTHING;
    return reduction(&coll, sendbuf, recvbuf, count, type, op, mode);
}

static int scan(const void *sendbuf, void *recvbuf, MPI_Count count,
                MPI_Datatype type, MPI_Op op, MPI_Comm handle, struct mode mode,
                const char *function)
{
    BEGIN(handle);
    coll.call = CALL_SCAN;
    coll.reduction.keep = true;
    coll.reduction.keep_count = count;
    coll.reduction.fold = FOLD_UP_TO;
    return reduction(&coll, sendbuf, recvbuf, count, type, op, mode);
}

static int exscan(const void *sendbuf, void *recvbuf, MPI_Count count,
                  MPI_Datatype type, MPI_Op op, MPI_Comm handle,
                  struct mode mode, const char *function)
{
    BEGIN(handle);
    coll.call = CALL_EXSCAN;
    coll.reduction.keep = true;
    coll.reduction.keep_count = count;
    coll.reduction.fold = FOLD_BEFORE;
    return reduction(&coll, sendbuf, recvbuf, count, type, op, mode);
}

/* The root gets the result, and a process that takes itself for it (E7). A
 * process that does not know that it is the root may have passed no buffer. */
static bool gets_result(const struct coll *coll, const void *sendbuf,
                        const void *recvbuf)
{
    bool root = coll_is_root(coll);
    if (!coll->comm->follows_world || !rank_use_unaware()) return root;
    if (rank_use_believes(coll->root)) return true;
    return root && recvbuf && recvbuf != MPI_IN_PLACE && recvbuf != sendbuf;
}

static void reduce_to_root(struct coll *coll)
{
    coll->reduction.keep = coll->reduction.keep ||
                           (coll->recvbuf && coll->recvbuf != MPI_IN_PLACE &&
                            coll->recvbuf != coll->sendbuf);
    coll->reduction.keep_count = coll->reduction.keep ? coll->recvcount : 0;
}

static int reduce(const void *sendbuf, void *recvbuf, MPI_Count count,
                  MPI_Datatype type, MPI_Op op, int root, MPI_Comm handle,
                  struct mode mode, const char *function)
{
    /* A loss may change who gets the result. */
    bool may = world.policy != FAILURE_SHRINK;
    BEGIN_OR_AGAIN(handle, sendbuf, recvbuf,
                   .call = may ? CALL_REDUCE : CALL_INTERNAL, .root = root,
                   .type = type, .op = op, .count = count);
    coll.call = CALL_REDUCE;
    CHECK(check_root(&coll, root));
    coll.rooted = true;
    coll.root = root;
    coll.uses = USES_ROOT;
    coll.to_root = reduce_to_root;
    coll.reduction.keep = gets_result(&coll, sendbuf, recvbuf);
    coll.reduction.keep_count = coll.reduction.keep ? count : 0;
    if (!coll.reduction.keep && !comm->remote && sendbuf == MPI_IN_PLACE)
        CHECK(MPI_ERR_BUFFER);
    return reduction(&coll, sendbuf, recvbuf, count, type, op, mode);
}

static int reduce_scatter(const void *sendbuf, void *recvbuf,
                          struct numbers counts, MPI_Datatype type, MPI_Op op,
                          MPI_Comm handle, struct mode mode,
                          const char *function)
{
    BEGIN(handle);
    coll.call = CALL_REDUCE_SCATTER;
    MPI_Count total = 0;
    if (numbers_null(counts)) CHECK(MPI_ERR_ARG);
    const struct group *members =
        comm->remote ? comm_members(comm) : coll.called;
    coll.reduction.split =
        calloc((size_t)members->size, sizeof *coll.reduction.split);
    if (!coll.reduction.split) CHECK(MPI_ERR_NO_MEM);
    for (int i = 0; i < members->size; i++) {
        MPI_Count count = numbers_at(counts, i);
        if (count < 0) CHECK(MPI_ERR_COUNT);
        if (i == members->rank) {
            coll.reduction.keep_first = total;
            coll.reduction.keep_count = count;
        }
        total += count;
        coll.reduction.split[i] = (uint64_t)count;
    }
    coll.reduction.keep = coll.reduction.keep_count > 0;
    coll.reduction.everyone = true;
    return reduction(&coll, sendbuf, recvbuf, total, type, op, mode);
}

static int reduce_scatter_block(const void *sendbuf, void *recvbuf,
                                MPI_Count count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm handle, struct mode mode,
                                const char *function)
{
    BEGIN(handle);
    coll.call = CALL_REDUCE_SCATTER_BLOCK;
    if (count < 0) CHECK(MPI_ERR_COUNT);
    const struct group *members = comm_members(comm);
    coll.reduction.keep = count > 0;
    coll.reduction.everyone = true;
    coll.reduction.keep_first = members->rank * count;
    coll.reduction.keep_count = count;
    return reduction(&coll, sendbuf, recvbuf, count * members->size, type, op,
                     mode);
}

#define REDUCTION_VARIANT(name, count_t, body, extra, mode)                    \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, void *recvbuf, count_t count,         \
                    MPI_Datatype type, MPI_Op op, MPI_Comm comm extra)         \
    {                                                                          \
        return body(sendbuf, recvbuf, count, type, op, comm, mode, __func__);  \
    }
REDUCTION_VARIANT(Allreduce, int, allreduce, , NOW)
REDUCTION_VARIANT(Allreduce_c, MPI_Count, allreduce, , NOW)
REDUCTION_VARIANT(Iallreduce, int, allreduce, REQUEST, STARTED)
REDUCTION_VARIANT(Allreduce_init, int, allreduce, PREPARE, PREPARED)
REDUCTION_VARIANT(Iallreduce_c, MPI_Count, allreduce, REQUEST, STARTED)
REDUCTION_VARIANT(Allreduce_init_c, MPI_Count, allreduce, PREPARE, PREPARED)
REDUCTION_VARIANT(Scan, int, scan, , NOW)
REDUCTION_VARIANT(Scan_c, MPI_Count, scan, , NOW)
REDUCTION_VARIANT(Iscan, int, scan, REQUEST, STARTED)
REDUCTION_VARIANT(Scan_init, int, scan, PREPARE, PREPARED)
REDUCTION_VARIANT(Iscan_c, MPI_Count, scan, REQUEST, STARTED)
REDUCTION_VARIANT(Scan_init_c, MPI_Count, scan, PREPARE, PREPARED)
REDUCTION_VARIANT(Exscan, int, exscan, , NOW)
REDUCTION_VARIANT(Exscan_c, MPI_Count, exscan, , NOW)
REDUCTION_VARIANT(Iexscan, int, exscan, REQUEST, STARTED)
REDUCTION_VARIANT(Exscan_init, int, exscan, PREPARE, PREPARED)
REDUCTION_VARIANT(Iexscan_c, MPI_Count, exscan, REQUEST, STARTED)
REDUCTION_VARIANT(Exscan_init_c, MPI_Count, exscan, PREPARE, PREPARED)
REDUCTION_VARIANT(Reduce_scatter_block, int, reduce_scatter_block, , NOW)
REDUCTION_VARIANT(Reduce_scatter_block_c, MPI_Count, reduce_scatter_block, ,
                  NOW)
REDUCTION_VARIANT(Ireduce_scatter_block, int, reduce_scatter_block, REQUEST,
                  STARTED)
REDUCTION_VARIANT(Reduce_scatter_block_init, int, reduce_scatter_block, PREPARE,
                  PREPARED)
REDUCTION_VARIANT(Ireduce_scatter_block_c, MPI_Count, reduce_scatter_block,
                  REQUEST, STARTED)
REDUCTION_VARIANT(Reduce_scatter_block_init_c, MPI_Count, reduce_scatter_block,
                  PREPARE, PREPARED)

#define REDUCE_VARIANT(name, count_t, extra, mode)                             \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, void *recvbuf, count_t count,         \
                    MPI_Datatype type, MPI_Op op, int root,                    \
                    MPI_Comm comm extra)                                       \
    {                                                                          \
        return reduce(sendbuf, recvbuf, count, type, op, root, comm, mode,     \
                      __func__);                                               \
    }
REDUCE_VARIANT(Reduce, int, , NOW)
REDUCE_VARIANT(Reduce_c, MPI_Count, , NOW)
REDUCE_VARIANT(Ireduce, int, REQUEST, STARTED)
REDUCE_VARIANT(Reduce_init, int, PREPARE, PREPARED)
REDUCE_VARIANT(Ireduce_c, MPI_Count, REQUEST, STARTED)
REDUCE_VARIANT(Reduce_init_c, MPI_Count, PREPARE, PREPARED)

#define SCATTER_VARIANT(name, count_t, extra, mode)                            \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, void *recvbuf,                        \
                    const count_t counts[], MPI_Datatype type, MPI_Op op,      \
                    MPI_Comm comm extra)                                       \
    {                                                                          \
        return reduce_scatter(sendbuf, recvbuf, numbers_##count_t(counts),     \
                              type, op, comm, mode, __func__);                 \
    }
SCATTER_VARIANT(Reduce_scatter, int, , NOW)
SCATTER_VARIANT(Reduce_scatter_c, MPI_Count, , NOW)
SCATTER_VARIANT(Ireduce_scatter, int, REQUEST, STARTED)
SCATTER_VARIANT(Reduce_scatter_init, int, PREPARE, PREPARED)
SCATTER_VARIANT(Ireduce_scatter_c, MPI_Count, REQUEST, STARTED)
SCATTER_VARIANT(Reduce_scatter_init_c, MPI_Count, PREPARE, PREPARED)
